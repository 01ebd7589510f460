//! Tuples, structs, arrays and vectors: construction, access to parts, addresses of parts.

use crate::expr::{Expr, Form, Prec, apply};
use crate::function::FunctionEmitter;
use crate::statements::Node;
use crate::types::ELEMENTS;
use crate::{Result, bug};
use nyala_flat::Value;
use nyala_ir::{Op, Prim, Ty, TyKind};

/// A value of an aggregate type from its parts with a size.
pub(crate) fn braces(f: &mut FunctionEmitter, ty: Ty, parts: &[Expr]) -> Result<Expr> {
    let name = f.type_name(ty)?;
    let refs: Vec<&Expr> = parts.iter().collect();
    // Braces in braces need no type.
    let texts: Vec<&str> = parts.iter().map(|p| p.text.as_str()).collect();
    let list = texts.join(", ");
    let is_wrapped = matches!(f.e.module.types.kind(ty), TyKind::Array(..) | TyKind::Vector(..));
    let text = if is_wrapped && !texts.is_empty() { format!("{{{{{list}}}}}") } else { format!("{{{list}}}") };
    Ok(Expr::atom(text).form(Form::Braces(name)).of(&refs))
}

/// A part of an aggregate under construction.
fn part(f: &mut FunctionEmitter, v: Value) -> Result<Expr> {
    let raw = f.raw(v)?;
    if matches!(raw.form, Form::Braces(_)) { Ok(raw) } else { f.e.rendered(raw, false) }
}

pub(crate) fn build(f: &mut FunctionEmitter, ty: Ty, args: &[Value]) -> Result<Expr> {
    let mut parts = Vec::new();
    for &a in args {
        if !f.is_void(a) {
            parts.push(part(f, a)?);
        }
    }
    // Several calls in one expression have no order.
    if parts.iter().filter(|p| p.must).count() > 1 {
        return Err(bug("several calls in one value"));
    }
    braces(f, ty, &parts)
}

/// An array or vector of equal elements.
pub(crate) fn splat(f: &mut FunctionEmitter, ty: Ty, arg: Value) -> Result<Expr> {
    let n = f.e.module.types.n_parts(ty).unwrap_or(0);
    let elem = part(f, arg)?;
    if matches!(elem.text.as_str(), "0" | "{}" | "0.0" | "0.0f" | "false") {
        let name = f.type_name(ty)?;
        return Ok(Expr::atom("{}").form(Form::Braces(name)));
    }
    if n <= 4 && elem.vars.is_empty() && !elem.must && !elem.reads {
        return braces(f, ty, &vec![elem; n as usize]);
    }
    let elem_ty = f.ty(arg);
    let elem = f.e.rendered(elem, true)?;
    let name = format!("splat_{}", f.e.types.short(ty));
    let (declared, whole) = (f.declared(elem_ty)?, f.declared(ty)?);
    let counter = f.e.types.prim(if n > i32::MAX as u64 { Prim::I64 } else { Prim::I32 })?;
    let name = f.e.helper(name, |_, name| {
        Ok(format!(
            "{whole}{name}({declared}x) {{
    {whole}all;
    for ({counter} i = 0; i < {n}; i++) all.{ELEMENTS}[i] = x;
    return all;
}}"
        ))
    })?;
    Ok(apply(&name, &[&elem]))
}

/// The text of a part of an aggregate that has this text.
fn part_of(f: &mut FunctionEmitter, whole: &Expr, ty: Ty, idx: Value) -> Result<Expr> {
    let base = whole.at(Prec::Postfix);
    match f.e.module.types.kind(ty) {
        TyKind::Array(..) | TyKind::Vector(..) => {
            let i = index(f, idx)?;
            Ok(Expr::atom(format!("{base}.{ELEMENTS}[{}]", i.text)).of(&[whole, &i]))
        }
        _ => {
            let member = member(f, ty, idx)?;
            Ok(Expr::atom(format!("{base}.{member}")).of(&[whole]))
        }
    }
}

fn member(f: &mut FunctionEmitter, ty: Ty, idx: Value) -> Result<String> {
    let i = f.function.as_index(idx).ok_or_else(|| bug("a member that is not known"))?;
    f.e.types.members(ty).get(i as usize).cloned().ok_or_else(|| bug("no such member"))
}

/// An index, without the conversions that C does anyway.
fn index(f: &mut FunctionEmitter, idx: Value) -> Result<Expr> {
    if let Some(bits) = f.function.as_index(idx) {
        let text = (bits as i64).to_string();
        return Ok(Expr::new(text, Prec::Unary));
    }
    f.converted(idx)
}

