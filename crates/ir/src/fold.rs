//! Local simplification, done by the constructors. Laws: the result is never more work than the operation; every
//! rule makes the term smaller or moves a literal to the right; nothing that a program without undefined behavior
//! computes changes (floats: bit for bit).

use crate::ops::Op;
use crate::types::{Prim, Ty, TyKind};
use crate::world::{Node, Val, World};

/// How far chains of `insert` are searched for a part.
const INSERT_CHAIN: usize = 256;
/// Aggregates of more parts stay `insert`s.
const REBUILD_PARTS: usize = 64;

/// The simpler value equal to `op(args)`, if there is one.
pub fn fold(w: &mut World, op: Op, ty: Ty, args: &[Val]) -> Option<Val> {
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => {
            fold_arith(w, op, ty, args[0], args[1])
        }
        Op::PDiv | Op::PRem => fold_partial_div(w, op, args),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => fold_comparison(w, op, args[0], args[1]),
        Op::Cast => fold_cast(w, ty, args[0]),
        Op::Bitcast => fold_bitcast(w, ty, args[0]),
        Op::Select => fold_select(w, args),
        Op::Tuple | Op::Struct => fold_reassemble(w, ty, args),
        Op::Array => None,
        Op::Splat => None,
        Op::Extract => fold_extract(w, args[0], w.as_lit(args[1])?),
        Op::Insert => fold_insert(w, ty, args),
        Op::Load => fold_load(w, args[1]),
        Op::Store => (w.node(args[2]) == Node::Undef).then_some(args[0]),
        Op::Run => w.is_op(args[0], Op::Run).then_some(args[0]),
        Op::Hlt => w.is_op(args[0], Op::Hlt).then_some(args[0]),
        Op::Lea | Op::Slot | Op::Alloc | Op::Known => None,
        Op::Popcount | Op::Clz | Op::Ctz => {
            let (prim, bits) = (w.prim(args[0])?, w.as_lit(args[0])?);
            Some(w.lit_prim(prim, eval_count(op, prim, bits)))
        }
        _ if op.is_exact_math() => fold_exact_math(w, op, ty, args),
        _ => None,
    }
}

/// Counts bits of an integer.
pub fn eval_count(op: Op, prim: Prim, bits: u64) -> u64 {
    let width = u64::from(prim.bits());
    let bits = if width == 64 { bits } else { bits & ((1 << width) - 1) };
    match op {
        Op::Popcount => u64::from(bits.count_ones()),
        Op::Clz => u64::from(bits.leading_zeros()) - (64 - width),
        _ => u64::from(bits.trailing_zeros()).min(width),
    }
}

/// Arithmetic on literals, integers modulo 2^n. `None` where the result is undefined. The flag tells whether a signed
/// result overflowed.
pub fn eval_arith(op: Op, prim: Prim, a: u64, b: u64) -> Option<(u64, bool)> {
    if prim == Prim::F32 {
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let r = match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
            Op::Div => x / y,
            Op::Rem => x % y,
            _ => return None,
        };
        return Some((r.to_bits() as u64, false));
    }
    if prim == Prim::F64 {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let r = match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
            Op::Div => x / y,
            Op::Rem => x % y,
            _ => return None,
        };
        return Some((r.to_bits(), false));
    }
    let amount = (b as u32) & (prim.bits().max(8) - 1);
    if prim.is_signed() {
        let (x, y) = (a as i64 as i128, b as i64 as i128);
        let r = match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x * y,
            Op::Div => x.checked_div(y)?,
            Op::Rem => x.checked_rem(y)?,
            Op::And => x & y,
            Op::Or => x | y,
            Op::Xor => x ^ y,
            Op::Shl => ((a as i64) << amount) as i128,
            Op::Shr => ((a as i64) >> amount) as i128,
            _ => return None,
        };
        let bits = prim.normalize(r as u64);
        let overflow = bits as i64 as i128 != r;
        if overflow && matches!(op, Op::Div | Op::Rem) {
            return None;
        }
        return Some((bits, overflow && op != Op::Shl));
    }
    let r = match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => a.checked_div(b)?,
        Op::Rem => a.checked_rem(b)?,
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Shl => a << amount,
        Op::Shr => a >> amount,
        _ => return None,
    };
    Some((prim.normalize(r), false))
}

