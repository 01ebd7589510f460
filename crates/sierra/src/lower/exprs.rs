//! Expressions.

use super::*;
use nyala_ir::layout;

impl<'s> Lowerer<'s, '_> {
    /// The value of an expression, read from memory if it lies there.
    pub(super) fn value(&mut self, e: &Expr<'s>) -> Lowered<(Val, Ty)> {
        let value = self.expression(e)?;
        self.read(value, e.span)
    }

    /// An expression for its effects only.
    pub(super) fn effect(&mut self, e: &Expr<'s>) -> Lowered<()> {
        match &e.kind {
            ExprKind::Comma(values) => values.iter().try_for_each(|e| self.effect(e)),
            _ => self.expression(e).map(|_| ()),
        }
    }

    fn int(&mut self, n: i64) -> (Val, Ty) {
        let prim = if i32::try_from(n).is_ok() { Prim::I32 } else { Prim::I64 };
        (self.w.lit_prim(prim, n as u64), self.types.prim(prim))
    }

    pub(super) fn expression(&mut self, e: &Expr<'s>) -> Lowered<Value> {
        self.w.set_origin(e.span);
        let plain = |(val, ty)| Value::Plain(val, ty);
        match &e.kind {
            ExprKind::Name(name) => match self.find(name) {
                Some(Entity::Variable(variable)) => Ok(Value::Place(variable)),
                Some(Entity::Constant(n, ty)) => Ok(Value::Plain(self.w.lit_i32(n as i32), ty)),
                Some(Entity::Function(_)) => Err(Box::new(sierra_type::function_as_value(e.span, name))),
                Some(Entity::Type(_)) => Err(Box::new(sierra_type::type_as_value(e.span, name))),
                None => Err(Box::new(sierra_name::error(e.span, name))),
            },
            ExprKind::Int(text) => self.int_literal(text, e.span).map(plain),
            ExprKind::Float(text) => self.float_literal(text, e.span).map(plain),
            ExprKind::Char(text) => {
                let bytes = crate::lexer::unquoted(text);
                let Some([byte]) = bytes.as_deref() else {
                    return Err(Box::new(sierra_syntax::literal(e.span, text, "character")));
                };
                let val = self.w.lit_prim(Prim::I8, *byte as i8 as i64 as u64);
                Ok(Value::Plain(val, self.types.prim(Prim::I8)))
            }
            ExprKind::Text(texts) => {
                let bytes = self.text(texts, e.span)?;
                Ok(self.text_place(&bytes))
            }
            ExprKind::Bool(b) => Ok(Value::Plain(self.w.lit_bool(*b), self.types.prim(Prim::Bool))),
            ExprKind::Null => {
                let ty = self.types.pointer(Types::VOID, false);
                Ok(Value::Plain(self.null(ty), ty))
            }
            ExprKind::Unary(operator, operand) => self.unary(*operator, operand, e.span),
            ExprKind::Cast(ty, operand) => {
                let ty = self.type_name(ty)?;
                let found = self.value(operand)?;
                self.w.set_origin(e.span);
                Ok(Value::Plain(self.cast(found, ty, e.span)?, ty))
            }
            ExprKind::Convert(prim, operand) => {
                let ty = self.types.prim(*prim);
                let found = self.value(operand)?;
                self.w.set_origin(e.span);
                Ok(Value::Plain(self.cast(found, ty, e.span)?, ty))
            }
            ExprKind::SizeOfType(ty) => {
                let ty = self.type_name(ty)?;
                self.size(ty, e.span).map(plain)
            }
            ExprKind::SizeOf(operand) => {
                // It is not evaluated.
                let cur = self.cur;
                if cur.is_some() {
                    let unused = self.block("unreached");
                    self.go_on_in(unused);
                }
                let found = self.expression(operand);
                self.cur = cur;
                let (Value::Plain(_, ty) | Value::Place(Variable { ty, .. })) = found?;
                self.size(ty, e.span).map(plain)
            }
            ExprKind::Chain(first, rest) => {
                let mut value = self.value(first)?;
                let start = first.span;
                for (operator, right) in rest {
                    let right_value = self.value(right)?;
                    let span = Span { hi: right.span.hi, ..start };
                    value = self.binary(*operator, value, right_value, span)?;
                }
                Ok(plain(value))
            }
            ExprKind::Logic(is_or, values) => self.logic(*is_or, values),
            ExprKind::Choose(parts) => self.choose(parts, e.span),
            ExprKind::Assign(operator, parts) => self.assign(*operator, parts, e.span),
            ExprKind::Comma(values) => {
                let (last, before) = match values.split_last() {
                    Some(split) => split,
                    None => return Ok(Value::Plain(self.w.unit(), Types::ERROR)),
                };
                before.iter().try_for_each(|e| self.effect(e))?;
                self.expression(last)
            }
            ExprKind::Postfix(base, rest) => self.postfix(base, rest),
        }
    }

    fn int_literal(&mut self, text: &str, span: Span) -> Lowered<(Val, Ty)> {
        let faulty = || Box::new(sierra_syntax::literal(span, text, "integer"));
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = text[digits.len()..].to_ascii_lowercase();
        let (is_unsigned, is_long) = match &*suffix {
            "" => (false, false),
            "u" => (true, false),
            "l" | "ll" => (false, true),
            "ul" | "lu" | "ull" | "llu" => (true, true),
            _ => return Err(faulty()),
        };
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        let bits = u64::from_str_radix(digits, radix).map_err(|_| faulty())?;
        let may_be_unsigned = is_unsigned || radix != 10;
        let fits = |prim: Prim| match prim {
            Prim::I32 => bits <= i32::MAX as u64 && !is_unsigned && !is_long,
            Prim::U32 => bits <= u32::MAX.into() && may_be_unsigned && !is_long,
            Prim::I64 => bits <= i64::MAX as u64 && !is_unsigned,
            _ => may_be_unsigned,
        };
        let prim = [Prim::I32, Prim::U32, Prim::I64, Prim::U64].into_iter().find(|p| fits(*p)).ok_or_else(faulty)?;
        Ok((self.w.lit_prim(prim, bits), self.types.prim(prim)))
    }

    fn float_literal(&mut self, text: &str, span: Span) -> Lowered<(Val, Ty)> {
        let digits = text.trim_end_matches(['f', 'F']);
        // Rust takes fewer forms, and words.
        let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
        let faulty = || Box::new(sierra_syntax::literal(span, text, "number"));
        if !is_plain || text.len() > digits.len() + 1 {
            return Err(faulty());
        }
        let (prim, bits) = if digits.len() < text.len() {
            (Prim::F32, digits.parse::<f32>().map_err(|_| faulty())?.to_bits().into())
        } else {
            (Prim::F64, digits.parse::<f64>().map_err(|_| faulty())?.to_bits())
        };
        Ok((self.w.lit_prim(prim, bits), self.types.prim(prim)))
    }

    /// A text as an array that exists once.
    pub(super) fn text_place(&mut self, bytes: &[u8]) -> Value {
        let char = self.types.prim(Prim::I8);
        let ty = self.types.array(char, bytes.len() as u64 + 1);
        let all = bytes.iter().chain([&0]);
        let values: Vec<Val> = all.map(|&b| self.w.lit_prim(Prim::I8, b as i8 as i64 as u64)).collect();
        let ir = self.types.ir(ty, self.w);
        let init = self.w.op_ty(Op::Array, ir, &values);
        let global = self.w.declare_global("text", ir, false);
        self.w.set_init(global, init);
        Value::Place(Variable { address: self.w.global_val(global), ty, is_const: true })
    }

    fn size(&mut self, ty: Ty, span: Span) -> Lowered<(Val, Ty)> {
        self.complete(ty, span)?;
        let ir = self.types.ir(ty, self.w);
        let Some((size, _)) = layout::size_align(&self.w.types, ir) else {
            return Err(Box::new(sierra_type::incomplete(span, &self.types.show(ty))));
        };
        Ok((self.w.lit_prim(Prim::U64, size), self.types.prim(Prim::U64)))
    }

    // Places.

    fn place(&mut self, e: &Expr<'s>, what: &str) -> Lowered<Variable> {
        match self.expression(e)? {
            Value::Place(place) => Ok(place),
            Value::Plain(..) => Err(Box::new(sierra_type::no_place(e.span, what))),
        }
    }

    fn changed_place(&mut self, e: &Expr<'s>, what: &str) -> Lowered<Variable> {
        let place = self.place(e, what)?;
        if place.is_const {
            return Err(Box::new(sierra_type::constant(e.span)));
        }
        Ok(place)
    }

    /// What a pointer leads to, `n` elements further on.
    fn pointee(&mut self, (val, ty): (Val, Ty), n: Option<Val>, span: Span) -> Lowered<Variable> {
        let Kind::Pointer { to, is_const } = *self.types.kind(ty) else {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "a pointer")));
        };
        self.complete(to, span)?;
        let n = match n {
            Some(n) => n,
            None => self.w.lit_i64(0),
        };
        Ok(Variable { address: self.w.op(Op::Lea, &[val, n]), ty: to, is_const })
    }

    fn unary(&mut self, operator: Unary, operand: &Expr<'s>, span: Span) -> Lowered<Value> {
        match operator {
            Unary::AddressOf => {
                let place = self.place(operand, "`&`")?;
                let ty = self.types.pointer(place.ty, place.is_const);
                self.depth(ty, span)?;
                return Ok(Value::Plain(self.retyped(place.address, ty), ty));
            }
            Unary::Deref => {
                let found = self.value(operand)?;
                self.w.set_origin(span);
                return self.pointee(found, None, span).map(Value::Place);
            }
            Unary::Increment | Unary::Decrement => {
                let place = self.changed_place(operand, "`++`")?;
                self.count(place, operator == Unary::Increment, span)?;
                return Ok(Value::Place(place));
            }
            Unary::Not => {
                let found = self.value(operand)?;
                self.w.set_origin(span);
                let val = self.truth(found, operand.span)?;
                return Ok(Value::Plain(self.w.not(val), self.types.prim(Prim::Bool)));
            }
            Unary::Plus | Unary::Negate | Unary::Complement => {}
        }
        let (val, ty) = self.value(operand)?;
        self.w.set_origin(span);
        let word = match operator {
            Unary::Plus => "+",
            Unary::Negate => "-",
            _ => "~",
        };
        let is_fit = |p: &Prim| operator != Unary::Complement || !p.is_float();
        let Some(prim) = self.types.as_prim(ty).filter(is_fit) else {
            return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
        };
        let prim = self.promoted(prim);
        let to = self.types.prim(prim);
        let val = self.convert((val, ty), to, span)?;
        let ir = self.w.ty(val);
        let val = match operator {
            Unary::Plus => val,
            Unary::Negate => {
                // The negative zero of floats.
                let zero = self.w.lit(ir, if prim.is_float() { 1u64 << (prim.bits() - 1) } else { 0 });
                self.w.op(Op::Sub, &[zero, val])
            }
            _ => {
                let ones = self.w.lit(ir, prim.normalize(u64::MAX));
                self.w.op(Op::Xor, &[val, ones])
            }
        };
        Ok(Value::Plain(val, to))
    }

    /// Adds one to a place, or subtracts one. Returns what was there.
    fn count(&mut self, place: Variable, is_up: bool, span: Span) -> Lowered<(Val, Ty)> {
        let old = self.read(Value::Place(place), span)?;
        let one = self.int(1);
        let operator = if is_up { Binary::Add } else { Binary::Sub };
        let new = self.binary(operator, old, one, span)?;
        let val = self.convert(new, place.ty, span)?;
        self.store(place.address, val, span)?;
        Ok(old)
    }

    fn assign(&mut self, operator: Option<Binary>, parts: &[Expr<'s>; 2], span: Span) -> Lowered<Value> {
        let [target, value] = parts;
        let place = self.changed_place(target, "`=`")?;
        if matches!(self.types.kind(place.ty), Kind::Array(..)) {
            let found = self.types.show(place.ty);
            return Err(Box::new(sierra_type::mismatch(target.span, &found, "a variable that is no array")));
        }
        let mut new = self.value(value)?;
        if let Some(operator) = operator {
            let old = self.read(Value::Place(place), target.span)?;
            self.w.set_origin(span);
            new = self.binary(operator, old, new, span)?;
        }
        self.w.set_origin(span);
        let val = self.convert(new, place.ty, value.span)?;
        self.store(place.address, val, span)?;
        Ok(Value::Place(place))
    }

    // Operators.

    pub(super) fn binary(
        &mut self,
        operator: Binary,
        left: (Val, Ty),
        right: (Val, Ty),
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        self.w.set_origin(span);
        if left.1 == Types::ERROR || right.1 == Types::ERROR {
            return Ok((self.w.unit(), Types::ERROR));
        }
        let is_comparison = matches!(
            operator,
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge
        );
        let (Some(a), Some(b)) = (self.types.as_prim(left.1), self.types.as_prim(right.1)) else {
            return self.binary_of_pointers(operator, is_comparison, left, right, span);
        };
        let is_shift = matches!(operator, Binary::Shl | Binary::Shr);
        let prim = if is_shift { self.promoted(a) } else { self.common(a, b) };
        let needs_int =
            is_shift || matches!(operator, Binary::Or | Binary::Xor | Binary::And | Binary::Rem);
        if needs_int && (prim.is_float() || b.is_float()) {
            return Err(self.no_operands(operator, left.1, right.1, span));
        }
        let ty = self.types.prim(prim);
        let x = self.convert(left, ty, span)?;
        let y = self.convert(right, ty, span)?;
        let op = match operator {
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
            Binary::And => Op::And,
            Binary::Eq => Op::Eq,
            Binary::Ne => Op::Ne,
            Binary::Lt => Op::Lt,
            Binary::Le => Op::Le,
            Binary::Gt => Op::Gt,
            Binary::Ge => Op::Ge,
            Binary::Shl => Op::Shl,
            Binary::Shr => Op::Shr,
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div if prim.is_float() => Op::Div,
            Binary::Div | Binary::Rem => return Ok((self.quotient(operator, prim, x, y, span)?, ty)),
        };
        let val = self.w.op(op, &[x, y]);
        Ok((val, if is_comparison { self.types.prim(Prim::Bool) } else { ty }))
    }

    fn quotient(&mut self, operator: Binary, prim: Prim, x: Val, y: Val, span: Span) -> Lowered<Val> {
        let (partial, total) =
            if operator == Binary::Div { (Op::PDiv, Op::Div) } else { (Op::PRem, Op::Rem) };
        if self.is_constant {
            // -1 may overflow.
            let is_safe = |y: u64| y != 0 && !(prim.is_signed() && y == u64::MAX);
            return match self.w.as_lit(y) {
                Some(bits) if is_safe(bits) => Ok(self.w.op(total, &[x, y])),
                _ => Err(Box::new(sierra_constant::error(span))),
            };
        }
        let mem = self.mem(span)?;
        Ok(self.w.op(partial, &[mem, x, y]))
    }

    fn no_operands(&self, operator: Binary, left: Ty, right: Ty, span: Span) -> Box<Diagnostic> {
        let [left, right] = [left, right].map(|ty| self.types.show(ty));
        Box::new(sierra_type::operands(span, operator.word(), &left, &right))
    }

    fn binary_of_pointers(
        &mut self,
        operator: Binary,
        is_comparison: bool,
        left: (Val, Ty),
        right: (Val, Ty),
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let target = |l: &Self, ty| if let Kind::Pointer { to, .. } = *l.types.kind(ty) { Some(to) } else { None };
        let fault = self.no_operands(operator, left.1, right.1, span);
        match (target(self, left.1), target(self, right.1)) {
            (Some(a), Some(b)) if is_comparison || operator == Binary::Sub => {
                if a != b && !(is_comparison && (a == Types::VOID || b == Types::VOID)) {
                    return Err(fault);
                }
                let address = self.w.types.prim(if is_comparison { Prim::U64 } else { Prim::I64 });
                let [x, y] = [left.0, right.0].map(|v| self.w.op_ty(Op::Bitcast, address, &[v]));
                if operator == Binary::Sub {
                    let (size, _) = self.size(a, span)?;
                    let size = self.w.op_ty(Op::Cast, address, &[size]);
                    let bytes = self.w.op(Op::Sub, &[x, y]);
                    // A size is never 0 or -1.
                    let n = self.w.op(Op::Div, &[bytes, size]);
                    return Ok((n, self.types.prim(Prim::I64)));
                }
                let op = match operator {
                    Binary::Eq => Op::Eq,
                    Binary::Ne => Op::Ne,
                    Binary::Lt => Op::Lt,
                    Binary::Le => Op::Le,
                    Binary::Gt => Op::Gt,
                    _ => Op::Ge,
                };
                Ok((self.w.op(op, &[x, y]), self.types.prim(Prim::Bool)))
            }
            // A literal 0 is a null pointer.
            (Some(_), None) if is_comparison && self.w.as_lit(right.0) == Some(0) => {
                let null = (self.null(left.1), left.1);
                self.binary_of_pointers(operator, true, left, null, span)
            }
            (None, Some(_)) if is_comparison && self.w.as_lit(left.0) == Some(0) => {
                let null = (self.null(right.1), right.1);
                self.binary_of_pointers(operator, true, null, right, span)
            }
            (Some(to), None) if matches!(operator, Binary::Add | Binary::Sub) => {
                self.complete(to, span)?;
                let n = self.index(right, span).map_err(|_| fault)?;
                let n = if operator == Binary::Sub {
                    let zero = self.w.lit_i64(0);
                    self.w.op(Op::Sub, &[zero, n])
                } else {
                    n
                };
                let address = self.w.op(Op::Lea, &[left.0, n]);
                Ok((self.retyped(address, left.1), left.1))
            }
            (None, Some(_)) if operator == Binary::Add => self.binary_of_pointers(operator, false, right, left, span),
            _ => Err(fault),
        }
    }

    /// An integer as an index.
    fn index(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Val> {
        match self.types.as_prim(ty) {
            Some(prim) if !prim.is_float() => {
                let long = self.types.prim(if prim == Prim::U64 { Prim::U64 } else { Prim::I64 });
                self.convert((val, ty), long, span)
            }
            _ => Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "an integer"))),
        }
    }

    fn logic(&mut self, is_or: bool, values: &[Expr<'s>]) -> Lowered<Value> {
        let ty = self.types.prim(Prim::Bool);
        let Some((last, before)) = values.split_last() else { return Ok(Value::Plain(self.w.unit(), Types::ERROR)) };
        if self.is_constant {
            let mut all = self.w.lit_bool(!is_or);
            for e in values {
                let found = self.value(e)?;
                let holds = self.truth(found, e.span)?;
                all = self.w.op(if is_or { Op::Or } else { Op::And }, &[all, holds]);
            }
            return Ok(Value::Plain(all, ty));
        }
        let (mem, bool) = (self.w.types.mem(), self.w.types.bool());
        let cn = self.w.types.cn(&[mem, bool]);
        let after = self.w.declare("after", cn, &["m", "holds"]);
        let decided = self.block("decided");
        for e in before {
            let found = self.value(e)?;
            let holds = self.truth(found, e.span)?;
            let more = self.block("more");
            if is_or { self.branch(holds, decided, more) } else { self.branch(holds, more, decided) }
            self.go_on_in(more);
        }
        let found = self.value(last)?;
        let holds = self.truth(found, last.span)?;
        self.jump(after, &[holds]);
        self.go_on_in(decided);
        let decision = self.w.lit_bool(is_or);
        self.jump(after, &[decision]);
        self.go_on_in(after);
        Ok(Value::Plain(self.w.param(after, 1), ty))
    }

    fn choose(&mut self, [condition, then, otherwise]: &[Expr<'s>; 3], span: Span) -> Lowered<Value> {
        let found = self.value(condition)?;
        let holds = self.truth(found, condition.span)?;
        if self.is_constant {
            let (a, b) = (self.value(then)?, self.value(otherwise)?);
            let ty = self.chosen_type(a, b, span)?;
            let (a, b) = (self.convert(a, ty, then.span)?, self.convert(b, ty, otherwise.span)?);
            return Ok(Value::Plain(self.w.op(Op::Select, &[holds, a, b]), ty));
        }
        let (k_then, k_else) = (self.block("then"), self.block("else"));
        self.branch(holds, k_then, k_else);
        self.go_on_in(k_then);
        let a = self.value(then)?;
        let end_of_then = self.cur;
        self.go_on_in(k_else);
        let b = self.value(otherwise)?;
        let ty = self.chosen_type(a, b, span)?;
        if ty == Types::VOID {
            let after = self.block("after");
            self.jump(after, &[]);
            self.cur = end_of_then;
            self.jump(after, &[]);
            self.go_on_in(after);
            return Ok(Value::Plain(self.w.unit(), ty));
        }
        let (mem, ir) = (self.w.types.mem(), self.types.ir(ty, self.w));
        let cn = self.w.types.cn(&[mem, ir]);
        let after = self.w.declare("after", cn, &["m", "value"]);
        let b = self.convert(b, ty, otherwise.span)?;
        self.jump(after, &[b]);
        self.cur = end_of_then;
        let a = self.convert(a, ty, then.span)?;
        self.jump(after, &[a]);
        self.go_on_in(after);
        Ok(Value::Plain(self.w.param(after, 1), ty))
    }

    /// The type of `c ? a : b`.
    fn chosen_type(&mut self, a: (Val, Ty), b: (Val, Ty), span: Span) -> Lowered<Ty> {
        if a.1 == b.1 || b.1 == Types::ERROR {
            return Ok(a.1);
        }
        if a.1 == Types::ERROR {
            return Ok(b.1);
        }
        let is_zero = |v: (Val, Ty)| self.w.as_lit(v.0) == Some(0);
        match (self.types.kind(a.1).clone(), self.types.kind(b.1).clone()) {
            (Kind::Prim(x), Kind::Prim(y)) => {
                let prim = self.common(x, y);
                Ok(self.types.prim(prim))
            }
            (Kind::Pointer { .. }, Kind::Prim(Prim::I32)) if is_zero(b) => Ok(a.1),
            (Kind::Prim(Prim::I32), Kind::Pointer { .. }) if is_zero(a) => Ok(b.1),
            (Kind::Pointer { to: x, is_const: p }, Kind::Pointer { to: y, is_const: q }) => {
                let void_is_null = |v: (Val, Ty), to| to == Types::VOID && self.w.as_lit(v.0) == Some(0);
                if void_is_null(a, x) {
                    Ok(b.1)
                } else if void_is_null(b, y) {
                    Ok(a.1)
                } else if x == y {
                    Ok(self.types.pointer(x, p || q))
                } else if x == Types::VOID || y == Types::VOID {
                    Ok(self.types.pointer(Types::VOID, p || q))
                } else {
                    Err(Box::new(sierra_type::operands(span, "?:", &self.types.show(a.1), &self.types.show(b.1))))
                }
            }
            _ => Err(Box::new(sierra_type::operands(span, "?:", &self.types.show(a.1), &self.types.show(b.1)))),
        }
    }

    // Postfix operators.

    fn postfix(&mut self, base: &Expr<'s>, mut rest: &[Postfix<'s>]) -> Lowered<Value> {
        let mut span = base.span;
        let mut value = match (&base.kind, rest.split_first()) {
            (ExprKind::Name(name), Some((Postfix { kind: PostfixKind::Call(args), span: end }, others))) => {
                rest = others;
                span.hi = end.hi;
                let (val, ty) = self.call(Name { text: name, span: base.span }, args, span)?;
                Value::Plain(val, ty)
            }
            _ => self.expression(base)?,
        };
        for operator in rest {
            let inner = span;
            span.hi = operator.span.hi;
            self.w.set_origin(span);
            value = match &operator.kind {
                PostfixKind::Call(_) => return Err(Box::new(sierra_type::no_function(inner))),
                PostfixKind::Index(index) => {
                    if let Value::Plain(val, ty) = value
                        && matches!(self.types.kind(ty), Kind::Array(..))
                    {
                        self.mem(inner)?;
                        value = Value::Place(Variable { address: self.slot(val), ty, is_const: true });
                    }
                    let found = self.value(index)?;
                    self.w.set_origin(span);
                    let n = self.index(found, index.span)?;
                    match value {
                        // The array's length stays known.
                        Value::Place(Variable { address, ty, is_const })
                            if let Kind::Array(of, _) = *self.types.kind(ty) =>
                        {
                            Value::Place(Variable { address: self.w.op(Op::Lea, &[address, n]), ty: of, is_const })
                        }
                        value => {
                            let pointer = self.read(value, inner)?;
                            self.w.set_origin(span);
                            Value::Place(self.pointee(pointer, Some(n), inner)?)
                        }
                    }
                }
                PostfixKind::Field(name) => self.field(value, *name, inner)?,
                PostfixKind::Arrow(name) => {
                    let pointer = self.read(value, inner)?;
                    let place = self.pointee(pointer, None, inner)?;
                    self.field(Value::Place(place), *name, inner)?
                }
                PostfixKind::Increment | PostfixKind::Decrement => {
                    let Value::Place(place) = value else {
                        return Err(Box::new(sierra_type::no_place(inner, "`++`")));
                    };
                    if place.is_const {
                        return Err(Box::new(sierra_type::constant(inner)));
                    }
                    let is_up = matches!(operator.kind, PostfixKind::Increment);
                    let (old, ty) = self.count(place, is_up, span)?;
                    Value::Plain(old, ty)
                }
            };
        }
        Ok(value)
    }

    fn field(&mut self, value: Value, name: Name<'s>, span: Span) -> Lowered<Value> {
        let (Value::Plain(_, ty) | Value::Place(Variable { ty, .. })) = value;
        if ty == Types::ERROR {
            return Ok(value);
        }
        let shown = self.types.show(ty);
        let Some(data) = self.types.as_struct(ty) else {
            return Err(Box::new(sierra_type::mismatch(span, &shown, "a struct")));
        };
        let Some(fields) = &data.fields else { return Err(Box::new(sierra_type::incomplete(span, &shown))) };
        let Some(number) = fields.iter().position(|f| f.name == name.text) else {
            return Err(Box::new(sierra_name::field(name.span, name.text, &shown)));
        };
        let ty = fields[number].ty;
        Ok(match value {
            Value::Plain(val, _) => Value::Plain(self.w.extract(val, number as u64), ty),
            Value::Place(Variable { address, is_const, .. }) => {
                Value::Place(Variable { address: self.part(address, number as u64), ty, is_const })
            }
        })
    }

    fn call(&mut self, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let id = match self.find(name.text) {
            Some(Entity::Function(id)) => id,
            Some(_) => return Err(Box::new(sierra_type::no_function(name.span))),
            None => return self.intrinsic(name, args, span),
        };
        let (params, result) = (self.functions[id].params.clone(), self.functions[id].result);
        if params.len() != args.len() {
            let declared = self.functions[id].declared;
            return Err(Box::new(sierra_type::arguments(span, args.len(), params.len(), declared)));
        }
        let mut vals = Vec::new();
        for (arg, &ty) in args.iter().zip(&params) {
            let found = self.value(arg)?;
            self.w.set_origin(arg.span);
            vals.push(self.convert(found, ty, arg.span)?);
        }
        self.mem(span)?;
        self.w.set_origin(span);
        if !self.is_reached() {
            let ir = self.types.ir(result, self.w);
            return Ok((self.w.undef(ir), result));
        }
        let ty = self.return_type(result);
        let k = self.w.declare("called", ty, if result == Types::VOID { &["m"] } else { &["m", "result"] });
        vals.push(self.w.cont_val(k));
        let callee = self.w.cont_val(self.functions[id].k);
        self.end(callee, &vals);
        self.go_on_in(k);
        let val = if result == Types::VOID { self.w.unit() } else { self.w.param(k, 1) };
        Ok((val, result))
    }
}

impl Binary {
    fn word(self) -> &'static str {
        match self {
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::And => "&",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Rem => "%",
        }
    }
}
