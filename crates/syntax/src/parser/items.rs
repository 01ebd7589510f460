//! Items: functions, `extern` blocks, statics, types; parameters and patterns.

use super::*;

impl Parser<'_> {
    pub(super) fn module(&mut self) {
        loop {
            match self.peek() {
                Tok::Eof => return,
                Tok::Semi => {
                    self.bump();
                }
                Tok::RBrace => {
                    self.unexpected("an item");
                    self.bump();
                    self.last_error = self.pos;
                }
                _ => {
                    let start = self.pos;
                    match self.item() {
                        Ok(item) => self.module.items.push(item),
                        Err(Reported(())) => self.sync_item(start),
                    }
                }
            }
        }
    }

    /// Recovery between items: up to the next word that begins one.
    fn sync_item(&mut self, start: usize) {
        self.nesting = 0;
        self.no_struct = false;
        self.sync(start);
        if self.pos == start {
            self.bump();
        }
        loop {
            match self.peek() {
                Tok::Eof | Tok::RBrace => return,
                tok if begins_item(tok) && tok != Tok::Let => return,
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

    /// `use` is no keyword, but two words in a row are nothing else.
    fn at_use(&self) -> bool {
        self.at(Tok::Ident) && self.text_of(self.tokens[self.pos]) == "use" && self.peek_at(1) == Tok::Ident
    }

    pub(super) fn item(&mut self) -> R<Item> {
        let start = self.pos;
        let private = self.at(Tok::Priv);
        if matches!(self.peek(), Tok::Pub | Tok::Priv) {
            self.bump();
        }
        let kind = match self.peek() {
            Tok::Fn => ItemKind::Fn(Box::new(self.with_body(false)?)),
            Tok::Extern => self.extern_item()?,
            Tok::Static => self.static_item()?,
            Tok::Struct => self.struct_item()?,
            Tok::Type => self.alias_item()?,
            Tok::Enum => self.unsupported_item("enums", "number the options, `static option_a = 0;`, and compare")?,
            Tok::Trait => self.unsupported_item("traits", "pass the functions as parameters, or in a struct")?,
            Tok::Impl => self.unsupported_item("impls", "write a function whose first parameter is the receiver")?,
            Tok::Mod => {
                self.unsupported_item("modules", "give several files to the compiler: they form one program")?
            }
            Tok::Ident if self.at_use() => self.use_item()?,
            _ => return Err(self.unexpected("an item (`fn`, `struct`, `static`, `type`, `extern`, …)")),
        };
        Ok(Item { kind, private, span: self.span_from(start) })
    }

    /// `use name::*;`, `use folder::name::*;`; other forms come with modules.
    fn use_item(&mut self) -> R<ItemKind> {
        let mut n = 0;
        while self.peek_at(1 + 2 * n) == Tok::Ident && self.peek_at(2 + 2 * n) == Tok::ColonColon {
            n += 1;
        }
        if n == 0 || self.peek_at(1 + 2 * n) != Tok::Star || self.peek_at(2 + 2 * n) != Tok::Semi {
            return self.unsupported_item("`use` items other than `use library::*;`", "write `use library::*;`");
        }
        self.bump();
        let mut path = Vec::with_capacity(n);
        for _ in 0..n {
            path.push(self.name("a library")?);
            self.bump();
        }
        self.bump();
        self.bump();
        Ok(ItemKind::Use(path))
    }

    /// Reads over an item whose feature is not there yet, whatever is inside.
    fn unsupported_item(&mut self, what: &str, hint: &str) -> R<ItemKind> {
        let keyword = self.bump();
        let mut names = Vec::new();
        self.limitation(self.span_of(keyword), what, hint);
        if matches!(keyword.tok, Tok::Impl | Tok::Ident | Tok::Mod) {
            self.module.open_names = true;
        }
        if matches!(keyword.tok, Tok::Enum | Tok::Trait | Tok::Mod) && self.at(Tok::Ident) {
            names.push(self.name("a name")?);
        }
        loop {
            match self.peek() {
                Tok::Eof | Tok::RBrace => break,
                Tok::Semi => {
                    self.bump();
                    break;
                }
                Tok::LBrace => {
                    if self.matching[self.pos] == NO_MATCH {
                        let open = self.pos;
                        self.pos = self.tokens.len() - 1;
                        return Err(self.close(Tok::RBrace, "`}`", open).err().unwrap_or(Reported(())));
                    }
                    self.pos = self.matching[self.pos] as usize + 1;
                    break;
                }
                _ => {
                    self.bump();
                }
            }
        }
        Ok(ItemKind::Unsupported(names))
    }

    fn string_literal(&mut self) -> R<Option<(String, Span)>> {
        if !self.at(Tok::Str) {
            return Ok(None);
        }
        let span = self.span();
        let bytes = self.string_bytes()?;
        Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), span)))
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
        let mut f = Fn { name, filter, exported, symbol, type_params, params, result, body: None, span };
        if self.at(Tok::LBrace) {
            f.body = Some(self.nested(|p| p.bracketed(|p| p.block()))?);
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
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` or `fn`")?;
        let mut fns = Vec::new();
        while !matches!(self.peek(), Tok::RBrace | Tok::Eof) {
            if self.eat(Tok::Semi) {
                continue;
            }
            let start = self.pos;
            match self.prototype() {
                Ok(f) => fns.push(f),
                Err(Reported(())) => {
                    self.sync(start);
                    if self.pos == start {
                        self.bump();
                    }
                }
            }
        }
        self.close(Tok::RBrace, "`}`", open)?;
        Ok(ItemKind::Extern(ExternBlock { convention, fns }))
    }

    fn prototype(&mut self) -> R<Fn> {
        if !self.at(Tok::Fn) {
            return Err(self.unexpected("`fn`"));
        }
        let f = self.fn_item(false)?;
        if f.body.is_none() {
            self.expect(Tok::Semi, "`;`")?;
        }
        Ok(f)
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
            if matches!(p.peek(), Tok::Pub | Tok::Priv) {
                p.bump();
            }
            let name = p.name("a field name")?;
            p.expect(Tok::Colon, "`:` and the field's type")?;
            Ok((name, p.ty()?))
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

    /// The `;` behind something. Where it is missing at the end of a line, the fault is reported and nothing lost.
    pub(super) fn semi(&mut self, after: &str) -> R<()> {
        // At the end of the file, inside a block, it is the brace that misses.
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
        if !self.at(Tok::At) {
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

    /// A parameter. In functions (`typed`) a type may stand alone, in lambdas and loops a name.
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
            let path = Path { names: vec![name], type_args: None, span };
            let value = self.mk(ExprKind::Path(path), span)?;
            filter = Filter::When(self.mk(ExprKind::Unary(UnaryOp::Known, value), span)?);
        } else if self.at(Tok::At) {
            filter = self.filter()?;
        }
        let named = self.at(Tok::Mut) || self.at(Tok::Ident) && self.peek_at(1) == Tok::Colon || !typed;
        let pattern = if named {
            self.pattern()?
        } else {
            let ty = self.ty()?;
            Pattern { kind: PatternKind::Unnamed, ty: Some(ty), span: self.span_from(start) }
        };
        if typed && named && pattern.ty.is_none() {
            return Err(self.unexpected("`:` and the parameter's type"));
        }
        Ok(Param { filter, pattern, span: self.span_from(start) })
    }

    pub(super) fn pattern(&mut self) -> R<Pattern> {
        self.nested(|p| {
            let start = p.pos;
            let kind = match p.peek() {
                Tok::LParen => {
                    let open = p.pos;
                    p.bump();
                    let mut parts = p.list(open, Tok::RParen, "`,` or `)`", |p| p.pattern())?;
                    if parts.len() == 1
                        && let Some(part) = parts.pop()
                    {
                        return Ok(part);
                    }
                    PatternKind::Tuple(parts)
                }
                Tok::Mut | Tok::Ident => {
                    let mutable = p.eat(Tok::Mut);
                    PatternKind::Name { mutable, name: p.name("a name")? }
                }
                _ => return Err(p.unexpected("a name or a pattern")),
            };
            let ty = if p.eat(Tok::Colon) { Some(p.ty()?) } else { None };
            Ok(Pattern { kind, ty, span: p.span_from(start) })
        })
    }
}
