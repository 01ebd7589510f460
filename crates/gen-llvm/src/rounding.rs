//! Calls of libm, which give what the machine that runs has, to the last bit. Apart from operations, since programs declare
//! functions of C, too.
//!
//! The machine that builds may have another libm, and LLVM computes functions of a `float` in double precision: what it
//! folds, or replaces by another function, differs in the last bit from what is called. So calls are `nobuiltin`, unless
//! arithmetic may be inexact (`@fast`). They are LLVM's intrinsics where there are some: loops around them become vector
//! code, a sine joins a cosine. The calls in such vector code are not `nobuiltin`; therefore LLVM folds no functions of
//! floats at all ([`OPTION`]).
//!
//! The square is not left to libm, whose `pow` does not always round it correctly: a multiplication is faster, and every
//! engine can do it.

use crate::emit::prim_text;
use crate::function::FunctionEmitter;
use crate::ops::{call_math, number_text, suffix};
use nyala_ir::{Op, Prim};

/// LLVM's option for functions of constants. It is one of the process, and says so of exact functions, too: most of these
/// the graph has folded.
pub(crate) const OPTION: &std::ffi::CStr = c"-disable-fp-call-folding";

/// C's functions of floats whose results are exact, or rounded once: what LLVM makes of them is what C does.
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

/// The result of a function of libm, of numbers of single or double precision.
pub(crate) fn call(f: &mut FunctionEmitter, op: Op, prim: Prim, values: &[String]) -> String {
    let symbol = format!("{}{}", op.name(), if prim == Prim::F32 { "f" } else { "" });
    if f.is_fast() {
        return call_math(f, &symbol, prim, None, values, " #2");
    }
    let has_intrinsic = match op {
        Op::Expm1 | Op::Log1p | Op::Cbrt => false,
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

/// Whether LLVM makes something else of such powers in vector code: a square root, a quotient, another function.
fn is_replaced(prim: Prim, values: &[String]) -> bool {
    let is = |value: &str, of: &[f64]| of.iter().any(|&x| literal(prim, x) == value);
    is(&values[1], &[0.5, -1.0]) || is(&values[0], &[2.0, 10.0])
}

/// A number that is exact in single precision.
fn literal(prim: Prim, x: f64) -> String {
    prim_text(prim, if prim == Prim::F32 { (x as f32).to_bits().into() } else { x.to_bits() })
}

/// The attributes of a call of a C function whose symbol is written as LLVM does.
pub(crate) fn attributes(symbol: &str, ret: &str, params: &[String]) -> &'static str {
    let is_float = |ty: &str| matches!(ty, "float" | "double");
    let name = symbol.trim_matches(['@', '"']);
    let is_exact = EXACT.iter().any(|&e| name == e || name.strip_suffix('f') == Some(e));
    let is_math = is_float(ret) && !params.is_empty() && params.iter().all(|p| is_float(p));
    if is_math && !is_exact { "#8" } else { "#1" }
}
