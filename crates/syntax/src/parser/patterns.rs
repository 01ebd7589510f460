//! Patterns, with which `match`, `let` and parameters destructure values.

use super::*;

impl Parser<'_> {
    pub(super) fn pattern(&mut self) -> R<Pattern> {
        self.nested(|p| {
            let start = p.pos;
            let kind = match p.peek() {
                Tok::LParen => {
                    p.bump();
                    let parts = p.list(start, Tok::RParen, "`,` or `)`", |p| p.pattern())?;
                    match <[Pattern; 1]>::try_from(parts) {
                        Ok([part]) if part.ty.is_some() => return Ok(part),
                        Ok([part]) => part.kind,
                        Err(parts) => PatternKind::Tuple(parts),
                    }
                }
                Tok::Mut => {
                    p.bump();
                    PatternKind::Name { mutable: true, name: p.name("a name")? }
                }
                Tok::Ident | Tok::ColonColon => p.named_pattern()?,
                Tok::Minus | Tok::Int | Tok::Float | Tok::Char | Tok::True | Tok::False => p.literal_pattern()?,
                _ => return Err(p.unexpected("a name or a pattern")),
            };
            let ty = if p.eat(Tok::Colon) { Some(p.ty()?) } else { None };
            Ok(Pattern { kind, ty, span: p.span_from(start) })
        })
    }

    /// `-1`, `'a'`, `true`.
    fn literal_pattern(&mut self) -> R<PatternKind> {
        let start = self.pos;
        if !self.eat(Tok::Minus) {
            return Ok(PatternKind::Literal(self.primary()?));
        }
        if !matches!(self.peek(), Tok::Int | Tok::Float) {
            return Err(self.unexpected("a number"));
        }
        let number = self.primary()?;
        let literal = self.mk(ExprKind::Unary(UnaryOp::Neg, number), self.span_from(start))?;
        Ok(PatternKind::Literal(literal))
    }

    /// A name, `E::A`, `E::B(p, q)`, `S { a: p, b, .. }`.
    fn named_pattern(&mut self) -> R<PatternKind> {
        let path = self.path()?;
        let open = self.pos;
        if self.eat(Tok::LParen) {
            let parts = self.list(open, Tok::RParen, "`,` or `)`", |p| p.pattern())?;
            return Ok(PatternKind::Option { path, parts: Some(parts) });
        }
        if self.at(Tok::LBrace) {
            return self.struct_pattern(path);
        }
        if path.names.len() > 1 || path.root || path.type_args.is_some() {
            return Ok(PatternKind::Option { path, parts: None });
        }
        match path.names.into_iter().next() {
            Some(name) => Ok(PatternKind::Name { mutable: false, name }),
            None => Err(self.unexpected("a name")),
        }
    }

    fn struct_pattern(&mut self, path: Path) -> R<PatternKind> {
        let open = self.pos;
        self.bump();
        let mut rest = false;
        let fields = self.list(open, Tok::RBrace, "`,` or `}`", |p| {
            if rest {
                return Err(p.unexpected("`}` after `..`"));
            }
            if p.eat(Tok::DotDot) {
                rest = true;
                return Ok(None);
            }
            let start = p.pos;
            let mutable = p.eat(Tok::Mut);
            let name = p.name("a field name or `..`")?;
            if !mutable && p.eat(Tok::Colon) {
                return Ok(Some((name, p.pattern()?)));
            }
            let kind = PatternKind::Name { mutable, name: name.clone() };
            Ok(Some((name, Pattern { kind, ty: None, span: p.span_from(start) })))
        })?;
        Ok(PatternKind::Struct { path, fields: fields.into_iter().flatten().collect(), rest })
    }
}
