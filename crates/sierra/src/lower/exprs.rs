//! Expressions.

use super::*;
use nyala_ir::layout;

impl<'s> Lowerer<'s, '_> {
    /// The value of an expression, read from memory if it lies there.
    pub(super) fn value(&mut self, e: &Expr<'s>) -> Lowered<(Val, Ty)> {
        let value = self.expression(e)?;
        let found = self.read(value, e.span)?;
        self.fits_mode(found.1, e.span)?;
        Ok(found)
    }

    /// The type of an expression's value, which is not computed.
    pub(super) fn type_of(&mut self, e: &Expr<'s>) -> Lowered<Ty> {
        let key = std::ptr::from_ref(e) as usize;
        if let Some(&ty) = self.known.get(&key) {
            return Ok(ty);
        }
        let (cur, mode) = (self.cur, self.mode);
        if cur.is_some() {
            let unused = self.block("unreached");
            self.go_on_in(unused);
        }
        let found = self.value(e);
        (self.cur, self.mode) = (cur, mode);
        let (_, ty) = found?;
        self.known.insert(key, ty);
        Ok(ty)
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
            ExprKind::Literal(ty, init) => {
                let ty = self.type_name(ty)?;
                self.complete(ty, e.span)?;
                let val = self.initial_value(ty, init)?;
                Ok(Value::Plain(val, ty))
            }
            ExprKind::Sequence(length) => {
                let n = self.length(length)?;
                let ty = self.numbers(Prim::I32, Some(n));
                let ir = self.types.ir(ty, self.w);
                let numbers: Vec<Val> = (0..n).map(|i| self.w.lit_i32(i as i32)).collect();
                let val = if n == 1 { numbers[0] } else { self.w.op_ty(Op::Array, ir, &numbers) };
                Ok(Value::Plain(val, ty))
            }
            ExprKind::Mask => {
                let Some(mode) = self.mode else {
                    return Err(Box::new(sierra_lanes::no_mode(e.span, "current_mask")));
                };
                let mask = self.load(mode.mask, e.span)?;
                Ok(Value::Plain(self.bools(mask), self.numbers(Prim::Bool, Some(mode.n))))
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
                let mode = self.mode;
                let found = self.expression(operand);
                (self.cur, self.mode) = (cur, mode);
                let (Value::Plain(_, ty) | Value::Place(Variable { ty, .. }) | Value::Lanes(Lanes { ty, .. })) = found?;
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
            Value::Lanes(..) => {
                let hint = "compute the pointer with lanes: `a + i`";
                Err(Box::new(limitation::not_supported(e.span, "addresses of places with lanes", hint)))
            }
        }
    }

    /// A place that is no constant.
    fn changed_place(&mut self, e: &Expr<'s>, what: &str) -> Lowered<Value> {
        let value = self.expression(e)?;
        self.check_changed(&value, e.span, what)?;
        Ok(value)
    }

    fn check_changed(&self, value: &Value, span: Span, what: &str) -> Lowered<()> {
        match *value {
            Value::Plain(..) => Err(Box::new(sierra_type::no_place(span, what))),
            Value::Place(Variable { is_const: true, .. }) | Value::Lanes(Lanes { is_const: true, .. }) => {
                Err(Box::new(sierra_type::constant(span)))
            }
            Value::Place(Variable { ty, .. }) => self.fits_mode(ty, span),
            Value::Lanes(Lanes { n, .. }) => self.same_mode(n, span),
        }
    }

    /// Stores what a value converts to.
    fn assign_to(&mut self, place: &Value, new: (Val, Ty), span: Span) -> Lowered<()> {
        self.w.set_origin(span);
        match place {
            Value::Plain(..) => Ok(()),
            Value::Place(Variable { address, ty, .. }) => {
                let val = self.convert(new, *ty, span)?;
                self.store_lanes(*address, val, *ty, span)
            }
            Value::Lanes(lanes) => {
                let ty = self.with_lanes(lanes.ty, lanes.n, span)?;
                let val = self.convert(new, ty, span)?;
                self.scatter(lanes, val, ty, span)
            }
        }
    }

    /// What a pointer leads to.
    fn pointee(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Value> {
        match *self.types.kind(ty) {
            Kind::Pointer { to, is_const } => {
                self.complete(to, span)?;
                let zero = self.w.lit_i64(0);
                Ok(Value::Place(Variable { address: self.w.op(Op::Lea, &[val, zero]), ty: to, is_const }))
            }
            Kind::VaryingPointer { to, is_const, n } => {
                self.complete(to, span)?;
                let at = At::Addresses(val);
                Ok(Value::Lanes(Lanes { at, n, base: to, fields: Vec::new(), ty: to, is_const }))
            }
            _ => Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "a pointer"))),
        }
    }

    /// An element of an array, or of what a pointer leads to.
    fn element(&mut self, value: Value, index: (Val, Ty), spans: [Span; 3]) -> Lowered<Value> {
        let [span, of_value, of_index] = spans;
        let value = match value {
            Value::Plain(val, ty) if matches!(self.types.kind(ty), Kind::Array(..)) => {
                self.mem(of_value)?;
                Value::Place(Variable { address: self.slot(val), ty, is_const: true })
            }
            value => value,
        };
        let n = self.index(index, of_index)?;
        let lanes = self.types.lanes(index.1);
        // The length of an array stays known.
        let (address, to, is_const) = match value {
            Value::Place(Variable { address, ty, is_const }) if let Kind::Array(of, _) = *self.types.kind(ty) => {
                (address, of, is_const)
            }
            value => {
                let (val, ty) = self.read(value, of_value)?;
                self.w.set_origin(span);
                match *self.types.kind(ty) {
                    Kind::Pointer { to, is_const } => {
                        self.complete(to, span)?;
                        (val, to, is_const)
                    }
                    Kind::VaryingPointer { .. } => {
                        let moved = self.moved((val, ty), index, false, span)?;
                        return self.pointee(moved, of_value);
                    }
                    _ => {
                        return Err(Box::new(sierra_type::mismatch(of_value, &self.types.show(ty), "a pointer")));
                    }
                }
            }
        };
        self.w.set_origin(span);
        Ok(match lanes {
            None => Value::Place(Variable { address: self.w.op(Op::Lea, &[address, n]), ty: to, is_const }),
            Some(lanes) => Value::Lanes(Lanes {
                at: At::Index(address, n),
                n: lanes,
                base: to,
                fields: Vec::new(),
                ty: to,
                is_const,
            }),
        })
    }

    /// A pointer, `index` elements further on, or back.
    fn moved(&mut self, pointer: (Val, Ty), index: (Val, Ty), is_back: bool, span: Span) -> Lowered<(Val, Ty)> {
        let lane = self.types.lane(pointer.1);
        let Kind::Pointer { to, .. } = *self.types.kind(lane) else {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(pointer.1), "a pointer")));
        };
        self.complete(to, span)?;
        let mut n = self.index(index, span)?;
        if is_back {
            let ir = self.w.ty(n);
            let zero = self.w.lit(ir, 0);
            n = self.w.op(Op::Sub, &[zero, n]);
        }
        let Some(lanes) = self.common_lanes(pointer.1, index.1, span)? else {
            let address = self.w.op(Op::Lea, &[pointer.0, n]);
            return Ok((self.retyped(address, pointer.1), pointer.1));
        };
        let ty = self.with_lanes(lane, lanes, span)?;
        let words = self.numbers(Prim::U64, Some(lanes));
        let base = self.convert(pointer, ty, span)?;
        let n = {
            let from = match self.types.lanes(index.1) {
                Some(_) => self.numbers(Prim::I64, Some(lanes)),
                None => self.types.prim(Prim::I64),
            };
            let ir = self.types.ir(from, self.w);
            let n = if self.w.ty(n) == ir { n } else { self.w.op_ty(Op::Cast, ir, &[n]) };
            self.convert((n, from), words, span)?
        };
        let (size, long) = self.size(to, span)?;
        let size = self.convert((size, long), words, span)?;
        let bytes = self.w.op(Op::Mul, &[n, size]);
        Ok((self.w.op(Op::Add, &[base, bytes]), ty))
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
                return self.pointee(found, span);
            }
            Unary::Increment | Unary::Decrement => {
                let place = self.changed_place(operand, "`++`")?;
                self.count(&place, operator == Unary::Increment, span)?;
                return Ok(place);
            }
            Unary::Not => {
                let found = self.value(operand)?;
                self.w.set_origin(span);
                let val = self.truth(found, operand.span)?;
                let ty = self.numbers(Prim::Bool, self.types.lanes(found.1));
                return Ok(Value::Plain(self.w.not(val), ty));
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
        let is_fit = |p: &(Prim, _)| operator != Unary::Complement || !p.0.is_float();
        let Some((prim, lanes)) = self.number_type(ty).filter(is_fit) else {
            return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
        };
        let prim = self.promoted(prim);
        let to = self.numbers(prim, lanes);
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
    fn count(&mut self, place: &Value, is_up: bool, span: Span) -> Lowered<(Val, Ty)> {
        let old = self.read(place.clone(), span)?;
        let one = self.int(1);
        let operator = if is_up { Binary::Add } else { Binary::Sub };
        let new = self.binary(operator, old, one, span)?;
        self.assign_to(place, new, span)?;
        Ok(old)
    }

    fn assign(&mut self, operator: Option<Binary>, parts: &[Expr<'s>; 2], span: Span) -> Lowered<Value> {
        let [target, value] = parts;
        let place = self.changed_place(target, "`=`")?;
        if let Value::Place(Variable { ty, .. }) | Value::Lanes(Lanes { ty, .. }) = place
            && matches!(self.types.kind(ty), Kind::Array(..))
        {
            let found = self.types.show(ty);
            return Err(Box::new(sierra_type::mismatch(target.span, &found, "a variable that is no array")));
        }
        let mut new = self.value(value)?;
        if let Some(operator) = operator {
            let old = self.read(place.clone(), target.span)?;
            self.w.set_origin(span);
            new = self.binary(operator, old, new, span)?;
        }
        self.assign_to(&place, new, value.span)?;
        Ok(place)
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
        let is_comparison =
            matches!(operator, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge);
        let (Some((a, _)), Some((b, _))) = (self.number_type(left.1), self.number_type(right.1)) else {
            return self.binary_of_pointers(operator, is_comparison, left, right, span);
        };
        let lanes = self.common_lanes(left.1, right.1, span)?;
        let is_shift = matches!(operator, Binary::Shl | Binary::Shr);
        let prim = if is_shift { self.promoted(a) } else { self.common(a, b) };
        let needs_int = is_shift || matches!(operator, Binary::Or | Binary::Xor | Binary::And | Binary::Rem);
        if needs_int && (prim.is_float() || b.is_float()) {
            return Err(self.no_operands(operator, left.1, right.1, span));
        }
        let ty = self.numbers(prim, lanes);
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
            Binary::Div | Binary::Rem => return Ok((self.quotient(operator, prim, [x, y], lanes, span)?, ty)),
        };
        let val = self.w.op(op, &[x, y]);
        Ok((val, if is_comparison { self.numbers(Prim::Bool, lanes) } else { ty }))
    }

    fn quotient(
        &mut self,
        operator: Binary,
        prim: Prim,
        [x, mut y]: [Val; 2],
        lanes: Option<u32>,
        span: Span,
    ) -> Lowered<Val> {
        let (partial, total) = if operator == Binary::Div { (Op::PDiv, Op::Div) } else { (Op::PRem, Op::Rem) };
        if self.is_constant {
            // -1 may overflow.
            let is_safe = |y: u64| y != 0 && !(prim.is_signed() && y == u64::MAX);
            return match self.w.as_lit(y) {
                Some(bits) if is_safe(bits) => Ok(self.w.op(total, &[x, y])),
                _ => Err(Box::new(sierra_constant::error(span))),
            };
        }
        let mem = self.mem(span)?;
        if let Some(mode) = self.mode.filter(|m| Some(m.n) == lanes) {
            // Lanes that are not active may divide by zero.
            let mask = self.load(mode.mask, span)?;
            let (active, ir) = (self.bools(mask), self.w.ty(y));
            let one = self.w.lit(ir, 1);
            y = self.w.op(Op::Select, &[active, y, one]);
        }
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
        let target = |l: &Self, ty| match *l.types.kind(ty) {
            Kind::Pointer { to, .. } | Kind::VaryingPointer { to, .. } => Some(to),
            _ => None,
        };
        let lanes = self.common_lanes(left.1, right.1, span)?;
        let fault = self.no_operands(operator, left.1, right.1, span);
        match (target(self, left.1), target(self, right.1)) {
            (Some(a), Some(b)) if is_comparison || operator == Binary::Sub => {
                if a != b && !(is_comparison && (a == Types::VOID || b == Types::VOID)) {
                    return Err(fault);
                }
                let word = if is_comparison { Prim::U64 } else { Prim::I64 };
                let (address, number) = (self.numbers(word, lanes), self.types.prim(word));
                let mut bits = |v: (Val, Ty)| {
                    let is_varying = self.types.is_varying(v.1);
                    let ir = if is_varying { address } else { number };
                    let ir = self.types.ir(ir, self.w);
                    let val = self.w.op_ty(if is_varying { Op::Cast } else { Op::Bitcast }, ir, &[v.0]);
                    if is_varying { val } else { self.broadcast(val, number, address) }
                };
                let [x, y] = [bits(left), bits(right)];
                if operator == Binary::Sub {
                    let size = self.size(a, span)?;
                    let size = self.convert(size, address, span)?;
                    let bytes = self.w.op(Op::Sub, &[x, y]);
                    // A size is never 0 or -1.
                    let n = self.w.op(Op::Div, &[bytes, size]);
                    return Ok((n, address));
                }
                let op = match operator {
                    Binary::Eq => Op::Eq,
                    Binary::Ne => Op::Ne,
                    Binary::Lt => Op::Lt,
                    Binary::Le => Op::Le,
                    Binary::Gt => Op::Gt,
                    _ => Op::Ge,
                };
                Ok((self.w.op(op, &[x, y]), self.numbers(Prim::Bool, lanes)))
            }
            // A literal 0 is a null pointer.
            (Some(_), None) if is_comparison && self.w.as_lit(right.0) == Some(0) => {
                let ty = self.types.lane(left.1);
                let null = (self.null(ty), ty);
                self.binary_of_pointers(operator, true, left, null, span)
            }
            (None, Some(_)) if is_comparison && self.w.as_lit(left.0) == Some(0) => {
                let ty = self.types.lane(right.1);
                let null = (self.null(ty), ty);
                self.binary_of_pointers(operator, true, null, right, span)
            }
            (Some(_), None) if matches!(operator, Binary::Add | Binary::Sub) => {
                if self.number_type(right.1).is_none_or(|(prim, _)| prim.is_float()) {
                    return Err(fault);
                }
                self.moved(left, right, operator == Binary::Sub, span)
            }
            (None, Some(_)) if operator == Binary::Add => self.binary_of_pointers(operator, false, right, left, span),
            _ => Err(fault),
        }
    }

    /// An integer, or one in each lane, as an index.
    fn index(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Val> {
        match self.number_type(ty) {
            Some((prim, lanes)) if !prim.is_float() => {
                let long = self.numbers(if prim == Prim::U64 { Prim::U64 } else { Prim::I64 }, lanes);
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
        let mut lanes = None;
        for e in values {
            let ty = self.type_of(e)?;
            lanes = lanes.or(self.types.lanes(ty));
        }
        if let Some(n) = lanes {
            return self.logic_of_lanes(is_or, values, n);
        }
        let (mem, bool) = (self.w.types.mem(), self.w.types.bool());
        let cn = self.w.types.cn(&[mem, bool]);
        let after = self.w.declare("after", cn, &["m", "holds"]);
        let decided = self.block("decided");
        for e in before {
            let found = self.value(e)?;
            let holds = self.truth(found, e.span)?;
            let more = self.block("more");
            if is_or {
                self.branch(holds, decided, more)
            } else {
                self.branch(holds, more, decided)
            }
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

    fn logic_of_lanes(&mut self, is_or: bool, values: &[Expr<'s>], n: u32) -> Lowered<Value> {
        let ty = self.numbers(Prim::Bool, Some(n));
        let decision = self.w.lit_bool(!is_or);
        let bools = self.mask_type(n);
        let decision = self.w.op_ty(Op::Splat, bools, &[decision]);
        let found = self.slot(decision);
        for e in values {
            self.same_mode(n, e.span)?;
            // The lanes for which nothing is decided yet.
            let so_far = self.load(found, e.span)?;
            let open = if is_or { self.w.not(so_far) } else { so_far };
            let (mask, open) = (self.current_mask(n, e.span)?, self.mask_of_bools(open));
            let mask = self.w.op(Op::And, &[mask, open]);
            self.region(n, mask, |l| {
                let value = l.value(e)?;
                let holds = l.truth(value, e.span)?;
                let bool = l.numbers(Prim::Bool, l.types.lanes(value.1));
                let holds = l.convert((holds, bool), ty, e.span)?;
                l.store_lanes(found, holds, ty, e.span)
            })?;
        }
        let span = values.first().map_or(Span::NONE, |e| e.span);
        Ok(Value::Plain(self.load(found, span)?, ty))
    }

    /// `c ? a : b` where the condition has lanes.
    fn choose_lanes(&mut self, condition: (Val, u32), [then, otherwise]: [&Expr<'s>; 2], span: Span) -> Lowered<Value> {
        let (a, b) = (self.type_of(then)?, self.type_of(otherwise)?);
        let (holds, n) = condition;
        let undef = [a, b].map(|ty| {
            let ir = self.types.ir(ty, self.w);
            (self.w.undef(ir), ty)
        });
        let ty = self.chosen_type(undef[0], undef[1], span)?;
        let ty = self.with_lanes(ty, n, span)?;
        let zero = self.zero(ty);
        let chosen = self.slot(zero);
        let assign = |l: &mut Self, e: &Expr<'s>| {
            let found = l.value(e)?;
            let val = l.convert(found, ty, e.span)?;
            l.store_lanes(chosen, val, ty, e.span)
        };
        self.if_lanes(holds, n, span, |l| assign(l, then), |l| assign(l, otherwise))?;
        Ok(Value::Plain(self.load(chosen, span)?, ty))
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
        if let Some(n) = self.types.lanes(found.1) {
            return self.choose_lanes((holds, n), [then, otherwise], span);
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
        if let (Some((x, _)), Some((y, _))) = (self.number_type(a.1), self.number_type(b.1)) {
            let lanes = self.common_lanes(a.1, b.1, span)?;
            let prim = self.common(x, y);
            return Ok(self.numbers(prim, lanes));
        }
        if self.common_lanes(a.1, b.1, span)?.is_some() && self.types.lane(a.1) == self.types.lane(b.1) {
            return Ok(if self.types.is_varying(a.1) { a.1 } else { b.1 });
        }
        let is_zero = |v: (Val, Ty)| self.w.as_lit(v.0) == Some(0);
        match (self.types.kind(a.1).clone(), self.types.kind(b.1).clone()) {
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
                    let found = self.value(index)?;
                    self.w.set_origin(span);
                    self.element(value, found, [span, inner, index.span])?
                }
                PostfixKind::Field(name) => self.field(value, *name, inner)?,
                PostfixKind::Arrow(name) => {
                    let pointer = self.read(value, inner)?;
                    let place = self.pointee(pointer, inner)?;
                    self.field(place, *name, inner)?
                }
                PostfixKind::Increment | PostfixKind::Decrement => {
                    self.check_changed(&value, inner, "`++`")?;
                    let is_up = matches!(operator.kind, PostfixKind::Increment);
                    let (old, ty) = self.count(&value, is_up, span)?;
                    Value::Plain(old, ty)
                }
            };
        }
        Ok(value)
    }

    fn field(&mut self, value: Value, name: Name<'s>, span: Span) -> Lowered<Value> {
        let (Value::Plain(_, ty) | Value::Place(Variable { ty, .. }) | Value::Lanes(Lanes { ty, .. })) = value;
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
            Value::Lanes(mut lanes) => {
                lanes.fields.push(number as u64);
                Value::Lanes(Lanes { ty, ..lanes })
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
        let mut found = Vec::new();
        for arg in args {
            found.push(self.value(arg)?);
        }
        let simd = self.functions[id].simd;
        if let (Some(mode), None) = (self.mode.filter(|m| m.is_real()), simd) {
            if params.iter().any(|&ty| self.types.is_varying(ty)) {
                let hint = format!("declare it `simd({})`", mode.n);
                let what = "calls in SIMD mode of functions that have lanes, but not the mode,";
                return Err(Box::new(limitation::not_supported(span, what, &hint)));
            }
            if found.iter().any(|f| self.types.is_varying(f.1)) {
                return self.call_for_each(id, &found, args, mode, span);
            }
        }
        let mut vals = Vec::new();
        if let Some(n) = simd {
            self.same_mode(n, span)?;
            let mask = self.current_mask(n, span)?;
            vals.push(self.bools(mask));
        }
        for ((found, &ty), arg) in found.into_iter().zip(&params).zip(args) {
            self.w.set_origin(arg.span);
            vals.push(self.convert(found, ty, arg.span)?);
        }
        let val = self.call_with(id, vals, span)?;
        Ok((val, result))
    }

    fn call_with(&mut self, id: usize, mut vals: Vec<Val>, span: Span) -> Lowered<Val> {
        let result = self.functions[id].result;
        self.mem(span)?;
        self.w.set_origin(span);
        if !self.is_reached() {
            let ir = self.types.ir(result, self.w);
            return Ok(self.w.undef(ir));
        }
        let ty = self.return_type(result);
        let k = self.w.declare("called", ty, if result == Types::VOID { &["m"] } else { &["m", "result"] });
        vals.push(self.w.cont_val(k));
        let callee = self.w.cont_val(self.functions[id].k);
        self.end(callee, &vals);
        self.go_on_in(k);
        Ok(if result == Types::VOID { self.w.unit() } else { self.w.param(k, 1) })
    }

    /// Calls a function that knows nothing of lanes for each active lane.
    fn call_for_each(
        &mut self,
        id: usize,
        found: &[(Val, Ty)],
        args: &[Expr<'s>],
        mode: super::lanes::Mode,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let (params, result) = (self.functions[id].params.clone(), self.functions[id].result);
        let ty = if result == Types::VOID { result } else { self.with_lanes(result, mode.n, span)? };
        if !matches!(self.types.kind(ty), Kind::Void | Kind::Varying(..)) {
            let hint = format!("declare it `simd({})`", mode.n);
            return Err(Box::new(limitation::not_supported(
                span,
                "calls for each lane whose results are no numbers",
                &hint,
            )));
        }
        let results = (ty != Types::VOID).then(|| {
            let zero = self.zero(ty);
            self.slot(zero)
        });
        let mask = self.load(mode.mask, span)?;
        let active = self.bools(mask);
        for i in 0..mode.n {
            let number = self.w.lit_i32(i as i32);
            let is_active = self.w.op(Op::Extract, &[active, number]);
            let (call, next) = (self.block("lane"), self.block("next"));
            self.branch(is_active, call, next);
            self.go_on_in(call);
            let mut vals = Vec::new();
            for ((&(val, from), &to), arg) in found.iter().zip(&params).zip(args) {
                let val = self.lane_of(val, from, number);
                let lane = self.types.lane(from);
                vals.push(self.convert((val, lane), to, arg.span)?);
            }
            let val = self.call_with(id, vals, span)?;
            if let Some(results) = results {
                let old = self.load(results, span)?;
                let new = self.w.op(Op::Insert, &[old, number, val]);
                self.store(results, new, span)?;
            }
            self.jump(next, &[]);
            self.go_on_in(next);
        }
        match results {
            Some(results) => Ok((self.load(results, span)?, ty)),
            None => Ok((self.w.unit(), ty)),
        }
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
