//! Scalar operations on words.

use crate::code::POISON;
use crate::diagnostics::{division_by_zero, signed_overflow, uninitialized_read};
use crate::fault::{Fault, limitation};
use crate::leaves::Leaf;
use nyala_base::Span;
use nyala_base::diagnostics::intrinsic_value;
use nyala_ir::scalar::{ATOMICS, eval_arith, eval_atomic, eval_exact_math, half_bits, half_value};
use nyala_ir::{Op, Prim};
use nyala_runtime::ErrorFunction;

/// Arithmetic of any type; faults where the language leaves the result undefined.
pub fn arith(op: Op, prim: Prim, a: u64, b: u64, wrap: bool) -> Result<u64, Box<Fault>> {
    if a == POISON || b == POISON {
        return Err(uninitialized());
    }
    let op = match op {
        Op::PDiv => Op::Div,
        Op::PRem => Op::Rem,
        op => op,
    };
    match eval_arith(op, prim, a, b) {
        Some((_, true)) if !wrap => Err(overflow(op, prim, a, b)),
        Some((bits, _)) => Ok(bits),
        None if b == 0 => Err(division_by_zero::error(&show(prim, a), op == Op::Rem).into()),
        None => Err(overflow(op, prim, a, b)),
    }
}

/// A number as programs print it.
pub fn show(prim: Prim, bits: u64) -> String {
    match prim {
        Prim::Bool => (bits != 0).to_string(),
        Prim::F16 => nyala_runtime::float16_text(bits as u16),
        Prim::F32 => nyala_runtime::float32_text(f32::from_bits(bits as u32)),
        Prim::F64 => nyala_runtime::float_text(f64::from_bits(bits)),
        _ if prim.is_signed() => (bits as i64).to_string(),
        _ => bits.to_string(),
    }
}

#[cold]
pub fn uninitialized() -> Box<Fault> {
    uninitialized_read::error("use of an uninitialized value").into()
}

#[cold]
pub fn overflow(op: Op, prim: Prim, a: u64, b: u64) -> Box<Fault> {
    if a == POISON || b == POISON {
        return uninitialized();
    }
    let sign = match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::Div => "/",
        Op::Rem => "%",
        _ => op.name(),
    };
    signed_overflow::error(&format!("{} {sign} {}", show(prim, a), show(prim, b)), prim.name()).into()
}

/// Evaluates a math operation: bit operations, exact functions, and those of the C library.
pub fn math(op: Op, prim: Prim, args: [u64; 3]) -> u64 {
    if prim.is_int() {
        return match op {
            Op::Pext | Op::Pdep => nyala_ir::scalar::eval_deposit(op, prim, args[0], args[1]),
            _ => nyala_ir::scalar::eval_count(op, prim, args[0]),
        };
    }
    macro_rules! library {
        ($x:expr, $y:expr) => {
            match op {
                Op::Sin => $x.sin(),
                Op::Cos => $x.cos(),
                Op::Tan => $x.tan(),
                Op::Asin => $x.asin(),
                Op::Acos => $x.acos(),
                Op::Atan => $x.atan(),
                Op::Sinh => $x.sinh(),
                Op::Cosh => $x.cosh(),
                Op::Tanh => $x.tanh(),
                Op::Exp => $x.exp(),
                Op::Exp2 => $x.exp2(),
                Op::Expm1 => $x.exp_m1(),
                Op::Log => $x.ln(),
                Op::Log2 => $x.log2(),
                Op::Log10 => $x.log10(),
                Op::Log1p => $x.ln_1p(),
                Op::Cbrt => $x.cbrt(),
                Op::Erf => $x.error_function(),
                Op::Pow if $y == 2.0 => $x * $x,
                Op::Pow => $x.powf($y),
                Op::Atan2 => $x.atan2($y),
                Op::Fmin | Op::Fmax => {
                    // If one operand is NaN, the result is the other one. -0 is less than +0, as everywhere.
                    let less = $x < $y || ($x == $y && $x.is_sign_negative());
                    match ($x.is_nan(), $y.is_nan()) {
                        (true, _) => $y,
                        (_, true) => $x,
                        _ => {
                            if less == (op == Op::Fmin) {
                                $x
                            } else {
                                $y
                            }
                        }
                    }
                }
                _ => $x,
            }
        };
    }
    if !matches!(op, Op::Fmin | Op::Fmax)
        && let Some(bits) = eval_exact_math(op, prim, &args)
    {
        return bits;
    }
    match prim {
        // Computed in single precision, as in compiled code.
        Prim::F16 => {
            let (x, y) = (half_value(args[0]), half_value(args[1]));
            let r: f32 = library!(x, y);
            half_bits(r)
        }
        Prim::F32 => {
            let (x, y) = (f32::from_bits(args[0] as u32), f32::from_bits(args[1] as u32));
            let r: f32 = library!(x, y);
            r.to_bits() as u64
        }
        _ => {
            let (x, y) = (f64::from_bits(args[0]), f64::from_bits(args[1]));
            let r: f64 = library!(x, y);
            r.to_bits()
        }
    }
}

/// Evaluates the processor's own approximation, as compiled code does.
pub fn approximate(op: Op, prim: Prim, bits: u64) -> Result<u64, Box<Fault>> {
    use nyala_runtime::Approximation::*;
    let which = match op {
        Op::Rcp => Reciprocal,
        Op::Rsqrt => ReciprocalRoot,
        Op::Rcp14 => Reciprocal14,
        _ => ReciprocalRoot14,
    };
    let result = match prim {
        Prim::F64 => which.of_f64(f64::from_bits(bits)).map(f64::to_bits),
        _ => which.of_f32(f32::from_bits(bits as u32)).map(|x| x.to_bits().into()),
    };
    result.ok_or_else(|| {
        let needs = if matches!(op, Op::Rcp | Op::Rsqrt) { "x86-64" } else { "AVX-512" };
        limitation(format!("`{}` is an instruction of {needs}, which this processor does not have", op.name()))
    })
}

/// The value that an atomic operation writes.
pub fn atomic(op: u64, leaf: Leaf, old: u64, v: u64) -> Result<u64, Box<Fault>> {
    let prim = match leaf {
        Leaf::Prim(prim) => Some(prim),
        _ => None,
    };
    eval_atomic(op, prim, old, v).ok_or_else(|| {
        let ty = prim.map_or("an address", Prim::name);
        intrinsic_value::of_atomic(Span::NONE, op, ATOMICS.get(op as usize), ty).into()
    })
}

/// The bits of a number of one type as a number of another of the same size.
pub fn renormalize(from: Prim, to: Prim, bits: u64) -> u64 {
    let plain = if from.bits() < 64 { bits & ((1u64 << from.bits()) - 1) } else { bits };
    to.normalize(plain)
}