fn is_commutative(op: Op) -> bool {
    matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor)
}

fn fold_arith(w: &mut World, op: Op, ty: Ty, a: Val, b: Val) -> Option<Val> {
    let prim = w.types.as_prim(ty)?;
    let (la, lb) = (w.as_lit(a), w.as_lit(b));
    if let (Some(x), Some(y)) = (la, lb) {
        let (bits, overflow) = eval_arith(op, prim, x, y)?;
        if overflow {
            let origin = w.current_origin();
            w.fold_warnings.push((origin, "signed overflow"));
        }
        return Some(w.lit(ty, bits));
    }
    if w.node(a) == Node::Undef && w.node(b) == Node::Undef {
        return Some(a);
    }
    if prim.is_float() {
        return fold_float_identity(w, op, prim, a, b);
    }
    if la.is_some() && is_commutative(op) {
        return Some(w.op(op, &[b, a]));
    }
    let ones = prim.normalize(u64::MAX);
    if a == b {
        match op {
            Op::Sub | Op::Xor => return Some(w.lit(ty, 0)),
            Op::And | Op::Or => return Some(a),
            _ => {}
        }
    }
    if la == Some(0) && matches!(op, Op::Shl | Op::Shr) {
        return Some(a);
    }
    let c = lb?;
    match op {
        Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::Shr if c == 0 => return Some(a),
        Op::Mul | Op::And if c == 0 => return Some(b),
        Op::Mul | Op::Div if c == 1 => return Some(a),
        Op::Rem if c == 1 => return Some(w.lit(ty, 0)),
        Op::And if c == ones => return Some(a),
        Op::Or if c == ones => return Some(b),
        // One form for `x - c` and `x + (-c)`, so that offsets cancel out.
        Op::Sub if prim.is_signed() => {
            let (neg, overflow) = eval_arith(Op::Sub, prim, 0, c)?;
            if !overflow {
                let neg = w.lit(ty, neg);
                return Some(w.op(Op::Add, &[a, neg]));
            }
        }
        // If neither `x + c1` nor the whole overflows, `x + (c1 + c2)` does not.
        Op::Add if w.is_op(a, Op::Add) => {
            let (x, c1) = (w.args(a)[0], w.args(a)[1]);
            let (sum, overflow) = eval_arith(Op::Add, prim, w.as_lit(c1)?, c)?;
            if !overflow {
                let sum = w.lit(ty, sum);
                return Some(w.op(Op::Add, &[x, sum]));
            }
        }
        Op::Xor if w.is_op(a, Op::Xor) => {
            let (x, c1) = (w.args(a)[0], w.args(a)[1]);
            let c = w.lit(ty, w.as_lit(c1)? ^ c);
            return Some(w.op(Op::Xor, &[x, c]));
        }
        // `!(a < b)` is `a >= b`, of floats only for equality.
        Op::Xor if prim == Prim::Bool && c == 1 => {
            let cmp = w.as_op(a)?;
            let (x, y) = (*w.args(a).first()?, *w.args(a).get(1)?);
            let float = w.prim(x).is_some_and(Prim::is_float);
            let inverse = match cmp {
                Op::Eq => Op::Ne,
                Op::Ne => Op::Eq,
                Op::Lt if !float => Op::Ge,
                Op::Le if !float => Op::Gt,
                Op::Gt if !float => Op::Le,
                Op::Ge if !float => Op::Lt,
                _ => return None,
            };
            return Some(w.op(inverse, &[x, y]));
        }
        _ => {}
    }
    None
}

fn fold_float_identity(w: &World, op: Op, prim: Prim, a: Val, b: Val) -> Option<Val> {
    let value = |v: Val| {
        let bits = w.as_lit(v)?;
        Some(if prim == Prim::F32 { f32::from_bits(bits as u32) as f64 } else { f64::from_bits(bits) })
    };
    let is = |v: Option<f64>, x: f64| v.is_some_and(|v| v.to_bits() == x.to_bits());
    match op {
        Op::Mul | Op::Div if is(value(b), 1.0) => Some(a),
        Op::Mul if is(value(a), 1.0) => Some(b),
        Op::Add if is(value(b), -0.0) => Some(a),
        Op::Add if is(value(a), -0.0) => Some(b),
        Op::Sub if is(value(b), 0.0) => Some(a),
        _ => None,
    }
}

