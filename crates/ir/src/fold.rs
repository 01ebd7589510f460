//! Local simplification, done by the constructors. Laws: the result is never more work than the operation; every
//! rule makes the term smaller or moves a literal to the right; nothing that a program without undefined behavior
//! computes changes (floats: bit for bit).

use crate::ops::Op;
use crate::scalar::{eval_arith, eval_cast, eval_comparison, eval_count, eval_deposit, eval_exact_math, float_value};
use crate::types::{Prim, Ty, TyKind};
use crate::world::{Node, Val, World};

/// Maximal length of a chain of `insert` that is searched for a part.
const INSERT_CHAIN: usize = 256;
/// Maximal number of parts of an aggregate that is rebuilt from a chain of `insert`.
const REBUILD_PARTS: usize = 64;

/// The simpler value equal to `op(args)`, if there is one.
pub fn fold(w: &mut World, op: Op, ty: Ty, args: &[Val]) -> Option<Val> {
    if op.is_lane_wise()
        && let Some((prim, n)) = w.types.as_vector(ty)
        && let Some(folded) = fold_lanes(w, op, ty, prim, n, args)
    {
        return Some(folded);
    }
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => {
            fold_arith(w, op, ty, args[0], args[1])
        }
        Op::PDiv | Op::PRem => fold_partial_div(w, op, args),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => fold_comparison(w, op, ty, args[0], args[1]),
        Op::Cast => fold_cast(w, ty, args[0]),
        Op::Bitcast => fold_bitcast(w, ty, args[0]),
        Op::Select => fold_select(w, args),
        Op::Tuple | Op::Struct => fold_reassemble(w, ty, args),
        Op::Array => fold_vector(w, ty, args).or_else(|| fold_reassemble(w, ty, args)),
        Op::Splat => {
            let undefined = w.types.as_vector(ty).is_some() && w.node(args[0]) == Node::Undef;
            undefined.then(|| w.undef(ty))
        }
        Op::Extract => match w.as_lit(args[1]) {
            Some(idx) => fold_extract(w, args[0], idx),
            None => (w.is_op(args[0], Op::Splat)).then(|| w.args(args[0])[0]),
        },
        Op::Shuffle => fold_shuffle(w, ty, args),
        Op::Insert => fold_insert(w, ty, args),
        Op::Load => fold_load(w, args[1]),
        Op::Store => (w.node(args[2]) == Node::Undef).then_some(args[0]),
        Op::Unfold | Op::Run => w.is_op(args[0], op).then_some(args[0]),
        Op::Hlt => w.is_op(args[0], Op::Hlt).then_some(args[0]),
        Op::Lea => fold_lea(w, args),
        Op::Aligned => (w.as_lit(args[1]) == Some(1)).then_some(args[0]),
        Op::Slot | Op::Alloc | Op::Known => None,
        Op::Popcount | Op::Clz | Op::Ctz => {
            let (prim, bits) = (w.lane_prim(args[0])?, w.as_uniform(args[0])?);
            Some(w.lit(ty, eval_count(op, prim, bits)))
        }
        Op::Pext | Op::Pdep => {
            let (prim, bits, mask) = (w.lane_prim(args[0])?, w.as_uniform(args[0])?, w.as_uniform(args[1])?);
            Some(w.lit(ty, eval_deposit(op, prim, bits, mask)))
        }
        Op::Bits => {
            let n = w.types.as_vector(w.ty(args[0]))?.1;
            let lanes: Vec<u64> = match w.as_op(args[0])? {
                Op::Splat => vec![w.as_uniform(args[0])?; n as usize],
                Op::Array => w.args(args[0]).iter().map(|&lane| w.as_lit(lane)).collect::<Option<_>>()?,
                _ => return None,
            };
            Some(w.lit(ty, lanes.iter().take(64).enumerate().fold(0, |bits, (i, lane)| bits | lane << i)))
        }
        _ if op.is_exact_math() => fold_exact_math(w, op, ty, args),
        _ => None,
    }
}

/// A fault of constant operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstantFault {
    /// The result of signed arithmetic does not fit its type.
    Overflow,
    /// Division by zero.
    Division,
    /// A shift by as many bits as the number has, or more, or by less than none.
    Shift,
    /// An index that an array does not have.
    Index,
}

impl World {
    /// Notes a fault at the present origin, to be reported as a warning.
    pub fn note(&mut self, fault: ConstantFault) {
        let origin = self.current_origin();
        self.fold_warnings.push((origin, fault));
    }
}

