//! What lanes of a gang know of each other: reductions, scans, shuffles, and what active lanes read and write side by side.

use super::*;

impl<'s> Lowerer<'s, '_> {
    /// An argument with the gang's lanes.
    pub(super) fn with_gang(&mut self, value: (Val, Ty), span: Span) -> Lowered<(Val, Ty, Prim)> {
        let Some((prim, _)) = self.number_type(value.1) else {
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(value.1), "a number")));
        };
        let ty = self.numbers(prim, Some(self.gang));
        Ok((self.convert(value, ty, span)?, ty, prim))
    }

    /// The values of all lanes, in pairs, until one is left.
    pub(super) fn folded(&mut self, val: Val, mut fold: impl FnMut(&mut Self, Val, Val) -> Val) -> Val {
        let mut vals: Vec<Val> = (0..self.gang)
            .map(|i| {
                let i = self.w.lit_i32(i as i32);
                self.w.op(Op::Extract, &[val, i])
            })
            .collect();
        while vals.len() > 1 {
            vals = vals.chunks(2).map(|pair| if let [a, b] = *pair { fold(self, a, b) } else { pair[0] }).collect();
        }
        vals[0]
    }

    pub(super) fn reduce(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 1, span)?;
        let (val, ty, prim) = self.with_gang(values[0], args[0].span)?;
        // Sums of integers are wider.
        let wide = match prim {
            _ if word != "reduce_add" => prim,
            Prim::I8 => Prim::I16,
            Prim::U8 => Prim::U16,
            Prim::I16 | Prim::Bool => Prim::I32,
            Prim::U16 => Prim::U32,
            Prim::I32 => Prim::I64,
            Prim::U32 => Prim::U64,
            other => other,
        };
        let to = self.numbers(wide, Some(self.gang));
        let val = self.convert((val, ty), to, span)?;
        let ir = self.w.ty(val);
        let neutral = match (word, wide.is_float()) {
            ("reduce_add", true) => self.float_of(-0.0, to, wide),
            ("reduce_add", _) => self.w.lit(ir, 0),
            ("reduce_min", true) => self.float_of(f64::INFINITY, to, wide),
            (_, true) => self.float_of(f64::NEG_INFINITY, to, wide),
            ("reduce_min", _) => {
                let most = u64::MAX >> (64 - wide.bits()) >> u32::from(wide.is_signed());
                self.w.lit(ir, wide.normalize(most))
            }
            _ => self.w.lit(ir, wide.normalize(if wide.is_signed() { 1 << (wide.bits() - 1) } else { 0 })),
        };
        let active = self.active(span)?;
        let val = self.w.op(Op::Select, &[active, val, neutral]);
        let found = self.folded(val, |l, a, b| match word {
            "reduce_add" => l.w.op(Op::Add, &[a, b]),
            word => l.lesser(word == "reduce_min", a, b, wide),
        });
        Ok((found, self.types.prim(wide)))
    }

    /// Whether all active lanes have one value, which may be stored.
    pub(super) fn reduce_equal(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let Some((first, rest)) = args.split_first().filter(|a| a.1.len() < 2) else {
            return Err(self.count_of_arguments(args, 2, span));
        };
        let found = self.value(first)?;
        let ty = self.with_lanes(found.1, self.gang, first.span)?;
        if !matches!(self.types.kind(ty), Kind::Varying(..) | Kind::VaryingPointer { .. } | Kind::VaryingFunction(..)) {
            return Err(Box::new(sierra_type::mismatch(first.span, &self.types.show(ty), "a number or a pointer")));
        }
        let val = self.convert(found, ty, first.span)?;
        let active = self.active(span)?;
        let zero = self.w.lit_i32(0);
        let i = self.next_true(active, self.gang, zero);
        let least = self.w.op(Op::Lt, &[i, zero]);
        let i = self.w.op(Op::Select, &[least, zero, i]);
        let one = self.lane_of(val, ty, i);
        let lane = self.types.lane(ty);
        let all = self.broadcast(one, lane, ty);
        let differs = self.w.op(Op::Ne, &[val, all]);
        let differs = self.w.op(Op::And, &[active, differs]);
        let any = self.any(differs);
        let equal = self.w.not(any);
        if let [place] = rest {
            let inner = self.block("equal");
            let after = self.block("after");
            self.branch(equal, inner, after);
            self.go_on_in(inner);
            self.store_through(place, (one, lane), span)?;
            self.jump(after, &[]);
            self.go_on_in(after);
        }
        Ok((equal, self.types.prim(Prim::Bool)))
    }

    /// Stores where a pointer argument leads, in active lanes if the value has lanes.
    pub(super) fn store_through(&mut self, pointer: &Expr<'s>, new: (Val, Ty), span: Span) -> Lowered<()> {
        let (address, to, is_const) = self.memory(pointer)?;
        if is_const {
            return Err(Box::new(sierra_type::constant(pointer.span)));
        }
        let val = self.convert(new, to, span)?;
        let zero = self.w.lit_i64(0);
        let at = self.w.op(Op::Lea, &[address, zero]);
        self.store_lanes(at, val, to, span)
    }

    /// A pointer that is the same in all lanes, with what it leads to; or the address of a variable that is passed as a reference.
    pub(super) fn memory(&mut self, pointer: &Expr<'s>) -> Lowered<(Val, Ty, bool)> {
        let value = self.expression(pointer)?;
        if let Value::Place(place) = &value
            && self.number_type(place.ty).is_some()
        {
            let ty = self.types.pointer(place.ty, place.is_const);
            return Ok((self.retyped(place.address, ty), place.ty, place.is_const));
        }
        let (val, ty) = self.read(value, pointer.span)?;
        match *self.types.kind(ty) {
            Kind::Pointer { to, is_const } => Ok((val, to, is_const)),
            _ => Err(Box::new(sierra_type::mismatch(pointer.span, &self.types.show(ty), "a `uniform` pointer"))),
        }
    }

    pub(super) fn sequence(&mut self, prim: Prim) -> Val {
        let ty = self.numbers(prim, Some(self.gang));
        let ir = self.types.ir(ty, self.w);
        let numbers: Vec<Val> = (0..self.gang).map(|i| self.w.lit_prim(prim, i.into())).collect();
        self.w.op_ty(Op::Array, ir, &numbers)
    }

    /// Places side by side, one for each lane.
    pub(super) fn gang_at(&mut self, pointer: Val, to: Ty) -> Lanes {
        let index = self.sequence(Prim::I64);
        let (steps, minor) = (Vec::new(), None);
        Lanes { at: At::Index(pointer, index), n: self.gang, base: to, steps, minor, ty: to, is_const: false }
    }

    /// For each lane the value `by` lanes before it; `fill` for the first ones.
    pub(super) fn delayed(&mut self, val: Val, by: u32, fill: Val) -> Val {
        let index = self.numbers(Prim::I32, Some(self.gang));
        let ir = self.types.ir(index, self.w);
        let n = self.gang;
        let at = |i: u32| if i < by { n } else { i - by };
        let numbers: Vec<Val> = (0..n).map(|i| self.w.lit_i32(at(i) as i32)).collect();
        let index = self.w.op_ty(Op::Array, ir, &numbers);
        self.w.op(Op::Shuffle, &[val, fill, index])
    }

    pub(super) fn scan(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 1, span)?;
        let mut value = values[0];
        if let Some((prim, lanes)) = self.number_type(value.1) {
            let prim = self.promoted(prim);
            let ty = self.numbers(prim, lanes);
            value = (self.convert(value, ty, args[0].span)?, ty);
        }
        let (val, ty, prim) = self.with_gang(value, args[0].span)?;
        if prim.is_float() && word != "exclusive_scan_add" {
            return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
        }
        let (op, ir) = (
            match word {
                "exclusive_scan_add" => Op::Add,
                "exclusive_scan_and" => Op::And,
                _ => Op::Or,
            },
            self.w.ty(val),
        );
        let neutral = self.w.lit(ir, if op == Op::And { prim.normalize(u64::MAX) } else { 0 });
        let active = self.active(span)?;
        let val = self.w.op(Op::Select, &[active, val, neutral]);
        let mut sum = self.delayed(val, 1, neutral);
        let mut by = 1;
        while by < self.gang {
            let before = self.delayed(sum, by, neutral);
            sum = self.w.op(op, &[sum, before]);
            by *= 2;
        }
        Ok((sum, ty))
    }

    pub(super) fn moved_lanes(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let n_args = if word == "shuffle" && args.len() == 3 { 3 } else { 2 };
        let values = self.arguments(args, n_args, span)?;
        let (val, ty, _) = self.with_gang(values[0], args[0].span)?;
        let int = self.types.prim(Prim::I32);
        let n = self.w.lit_i32(self.gang as i32);
        let ints = self.numbers(Prim::I32, Some(self.gang));
        let ir = self.types.ir(ints, self.w);
        let all_n = self.w.op_ty(Op::Splat, ir, &[n]);
        let zero = self.w.lit(ir, 0);
        if word == "broadcast" {
            let i = self.convert(values[1], int, args[1].span)?;
            let one = self.w.op(Op::Extract, &[val, i]);
            let lane = self.types.lane(ty);
            return Ok((self.broadcast(one, lane, ty), ty));
        }
        if word == "shuffle" {
            let second = if n_args == 3 { self.with_gang(values[1], args[1].span)? } else { (val, ty, Prim::I32) };
            let last = n_args - 1;
            let index = self.convert(values[last], ints, args[last].span)?;
            // Lanes that are not active may have any number.
            let most = if n_args == 3 { self.w.op(Op::Add, &[all_n, all_n]) } else { all_n };
            let (above, below) = (self.w.op(Op::Ge, &[index, zero]), self.w.op(Op::Lt, &[index, most]));
            let fits = self.w.op(Op::And, &[above, below]);
            let index = self.w.op(Op::Select, &[fits, index, zero]);
            let second = self.convert((second.0, second.1), ty, span)?;
            return Ok((self.w.op(Op::Shuffle, &[val, second, index]), ty));
        }
        let offset = self.convert(values[1], int, args[1].span)?;
        let lanes = self.sequence(Prim::I32);
        if word == "rotate" {
            let offset = self.w.op(Op::Rem, &[offset, n]);
            let offset = self.w.op(Op::Add, &[offset, n]);
            let offset = self.w.op_ty(Op::Splat, ir, &[offset]);
            let index = self.w.op(Op::Add, &[lanes, offset]);
            let index = self.w.op(Op::Rem, &[index, all_n]);
            return Ok((self.w.op(Op::Shuffle, &[val, val, index]), ty));
        }
        let offset = self.w.op_ty(Op::Splat, ir, &[offset]);
        let index = self.w.op(Op::Add, &[lanes, offset]);
        let (above, below) = (self.w.op(Op::Ge, &[index, zero]), self.w.op(Op::Lt, &[index, all_n]));
        let fits = self.w.op(Op::And, &[above, below]);
        let index = self.w.op(Op::Select, &[fits, index, all_n]);
        let of_val = self.w.ty(val);
        let fill = self.w.lit(of_val, 0);
        Ok((self.w.op(Op::Shuffle, &[val, fill, index]), ty))
    }

    /// Active lanes read or write elements side by side. Returns how many they are.
    pub(super) fn packed(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let [pointer, other] = args else { return Err(self.count_of_arguments(args, 2, span)) };
        let (base, to, _) = self.memory(pointer)?;
        let active = self.active(span)?;
        let long = self.numbers(Prim::I64, Some(self.gang));
        let ir = self.types.ir(long, self.w);
        let (one, zero) = (self.w.lit(ir, 1), self.w.lit(ir, 0));
        let ones = self.w.op(Op::Select, &[active, one, zero]);
        let mut index = self.delayed(ones, 1, zero);
        let mut by = 1;
        while by < self.gang {
            let before = self.delayed(index, by, zero);
            index = self.w.op(Op::Add, &[index, before]);
            by *= 2;
        }
        let mut lanes = self.gang_at(base, to);
        lanes.at = At::Index(base, index);
        if word == "packed_load_active" {
            let found = self.gather(&lanes, span)?;
            self.store_through(other, found, span)?;
        } else {
            let found = self.value(other)?;
            let ty = self.with_lanes(to, self.gang, span)?;
            let val = self.convert(found, ty, other.span)?;
            self.scatter(&lanes, val, ty, span)?;
        }
        let bits = self.active_bits(span)?;
        let count = self.w.op(Op::Popcount, &[bits]);
        let ir = self.w.types.i32();
        Ok((self.w.op_ty(Op::Cast, ir, &[count]), self.types.prim(Prim::I32)))
    }

    /// `aos_to_soa3(a, &x, &y, &z)`: element `3 * i + k` of the array is lane `i` of value `k`; and back.
    pub(super) fn transposed(
        &mut self,
        word: &str,
        args: &[Expr<'s>],
        is_load: bool,
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let k = u64::from(word.as_bytes()[word.len() - 1] - b'0');
        if args.len() as u64 != k + 1 {
            return Err(self.count_of_arguments(args, k as usize + 1, span));
        }
        let (array, parts) = if is_load { (&args[0], &args[1..]) } else { (&args[k as usize], &args[..k as usize]) };
        let (base, to, _) = self.memory(array)?;
        if self.types.as_prim(to).is_none() {
            return Err(Box::new(sierra_type::mismatch(
                array.span,
                &self.types.show(to),
                "elements that are `uniform` numbers",
            )));
        }
        let ty = self.with_lanes(to, self.gang, span)?;
        let ir = self.types.ir(ty, self.w);
        for (part, place) in parts.iter().enumerate() {
            let val = if is_load {
                None
            } else {
                let found = self.value(place)?;
                Some(self.convert(found, ty, place.span)?)
            };
            let mut vals = Vec::new();
            for i in 0..u64::from(self.gang) {
                let number = self.w.lit_i64((k * i + part as u64) as i64);
                let at = self.w.op(Op::Lea, &[base, number]);
                match val {
                    None => vals.push(self.load(at, span)?),
                    Some(val) => {
                        let i = self.w.lit_i32(i as i32);
                        let one = self.lane_of(val, ty, i);
                        self.store(at, one, span)?;
                    }
                }
            }
            if is_load {
                let val = self.w.op_ty(Op::Array, ir, &vals);
                self.store_through(place, (val, ty), span)?;
            }
        }
        Ok((self.w.unit(), Types::VOID))
    }
}
