//! Memory that the library moves, and what is atomic.

use super::*;

/// The most bytes of `alloca` that lie in the function's own memory.
const MAX_OWN: u64 = 1 << 16;
/// What lies before memory that a function gives back: the address of the piece before, and what keeps vectors aligned.
const HEAD: i64 = 64;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn moved_memory(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let mut values = self.arguments(args, 3, span)?;
        for (value, arg) in values.iter_mut().zip(args) {
            *value = self.block_of(*value, arg.span)?;
        }
        let is_each = values[..2].iter().any(|v| matches!(self.types.kind(v.1), Kind::VaryingPointer { .. }));
        if is_each && !values.iter().any(|v| v.1 == Types::ERROR) {
            // Lane by lane.
            self.each_active(span, |l, i| {
                let of_lane = |l: &mut Self, (val, ty): (Val, Ty)| (l.lane_of(val, ty, i), l.types.lane(ty));
                let mut one = Vec::new();
                for &value in &values {
                    one.push(of_lane(l, value));
                }
                l.moved_bytes(word, args, &one, span)
            })?;
        } else {
            self.moved_bytes(word, args, &values, span)?;
        }
        Ok((self.w.unit(), Types::VOID))
    }

    fn moved_bytes(&mut self, word: &str, args: &[Expr<'s>], values: &[(Val, Ty)], span: Span) -> Lowered<()> {
        let (byte, long) = (self.types.prim(Prim::U8), self.types.prim(Prim::I64));
        let of_bytes = self.types.pointer(byte, false);
        let bytes = |l: &mut Self, at: usize| match *l.types.kind(values[at].1) {
            Kind::Pointer { .. } => Ok(l.retyped(values[at].0, of_bytes)),
            _ => {
                let found = l.types.show(values[at].1);
                Err(Box::new(sierra_type::mismatch(args[at].span, &found, "a pointer")))
            }
        };
        let to = bytes(self, 0)?;
        let from = if word == "memset" { None } else { Some(bytes(self, 1)?) };
        let count = self.convert(values[2], long, args[2].span)?;
        let fill = match from {
            None => self.convert(values[1], byte, args[1].span)?,
            Some(_) => self.w.lit_prim(Prim::U8, 0),
        };
        // What overlaps is moved from its end, if it goes up.
        let zero = self.w.lit_i64(0);
        let one = self.w.lit_i64(1);
        let is_back = match from {
            Some(from) if word == "memmove" => {
                let word = self.w.types.prim(Prim::U64);
                let [a, b] = [to, from].map(|v| self.w.op_ty(Op::Bitcast, word, &[v]));
                self.w.op(Op::Gt, &[a, b])
            }
            _ => self.w.lit_bool(false),
        };
        let number = self.slot(zero);
        let (test, inner, after) = (self.block("test"), self.block("byte"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let i = self.load(number, span)?;
        let goes_on = self.w.op(Op::Lt, &[i, count]);
        self.branch(goes_on, inner, after);
        self.go_on_in(inner);
        let last = self.w.op(Op::Sub, &[count, one]);
        let from_end = self.w.op(Op::Sub, &[last, i]);
        let at = self.w.op(Op::Select, &[is_back, from_end, i]);
        let val = match from {
            Some(from) => {
                let at = self.w.op(Op::Lea, &[from, at]);
                self.load(at, span)?
            }
            None => fill,
        };
        let target = self.w.op(Op::Lea, &[to, at]);
        self.store(target, val, span)?;
        let next = self.w.op(Op::Add, &[i, one]);
        self.store(number, next, span)?;
        self.jump(test, &[]);
        self.go_on_in(after);
        Ok(())
    }

    /// Memory of the function. If it may be called again, or its size is not known, it is a piece of a list that the function gives back at its end.
    pub(super) fn alloca(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 1, span)?;
        let long = self.types.prim(Prim::I64);
        let size = self.convert(values[0], long, args[0].span)?;
        self.mem(span)?;
        // In a loop, each call has memory of its own.
        let is_once = self.targets.is_empty() && !self.has_jumps;
        let Some(size) = self.w.as_lit(size).filter(|n| is_once && (1..=MAX_OWN).contains(n)) else {
            return self.borrowed(size, span);
        };
        let word = self.types.prim(Prim::U64);
        let words = self.types.array(word, size.div_ceil(8));
        let zero = self.zero(words);
        let address = self.slot(zero);
        let ty = self.types.pointer(Types::VOID, false);
        Ok((self.retyped(address, ty), ty))
    }

    fn borrowed(&mut self, size: Val, span: Span) -> Lowered<(Val, Ty)> {
        let Some(list) = self.borrowed else {
            let hint = "call it in a function";
            return Err(Box::new(limitation::not_supported(span, "`alloca` by another name", hint)));
        };
        let (byte, word) = (self.types.prim(Prim::U8), self.w.types.prim(Prim::U64));
        let of_bytes = self.types.pointer(byte, false);
        let (ir, head) = (self.types.ir(of_bytes, self.w), self.w.lit_i64(HEAD));
        let bytes = self.w.op(Op::Add, &[size, head]);
        let piece = self.run_for(span, "nyala_alloc", &[bytes], ir)?;
        let before = self.load(list, span)?;
        let at = self.word_at(piece);
        self.store(at, before, span)?;
        let address = self.w.op_ty(Op::Bitcast, word, &[piece]);
        self.store(list, address, span)?;
        let own = self.w.op(Op::Lea, &[piece, head]);
        let ty = self.types.pointer(Types::VOID, false);
        Ok((self.retyped(own, ty), ty))
    }

    fn word_at(&mut self, piece: Val) -> Val {
        let word = self.types.prim(Prim::U64);
        let of_words = self.types.pointer(word, false);
        let (words, zero) = (self.retyped(piece, of_words), self.w.lit_i64(0));
        self.w.op(Op::Lea, &[words, zero])
    }

    /// Notes that the function has to give nothing back.
    pub(in crate::lower) fn nothing_borrowed(&mut self) -> Val {
        let zero = self.w.lit_prim(Prim::U64, 0);
        self.slot(zero)
    }

    /// Gives back what the function had from [`Self::alloca`].
    pub(in crate::lower) fn give_back(&mut self) -> Lowered<()> {
        let Some(list) = self.borrowed.take() else { return Ok(()) };
        let (test, inner, after) = (self.block("test"), self.block("piece"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let address = self.load(list, Span::NONE)?;
        let zero = self.w.lit_prim(Prim::U64, 0);
        let is_any = self.w.op(Op::Ne, &[address, zero]);
        self.branch(is_any, inner, after);
        self.go_on_in(inner);
        let byte = self.types.prim(Prim::U8);
        let of_bytes = self.types.pointer(byte, false);
        let ir = self.types.ir(of_bytes, self.w);
        let piece = self.w.op_ty(Op::Bitcast, ir, &[address]);
        let at = self.word_at(piece);
        let before = self.load(at, Span::NONE)?;
        self.store(list, before, Span::NONE)?;
        self.run(Span::NONE, "nyala_free", &[piece])?;
        self.jump(test, &[]);
        self.go_on_in(after);
        Ok(())
    }

    /// `atomic_…_global(p, v)`: once if nothing has lanes, else for each active lane, from the first to the last.
    pub(super) fn atomic(&mut self, word: &str, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let n_values = if word == "compare_exchange" { 2 } else { 1 };
        let Some((pointer, others)) = args.split_first().filter(|a| a.1.len() == n_values) else {
            return Err(self.count_of_arguments(args, n_values + 1, span));
        };
        let (val, ty) = self.value(pointer)?;
        let lane = self.types.lane(ty);
        let Kind::Pointer { to, .. } = *self.types.kind(lane) else {
            return Err(Box::new(sierra_type::mismatch(pointer.span, &self.types.show(ty), "a pointer")));
        };
        if self.is_pointer(to) && matches!(word, "swap" | "compare_exchange") && !self.types.is_varying(ty) {
            return self.atomic_of_pointers(val, to, others, span);
        }
        let prim = self.types.as_prim(to);
        if prim.is_none_or(|p| p == Prim::Bool || p == Prim::F16) {
            let expected = "a pointer to a `uniform` number of 8, 16, 32 or 64 bits";
            return Err(Box::new(sierra_type::mismatch(pointer.span, &self.types.show(ty), expected)));
        }
        let number = match (word, prim.is_some_and(Prim::is_float), prim.is_some_and(|p| p.is_signed())) {
            ("compare_exchange", ..) => 0,
            ("swap", ..) => 0,
            ("add", true, _) => 11,
            ("add", ..) => 1,
            ("subtract", true, _) => 12,
            ("subtract", ..) => 2,
            ("and", false, _) => 3,
            ("or", false, _) => 5,
            ("xor", false, _) => 6,
            ("max", true, _) => 13,
            ("min", true, _) => 14,
            ("max", _, true) => 7,
            ("min", _, true) => 8,
            ("max", ..) => 9,
            ("min", ..) => 10,
            _ => return Err(Box::new(sierra_name::error(name.span, name.text))),
        };
        let is_exchange = word == "compare_exchange";
        let mut values = Vec::new();
        for other in others {
            let found = self.value(other)?;
            values.push((found, other.span));
        }
        let has_lanes = self.types.is_varying(ty) || values.iter().any(|v| self.types.is_varying(v.0.1));
        if !has_lanes {
            let mut vals = Vec::new();
            for (found, span) in values {
                vals.push(self.convert(found, to, span)?);
            }
            return Ok((self.atomic_at(val, number, &vals, is_exchange, span)?, to));
        }
        let all = self.with_lanes(to, self.gang, span)?;
        let mut vals = Vec::new();
        for (found, span) in values {
            vals.push(self.convert(found, all, span)?);
        }
        let zero = self.zero(all);
        let olds = self.slot(zero);
        self.each_active(span, |l, i| {
            let pointer = l.lane_of(val, ty, i);
            let vals: Vec<Val> = vals.iter().map(|&v| l.lane_of(v, all, i)).collect();
            let old = l.atomic_at(pointer, number, &vals, is_exchange, span)?;
            let found = l.load(olds, span)?;
            let found = l.w.op(Op::Insert, &[found, i, old]);
            l.store(olds, found, span)
        })?;
        Ok((self.load(olds, span)?, all))
    }

    fn is_pointer(&self, ty: Ty) -> bool {
        matches!(self.types.kind(ty), Kind::Pointer { .. }) && self.types.as_slice(ty).is_none()
    }

    /// `atomic_swap` of a pointer, or with another value `atomic_compare_exchange`: of its bits.
    fn atomic_of_pointers(&mut self, at: Val, ty: Ty, others: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let word = self.types.prim(Prim::U64);
        let words = self.types.pointer(word, false);
        let at = self.retyped(at, words);
        let ir = self.w.types.prim(Prim::U64);
        let mut vals = Vec::new();
        for other in others {
            let found = self.value_for(other, ty)?;
            if self.types.is_varying(found.1) {
                let hint = "write a loop, `foreach_active`";
                let what = "atomic operations with a pointer in each lane";
                return Err(Box::new(limitation::not_supported(other.span, what, hint)));
            }
            let pointer = self.convert(found, ty, other.span)?;
            vals.push(self.w.op_ty(Op::Bitcast, ir, &[pointer]));
        }
        let bits = self.atomic_at(at, 0, &vals, others.len() > 1, span)?;
        let ir = self.types.ir(ty, self.w);
        Ok((self.w.op_ty(Op::Bitcast, ir, &[bits]), ty))
    }

    pub(super) fn atomic_at(
        &mut self,
        pointer: Val,
        number: i32,
        vals: &[Val],
        is_exchange: bool,
        span: Span,
    ) -> Lowered<Val> {
        let zero = self.w.lit_i64(0);
        let at = self.w.op(Op::Lea, &[pointer, zero]);
        let mem = self.mem(span)?;
        let (order, scope) = (self.w.lit_i32(ORDER), self.w.lit_i32(0));
        self.w.set_origin(span);
        let made = if is_exchange {
            self.w.op(Op::Cmpxchg, &[mem, at, vals[0], vals[1], order, order, scope])
        } else {
            let number = self.w.lit_i32(number);
            self.w.op(Op::Atomic, &[mem, number, at, vals[0], order, scope])
        };
        let (mem, val) = (self.w.extract(made, 0), self.w.extract(made, 1));
        self.set_mem(mem);
        Ok(if is_exchange { self.w.extract(val, 0) } else { val })
    }
}
