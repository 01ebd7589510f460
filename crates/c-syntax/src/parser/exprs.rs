//! Expressions, by C's precedence.

use super::*;

/// Operators of two operands, those that bind most loosely first.
const LEVELS: [&[(&str, Binary)]; 8] = [
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("==", Binary::Eq), ("!=", Binary::Ne)],
    &[("<", Binary::Lt), ("<=", Binary::Le), (">", Binary::Gt), (">=", Binary::Ge)],
    &[("<<", Binary::Shl), (">>", Binary::Shr)],
    &[("+", Binary::Add), ("-", Binary::Sub)],
    &[("*", Binary::Mul), ("/", Binary::Div), ("%", Binary::Rem)],
];

/// The place of shifts among the levels, which bind more tightly than comparisons.
const SHIFTS: usize = 5;

const ASSIGNMENTS: [(&str, Option<Binary>); 11] = [
    ("=", None),
    ("+=", Some(Binary::Add)),
    ("-=", Some(Binary::Sub)),
    ("*=", Some(Binary::Mul)),
    ("/=", Some(Binary::Div)),
    ("%=", Some(Binary::Rem)),
    ("<<=", Some(Binary::Shl)),
    (">>=", Some(Binary::Shr)),
    ("&=", Some(Binary::And)),
    ("^=", Some(Binary::Xor)),
    ("|=", Some(Binary::Or)),
];

const PREFIXES: [(&str, Unary); 8] = [
    ("+", Unary::Plus),
    ("-", Unary::Negate),
    ("!", Unary::Not),
    ("~", Unary::Complement),
    ("*", Unary::Deref),
    ("&", Unary::AddressOf),
    ("++", Unary::Increment),
    ("--", Unary::Decrement),
];

impl<'s> Parser<'s> {
    pub(super) fn expression(&mut self) -> Parsed<Expr<'s>> {
        let start = self.span();
        let first = self.assignment()?;
        if !self.is(",") {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.eat(",") {
            values.push(self.assignment()?);
        }
        Ok(Expr { kind: ExprKind::Comma(values), span: self.since(start) })
    }

