//! The standard library of ISPC's dialect: what needs the lanes of a gang, or any type. A program's own functions of these names come first.
//!
//! Separate from the intrinsics of Sierra, which the dialect has too. What only active lanes take part in asks for the current mask; sums of lanes are
//! those of pairs, of pairs of them, and so on.

mod lanes;
mod memory;

use super::*;

/// Functions of one float.
const UNARY: [(&str, Op); 25] = [
    ("sqrt", Op::Sqrt),
    ("floor", Op::Floor),
    ("ceil", Op::Ceil),
    ("trunc", Op::Trunc),
    ("sin", Op::Sin),
    ("cos", Op::Cos),
    ("tan", Op::Tan),
    ("asin", Op::Asin),
    ("acos", Op::Acos),
    ("atan", Op::Atan),
    ("sinh", Op::Sinh),
    ("cosh", Op::Cosh),
    ("tanh", Op::Tanh),
    ("exp", Op::Exp),
    ("exp2", Op::Exp2),
    ("expm1", Op::Expm1),
    ("log", Op::Log),
    ("log2", Op::Log2),
    ("log10", Op::Log10),
    ("log1p", Op::Log1p),
    ("cbrt", Op::Cbrt),
    ("erf", Op::Erf),
    ("fabs", Op::Abs),
    ("sqrtf", Op::Sqrt),
    ("fabsf", Op::Abs),
];

/// Functions of two floats.
const BINARY: [(&str, Op); 3] = [("pow", Op::Pow), ("atan2", Op::Atan2), ("copysign", Op::Copysign)];

/// All others.
const NAMES: [&str; 94] = [
    "abs",
    "all",
    "alloca",
    "and",
    "any",
    "aos_to_soa2",
    "aos_to_soa3",
    "aos_to_soa4",
    "assert",
    "assume",
    "atomic_add_global",
    "atomic_add_local",
    "avg_down",
    "avg_up",
    "broadcast",
    "clamp",
    "cldemote",
    "clock",
    "count_leading_zeros",
    "count_trailing_zeros",
    "doublebits",
    "exclusive_scan_add",
    "exclusive_scan_and",
    "exclusive_scan_or",
    "extract",
    "float16bits",
    "float_to_half",
    "float_to_half_fast",
    "floatbits",
    "fma",
    "fmod",
    "half_to_float",
    "half_to_float_fast",
    "insert",
    "intbits",
    "isfinite",
    "isinf",
    "isnan",
    "lanemask",
    "max",
    "memcpy",
    "memcpy64",
    "memmove",
    "memmove64",
    "memory_barrier",
    "memset",
    "memset64",
    "min",
    "mod",
    "none",
    "num_cores",
    "or",
    "packmask",
    "packed_load_active",
    "packed_store_active",
    "packed_store_active2",
    "popcnt",
    "prefetch_l1",
    "prefetch_l2",
    "prefetch_l3",
    "prefetch_nt",
    "prefetchw_l1",
    "prefetchw_l2",
    "prefetchw_l3",
    "print",
    "rcp",
    "rcp_fast",
    "reduce_add",
    "reduce_equal",
    "reduce_max",
    "reduce_min",
    "restore_ftz_daz_flags",
    "rotate",
    "round",
    "rsqrt",
    "rsqrt_fast",
    "saturating_add",
    "saturating_div",
    "saturating_mul",
    "saturating_sub",
    "select",
    "set_ftz_daz_flags",
    "shift",
    "shuffle",
    "sign_extend",
    "signbits",
    "sincos",
    "soa_to_aos2",
    "soa_to_aos3",
    "soa_to_aos4",
    "streaming_load",
    "streaming_load_uniform",
    "streaming_store",
    "touch",
];

/// Functions of one short vector, or some, that are those of each element.
const OF_ELEMENTS: [&str; 16] = [
    "abs",
    "clamp",
    "fma",
    "fmod",
    "intbits",
    "floatbits",
    "isfinite",
    "isinf",
    "isnan",
    "max",
    "min",
    "rcp",
    "rcp_fast",
    "round",
    "rsqrt",
    "rsqrt_fast",
];

pub(super) fn has(name: &str) -> bool {
    NAMES.contains(&name)
        || dot_product(name).is_some()
        || UNARY.iter().any(|u| u.0 == name)
        || BINARY.iter().any(|b| b.0 == name)
        || name.starts_with("atomic_")
}

