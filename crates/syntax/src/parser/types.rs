//! Types and paths.

use super::*;

/// The names of address spaces, in front of a pointer's target.
pub(crate) const ADDRESS_SPACES: [&str; 5] = ["global", "shared", "constant", "texture", "private"];

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> R<TypeId> {
        self.nested(|p| p.ty_inner())
    }

    fn ty_inner(&mut self) -> R<TypeId> {
        let start = self.pos;
        let kind = match self.peek() {
            Tok::Ident | Tok::ColonColon => TypeKind::Path(self.path()?),
            Tok::LParen => {
                self.bump();
                let mut parts = self.list(start, Tok::RParen, "`,` or `)`", |p| p.ty())?;
                if parts.len() == 1
                    && let Some(part) = parts.pop()
                {
                    return Ok(part);
                }
                TypeKind::Tuple(parts)
            }
            Tok::LBracket => {
                self.bump();
                let elem = self.ty()?;
                let kind = if self.eat(Tok::Star) {
                    TypeKind::Array(elem, self.bracketed(|p| p.unary())?)
                } else {
                    TypeKind::Indefinite(elem)
                };
                self.close(Tok::RBracket, "`]`", start)?;
                kind
            }
            Tok::Simd => {
                self.bump();
                let open = self.pos;
                self.expect(Tok::LBracket, "`[`")?;
                let elem = self.ty()?;
                self.expect(Tok::Star, "`*` and the number of lanes")?;
                let n = self.bracketed(|p| p.unary())?;
                self.close(Tok::RBracket, "`]`", open)?;
                TypeKind::Simd(elem, n)
            }
            Tok::And => {
                self.bump();
                self.pointer()?
            }
            Tok::AndAnd => {
                self.bump();
                let inner = self.pointer()?;
                let to = self.mk_type(inner, self.span_from(start));
                TypeKind::Pointer { mutable: false, space: None, to }
            }
            Tok::Tilde => {
                self.bump();
                TypeKind::Owned(self.ty()?)
            }
            Tok::Fn => {
                self.bump();
                let type_params = self.type_params()?;
                let open = self.pos;
                self.expect(Tok::LParen, "`(` and parameter types")?;
                let params = self.list(open, Tok::RParen, "`,` or `)`", |p| {
                    // A name before the type has no meaning.
                    if p.at(Tok::Ident) && p.peek_at(1) == Tok::Colon {
                        p.bump();
                        p.bump();
                    }
                    p.ty()
                })?;
                TypeKind::Fn { type_params, params, result: self.ret()? }
            }
            Tok::Typeof => {
                self.bump();
                let open = self.pos;
                self.expect(Tok::LParen, "`(`")?;
                let e = self.bracketed(|p| p.expr())?;
                self.close(Tok::RParen, "`)`", open)?;
                TypeKind::Typeof(e)
            }
            _ => return Err(self.unexpected("a type")),
        };
        Ok(self.mk_type(kind, self.span_from(start)))
    }

    /// Reads a pointer type, from after the `&` on.
    fn pointer(&mut self) -> R<TypeKind> {
        let mutable = self.eat(Tok::Mut);
        let mut space = None;
        if self.at(Tok::LBracket) && self.peek_at(1) == Tok::Int && self.peek_at(2) == Tok::RBracket {
            self.bump();
            let token = self.bump();
            self.bump();
            space = Some(Space { text: self.text_of(token).into(), span: self.span_of(token) });
        } else if self.at(Tok::Ident)
            && matches!(
                self.peek_at(1),
                Tok::Ident
                    | Tok::LBracket
                    | Tok::LParen
                    | Tok::And
                    | Tok::AndAnd
                    | Tok::Tilde
                    | Tok::Fn
                    | Tok::Simd
                    | Tok::Typeof
            )
        {
            let token = self.tokens[self.pos];
            let text = self.text_of(token);
            if ADDRESS_SPACES.contains(&text) {
                space = Some(Space { text: text.into(), span: self.span_of(token) });
                self.bump();
            }
        }
        let to = self.ty()?;
        Ok(TypeKind::Pointer { mutable, space, to })
    }

    /// Reads `->` and the result type, if they follow.
    pub(super) fn ret(&mut self) -> R<Ret> {
        if !self.eat(Tok::Arrow) {
            return Ok(Ret::Absent);
        }
        let span = self.span();
        if self.eat(Tok::Not) {
            return Ok(Ret::Never(span));
        }
        Ok(Ret::Type(self.ty()?))
    }

    pub(super) fn type_params(&mut self) -> R<Vec<TypeParam>> {
        let open = self.pos;
        if !self.eat(Tok::LBracket) {
            return Ok(Vec::new());
        }
        self.list(open, Tok::RBracket, "`,` or `]`", |p| {
            // `const` is a name unless another name follows.
            let is_const = p.at(Tok::Ident) && p.peek_at(1) == Tok::Ident && p.text_of(p.tokens[p.pos]) == "const";
            if is_const {
                p.bump();
                let name = p.name("a constant's name")?;
                p.expect(Tok::Colon, "`:` and the constant's type")?;
                return Ok(TypeParam { name, bounds: Vec::new(), constant: Some(p.ty()?) });
            }
            let name = p.name("a type parameter")?;
            let mut bounds = Vec::new();
            if p.eat(Tok::Colon) {
                bounds = p.bounds(&[Tok::Plus])?;
            }
            Ok(TypeParam { name, bounds, constant: None })
        })
    }

    /// Reads traits that are separated by `separators`.
    pub(super) fn bounds(&mut self, separators: &[Tok]) -> R<Vec<TypeId>> {
        let mut bounds = vec![self.ty()?];
        while separators.contains(&self.peek()) {
            self.bump();
            bounds.push(self.ty()?);
        }
        Ok(bounds)
    }

    /// Reads `[T, U]`, if it follows.
    pub(super) fn type_args(&mut self) -> R<Option<Vec<TypeId>>> {
        let open = self.pos;
        if !self.eat(Tok::LBracket) {
            return Ok(None);
        }
        Ok(Some(self.list(open, Tok::RBracket, "`,` or `]`", |p| p.type_arg())?))
    }

    /// Reads a type, or the value for a `const` parameter: a literal, or an expression in braces.
    fn type_arg(&mut self) -> R<TypeId> {
        let start = self.pos;
        let e = match self.peek() {
            Tok::Int | Tok::Minus | Tok::True | Tok::False | Tok::Char | Tok::LBrace => self.unary()?,
            _ => return self.ty(),
        };
        Ok(self.mk_type(TypeKind::Const(e), self.span_from(start)))
    }

    /// `a::b[T]`, `S[T]::f`.
    pub(super) fn path(&mut self) -> R<Path> {
        let start = self.pos;
        let root = self.eat(Tok::ColonColon);
        let mut names = vec![self.name("a name")?];
        let mut inner_args = Vec::new();
        loop {
            let type_args = self.type_args()?;
            if !self.eat(Tok::ColonColon) {
                return Ok(Path { root, names, inner_args, type_args, span: self.span_from(start) });
            }
            if let Some(args) = type_args {
                inner_args.push((names.len() as u32 - 1, args));
            }
            names.push(self.name("a name")?);
        }
    }
}