/// A division that cannot fault is total.
fn fold_partial_div(w: &mut World, op: Op, args: &[Val]) -> Option<Val> {
    let prim = w.prim(args[2])?;
    let divisor = w.as_lit(args[2])?;
    let total = if op == Op::PDiv { Op::Div } else { Op::Rem };
    if divisor == 0 {
        let origin = w.current_origin();
        w.fold_warnings.push((origin, "division by zero"));
        return None;
    }
    let minus_one = prim.is_signed() && divisor == u64::MAX;
    match w.as_lit(args[1]) {
        Some(dividend) => {
            let (bits, _) = eval_arith(total, prim, dividend, divisor)?;
            Some(w.lit_prim(prim, bits))
        }
        None if minus_one => None,
        None => Some(w.op(total, &[args[1], args[2]])),
    }
}

/// A comparison of literals.
pub fn eval_comparison(op: Op, prim: Prim, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::*;
    let ord = match prim {
        Prim::F32 => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        Prim::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        p if p.is_signed() => Some((a as i64).cmp(&(b as i64))),
        _ => Some(a.cmp(&b)),
    };
    match op {
        Op::Eq => ord == Some(Equal),
        Op::Ne => ord != Some(Equal),
        Op::Lt => ord == Some(Less),
        Op::Le => matches!(ord, Some(Less | Equal)),
        Op::Gt => ord == Some(Greater),
        _ => matches!(ord, Some(Greater | Equal)),
    }
}

fn fold_comparison(w: &mut World, op: Op, a: Val, b: Val) -> Option<Val> {
    let prim = w.prim(a);
    if let (Some(x), Some(y)) = (w.as_lit(a), w.as_lit(b)) {
        let r = eval_comparison(op, prim.unwrap_or(Prim::U64), x, y);
        return Some(w.lit_bool(r));
    }
    if a == b && !prim.is_some_and(Prim::is_float) {
        return Some(w.lit_bool(matches!(op, Op::Eq | Op::Le | Op::Ge)));
    }
    if w.as_lit(a).is_some() {
        let swapped = match op {
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
            same => same,
        };
        return Some(w.op(swapped, &[b, a]));
    }
    if prim == Some(Prim::Bool) && matches!(op, Op::Eq | Op::Ne) {
        let c = w.as_lit(b)?;
        return Some(if (c == 1) == (op == Op::Eq) { a } else { w.not(a) });
    }
    None
}

/// Conversion of a literal: integers wrap, floats round to nearest, float to integer saturates, to bool tests `!= 0`.
pub fn eval_cast(from: Prim, to: Prim, bits: u64) -> u64 {
    if to == Prim::Bool {
        let zero = match from {
            Prim::F32 => f32::from_bits(bits as u32) == 0.0,
            Prim::F64 => f64::from_bits(bits) == 0.0,
            _ => bits == 0,
        };
        return !zero as u64;
    }
    if from.is_float() {
        let x = if from == Prim::F32 { f32::from_bits(bits as u32) as f64 } else { f64::from_bits(bits) };
        return match to {
            Prim::F32 => (x as f32).to_bits() as u64,
            Prim::F64 => x.to_bits(),
            Prim::I8 => x as i8 as i64 as u64,
            Prim::I16 => x as i16 as i64 as u64,
            Prim::I32 => x as i32 as i64 as u64,
            Prim::I64 => x as i64 as u64,
            Prim::U8 => x as u8 as u64,
            Prim::U16 => x as u16 as u64,
            Prim::U32 => x as u32 as u64,
            Prim::U64 | Prim::Bool => x as u64,
        };
    }
    match (to, from.is_signed()) {
        (Prim::F32, true) => (bits as i64 as f32).to_bits() as u64,
        (Prim::F32, false) => (bits as f32).to_bits() as u64,
        (Prim::F64, true) => (bits as i64 as f64).to_bits(),
        (Prim::F64, false) => (bits as f64).to_bits(),
        _ => to.normalize(bits),
    }
}

