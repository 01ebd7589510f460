//! Calls of libm, which give the results of the running machine's libm, to the last bit. Separate from operations,
//! since programs declare C functions, too.
//!
//! The machine that compiles may have another libm, and LLVM folds functions of `float` in double precision: a result
//! that LLVM folds, or computes by another function, may differ in the last bit from the call's. So calls are
//! `nobuiltin`, unless arithmetic may be inexact (`@fast`). Where LLVM has intrinsics, these are called: then LLVM can
//! vectorize loops with them, and merge a sine with a cosine. The calls in such vector code are not `nobuiltin`;
//! therefore LLVM folds no functions of floats at all ([`OPTION`]).
//!
//! Squares do not call libm, whose `pow` does not always round them correctly: a multiplication is faster, and every
//! engine can do it.

use crate::emit::prim_text;
use crate::function::FunctionEmitter;
use crate::ops::{call_math, number_text, suffix};
use nyala_ir::{Op, Prim};

/// LLVM's option that turns off constant folding of functions. It applies to the whole process, and to exact functions,
/// too: most of these the graph has folded.
pub(crate) const OPTION: &std::ffi::CStr = c"-disable-fp-call-folding";

/// C's functions of floats whose results are exact, or rounded once: LLVM's replacements for them give the same result.
const EXACT: &[&str] = &[
    "fabs",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "nearbyint",
    "round",
    "roundeven",
    "sqrt",
    "fmin",
    "fmax",
    "fdim",
    "copysign",
    "fma",
    "fmod",
    "remainder",
];

/// Calls a function of libm on numbers of single or double precision; returns the result.
pub(crate) fn call(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> String {
    let symbol = format!("{}{}", op.name(), if prim == Prim::F32 { "f" } else { "" });
    if f.is_fast() {
        return call_math(f, &symbol, prim, None, values, " #2");
    }
    let has_intrinsic = match op {
        Op::Expm1 | Op::Log1p | Op::Cbrt | Op::Erf => false,
        Op::Pow => !is_replaced(prim, values),
        _ => true,
    };
    let symbol = if has_intrinsic { format!("llvm.{}.{}", op.name(), suffix(prim, None)) } else { symbol };
    let result = call_math(f, &symbol, prim, None, values, " #7");
    let (Op::Pow, [base, exponent]) = (op, values) else { return result };
    let (ty, two) = (number_text(prim, None), literal(prim, 2.0));
    let [is_square, square, power] = [(); 3].map(|()| f.temp());
    f.line(format_args!("{is_square} = fcmp oeq {ty} {exponent}, {two}"));
    f.line(format_args!("{square} = fmul {ty} {base}, {base}"));
    f.line(format_args!("{power} = select i1 {is_square}, {ty} {square}, {ty} {result}"));
    power
}

/// Whether LLVM replaces such powers in vector code by a square root, a quotient, or another function.
fn is_replaced(prim: Prim, values: &[String]) -> bool {
    let is = |value: &str, of: &[f64]| of.iter().any(|&x| literal(prim, x) == value);
    is(&values[1], &[0.5, -1.0]) || is(&values[0], &[2.0, 10.0])
}

/// The text of a number that is exact in single precision.
fn literal(prim: Prim, x: f64) -> String {
    prim_text(prim, if prim == Prim::F32 { (x as f32).to_bits().into() } else { x.to_bits() })
}

/// The attributes of a call of a C function, whose symbol is in LLVM's notation.
pub(crate) fn attributes(symbol: &str, ret: &str, params: &[String]) -> &'static str {
    let is_float = |ty: &str| matches!(ty, "float" | "double");
    let name = symbol.trim_matches(['@', '"']);
    let is_exact = EXACT.iter().any(|&e| name == e || name.strip_suffix('f') == Some(e));
    let is_math = is_float(ret) && !params.is_empty() && params.iter().all(|p| is_float(p));
    if is_math && !is_exact { "#8" } else { "#1" }
}