pub(crate) fn extract(f: &mut FunctionEmitter, args: &[Value]) -> Result<Expr> {
    let ty = f.ty(args[0]);
    if f.function.as_const(args[0]).is_some() {
        // A part of an undefined aggregate is undefined.
        let part = match f.e.module.types.kind(ty) {
            TyKind::Array(..) | TyKind::Vector(..) => f.e.module.types.part(ty, 0),
            _ => f.function.as_index(args[1]).and_then(|i| f.e.module.types.part(ty, i)),
        };
        return f.e.constant(nyala_flat::Const::Undef, part.ok_or_else(|| bug("a part of nothing"))?);
    }
    let whole = f.value(args[0])?;
    let e = part_of(f, &whole, ty, args[1])?;
    // Out of range the result is undefined, but the program goes on.
    if let (TyKind::Array(elem, n), Some(i)) = (f.e.module.types.kind(ty).clone(), f.function.as_index(args[1]))
        && i >= n
    {
        f.statement(format!("(void){}", whole.at(Prec::Unary)), &[&whole]);
        return f.e.constant(nyala_flat::Const::Undef, elem);
    }
    Ok(e)
}

pub(crate) fn insert(f: &mut FunctionEmitter, result: Value, args: &[Value]) -> Result<()> {
    if f.n_uses(result) == 0 {
        return Ok(());
    }
    let ty = f.ty(result);
    let old = f.raw(args[0])?;
    if f.is_void(args[2]) {
        return f.define(result, old, nyala_flat::InstOp::Op(Op::Insert));
    }
    let mut new = f.value(args[2])?;
    if new.must {
        new = f.spill(new, f.ty(args[2]))?;
    }
    let (name, var) = f.variable_with(result, old)?;
    let place = part_of(f, &Expr::var(&name, var), ty, args[1])?;
    f.push(Node::Do { text: format!("{} = {}", place.text, new.text), vars: place.clone().of(&[&place, &new]).vars });
    Ok(())
}

/// The address of a part of what an address leads to.
pub(crate) fn lea(f: &mut FunctionEmitter, args: &[Value]) -> Result<Expr> {
    let pointee = f.pointee(args[0])?;
    let base = f.address(args[0])?;
    let types = &f.e.module.types;
    let form = |ty: Ty| if matches!(types.kind(ty), TyKind::Array(..)) { Form::ArrayPlace } else { Form::Place };
    match types.kind(pointee).clone() {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => {
            let form = form(elem);
            let base = f.e.rendered(base, true)?;
            if f.e.types.is_void(elem) {
                return Ok(base);
            }
            f.complete(elem)?;
            let i = index(f, args[1])?;
            Ok(Expr::atom(format!("{}[{}]", base.at(Prec::Postfix), i.text)).form(form).of(&[&base, &i]))
        }
        kind => {
            let (step, part) = match kind {
                TyKind::Vector(prim, _) => {
                    let i = index(f, args[1])?;
                    (format!("{ELEMENTS}[{}]", i.text), f.e.module.types.prim(prim))
                }
                _ => {
                    let i = f.function.as_index(args[1]).unwrap_or(u64::MAX);
                    let part = f.e.module.types.part(pointee, i).ok_or_else(|| bug("no such part"))?;
                    (member(f, pointee, args[1])?, part)
                }
            };
            if f.e.types.is_void(part) {
                let void = f.e.module.types.pointee(f.ty(args[0])).map(|_| "(void *)").unwrap_or_default();
                let base = f.e.rendered(base, true)?;
                return Ok(Expr::new(format!("{void}{}", base.at(Prec::Unary)), Prec::Unary).of(&[&base]));
            }
            let form = form(part);
            f.e.types.define(pointee, &mut f.e.names)?;
            let extra = match f.e.module.types.kind(pointee) {
                TyKind::Vector(..) if f.function.as_index(args[1]).is_none() => Some(index(f, args[1])?),
                _ => None,
            };
            let joint = if base.form == Form::Place { "." } else { "->" };
            let text = format!("{}{joint}{step}", base.at(Prec::Postfix));
            let e = Expr::atom(text).form(form);
            Ok(match &extra {
                Some(i) => e.of(&[&base, i]),
                None => e.of(&[&base]),
            })
        }
    }
}

/// The place that an address leads to, as an expression of what is there.
pub(crate) fn place(f: &mut FunctionEmitter, ptr: Value, ty: Ty) -> Result<Expr> {
    let e = f.address(ptr)?;
    Ok(match e.form {
        Form::Place | Form::ArrayPlace => e.form(Form::Value),
        _ => {
            let e = f.e.rendered(e, true)?;
            let address = match f.e.module.types.kind(ty) {
                // The address is one of an element.
                TyKind::Array(..) => {
                    let name = f.type_name(ty)?;
                    crate::expr::cast(&format!("{name} *"), &e)
                }
                _ => {
                    f.complete(ty)?;
                    e
                }
            };
            Expr::new(format!("*{}", address.at(Prec::Unary)), Prec::Unary).of(&[&address])
        }
    })
}

/// Whether a vector at this address may lie at any element of an array, so that it is accessed by lanes.
pub(crate) fn is_packed(types: &nyala_ir::Types, ty: Ty) -> Option<(Prim, u32)> {
    types.as_vector(ty)
}