fn is_commutative(op: Op) -> bool {
    matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor)
}

fn fold_arith(w: &mut World, op: Op, ty: Ty, a: Val, b: Val) -> Option<Val> {
    let prim = w.types.lane_prim(ty)?;
    let (la, lb) = (w.as_uniform(a), w.as_uniform(b));
    if matches!(op, Op::Shl | Op::Shr) && lb.is_some_and(|amount| amount >= prim.bits().into()) {
        w.note(ConstantFault::Shift);
    }
    if let (Some(x), Some(y)) = (la, lb) {
        let (bits, overflow) = eval_arith(op, prim, x, y)?;
        // The fault belongs to the run, which may never come here.
        if overflow {
            w.note(ConstantFault::Overflow);
            if !w.folds_overflow {
                return None;
            }
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
    // A sum that overflows is undefined, but would be reported.
    if op == Op::Sub
        && !(prim.is_signed() && w.keeps_faults)
        && let Some(difference) = fold_difference(w, ty, a, b)
    {
        return Some(difference);
    }
    let c = lb?;
    match op {
        Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::Shr if c == 0 => return Some(a),
        Op::Mul | Op::And if c == 0 => return Some(b),
        Op::Mul | Op::Div if c == 1 => return Some(a),
        Op::Rem if c == 1 => return Some(w.lit(ty, 0)),
        Op::And if c == ones => return Some(a),
        Op::Or if c == ones => return Some(b),
        // Makes `x - c` into `x + (-c)`, so that offsets cancel out.
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
            let first = w.as_uniform(c1)?;
            let (sum, overflow) = eval_arith(Op::Add, prim, first, c)?;
            // With one sign, it overflows if one of the two does.
            let hides_fault = prim.is_signed() && (first as i64 ^ c as i64) < 0;
            if !(overflow || hides_fault && w.keeps_faults) {
                let sum = w.lit(ty, sum);
                return Some(w.op(Op::Add, &[x, sum]));
            }
        }
        Op::Xor if w.is_op(a, Op::Xor) => {
            let (x, c1) = (w.args(a)[0], w.args(a)[1]);
            let c = w.lit(ty, w.as_uniform(c1)? ^ c);
            return Some(w.op(Op::Xor, &[x, c]));
        }
        // `!(a < b)` is `a >= b`; for floats only `==` and `!=` are inverted.
        Op::Xor if prim == Prim::Bool && c == 1 => {
            let cmp = w.as_op(a)?;
            let (x, y) = (*w.args(a).first()?, *w.args(a).get(1)?);
            let float = w.lane_prim(x).is_some_and(Prim::is_float);
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

/// `(x + y) - x` is `y`, and `(x + 3) - (x + 1)` is 2: how far places are apart is known where the places are not.
fn fold_difference(w: &mut World, ty: Ty, a: Val, b: Val) -> Option<Val> {
    let prim = w.types.lane_prim(ty)?;
    if let (true, &[x, y]) = (w.is_op(a, Op::Add), w.args(a))
        && (x == b || y == b)
    {
        return Some(if x == b { y } else { x });
    }
    let offset = |v: Val| match (w.is_op(v, Op::Add), w.args(v)) {
        (true, &[x, y]) => w.as_uniform(y).map_or((v, 0), |c| (x, c)),
        _ => (v, 0),
    };
    let ((x, c1), (y, c2)) = (offset(a), offset(b));
    let (bits, overflow) = eval_arith(Op::Sub, prim, c1, c2).filter(|_| x == y)?;
    (!overflow).then(|| w.lit(ty, bits))
}

fn fold_float_identity(w: &World, op: Op, prim: Prim, a: Val, b: Val) -> Option<Val> {
    let value = |v: Val| Some(float_value(prim, w.as_uniform(v)?));
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
    let prim = w.lane_prim(args[2])?;
    let divisors = lane_literals(w, args[2])?;
    let total = if op == Op::PDiv { Op::Div } else { Op::Rem };
    if divisors.contains(&0) {
        w.note(ConstantFault::Division);
        return None;
    }
    let minus_one = prim.is_signed() && divisors.contains(&u64::MAX);
    match w.as_uniform(args[1]).zip(w.as_uniform(args[2])) {
        Some((dividend, divisor)) => {
            let Some((bits, _)) = eval_arith(total, prim, dividend, divisor) else {
                // The least number by -1.
                w.note(ConstantFault::Overflow);
                return None;
            };
            Some(w.lit(w.ty(args[1]), bits))
        }
        None if minus_one => None,
        None => Some(w.op(total, &[args[1], args[2]])),
    }
}

fn fold_comparison(w: &mut World, op: Op, ty: Ty, a: Val, b: Val) -> Option<Val> {
    let prim = w.lane_prim(a);
    if let (Some(x), Some(y)) = (w.as_uniform(a), w.as_uniform(b)) {
        let r = eval_comparison(op, prim.unwrap_or(Prim::U64), x, y);
        return Some(w.lit(ty, r as u64));
    }
    if a == b && !prim.is_some_and(Prim::is_float) {
        return Some(w.lit(ty, matches!(op, Op::Eq | Op::Le | Op::Ge) as u64));
    }
    if w.as_uniform(a).is_some() {
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
        let c = w.as_uniform(b)?;
        return Some(if (c == 1) == (op == Op::Eq) { a } else { w.not(a) });
    }
    // A bool converted to a number and compared with 0 or 1 is the bool, or its negation.
    if prim.is_some_and(Prim::is_int) && matches!(op, Op::Eq | Op::Ne) && w.is_op(a, Op::Cast) {
        let (bit, c) = (w.args(a)[0], w.as_uniform(b)?);
        if w.lane_prim(bit) == Some(Prim::Bool) && c <= 1 {
            return Some(if (c == 1) == (op == Op::Eq) { bit } else { w.not(bit) });
        }
    }
    None
}

fn fold_cast(w: &mut World, ty: Ty, a: Val) -> Option<Val> {
    if w.ty(a) == ty {
        return Some(a);
    }
    let (from, to) = (w.lane_prim(a)?, w.types.lane_prim(ty)?);
    if w.node(a) == Node::Undef {
        return Some(w.undef(ty));
    }
    // An integer that was widened, or kept its width, on the way to an integer of its own width.
    if w.is_op(a, Op::Cast) && from.is_int() && to.is_int() {
        let inner = w.args(a)[0];
        let first = w.lane_prim(inner)?;
        if first.is_int() && first.bits() == to.bits() && from.bits() >= first.bits() {
            return Some(w.op_ty(Op::Cast, ty, &[inner]));
        }
    }
    let bits = w.as_uniform(a)?;
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
    if w.types.as_vector(ty).is_some() || w.types.as_vector(w.ty(a)).is_some() {
        return fold_vector_bitcast(w, ty, a);
    }
    let bits = w.as_lit(a)?;
    if let Some(from) = w.prim(a) {
        // A literal is sign-extended: mask it to the bits of its type first.
        let bits = if from.bits() < 64 { bits & ((1u64 << from.bits()) - 1) } else { bits };
        return match w.types.kind(ty) {
            TyKind::Prim(_) | TyKind::Ptr { .. } => Some(w.lit(ty, bits)),
            _ => None,
        };
    }
    matches!(w.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. }).then(|| w.lit(ty, bits))
}

/// Folds a bitcast between numbers and vectors with equally many bits in memory, byte by byte.
fn fold_vector_bitcast(w: &mut World, ty: Ty, a: Val) -> Option<Val> {
    let shape = |w: &World, ty: Ty| {
        let prim = w.types.lane_prim(ty).filter(|&p| p != Prim::Bool)?;
        Some((prim, w.types.as_vector(ty).map_or(1, |v| v.1 as usize)))
    };
    let ((from, n), (to, m)) = (shape(w, w.ty(a))?, shape(w, ty)?);
    let (size, to_size) = (from.bits() as usize / 8, to.bits() as usize / 8);
    if size * n != to_size * m {
        return None;
    }
    let bytes: Vec<u8> =
        lane_literals(w, a)?.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect();
    let mut lanes = bytes.chunks(to_size).map(|c| c.iter().rev().fold(0u64, |bits, &b| bits << 8 | u64::from(b)));
    if w.types.as_prim(ty).is_some() {
        return lanes.next().map(|bits| w.lit(ty, bits));
    }
    let lanes: Vec<Val> = lanes.map(|bits| w.lit_prim(to, bits)).collect();
    Some(w.op_ty(Op::Array, ty, &lanes))
}

fn fold_select(w: &mut World, args: &[Val]) -> Option<Val> {
    let (c, a, b) = (args[0], args[1], args[2]);
    if let Some(bit) = w.as_uniform(c) {
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

// Vectors. The rules for numbers say what each lane computes.

/// Lane `idx` of a vector whose lanes are operands: an `array`, a `splat`, or undefined.
fn explicit_lane(w: &mut World, v: Val, idx: usize) -> Option<Val> {
    match w.node(v) {
        Node::Op(Op::Array) => w.args(v).get(idx).copied(),
        Node::Op(Op::Splat) => Some(w.args(v)[0]),
        Node::Undef => {
            let lane = w.types.prim(w.types.lane_prim(w.ty(v))?);
            Some(w.undef(lane))
        }
        _ => None,
    }
}

/// The bits of a literal, or of all lanes of a vector of literals.
fn lane_literals(w: &World, v: Val) -> Option<Vec<u64>> {
    let Some((_, n)) = w.types.as_vector(w.ty(v)) else { return Some(vec![w.as_lit(v)?]) };
    match w.node(v) {
        Node::Op(Op::Array) => w.args(v).iter().map(|&a| w.as_lit(a)).collect(),
        _ => Some(vec![w.as_uniform(v)?; n as usize]),
    }
}

/// Folds an operation on vectors lane by lane, if every resulting lane is known.
fn fold_lanes(w: &mut World, op: Op, ty: Ty, prim: Prim, n: u32, args: &[Val]) -> Option<Val> {
    // Without an explicit vector among the operands, all lanes are alike: the rules for numbers apply.
    if !args.iter().any(|&a| w.is_op(a, Op::Array) && w.types.as_vector(w.ty(a)).is_some()) {
        return None;
    }
    let mut lanes = Vec::with_capacity(n as usize);
    for i in 0..n as usize {
        lanes.push(fold_lane(w, op, prim, i, args)?);
    }
    Some(w.op_ty(Op::Array, ty, &lanes))
}

/// Lane `idx` of an operation's result, if it is known.
fn fold_lane(w: &mut World, op: Op, prim: Prim, idx: usize, args: &[Val]) -> Option<Val> {
    let mut operands = Vec::with_capacity(args.len());
    for &a in args {
        let is_vector = w.types.as_vector(w.ty(a)).is_some();
        operands.push(if is_vector { explicit_lane(w, a, idx)? } else { a });
    }
    let lane = w.types.prim(prim);
    let folded = fold(w, op, lane, &operands)?;
    (!matches!(w.node(folded), Node::Op(_)) || operands.contains(&folded)).then_some(folded)
}

/// A vector of equal lanes is a splat; a vector of all lanes of another one, in order, is that one.
fn fold_vector(w: &mut World, ty: Ty, lanes: &[Val]) -> Option<Val> {
    w.types.as_vector(ty)?;
    let first = lanes[0];
    if lanes.iter().all(|&l| l == first) {
        return Some(w.op_ty(Op::Splat, ty, &[first]));
    }
    fold_reassemble(w, ty, lanes)
}

fn fold_shuffle(w: &mut World, ty: Ty, args: &[Val]) -> Option<Val> {
    let (_, n) = w.types.as_vector(w.ty(args[0]))?;
    let picked = lane_literals(w, args[2])?;
    let mut lanes = Vec::with_capacity(picked.len());
    for idx in picked {
        let (from, idx) = if idx < n.into() { (args[0], idx) } else { (args[1], idx.wrapping_sub(n.into())) };
        if idx >= n.into() {
            return None;
        }
        lanes.push(explicit_lane(w, from, idx as usize)?);
    }
    Some(w.op_ty(Op::Array, ty, &lanes))
}

/// An aggregate of all parts of another one, in order, is that one.
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
    let lanes = w.types.as_vector(w.ty(agg));
    if lanes.is_some_and(|(_, n)| idx >= n.into()) {
        return None;
    }
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
                let at = w.as_lit(at)?;
                if at == idx {
                    return Some(v);
                }
                // Past the end, it is a fault, which is left to the run.
                if at >= w.types.n_parts(w.ty(agg))? {
                    return None;
                }
                agg = base;
            }
            Node::Op(Op::Shuffle) => {
                let (a, b, from) = (w.args(agg)[0], w.args(agg)[1], w.args(agg)[2]);
                let n = u64::from(w.types.as_vector(w.ty(a))?.1);
                let from = explicit_lane(w, from, idx as usize)?;
                let from = w.as_lit(from)?;
                return match from {
                    _ if from < n => Some(w.extract(a, from)),
                    _ if from < 2 * n => Some(w.extract(b, from - n)),
                    _ => None,
                };
            }
            Node::Op(op) if op.is_lane_wise() && lanes.is_some() && step == 0 => {
                let args = w.args(agg).to_vec();
                return fold_lane(w, op, lanes?.0, idx as usize, &args);
            }
            // A part of a hidden aggregate is hidden as a whole: nothing inside the new `hlt` is.
            Node::Op(Op::Hlt) => {
                let part = w.extract(w.args(agg)[0], idx);
                return Some(w.op(Op::Hlt, &[part]));
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
    let is_vector = w.types.as_vector(ty).is_some();
    if idx >= n {
        return None;
    }
    let is_built = match w.node(agg) {
        Node::Undef | Node::Op(Op::Tuple | Op::Struct | Op::Array) => true,
        Node::Op(Op::Splat) => is_vector,
        _ => false,
    };
    if n as usize <= REBUILD_PARTS && is_built {
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

/// Converts literal indices to `i64`, so that each place has one address. An index into the array that begins at an element of another
/// array is one into that.
fn fold_lea(w: &mut World, args: &[Val]) -> Option<Val> {
    let idx = w.as_lit(args[1])?;
    if let Some((array, first)) = elements_from(w, args[0])
        && let Some(sum) = idx.checked_add(first)
        && w.types.pointee(w.ty(array)).and_then(|ty| w.types.n_parts(ty)).is_none_or(|n| sum < n)
        && sum <= i64::MAX as u64
    {
        let sum = w.lit_i64(sum as i64);
        return Some(w.op(Op::Lea, &[array, sum]));
    }
    if w.ty(args[1]) == w.types.i64() {
        if let Some(TyKind::Array(_, n)) = w.types.pointee(w.ty(args[0])).map(|ty| w.types.kind(ty))
            && idx >= *n
        {
            w.note(ConstantFault::Index);
        }
        return None;
    }
    let idx = w.lit_i64(idx as i64);
    Some(w.op(Op::Lea, &[args[0], idx]))
}

/// For the address of an element, cast to one of an array of such elements: the array around it, and the element's index.
fn elements_from(w: &World, ptr: Val) -> Option<(Val, u64)> {
    let elem = *w.args(ptr).first().filter(|_| w.is_op(ptr, Op::Bitcast))?;
    let &[array, idx] = w.args(elem) else { return None };
    let first = w.as_lit(idx).filter(|_| w.is_op(elem, Op::Lea))?;
    let (from, to) = (w.types.kind(w.ty(elem)), w.types.kind(w.ty(ptr)));
    let (&TyKind::Ptr { pointee: from, space: a }, &TyKind::Ptr { pointee: to, space: b }) = (from, to) else {
        return None;
    };
    let elem_of = |ty: Ty| match *w.types.kind(ty) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => Some(elem),
        _ => None,
    };
    let around = elem_of(w.types.pointee(w.ty(array))?);
    (a == b && elem_of(to) == Some(from) && around == Some(from)).then_some((array, first))
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
            Node::Op(Op::Bitcast) if is_same_place(w, at) => at = w.args(at)[0],
            Node::Global(g) if !w.global(g).mutable => {
                // An initializer of another type is a function that computes the contents: they are unknown before it
                // has run.
                let mut v = w.global(g).init.filter(|&init| w.ty(init) == w.global(g).ty)?;
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

/// Whether `v` is a bitcast from `&[T * n]` to `&[T]`, or to another address space.
pub fn is_same_place(w: &World, v: Val) -> bool {
    let pointee = |v: Val| w.types.pointee(w.ty(v));
    let (Some(from), Some(to)) = (pointee(w.args(v)[0]), pointee(v)) else { return false };
    match (w.types.kind(from), w.types.kind(to)) {
        (TyKind::Array(a, _), TyKind::IndefArray(b)) => a == b,
        _ => from == to,
    }
}

fn fold_exact_math(w: &mut World, op: Op, ty: Ty, args: &[Val]) -> Option<Val> {
    let bits: Option<Vec<u64>> = args.iter().map(|&a| w.as_uniform(a)).collect();
    let r = eval_exact_math(op, w.types.lane_prim(ty)?, &bits?)?;
    Some(w.lit(ty, r))
}
