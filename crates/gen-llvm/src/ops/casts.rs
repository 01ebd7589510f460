//! Conversions of numbers, and casts of values to other types with the same bits.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use crate::ops::{Lanes, number, number_text, suffix, uniform};
use nyala_base::{Diagnostic, Id};
use nyala_flat::Value;
use nyala_ir::{Prim, Ty, TyKind};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

pub(crate) fn cast(f: &mut FunctionEmitter, result: Value, arg: Value, to: Ty) -> Result<()> {
    let (Some((from, lanes)), Some((to, _))) = (number(f, f.ty(arg)), number(f, to)) else {
        return Err(bug("a cast of no number"));
    };
    let value = f.op(arg);
    f.operands[result.idx()] = convert(f, value, from, to, lanes);
    Ok(())
}

/// Converts the operand `value` to another number type. Between halves and integers it goes through single precision,
/// which is exact.
pub(crate) fn convert(f: &mut FunctionEmitter, value: String, from: Prim, to: Prim, lanes: Lanes) -> String {
    let (from_text, to_text) = (number_text(from, lanes), number_text(to, lanes));
    if from_text == to_text {
        // Same bits, another signedness.
        return value;
    }
    if (from == Prim::F16 && to.is_int()) || (to == Prim::F16 && !from.is_float()) {
        let single = convert(f, value, from, Prim::F32, lanes);
        return convert(f, single, Prim::F32, to, lanes);
    }
    let wider = to.bits() > from.bits();
    let result = f.temp();
    let op = match (from, to) {
        (_, Prim::Bool) => {
            let (op, zero) = (if from.is_float() { "fcmp une" } else { "icmp ne" }, uniform(from, lanes, 0));
            f.line(format_args!("{result} = {op} {from_text} {value}, {zero}"));
            return result;
        }
        _ if from.is_float() && to.is_float() && wider => "fpext",
        _ if from.is_float() && to.is_float() => "fptrunc",
        _ if from.is_float() && lanes.is_some() => return saturate(f, value, from, to, lanes),
        _ if from.is_float() => {
            let op = if to.is_signed() { "fptosi" } else { "fptoui" };
            let symbol = format!("llvm.{op}.sat.{}.{}", suffix(to, lanes), suffix(from, lanes));
            f.e.declare(&symbol, || format!("declare {to_text} @{symbol}({from_text})"));
            f.line(format_args!("{result} = call {to_text} @{symbol}({from_text} {value})"));
            return result;
        }
        _ if to.is_float() && from.is_signed() => "sitofp",
        _ if to.is_float() => "uitofp",
        _ if !wider => "trunc",
        _ if from.is_signed() => "sext",
        _ => "zext",
    };
    f.line(format_args!("{result} = {op} {from_text} {value} to {to_text}"));
    result
}

/// Converts float lanes to integers, saturating. LLVM 22 compiles the equivalent `llvm.fptosi.sat` lane by lane.
fn saturate(f: &mut FunctionEmitter, value: String, from: Prim, to: Prim, lanes: Lanes) -> String {
    let (from_text, to_text) = (number_text(from, lanes), number_text(to, lanes));
    let float =
        |x: f64| uniform(from, lanes, if from == Prim::F32 { (x as f32).to_bits().into() } else { x.to_bits() });
    // Integers of less than 32 bits fit into a signed 32-bit integer.
    let via = if to.bits() < 32 { Prim::I32 } else { to };
    let op = if via.is_signed() { "fptosi" } else { "fptoui" };
    let mut result = f.temp();
    f.line(format_args!("{result} = {op} {from_text} {value} to {}", number_text(via, lanes)));
    if via != to {
        result = convert(f, result, via, to, lanes);
    }
    let digits = to.bits() - to.is_signed() as u32;
    let above = (digits as f64).exp2();
    let below = if to.is_signed() { -above } else { 0.0 };
    let most = if digits == 64 { u64::MAX } else { (1 << digits) - 1 };
    // Out of range the conversion is poison, and `select` chooses a bound.
    let mut bounds = vec![("oge", float(above), most)];
    if to.is_signed() {
        bounds.push(("olt", float(below), !most));
        bounds.push(("uno", float(0.0), 0));
    } else {
        bounds.push(("ult", float(0.0), 0));
    }
    let bools = number_text(Prim::Bool, lanes);
    for (test, bound, instead) in bounds {
        let (outside, chosen, instead) = (f.temp(), f.temp(), uniform(to, lanes, instead));
        f.line(format_args!("{outside} = fcmp {test} {from_text} {value}, {bound}"));
        f.line(format_args!("{chosen} = select {bools} {outside}, {to_text} {instead}, {to_text} {result}"));
        result = chosen;
    }
    result
}

pub(crate) fn bitcast(f: &mut FunctionEmitter, result: Value, arg: Value, to: Ty) -> Result<()> {
    let (from, name) = (f.ty(arg), f.op(result));
    let (from_text, to_text) = (f.e.layouts.register(from)?, f.e.layouts.register(to)?);
    let types = &f.e.module.types;
    let is_address = |ty| matches!(types.kind(ty), TyKind::Ptr { .. } | TyKind::Code);
    let is_scalar = |ty| types.as_prim(ty).is_some() || is_address(ty);
    let is_float = |ty| types.as_prim(ty).is_some_and(Prim::is_float);
    let (from_address, to_address) = (is_address(from), is_address(to));
    if is_scalar(from) && is_scalar(to) && !f.e.layouts.is_bool(from) && !f.e.layouts.is_bool(to) {
        let value = f.typed(arg)?;
        if from_text == to_text {
            f.operands[result.idx()] = f.op(arg);
            return Ok(());
        }
        match (from_address, to_address) {
            (true, false) if is_float(to) => {
                let int = f.temp();
                f.line(format_args!("{int} = ptrtoint {value} to i64"));
                f.line(format_args!("{name} = bitcast i64 {int} to {to_text}"));
            }
            (false, true) if is_float(from) => {
                let int = f.temp();
                f.line(format_args!("{int} = bitcast {value} to i64"));
                f.line(format_args!("{name} = inttoptr i64 {int} to ptr"));
            }
            (true, false) => f.line(format_args!("{name} = ptrtoint {value} to {to_text}")),
            (false, true) => f.line(format_args!("{name} = inttoptr {value} to ptr")),
            _ => f.line(format_args!("{name} = bitcast {value} to {to_text}")),
        }
        return Ok(());
    }
    // Numbers and vectors with equally many bits.
    let bits = |ty| {
        let (prim, lanes) = number(f, ty).filter(|n| n.0 != Prim::Bool)?;
        Some(prim.bits() * lanes.unwrap_or(1))
    };
    if bits(from).is_some() && bits(from) == bits(to) {
        let value = f.typed(arg)?;
        f.line(format_args!("{name} = bitcast {value} to {to_text}"));
        return Ok(());
    }
    let at = f.spill_for(arg, to)?;
    f.read(&name, &at, to)
}
