//! Operations of vectorized code: memory by lane, masks as bits, compaction. They are functions with loops over the
//! lanes, as [`super::lane_loops`] has them. Inactive lanes of what is read are zero.

use crate::expr::{Expr, apply};
use crate::function::FunctionEmitter;
use crate::types::ELEMENTS;
use crate::{Result, bug};
use nyala_flat::{Inst, Value, VectorOp};
use nyala_ir::{Prim, layout};

pub(crate) fn emit(f: &mut FunctionEmitter, op: VectorOp, inst: &Inst) -> Result<()> {
    let mut exprs = Vec::new();
    for (i, &a) in inst.args.iter().enumerate() {
        let is_scale = matches!(op, VectorOp::Gather | VectorOp::Scatter) && i == 2;
        exprs.push(if is_scale { f.converted(a)? } else { f.value(a)? });
    }
    let refs: Vec<&Expr> = exprs.iter().collect();
    let name = helper(f, op, inst)?;
    let e = apply(&name, &refs);
    match (op, inst.result) {
        (VectorOp::Store | VectorOp::Scatter, _) => {
            f.flush(true)?;
            f.statement(e.text.clone(), &[&e]);
            Ok(())
        }
        (VectorOp::Load | VectorOp::Gather, Some(result)) => {
            f.flush(false)?;
            f.define(result, Expr { reads: true, ..e }, inst.op)
        }
        (VectorOp::MaskBits | VectorOp::ExpandBits | VectorOp::Compress, Some(result)) => f.define(result, e, inst.op),
        (_, None) => Err(bug(format!("`{}` without a result", op.name()))),
    }
}

/// The function that does an operation.
fn helper(f: &mut FunctionEmitter, op: VectorOp, inst: &Inst) -> Result<String> {
    let args = &inst.args;
    let types = &f.e.module.types;
    let subject = match op {
        VectorOp::MaskBits => args[0],
        _ => op.written().map(|i| args[i]).or(inst.result).ok_or_else(|| bug("lanes of nothing"))?,
    };
    let Some((prim, n)) = types.as_vector(f.ty(subject)) else { return Err(bug("lanes of no vector")) };
    let mask = op.mask(args);
    f.e.masked_loads |= mask.is_some() && matches!(op, VectorOp::Load | VectorOp::Gather);
    let mask_name = match mask {
        Some(mask) => format!(", {} mask", f.type_name(f.ty(mask))?),
        None => String::new(),
    };
    let (whole, short) = (f.type_name(f.ty(subject))?, f.e.types.short(f.ty(subject)));
    let masked = if mask.is_some() { "_masked" } else { "" };
    let active = if mask.is_some() { format!("if (mask.{ELEMENTS}[i]) ") } else { String::new() };
    let lane = f.e.types.prim(prim)?;
    let size = layout::prim_size(prim);
    let each = format!("for (int i = 0; i < {n}; i++)");
    let (suffix, index) = match op {
        VectorOp::Gather | VectorOp::Scatter => {
            (format!("_{}", f.e.types.short(f.ty(args[1]))), f.type_name(f.ty(args[1]))?)
        }
        _ => (String::new(), String::new()),
    };
    let (wide, bits) = (f.e.types.prim(Prim::I64)?, f.e.types.prim(Prim::U64)?);
    let bools = mask_of(f, op, args, inst.result)?;
    let name = format!("{}{masked}_{short}{suffix}", op.name());
    f.e.helper(name, |_, name| {
        Ok(match op {
            VectorOp::Load => format!(
                "{whole} {name}(const void *from{mask_name}) {{
    {whole} v = {{}};
    {each} {active}memcpy(&v.{ELEMENTS}[i], (const {lane} *)from + i, {size});
    return v;
}}"
            ),
            VectorOp::Store => format!(
                "void {name}(void *to, {whole} v{mask_name}) {{
    {each} {active}memcpy(({lane} *)to + i, &v.{ELEMENTS}[i], {size});
}}"
            ),
            VectorOp::Gather => format!(
                "{whole} {name}(const void *base, {index} index, {wide} scale{mask_name}) {{
    {whole} v = {{}};
    {each} {active}memcpy(&v.{ELEMENTS}[i], (const char *)base + ({wide})index.{ELEMENTS}[i] * scale, {size});
    return v;
}}"
            ),
            VectorOp::Scatter => format!(
                "void {name}(void *base, {index} index, {wide} scale, {whole} v{mask_name}) {{
    {each} {active}memcpy((char *)base + ({wide})index.{ELEMENTS}[i] * scale, &v.{ELEMENTS}[i], {size});
}}"
            ),
            VectorOp::MaskBits => format!(
                "{bits} {name}({whole} mask) {{
    {bits} all = 0;
    {each} all |= ({bits})mask.{ELEMENTS}[i] << i;
    return all;
}}"
            ),
            VectorOp::ExpandBits => format!(
                "{whole} {name}({bits} all) {{
    {whole} mask;
    {each} mask.{ELEMENTS}[i] = all >> i & 1;
    return mask;
}}"
            ),
            VectorOp::Compress => format!(
                "{whole} {name}({whole} v, {bools} mask) {{
    {whole} packed = {{}};
    int n = 0;
    {each} if (mask.{ELEMENTS}[i]) packed.{ELEMENTS}[n++] = v.{ELEMENTS}[i];
    return packed;
}}"
            ),
        })
    })
}

/// The type of the mask that says which lanes are compressed.
fn mask_of(f: &mut FunctionEmitter, op: VectorOp, args: &[Value], result: Option<Value>) -> Result<String> {
    match (op, result) {
        (VectorOp::Compress, Some(_)) => f.type_name(f.ty(args[1])),
        _ => Ok(String::new()),
    }
}