fn fold_cast(w: &mut World, ty: Ty, a: Val) -> Option<Val> {
    if w.ty(a) == ty {
        return Some(a);
    }
    let (from, to) = (w.prim(a)?, w.types.as_prim(ty)?);
    if w.node(a) == Node::Undef {
        return Some(w.undef(ty));
    }
    let bits = w.as_lit(a)?;
    Some(w.lit(ty, eval_cast(from, to, bits)))
}

fn fold_bitcast(w: &mut World, ty: Ty, a: Val) -> Option<Val> {
    if w.ty(a) == ty {
        return Some(a);
    }
    if w.is_op(a, Op::Bitcast) {
        let inner = w.args(a)[0];
        return Some(w.op_ty(Op::Bitcast, ty, &[inner]));
    }
    let bits = w.as_lit(a)?;
    if let Some(from) = w.prim(a) {
        // Sign-extended patterns become the plain bits first.
        let bits = if from.bits() < 64 { bits & ((1u64 << from.bits()) - 1) } else { bits };
        return match w.types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } => Some(w.lit(ty, bits)),
            _ => None,
        };
    }
    matches!(w.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. }).then(|| w.lit(ty, bits))
}

fn fold_select(w: &mut World, args: &[Val]) -> Option<Val> {
    let (c, a, b) = (args[0], args[1], args[2]);
    if let Some(bit) = w.as_lit(c) {
        return Some(if bit == 1 { a } else { b });
    }
    if a == b || w.node(b) == Node::Undef {
        return Some(a);
    }
    if w.node(a) == Node::Undef {
        return Some(b);
    }
    if w.prim(a) == Some(Prim::Bool) {
        return match (w.as_lit(a), w.as_lit(b)) {
            (Some(1), Some(0)) => Some(c),
            (Some(0), Some(1)) => Some(w.not(c)),
            (Some(1), None) => Some(w.op(Op::Or, &[c, b])),
            (None, Some(0)) => Some(w.op(Op::And, &[c, a])),
            _ => None,
        };
    }
    None
}

/// An aggregate of all parts of another one is that one.
fn fold_reassemble(w: &mut World, ty: Ty, args: &[Val]) -> Option<Val> {
    let first = *args.first()?;
    if !w.is_op(first, Op::Extract) {
        return None;
    }
    let whole = w.args(first)[0];
    if w.ty(whole) != ty || w.types.n_parts(ty) != Some(args.len() as u64) {
        return None;
    }
    let is_part = |(i, &v): (usize, &Val)| {
        w.is_op(v, Op::Extract) && w.args(v)[0] == whole && w.as_lit(w.args(v)[1]) == Some(i as u64)
    };
    args.iter().enumerate().all(is_part).then_some(whole)
}

fn fold_extract(w: &mut World, mut agg: Val, idx: u64) -> Option<Val> {
    for step in 0..INSERT_CHAIN {
        match w.node(agg) {
            Node::Op(Op::Tuple | Op::Struct | Op::Array) => return Some(w.args(agg)[idx as usize]),
            Node::Op(Op::Splat) => return Some(w.args(agg)[0]),
            Node::Undef => {
                let part = w.types.part(w.ty(agg), idx)?;
                return Some(w.undef(part));
            }
            Node::Op(Op::Insert) => {
                let (base, at, v) = (w.args(agg)[0], w.args(agg)[1], w.args(agg)[2]);
                if w.as_lit(at)? == idx {
                    return Some(v);
                }
                agg = base;
            }
            _ if step > 0 => return Some(w.extract(agg, idx)),
            _ => return None,
        }
    }
    None
}

