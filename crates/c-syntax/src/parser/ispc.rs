//! What only ISPC's dialect has in its grammar: which types have lanes without saying so, its statements, and its words.
//!
//! Separate, since all of it is an addition: the rest of the grammar is that of both dialects.
//!
//! A declarator says what a type without `uniform` and `varying` is: variables, parameters and results have lanes; fields, `typedef`s and types in casts
//! leave it open. What a pointer leads to has none, the pointer itself is as a variable is.

use super::*;

/// Limit on the elements that lie side by side.
const MAX_SOA: u32 = 64;

/// Tokens without attributes, `__attribute__((…))` and `__declspec(…)`, which change nothing.
pub(super) fn without_attributes(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let is_attribute = |t: &Token| t.kind == Kind::Name && matches!(t.text, "__attribute__" | "__declspec");
    if !tokens.iter().any(is_attribute) {
        return tokens;
    }
    let mut found = Vec::with_capacity(tokens.len());
    let mut i = 0;
    while let Some(token) = tokens.get(i) {
        let sign = |at: usize| tokens.get(at).filter(|t| t.kind == Kind::Sign).map(|t| t.text);
        if !is_attribute(token) || sign(i + 1) != Some("(") {
            found.push(*token);
            i += 1;
            continue;
        }
        let mut depth = 0;
        let mut end = i + 1;
        while end < tokens.len() && tokens[end].kind != Kind::End {
            depth += match sign(end) {
                Some("(") => 1,
                Some(")") => -1,
                _ => 0,
            };
            end += 1;
            if depth == 0 {
                break;
            }
        }
        // One without an end is an error of the grammar.
        if depth != 0 {
            found.push(*token);
            end = i + 1;
        }
        i = end;
    }
    found
}

pub(super) fn begins_type(word: &str) -> bool {
    matches!(word, "export" | "task" | "noinline" | "soa" | "register" | "volatile" | "__regcall" | "__vectorcall")
}

