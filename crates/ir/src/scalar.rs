//! The results of operations on numbers: one definition, shared by folding and the interpreter. Numbers are bit
//! patterns, normalized by [`Prim::normalize`].
//!
//! `f16` is computed in single precision and rounded once. This is exact for `+ - * / %`, square root and rounding, for
//! 24 bits of mantissa are at least twice 11 plus two. Only `fma` needs double precision, which holds the product of
//! two halves exactly, and its sum with a third one wherever that is near the midpoint between two halves.

use crate::ops::Op;
use crate::types::Prim;
use half::f16;

/// The number that a bit pattern of a float type stands for.
pub fn float_value(prim: Prim, bits: u64) -> f64 {
    match prim {
        Prim::F16 => half_value(bits).into(),
        Prim::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// The bit pattern of a float type that is nearest to a number.
pub fn float_bits(prim: Prim, x: f64) -> u64 {
    match prim {
        Prim::F16 => {
            // Rounds to odd in single precision (the last bit records inexactness), then to nearest.
            let near = x as f32;
            let mut odd = near.to_bits();
            if !x.is_nan() && f64::from(near) != x {
                odd -= (f64::from(near).abs() > x.abs()) as u32;
                odd |= 1;
            }
            half_bits(f32::from_bits(odd))
        }
        Prim::F32 => (x as f32).to_bits().into(),
        _ => x.to_bits(),
    }
}

/// The value of an `f16`, which single precision holds.
pub fn half_value(bits: u64) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

/// The `f16` that is nearest to a number.
pub fn half_bits(x: f32) -> u64 {
    f16::from_f32(x).to_bits().into()
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

/// [`Op::Pext`] gathers the bits of an integer at the ones of `mask` at the low end; [`Op::Pdep`] moves low bits to
/// there.
pub fn eval_deposit(op: Op, prim: Prim, bits: u64, mask: u64) -> u64 {
    let (mut result, mut low) = (0, 0);
    for high in (0..prim.bits()).filter(|i| mask >> i & 1 == 1) {
        let (from, to) = if op == Op::Pext { (high, low) } else { (low, high) };
        result |= (bits >> from & 1) << to;
        low += 1;
    }
    prim.normalize(result)
}

/// Arithmetic on literals, integers modulo 2^n. `None` where the result is undefined. The flag tells whether a signed
/// result overflowed.
#[inline]
pub fn eval_arith(op: Op, prim: Prim, a: u64, b: u64) -> Option<(u64, bool)> {
    // The most common cases, without the detour through 128-bit numbers.
    let (x, y) = (a as i64, b as i64);
    let r = match (prim, op) {
        (Prim::I32, Op::Add) => x + y,
        (Prim::I32, Op::Sub) => x - y,
        (Prim::I32, Op::Mul) => x * y,
        _ => return eval_any_arith(op, prim, a, b),
    };
    Some((r as i32 as i64 as u64, i64::from(r as i32) != r))
}

fn eval_any_arith(op: Op, prim: Prim, a: u64, b: u64) -> Option<(u64, bool)> {
    macro_rules! float {
        ($x:expr, $y:expr) => {
            match op {
                Op::Add => $x + $y,
                Op::Sub => $x - $y,
                Op::Mul => $x * $y,
                Op::Div => $x / $y,
                Op::Rem => $x % $y,
                _ => return None,
            }
        };
    }
    match prim {
        Prim::F16 => return Some((half_bits(float!(half_value(a), half_value(b))), false)),
        Prim::F32 => {
            let r: f32 = float!(f32::from_bits(a as u32), f32::from_bits(b as u32));
            return Some((r.to_bits() as u64, false));
        }
        Prim::F64 => {
            let r: f64 = float!(f64::from_bits(a), f64::from_bits(b));
            return Some((r.to_bits(), false));
        }
        _ => {}
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
        // The remainder is undefined where the quotient is.
        let least = -1i128 << (prim.bits() - 1);
        if matches!(op, Op::Div | Op::Rem) && x == least && y == -1 {
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

/// A comparison of literals.
#[inline]
pub fn eval_comparison(op: Op, prim: Prim, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::*;
    let ord = match prim {
        p if p.is_float() => float_value(p, a).partial_cmp(&float_value(p, b)),
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

/// Conversion of a literal: integers wrap, floats round to nearest, float to integer saturates, to bool tests `!= 0`.
pub fn eval_cast(from: Prim, to: Prim, bits: u64) -> u64 {
    if from.is_float() {
        let x = float_value(from, bits);
        return match to {
            Prim::Bool => (x != 0.0) as u64,
            Prim::F16 | Prim::F32 | Prim::F64 => float_bits(to, x),
            Prim::I8 => x as i8 as i64 as u64,
            Prim::I16 => x as i16 as i64 as u64,
            Prim::I32 => x as i32 as i64 as u64,
            Prim::I64 => x as i64 as u64,
            Prim::U8 => x as u8 as u64,
            Prim::U16 => x as u16 as u64,
            Prim::U32 => x as u32 as u64,
            Prim::U64 => x as u64,
        };
    }
    // Single precision is exact below 2^24, and every finite `f16` is below that.
    let single = if from.is_signed() { bits as i64 as f32 } else { bits as f32 };
    match to {
        Prim::Bool => (bits != 0) as u64,
        Prim::F16 => half_bits(single),
        Prim::F32 => single.to_bits() as u64,
        Prim::F64 if from.is_signed() => (bits as i64 as f64).to_bits(),
        Prim::F64 => (bits as f64).to_bits(),
        _ => to.normalize(bits),
    }
}

/// Names of the operations of `atomic`, indexed by LLVM's number.
pub const ATOMICS: [&str; 17] = [
    "xchg",
    "add",
    "sub",
    "and",
    "nand",
    "or",
    "xor",
    "max",
    "min",
    "umax",
    "umin",
    "fadd",
    "fsub",
    "fmax",
    "fmin",
    "uinc_wrap",
    "udec_wrap",
];

/// Scopes of atomic operations, from all threads and devices down to the executing thread. Each has the names of LLVM,
/// CUDA and OpenCL, the canonical one first.
pub const SCOPES: [&[&str]; 5] = [
    &["system", ""],
    &["device", "agent"],
    &["block", "workgroup", "cta"],
    &["subgroup", "wavefront", "warp"],
    &["singlethread", "work_item"],
];

/// The scope of this name, an index into [`SCOPES`]. Unknown names get the widest scope, 0.
pub fn scope_of_name(name: &str) -> u64 {
    let name = name.strip_suffix("-one-as").unwrap_or(name);
    SCOPES.iter().position(|names| names.contains(&name)).unwrap_or(0) as u64
}

/// Names of the memory orders, indexed by LLVM's number; one number is unused.
pub const ORDERS: [Option<&str>; 8] = [
    Some("notatomic"),
    Some("unordered"),
    Some("monotonic"),
    None,
    Some("acquire"),
    Some("release"),
    Some("acq_rel"),
    Some("seq_cst"),
];

/// The value that an `atomic` operation writes. `None` if there is no such operation, or none on this type (addresses
/// have only `xchg`). The operation says whether values compare as signed, not the type.
pub fn eval_atomic(op: u64, prim: Option<Prim>, old: u64, v: u64) -> Option<u64> {
    if op == 0 {
        return Some(v);
    }
    let prim = prim?;
    let arith = |op| eval_arith(op, prim, old, v).map(|r| r.0);
    if prim.is_float() {
        return match op {
            11 => arith(Op::Add),
            12 => arith(Op::Sub),
            13 => eval_exact_math(Op::Fmax, prim, &[old, v]),
            14 => eval_exact_math(Op::Fmin, prim, &[old, v]),
            _ => None,
        };
    }
    if prim == Prim::Bool {
        return None;
    }
    let unused = 64 - prim.bits();
    let signed = |bits: u64| ((bits << unused) as i64) >> unused;
    let unsigned = |bits: u64| (bits << unused) >> unused;
    let pick = |first: bool| Some(if first { old } else { v });
    match op {
        1 => arith(Op::Add),
        2 => arith(Op::Sub),
        3 => arith(Op::And),
        4 => Some(prim.normalize(!(old & v))),
        5 => arith(Op::Or),
        6 => arith(Op::Xor),
        7 => pick(signed(old) > signed(v)),
        8 => pick(signed(old) <= signed(v)),
        9 => pick(unsigned(old) > unsigned(v)),
        10 => pick(unsigned(old) <= unsigned(v)),
        // CUDA's `atomicInc` and `atomicDec`.
        15 if unsigned(old) >= unsigned(v) => Some(0),
        15 => Some(prim.normalize(unsigned(old) + 1)),
        16 if unsigned(old) == 0 || unsigned(old) > unsigned(v) => Some(v),
        16 => Some(prim.normalize(unsigned(old) - 1)),
        _ => None,
    }
}

/// An exact math function of literals, as bit patterns. `None` for other operations.
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
                // IEEE 754-2019's minimumNumber and maximumNumber.
                Op::Fmin | Op::Fmax => {
                    let (x, y) = ($x(0), $x(1));
                    let is_less = x < y || x == y && x.is_sign_negative();
                    if x.is_nan() || !y.is_nan() && is_less != (op == Op::Fmin) { y } else { x }
                }
                Op::Fma => $x(0).mul_add($x(1), $x(2)),
                Op::Copysign => $x(0).copysign($x(1)),
                _ => return None,
            }
        };
    }
    Some(match prim {
        Prim::F16 if op == Op::Fma => {
            let x = |i: usize| f64::from(half_value(args[i]));
            float_bits(prim, x(0) * x(1) + x(2))
        }
        Prim::F16 => half_bits(eval!(|i: usize| half_value(args[i]))),
        Prim::F32 => eval!(|i: usize| f32::from_bits(args[i] as u32)).to_bits() as u64,
        _ => eval!(|i: usize| f64::from_bits(args[i])).to_bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest half, by definition: the closer neighbor, or the one whose last bit is 0 if both are equally close.
    fn nearest(x: f64) -> u64 {
        if x.is_nan() {
            return 0x7e00;
        }
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        let x = x.abs();
        // Infinity stands where the next half would be.
        let value = |h: u64| if h == 0x7c00 { 65536.0 } else { float_value(Prim::F16, h) };
        let below = (0..=0x7c00).rev().find(|&h| value(h) <= x).unwrap_or(0);
        let above = (below + 1).min(0x7c00);
        let (down, up) = (x - value(below), value(above) - x);
        sign | if down < up || (down == up && below % 2 == 0) { below } else { above }
    }

    #[test]
    fn halves_are_rounded_once() {
        let mut cases: Vec<f64> = vec![0.0, -0.0, 1e300, -1e-300, 65504.0, 65519.999, 65520.0, f64::INFINITY, 5e-324];
        for h in (0..0x7c00).step_by(61) {
            let (a, b) = (float_value(Prim::F16, h), float_value(Prim::F16, h + 1));
            let mid = if h + 1 == 0x7c00 { 65520.0 } else { (a + b) / 2.0 };
            for x in [a, mid, mid + mid * 1e-12, mid - mid * 1e-12, mid * (1.0 + f64::EPSILON), (a * 3.0 + mid) / 4.0] {
                cases.extend([x, -x]);
            }
        }
        for x in cases {
            assert_eq!(float_bits(Prim::F16, x), nearest(x), "{x:e}");
            let single = x as f32;
            assert_eq!(half_bits(single), nearest(single.into()), "{single:e}");
        }
        assert!(float_value(Prim::F16, float_bits(Prim::F16, f64::NAN)).is_nan());
    }

    #[test]
    fn halves_survive_conversion() {
        for h in 0..=0xffffu64 {
            let x = float_value(Prim::F16, h);
            for prim in [Prim::F32, Prim::F64] {
                let back = eval_cast(prim, Prim::F16, eval_cast(Prim::F16, prim, h));
                assert!(if x.is_nan() { float_value(Prim::F16, back).is_nan() } else { back == h }, "{h:x}");
            }
            assert_eq!(eval_cast(Prim::F16, Prim::I32, h) as i32, x as i32, "{h:x}");
            assert_eq!(eval_cast(Prim::F16, Prim::U8, h) as u8, x as u8, "{h:x}");
            assert_eq!(eval_cast(Prim::F16, Prim::Bool, h) == 1, x != 0.0, "{h:x}");
            // 16-bit integers convert to the nearest half.
            let i = h as u16 as i16;
            assert_eq!(eval_cast(Prim::I16, Prim::F16, i as u64), float_bits(Prim::F16, i.into()), "{i}");
            assert_eq!(eval_cast(Prim::U16, Prim::F16, h), float_bits(Prim::F16, h as f64), "{h}");
        }
        assert_eq!(float_value(Prim::F16, eval_cast(Prim::I64, Prim::F16, i64::MIN as u64)), f64::NEG_INFINITY);
    }
}
