//! Functions that every program has, unless it declares others of these names: mathematics, and `print`.

use super::*;

/// Functions of floats, with the number of their arguments. With an `f` behind the name they are those of `float`.
const MATH: [(&str, Op, usize); 30] = [
    ("sqrt", Op::Sqrt, 1),
    ("fabs", Op::Abs, 1),
    ("floor", Op::Floor, 1),
    ("ceil", Op::Ceil, 1),
    ("trunc", Op::Trunc, 1),
    ("round", Op::Round, 1),
    ("sin", Op::Sin, 1),
    ("cos", Op::Cos, 1),
    ("tan", Op::Tan, 1),
    ("asin", Op::Asin, 1),
    ("acos", Op::Acos, 1),
    ("atan", Op::Atan, 1),
    ("sinh", Op::Sinh, 1),
    ("cosh", Op::Cosh, 1),
    ("tanh", Op::Tanh, 1),
    ("exp", Op::Exp, 1),
    ("exp2", Op::Exp2, 1),
    ("expm1", Op::Expm1, 1),
    ("log", Op::Log, 1),
    ("log2", Op::Log2, 1),
    ("log10", Op::Log10, 1),
    ("log1p", Op::Log1p, 1),
    ("cbrt", Op::Cbrt, 1),
    ("erf", Op::Erf, 1),
    ("fmin", Op::Fmin, 2),
    ("fmax", Op::Fmax, 2),
    ("copysign", Op::Copysign, 2),
    ("pow", Op::Pow, 2),
    ("atan2", Op::Atan2, 2),
    ("fma", Op::Fma, 3),
];

/// Whether a function computes lane by lane, unless the program has another one of its name.
pub(super) fn is_lane_by_lane(name: &str) -> bool {
    let single = name.strip_suffix('f');
    matches!(name, "abs" | "min" | "max") || MATH.iter().any(|m| m.0 == name || Some(m.0) == single)
}

