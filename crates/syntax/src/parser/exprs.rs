//! Expressions and statements.

use super::*;
use crate::literals::{self, LiteralError, Number};

/// The precedence and operator of a token, if it is a binary operator.
fn binary_op(tok: Tok) -> Option<(u8, BinaryOp)> {
    Some(match tok {
        Tok::OrOr => (1, BinaryOp::Or),
        Tok::AndAnd => (2, BinaryOp::And),
        Tok::EqEq => (3, BinaryOp::Eq),
        Tok::NotEq => (3, BinaryOp::Ne),
        Tok::Lt => (3, BinaryOp::Lt),
        Tok::Le => (3, BinaryOp::Le),
        Tok::Gt => (3, BinaryOp::Gt),
        Tok::Ge => (3, BinaryOp::Ge),
        Tok::Or => (4, BinaryOp::BitOr),
        Tok::Caret => (5, BinaryOp::BitXor),
        Tok::And => (6, BinaryOp::BitAnd),
        Tok::Shl => (7, BinaryOp::Shl),
        Tok::Shr => (7, BinaryOp::Shr),
        Tok::Plus => (8, BinaryOp::Add),
        Tok::Minus => (8, BinaryOp::Sub),
        Tok::Star => (9, BinaryOp::Mul),
        Tok::Slash => (9, BinaryOp::Div),
        Tok::Percent => (9, BinaryOp::Rem),
        _ => return None,
    })
}

