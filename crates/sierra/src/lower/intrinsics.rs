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

impl<'s> Lowerer<'s, '_> {
    pub(super) fn intrinsic(&mut self, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        if name.text == "print" {
            return self.print(args, span);
        }
        let single = name.text.strip_suffix('f');
        let found = MATH.iter().find(|m| m.0 == name.text || Some(m.0) == single);
        if let Some(&(found, op, n)) = found {
            let values = self.arguments(args, n, span)?;
            let mut prims = values.iter().map(|v| self.types.as_prim(v.1).unwrap_or(Prim::F64));
            let is_single = found != name.text || prims.all(|p| p == Prim::F32);
            let ty = self.types.prim(if is_single { Prim::F32 } else { Prim::F64 });
            let vals = self.converted(&values, args, ty)?;
            self.w.set_origin(span);
            return Ok((self.w.op(op, &vals), ty));
        }
        match name.text {
            "abs" => {
                let values = self.arguments(args, 1, span)?;
                let Some(prim) = self.types.as_prim(values[0].1) else {
                    return Err(Box::new(sierra_type::operand(span, "abs", &self.types.show(values[0].1))));
                };
                let prim = self.promoted(prim);
                let ty = self.types.prim(prim);
                let vals = self.converted(&values, args, ty)?;
                self.w.set_origin(span);
                if prim.is_float() {
                    return Ok((self.w.op(Op::Abs, &vals), ty));
                }
                let zero = self.w.lit_prim(prim, 0);
                let (negative, opposite) =
                    (self.w.op(Op::Lt, &[vals[0], zero]), self.w.op(Op::Sub, &[zero, vals[0]]));
                Ok((self.w.op(Op::Select, &[negative, opposite, vals[0]]), ty))
            }
            "min" | "max" => {
                let values = self.arguments(args, 2, span)?;
                let [a, b] = [values[0].1, values[1].1].map(|ty| self.types.as_prim(ty));
                let (Some(a), Some(b)) = (a, b) else {
                    let [a, b] = [values[0].1, values[1].1].map(|ty| self.types.show(ty));
                    return Err(Box::new(sierra_type::operands(span, name.text, &a, &b)));
                };
                let prim = self.common(a, b);
                let ty = self.types.prim(prim);
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
            _ => Err(Box::new(sierra_name::error(name.span, name.text))),
        }
    }

    fn arguments(&mut self, args: &[Expr<'s>], n: usize, span: Span) -> Lowered<Vec<(Val, Ty)>> {
        if args.len() != n {
            return Err(Box::new(sierra_type::arguments(span, args.len(), n, Span::NONE)));
        }
        args.iter().map(|arg| self.value(arg)).collect()
    }

    fn converted(&mut self, values: &[(Val, Ty)], args: &[Expr<'s>], ty: Ty) -> Lowered<Vec<Val>> {
        values.iter().zip(args).map(|(&value, arg)| self.convert(value, ty, arg.span)).collect()
    }

    /// `print("% and %\n", a, b)`: each `%` stands for a value, `%%` for itself.
    fn print(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
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
                Kind::Prim(Prim::I8) => "nyala_print_char".to_string(),
                Kind::Prim(prim) => format!("nyala_print_{}", prim.name()),
                Kind::Pointer { to, .. } if self.types.as_prim(to) == Some(Prim::I8) => "nyala_print_string".into(),
                _ => return Err(Box::new(sierra_type::operand(arg.span, "print", &self.types.show(ty)))),
            };
            printed.push((symbol, val));
        }
        let mut printed = printed.into_iter();
        for part in parts {
            if !part.is_empty() {
                let Value::Place(place) = self.text_place(&part) else { continue };
                let byte = self.types.prim(Prim::U8);
                let pointer = self.types.pointer(byte, true);
                let address = self.retyped(place.address, pointer);
                let n = self.w.lit_i64(part.len() as i64);
                self.run(span, "nyala_print_bytes", &[address, n])?;
            }
            if let Some((symbol, val)) = printed.next() {
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
            }
        }
        Ok((self.w.unit(), Types::VOID))
    }

    /// Calls a function of the runtime.
    fn run(&mut self, span: Span, symbol: &str, args: &[Val]) -> Lowered<()> {
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
