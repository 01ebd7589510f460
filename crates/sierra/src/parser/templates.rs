//! Templates, and their arguments: what stands between `<` and `>`.

use super::*;

impl<'s> Parser<'s> {
    pub(super) fn template(&mut self) -> Parsed<Template<'s>> {
        let start = self.expect("template")?;
        self.expect("<")?;
        if self.is(">") {
            let hint = "write a function without `template`";
            return Err(Box::new(limitation::not_supported(self.since(start), "specializations of templates", hint)));
        }
        self.scopes.push(FxHashMap::default());
        let made = self.template_behind_parameters();
        self.scopes.pop();
        let made = made?;
        let role = if matches!(made.of, Templated::Struct(_)) { Role::TypeTemplate } else { Role::Template };
        self.declare(made.name.text, role);
        Ok(made)
    }

    fn template_behind_parameters(&mut self) -> Parsed<Template<'s>> {
        let mut params = Vec::new();
        loop {
            let integer = if self.eat("typename") || self.eat("class") { None } else { Some(self.specifiers()?.1) };
            let name = self.name("the name of a parameter")?;
            let of_type = if self.is_ispc { Role::BoundType } else { Role::Type };
            self.declare(name.text, if integer.is_some() { Role::Value } else { of_type });
            params.push(TemplateParam { name, integer });
            if self.is("=") {
                let hint = "write the argument where the template is used";
                return Err(Box::new(limitation::not_supported(self.span(), "defaults of parameters", hint)));
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(">")?;
        if self.is("struct") && self.ahead(2).text == "{" {
            // Its fields may be pointers to others of it.
            self.declare(self.ahead(1).text, Role::TypeTemplate);
            let (_, specifier) = self.specifiers()?;
            let SpecifierKind::Struct(_, Some(name), _) = specifier.kind else { return Err(self.unexpected("a name")) };
            self.expect(";")?;
            return Ok(Template { name, params, of: Templated::Struct(specifier) });
        }
        let (storage, specifier) = self.specifiers()?;
        let mut declarator = self.declarator(true)?;
        self.rate(&specifier, false, &mut declarator);
        let (Some(name), true) = (declarator.name, declarator.params.is_some()) else {
            let hint = "write a template of a function or a struct";
            return Err(Box::new(limitation::not_supported(declarator.span, "templates of others", hint)));
        };
        if !self.is("{") {
            let hint = "define the template before its uses";
            return Err(Box::new(limitation::not_supported(declarator.span, "templates without a body", hint)));
        }
        // It may call itself.
        self.declare(name.text, Role::Template);
        let function = self.function(storage, specifier, declarator)?;
        Ok(Template { name, params, of: Templated::Function(function) })
    }

    /// `<int, 3>`
    pub(super) fn template_args(&mut self) -> Parsed<Vec<TemplateArg<'s>>> {
        self.expect("<")?;
        let args = self.nested(|p| {
            let mut args = Vec::new();
            while !p.is(">") && !p.is(">>") {
                args.push(if p.begins_type(p.token()) && p.ahead(1).text != "(" {
                    TemplateArg::Type(Box::new(p.type_of(false)?))
                } else {
                    TemplateArg::Value(p.template_value()?)
                });
                if !p.eat(",") {
                    break;
                }
            }
            Ok(args)
        })?;
        if self.is(">>") {
            // The first half ends this list, the other one the list around it.
            let at = self.pos.min(self.tokens.len() - 1);
            let token = &mut self.tokens[at];
            token.text = &token.text[1..];
            token.span.lo = (token.span.lo + 1).min(token.span.hi);
        } else {
            self.expect(">")?;
        }
        Ok(args)
    }

    /// Whether the arguments of a template follow a name.
    pub(super) fn is_instance(&self, name: &str) -> bool {
        self.ahead(1).text == "<" && self.role(name) == Some(Role::Template)
    }
}