impl<'s> Parser<'s> {
    /// The number of lanes.
    pub(super) fn gang(&self) -> Expr<'s> {
        Expr { kind: ExprKind::Gang, span: self.span() }
    }

    /// Says whether a type has lanes that does not say so. `is_open`: something else decides.
    pub(super) fn rate(&self, specifier: &Specifier<'s>, is_open: bool, declarator: &mut Declarator<'s>) {
        if !self.is_ispc() {
            return;
        }
        let is_bound_type =
            matches!(&specifier.kind, SpecifierKind::Named(name, _) if self.role(name.text) == Some(Role::BoundType));
        let words = specifier.words;
        let is_bound = words.is_uniform || words.soa.is_some() || specifier.varying.is_some() || is_bound_type;
        let is_void = matches!(specifier.kind, SpecifierKind::Void);
        if let Some(pointer) = declarator.pointers.last_mut() {
            if declarator.function.is_none() && !is_open && !declarator.rates.is_bound {
                pointer.1 = Some(self.gang());
            }
        } else {
            declarator.rates.varies = !is_bound && !is_void && (!is_open || declarator.function.is_some());
            declarator.rates.is_bound |= is_bound && declarator.function.is_none();
        }
        if let Some(function) = &mut declarator.function
            && let Some(pointer) = function.pointers.first_mut()
            && !is_open
            && !declarator.rates.is_bound
        {
            pointer.1 = Some(self.gang());
        }
    }

    /// Takes a word of a specifier that only this dialect has.
    pub(super) fn word_of_ispc(
        &mut self,
        token: Token<'s>,
        storage: &mut Storage,
        words: &mut Words,
        varying: &mut Option<Box<Expr<'s>>>,
    ) -> Parsed<bool> {
        match token.text {
            "uniform" => words.is_uniform = true,
            "varying" => *varying = Some(Box::new(self.gang())),
            "export" => *storage = Storage::Export,
            "task" => words.is_task = true,
            "unmasked" => words.is_unmasked = true,
            "noinline" | "register" | "__regcall" | "__vectorcall" => {}
            "volatile" => {
                let hint = "use atomic operations, or `memory_barrier`";
                return Err(Box::new(limitation::not_supported(token.span, "`volatile` variables", hint)));
            }
            "soa" => {
                self.pos += 1;
                self.expect("<")?;
                let at = self.token();
                let n = at.text.parse().ok().filter(|n: &u32| (2..=MAX_SOA).contains(n) && n.is_power_of_two());
                let Some(n) = n.filter(|_| at.kind == Kind::Int) else {
                    return Err(Box::new(c_syntax::no_soa(at.span, at.text, MAX_SOA)));
                };
                words.soa = Some(n);
                self.pos += 1;
                self.expect(">")?;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.pos += 1;
        Ok(true)
    }

    // Statements.

    pub(super) fn statement_of_ispc(&mut self, token: Token<'s>) -> Parsed<Option<StatementKind<'s>>> {
        if self.ahead(1).text == ":" && !self.is_keyword(token.text) {
            self.pos += 2;
            return Ok(Some(StatementKind::Label(Name { text: token.text, span: token.span })));
        }
        match token.text {
            "goto" => {
                self.pos += 1;
                let label = self.name("the name of a label")?;
                self.expect(";")?;
                return Ok(Some(StatementKind::Goto(label)));
            }
            "cif" => return self.if_statement().map(Some),
            "cwhile" => {
                self.pos += 1;
                let condition = Some(self.condition()?);
                let body = Box::new(self.statement()?);
                return Ok(Some(StatementKind::For { first: None, condition, step: None, body }));
            }
            "cfor" => {
                self.pos += 1;
                return self.scoped(Self::for_statement).map(Some);
            }
            "foreach" | "foreach_tiled" => {
                self.pos += 1;
                return self.scoped(Self::foreach).map(Some);
            }
            "foreach_active" => {
                self.pos += 1;
                self.expect("(")?;
                self.index_type(")")?;
                let name = self.name("a name for the number of the lane")?;
                self.expect(")")?;
                return self.scoped(|p| {
                    p.declare(name.text, Role::Value);
                    Ok(Some(StatementKind::ForEachLane(name, Box::new(p.statement()?))))
                });
            }
            "foreach_unique" => {
                self.pos += 1;
                self.expect("(")?;
                self.index_type("in")?;
                while self.eat("*") || self.eat("uniform") {}
                let name = self.name("a name for the value")?;
                self.expect("in")?;
                let values = self.expression()?;
                self.expect(")")?;
                return self.scoped(|p| {
                    p.declare(name.text, Role::Value);
                    Ok(Some(StatementKind::ForEachUnique(name, values, Box::new(p.statement()?))))
                });
            }
            "unmasked" if self.ahead(1).text == "{" => {
                self.pos += 1;
                return Ok(Some(StatementKind::Unmasked(Box::new(self.statement()?))));
            }
            "delete" => {
                self.pos += 1;
                if self.eat("[") {
                    self.expect("]")?;
                }
                let pointer = self.expression()?;
                self.expect(";")?;
                return Ok(Some(StatementKind::Delete(pointer)));
            }
            "cbreak" | "ccontinue" => {
                self.pos += 1;
                self.expect(";")?;
                let is_break = token.text == "cbreak";
                return Ok(Some(if is_break { StatementKind::Break } else { StatementKind::Continue }));
            }
            "creturn" => {
                self.pos += 1;
                let value = if self.is(";") { None } else { Some(self.expression()?) };
                self.expect(";")?;
                return Ok(Some(StatementKind::Return(value)));
            }
            "sync" => {
                self.pos += 1;
                self.expect(";")?;
                return Ok(Some(StatementKind::Sync));
            }
            "do" | "cdo" => {
                // Each may end with `while` and `cwhile`.
                self.pos += 1;
                let body = Box::new(self.statement()?);
                if !self.eat("cwhile") {
                    self.expect("while")?;
                }
                let condition = self.condition()?;
                self.expect(";")?;
                return Ok(Some(StatementKind::DoWhile(body, condition)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// `(i = a ... b, j = c ... d) statement`
    fn foreach(&mut self) -> Parsed<StatementKind<'s>> {
        self.expect("(")?;
        let mut dimensions = Vec::new();
        loop {
            self.index_type("=")?;
            let name = self.name("a name for the index")?;
            self.expect("=")?;
            let first = self.choice()?;
            self.expect("...")?;
            dimensions.push((name, first, self.choice()?));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        dimensions.iter().for_each(|d| self.declare(d.0.text, Role::Value));
        Ok(StatementKind::ForEach(dimensions, Box::new(self.statement()?)))
    }

    /// The type of an index, which is known whether it is written or not.
    fn index_type(&mut self, behind: &str) -> Parsed<()> {
        if self.begins_type(self.token()) && self.ahead(1).text != behind {
            self.specifiers()?;
        }
        Ok(())
    }

    // Values.

    /// `launch`, `new`, and what there is not.
    pub(super) fn value_of_ispc(&mut self) -> Parsed<Option<Expr<'s>>> {
        let start = self.span();
        if self.is("invoke_sycl") {
            let hint = "write the kernel in Impala";
            return Err(Box::new(limitation::not_supported(start, "calls of functions in SYCL", hint)));
        }
        if self.token().text == "@" {
            let hint = "call a function of the library";
            return Err(Box::new(limitation::not_supported(start, "LLVM's intrinsics", hint)));
        }
        let is_rate = self.is("uniform") || self.is("varying");
        if self.is("new") || is_rate && self.ahead(1).text == "new" {
            let is_uniform = self.is("uniform");
            self.pos += 1 + usize::from(is_rate);
            let (_, specifier) = self.specifiers()?;
            let mut declarator = Declarator::at(self.span());
            while self.eat("*") {
                while self.eat("uniform") || self.eat("const") {}
                declarator.pointers.push((false, if self.eat("varying") { Some(self.gang()) } else { None }));
            }
            let mut count = None;
            if self.eat("[") {
                count = Some(self.nested(Self::expression)?);
                self.expect("]")?;
            }
            let mut init = None;
            if self.is("(") {
                let at = self.next().span;
                let mut values = Vec::new();
                while !self.is(")") {
                    values.push(self.nested(Self::assignment)?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect(")")?;
                init = match values.len() {
                    0 => None,
                    1 => values.pop().map(Init::Value),
                    _ => Some(Init::List(values.into_iter().map(|e| (None, Init::Value(e))).collect(), self.since(at))),
                };
            } else if self.is("{") {
                init = Some(self.init()?);
            }
            let new = New { is_uniform, ty: (specifier, declarator), count, init };
            return Ok(Some(Expr { kind: ExprKind::New(Box::new(new)), span: self.since(start) }));
        }
        if self.eat("launch") {
            let mut counts = Vec::new();
            let mut n_brackets = 0;
            while self.eat("[") {
                n_brackets += 1;
                loop {
                    counts.push(self.nested(Self::assignment)?);
                    if !self.eat(",") {
                        break;
                    }
                }
                self.expect("]")?;
            }
            if n_brackets > 1 {
                // `launch[z][y][x]` is `launch[x, y, z]`.
                counts.reverse();
            }
            let is_old = self.eat("<");
            let name = self.name("the name of a task")?;
            self.expect("(")?;
            let mut args = Vec::new();
            while !self.is(")") {
                args.push(self.nested(Self::assignment)?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
            if is_old {
                self.expect(">")?;
            }
            let waits = self.is(";") && self.ahead(1).text == "sync";
            let launch = Launch { counts, task: name, args, waits };
            return Ok(Some(Expr { kind: ExprKind::Launch(Box::new(launch)), span: self.since(start) }));
        }
        Ok(None)
    }
}
