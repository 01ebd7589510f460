//! Operators of two operands, of numbers, pointers and conditions, and `?:`.

use super::*;

impl<'s> Lowerer<'s, '_> {
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
        let args = [(Value::Plain(left.0, left.1), span), (Value::Plain(right.0, right.1), span)];
        if let Some(made) = self.struct_operator(operator.name(), &args, span)? {
            return Ok(made);
        }
        let is_comparison =
            matches!(operator, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge);
        if self.types.as_short(left.1).is_some() || self.types.as_short(right.1).is_some() {
            return self.binary_of_shorts(operator, left, right, span);
        }
        let (Some((a, _)), Some((b, _))) = (self.number_type(left.1), self.number_type(right.1)) else {
            return self.binary_of_pointers(operator, is_comparison, left, right, span);
        };
        let lanes = self.common_lanes(left.1, right.1, span)?;
        let is_shift = matches!(operator, Binary::Shl | Binary::Shr);
        let prim = if is_shift && !self.is_ispc { self.promoted(a) } else { self.common(a, b) };
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
            Binary::Shl | Binary::Shr => {
                let y = self.active_or(y, 0, lanes, span)?;
                let op = if operator == Binary::Shl { Op::Shl } else { Op::Shr };
                return Ok((self.w.op(op, &[x, y]), ty));
            }
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div if prim.is_float() => Op::Div,
            Binary::Div | Binary::Rem => return Ok((self.quotient(operator, prim, [x, y], lanes, span)?, ty)),
        };
        let val = self.arithmetic(op, prim, lanes, [x, y]);
        Ok((val, if is_comparison { self.numbers(Prim::Bool, lanes) } else { ty }))
    }

    /// If signed numbers wrap around, sums and products are those of unsigned ones. Those of lanes that are not active may.
    pub(super) fn arithmetic(&mut self, op: Op, prim: Prim, lanes: Option<u32>, operands: [Val; 2]) -> Val {
        let is_masked = self.mode.is_some_and(|m| m.is_real() && Some(m.n) == lanes);
        let wraps = (self.wrap || is_masked) && prim.is_signed() && matches!(op, Op::Add | Op::Sub | Op::Mul);
        if lanes.is_some() && prim.is_int() && operands.iter().all(|&v| self.w.is_op(v, Op::Splat)) {
            // Once for all lanes; so indices show what they are made of.
            let of_lanes = self.w.ty(operands[0]);
            let operands = operands.map(|v| self.w.args(v)[0]);
            let val = self.computed(op, prim, None, operands, wraps);
            if self.w.ty(operands[0]) == self.w.ty(val) {
                return self.w.op_ty(Op::Splat, of_lanes, &[val]);
            }
        }
        self.computed(op, prim, lanes, operands, wraps)
    }

    fn computed(&mut self, op: Op, prim: Prim, lanes: Option<u32>, operands: [Val; 2], wraps: bool) -> Val {
        if !wraps {
            return self.w.op(op, &operands);
        }
        let [signed, unsigned] = [prim, nyala_c_syntax::parser::unsigned(prim)].map(|prim| {
            let ty = self.numbers(prim, lanes);
            self.types.ir(ty, self.w)
        });
        let operands = operands.map(|v| self.w.op_ty(Op::Cast, unsigned, &[v]));
        let val = self.w.op(op, &operands);
        self.w.op_ty(Op::Cast, signed, &[val])
    }

    /// A number that is another one in lanes that are not active.
    fn active_or(&mut self, val: Val, other: u64, lanes: Option<u32>, span: Span) -> Lowered<Val> {
        let Some(mode) = self.mode.filter(|m| Some(m.n) == lanes) else { return Ok(val) };
        if self.w.is_op(val, Op::Splat) && self.w.as_lit(self.w.args(val)[0]).is_some_and(|v| v != 0) {
            return Ok(val);
        }
        let mask = self.load(mode.mask, span)?;
        let (active, ir) = (self.bools(mask), self.w.ty(val));
        let other = self.w.lit(ir, other);
        Ok(self.w.op(Op::Select, &[active, val, other]))
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
        // Lanes that are not active may divide by zero.
        y = self.active_or(y, 1, lanes, span)?;
        Ok(self.w.op(partial, &[mem, x, y]))
    }

    pub(super) fn no_operands(&self, operator: Binary, left: Ty, right: Ty, span: Span) -> Box<Diagnostic> {
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
        if let Some(found) = self.compared_functions(operator, left, right, span)? {
            return Ok(found);
        }
        if let Some(found) = self.binary_of_slices(operator, is_comparison, left, right, span)? {
            return Ok(found);
        }
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
                Ok((self.w.op(comparison(operator), &[x, y]), self.numbers(Prim::Bool, lanes)))
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
    pub(super) fn index(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<Val> {
        match self.number_type(ty) {
            Some((prim, lanes)) if !prim.is_float() => {
                let long = self.numbers(if prim == Prim::U64 { Prim::U64 } else { Prim::I64 }, lanes);
                self.convert((val, ty), long, span)
            }
            _ => Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "an integer"))),
        }
    }

    pub(super) fn logic(&mut self, is_or: bool, values: &[Expr<'s>]) -> Lowered<Value> {
        let name = if is_or { "operator||" } else { "operator&&" };
        if self.is_ispc && self.find(name).is_some() {
            let mut is_of_structs = false;
            for e in values {
                let ty = self.type_of(e)?;
                is_of_structs |= self.types.as_struct(ty).is_some();
            }
            if is_of_structs {
                return self.logic_of_structs(is_or, name, values);
            }
        }
        let ty = self.types.prim(Prim::Bool);
        let Some((last, before)) = values.split_last() else { return Ok(Value::Plain(self.w.unit(), Types::ERROR)) };
        if self.is_constant {
            let mut all = (self.w.lit_bool(!is_or), ty);
            for e in values {
                let found = self.value(e)?;
                let (of_one, of_all) = (self.types.lanes(found.1), self.types.lanes(all.1));
                let holds = (self.truth(found, e.span)?, self.numbers(Prim::Bool, of_one));
                let ty = self.numbers(Prim::Bool, of_one.or(of_all));
                let operands = [self.convert(all, ty, e.span)?, self.convert(holds, ty, e.span)?];
                all = (self.w.op(if is_or { Op::Or } else { Op::And }, &operands), ty);
            }
            return Ok(Value::Plain(all.0, all.1));
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

    /// A program's own `&&` or `||`: all operands are computed.
    fn logic_of_structs(&mut self, is_or: bool, name: &str, values: &[Expr<'s>]) -> Lowered<Value> {
        let Some((first, rest)) = values.split_first() else { return Ok(Value::Plain(self.w.unit(), Types::ERROR)) };
        let mut all = self.value(first)?;
        for e in rest {
            let found = self.value(e)?;
            let span = through(first.span, e.span);
            let args = [(Value::Plain(all.0, all.1), span), (Value::Plain(found.0, found.1), e.span)];
            all = match self.struct_operator(name, &args, span)? {
                Some(made) => made,
                None => {
                    let [a, b] = [all.1, found.1].map(|ty| self.types.show(ty));
                    return Err(Box::new(sierra_type::operands(span, if is_or { "||" } else { "&&" }, &a, &b)));
                }
            };
        }
        Ok(Value::Plain(all.0, all.1))
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
                l.within_value(|l| {
                    let value = l.value(e)?;
                    let holds = l.truth(value, e.span)?;
                    let bool = l.numbers(Prim::Bool, l.types.lanes(value.1));
                    let holds = l.convert((holds, bool), ty, e.span)?;
                    l.store_lanes(found, holds, ty, e.span)
                })
            })?;
        }
        let span = values.first().map_or(Span::NONE, |e| e.span);
        Ok(Value::Plain(self.load(found, span)?, ty))
    }

    /// `c ? a : b` where the condition has lanes.
    fn choose_lanes(&mut self, condition: (Val, u32), [then, otherwise]: [&Expr<'s>; 2], span: Span) -> Lowered<Value> {
        let (a, b) = (self.type_of(then)?, self.type_of(otherwise)?);
        let (holds, n) = condition;
        let undef = [(then, a), (otherwise, b)].map(|(e, ty)| {
            // A null pointer becomes one of the other's type.
            if matches!(e.kind, ExprKind::Null | ExprKind::Int("0")) {
                return (self.zero(ty), ty);
            }
            let ir = self.types.ir(ty, self.w);
            (self.w.undef(ir), ty)
        });
        let ty = self.chosen_type(undef[0], undef[1], span)?;
        let ty = self.with_lanes(ty, n, span)?;
        let zero = self.zero(ty);
        let chosen = self.slot(zero);
        let assign = |l: &mut Self, e: &Expr<'s>| {
            l.within_value(|l| {
                let found = l.value(e)?;
                let val = l.convert(found, ty, e.span)?;
                l.store_lanes(chosen, val, ty, e.span)
            })
        };
        self.if_lanes(holds, n, span, [false; 2], |l| assign(l, then), |l| assign(l, otherwise))?;
        Ok(Value::Plain(self.load(chosen, span)?, ty))
    }

    pub(super) fn choose(&mut self, [condition, then, otherwise]: &[Expr<'s>; 3], span: Span) -> Lowered<Value> {
        let found = self.value(condition)?;
        if self.types.as_short(found.1).is_some() {
            return self.choose_elements(found, [then, otherwise], span);
        }
        let holds = self.truth(found, condition.span)?;
        if self.is_constant {
            let (a, b) = (self.value(then)?, self.value(otherwise)?);
            let mut ty = self.chosen_type(a, b, span)?;
            if let Some(n) = self.types.lanes(found.1) {
                ty = self.with_lanes(ty, n, span)?;
            }
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

    /// `c ? a : b` where the condition is a short vector: both values are computed, and chosen from element by element.
    fn choose_elements(
        &mut self,
        (conditions, of_conditions): (Val, Ty),
        [then, otherwise]: [&Expr<'s>; 2],
        span: Span,
    ) -> Lowered<Value> {
        let Some((of, n)) = self.types.as_short(of_conditions) else {
            return Ok(Value::Plain(self.w.unit(), Types::ERROR));
        };
        let (a, b) = (self.value(then)?, self.value(otherwise)?);
        self.w.set_origin(span);
        let element = |l: &Self, ty| l.types.as_short(ty).map_or(ty, |s| s.0);
        let numbers = [a.1, b.1].map(|ty| self.number_type(element(self, ty)));
        let [Some((x, p)), Some((y, q))] = numbers else {
            let [a, b] = [a.1, b.1].map(|ty| self.types.show(ty));
            return Err(Box::new(sierra_type::operands(span, "?:", &a, &b)));
        };
        let lanes = p.or(q).or(self.types.lanes(of));
        let prim = self.common(x, y);
        let (of_bools, of_values) = (self.numbers(Prim::Bool, lanes), self.numbers(prim, lanes));
        let (bools, ty) = (self.types.short(of_bools, n), self.types.short(of_values, n));
        let holds = self.convert((conditions, of_conditions), bools, span)?;
        let (a, b) = (self.convert(a, ty, then.span)?, self.convert(b, ty, otherwise.span)?);
        let mut vals = Vec::new();
        for i in 0..n {
            let parts = [holds, a, b].map(|v| self.w.extract(v, i));
            vals.push(self.w.op(Op::Select, &parts));
        }
        Ok(Value::Plain(self.of_parts(&vals, ty), ty))
    }

    /// The type of `c ? a : b`.
    pub(super) fn chosen_type(&mut self, a: (Val, Ty), b: (Val, Ty), span: Span) -> Lowered<Ty> {
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
        let slices = [a.1, b.1].map(|ty| self.types.as_slice(ty));
        if let Some((soa, is_const)) = slices[0].or(slices[1]) {
            // The address of an array, or a null pointer, becomes a slice.
            let is_const = is_const || slices[1].is_some_and(|s| s.1);
            let ty = self.types.slice(soa, is_const, self.w);
            return match self.common_lanes(a.1, b.1, span)? {
                Some(n) => self.with_lanes(ty, n, span),
                None => Ok(ty),
            };
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
}

/// That of the graph.
pub(super) fn comparison(operator: Binary) -> Op {
    match operator {
        Binary::Eq => Op::Eq,
        Binary::Ne => Op::Ne,
        Binary::Lt => Op::Lt,
        Binary::Le => Op::Le,
        Binary::Gt => Op::Gt,
        _ => Op::Ge,
    }
}