/// `dot4add_u8i8packed_sat`: the bits of an element, whether those of each word have a sign, and whether the sum saturates.
fn dot_product(name: &str) -> Option<(u32, [bool; 2], bool)> {
    let (bits, rest) = match name.split_once("add_")? {
        ("dot4", rest) => (8, rest),
        ("dot2", rest) => (16, rest),
        _ => return None,
    };
    let (rest, saturates) = rest.strip_suffix("_sat").map_or((rest, false), |rest| (rest, true));
    let signs = match rest.strip_suffix("packed")? {
        "u8u8" | "u16u16" => [false, false],
        "u8i8" | "u16i16" => [false, true],
        "i8i8" | "i16i16" | "i16" => [true, true],
        _ => return None,
    };
    (rest.contains('8') == (bits == 8)).then_some((bits, signs, saturates))
}

/// Sequential consistency, a place in [`nyala_ir::scalar::ORDERS`].
const ORDER: i32 = 7;

impl<'s> Lowerer<'s, '_> {
    /// A function of short vectors, element by element. `None`: it is none.
    pub(super) fn of_elements_each(
        &mut self,
        name: Name<'s>,
        args: &[Expr<'s>],
        span: Span,
    ) -> Lowered<Option<(Val, Ty)>> {
        let word = name.text;
        let key = |e: &Expr| std::ptr::from_ref(e) as usize;
        let is_known =
            OF_ELEMENTS.contains(&word) || UNARY.iter().any(|u| u.0 == word) || BINARY.iter().any(|b| b.0 == word);
        if !is_known || args.is_empty() || args.iter().any(|arg| self.given.contains_key(&key(arg))) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for arg in args {
            values.push(self.value(arg)?);
        }
        let n = values.iter().find_map(|v| self.types.as_short(v.1)).map(|s| s.1);
        let mut vals = Vec::new();
        let mut of = Types::ERROR;
        let mut fault = None;
        for i in 0..n.unwrap_or(1) {
            for (arg, &(val, ty)) in args.iter().zip(&values) {
                let one = match self.types.as_short(ty) {
                    Some((of, length)) if i < length => (self.w.extract(val, i), of),
                    _ => (val, ty),
                };
                self.given.insert(key(arg), one);
            }
            self.w.set_origin(span);
            match self.intrinsic(name, args, span) {
                Ok((val, ty)) => {
                    of = ty;
                    vals.push(val);
                }
                Err(found) => {
                    fault = Some(found);
                    break;
                }
            }
        }
        args.iter().for_each(|arg| _ = self.given.remove(&key(arg)));
        match (fault, n) {
            (Some(fault), _) => Err(fault),
            (None, None) => Ok(vals.first().map(|&val| (val, of))),
            (None, Some(n)) => {
                let ty = self.types.short(of, n);
                Ok(Some((self.of_parts(&vals, ty), ty)))
            }
        }
    }

    /// A call of a function of the library. `None`: it has none of this name that the dialect has for itself.
    pub(super) fn library(&mut self, name: Name<'s>, args: &[Expr<'s>], span: Span) -> Lowered<Option<(Val, Ty)>> {
        let word = name.text;
        if let Some(&(_, op)) = UNARY.iter().find(|u| u.0 == word) {
            let ([val], ty, _) = self.floats(args, span)?;
            return Ok(Some((self.w.op(op, &[val]), ty)));
        }
        if let Some(&(_, op)) = BINARY.iter().find(|b| b.0 == word) {
            let (vals, ty, _) = self.floats::<2>(args, span)?;
            return Ok(Some((self.w.op(op, &vals), ty)));
        }
        if let Some(rest) = word.strip_prefix("atomic_")
            && let Some(rest) = rest.strip_suffix("_global").or(rest.strip_suffix("_local"))
        {
            return self.atomic(rest, name, args, span).map(Some);
        }
        let bool = self.types.prim(Prim::Bool);
        let int = self.types.prim(Prim::I32);
        let long = self.types.prim(Prim::I64);
        let n = self.gang;
        let found = match word {
            "print" => self.print(args, span)?,
            "assert" => self.assert(args, span)?,
            "assume" | "touch" => {
                self.arguments(args, 1, span)?;
                (self.w.unit(), Types::VOID)
            }
            "memory_barrier" => {
                self.arguments(args, 0, span)?;
                let mem = self.mem(span)?;
                let (order, scope) = (self.w.lit_i32(ORDER), self.w.lit_i32(0));
                let mem = self.w.op(Op::Fence, &[mem, order, scope]);
                self.set_mem(mem);
                (self.w.unit(), Types::VOID)
            }
            "set_ftz_daz_flags" => {
                self.arguments(args, 0, span)?;
                (self.w.lit_i32(0), int)
            }
            "alloca" => self.alloca(args, span)?,
            "packmask" => {
                let values = self.arguments(args, 1, span)?;
                let holds = self.truth(values[0], args[0].span)?;
                let from = self.numbers(Prim::Bool, self.types.lanes(values[0].1));
                let ty = self.numbers(Prim::Bool, Some(n));
                let holds = self.convert((holds, from), ty, span)?;
                let active = self.active(span)?;
                let both = self.w.op(Op::And, &[active, holds]);
                let word = self.w.types.prim(Prim::U64);
                let bits = self.w.op_ty(Op::Bits, word, &[both]);
                let ir = self.w.types.i64();
                (self.w.op_ty(Op::Cast, ir, &[bits]), long)
            }
            _ if let Some(of) = dot_product(word) => self.dot_product(of, args, span)?,
            _ if (word.starts_with("prefetch") || word == "cldemote" || word == "restore_ftz_daz_flags")
                && has(word) =>
            {
                self.arguments(args, 1, span)?;
                (self.w.unit(), Types::VOID)
            }
            "round" => {
                // Halves go to even numbers.
                let ([x], ty, prim) = self.floats(args, span)?;
                (self.rounded(x, ty, prim), ty)
            }
            "rcp" | "rcp_fast" => {
                let ([x], ty, prim) = self.floats(args, span)?;
                let one = self.float_of(1.0, ty, prim);
                (self.w.op(Op::Div, &[one, x]), ty)
            }
            "rsqrt" | "rsqrt_fast" => {
                let ([x], ty, prim) = self.floats(args, span)?;
                let one = self.float_of(1.0, ty, prim);
                let root = self.w.op(Op::Sqrt, &[x]);
                (self.w.op(Op::Div, &[one, root]), ty)
            }
            "fma" => {
                let (vals, ty, _) = self.floats::<3>(args, span)?;
                (self.w.op(Op::Fma, &vals), ty)
            }
            "fmod" => {
                let (vals, ty, _) = self.floats::<2>(args, span)?;
                (self.w.op(Op::Rem, &vals), ty)
            }
            "isnan" => {
                let ([x], ty, _) = self.floats(args, span)?;
                (self.w.op(Op::Ne, &[x, x]), self.numbers(Prim::Bool, self.types.lanes(ty)))
            }
            "isinf" | "isfinite" => {
                let ([x], ty, prim) = self.floats(args, span)?;
                let infinity = self.float_of(f64::INFINITY, ty, prim);
                let x = self.w.op(Op::Abs, &[x]);
                let op = if word == "isinf" { Op::Eq } else { Op::Lt };
                (self.w.op(op, &[x, infinity]), self.numbers(Prim::Bool, self.types.lanes(ty)))
            }
            "sincos" => {
                let [x, s, c] = args else { return Err(self.count_of_arguments(args, 3, span)) };
                let ([x], ty, _) = self.floats(std::slice::from_ref(x), span)?;
                let (sine, cosine) = (self.w.op(Op::Sin, &[x]), self.w.op(Op::Cos, &[x]));
                self.store_through(s, (sine, ty), span)?;
                self.store_through(c, (cosine, ty), span)?;
                (self.w.unit(), Types::VOID)
            }
            "clamp" => {
                let (vals, ty, prim) = self.same_numbers(args, 3, span)?;
                let low = self.lesser(false, vals[0], vals[1], prim);
                (self.lesser(true, low, vals[2], prim), ty)
            }
            "min" | "max" => {
                let (vals, ty, prim) = self.same_numbers(args, 2, span)?;
                (self.lesser(word == "min", vals[0], vals[1], prim), ty)
            }
            "mod" => {
                let (vals, ty, prim) = self.same_numbers(args, 2, span)?;
                if prim.is_float() {
                    (self.w.op(Op::Rem, &vals), ty)
                } else {
                    self.binary(Binary::Rem, (vals[0], ty), (vals[1], ty), span)?
                }
            }
            "select" => self.select(args, span)?,
            "and" | "or" => {
                let values = self.arguments(args, 2, span)?;
                let lanes = self.types.lanes(values[0].1).or(self.types.lanes(values[1].1));
                let ty = self.numbers(Prim::Bool, lanes);
                let mut both = Vec::new();
                for (value, arg) in values.into_iter().zip(args) {
                    let holds = self.truth(value, arg.span)?;
                    let from = self.numbers(Prim::Bool, self.types.lanes(value.1));
                    both.push(self.convert((holds, from), ty, arg.span)?);
                }
                (self.w.op(if word == "and" { Op::And } else { Op::Or }, &both), ty)
            }
            "sign_extend" => {
                let values = self.arguments(args, 1, span)?;
                let holds = self.truth(values[0], args[0].span)?;
                let lanes = self.types.lanes(values[0].1);
                let (from, to) = (self.numbers(Prim::Bool, lanes), self.numbers(Prim::I32, lanes));
                let one = self.convert((holds, from), to, span)?;
                let ir = self.w.ty(one);
                let zero = self.w.lit(ir, 0);
                (self.w.op(Op::Sub, &[zero, one]), to)
            }
            "lanemask" => {
                self.arguments(args, 0, span)?;
                (self.active_bits(span)?, long)
            }
            "any" | "all" | "none" => {
                let values = self.arguments(args, 1, span)?;
                let holds = self.truth(values[0], args[0].span)?;
                let from = self.numbers(Prim::Bool, self.types.lanes(values[0].1));
                let ty = self.numbers(Prim::Bool, Some(n));
                let holds = self.convert((holds, from), ty, span)?;
                let active = self.active(span)?;
                let val = match word {
                    "all" => {
                        let not = self.w.not(holds);
                        let fails = self.w.op(Op::And, &[active, not]);
                        let any = self.any(fails);
                        self.w.not(any)
                    }
                    _ => {
                        let both = self.w.op(Op::And, &[active, holds]);
                        let any = self.any(both);
                        if word == "any" { any } else { self.w.not(any) }
                    }
                };
                (val, bool)
            }
            "popcnt" => {
                let values = self.arguments(args, 1, span)?;
                let (val, ty) = values[0];
                match self.number_type(ty) {
                    Some((Prim::Bool, Some(_))) => {
                        let active = self.active(span)?;
                        let both = self.w.op(Op::And, &[active, val]);
                        let word = self.w.types.prim(Prim::U64);
                        let bits = self.w.op_ty(Op::Bits, word, &[both]);
                        let count = self.w.op(Op::Popcount, &[bits]);
                        let ir = self.w.types.i32();
                        (self.w.op_ty(Op::Cast, ir, &[count]), int)
                    }
                    // One number for all lanes has one bit.
                    Some((Prim::Bool, None)) => (self.convert((val, ty), int, span)?, int),
                    Some((prim, lanes)) if prim.is_int() => {
                        let count = self.w.op(Op::Popcount, &[val]);
                        let to = self.numbers(Prim::I32, lanes);
                        (self.convert((count, ty), to, span)?, to)
                    }
                    _ => return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty)))),
                }
            }
            "count_leading_zeros" | "count_trailing_zeros" => {
                let values = self.arguments(args, 1, span)?;
                let (val, ty) = values[0];
                if self.number_type(ty).is_none_or(|p| !p.0.is_int()) {
                    return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
                }
                let op = if word == "count_leading_zeros" { Op::Clz } else { Op::Ctz };
                (self.w.op(op, &[val]), ty)
            }
            "intbits" | "floatbits" | "doublebits" | "float16bits" => self.bits_as(word, args, span)?,
            "signbits" => {
                let (bits, ty) = self.bits_as("intbits", args, span)?;
                let ir = self.w.ty(bits);
                let wide = self.number_type(ty).is_some_and(|p| p.0.bits() == 64);
                let sign = self.w.lit(ir, if wide { 1 << 63 } else { 1 << 31 });
                (self.w.op(Op::And, &[bits, sign]), ty)
            }
            "float_to_half" | "float_to_half_fast" => {
                let values = self.arguments(args, 1, span)?;
                let lanes = self.types.lanes(values[0].1);
                let float = self.numbers(Prim::F32, lanes);
                let val = self.convert(values[0], float, span)?;
                let [half, bits] = [Prim::F16, Prim::U16].map(|p| self.numbers(p, lanes));
                let [ir, of_bits] = [half, bits].map(|ty| self.types.ir(ty, self.w));
                let val = self.w.op_ty(Op::Cast, ir, &[val]);
                (self.w.op_ty(Op::Bitcast, of_bits, &[val]), bits)
            }
            "half_to_float" | "half_to_float_fast" => {
                let values = self.arguments(args, 1, span)?;
                let lanes = self.types.lanes(values[0].1);
                let [float, half, bits] = [Prim::F32, Prim::F16, Prim::U16].map(|p| self.numbers(p, lanes));
                let val = self.convert(values[0], bits, span)?;
                let [ir, of_half] = [float, half].map(|ty| self.types.ir(ty, self.w));
                let val = self.w.op_ty(Op::Bitcast, of_half, &[val]);
                (self.w.op_ty(Op::Cast, ir, &[val]), float)
            }
            "reduce_add" | "reduce_min" | "reduce_max" => self.reduce(word, args, span)?,
            "reduce_equal" => self.reduce_equal(args, span)?,
            "exclusive_scan_add" | "exclusive_scan_and" | "exclusive_scan_or" => self.scan(word, args, span)?,
            "broadcast" | "rotate" | "shift" | "shuffle" => self.moved_lanes(word, args, span)?,
            "extract" => {
                let values = self.arguments(args, 2, span)?;
                let (val, ty) = self.in_all_lanes(values[0], args[0].span)?;
                let number = self.convert(values[1], int, args[1].span)?;
                (self.lane_of(val, ty, number), self.types.lane(ty))
            }
            "insert" => {
                let values = self.arguments(args, 3, span)?;
                let (val, ty) = self.in_all_lanes(values[0], args[0].span)?;
                let Kind::Varying(..) = *self.types.kind(ty) else {
                    return Err(Box::new(sierra_lanes::no_lanes(args[0].span, &self.types.show(ty))));
                };
                let number = self.convert(values[1], int, args[1].span)?;
                let lane = self.types.lane(ty);
                let new = self.convert(values[2], lane, args[2].span)?;
                (self.w.op(Op::Insert, &[val, number, new]), ty)
            }
            "packed_load_active" | "packed_store_active" | "packed_store_active2" => self.packed(word, args, span)?,
            "streaming_store" => {
                let [pointer, val] = args else { return Err(self.count_of_arguments(args, 2, span)) };
                let (pointer, to, _) = self.memory(pointer)?;
                let found = self.value(val)?;
                if self.types.is_varying(found.1) {
                    let ty = self.with_lanes(to, n, span)?;
                    let val = self.convert(found, ty, val.span)?;
                    let lanes = self.gang_at(pointer, to);
                    self.scatter(&lanes, val, ty, span)?;
                } else {
                    let val = self.convert(found, to, val.span)?;
                    let zero = self.w.lit_i64(0);
                    let at = self.w.op(Op::Lea, &[pointer, zero]);
                    self.store(at, val, span)?;
                }
                (self.w.unit(), Types::VOID)
            }
            "streaming_load" => {
                let [pointer] = args else { return Err(self.count_of_arguments(args, 1, span)) };
                let (pointer, to, _) = self.memory(pointer)?;
                let lanes = self.gang_at(pointer, to);
                self.gather(&lanes, span)?
            }
            "streaming_load_uniform" => {
                let [pointer] = args else { return Err(self.count_of_arguments(args, 1, span)) };
                let (pointer, to, _) = self.memory(pointer)?;
                let zero = self.w.lit_i64(0);
                let at = self.w.op(Op::Lea, &[pointer, zero]);
                (self.load(at, span)?, to)
            }
            "aos_to_soa2" | "aos_to_soa3" | "aos_to_soa4" => self.transposed(word, args, true, span)?,
            "soa_to_aos2" | "soa_to_aos3" | "soa_to_aos4" => self.transposed(word, args, false, span)?,
            "memcpy" | "memmove" | "memset" | "memcpy64" | "memmove64" | "memset64" => {
                self.moved_memory(word.trim_end_matches("64"), args, span)?
            }
            "clock" => {
                self.arguments(args, 0, span)?;
                let ir = self.w.types.i64();
                (self.run_for(span, "nyala_time_ns", &[], ir)?, long)
            }
            "num_cores" => {
                self.arguments(args, 0, span)?;
                let ir = self.w.types.i32();
                (self.run_for(span, "nyala_num_threads", &[], ir)?, int)
            }
            "avg_up" | "avg_down" | "saturating_add" | "saturating_sub" | "saturating_mul" | "saturating_div" => {
                self.narrow(word, args, span)?
            }
            "abs" => return Ok(None),
            _ if has(word) => {
                let what = format!("the function `{word}` of ISPC's library");
                return Err(Box::new(limitation::not_supported(
                    name.span,
                    &what,
                    "write it as a function of the program",
                )));
            }
            _ => return Ok(None),
        };
        Ok(Some(found))
    }

    fn count_of_arguments(&self, args: &[Expr<'s>], n: usize, span: Span) -> Box<Diagnostic> {
        Box::new(sierra_type::arguments(span, args.len(), n, Span::NONE))
    }

    /// Arguments as floats of one type.
    fn floats<const N: usize>(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<([Val; N], Ty, Prim)> {
        let values = self.arguments(args, N, span)?;
        let prims = values.iter().map(|v| self.number_type(v.1).map_or(Prim::F32, |n| n.0)).collect::<Vec<_>>();
        let floats = prims.iter().copied().filter(|p| p.is_float());
        let prim = floats.reduce(|a, b| if a.bits() >= b.bits() { a } else { b }).unwrap_or(Prim::F32);
        let lanes = self.lanes_of(&values, span)?;
        let ty = self.numbers(prim, lanes);
        let vals = self.converted(&values, args, ty)?;
        self.w.set_origin(span);
        let vals: Result<[Val; N], _> = vals.try_into();
        vals.map(|vals| (vals, ty, prim)).map_err(|_| self.count_of_arguments(args, N, span))
    }

    /// Arguments as numbers of one type.
    fn same_numbers(&mut self, args: &[Expr<'s>], n: usize, span: Span) -> Lowered<(Vec<Val>, Ty, Prim)> {
        let values = self.arguments(args, n, span)?;
        let mut prim: Option<Prim> = None;
        for ((_, ty), arg) in values.iter().zip(args) {
            let Some((found, _)) = self.number_type(*ty) else {
                return Err(Box::new(sierra_type::mismatch(arg.span, &self.types.show(*ty), "a number")));
            };
            prim = Some(match prim {
                Some(prim) => self.common(prim, found),
                None => found,
            });
        }
        let (prim, lanes) = (prim.unwrap_or(Prim::I32), self.lanes_of(&values, span)?);
        let ty = self.numbers(prim, lanes);
        let vals = self.converted(&values, args, ty)?;
        self.w.set_origin(span);
        Ok((vals, ty, prim))
    }

    fn lesser(&mut self, is_min: bool, a: Val, b: Val, prim: Prim) -> Val {
        if prim.is_float() {
            return self.w.op(if is_min { Op::Fmin } else { Op::Fmax }, &[a, b]);
        }
        let is_less = self.w.op(Op::Lt, &[a, b]);
        let (then, otherwise) = if is_min { (a, b) } else { (b, a) };
        self.w.op(Op::Select, &[is_less, then, otherwise])
    }

    fn float_of(&mut self, value: f64, ty: Ty, prim: Prim) -> Val {
        let ir = self.types.ir(ty, self.w);
        match prim {
            Prim::F64 => self.w.lit(ir, value.to_bits()),
            Prim::F32 => self.w.lit(ir, (value as f32).to_bits().into()),
            _ => {
                let wide = self.w.lit_prim(Prim::F64, value.to_bits());
                let half = self.w.types.prim(prim);
                let val = self.w.op_ty(Op::Cast, half, &[wide]);
                if self.types.is_varying(ty) { self.w.op_ty(Op::Splat, ir, &[val]) } else { val }
            }
        }
    }

    /// The nearest integer; of two, the even one.
    fn rounded(&mut self, x: Val, ty: Ty, prim: Prim) -> Val {
        // From 2²³ on, or 2⁵², all floats are integers; below, adding it rounds.
        let magic = match prim {
            Prim::F64 => 4_503_599_627_370_496.0,
            Prim::F32 => 8_388_608.0,
            _ => 1024.0,
        };
        let large = self.float_of(magic, ty, prim);
        let positive = self.w.op(Op::Abs, &[x]);
        let sum = self.w.op(Op::Add, &[positive, large]);
        let near = self.w.op(Op::Sub, &[sum, large]);
        let is_small = self.w.op(Op::Lt, &[positive, large]);
        let near = self.w.op(Op::Copysign, &[near, x]);
        self.w.op(Op::Select, &[is_small, near, x])
    }

    /// The active lanes as conditions, all outside of SIMD mode.
    fn active(&mut self, span: Span) -> Lowered<Val> {
        let mask = self.current_mask(self.gang, span)?;
        Ok(self.bools(mask))
    }

    fn active_bits(&mut self, span: Span) -> Lowered<Val> {
        let active = self.active(span)?;
        let word = self.w.types.prim(Prim::U64);
        let bits = self.w.op_ty(Op::Bits, word, &[active]);
        let long = self.w.types.i64();
        Ok(self.w.op_ty(Op::Cast, long, &[bits]))
    }

    fn assert(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 1, span)?;
        let holds = self.truth(values[0], args[0].span)?;
        let holds = if self.types.is_varying(values[0].1) {
            let active = self.active(span)?;
            let not = self.w.not(holds);
            let fails = self.w.op(Op::And, &[active, not]);
            let any = self.any(fails);
            self.w.not(any)
        } else {
            holds
        };
        self.mem(span)?;
        let (k_holds, k_fails) = (self.block("holds"), self.block("fails"));
        self.branch(holds, k_holds, k_fails);
        self.go_on_in(k_fails);
        let at = args[0].span;
        let source = self.sources.text(at.file).get(at.lo as usize..at.hi as usize).unwrap_or_default();
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = [self.sources.place(span), format!("assertion failed: `{source}`")];
        let byte = self.types.prim(Prim::U8);
        let pointer = self.types.pointer(byte, true);
        let mut addresses = Vec::new();
        for text in texts {
            if let Value::Place(place) = self.text_place(text.as_bytes()) {
                addresses.push(self.retyped(place.address, pointer));
            }
        }
        self.run(span, "nyala_panic_at", &addresses)?;
        let callee = self.w.builtin(Builtin::Unreachable);
        self.end(callee, &[]);
        self.go_on_in(k_holds);
        Ok((self.w.unit(), Types::VOID))
    }

    /// `select(c, a, b)`: both are computed.
    fn select(&mut self, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 3, span)?;
        let (holds, a, b) = (self.truth(values[0], args[0].span)?, values[1], values[2]);
        let condition = self.types.lanes(values[0].1);
        let ty = self.chosen_type(a, b, span)?;
        let ty = match condition {
            Some(n) => self.with_lanes(ty, n, span)?,
            None => ty,
        };
        let (x, y) = (self.convert(a, ty, args[1].span)?, self.convert(b, ty, args[2].span)?);
        self.w.set_origin(span);
        if condition.is_some() {
            return Ok((self.blend(holds, x, y, ty), ty));
        }
        // A condition without lanes is the same in all of them.
        let (k_then, k_else) = (self.block("then"), self.block("else"));
        let ir = self.types.ir(ty, self.w);
        let mem = self.w.types.mem();
        let cn = self.w.types.cn(&[mem, ir]);
        let after = self.w.declare("after", cn, &["m", "value"]);
        self.mem(span)?;
        self.branch(holds, k_then, k_else);
        self.go_on_in(k_then);
        self.jump(after, &[x]);
        self.go_on_in(k_else);
        self.jump(after, &[y]);
        self.go_on_in(after);
        Ok((self.w.param(after, 1), ty))
    }

    /// What an argument becomes for a parameter with lanes.
    fn in_all_lanes(&mut self, (val, ty): (Val, Ty), span: Span) -> Lowered<(Val, Ty)> {
        let all = self.with_lanes(ty, self.gang, span)?;
        Ok((self.convert((val, ty), all, span)?, all))
    }

    fn bits_as(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 1, span)?;
        let (mut val, ty) = values[0];
        let Some((mut prim, lanes)) = self.number_type(ty) else {
            return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
        };
        let expected = match word {
            "floatbits" => Some(Prim::U32),
            "doublebits" => Some(Prim::U64),
            "float16bits" => Some(Prim::U16),
            _ => None,
        };
        if let Some(expected) = expected.filter(|e| prim.is_int() && prim.bits() != e.bits()) {
            // An argument for a parameter of this type.
            let wide = self.numbers(expected, lanes);
            (val, prim) = (self.convert((val, ty), wide, args[0].span)?, expected);
        }
        let to = match (word, prim.bits()) {
            ("intbits", 64) => Prim::U64,
            ("intbits", 16) => Prim::U16,
            ("intbits", 32) => Prim::U32,
            ("floatbits", 32) => Prim::F32,
            ("doublebits", 64) => Prim::F64,
            ("float16bits", 16) => Prim::F16,
            _ => return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty)))),
        };
        let to = self.numbers(to, lanes);
        let ir = self.types.ir(to, self.w);
        Ok((if self.w.ty(val) == ir { val } else { self.w.op_ty(Op::Bitcast, ir, &[val]) }, to))
    }

    // Numbers.

    /// Averages and saturating operations on numbers of 64 bits: calls of the library's own functions.
    fn narrow_long(&mut self, word: &str, args: &[Expr<'s>], vals: [Val; 2], ty: Ty, span: Span) -> Lowered<(Val, Ty)> {
        let text = match word {
            "avg_up" => "avg_up64",
            "avg_down" => "avg_down64",
            "saturating_add" => "saturating_add64",
            "saturating_sub" => "saturating_sub64",
            "saturating_mul" => "saturating_mul64",
            _ => "saturating_div64",
        };
        let Some(&(Entity::Functions(set), _)) = self.library.get(text) else {
            return Err(Box::new(sierra_name::error(span, word)));
        };
        let values: Vec<(Value, Span)> =
            vals.iter().zip(args).map(|(&val, arg)| (Value::Plain(val, ty), arg.span)).collect();
        let id = self.chosen(set, text, &[], &values, span)?;
        let callee = self.callee(id);
        self.call_values(&callee, &values, span)
    }

    /// Products of parts of words, added to a number.
    fn dot_product(
        &mut self,
        (bits, signs, saturates): (u32, [bool; 2], bool),
        args: &[Expr<'s>],
        span: Span,
    ) -> Lowered<(Val, Ty)> {
        let values = self.arguments(args, 3, span)?;
        let lanes = self.lanes_of(&values, span)?;
        let has_sign = signs[0] || signs[1];
        let result = self.numbers(if has_sign { Prim::I32 } else { Prim::U32 }, lanes);
        let [words, wide] = [Prim::U32, Prim::I64].map(|p| self.numbers(p, lanes));
        let mut sum = self.convert(values[2], result, args[2].span)?;
        sum = self.convert((sum, result), wide, span)?;
        let part = |signed: bool| match (bits, signed) {
            (8, true) => Prim::I8,
            (8, false) => Prim::U8,
            (_, true) => Prim::I16,
            (_, false) => Prim::U16,
        };
        let both = [self.convert(values[0], words, args[0].span)?, self.convert(values[1], words, args[1].span)?];
        for i in 0..32 / bits {
            let mut factors = Vec::new();
            for (word, signed) in both.into_iter().zip(signs) {
                let ir = self.w.ty(word);
                let by = self.w.lit(ir, (i * bits).into());
                let word = self.w.op(Op::Shr, &[word, by]);
                let narrow = self.numbers(part(signed), lanes);
                let word = self.convert((word, words), narrow, span)?;
                factors.push(self.convert((word, narrow), wide, span)?);
            }
            let product = self.w.op(Op::Mul, &factors);
            sum = self.w.op(Op::Add, &[sum, product]);
        }
        if saturates {
            let ir = self.w.ty(sum);
            let most = if has_sign { i64::from(i32::MAX) } else { i64::from(u32::MAX) };
            let least = if has_sign { i64::from(i32::MIN) } else { 0 };
            let (most, least) = (self.w.lit(ir, most as u64), self.w.lit(ir, least as u64));
            sum = self.lesser(true, sum, most, Prim::I64);
            sum = self.lesser(false, sum, least, Prim::I64);
        }
        Ok((self.convert((sum, wide), result, span)?, result))
    }

    /// Means and sums that stay in range, computed with more bits.
    fn narrow(&mut self, word: &str, args: &[Expr<'s>], span: Span) -> Lowered<(Val, Ty)> {
        let (vals, ty, prim) = self.same_numbers(args, 2, span)?;
        if prim.is_float() {
            return Err(Box::new(sierra_type::operand(span, word, &self.types.show(ty))));
        }
        if prim.bits() > 32 {
            return self.narrow_long(word, args, [vals[0], vals[1]], ty, span);
        }
        let lanes = self.types.lanes(ty);
        let wide = self.numbers(Prim::I64, lanes);
        let (a, b) = (self.convert((vals[0], ty), wide, span)?, self.convert((vals[1], ty), wide, span)?);
        let ir = self.w.ty(a);
        let val = match word {
            "saturating_sub" => self.w.op(Op::Sub, &[a, b]),
            "saturating_mul" => self.w.op(Op::Mul, &[a, b]),
            "saturating_div" => self.binary(Binary::Div, (a, wide), (b, wide), span)?.0,
            _ => self.w.op(Op::Add, &[a, b]),
        };
        let val = if let Some(up) = word.strip_prefix("avg_") {
            let one = self.w.lit(ir, 1);
            let val = if up == "up" { self.w.op(Op::Add, &[val, one]) } else { val };
            // Toward zero.
            let two = self.w.lit(ir, 2);
            self.w.op(Op::Div, &[val, two])
        } else {
            let most = u64::MAX >> (64 - prim.bits()) >> u32::from(prim.is_signed());
            let least = if prim.is_signed() { -(most as i64) - 1 } else { 0 };
            let (most, least) = (self.w.lit(ir, most), self.w.lit(ir, least as u64));
            let val = self.lesser(true, val, most, Prim::I64);
            self.lesser(false, val, least, Prim::I64)
        };
        Ok((self.convert((val, wide), ty, span)?, ty))
    }
}
