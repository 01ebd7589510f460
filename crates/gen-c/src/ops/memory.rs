//! Memory: loads, stores, allocation, prefetches.

use super::aggregates::{is_packed, place};
use crate::expr::{Expr, Form, apply};
use crate::function::FunctionEmitter;
use crate::print::initializer;
use crate::statements::Node;
use crate::{Result, bug};
use nyala_flat::{InstOp, Value};
use nyala_ir::{Ty, TyKind, layout};

/// The name of a function that copies the lanes of a vector from or to memory, which is aligned as a lane is.
fn copier(f: &mut FunctionEmitter, ty: Ty, to_memory: bool) -> Result<Option<String>> {
    let Some((prim, n)) = is_packed(&f.e.module.types, ty) else { return Ok(None) };
    let whole = f.type_name(ty)?;
    let (stem, bytes) = (if to_memory { "store" } else { "load" }, layout::prim_size(prim) * u64::from(n));
    let name = format!("{stem}_{}", f.e.types.short(ty));
    let name = f.e.helper(name, |_, name| {
        Ok(match to_memory {
            true => format!("void {name}(void *to, {whole} v) {{\n    memcpy(to, &v, {bytes});\n}}"),
            false => format!(
                "{whole} {name}(const void *from) {{\n    {whole} v;\n    memcpy(&v, from, {bytes});\n    return v;\n}}"
            ),
        })
    })?;
    Ok(Some(name))
}

/// Whether an address is that of a variable, so that a vector there is aligned.
fn is_variable(e: &Expr) -> bool {
    e.form == Form::Place && crate::emit::is_identifier(&e.text)
}

pub(crate) fn load(f: &mut FunctionEmitter, ptr: Value, ty: Ty) -> Result<Expr> {
    if f.e.types.is_void(ty) {
        return Ok(Expr::atom("0"));
    }
    if let Some(name) = copier(f, ty, false)? {
        let address = f.raw(ptr)?;
        if is_variable(&address) {
            return Ok(Expr { reads: true, ..address.form(Form::Value) });
        }
        let address = f.e.rendered(address, true)?;
        return Ok(Expr { reads: true, ..apply(&name, &[&address]) });
    }
    let e = place(f, ptr, ty)?;
    Ok(Expr { reads: true, ..e })
}

pub(crate) fn store(f: &mut FunctionEmitter, args: &[Value]) -> Result<()> {
    let ty = f.ty(args[1]);
    if f.is_void(args[1]) {
        return Ok(());
    }
    if let Some(name) = copier(f, ty, true)? {
        let (address, value) = (f.raw(args[0])?, f.value(args[1])?);
        let is_variable = is_variable(&address);
        let place = address.text.clone();
        let address = f.e.rendered(address, true)?;
        f.flush(true)?;
        let text = match is_variable {
            true => format!("{place} = {}", value.text),
            false => format!("{name}({}, {})", address.text, value.text),
        };
        f.statement(text, &[&address, &value]);
        return Ok(());
    }
    let place = place(f, args[0], ty)?;
    let raw = f.raw(args[1])?;
    let mut value = if matches!(raw.form, Form::Braces(_)) { raw } else { f.e.rendered(raw, false)? };
    // Compilers build an aggregate part by part where it is stored, though the parts may be read from there; and memory
    // that overlaps in part is not copied as a whole.
    if value.reads && !is_scalar(f, ty) {
        value = f.spill(value, ty)?;
    }
    f.flush(true)?;
    let joined = Expr::atom("").of(&[&place, &value]);
    let text = format!("{} = {}", place.text, initializer(&value, false, f.e.dialect.compound));
    f.push(Node::Do { text, vars: joined.vars });
    Ok(())
}

fn is_scalar(f: &FunctionEmitter, ty: Ty) -> bool {
    matches!(f.e.module.types.kind(ty), TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code)
}

pub(crate) fn alloc(f: &mut FunctionEmitter, result: Value, n: Value, op: InstOp) -> Result<()> {
    let pointee = f.pointee(result)?;
    let elem = match f.e.module.types.kind(pointee) {
        TyKind::IndefArray(elem) => *elem,
        _ => pointee,
    };
    let (size, align) = f.e.types.size_align(elem)?;
    let n = f.converted(n)?;
    f.flush(true)?;
    let (name, more) = if align > 64 {
        f.e.runtime(
            "nyala_alloc_aligned_array",
            "void *nyala_alloc_aligned_array(int64_t n, int64_t size, int64_t align)",
        );
        ("nyala_alloc_aligned_array", format!(", {align}"))
    } else {
        f.e.runtime("nyala_alloc_array", "void *nyala_alloc_array(int64_t n, int64_t size)");
        ("nyala_alloc_array", String::new())
    };
    if f.e.dialect.spaces.len() > 1 {
        return Err(bug("memory from the heap in a kernel"));
    }
    let ty = f.type_name(f.ty(result))?;
    let memory = Expr::atom(format!("{name}({}, {size}{more})", n.text)).of(&[&n]);
    f.define(result, Expr { must: true, ..crate::expr::cast(&ty, &memory) }, op)
}

pub(crate) fn prefetch(f: &mut FunctionEmitter, args: &[Value]) -> Result<()> {
    let number = |i: usize, most: u64, default| f.function.as_bits(args[i]).filter(|&n| n <= most).unwrap_or(default);
    let (write, locality) = (number(1, 1, 0), number(2, 3, 3));
    let address = f.value(args[0])?;
    if f.e.dialect.has.builtins {
        f.flush(true)?;
        f.statement(format!("__builtin_prefetch({}, {write}, {locality})", address.text), &[&address]);
    }
    Ok(())
}