fn assign_op(tok: Tok) -> Option<Option<BinaryOp>> {
    Some(match tok {
        Tok::Eq => None,
        Tok::PlusEq => Some(BinaryOp::Add),
        Tok::MinusEq => Some(BinaryOp::Sub),
        Tok::StarEq => Some(BinaryOp::Mul),
        Tok::SlashEq => Some(BinaryOp::Div),
        Tok::PercentEq => Some(BinaryOp::Rem),
        Tok::AndEq => Some(BinaryOp::BitAnd),
        Tok::OrEq => Some(BinaryOp::BitOr),
        Tok::CaretEq => Some(BinaryOp::BitXor),
        Tok::ShlEq => Some(BinaryOp::Shl),
        Tok::ShrEq => Some(BinaryOp::Shr),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> R<ExprId> {
        self.nested(|p| {
            let start = p.pos;
            let first = p.binary(1)?;
            p.assignments(start, first)
        })
    }

    fn assignments(&mut self, start: usize, mut place: ExprId) -> R<ExprId> {
        while let Some(op) = assign_op(self.peek()) {
            let token = self.bump();
            let op_span = self.span_of(token);
            let value = self.binary(1)?;
            place = self.mk(ExprKind::Assign { op, op_span, place, value }, self.span_from(start))?;
        }
        Ok(place)
    }

    fn binary(&mut self, min: u8) -> R<ExprId> {
        let start = self.pos;
        let lhs = self.cast()?;
        self.binary_rest(start, lhs, min)
    }

    fn binary_rest(&mut self, start: usize, mut lhs: ExprId, min: u8) -> R<ExprId> {
        while let Some((strength, op)) = binary_op(self.peek())
            && strength >= min
        {
            let token = self.bump();
            let op_span = self.span_of(token);
            let rhs = self.binary(strength + 1)?;
            lhs = self.mk(ExprKind::Binary { op, op_span, lhs, rhs }, self.span_from(start))?;
        }
        Ok(lhs)
    }

    fn cast(&mut self) -> R<ExprId> {
        let start = self.pos;
        let e = self.unary()?;
        self.cast_rest(start, e)
    }

    fn cast_rest(&mut self, start: usize, mut e: ExprId) -> R<ExprId> {
        while self.eat(Tok::As) {
            let ty = self.ty()?;
            e = self.mk(ExprKind::Cast(e, ty), self.span_from(start))?;
            e = self.postfix(start, e)?;
        }
        Ok(e)
    }

    pub(super) fn unary(&mut self) -> R<ExprId> {
        let start = self.pos;
        let op = match self.peek() {
            Tok::Plus => UnaryOp::Plus,
            Tok::Minus => UnaryOp::Neg,
            Tok::Not => UnaryOp::Not,
            Tok::Star => UnaryOp::Deref,
            Tok::Tilde => UnaryOp::Own,
            Tok::Question => UnaryOp::Known,
            Tok::Dollar => {
                self.bump();
                let e = self.nested(|p| p.binary(1))?;
                return self.mk(ExprKind::Unary(UnaryOp::Halt, e), self.span_from(start));
            }
            Tok::And => {
                self.bump();
                let mutable = self.eat(Tok::Mut);
                let place = self.nested(|p| p.unary())?;
                return self.mk(ExprKind::AddrOf { mutable, place }, self.span_from(start));
            }
            Tok::AndAnd => {
                self.bump();
                let mutable = self.eat(Tok::Mut);
                let place = self.nested(|p| p.unary())?;
                let inner = self.mk(ExprKind::AddrOf { mutable, place }, self.span_from(start))?;
                return self.mk(ExprKind::AddrOf { mutable: false, place: inner }, self.span_from(start));
            }
            Tok::PlusPlus | Tok::MinusMinus => {
                let inc = self.bump().tok == Tok::PlusPlus;
                let place = self.nested(|p| p.unary())?;
                return self.mk(ExprKind::IncDec { inc, prefix: true, place }, self.span_from(start));
            }
            Tok::AtAt | Tok::At => return self.annotated(),
            _ => {
                let e = self.primary()?;
                return self.postfix(start, e);
            }
        };
        self.bump();
        let e = self.nested(|p| p.unary())?;
        self.mk(ExprKind::Unary(op, e), self.span_from(start))
    }

    /// `@@f(x)`, `@f(x)`, `@{ … }`, `@|x| e`, `@(c)|x| e`.
    fn annotated(&mut self) -> R<ExprId> {
        let start = self.pos;
        if let Some(mark) = self.mark(Tok::LBrace)
            && !(self.no_struct || self.peek_at(3) == Tok::Ident && self.peek_at(4) == Tok::Colon)
        {
            return self.nested(|p| p.marked_block(mark));
        }
        let op = if self.at(Tok::AtAt) { UnaryOp::Unfold } else { UnaryOp::Run };
        if op == UnaryOp::Run {
            let behind = match self.peek_at(1) {
                Tok::LParen if self.matching[self.pos + 1] != NO_MATCH => {
                    self.tokens[self.matching[self.pos + 1] as usize + 1].tok
                }
                tok => tok,
            };
            if matches!(behind, Tok::Or | Tok::OrOr) {
                let filter = self.filter()?;
                return self.lambda(start, filter);
            }
            if self.peek_at(1) == Tok::LBrace {
                self.bump();
                let filter = Filter::Always(self.span_from(start));
                let body = self.nested(|p| p.bracketed(|p| p.block()))?;
                let lambda = Lambda { filter, params: Vec::new(), result: Ret::Absent, body };
                let span = self.span_from(start);
                let callee = self.mk(ExprKind::Lambda(Box::new(lambda)), span)?;
                return self.mk(ExprKind::Call { callee, args: Vec::new() }, span);
            }
        }
        self.bump();
        let inner = self.pos;
        let e = self.nested(|p| match p.peek() {
            Tok::At | Tok::AtAt => p.annotated(),
            _ => {
                let e = p.primary()?;
                p.postfix(inner, e)
            }
        })?;
        self.mk(ExprKind::Unary(op, e), self.span_from(start))
    }

    /// The mark that begins here, if `behind` stands behind it: `@fast` or `@racy`. The words are names elsewhere.
    pub(super) fn mark(&self, behind: Tok) -> Option<Marks> {
        if !self.at(Tok::At) || self.peek_at(1) != Tok::Ident || self.peek_at(2) != behind {
            return None;
        }
        match self.text_of(self.tokens[self.pos + 1]) {
            "fast" => Some(Marks { fast: true, racy: false }),
            "racy" => Some(Marks { fast: false, racy: true }),
            _ => None,
        }
    }

    /// A block behind a mark.
    fn marked_block(&mut self, mark: Marks) -> R<ExprId> {
        self.bump();
        self.bump();
        self.marked(mark, |p| p.bracketed(|p| p.block()))
    }

    /// Runs `parse`, whose result is inside of `mark` as well as of what the surrounding code is inside of.
    pub(super) fn marked<T>(&mut self, mark: Marks, parse: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let old = self.marks;
        self.marks = Marks { fast: old.fast || mark.fast, racy: old.racy || mark.racy };
        let result = parse(self);
        self.marks = old;
        result
    }

    fn postfix(&mut self, start: usize, mut e: ExprId) -> R<ExprId> {
        loop {
            let kind = match self.peek() {
                Tok::LParen => {
                    let open = self.pos;
                    self.bump();
                    let args = self.list(open, Tok::RParen, "`,` or `)`", |p| p.expr())?;
                    ExprKind::Call { callee: e, args }
                }
                Tok::Dot => {
                    self.bump();
                    if self.at(Tok::Int) {
                        let index = self.text_of(self.tokens[self.pos]).to_string();
                        return Err(self.dot_index(&index));
                    }
                    let name = self.name("a field name")?;
                    ExprKind::Field { base: e, name, type_args: self.type_args()? }
                }
                Tok::Float if self.tokens[self.pos - 1].hi == self.tokens[self.pos].lo => {
                    let index = self.text_of(self.tokens[self.pos]).trim_start_matches('.').to_string();
                    return Err(self.dot_index(&index));
                }
                Tok::PlusPlus => {
                    self.bump();
                    ExprKind::IncDec { inc: true, prefix: false, place: e }
                }
                Tok::MinusMinus => {
                    self.bump();
                    ExprKind::IncDec { inc: false, prefix: false, place: e }
                }
                Tok::LBracket => {
                    let named = matches!(self.module[e].kind, ExprKind::Path(_) | ExprKind::Field { .. });
                    if !named && matches!(self.peek_at(1), Tok::Int | Tok::Minus) {
                        self.bump();
                        return Err(self.report(unexpected_token::bracket_index(self.span(), &self.found())));
                    }
                    // `(f)[i32](x)`. Type arguments of paths and methods are read together with their names.
                    match (self.type_args()?, &mut self.module.exprs[e.0 as usize].kind) {
                        (
                            args,
                            ExprKind::Path(Path { type_args: of @ None, .. })
                            | ExprKind::Field { type_args: of @ None, .. },
                        ) => *of = args,
                        // `g()[i32]` is `{ let _callee = g(); _callee[i32] }`.
                        (args, _) => {
                            let span = self.span_from(start);
                            e = self.with_type_args(e, args, span)?;
                        }
                    }
                    self.module.exprs[e.0 as usize].span = self.span_from(start);
                    continue;
                }
                _ => return Ok(e),
            };
            e = self.mk(kind, self.span_from(start))?;
        }
    }

    /// Applies type arguments to a value, by means of a variable.
    fn with_type_args(&mut self, e: ExprId, args: Option<Vec<TypeId>>, span: Span) -> R<ExprId> {
        let name = Name { text: "_callee".into(), span };
        let kind = PatternKind::Name { mutable: false, name: name.clone() };
        let pattern = Pattern { kind, ty: None, span };
        let (names, inner_args) = (vec![name], Vec::new());
        let path = self.mk(ExprKind::Path(Path { root: false, names, inner_args, type_args: args, span }), span)?;
        let stmts = vec![Stmt::Let { pattern, init: Some(e), span }];
        self.mk(ExprKind::Block(Block { stmts, result: Some(path), marks: self.marks }), span)
    }

    fn dot_index(&mut self, index: &str) -> Reported {
        self.report(unexpected_token::dot_index(self.span(), index))
    }

    fn literal_error(&mut self, token: Token, e: LiteralError) -> ExprKind {
        let lo = token.lo as usize;
        let span = Span::new(self.file, lo + e.range.start, (lo + e.range.end).min(token.hi as usize));
        self.errors.push((e.what)(span));
        ExprKind::Error
    }

    /// Reads one or more adjacent strings. The result has no zero byte at the end.
    pub(super) fn string_bytes(&mut self) -> R<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.at(Tok::Str) {
            let token = self.bump();
            match literals::unescape(self.text_of(token)) {
                Ok(part) => bytes.extend(part),
                Err(e) => {
                    self.literal_error(token, e);
                }
            }
        }
        Ok(bytes)
    }

    pub(super) fn primary(&mut self) -> R<ExprId> {
        let start = self.pos;
        let token = self.tokens[self.pos];
        let kind = match token.tok {
            Tok::Int | Tok::Float => {
                self.bump();
                match literals::number(self.text_of(token), token.tok == Tok::Float) {
                    Ok(Number::Int(value, suffix)) => ExprKind::Int { value, suffix },
                    Ok(Number::Float(text, suffix)) => ExprKind::Float { text, suffix },
                    Err(e) => self.literal_error(token, e),
                }
            }
            Tok::Char => {
                self.bump();
                match literals::char(self.text_of(token)) {
                    Ok(b) => ExprKind::Char(b),
                    Err(e) => self.literal_error(token, e),
                }
            }
            Tok::Str => {
                let mut bytes = self.string_bytes()?;
                bytes.push(0);
                ExprKind::Str(bytes)
            }
            Tok::True | Tok::False => {
                self.bump();
                ExprKind::Bool(token.tok == Tok::True)
            }
            Tok::Ident | Tok::ColonColon => return self.path_expr(),
            Tok::LParen => {
                self.bump();
                let parts = self.list(start, Tok::RParen, "`,` or `)`", |p| p.expr())?;
                if let [one] = parts[..] {
                    return Ok(one);
                }
                ExprKind::Tuple(parts)
            }
            Tok::LBracket => self.array_expr()?,
            Tok::Simd => {
                self.bump();
                let open = self.pos;
                self.expect(Tok::LBracket, "`[`")?;
                ExprKind::Simd(self.list(open, Tok::RBracket, "`,` or `]`", |p| p.expr())?)
            }
            Tok::LBrace => return self.nested(|p| p.bracketed(|p| p.block())),
            Tok::At if let Some(mark) = self.mark(Tok::LBrace) => return self.nested(|p| p.marked_block(mark)),
            Tok::Or | Tok::OrOr => return self.lambda(start, Filter::Never),
            Tok::If => return self.if_expr(),
            Tok::While => return self.while_expr(),
            Tok::For | Tok::With => return self.for_expr(),
            Tok::Match => return self.match_expr(),
            Tok::Asm => ExprKind::Asm(Box::new(self.nested(|p| p.asm())?)),
            _ => return Err(self.unexpected("an expression")),
        };
        self.mk(kind, self.span_from(start))
    }

    /// `asm("…" : outs : ins : clobbers : options)`; `::` leaves a part empty.
    fn asm(&mut self) -> R<Asm> {
        self.bump();
        let open = self.pos;
        self.expect(Tok::LParen, "`(` and the instructions in `\"…\"`")?;
        self.bracketed(|p| {
            let template = p.required_string("the instructions in `\"…\"`")?.0;
            let mut asm = Asm { template, ..Asm::default() };
            let mut part = 0;
            loop {
                part += match p.peek() {
                    Tok::Colon => 1,
                    Tok::ColonColon => 2,
                    _ => break,
                };
                if part > 4 {
                    return Err(p.unexpected("`)`; options are the last part"));
                }
                p.bump();
                while p.at(Tok::Str) {
                    let (text, span) = p.required_string("`\"…\"`")?;
                    match part {
                        1 => asm.outs.push((text, p.asm_operand()?)),
                        2 => asm.ins.push((text, p.asm_operand()?)),
                        3 => asm.clobbers.push(text),
                        _ => asm.options.push((text, span)),
                    }
                    if !p.eat(Tok::Comma) {
                        break;
                    }
                }
            }
            let expected = match part {
                0 => "`:` or `)`",
                1 => "`:`, `)`, or an output `\"=r\"(place)`",
                2 => "`:`, `)`, or an input `\"r\"(value)`",
                3 => "`:`, `)`, or a clobber in `\"…\"`",
                _ => "`)` or an option in `\"…\"`",
            };
            p.close(Tok::RParen, expected, open)?;
            Ok(asm)
        })
    }

    /// Reads the operand in parentheses after a constraint.
    fn asm_operand(&mut self) -> R<ExprId> {
        let open = self.pos;
        self.expect(Tok::LParen, "`(` and the operand")?;
        let e = self.expr()?;
        self.close(Tok::RParen, "`)`", open)?;
        Ok(e)
    }

    /// `match e { p => e, p if guard => { … } }`
    fn match_expr(&mut self) -> R<ExprId> {
        let start = self.pos;
        self.bump();
        let scrutinee = self.head(|p| p.binary(1))?;
        let open = self.pos;
        self.expect(Tok::LBrace, "`{` and arms")?;
        let arms = self.nested(|p| p.bracketed(|p| p.arms(open)))?;
        self.mk(ExprKind::Match { scrutinee, arms }, self.span_from(start))
    }

    /// Reads the arms up to the closing `}`, which is read too.
    fn arms(&mut self, open: usize) -> R<Vec<Arm>> {
        let mut arms = Vec::new();
        while !self.at(Tok::RBrace) && !self.at(Tok::Eof) {
            let pattern = self.pattern()?;
            let guard = if self.eat(Tok::If) { Some(self.nested(|p| p.binary(1))?) } else { None };
            self.expect(Tok::FatArrow, if guard.is_some() { "`=>`" } else { "`=>` after the pattern" })?;
            let (body, ended) = self.arm_body()?;
            arms.push(Arm { pattern, guard, body });
            if !self.eat(Tok::Comma) && !ended {
                break;
            }
        }
        self.close(Tok::RBrace, "`,` or `}` after the arm", open)?;
        Ok(arms)
    }

    /// Reads the value of an arm. Also returns whether the next arm may follow without a comma.
    fn arm_body(&mut self) -> R<(ExprId, bool)> {
        if !self.at_block_like() {
            return Ok((self.expr()?, false));
        }
        let start = self.pos;
        let e = self.nested(|p| p.primary())?;
        if self.tokens[self.pos - 1].tok == Tok::RBrace && self.arm_follows() {
            return Ok((e, true));
        }
        Ok((self.expr_rest(start, e)?, false))
    }

    /// After the `}` of an arm's value: whether the next arm's pattern follows, and not more of the value.
    fn arm_follows(&self) -> bool {
        let behind = match self.peek() {
            Tok::LParen if self.matching[self.pos] != NO_MATCH => self.matching[self.pos] as usize + 1,
            Tok::Minus => self.pos + 2,
            Tok::Float => return self.tokens[self.pos - 1].hi != self.tokens[self.pos].lo,
            Tok::Ident | Tok::ColonColon | Tok::Mut | Tok::Int | Tok::Char | Tok::True | Tok::False => return true,
            _ => return false,
        };
        matches!(self.tokens.get(behind).map(|t| t.tok), Some(Tok::FatArrow | Tok::If | Tok::Colon))
    }

    /// Reads the operators that may follow the operand `e`.
    fn expr_rest(&mut self, start: usize, e: ExprId) -> R<ExprId> {
        self.nested(|p| {
            let e = p.postfix(start, e)?;
            let e = p.cast_rest(start, e)?;
            let e = p.binary_rest(start, e, 1)?;
            p.assignments(start, e)
        })
    }

    /// Whether an expression begins here that, as a statement, ends with its `}`.
    fn at_block_like(&self) -> bool {
        self.mark(Tok::LBrace).is_some()
            || matches!(self.peek(), Tok::If | Tok::While | Tok::For | Tok::With | Tok::Match | Tok::LBrace)
    }

    fn head<T>(&mut self, f: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let old = std::mem::replace(&mut self.no_struct, true);
        let result = self.nested(f);
        self.no_struct = old;
        result
    }

    fn path_expr(&mut self) -> R<ExprId> {
        let start = self.pos;
        let path = self.path()?;
        // `loop` is not a keyword, but no struct has that name.
        if self.at(Tok::LBrace)
            && matches!(&path.names[..], [name] if &*name.text == "loop")
            && self.peek_at(2) != Tok::Colon
        {
            self.pos = start;
            return Err(self.report(unexpected_token::endless_loop(self.span())));
        }
        if self.at(Tok::LBrace) && (!self.no_struct || self.fields_follow()) {
            let open = self.pos;
            self.bump();
            let mut base = None;
            let fields = self.list(open, Tok::RBrace, "`,` or `}`", |p| {
                if base.is_some() {
                    return Err(p.report(unexpected_token::after_base(p.span(), &p.found())));
                }
                if p.eat(Tok::DotDot) {
                    base = Some(p.expr()?);
                    return Ok(None);
                }
                let name = p.name("a field name or `..`")?;
                p.expect(Tok::Colon, "`:` and the field's value")?;
                Ok(Some((name, p.expr()?)))
            })?;
            let fields = fields.into_iter().flatten().collect();
            return self.mk(ExprKind::Struct { path, fields, base }, self.span_from(start));
        }
        self.mk(ExprKind::Path(path), self.span_from(start))
    }

    /// At the `{` after a name in a head: whether fields follow, and not arms (`n: i32 => …`).
    fn fields_follow(&self) -> bool {
        if self.peek_at(1) == Tok::DotDot {
            return true;
        }
        if self.peek_at(1) != Tok::Ident || self.peek_at(2) != Tok::Colon || self.matching[self.pos] == NO_MATCH {
            return self.peek_at(1) == Tok::Ident && self.peek_at(2) == Tok::Colon;
        }
        let end = self.matching[self.pos] as usize;
        let mut i = self.pos + 3;
        while i < end {
            match self.tokens[i].tok {
                Tok::FatArrow => return false,
                Tok::LParen | Tok::LBracket | Tok::LBrace if self.matching[i] != NO_MATCH => {
                    i = self.matching[i] as usize + 1;
                }
                _ => i += 1,
            }
        }
        true
    }

    /// `[a, b]`, `[e, .. n]`, `[n: T]`.
    fn array_expr(&mut self) -> R<ExprKind> {
        let open = self.pos;
        self.bump();
        self.bracketed(|p| {
            let mut parts = Vec::new();
            while !p.at(Tok::RBracket) {
                if p.at(Tok::DotDot) && parts.len() == 1 {
                    p.bump();
                    let n = p.expr()?;
                    p.close(Tok::RBracket, "`]`", open)?;
                    return Ok(ExprKind::Repeat(parts[0], n));
                }
                parts.push(p.expr()?);
                if parts.len() == 1 && p.eat(Tok::Colon) {
                    let ty = p.ty()?;
                    p.close(Tok::RBracket, "`]`", open)?;
                    return Ok(ExprKind::DynArray(parts[0], ty));
                }
                if !p.eat(Tok::Comma) {
                    break;
                }
            }
            p.close(Tok::RBracket, "`,` or `]`", open)?;
            Ok(ExprKind::Array(parts))
        })
    }

    /// Reads a lambda, from its `|` or `||` on.
    fn lambda(&mut self, start: usize, filter: Filter) -> R<ExprId> {
        self.nested(|p| {
            let mut params = Vec::new();
            if !p.eat(Tok::OrOr) {
                let open = p.pos;
                p.bump();
                params = p.list(open, Tok::Or, "`,` or `|`", |p| p.param(false))?;
            }
            let result = p.ret()?;
            // `twice(||)`: a lambda without a body returns `()`.
            let body = match p.peek() {
                Tok::RParen | Tok::Comma if matches!(result, Ret::Absent) => {
                    p.mk(ExprKind::Tuple(Vec::new()), p.span_from(start))?
                }
                _ => p.expr()?,
            };
            let lambda = Lambda { filter, params, result, body };
            p.mk(ExprKind::Lambda(Box::new(lambda)), p.span_from(start))
        })
    }

    fn if_expr(&mut self) -> R<ExprId> {
        let start = self.pos;
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.bump();
            let cond = self.head(|p| p.binary(1))?;
            if !self.at(Tok::LBrace) {
                return Err(self.unexpected("`{`"));
            }
            let then = self.nested(|p| p.bracketed(|p| p.block()))?;
            arms.push((cond, then));
            if self.at(Tok::Ident) && matches!(self.text_of(self.tokens[self.pos]), "elif" | "elsif" | "elseif") {
                return Err(self.unexpected("`else`"));
            }
            if !self.eat(Tok::Else) {
                break;
            }
            if !self.at(Tok::If) {
                otherwise = Some(self.body()?);
                break;
            }
        }
        self.mk(ExprKind::If { arms, otherwise }, self.span_from(start))
    }

    /// Reads a block, or an expression in place of one.
    fn body(&mut self) -> R<ExprId> {
        match self.peek() {
            Tok::LBrace => self.nested(|p| p.bracketed(|p| p.block())),
            Tok::At if let Some(mark) = self.mark(Tok::LBrace) => self.nested(|p| p.marked_block(mark)),
            _ => self.expr(),
        }
    }

    fn while_expr(&mut self) -> R<ExprId> {
        let start = self.pos;
        self.bump();
        let cond = self.head(|p| p.binary(1))?;
        let body = self.body()?;
        self.mk(ExprKind::While { cond, body }, self.span_from(start))
    }

    fn for_expr(&mut self) -> R<ExprId> {
        let start = self.pos;
        let with = self.bump().tok == Tok::With;
        let mut params = Vec::new();
        if self.in_follows() {
            while !self.at(Tok::In) {
                params.push(self.param(false)?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
            self.expect(Tok::In, "`,` or `in`")?;
        }
        let call = self.head(|p| p.unary())?;
        let filter = self.filter()?;
        let body = self.body()?;
        let looped = For { with, params, call, filter, body };
        self.mk(ExprKind::For(Box::new(looped)), self.span_from(start))
    }

    /// Whether an `in` follows, with only tokens before it that are valid between `for` and `in`.
    fn in_follows(&self) -> bool {
        let mut i = self.pos;
        loop {
            match self.tokens[i].tok {
                Tok::In => return true,
                Tok::LParen | Tok::LBracket if self.matching[i] != NO_MATCH => i = self.matching[i] as usize + 1,
                // These are the fields of a pattern, or else the body, after which no `in` belongs to this loop.
                Tok::LBrace if self.matching[i] != NO_MATCH => {
                    i = self.matching[i] as usize + 1;
                    if !matches!(self.tokens[i].tok, Tok::Comma | Tok::Colon | Tok::In) {
                        return false;
                    }
                }
                Tok::Minus | Tok::Int | Tok::Float | Tok::Char | Tok::True | Tok::False => i += 1,
                Tok::Ident | Tok::Mut | Tok::Colon | Tok::ColonColon | Tok::Comma | Tok::At | Tok::Question => i += 1,
                Tok::And | Tok::AndAnd | Tok::Fn | Tok::Arrow | Tok::Not | Tok::Tilde | Tok::Simd | Tok::Typeof => {
                    i += 1
                }
                _ => return false,
            }
        }
    }

    /// Reads `{ … }`. An error inside skips one statement.
    pub(super) fn block(&mut self) -> R<ExprId> {
        self.blocks += 1;
        let result = self.block_inner();
        self.blocks -= 1;
        result
    }

    fn block_inner(&mut self) -> R<ExprId> {
        let open = self.pos;
        self.expect(Tok::LBrace, "`{`")?;
        let mut stmts = Vec::new();
        let mut result = None;
        loop {
            match self.peek() {
                Tok::RBrace | Tok::Eof => break,
                Tok::Semi => {
                    self.bump();
                    continue;
                }
                _ => {}
            }
            let (start, nesting) = (self.pos, self.nesting);
            match self.stmt(&mut stmts) {
                Ok(None) => {}
                Ok(Some(e)) => {
                    result = Some(e);
                    break;
                }
                Err(Reported(())) => {
                    (self.nesting, self.no_struct) = (nesting, false);
                    self.sync(start);
                    if self.pos == start && !matches!(self.peek(), Tok::RBrace | Tok::Eof) {
                        self.bump();
                    }
                    // The type of the lost statement is unknown.
                    let span = self.span_from(start);
                    let e = self.mk(ExprKind::Error, span)?;
                    if self.at(Tok::RBrace) {
                        result = Some(e);
                    } else {
                        stmts.push(Stmt::Expr(e));
                    }
                }
            }
        }
        self.close(Tok::RBrace, "`}`", open)?;
        self.mk(ExprKind::Block(Block { stmts, result, marks: self.marks }), self.span_from(open))
    }

    /// Whether `defer { … }` begins here. Elsewhere, and before the fields of a struct of that name, `defer` is a name.
    fn at_defer(&self) -> bool {
        self.at(Tok::Ident)
            && self.text_of(self.tokens[self.pos]) == "defer"
            && self.peek_at(1) == Tok::LBrace
            && !(self.peek_at(2) == Tok::Ident && self.peek_at(3) == Tok::Colon)
    }

    /// Reads `defer { … }`. The block is the body of a lambda, which is always specialized.
    fn defer(&mut self) -> R<ExprId> {
        let start = self.pos;
        self.bump();
        let body = self.nested(|p| p.bracketed(|p| p.block()))?;
        // The value of the block is dropped.
        if let ExprKind::Block(block) = &mut self.module.exprs[body.0 as usize].kind
            && let Some(value) = block.result.take()
        {
            block.stmts.push(Stmt::Expr(value));
        }
        let span = self.span_from(start);
        let result = Ret::Type(self.mk_type(TypeKind::Tuple(Vec::new()), span));
        self.mk(
            ExprKind::Lambda(Box::new(Lambda { filter: Filter::Always(span), params: Vec::new(), result, body })),
            span,
        )
    }

    /// Reads one statement. Returns an expression if that is the block's result.
    fn stmt(&mut self, stmts: &mut Vec<Stmt>) -> R<Option<ExprId>> {
        let start = self.pos;
        if self.at_item() {
            let item = self.nested(|p| p.item())?;
            stmts.push(Stmt::Item(Box::new(item)));
            return Ok(None);
        }
        if self.eat(Tok::Let) {
            let pattern = self.pattern()?;
            let init = if self.eat(Tok::Eq) { Some(self.expr()?) } else { None };
            let span = self.span_from(start);
            let ended = self.semi("`let`");
            // The tokens that follow may belong to the value.
            let init = if ended.is_err() { Some(self.mk(ExprKind::Error, span)?) } else { init };
            stmts.push(Stmt::Let { pattern, init, span });
            return ended.map(|()| None);
        }
        if self.at_defer() {
            let body = self.defer()?;
            stmts.push(Stmt::Defer(body));
            self.eat(Tok::Semi);
            return Ok(None);
        }
        let ends_itself = self.at_block_like();
        let e = if ends_itself { self.primary()? } else { self.expr()? };
        let is_block_like = ends_itself && self.tokens[self.pos - 1].tok == Tok::RBrace;
        if self.at(Tok::RBrace) {
            return Ok(Some(e));
        }
        if is_block_like {
            stmts.push(Stmt::Expr(e));
            self.eat(Tok::Semi);
            return Ok(None);
        }
        if self.at_item() {
            // Functions that the result uses may follow it.
            while self.at_item() || self.at(Tok::Semi) {
                if !self.eat(Tok::Semi) {
                    let item = self.nested(|p| p.item())?;
                    stmts.push(Stmt::Item(Box::new(item)));
                }
            }
            if self.at(Tok::RBrace) {
                return Ok(Some(e));
            }
            let result = self.module[e].span;
            return Err(self.report(unexpected_token::after_result(self.span(), &self.found(), result)));
        }
        // Without its `;`, the expression may not be what it looks like.
        self.semi("the expression")?;
        stmts.push(Stmt::Expr(e));
        Ok(None)
    }
}
