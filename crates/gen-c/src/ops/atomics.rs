//! Atomic operations and fences, by the functions that GCC and Clang share. The scope is always all threads.

use super::aggregates::place;
use crate::expr::{Expr, Prec, apply};
use crate::function::FunctionEmitter;
use crate::{Result, bug};
use nyala_flat::{Inst, Value};
use nyala_ir::scalar::{ATOMICS, ORDERS};
use nyala_ir::{Op, Prim, Ty};

/// A memory order in C's notation. An order that C forbids for the operation becomes one that is as strong or stronger.
fn order(f: &FunctionEmitter, op: Op, order: Value, is_failure: bool) -> Result<&'static str> {
    let number = f.function.as_bits(order).ok_or_else(|| bug("a memory order that is not known"))?;
    let name = ORDERS.get(number as usize).copied().flatten().ok_or_else(|| bug("no such memory order"))?;
    Ok(match (op, name) {
        (_, "notatomic" | "unordered" | "monotonic") => "__ATOMIC_RELAXED",
        (Op::AtomicLoad, "acq_rel") => "__ATOMIC_ACQUIRE",
        (Op::AtomicStore, "acq_rel") => "__ATOMIC_RELEASE",
        (Op::AtomicLoad, "release") | (Op::AtomicStore, "acquire") => "__ATOMIC_SEQ_CST",
        (_, "release") if is_failure => "__ATOMIC_RELAXED",
        (_, "acq_rel") if is_failure => "__ATOMIC_ACQUIRE",
        (_, "acquire") => "__ATOMIC_ACQUIRE",
        (_, "release") => "__ATOMIC_RELEASE",
        (_, "acq_rel") => "__ATOMIC_ACQ_REL",
        _ => "__ATOMIC_SEQ_CST",
    })
}

pub(crate) fn emit(f: &mut FunctionEmitter, op: Op, inst: &Inst) -> Result<()> {
    let args = &inst.args;
    if op == Op::Fence {
        let order = order(f, op, args[0], false)?;
        f.flush(true)?;
        if order != "__ATOMIC_RELAXED" {
            f.statement(format!("__atomic_thread_fence({order})"), &[]);
        }
        return Ok(());
    }
    let at = op.writes().map_or(0, |w| w.0 - 1);
    let ty = f.pointee(args[at])?;
    // A write through the place that the address leads to is one through the address.
    let at_place = place(f, args[at], ty)?;
    let address = match at_place.text.strip_prefix('*') {
        Some(plain) if at_place.prec == Prec::Unary => Expr::new(plain.to_string(), Prec::Unary).of(&[&at_place]),
        _ => Expr::new(format!("&{}", at_place.at(Prec::Unary)), Prec::Unary).of(&[&at_place]),
    };
    let text_ty = f.type_name(ty)?;
    // GCC takes `_Bool *` for another type than a pointer to a `_Bool` that may alias.
    let address = match f.e.module.types.as_prim(ty) {
        Some(Prim::Bool) => Expr::new(format!("({text_ty} *){}", address.at(Prec::Unary)), Prec::Unary).of(&[&address]),
        _ => address,
    };
    let float = f.e.module.types.as_prim(ty).is_some_and(Prim::is_float);
    let e = match op {
        Op::AtomicStore => {
            let (value, order) = (f.value(args[1])?, order(f, op, args[2], false)?);
            f.flush(true)?;
            let name = generic(f, op, ty, &text_ty, order)?;
            let e = apply(&name, &[&address, &value]);
            f.statement(e.text.clone(), &[&e]);
            return Ok(());
        }
        Op::AtomicLoad => {
            let order = order(f, op, args[1], false)?;
            let name = generic(f, op, ty, &text_ty, order)?;
            apply(&name, &[&address])
        }
        Op::Atomic => {
            let number = f.function.as_bits(args[0]).and_then(|n| ATOMICS.get(n as usize));
            let what = *number.ok_or_else(|| bug("no such atomic operation"))?;
            let (value, order) = (f.value(args[2])?, order(f, op, args[3], false)?);
            let direct = matches!(what, "add" | "sub" | "and" | "nand" | "or" | "xor") && !float;
            if direct {
                let order = Expr::atom(order);
                let e = apply(&format!("__atomic_fetch_{what}"), &[&address, &value, &order]);
                e.clone()
            } else {
                let name = updated(f, what, ty, &text_ty, order)?;
                apply(&name, &[&address, &value])
            }
        }
        _ => {
            let (expected, new) = (f.value(args[1])?, f.value(args[2])?);
            let orders = (order(f, op, args[3], false)?, order(f, op, args[4], true)?);
            let Some(result) = inst.result else { return Err(bug("`cmpxchg` without a result")) };
            let pair = f.type_name(f.ty(result))?;
            let name = exchange(f, op, (ty, &text_ty), &pair, orders)?;
            apply(&name, &[&address, &expected, &new])
        }
    };
    f.flush(true)?;
    let e = Expr { must: true, ..e };
    match inst.result {
        // An atomic operation is one statement: what it gives is often not used.
        Some(r) if f.n_uses(r) == 0 => {
            f.statement(e.text.clone(), &[&e]);
            Ok(())
        }
        Some(r) => f.define(r, e, inst.op),
        None => Err(bug("an atomic operation without a result")),
    }
}

