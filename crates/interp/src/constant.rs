//! Converts computed words to a value of the graph.

use crate::UNINITIALIZED;
use nyala_ir::{Op, Ty, TyKind, Val, World};

/// Takes a value of type `ty` from the front of `words`, which are in the form that [`run`](crate::run) returns. The
/// error says why there is no such value. The recursion is as deep as the type, whose nesting the compiler limits.
pub fn constant(w: &mut World, ty: Ty, words: &mut &[u64]) -> Result<Val, &'static str> {
    let parts: Vec<Ty> = match *w.types.kind(ty) {
        TyKind::Prim(_) | TyKind::Ptr { .. } => {
            return match (words.split_off_first().copied(), w.types.as_prim(ty)) {
                (Some(UNINITIALIZED) | None, _) => Ok(w.undef(ty)),
                (Some(bits), prim) if prim.is_some() || bits == 0 => Ok(w.lit(ty, bits)),
                _ => Err("an address is computed, which is known only when the program runs"),
            };
        }
        TyKind::Cn(_) => {
            return match words.split_off_first().copied() {
                Some(UNINITIALIZED) | None => Ok(w.undef(ty)),
                _ => Err("a function is computed"),
            };
        }
        TyKind::Array(elem, n) => {
            let mut rest = *words;
            constant(w, elem, &mut rest)?;
            // The elements have no words, so their number does not matter.
            if rest.len() == words.len() {
                return Ok(w.undef(ty));
            }
            vec![elem; n as usize]
        }
        TyKind::Vector(prim, n) => vec![w.types.prim(prim); n as usize],
        _ => (0..w.types.n_parts(ty).unwrap_or(0)).filter_map(|i| w.types.part(ty, i)).collect(),
    };
    let mut vals = Vec::with_capacity(parts.len());
    for part in parts {
        vals.push(constant(w, part, words)?);
    }
    Ok(match w.types.kind(ty) {
        TyKind::Struct(_) => w.op_ty(Op::Struct, ty, &vals),
        TyKind::Tuple(_) => w.op(Op::Tuple, &vals),
        _ if vals.len() > 1 && vals.iter().all(|v| *v == vals[0]) => w.op_ty(Op::Splat, ty, &vals[..1]),
        _ => w.op_ty(Op::Array, ty, &vals),
    })
}