    pub(super) fn assignment(&mut self) -> Parsed<Expr<'s>> {
        self.nested(|p| {
            let start = p.span();
            let target = p.choice()?;
            let token = p.token();
            let operator = ASSIGNMENTS.iter().find(|a| token.kind == Kind::Sign && a.0 == token.text);
            let Some(&(_, operator)) = operator else { return Ok(target) };
            p.pos += 1;
            let value = p.assignment()?;
            Ok(Expr { kind: ExprKind::Assign(operator, Box::new([target, value])), span: p.since(start) })
        })
    }

    /// A value that no assignment is around.
    pub(super) fn choice(&mut self) -> Parsed<Expr<'s>> {
        let start = self.span();
        let condition = self.logic(true)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let (then, otherwise) = self.nested(|p| {
            let then = p.expression()?;
            p.expect(":")?;
            Ok((then, p.assignment()?))
        })?;
        let parts = Box::new([condition, then, otherwise]);
        Ok(Expr { kind: ExprKind::Choose(parts), span: self.since(start) })
    }

    /// `||` in a row, or `&&`.
    pub(super) fn logic(&mut self, is_or: bool) -> Parsed<Expr<'s>> {
        let start = self.span();
        let operand = |p: &mut Self| if is_or { p.logic(false) } else { p.binary(0) };
        let first = operand(self)?;
        let sign = if is_or { "||" } else { "&&" };
        if !self.is(sign) {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.eat(sign) {
            values.push(operand(self)?);
        }
        Ok(Expr { kind: ExprKind::Logic(is_or, values), span: self.since(start) })
    }

    fn binary(&mut self, level: usize) -> Parsed<Expr<'s>> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let start = self.span();
        let first = self.binary(level + 1)?;
        let mut rest = Vec::new();
        loop {
            let token = self.token();
            let Some(operator) = operators.iter().find(|o| token.kind == Kind::Sign && o.0 == token.text) else {
                break;
            };
            self.pos += 1;
            rest.push((operator.1, self.binary(level + 1)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Expr { kind: ExprKind::Chain(Box::new(first), rest), span: self.since(start) })
    }

    /// A value among the arguments of a template, which a `>` ends.
    pub(super) fn template_value(&mut self) -> Parsed<Expr<'s>> {
        self.binary(SHIFTS + 1)
    }

    fn unary(&mut self) -> Parsed<Expr<'s>> {
        let token = self.token();
        let start = token.span;
        if self.is_staged() && self.eat("*") {
            return Ok(Expr { kind: ExprKind::Name("*"), span: start });
        }
        if let Some(&(_, operator)) = PREFIXES.iter().find(|p| token.kind == Kind::Sign && p.0 == token.text) {
            self.pos += 1;
            let operand = self.nested(Self::unary)?;
            return Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span: self.since(start) });
        }
        if self.is_ispc()
            && let Some(found) = self.value_of_ispc()?
        {
            return Ok(found);
        }
        if self.is("(") && self.begins_type(self.ahead(1)) {
            return self.nested(|p| {
                p.pos += 1;
                let ty = Box::new(p.type_name()?);
                p.expect(")")?;
                if p.is("{") {
                    let init = Box::new(if p.is_staged() { Init::Value(p.list()?) } else { p.init()? });
                    return p.behind(Expr { kind: ExprKind::Literal(ty, init), span: p.since(start) });
                }
                let operand = Box::new(p.unary()?);
                Ok(Expr { kind: ExprKind::Cast(ty, operand), span: p.since(start) })
            });
        }
        if self.eat("sizeof") {
            if self.is("(") && self.begins_type(self.ahead(1)) {
                self.pos += 1;
                let ty = Box::new(self.type_of(false)?);
                self.expect(")")?;
                return Ok(Expr { kind: ExprKind::SizeOfType(ty), span: self.since(start) });
            }
            let operand = Box::new(self.nested(Self::unary)?);
            return Ok(Expr { kind: ExprKind::SizeOf(operand), span: self.since(start) });
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Parsed<Expr<'s>> {
        let base = self.primary()?;
        self.behind(base)
    }

    /// A value with the operators behind it.
    fn behind(&mut self, mut base: Expr<'s>) -> Parsed<Expr<'s>> {
        let (start, depth) = (base.span, self.depth);
        let mut rest = Vec::new();
        loop {
            let at = self.span();
            let kind = if self.eat("[") {
                let index = self.nested(Self::expression)?;
                self.expect("]")?;
                PostfixKind::Index(index)
            } else if self.eat("(") {
                let mut args = Vec::new();
                while !self.is(")") {
                    args.push(self.assignment()?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect(")")?;
                PostfixKind::Call(args)
            } else if self.eat(".") {
                PostfixKind::Field(self.name("the name of a field")?)
            } else if self.eat("->") {
                PostfixKind::Arrow(self.name("the name of a field")?)
            } else if self.eat("++") {
                PostfixKind::Increment
            } else if self.eat("--") {
                PostfixKind::Decrement
            } else {
                break;
            };
            rest.push(Postfix { kind, span: self.since(at) });
            if self.is_staged() {
                // Each is a level more of the tree.
                if self.depth >= MAX_DEPTH {
                    return Err(Box::new(c_syntax::too_deep(at, MAX_DEPTH)));
                }
                self.depth += 1;
                let kind = ExprKind::Postfix(Box::new(base), std::mem::take(&mut rest));
                base = Expr { kind, span: self.since(start) };
            }
        }
        self.depth = depth;
        if rest.is_empty() {
            return Ok(base);
        }
        Ok(Expr { kind: ExprKind::Postfix(Box::new(base), rest), span: self.since(start) })
    }

    fn primary(&mut self) -> Parsed<Expr<'s>> {
        let token = self.token();
        let start = token.span;
        let kind = match token.kind {
            Kind::Int => ExprKind::Int(token.text),
            Kind::Float => ExprKind::Float(token.text),
            Kind::Char => ExprKind::Char(token.text),
            Kind::Text => {
                let mut texts = Vec::new();
                while self.token().kind == Kind::Text {
                    texts.push(self.next().text);
                }
                return Ok(Expr { kind: ExprKind::Text(texts), span: self.since(start) });
            }
            Kind::Name if matches!(token.text, "true" | "false") => ExprKind::Bool(token.text == "true"),
            Kind::Name if matches!(token.text, "nullptr" | "NULL") && self.is_keyword(token.text) => ExprKind::Null,
            Kind::Name if self.begins_type(token) => {
                let (_, specifier) = self.specifiers()?;
                let at = self.span();
                if !self.eat("(") {
                    return Err(self.unexpected("a value"));
                }
                let ty = Declarator::at(at);
                let operand = Box::new(self.nested(Self::assignment)?);
                self.expect(")")?;
                return Ok(Expr { kind: ExprKind::Cast(Box::new((specifier, ty)), operand), span: self.since(start) });
            }
            Kind::Name if self.is_ispc() && self.role(token.text).is_none() && token.text == "programCount" => {
                ExprKind::Gang
            }
            Kind::Name if self.is_ispc() && self.role(token.text).is_none() && token.text == "programIndex" => {
                ExprKind::Sequence(Box::new(self.gang()))
            }
            Kind::Name if self.is_sierra() && token.text == "current_mask" => ExprKind::Mask,
            Kind::Name if self.is_sierra() && token.text == "seq" && self.ahead(1).text == "<" => {
                self.pos += 2;
                // A `>` would end it.
                let length = Box::new(self.nested(|p| p.binary(SHIFTS))?);
                self.expect(">")?;
                self.expect("(")?;
                self.expect(")")?;
                return Ok(Expr { kind: ExprKind::Sequence(length), span: self.since(start) });
            }
            Kind::Name if self.is_instance(token.text) => {
                self.pos += 1;
                let args = self.template_args()?;
                let name = Name { text: token.text, span: start };
                return Ok(Expr { kind: ExprKind::Instance(name, args), span: self.since(start) });
            }
            Kind::Name if !self.is_keyword(token.text) || matches!(token.text, "always" | "never") => {
                ExprKind::Name(token.text)
            }
            Kind::Sign if token.text == "{" && self.is_staged() => return self.list(),
            Kind::Sign if token.text == "(" => {
                self.pos += 1;
                let inner = self.nested(Self::expression)?;
                let end = self.expect(")")?;
                // Both are at one place if a macro has them; what is between may be its argument.
                let span = if end == start { inner.span } else { self.since(start) };
                return Ok(Expr { span, ..inner });
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.pos += 1;
        Ok(Expr { kind, span: start })
    }
}