fn suffix(order: &str) -> String {
    order.trim_start_matches("__ATOMIC_").to_ascii_lowercase()
}

/// A load or store: a function of the dialect's own types, floats included.
fn generic(f: &mut FunctionEmitter, op: Op, ty: Ty, text: &str, order: &str) -> Result<String> {
    let short = f.e.types.short(ty);
    let (stem, is_load) = if op == Op::AtomicLoad { ("atomic_load", true) } else { ("atomic_store", false) };
    f.e.helper(format!("{stem}_{}_{short}", suffix(order)), |_, name| {
        Ok(match is_load {
            true => format!("{text} {name}({text} *at) {{\n    {text} value;\n    __atomic_load(at, &value, {order});\n    return value;\n}}"),
            false => format!("void {name}({text} *at, {text} value) {{\n    __atomic_store(at, &value, {order});\n}}"),
        })
    })
}

/// An operation that C has no function for: tried until nobody comes in between.
fn updated(f: &mut FunctionEmitter, what: &str, ty: Ty, text: &str, order: &str) -> Result<String> {
    let short = f.e.types.short(ty);
    let prim = f.e.module.types.as_prim(ty);
    let other = |signed: bool| {
        let prim = prim.unwrap_or(Prim::I64);
        Prim::ALL.into_iter().find(|p| p.is_int() && p.bits() == prim.bits() && p.is_signed() == signed).unwrap_or(prim)
    };
    let new = match what {
        "xchg" => "v".to_string(),
        "fadd" => "old + v".into(),
        "fsub" => "old - v".into(),
        "fmax" | "fmin" => {
            let op = if what == "fmax" { Op::Fmax } else { Op::Fmin };
            format!("{}(old, v)", crate::ops::math::lesser(f.e, op, prim.unwrap_or(Prim::F64))?)
        }
        "uinc_wrap" | "udec_wrap" => {
            let unsigned = f.e.types.prim(other(false))?;
            match what {
                "uinc_wrap" => format!("({unsigned})old >= ({unsigned})v ? 0 : old + 1"),
                _ => format!("old == 0 || ({unsigned})old > ({unsigned})v ? v : old - 1"),
            }
        }
        _ => {
            let compared = f.e.types.prim(other(!what.starts_with('u')))?;
            let less = if what.ends_with("max") { ">" } else { "<" };
            format!("({compared})old {less} ({compared})v ? old : v")
        }
    };
    f.e.helper(format!("atomic_{what}_{}_{short}", suffix(order)), |_, name| {
        Ok(format!(
            "{text} {name}({text} *at, {text} v) {{
    {text} old;
    {text} new;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do {{
        new = {new};
    }} while (!__atomic_compare_exchange(at, &old, &new, 0, {order}, __ATOMIC_RELAXED));
    return old;
}}"
        ))
    })
}

/// Compares and exchanges: the old value, and whether it was the expected one.
fn exchange(
    f: &mut FunctionEmitter,
    op: Op,
    (ty, text): (Ty, &str),
    pair: &str,
    (success, failure): (&str, &str),
) -> Result<String> {
    let short = f.e.types.short(ty);
    let (stem, weak) = if op == Op::CmpxchgWeak { ("try_exchange", 1) } else { ("exchange", 0) };
    f.e.helper(format!("{stem}_{}_{}_{short}", suffix(success), suffix(failure)), |_, name| {
        Ok(format!(
            "{pair} {name}({text} *at, {text} expected, {text} new) {{
    {pair} result;
    result.x1 = __atomic_compare_exchange(at, &expected, &new, {weak}, {success}, {failure});
    result.x0 = expected;
    return result;
}}"
        ))
    })
}