fn fold_insert(w: &mut World, ty: Ty, args: &[Val]) -> Option<Val> {
    let (agg, v) = (args[0], args[2]);
    let idx = w.as_lit(args[1])?;
    let n = w.types.n_parts(ty)?;
    if n as usize <= REBUILD_PARTS && matches!(w.node(agg), Node::Undef | Node::Op(Op::Tuple | Op::Struct | Op::Array))
    {
        let mut parts: Vec<Val> = Vec::with_capacity(n as usize);
        for i in 0..n {
            parts.push(if i == idx { v } else { w.extract(agg, i) });
        }
        return Some(match w.types.kind(ty) {
            TyKind::Tuple(_) => w.op(Op::Tuple, &parts),
            TyKind::Struct(_) => w.op_ty(Op::Struct, ty, &parts),
            _ => w.op_ty(Op::Array, ty, &parts),
        });
    }
    if w.is_op(agg, Op::Insert) && w.as_lit(w.args(agg)[1]) == Some(idx) {
        let base = w.args(agg)[0];
        return Some(w.insert(base, idx, v));
    }
    (w.is_op(v, Op::Extract) && w.args(v)[0] == agg && w.as_lit(w.args(v)[1]) == Some(idx)).then_some(agg)
}

/// A load from an immutable global is the part of its initializer that the address names.
fn fold_load(w: &mut World, ptr: Val) -> Option<Val> {
    let mut path = Vec::new();
    let mut at = ptr;
    loop {
        match w.node(at) {
            Node::Op(Op::Lea) => {
                path.push(w.as_lit(w.args(at)[1])?);
                at = w.args(at)[0];
            }
            // `&[T * n]` as `&[T]`.
            Node::Op(Op::Bitcast) if is_array_decay(w, at) => at = w.args(at)[0],
            Node::Global(g) if !w.global(g).mutable => {
                let mut v = w.global(g).init?;
                for &idx in path.iter().rev() {
                    if idx >= w.types.n_parts(w.ty(v))? {
                        return None;
                    }
                    v = w.extract(v, idx);
                }
                return Some(v);
            }
            _ => return None,
        }
    }
}

/// Whether `v` is a bitcast from `&[T * n]` to `&[T]`.
pub fn is_array_decay(w: &World, v: Val) -> bool {
    let pointee = |v: Val| w.types.pointee(w.ty(v)).map(|t| w.types.kind(t));
    match (pointee(w.args(v)[0]), pointee(v)) {
        (Some(TyKind::Array(a, _)), Some(TyKind::IndefArray(b))) => a == b,
        _ => false,
    }
}

/// An exact math function of literals. `None` for other operations.
pub fn eval_exact_math(op: Op, prim: Prim, args: &[u64]) -> Option<u64> {
    macro_rules! eval {
        ($x:expr) => {
            match op {
                Op::Sqrt => $x(0).sqrt(),
                Op::Abs => $x(0).abs(),
                Op::Floor => $x(0).floor(),
                Op::Ceil => $x(0).ceil(),
                Op::Trunc => $x(0).trunc(),
                Op::Round => $x(0).round(),
                // Of two zeros the negative one is the smaller, as in compiled code.
                Op::Fmin if $x(0) == $x(1) => {
                    if $x(0).is_sign_negative() {
                        $x(0)
                    } else {
                        $x(1)
                    }
                }
                Op::Fmax if $x(0) == $x(1) => {
                    if $x(0).is_sign_negative() {
                        $x(1)
                    } else {
                        $x(0)
                    }
                }
                Op::Fmin => $x(0).min($x(1)),
                Op::Fmax => $x(0).max($x(1)),
                Op::Fma => $x(0).mul_add($x(1), $x(2)),
                Op::Copysign => $x(0).copysign($x(1)),
                _ => return None,
            }
        };
    }
    Some(if prim == Prim::F32 {
        eval!(|i: usize| f32::from_bits(args[i] as u32)).to_bits() as u64
    } else {
        eval!(|i: usize| f64::from_bits(args[i])).to_bits()
    })
}

fn fold_exact_math(w: &mut World, op: Op, ty: Ty, args: &[Val]) -> Option<Val> {
    let bits: Option<Vec<u64>> = args.iter().map(|&a| w.as_lit(a)).collect();
    let r = eval_exact_math(op, w.types.as_prim(ty)?, &bits?)?;
    Some(w.lit(ty, r))
}
