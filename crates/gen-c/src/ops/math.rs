//! Math functions of floats: those of the dialect, and the few whose results it leaves open.

use crate::emit::Emitter;
use crate::expr::{Expr, apply};
use crate::ops::halves;
use crate::{Result, bug};
use nyala_ir::{Op, Prim};

/// The dialect's name of a math function.
pub(crate) fn name(e: &mut Emitter, op: Op, prim: Prim) -> Result<String> {
    match e.dialect.math(op, prim) {
        Some(name) => Ok(name.to_string()),
        None => Err(bug(format!("`{}`, which the dialect does not compute", op.name()))),
    }
}

/// A math function. Those of halves are computed in single precision (`fma` in double), and rounded once.
pub(crate) fn math(e: &mut Emitter, op: Op, prim: Prim, args: &[Expr]) -> Result<Expr> {
    let mut rendered = Vec::new();
    for a in args {
        rendered.push(e.rendered(a.clone(), true)?);
    }
    if prim == Prim::F16 {
        let refs: Vec<&Expr> = rendered.iter().collect();
        if let Some(computed) = halves::direct(e, op, &refs)? {
            return Ok(computed);
        }
        let wide = if op == Op::Fma { Prim::F64 } else { Prim::F32 };
        let mut widened = Vec::new();
        for a in &rendered {
            widened.push(halves::widen(e, wide, a)?);
        }
        let result = match op {
            Op::Fma => {
                // The product of two halves is exact in double precision.
                let product = crate::expr::binary(&widened[0], "*", &widened[1], crate::expr::Prec::Product);
                crate::expr::binary(&product, "+", &widened[2], crate::expr::Prec::Sum)
            }
            _ => math(e, op, wide, &widened)?,
        };
        return halves::narrow(e, wide, &result);
    }
    let refs: Vec<&Expr> = rendered.iter().collect();
    match op {
        Op::Fmin | Op::Fmax => match literal(op, &refs) {
            Some(at) => {
                let name = lesser_of_literal(e, op, prim)?;
                Ok(apply(&name, &[refs[1 - at], refs[at]]))
            }
            None => {
                let name = lesser(e, op, prim)?;
                Ok(apply(&name, &refs))
            }
        },
        Op::Pow => {
            let name = power(e, prim)?;
            Ok(apply(&name, &refs))
        }
        _ => {
            let name = name(e, op, prim)?;
            Ok(apply(&name, &refs))
        }
    }
}

/// The lesser or greater of two numbers: the other one if one is NaN; of two zeros, -0 is the lesser.
pub(crate) fn lesser(e: &mut Emitter, op: Op, prim: Prim) -> Result<String> {
    let (stem, less) = if op == Op::Fmin { ("min", "<") } else { ("max", ">") };
    e.helper(format!("{stem}_{}", prim.name()), |e, name| {
        let ty = e.types.prim(prim)?;
        let copysign = crate::ops::math::name(e, Op::Copysign, prim)?;
        let one = e.literal(prim, if prim == Prim::F32 { 1f32.to_bits().into() } else { 1f64.to_bits() })?.text;
        let zero = e.literal(prim, 0)?.text;
        let chosen = if op == Op::Fmin { ("a", "b") } else { ("b", "a") };
        Ok(format!(
            "{ty} {name}({ty} a, {ty} b) {{
    if (a == b) return {copysign}({one}, a) < {zero} ? {} : {};
    return a {less} b || b != b ? a : b;
}}",
            chosen.0, chosen.1
        ))
    })
}

/// Which of two operands is a literal that is the result if both are zeros, if one is.
fn literal(op: Op, args: &[&Expr]) -> Option<usize> {
    let is_good = |arg: &&Expr| {
        // `nan` and `inf` may be names of variables.
        let text = arg.text.trim_matches(['(', ')']).trim_end_matches('f');
        let is_number = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        let bits = text.parse::<f64>().ok().filter(|_| is_number).map(f64::to_bits);
        bits.is_some_and(|bits| bits != if op == Op::Fmin { 0 } else { (-0.0f64).to_bits() })
    };
    args.iter().position(is_good)
}

/// The lesser or greater of a number and such a literal: one instruction on many machines.
fn lesser_of_literal(e: &mut Emitter, op: Op, prim: Prim) -> Result<String> {
    let (stem, less) = if op == Op::Fmin { ("min", "<") } else { ("max", ">") };
    e.helper(format!("{stem}_{}_literal", prim.name()), |e, name| {
        let ty = e.types.prim(prim)?;
        Ok(format!("{ty} {name}({ty} a, {ty} b) {{\n    return a {less} b ? a : b;\n}}"))
    })
}

/// A power. A square is the rounded product, which the function need not give.
fn power(e: &mut Emitter, prim: Prim) -> Result<String> {
    let function = name(e, Op::Pow, prim)?;
    e.helper(format!("pow_{}", prim.name()), |e, name| {
        let ty = e.types.prim(prim)?;
        let two = e.literal(prim, if prim == Prim::F32 { 2f32.to_bits().into() } else { 2f64.to_bits() })?.text;
        Ok(format!("{ty} {name}({ty} a, {ty} b) {{\n    return b == {two} ? a * a : {function}(a, b);\n}}"))
    })
}
