//! Conversions of numbers, and values read as other types of the same size.

use crate::Result;
use crate::dialect::Bits;
use crate::emit::Emitter;
use crate::expr::{Expr, Form, apply, cast as convert};
use crate::function::FunctionEmitter;
use crate::ops::halves;
use nyala_flat::Value;
use nyala_ir::{Prim, Ty, TyKind};

/// Converts a number.
pub(crate) fn cast(e: &mut Emitter, from: Prim, to: Prim, x: Expr) -> Result<Expr> {
    if from == to {
        return Ok(x);
    }
    if to == Prim::Bool {
        let zero = e.literal(from, 0)?;
        return crate::ops::numbers::compare(e, nyala_ir::Op::Ne, from, &x, &zero);
    }
    if from == Prim::F16 && to.is_float() {
        return halves::widen(e, to, &x);
    }
    if to == Prim::F16 && from.is_float() {
        return halves::narrow(e, from, &x);
    }
    if from.is_float() && to.is_float() {
        return Ok(convert(e.types.prim(to)?, &x));
    }
    if from.is_float() {
        return float_to_int(e, from, to, &x);
    }
    if to == Prim::F16 {
        // Through single precision, as in the interpreter.
        let single = cast(e, from, Prim::F32, x)?;
        return cast(e, Prim::F32, Prim::F16, single);
    }
    let name = e.types.prim(to)?;
    // In C a `bool` is an `int` as soon as one computes with it.
    if from == Prim::Bool && to.is_int() && to.bits() <= 32 && to != Prim::U32 {
        return Ok(x);
    }
    if let (Form::Unsigned(_), true) = (&x.form, to.is_int() && to.bits() <= from.bits()) {
        let x = x.form(Form::Value);
        return Ok(if to == crate::ops::numbers::unsigned(from) { x } else { convert(name, &x) });
    }
    let x = e.rendered(x, true)?;
    Ok(convert(name, &x))
}

/// Numbers that are out of range become the nearest that is in range, NaN becomes 0.
fn float_to_int(e: &mut Emitter, from: Prim, to: Prim, x: &Expr) -> Result<Expr> {
    if from == Prim::F16 {
        let single = cast(e, from, Prim::F32, x.clone())?;
        return float_to_int(e, Prim::F32, to, &single);
    }
    let name = e.helper(format!("{}_to_{}", from.name(), to.name()), |e, name| {
        let (int, float) = (e.types.prim(to)?, e.types.prim(from)?);
        let digits = to.bits() - to.is_signed() as u32;
        let most = if digits == 64 { u64::MAX } else { (1 << digits) - 1 };
        let above = (f64::from(digits)).exp2();
        let number = |e: &mut Emitter, x: f64| {
            let bits = if from == Prim::F32 { (x as f32).to_bits().into() } else { x.to_bits() };
            e.literal(from, bits)
        };
        let (most, least) = (e.literal(to, most)?, e.literal(to, if to.is_signed() { !most } else { 0 })?);
        let (most, least) = (e.rendered(most, true)?.text, e.rendered(least, true)?.text);
        let (above, below) = (number(e, above)?.text, number(e, if to.is_signed() { -above } else { 0.0 })?.text);
        Ok(format!(
            "{int} {name}({float} x) {{
    if (x >= {above}) return {most};
    if (x >= {below}) return ({int})x;
    return x != x ? 0 : {least};
}}"
        ))
    })?;
    Ok(apply(&name, &[x]))
}

/// The name of a function that reads the bits of one type as another.
pub(crate) fn reader(e: &mut Emitter, from: Ty, to: Ty) -> Result<String> {
    let name = format!("{}_as_{}", e.types.short(from), e.types.short(to));
    if e.dialect.bits == Bits::AsType && e.module.types.as_prim(to).is_some() {
        return Ok(format!("as_{}", e.types.name(to, &mut e.names)?));
    }
    let (from_name, to_name) = (e.types.declared(from, &mut e.names)?, e.types.declared(to, &mut e.names)?);
    let bits = e.dialect.bits;
    e.helper(name, |_, name| {
        Ok(match bits {
            Bits::Union => format!(
                "{to_name}{name}({from_name}x) {{\n    union {{ {from_name}from; {to_name}to; }} u;\n    u.from = x;\n    return u.to;\n}}"
            ),
            Bits::Memcpy | Bits::AsType => format!(
                "{to_name}{name}({from_name}x) {{\n    {to_name}bits;\n    memcpy(&bits, &x, sizeof bits);\n    return bits;\n}}"
            ),
        })
    })
}

/// A value read as another type.
pub(crate) fn bitcast(f: &mut FunctionEmitter, arg: Value, to: Ty) -> Result<Expr> {
    let from = f.ty(arg);
    let x = f.raw(arg)?;
    if from == to {
        return Ok(x);
    }
    let types = &f.e.module.types;
    let is_address = |ty: Ty| matches!(types.kind(ty), TyKind::Ptr { .. } | TyKind::Code);
    let prim = |ty: Ty| types.as_prim(ty);
    // Halves may be integers already.
    let prim = |ty: Ty| prim(ty).map(|prim| halves::in_text(f.e, prim));
    let is_int = |ty: Ty| prim(ty).is_some_and(Prim::is_int);
    let (from_address, to_address, from_int, to_int) = (is_address(from), is_address(to), is_int(from), is_int(to));
    let (from_prim, to_prim) = (prim(from), prim(to));
    let name = f.type_name(to)?;
    if from_address && to_address {
        let x = f.e.rendered(x, true)?;
        let old = f.type_name(from)?;
        return Ok(if old == name { x } else { convert(&name, &x) });
    }
    let address = f.e.dialect.address;
    if from_address && to_int {
        let x = f.e.rendered(x, true)?;
        let number = convert(address, &x);
        return Ok(if to_prim == Some(Prim::U64) { number } else { convert(&name, &number) });
    }
    if from_int && to_address && f.function.as_bits(arg) == Some(0) {
        return Ok(crate::expr::Expr::atom(f.e.dialect.null));
    }
    if from_int && to_address {
        let x = f.e.rendered(x, true)?;
        return Ok(convert(&name, &convert(address, &x)));
    }
    if let (Some(from), Some(to), true) = (from_prim, to_prim, from_int && to_int) {
        return cast(f.e, from, to, x);
    }
    let x = f.e.rendered(x, true)?;
    let reader = reader(f.e, from, to)?;
    Ok(apply(&reader, &[&x]))
}
