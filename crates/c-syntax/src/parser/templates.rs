//! Templates, and their arguments: what stands between `<` and `>`.

use super::*;

impl<'s> Parser<'s> {
    /// A template, a specialization, or an instance that is asked for: `template int f<int>(int a);`. What is declared only is no item.
    pub(super) fn template(&mut self) -> Parsed<Option<Item<'s>>> {
        let start = self.expect("template")?;
        let is_instance = self.is_ispc() && !self.is("<");
        if !is_instance {
            self.expect("<")?;
        }
        if is_instance || self.is(">") {
            if !self.is_ispc() {
                let hint = "write a function without `template`";
                let span = self.since(start);
                return Err(Box::new(limitation::not_supported(span, "specializations of templates", hint)));
            }
            self.eat(">");
            return self.specialization();
        }
        self.scopes.push(FxHashMap::default());
        let made = self.template_behind_parameters();
        self.scopes.pop();
        let (name, made) = made?;
        let is_struct = made.as_ref().is_some_and(|t| matches!(t.of, Templated::Struct(_)));
        self.declare(name, if is_struct { Role::TypeTemplate } else { Role::Template });
        Ok(made.map(|t| Item::Template(t.into())))
    }

    /// Behind `template <>`.
    fn specialization(&mut self) -> Parsed<Option<Item<'s>>> {
        let (storage, specifier) = self.specifiers()?;
        let start = self.span();
        let mut pointers = Declarator::at(start);
        while self.eat("*") {
            pointers.rates = Rates::default();
            let mut varying = None;
            while self.is("uniform") || self.is("varying") || self.is("const") {
                let word = self.next().text;
                pointers.rates.is_bound |= word != "const";
                if word == "varying" {
                    varying = Some(self.gang());
                }
            }
            pointers.pointers.push((false, varying));
        }
        let name = self.name("the name of a template")?;
        let args = if self.is("<") { self.template_args()? } else { Vec::new() };
        self.expect("(")?;
        let params = Some(self.params()?);
        let mut declarator = Declarator { name: Some(name), params, span: self.since(start), ..pointers };
        self.rate(&specifier, false, &mut declarator);
        if self.eat(";") {
            return Ok(None);
        }
        let function = self.function(storage, specifier, declarator)?.into();
        Ok(Some(Item::Specialization(Specialization { args, function })))
    }

    fn template_behind_parameters(&mut self) -> Parsed<(&'s str, Option<Template<'s>>)> {
        let mut params = Vec::new();
        loop {
            let integer = if self.eat("typename") || self.eat("class") { None } else { Some(self.specifiers()?.1) };
            let name = self.name("the name of a parameter")?;
            let of_type = if self.is_ispc() { Role::BoundType } else { Role::Type };
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
            return Ok((name.text, Some(Template { name, params, of: Templated::Struct(specifier) })));
        }
        let (storage, specifier) = self.specifiers()?;
        let mut declarator = self.declarator(true)?;
        self.rate(&specifier, false, &mut declarator);
        let (Some(name), true) = (declarator.name, declarator.params.is_some()) else {
            let hint = "write a template of a function or a struct";
            return Err(Box::new(limitation::not_supported(declarator.span, "templates of others", hint)));
        };
        if self.is_ispc() && self.eat(";") {
            return Ok((name.text, None));
        }
        if !self.is("{") {
            let hint = "define the template before its uses";
            return Err(Box::new(limitation::not_supported(declarator.span, "templates without a body", hint)));
        }
        // It may call itself.
        self.declare(name.text, Role::Template);
        let function = self.function(storage, specifier, declarator)?;
        Ok((name.text, Some(Template { name, params, of: Templated::Function(function) })))
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