impl<'s> Lowerer<'s, '_> {
    pub(super) fn intrinsic(&mut self, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        if self.is_ispc
            && let Some(found) = self.of_elements_each(name, args, span)?
        {
            return Ok(found);
        }
        if self.is_ispc
            && let Some(found) = self.library(name, args, span)?
        {
            return Ok(found);
        }
        if name.text == "print" {
            return self.print(args, span);
        }
        let single = name.text.strip_suffix('f');
        let found = MATH.iter().find(|m| m.0 == name.text || Some(m.0) == single);
        if let Some(&(found, op, n)) = found {
            let values = self.arguments(args, n, span)?;
            let mut prims = values.iter().map(|v| self.number_type(v.1).map_or(Prim::F64, |n| n.0));
            let is_single = found != name.text || prims.all(|p| p == Prim::F32);
            let lanes = self.lanes_of(&values, span)?;
            let ty = self.numbers(if is_single { Prim::F32 } else { Prim::F64 }, lanes);
            let vals = self.converted(&values, args, ty)?;
            self.w.set_origin(span);
            return Ok((self.w.op(op, &vals), ty));
        }
        match name.text {
            "abs" => {
                let values = self.arguments(args, 1, span)?;
                let Some((prim, lanes)) = self.number_type(values[0].1) else {
                    return Err(Box::new(sierra_type::operand(span, "abs", &self.types.show(values[0].1))));
                };
                let prim = self.promoted(prim);
                let ty = self.numbers(prim, lanes);
                let vals = self.converted(&values, args, ty)?;
                self.w.set_origin(span);
                if prim.is_float() {
                    return Ok((self.w.op(Op::Abs, &vals), ty));
                }
                let ir = self.w.ty(vals[0]);
                let zero = self.w.lit(ir, 0);
                let (negative, opposite) =
                    (self.w.op(Op::Lt, &[vals[0], zero]), self.arithmetic(Op::Sub, prim, lanes, [zero, vals[0]]));
                Ok((self.w.op(Op::Select, &[negative, opposite, vals[0]]), ty))
            }
            "min" | "max" => {
                let values = self.arguments(args, 2, span)?;
                let [a, b] = [values[0].1, values[1].1].map(|ty| self.number_type(ty).map(|n| n.0));
                let (Some(a), Some(b)) = (a, b) else {
                    let [a, b] = [values[0].1, values[1].1].map(|ty| self.types.show(ty));
                    return Err(Box::new(sierra_type::operands(span, name.text, &a, &b)));
                };
                let prim = self.common(a, b);
                let lanes = self.lanes_of(&values, span)?;
                let ty = self.numbers(prim, lanes);
                let vals = self.converted(&values, args, ty)?;
                self.w.set_origin(span);
                let is_min = name.text == "min";
                if prim.is_float() {
                    return Ok((self.w.op(if is_min { Op::Fmin } else { Op::Fmax }, &vals), ty));
                }
                let is_less = self.w.op(Op::Lt, &vals);
                let (then, otherwise) = if is_min { (vals[0], vals[1]) } else { (vals[1], vals[0]) };
                Ok((self.w.op(Op::Select, &[is_less, then, otherwise]), ty))
            }
            "any" | "all" => {
                let values = self.arguments(args, 1, span)?;
                if self.is_one_lane(values[0].1) {
                    return Ok((self.truth(values[0], args[0].span)?, self.types.prim(Prim::Bool)));
                }
                let (mask, n) = self.mask_of(values[0], args[0].span)?;
                let val = if name.text == "any" { self.any(mask) } else { self.all(mask, n) };
                Ok((val, self.types.prim(Prim::Bool)))
            }
            "next_true" => {
                let values = self.arguments(args, 2, span)?;
                let (mask, n) = if self.is_one_lane(values[0].1) {
                    let (bools, holds) = (self.mask_type(1), self.truth(values[0], args[0].span)?);
                    (self.w.op_ty(Op::Splat, bools, &[holds]), 1)
                } else {
                    self.mask_of(values[0], args[0].span)?
                };
                let int = self.types.prim(Prim::I32);
                let from = self.convert(values[1], int, args[1].span)?;
                Ok((self.next_true(mask, n, from), int))
            }
            "extract" => {
                let values = self.arguments(args, 2, span)?;
                let ty = values[0].1;
                if !self.types.is_varying(ty) && !self.is_one_lane(ty) {
                    return Err(Box::new(sierra_lanes::no_lanes(args[0].span, &self.types.show(ty))));
                }
                let int = self.types.prim(Prim::I32);
                let number = self.convert(values[1], int, args[1].span)?;
                self.w.set_origin(span);
                Ok((self.lane_of(values[0].0, ty, number), self.types.lane(ty)))
            }
            "insert" => {
                let [place, number, new] = args else {
                    return Err(Box::new(sierra_type::arguments(span, args.len(), 3, Span::NONE)));
                };
                let variable = match self.expression(place)? {
                    Value::Place(variable) if variable.is_const => {
                        return Err(Box::new(sierra_type::constant(place.span)));
                    }
                    Value::Place(variable) => variable,
                    _ => return Err(Box::new(sierra_type::no_place(place.span, "`insert`"))),
                };
                if self.is_one_lane(variable.ty) {
                    let found = self.value(new)?;
                    let val = self.convert(found, variable.ty, new.span)?;
                    self.store(variable.address, val, span)?;
                    return Ok((self.w.unit(), Types::VOID));
                }
                let Kind::Varying(prim, _) = *self.types.kind(variable.ty) else {
                    return Err(Box::new(sierra_lanes::no_lanes(place.span, &self.types.show(variable.ty))));
                };
                let (int, lane) = (self.types.prim(Prim::I32), self.types.prim(prim));
                let found = self.value(number)?;
                let number = self.convert(found, int, number.span)?;
                let found = self.value(new)?;
                let val = self.convert(found, lane, new.span)?;
                let old = self.load(variable.address, span)?;
                let val = self.w.op(Op::Insert, &[old, number, val]);
                self.store(variable.address, val, span)?;
                Ok((self.w.unit(), Types::VOID))
            }
            _ => Err(Box::new(sierra_name::error(name.span, name.text))),
        }
    }

    pub(super) fn lanes_of(&self, values: &[(Val, Ty)], span: Span) -> Lowered<Option<u32>> {
        let mut known: Option<Ty> = None;
        for &(_, ty) in values.iter().filter(|v| self.types.is_varying(v.1)) {
            if let Some(known) = known {
                self.common_lanes(known, ty, span)?;
            }
            known = Some(ty);
        }
        Ok(known.and_then(|ty| self.types.lanes(ty)))
    }

    /// In a template, a value whose number of lanes is 1.
    fn is_one_lane(&self, ty: Ty) -> bool {
        self.instance.is_some() && !self.is_ispc && self.types.as_prim(ty).is_some()
    }

    /// A value as a condition with lanes.
    pub(super) fn mask_of(&mut self, value: (Val, Ty), span: Span) -> Lowered<(Val, u32)> {
        let Some(n) = self.types.lanes(value.1) else {
            return Err(Box::new(sierra_lanes::no_lanes(span, &self.types.show(value.1))));
        };
        Ok((self.truth(value, span)?, n))
    }

    /// The first true lane from a number on; -1 if there is none.
    pub(super) fn next_true(&mut self, mask: Val, n: u32, from: Val) -> Val {
        let (word, int) = (self.w.types.prim(Prim::U64), self.w.types.i32());
        let bits = self.w.op_ty(Op::Bits, word, &[mask]);
        let end = self.w.lit_i32(n as i32);
        let is_lane = self.w.op(Op::Lt, &[from, end]);
        let shift = self.w.op_ty(Op::Cast, word, &[from]);
        let rest = self.w.op(Op::Shr, &[bits, shift]);
        let rest = self.w.op(Op::Shl, &[rest, shift]);
        let zero = self.w.lit_prim(Prim::U64, 0);
        let rest = self.w.op(Op::Select, &[is_lane, rest, zero]);
        let first = self.w.op(Op::Ctz, &[rest]);
        let first = self.w.op_ty(Op::Cast, int, &[first]);
        let none = self.w.lit_i32(-1);
        let is_none = self.w.op(Op::Eq, &[rest, zero]);
        self.w.op(Op::Select, &[is_none, none, first])
    }

    pub(super) fn arguments(&mut self, args: &[Expr<'s>], n: usize, span: Span) -> Lowered<Vec<(Val, Ty)>> {
        if args.len() != n {
            return Err(Box::new(sierra_type::arguments(span, args.len(), n, Span::NONE)));
        }
        args.iter().map(|arg| self.value(arg)).collect()
    }

    pub(super) fn converted(&mut self, values: &[(Val, Ty)], args: &[Expr<'s>], ty: Ty) -> Lowered<Vec<Val>> {
        values.iter().zip(args).map(|(&value, arg)| self.convert(value, ty, arg.span)).collect()
    }

    /// `print("% and %\n", a, b)`: each `%` stands for a value, `%%` for itself.
    pub(super) fn print(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let Some((Expr { kind: ExprKind::Text(texts), span: text_span }, values)) = args.split_first() else {
            return Err(Box::new(sierra_type::mismatch(span, "other arguments", "a text, and the values in it")));
        };
        let bytes = self.text(texts, *text_span)?;
        // What stands before each place, and behind the last one.
        let mut parts = vec![Vec::new()];
        let mut rest = bytes.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            match parts.last_mut() {
                Some(part) if byte != b'%' || rest.next_if_eq(&b'%').is_some() => part.push(byte),
                _ => parts.push(Vec::new()),
            }
        }
        if parts.len() != values.len() + 1 {
            return Err(Box::new(sierra_type::print(span, values.len(), parts.len() - 1)));
        }
        let mut printed = Vec::new();
        for arg in values {
            let (val, ty) = self.value(arg)?;
            let symbol = match *self.types.kind(ty) {
                Kind::Prim(Prim::I8) if !self.is_ispc => "nyala_print_char".to_string(),
                Kind::Prim(prim) => format!("nyala_print_{}", prim.name()),
                Kind::Pointer { to, .. } if self.types.as_prim(to) == Some(Prim::I8) => "nyala_print_string".into(),
                Kind::Pointer { .. } if self.is_ispc => {
                    let address = self.w.types.prim(Prim::U64);
                    let bits = self.w.op_ty(Op::Bitcast, address, &[val]);
                    printed.push(("nyala_print_u64".into(), vec![bits]));
                    continue;
                }
                Kind::Varying(prim, n) if prim != Prim::I8 || self.is_ispc => {
                    let symbol = format!("nyala_print_{}", prim.name());
                    let numbers: Vec<Val> = (0..n).map(|i| self.w.lit_i32(i as i32)).collect();
                    let lanes = numbers.into_iter().map(|i| self.w.op(Op::Extract, &[val, i])).collect();
                    printed.push((symbol, lanes));
                    continue;
                }
                _ => return Err(Box::new(sierra_type::operand(arg.span, "print", &self.types.show(ty)))),
            };
            printed.push((symbol, vec![val]));
        }
        // ISPC's programs see which lanes are not active.
        let active = match self.mode.filter(|_| self.is_ispc) {
            Some(mode) => {
                let mask = self.load(mode.mask, span)?;
                Some(self.bools(mask))
            }
            None => None,
        };
        let mut printed = printed.into_iter();
        for part in parts {
            self.print_bytes(&part, span)?;
            let Some((symbol, vals)) = printed.next() else { continue };
            let is_varying = vals.len() > 1;
            for (i, val) in vals.into_iter().enumerate() {
                if is_varying {
                    self.print_bytes(if i == 0 { b"[" } else { b"," }, span)?;
                }
                let is_active = match active.filter(|_| is_varying) {
                    Some(active) => {
                        let number = self.w.lit_i32(i as i32);
                        Some(self.w.op(Op::Extract, &[active, number]))
                    }
                    None => None,
                };
                self.print_unless(is_active, b"((", span)?;
                let val = match &*symbol {
                    "nyala_print_char" => {
                        let byte = self.w.types.prim(Prim::U8);
                        self.w.op_ty(Op::Cast, byte, &[val])
                    }
                    "nyala_print_string" => {
                        let byte = self.types.prim(Prim::U8);
                        let pointer = self.types.pointer(byte, true);
                        self.retyped(val, pointer)
                    }
                    _ => val,
                };
                self.run(span, &symbol, &[val])?;
                self.print_unless(is_active, b"))", span)?;
            }
            if is_varying {
                self.print_bytes(b"]", span)?;
            }
        }
        Ok((self.w.unit(), Types::VOID))
    }

    fn print_unless(&mut self, is_active: Option<Val>, bytes: &[u8], span: Span) -> Lowered<()> {
        let Some(is_active) = is_active else { return Ok(()) };
        let (inner, after) = (self.block("inactive"), self.block("after"));
        self.mem(span)?;
        self.branch(is_active, after, inner);
        self.go_on_in(inner);
        self.print_bytes(bytes, span)?;
        self.jump(after, &[]);
        self.go_on_in(after);
        Ok(())
    }

    pub(super) fn print_bytes(&mut self, bytes: &[u8], span: Span) -> Lowered<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Value::Place(place) = self.text_place(bytes) else { return Ok(()) };
        let byte = self.types.prim(Prim::U8);
        let pointer = self.types.pointer(byte, true);
        let address = self.retyped(place.address, pointer);
        let n = self.w.lit_i64(bytes.len() as i64);
        self.run(span, "nyala_print_bytes", &[address, n])
    }

    /// Calls a function of the runtime.
    pub(super) fn run(&mut self, span: Span, symbol: &str, args: &[Val]) -> Lowered<()> {
        self.mem(span)?;
        let mem = self.w.types.mem();
        let ret = self.w.types.cn(&[mem]);
        let mut types = vec![mem];
        types.extend(args.iter().map(|&v| self.w.ty(v)));
        types.push(ret);
        if !self.is_reached() {
            return Ok(());
        }
        let ty = self.w.types.cn(&types);
        self.w.set_origin(span);
        let k = self.w.foreign(symbol, ty);
        let callee = self.w.cont_val(k);
        let next = self.block("printed");
        let next_val = self.w.cont_val(next);
        let all: Vec<Val> = args.iter().copied().chain([next_val]).collect();
        self.end(callee, &all);
        self.go_on_in(next);
        Ok(())
    }
}
