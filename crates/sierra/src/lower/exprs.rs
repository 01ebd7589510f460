//! Expressions.

use super::*;
use nyala_ir::layout;

impl<'s> Lowerer<'s, '_> {
    /// The value of an expression, read from memory if it lies there.
    pub(super) fn value(&mut self, e: &Expr<'s>) -> Lowered<(Val, Ty)> {
        if !self.given.is_empty()
            && let Some(&given) = self.given.get(&(std::ptr::from_ref(e) as usize))
        {
            return Ok(given);
        }
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
                Some(Entity::Lanes(at)) => Ok(Value::Lanes(self.lane_references[at].clone())),
                Some(Entity::Constant(n, ty)) => {
                    let prim = self.types.as_prim(ty).unwrap_or(Prim::I32);
                    Ok(Value::Plain(self.w.lit_prim(prim, prim.normalize(n as u64)), ty))
                }
                Some(Entity::Functions(set)) => self.function_value(set, Name { text: name, span: e.span }),
                Some(Entity::Skipped(by)) => {
                    let (what, hint) = match by {
                        SkippedBy::Goto => {
                            ("variables whose declarations a `goto` leaves out", "declare it before the `goto`")
                        }
                        SkippedBy::Case => {
                            ("references whose declarations a `case` leaves out", "declare it before the `switch`")
                        }
                    };
                    Err(Box::new(limitation::not_supported(e.span, what, hint)))
                }
                Some(Entity::Type(_) | Entity::Template(_)) => Err(Box::new(sierra_type::type_as_value(e.span, name))),
                None => Err(Box::new(sierra_name::error(e.span, name))),
            },
            ExprKind::Int(text) => self.int_literal(text, e.span).map(plain),
            ExprKind::Float(text) => self.float_literal(text, e.span).map(plain),
            ExprKind::Char(text) => {
                let bytes = nyala_c_syntax::lexer::unquoted(text);
                let Some([byte]) = bytes.as_deref() else {
                    return Err(Box::new(c_syntax::literal(e.span, text, "character")));
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
                let mut ty = self.type_name(ty)?;
                let found = self.value(operand)?;
                self.w.set_origin(e.span);
                if let (true, Some(n), None) = (self.is_ispc, self.types.lanes(found.1), self.types.lanes(ty))
                    && ty != Types::VOID
                {
                    ty = self.with_lanes(ty, n, e.span)?;
                }
                Ok(Value::Plain(self.cast(found, ty, e.span)?, ty))
            }
            ExprKind::Instance(name, _) => {
                let hint = "call it";
                Err(Box::new(limitation::not_supported(name.span, "pointers to functions of templates", hint)))
            }
            ExprKind::Literal(ty, init) => {
                let ty = self.type_name(ty)?;
                self.complete(ty, e.span)?;
                let val = self.initial_value(ty, init)?;
                Ok(Value::Plain(val, ty))
            }
            ExprKind::List(_) | ExprKind::Compile(_) => Err(Box::new(c_syntax::unexpected(e.span, "{", "a value"))),
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
            ExprKind::Gang => {
                let n = if self.is_ispc { self.gang } else { 1 };
                Ok(Value::Plain(self.w.lit_i32(n as i32), self.types.prim(Prim::I32)))
            }
            ExprKind::New(new) => self.new_value(new, e.span).map(plain),
            ExprKind::Launch(launch) => self.launch(launch, e.span).map(plain),
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
                let ty = found?.ty();
                self.size(ty, e.span).map(plain)
            }
            ExprKind::Chain(first, rest) => {
                let mut value = self.value(first)?;
                let start = first.span;
                for (operator, right) in rest {
                    let right_value = self.value(right)?;
                    let span = through(start, right.span);
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
        let faulty = || Box::new(c_syntax::literal(span, text, "integer"));
        let is_decimal = !text.starts_with("0x") && !text.starts_with("0X");
        if self.is_ispc && is_decimal && text.contains(['d', 'D', 'f', 'F']) {
            // `2d`, `1f16`
            return self.float_of_ispc(text, span);
        }
        // `2k`
        let unit = text.find(['k', 'M', 'G']).filter(|_| self.is_ispc);
        let scale = unit.map_or(0, |at| match text.as_bytes()[at] {
            b'k' => 10,
            b'M' => 20,
            _ => 30,
        });
        let without: String = text.chars().enumerate().filter(|c| Some(c.0) != unit).map(|c| c.1).collect();
        let (digits, radix, suffix) = nyala_c_syntax::lexer::integer(&without);
        let suffix = suffix.to_ascii_lowercase();
        let (is_unsigned, is_long) = match &*suffix {
            "" => (false, false),
            "u" => (true, false),
            "l" | "ll" => (false, true),
            "ul" | "lu" | "ull" | "llu" => (true, true),
            _ => return Err(faulty()),
        };
        let bits = u64::from_str_radix(digits, radix).map_err(|_| faulty())?;
        let bits = bits.checked_mul(1 << scale).ok_or_else(faulty)?;
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
        if self.is_ispc {
            return self.float_of_ispc(text, span);
        }
        let digits = text.trim_end_matches(['f', 'F']);
        // Rust takes fewer forms, and words.
        let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
        let faulty = || Box::new(c_syntax::literal(span, text, "number"));
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

    pub(super) fn size(&mut self, ty: Ty, span: Span) -> Lowered<(Val, Ty)> {
        self.complete(ty, span)?;
        let ir = self.types.ir(ty, self.w);
        let Some((size, _)) = layout::size_align(&self.w.types, ir) else {
            return Err(Box::new(sierra_type::incomplete(span, &self.types.show(ty))));
        };
        Ok((self.w.lit_prim(Prim::U64, size), self.types.prim(Prim::U64)))
    }

    // Places.

    /// A place that is no constant.
    fn changed_place(&mut self, e: &Expr<'s>, what: &str) -> Lowered<Value> {
        let value = match &e.kind {
            ExprKind::Choose(parts) if self.is_ispc => match self.chosen_place(parts, e.span)? {
                Some(place) => place,
                None => return Err(Box::new(sierra_type::no_place(e.span, what))),
            },
            _ => self.expression(e)?,
        };
        self.check_changed(&value, e.span, what)?;
        Ok(value)
    }

    /// `(c ? a : b)` as a place, where the condition is the same in all lanes. `None`: it is none.
    fn chosen_place(&mut self, [condition, then, otherwise]: &[Expr<'s>; 3], span: Span) -> Lowered<Option<Value>> {
        let found = self.value(condition)?;
        if self.types.lanes(found.1).is_some() || self.types.as_short(found.1).is_some() {
            return Ok(None);
        }
        let holds = self.truth(found, condition.span)?;
        let (a, b) = (self.expression(then)?, self.expression(otherwise)?);
        let (Value::Place(a), Value::Place(b)) = (a, b) else { return Ok(None) };
        if a.ty != b.ty {
            return Ok(None);
        }
        let pointer = self.types.pointer(a.ty, false);
        self.w.set_origin(span);
        let (one, other) = (self.retyped(a.address, pointer), self.retyped(b.address, pointer));
        let address = self.w.op(Op::Select, &[holds, one, other]);
        let zero = self.w.lit_i64(0);
        let address = self.w.op(Op::Lea, &[address, zero]);
        Ok(Some(Value::Place(Variable { address, ty: a.ty, is_const: a.is_const || b.is_const })))
    }

    /// What a call gives: where a reference leads to, or a value.
    fn called(&mut self, (val, ty): (Val, Ty)) -> Value {
        let Kind::Reference { to, is_const } = *self.types.kind(ty) else { return Value::Plain(val, ty) };
        let zero = self.w.lit_i64(0);
        Value::Place(Variable { address: self.w.op(Op::Lea, &[val, zero]), ty: to, is_const })
    }

    /// The value behind the result of a call.
    pub(super) fn behind_reference(&mut self, found: (Val, Ty), span: Span) -> Lowered<(Val, Ty)> {
        let value = self.called(found);
        self.read(value, span)
    }

    fn check_changed(&self, value: &Value, span: Span, what: &str) -> Lowered<()> {
        match *value {
            Value::Plain(..) => Err(Box::new(sierra_type::no_place(span, what))),
            Value::Place(Variable { is_const: true, .. })
            | Value::Lanes(Lanes { is_const: true, .. })
            | Value::Soa(soa::SoaPlace { is_const: true, .. }) => Err(Box::new(sierra_type::constant(span))),
            Value::Soa(_) => Ok(()),
            Value::Parts(ref places, _) => places.iter().try_for_each(|place| self.check_changed(place, span, what)),
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
            Value::Soa(place) => {
                let val = self.convert(new, place.ty, span)?;
                self.write_soa(*place, val, span)
            }
            Value::Parts(places, ty) => {
                // All parts are read before the first is written: `v.xy = v.yx`.
                let lanes = self.types.lanes(new.1);
                let ty = if let Some(n) = lanes { self.with_lanes(*ty, n, span)? } else { *ty };
                let val = self.convert(new, ty, span)?;
                let of = self.types.as_short(ty).map_or(ty, |s| s.0);
                for (i, place) in places.iter().enumerate() {
                    let part = self.w.extract(val, i as u64);
                    self.assign_to(place, (part, of), span)?;
                }
                Ok(())
            }
        }
    }

    /// What a pointer leads to.
    fn pointee(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Value> {
        let (val, ty) = self.as_slice((val, ty), span)?;
        if self.types.as_slice(ty).is_some() {
            return self.element_of_slice((val, ty), None, span);
        }
        match *self.types.kind(ty) {
            Kind::Pointer { to, is_const } => {
                self.complete(to, span)?;
                let zero = self.w.lit_i64(0);
                Ok(Value::Place(Variable { address: self.w.op(Op::Lea, &[val, zero]), ty: to, is_const }))
            }
            Kind::VaryingPointer { to, is_const, n } => {
                self.complete(to, span)?;
                let at = At::Addresses(val);
                Ok(Value::Lanes(Lanes { at, n, base: to, steps: Vec::new(), minor: None, ty: to, is_const }))
            }
            _ => Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "a pointer"))),
        }
    }

    /// An element of an array, or of what a pointer leads to.
    fn element(&mut self, value: Value, index: (Val, Ty), spans: [Span; 3]) -> Lowered<Value> {
        let [span, of_value, of_index] = spans;
        let value = match value {
            Value::Plain(val, ty) if matches!(self.types.kind(ty), Kind::Array(..) | Kind::Short(..)) => {
                self.mem(of_value)?;
                Value::Place(Variable { address: self.slot(val), ty, is_const: true })
            }
            value => value,
        };
        let value = match value {
            Value::Lanes(lanes)
                if let Kind::Array(of, length) | Kind::Short(of, length) = *self.types.kind(lanes.ty) =>
            {
                return self.element_of_lanes(lanes, (of, length), index, span);
            }
            Value::Soa(place) if let Kind::Array(of, _) | Kind::Short(of, _) = *self.types.kind(place.ty) => {
                let number = self.index(index, of_index)?;
                if self.types.lanes(index.1).is_some() {
                    let what = "indices in each lane into an array of one element of a `soa<n>` value";
                    let hint = "copy the array to a variable";
                    return Err(Box::new(limitation::not_supported(span, what, hint)));
                }
                return Ok(self.part_of_soa(place, number, of));
            }
            value => value,
        };
        let n = self.index(index, of_index)?;
        let lanes = self.types.lanes(index.1);
        // The length of an array stays known.
        let (address, to, is_const) = match value {
            Value::Place(Variable { address, ty, is_const })
                if let Kind::Array(of, _) | Kind::Short(of, _) = *self.types.kind(ty) =>
            {
                (address, of, is_const)
            }
            value => {
                let found = self.read(value, of_value)?;
                self.w.set_origin(span);
                let (val, ty) = self.as_slice(found, of_value)?;
                if self.types.as_slice(ty).is_some() {
                    return self.element_of_slice((val, ty), Some(index), span);
                }
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
        if matches!(self.types.kind(to), Kind::Soa { .. }) {
            return self.element_of_soa((address, to, is_const), index, [span, of_index]);
        }
        Ok(match lanes {
            None => Value::Place(Variable { address: self.w.op(Op::Lea, &[address, n]), ty: to, is_const }),
            Some(lanes) => Value::Lanes(Lanes {
                at: At::Index(address, n),
                n: lanes,
                base: to,
                steps: Vec::new(),
                minor: None,
                ty: to,
                is_const,
            }),
        })
    }

    /// An element of each lane's array.
    fn element_of_lanes(
        &mut self,
        lanes: Lanes,
        (of, length): (Ty, u64),
        index: (Val, Ty),
        span: Span,
    ) -> Lowered<Value> {
        if let Some(number) = self.w.as_lit(index.0).filter(|n| *n < length) {
            return Ok(Value::Lanes(self.part_of_lanes(lanes, Step::Field(number), of)));
        }
        if lanes.minor.is_some() {
            let numbers = self.numbers(Prim::I64, Some(lanes.n));
            let index = self.convert(index, numbers, span)?;
            return Ok(Value::Lanes(self.part_of_lanes(lanes, Step::Lane(index), of)));
        }
        let (val, _) = self.address_of_lanes(&lanes, span)?;
        let ty = self.types.pointer(of, lanes.is_const);
        let ty = self.with_lanes(ty, lanes.n, span)?;
        let moved = self.moved((val, ty), index, false, span)?;
        self.pointee(moved, span)
    }

    /// A pointer, `index` elements further on, or back.
    pub(super) fn moved(
        &mut self,
        pointer: (Val, Ty),
        index: (Val, Ty),
        is_back: bool,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
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
            Unary::AddressOf if self.is_function(operand) => return self.expression(operand),
            Unary::AddressOf => {
                let place = match self.expression(operand)? {
                    Value::Place(place) => place,
                    Value::Plain(..) | Value::Parts(..) => {
                        return Err(Box::new(sierra_type::no_place(operand.span, "`&`")));
                    }
                    Value::Soa(place) => {
                        let (val, ty) = self.address_of_soa(place, span)?;
                        return Ok(Value::Plain(val, ty));
                    }
                    Value::Lanes(lanes) => {
                        let (val, ty) = self.address_of_lanes(&lanes, span)?;
                        return Ok(Value::Plain(val, ty));
                    }
                };
                let ty = self.types.pointer(place.ty, place.is_const);
                self.depth(ty, span)?;
                return Ok(Value::Plain(self.retyped(place.address, ty), ty));
            }
            Unary::Deref => {
                let found = self.value(operand)?;
                self.w.set_origin(span);
                if matches!(self.types.kind(found.1), Kind::Function(_)) {
                    return Ok(Value::Plain(found.0, found.1));
                }
                return self.pointee(found, span);
            }
            Unary::Increment | Unary::Decrement => {
                let place = self.changed_place(operand, "`++`")?;
                if let Some((val, ty)) =
                    self.counting_operator(&place, operator == Unary::Increment, false, operand.span, span)?
                {
                    return Ok(Value::Plain(val, ty));
                }
                self.count(&place, operator == Unary::Increment, span)?;
                return Ok(place);
            }
            Unary::Not => {
                let found = self.value(operand)?;
                self.w.set_origin(span);
                if let Some(made) =
                    self.struct_operator("operator!", &[(Value::Plain(found.0, found.1), operand.span)], span)?
                {
                    return Ok(Value::Plain(made.0, made.1));
                }
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
        let name = match operator {
            Unary::Plus => "operator+",
            Unary::Negate => "operator-",
            _ => "operator~",
        };
        if let Some(made) = self.struct_operator(name, &[(Value::Plain(val, ty), operand.span)], span)? {
            return Ok(Value::Plain(made.0, made.1));
        }
        if self.types.as_short(ty).is_some() {
            let (val, ty) = self.unary_of_short(operator, (val, ty), span)?;
            return Ok(Value::Plain(val, ty));
        }
        let (val, ty) = self.unary_number(operator, word, (val, ty), span)?;
        Ok(Value::Plain(val, ty))
    }

    pub(super) fn unary_number(
        &mut self,
        operator: Unary,
        word: &str,
        (val, ty): (Val, Ty),
        span: Span,
    ) -> Lowered<(Val, Ty)> {
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
                self.arithmetic(Op::Sub, prim, lanes, [zero, val])
            }
            _ => {
                let ones = self.w.lit(ir, prim.normalize(u64::MAX));
                self.w.op(Op::Xor, &[val, ones])
            }
        };
        Ok((val, to))
    }

    /// A program's own `++` or `--` of a struct, which has another argument if it stands behind its operand.
    fn counting_operator(
        &mut self,
        place: &Value,
        is_up: bool,
        is_behind: bool,
        of: Span,
        span: Span,
    ) -> Lowered<Option<(Val, Ty)>> {
        if !self.is_ispc {
            return Ok(None);
        }
        let name = if is_up { "operator++" } else { "operator--" };
        let (zero, int) = (self.w.lit_i32(0), self.types.prim(Prim::I32));
        let args = [(place.clone(), of), (Value::Plain(zero, int), span)];
        self.struct_operator(name, &args[..1 + usize::from(is_behind)], span)
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
        if let (Some(operator), Value::Place(Variable { ty, .. })) = (operator, &place)
            && self.types.as_struct(*ty).is_some()
        {
            let new = self.expression(value)?;
            let args = [(place.clone(), target.span), (new, value.span)];
            if self.struct_operator(operator.assigning_name(), &args, span)?.is_some() {
                return Ok(place);
            }
            let [(old, _), (new, _)] = args;
            let (old, new) = (self.read(old, target.span)?, self.read(new, value.span)?);
            let new = self.binary(operator, old, new, span)?;
            self.assign_to(&place, new, value.span)?;
            return Ok(place);
        }
        if operator.is_none()
            && self.is_ispc
            && self.types.as_struct(place.ty()).is_some()
            && self.find("operator=").is_some()
        {
            let new = self.expression(value)?;
            let args = [(place.clone(), target.span), (new, value.span)];
            if self.struct_operator("operator=", &args, span)?.is_none() {
                let [_, (new, _)] = args;
                let new = self.read(new, value.span)?;
                self.assign_to(&place, new, value.span)?;
            }
            return Ok(place);
        }
        let mut new = self.value_for(value, place.ty())?;
        if let Some(operator) = operator {
            let old = self.read(place.clone(), target.span)?;
            self.w.set_origin(span);
            new = self.binary(operator, old, new, span)?;
        }
        self.assign_to(&place, new, value.span)?;
        Ok(place)
    }

    // Postfix operators.

    fn postfix(&mut self, base: &Expr<'s>, mut rest: &[Postfix<'s>]) -> Lowered<Value> {
        let mut span = base.span;
        let mut value = match (&base.kind, rest.split_first()) {
            (ExprKind::Name(name), Some((Postfix { kind: PostfixKind::Call(args), span: end }, others))) => {
                rest = others;
                span = through(span, *end);
                let found = self.call(Name { text: name, span: base.span }, &[], args, span)?;
                self.called(found)
            }
            (ExprKind::Instance(name, of), Some((Postfix { kind: PostfixKind::Call(args), span: end }, others))) => {
                rest = others;
                span = through(span, *end);
                let found = self.call(*name, of, args, span)?;
                self.called(found)
            }
            _ => self.expression(base)?,
        };
        for operator in rest {
            let inner = span;
            span = through(span, operator.span);
            self.w.set_origin(span);
            value = match &operator.kind {
                PostfixKind::Call(args) => {
                    let pointer = self.read(value, inner)?;
                    let (val, ty) = self.call_pointer(pointer, args, [span, inner])?;
                    Value::Plain(val, ty)
                }
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
                    let (old, ty) = match self.counting_operator(&value, is_up, true, inner, span)? {
                        Some(found) => found,
                        None => self.count(&value, is_up, span)?,
                    };
                    Value::Plain(old, ty)
                }
            };
        }
        Ok(value)
    }

    fn field(&mut self, value: Value, name: Name<'s>, span: Span) -> Lowered<Value> {
        let ty = value.ty();
        if ty == Types::ERROR {
            return Ok(value);
        }
        if self.types.as_slice(ty).is_some() {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "a struct")));
        }
        if let Some((of, n)) = self.types.as_short(ty) {
            return self.component(value, (of, n), name, span);
        }
        let number = self.field_number(ty, name, span)?;
        let Some(data) = self.types.as_struct(ty) else { return Ok(value) };
        let (is_union, ty_of_all) = (data.is_union, ty);
        let Some(ty) = data.fields.as_ref().and_then(|f| f.get(number)).map(|f| f.ty) else { return Ok(value) };
        if is_union {
            let place = match value {
                Value::Place(place) => place,
                Value::Plain(val, _) => {
                    self.mem(span)?;
                    Variable { address: self.slot(val), ty: ty_of_all, is_const: true }
                }
                _ => {
                    let hint = "read the union of a lane";
                    return Err(Box::new(limitation::not_supported(span, "unions at addresses of each lane", hint)));
                }
            };
            let address = self.union_field(place.address, ty);
            return Ok(Value::Place(Variable { address, ty, is_const: place.is_const }));
        }
        Ok(match value {
            Value::Plain(val, _) => Value::Plain(self.w.extract(val, number as u64), ty),
            Value::Place(Variable { address, is_const, .. }) => {
                Value::Place(Variable { address: self.part(address, number as u64), ty, is_const })
            }
            Value::Lanes(lanes) => Value::Lanes(self.part_of_lanes(lanes, Step::Field(number as u64), ty)),
            Value::Soa(place) => {
                let number = self.w.lit_i64(number as i64);
                self.part_of_soa(place, number, ty)
            }
            // Parts of short vectors, which have no fields.
            Value::Parts(..) => value,
        })
    }

    /// The number of a struct's field.
    pub(super) fn field_number(&mut self, ty: Ty, name: Name<'s>, span: Span) -> Lowered<usize> {
        let shown = self.types.show(ty);
        let Some(data) = self.types.as_struct(ty) else {
            return Err(Box::new(sierra_type::mismatch(span, &shown, "a struct")));
        };
        let Some(fields) = &data.fields else { return Err(Box::new(sierra_type::incomplete(span, &shown))) };
        let number = fields.iter().position(|f| f.name == name.text);
        number.ok_or_else(|| Box::new(sierra_name::field(name.span, name.text, &shown)))
    }

    /// The address of a union as that of a field.
    pub(super) fn union_field(&mut self, address: Val, field: Ty) -> Val {
        let pointer = self.types.pointer(field, false);
        let (address, zero) = (self.retyped(address, pointer), self.w.lit_i64(0));
        self.w.op(Op::Lea, &[address, zero])
    }
}
