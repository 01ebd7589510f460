//! Floats of 16 bits. In a language that has the type they are computed in single precision and rounded once; in others
//! they are their bits, with functions that convert ([`Halves`]). Separate, since all kinds of operations need it.

use crate::dialect::Halves;
use crate::emit::Emitter;
use crate::expr::{Expr, apply, cast};
use crate::{Result, bug};
use nyala_ir::{Op, Prim};

/// Whether floats of 16 bits are their bits.
pub(crate) fn are_bits(e: &Emitter) -> bool {
    matches!(e.dialect.halves, Halves::Bits { .. })
}

/// The type that a value of a type has in the text.
pub(crate) fn in_text(e: &Emitter, prim: Prim) -> Prim {
    if prim == Prim::F16 && are_bits(e) { Prim::U16 } else { prim }
}

/// A half in single or double precision.
pub(crate) fn widen(e: &mut Emitter, to: Prim, x: &Expr) -> Result<Expr> {
    let name = e.types.prim(to)?;
    let Halves::Bits { widen, .. } = e.dialect.halves else { return Ok(cast(name, x)) };
    if let Some(bits) = x.text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        let value = nyala_ir::scalar::half_value(bits);
        let bits = if to == Prim::F32 { value.to_bits().into() } else { f64::from(value).to_bits() };
        return e.literal(to, bits);
    }
    let half = e.types.prim(Prim::F16)?;
    let body = widen[(to == Prim::F64) as usize];
    let name =
        e.helper(format!("f16_to_{}", to.name()), |_, helper| Ok(format!("{name} {helper}({half} x) {{\n{body}\n}}")))?;
    Ok(apply(&name, &[x]))
}

/// A number of single or double precision, rounded to a half.
pub(crate) fn narrow(e: &mut Emitter, from: Prim, x: &Expr) -> Result<Expr> {
    let half = e.types.prim(Prim::F16)?;
    let Halves::Bits { narrow, .. } = e.dialect.halves else { return Ok(cast(half, x)) };
    let wide = e.types.prim(from)?;
    let body = narrow[(from == Prim::F64) as usize];
    let name = e.helper(format!("{}_to_f16", from.name()), |_, helper| {
        Ok(format!("{half} {helper}({wide} x) {{\n{body}\n}}"))
    })?;
    Ok(apply(&name, &[x]))
}

/// An operation that the language has a function for.
pub(crate) fn direct(e: &mut Emitter, op: Op, args: &[&Expr]) -> Result<Option<Expr>> {
    let Halves::Bits { direct, .. } = e.dialect.halves else { return Ok(None) };
    let Some((_, body)) = direct.iter().find(|d| d.0 == op) else { return Ok(None) };
    let half = e.types.prim(Prim::F16)?;
    let letters = ["a", "b", "c"].get(..args.len()).ok_or_else(|| bug("more than three operands"))?;
    let params: Vec<String> = letters.iter().map(|letter| format!("{half} {letter}")).collect();
    let name = e.helper(format!("{}_f16", op.name()), |_, helper| {
        Ok(format!("{half} {helper}({}) {{\n{body}\n}}", params.join(", ")))
    })?;
    Ok(Some(apply(&name, args)))
}
