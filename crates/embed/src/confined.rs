//! Functions that are called without `unsafe`: which types they may have, and what their parameters lend them. What their code may do is
//! `nyala_checks::confine`'s to say.

use crate::arguments::Args;
use crate::error::Error;
use crate::fixed::{any_slice, entries, function_of};
use crate::partial::Partial;
use crate::program::Program;
use crate::raw::layout;
use crate::shape::text_of;
use nyala_checks::Lent;
use nyala_sema::{ExportedType, Signatures};
use std::sync::Arc;

/// What a parameter of a type lends, or why a safe function has no such parameter.
fn lent_by(name: &str, ty: &ExportedType, all: &Signatures) -> Result<Lent, String> {
    if layout(ty, all).is_some() {
        return Ok(Lent::Nothing);
    }
    if let Some((element, mutable)) = any_slice(ty, all).filter(|(element, _)| layout(element, all).is_some()) {
        return match mutable && has_bool(element, all) {
            true => Err(format!(
                "parameter `{name}` is `{}`, and nothing ensures that a `bool` is 0 or 1",
                text_of(ty, all)
            )),
            false => Ok(if mutable { Lent::MutSlice } else { Lent::Slice }),
        };
    }
    let why = match ty {
        ExportedType::Pointer { mutable, many, to } => {
            let slice = if *mutable { "MutSlice" } else { "Slice" };
            match many {
                true => format!("whose length nobody knows: take a `{slice}[{}]`", text_of(to, all)),
                false => format!("an address: take a value, or a `{slice}[{}]`", text_of(to, all)),
            }
        }
        ExportedType::Function(..) => "a function: fix it".into(),
        _ => "which has an address in it".into(),
    };
    Err(format!("parameter `{name}` is `{}`, {why}", text_of(ty, all)))
}

/// Whether a type without addresses has truth values in it. It is as deep as the type.
fn has_bool(ty: &ExportedType, all: &Signatures) -> bool {
    match ty {
        ExportedType::Prim(prim) => *prim == nyala_ir::Prim::Bool,
        ExportedType::Array(of, _) => has_bool(of, all),
        ExportedType::Struct(index) => all.structs[*index].fields.iter().any(|(_, ty)| has_bool(ty, all)),
        _ => false,
    }
}

/// What the parameters that are left of a key's function lend it.
pub(crate) fn lent(program: &Program, key: &[u8]) -> Result<Arc<[Lent]>, Error> {
    let all = program.signatures();
    let signature = function_of(key, all).ok_or_else(|| Error::Bug("a variant of no function".into()))?;
    let refused = |why| Error::NeedsUnsafe { name: signature.symbol.clone(), why };
    let is_left = |i: &usize| entries(key).all(|(param, _)| param != *i);
    let params = (0..signature.params.len()).filter(is_left).map(|i| &signature.params[i]);
    params.map(|(name, ty)| lent_by(name, ty, all).map_err(refused)).collect()
}

/// Checks the types of a confined function, which are known to be those of the program.
pub(crate) fn check<A: Args>(partial: &Partial) -> Result<(), Error> {
    let (program, signature) = (partial.program(), partial.signature());
    lent(program, partial.key())?;
    let refused = |why| Err(Error::NeedsUnsafe { name: signature.symbol.clone(), why });
    let (result, all) = (&signature.result, program.signatures());
    if *result != ExportedType::Unit && layout(result, all).is_none() {
        return refused(format!("its result is `{}`, which has an address in it", text_of(result, all)));
    }
    if !matches!(result, ExportedType::Prim(_)) && has_bool(result, all) {
        return refused(format!(
            "its result is `{}`, and nothing ensures that a `bool` in it is 0 or 1",
            text_of(result, all)
        ));
    }
    match A::shapes().iter().find(|shape| shape.has_raw_pointer()) {
        Some(shape) => refused(format!("`{}` has a raw pointer in it: take a `Slice` or `MutSlice`", shape.text())),
        None => Ok(()),
    }
}
