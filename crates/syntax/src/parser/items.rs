//! Items: functions, `extern` blocks, statics, types; parameters and patterns.

use super::*;

impl Parser<'_> {
    pub(super) fn module(&mut self) {
        loop {
            let items = self.items();
            self.module.items.extend(items);
            if self.at(Tok::Eof) {
                return;
            }
            self.unexpected("an item");
            self.bump();
            self.last_error = self.pos;
        }
    }

    /// Reads items up to a `}` or the end of the file.
    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let nesting = self.nesting;
        loop {
            match self.peek() {
                Tok::Eof | Tok::RBrace => return items,
                Tok::Semi => {
                    self.bump();
                }
                _ => {
                    let start = self.pos;
                    match self.item() {
                        Ok(item) => items.push(item),
                        Err(Reported(())) => {
                            (self.nesting, self.no_struct) = (nesting, false);
                            self.sync_item(start);
                        }
                    }
                }
            }
        }
    }

    /// Recovers after an error: skips to the next keyword that begins an item.
    fn sync_item(&mut self, start: usize) {
        self.sync(start);
        if self.pos == start && !self.at(Tok::RBrace) {
            self.bump();
        }
        loop {
            match self.peek() {
                Tok::Eof | Tok::RBrace => return,
                tok if begins_item(tok) && tok != Tok::Let || self.at_use() => return,
                Tok::LParen | Tok::LBracket | Tok::LBrace if self.matching[self.pos] != NO_MATCH => {
                    self.pos = self.matching[self.pos] as usize + 1;
                }
                _ => self.pos += 1,
            }
        }
    }

    pub(super) fn at_item(&self) -> bool {
        match self.peek() {
            Tok::Let => false,
            Tok::Ident => self.at_use(),
            tok => begins_item(tok),
        }
    }

    /// Whether a `use` item begins here. `use` is not a keyword, but no other construct has two words in a row.
    fn at_use(&self) -> bool {
        self.at(Tok::Ident)
            && matches!(self.peek_at(1), Tok::Ident | Tok::ColonColon)
            && self.text_of(self.tokens[self.pos]) == "use"
    }

    pub(super) fn item(&mut self) -> R<Item> {
        let start = self.pos;
        let private = self.visibility();
        let kind = match self.peek() {
            Tok::Fn => ItemKind::Fn(Box::new(self.with_body(false)?)),
            Tok::Extern => self.extern_item()?,
            Tok::Static => self.static_item()?,
            Tok::Struct => self.struct_item()?,
            Tok::Enum => self.enum_item()?,
            Tok::Type => self.alias_item()?,
            Tok::Trait => self.trait_item()?,
            Tok::Impl => self.impl_item()?,
            Tok::Mod => self.mod_item()?,
            Tok::Ident if self.at_use() => self.use_item()?,
            _ => return Err(self.unexpected("an item (`fn`, `struct`, `static`, `type`, `extern`, …)")),
        };
        Ok(Item { kind, private, span: self.span_from(start) })
    }

    /// Reads `pub`, `priv` or nothing. Returns whether it is `priv`.
    fn visibility(&mut self) -> bool {
        let private = self.at(Tok::Priv);
        if matches!(self.peek(), Tok::Pub | Tok::Priv) {
            self.bump();
        }
        private
    }

    /// `use a::b::c;`, `use a::b as c;`, `use ::a::*;`
    fn use_item(&mut self) -> R<ItemKind> {
        self.bump();
        let root = self.eat(Tok::ColonColon);
        let mut names = vec![self.name("a name")?];
        let mut all = false;
        while !all && self.eat(Tok::ColonColon) {
            if self.eat(Tok::Star) {
                all = true;
            } else {
                names.push(self.name("a name or `*`")?);
            }
        }
        let alias = if !all && self.eat(Tok::As) { Some(self.name("a name")?) } else { None };
        self.semi("the `use`")?;
        Ok(ItemKind::Use(Use { root, names, all, alias }))
    }

    /// `mod m { … }`, `mod m;`
    fn mod_item(&mut self) -> R<ItemKind> {
        self.bump();
        let name = self.name("a name")?;
        // Modules in functions cannot be in files of their own.
        if self.blocks == 0 && self.eat(Tok::Semi) {
            return Ok(ItemKind::Mod(Mod { name, items: None }));
        }
        let open = self.pos;
        self.expect(Tok::LBrace, if self.blocks == 0 { "`;`, or `{` and items" } else { "`{` and items" })?;
        let items = self.nested(|p| p.bracketed(|p| Ok(p.items())))?;
        self.close(Tok::RBrace, "an item or `}`", open)?;
        Ok(ItemKind::Mod(Mod { name, items: Some(items) }))
    }

    fn string_literal(&mut self) -> R<Option<(String, Span)>> {
        if self.at(Tok::Str) { Ok(Some(self.required_string("a string")?)) } else { Ok(None) }
    }

    pub(super) fn required_string(&mut self, expected: &str) -> R<(String, Span)> {
        let span = self.span();
        if !self.at(Tok::Str) {
            return Err(self.unexpected(expected));
        }
        let bytes = self.string_bytes()?;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), span))
    }

    fn with_body(&mut self, exported: bool) -> R<Fn> {
        let f = self.fn_item(exported)?;
        if f.body.is_none() {
            return Err(self.unexpected("a body in `{ … }`"));
        }
        Ok(f)
    }

    fn fn_item(&mut self, exported: bool) -> R<Fn> {
        let start = self.pos;
        self.bump();
        let mut symbol = self.string_literal()?;
        let mark = [Tok::Ident, Tok::At, Tok::Str].into_iter().find_map(|behind| self.mark(behind));
        let mark = mark.filter(|mark| mark.fast);
        if mark.is_some() {
            self.bump();
            self.bump();
        }
        let filter = self.filter()?;
        if symbol.is_none() {
            symbol = self.string_literal()?;
        }
        let name = self.name("a function name")?;
        let type_params = self.type_params()?;
        let open = self.pos;
        self.expect(Tok::LParen, "`(` and parameters")?;
        let params = self.list(open, Tok::RParen, "`,` or `)`", |p| p.param(true))?;
        let result = self.ret()?;
        let exported = exported || symbol.is_some();
        let span = self.span_from(start);
        let mut f =
            Fn { private: false, name, filter, exported, symbol, type_params, params, result, body: None, span };
        if self.at(Tok::LBrace) {
            f.body = Some(self.nested(|p| p.marked(mark.unwrap_or_default(), |p| p.bracketed(|p| p.block())))?);
        } else if !self.at(Tok::Semi) {
            return Err(self.unexpected("a body in `{ … }`"));
        }
        Ok(f)
    }

    fn extern_item(&mut self) -> R<ItemKind> {
        self.bump();
        if self.at(Tok::Fn) {
            return Ok(ItemKind::Fn(Box::new(self.with_body(true)?)));
        }
        let convention = self.string_literal()?;
        if self.at(Tok::Fn) && convention.as_ref().is_some_and(|(c, _)| c == "C") {
            return Ok(ItemKind::Fn(Box::new(self.with_body(true)?)));
        }
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` or `fn`")?;
        let fns = self.functions(open)?;
        Ok(ItemKind::Extern(ExternBlock { convention, fns }))
    }

    /// Reads functions, with or without bodies, up to the `}`. An error skips one function.
    fn functions(&mut self, open: usize) -> R<Vec<Fn>> {
        let nesting = self.nesting;
        let mut fns = Vec::new();
        while !matches!(self.peek(), Tok::RBrace | Tok::Eof) {
            if self.eat(Tok::Semi) {
                continue;
            }
            let start = self.pos;
            match self.prototype() {
                Ok(f) => fns.push(f),
                Err(Reported(())) => {
                    (self.nesting, self.no_struct) = (nesting, false);
                    self.sync(start);
                    if self.pos == start {
                        self.bump();
                    }
                }
            }
        }
        self.close(Tok::RBrace, "`}`", open)?;
        Ok(fns)
    }

    fn prototype(&mut self) -> R<Fn> {
        let private = self.visibility();
        if !self.at(Tok::Fn) {
            return Err(self.unexpected("`fn`"));
        }
        let mut f = self.fn_item(false)?;
        f.private = private;
        if f.body.is_none() {
            self.expect(Tok::Semi, "`;`")?;
        }
        Ok(f)
    }

    /// `trait T[A]: Super + Other { fn m(self: &Self) -> (); }`
    fn trait_item(&mut self) -> R<ItemKind> {
        self.bump();
        let name = self.name("a name")?;
        let type_params = self.type_params()?;
        let supers = if self.eat(Tok::Colon) { self.bounds(&[Tok::Comma, Tok::Plus])? } else { Vec::new() };
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` and functions")?;
        let fns = self.nested(|p| p.bracketed(|p| p.functions(open)))?;
        Ok(ItemKind::Trait(Trait { name, type_params, supers, fns }))
    }

    /// `impl[T] Trait for Type { … }`, `impl Type { … }`
    fn impl_item(&mut self) -> R<ItemKind> {
        let start = self.pos;
        self.bump();
        let type_params = self.type_params()?;
        if !type_params.is_empty() && self.peek() == Tok::LBrace {
            let (span, found) = (self.span(), self.found());
            return Err(self.report(unexpected_token::impl_of_brackets(span, &found)));
        }
        let mut ty = self.ty()?;
        let mut of = None;
        if self.eat(Tok::For) {
            of = Some(std::mem::replace(&mut ty, self.ty()?));
        }
        let span = self.span_from(start);
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` and functions")?;
        let fns = self.nested(|p| p.bracketed(|p| p.functions(open)))?;
        Ok(ItemKind::Impl(Impl { type_params, of, ty, fns, span }))
    }

    /// `enum E[T] { A, B(T, i32) }`
    fn enum_item(&mut self) -> R<ItemKind> {
        self.bump();
        let name = self.name("a name")?;
        let type_params = self.type_params()?;
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` and options")?;
        let options = self.list(open, Tok::RBrace, "`,` or `}` after the option", |p| {
            let name = p.name("an option's name")?;
            let open = p.pos;
            let parts = match p.eat(Tok::LParen) {
                true => p.list(open, Tok::RParen, "`,` or `)`", |p| p.ty())?,
                false => Vec::new(),
            };
            Ok(EnumOption { name, parts })
        })?;
        Ok(ItemKind::Enum(Enum { name, type_params, options }))
    }

    fn static_item(&mut self) -> R<ItemKind> {
        self.bump();
        let mutable = self.eat(Tok::Mut);
        let name = self.name("a name")?;
        let ty = if self.eat(Tok::Colon) { Some(self.ty()?) } else { None };
        let init = if self.eat(Tok::Eq) { Some(self.expr()?) } else { None };
        self.semi("the static")?;
        Ok(ItemKind::Static(Static { name, mutable, ty, init }))
    }

    fn struct_item(&mut self) -> R<ItemKind> {
        self.bump();
        let name = self.name("a name")?;
        let type_params = self.type_params()?;
        let open = self.pos;
        if self.eat(Tok::Semi) {
            return Ok(ItemKind::Struct(Struct { name, type_params, fields: Vec::new() }));
        }
        self.expect(Tok::LBrace, "`{` and fields")?;
        let fields = self.list(open, Tok::RBrace, "`,` or `}`", |p| {
            let private = p.visibility();
            let name = p.name("a field name")?;
            p.expect(Tok::Colon, "`:` and the field's type")?;
            Ok(Field { name, ty: p.ty()?, private })
        })?;
        Ok(ItemKind::Struct(Struct { name, type_params, fields }))
    }

    fn alias_item(&mut self) -> R<ItemKind> {
        self.bump();
        let name = self.name("a name")?;
        let type_params = self.type_params()?;
        self.expect(Tok::Eq, "`=` and a type")?;
        let ty = self.ty()?;
        self.semi("the type")?;
        Ok(ItemKind::Alias(Alias { name, type_params, ty }))
    }

    /// Reads the `;` after something. If it is missing at the end of a line, the error is reported, and parsing goes on
    /// as if it were there.
    pub(super) fn semi(&mut self, after: &str) -> R<()> {
        // At the end of the file, inside of a block, the missing brace is reported instead.
        if self.eat(Tok::Semi) || self.at(Tok::Eof) && self.nesting > 0 {
            return Ok(());
        }
        let diagnostic = if self.tokens[self.pos].newline || self.at(Tok::RBrace) {
            missing_semicolon::error(self.behind(), after)
        } else {
            unexpected_token::error(self.span(), &self.found(), &format!("`;` after {after}"))
        };
        let reported = self.report(diagnostic);
        if self.tokens[self.pos].newline || self.at(Tok::RBrace) { Ok(()) } else { Err(reported) }
    }

    /// `@`, `@(e)` or nothing.
    pub(super) fn filter(&mut self) -> R<Filter> {
        // A block behind a mark is not a filter, but may be a loop's body.
        if !self.at(Tok::At) || self.mark(Tok::LBrace).is_some() {
            return Ok(Filter::Never);
        }
        let start = self.pos;
        self.bump();
        if !self.at(Tok::LParen) {
            return Ok(Filter::Always(self.span_from(start)));
        }
        let open = self.pos;
        self.bump();
        let e = self.bracketed(|p| p.expr())?;
        self.close(Tok::RParen, "`)`", open)?;
        Ok(Filter::When(e))
    }

    /// Reads a parameter. A single word is a type in functions (`typed`), and a name in lambdas and loops.
    pub(super) fn param(&mut self, typed: bool) -> R<Param> {
        let start = self.pos;
        let mut filter = Filter::Never;
        if self.at(Tok::At) && self.peek_at(1) == Tok::Question {
            self.bump();
            self.bump();
            let name_at = self.pos + usize::from(self.at(Tok::Mut));
            let token = self.tokens[name_at];
            if token.tok != Tok::Ident {
                self.pos = name_at;
                return Err(self.unexpected("a parameter name"));
            }
            let name = Name { text: self.text_of(token).into(), span: self.span_of(token) };
            let span = name.span;
            let path = Path { root: false, names: vec![name], inner_args: Vec::new(), type_args: None, span };
            let value = self.mk(ExprKind::Path(path), span)?;
            filter = Filter::When(self.mk(ExprKind::Unary(UnaryOp::Known, value), span)?);
        } else if self.at(Tok::At) {
            filter = self.filter()?;
        }
        // `restrict` is a name unless another name follows.
        let restrict = self.at(Tok::Ident)
            && self.text_of(self.tokens[self.pos]) == "restrict"
            && matches!(self.peek_at(1), Tok::Ident | Tok::Mut);
        if restrict {
            self.bump();
        }
        if typed && self.at_bare_receiver() {
            return Err(self.unexpected("a parameter"));
        }
        let named = !typed || self.pattern_follows();
        let pattern = if named {
            self.pattern()?
        } else {
            let ty = self.ty()?;
            Pattern { kind: PatternKind::Unnamed, ty: Some(ty), span: self.span_from(start) }
        };
        if typed && named && pattern.ty.is_none() {
            return Err(self.unexpected("`:` and the parameter's type"));
        }
        Ok(Param { filter, restrict, pattern, span: self.span_from(start) })
    }

    /// Whether `self`, `&self` or `&mut self` without a type follows.
    fn at_bare_receiver(&self) -> bool {
        let mut ahead = usize::from(self.at(Tok::And));
        ahead += usize::from(self.peek_at(ahead) == Tok::Mut);
        self.peek_at(ahead) == Tok::Ident
            && matches!(self.peek_at(ahead + 1), Tok::Comma | Tok::RParen)
            && self.text_of(self.tokens[self.pos + ahead]) == "self"
    }

    /// Whether a function's parameter begins with a pattern and its type here, and is not just a type.
    fn pattern_follows(&self) -> bool {
        match self.peek() {
            Tok::Mut => true,
            Tok::Ident => self.peek_at(1) == Tok::Colon,
            Tok::LParen => {
                let end = self.matching[self.pos];
                end != NO_MATCH && self.tokens[end as usize + 1].tok == Tok::Colon
            }
            _ => false,
        }
    }
}
