//! What only Staged-C has in its grammar: labels that are stages, `*` as a value, values in braces, and functions that are others with arguments.
//!
//! ```text
//! statement   = {"@" value ":"} …
//! declaration = … NAME "(" parameters ")" "=" ["compile"] NAME "<" [value {"," value}] ">" ";"
//! value       = … | "*" | "{" [value {"," value} [","]] "}"
//! ```

use super::*;

impl<'s> Parser<'s> {
    /// `@e:` before a statement.
    pub(super) fn labels(&mut self) -> Parsed<Vec<Expr<'s>>> {
        let mut labels = Vec::new();
        while self.eat("@") {
            labels.push(self.logic(true)?);
            self.expect(":")?;
        }
        Ok(labels)
    }

    /// `[]` behind a type: a pointer.
    pub(super) fn empty_brackets(&mut self) -> bool {
        let found = self.is("[") && self.ahead(1).text == "]";
        self.pos += if found { 2 } else { 0 };
        found
    }

    /// Behind the head of a function: what it is, if it is another one with arguments.
    pub(super) fn special_function(&mut self) -> Parsed<Option<Init<'s>>> {
        if !self.eat("=") {
            return Ok(None);
        }
        let start = self.span();
        let is_compiled = self.is("compile") && self.ahead(1).kind == Kind::Name;
        self.pos += usize::from(is_compiled);
        let name = self.name("a name")?;
        self.expect("<")?;
        // A `>` would end it.
        let args = self.values(">", Self::template_value)?.into_iter().map(TemplateArg::Value).collect();
        let instance = Expr { kind: ExprKind::Instance(name, args), span: self.since(name.span) };
        Ok(Some(Init::Value(match is_compiled {
            true => Expr { span: self.since(start), kind: ExprKind::Compile(Box::new(instance)) },
            false => instance,
        })))
    }

    /// `{1, 2}`
    pub(super) fn list(&mut self) -> Parsed<Expr<'s>> {
        let start = self.expect("{")?;
        let values = self.values("}", Self::assignment)?;
        Ok(Expr { kind: ExprKind::List(values), span: self.since(start) })
    }

    fn values(&mut self, end: &str, mut value: impl FnMut(&mut Self) -> Parsed<Expr<'s>>) -> Parsed<Vec<Expr<'s>>> {
        let mut values = Vec::new();
        while !self.is(end) {
            values.push(value(self)?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(end)?;
        Ok(values)
    }
}
