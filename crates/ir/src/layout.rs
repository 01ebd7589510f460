//! Memory layout as in C: sizes, alignments, field offsets. The width of addresses depends on the machine
//! ([`Types::spaces`]).

use crate::types::{Prim, Ty, TyKind, Types};
use rustc_hash::FxHashMap;

/// Bytes of a number or bool in memory.
pub fn prim_size(prim: Prim) -> u64 {
    u64::from(prim.bits()).div_ceil(8)
}

/// Size and alignment of a type in bytes. An indefinite array has the size 0 and its element's alignment. A
/// continuation stored in memory is a pair of pointers (code, environment). A vector's lanes are contiguous; its size
/// and alignment are the next power of two, as for C's vector types. `None` if the size overflows.
pub fn size_align(types: &Types, ty: Ty) -> Option<(u64, u64)> {
    compute(types, ty, &mut FxHashMap::default())
}

/// Types may share parts: `known` keeps the walk linear in the number of distinct types.
fn compute(types: &Types, ty: Ty, known: &mut FxHashMap<Ty, (u64, u64)>) -> Option<(u64, u64)> {
    if let Some(&layout) = known.get(&ty) {
        return Some(layout);
    }
    let layout = match types.kind(ty) {
        TyKind::Prim(p) => return Some((prim_size(*p), prim_size(*p))),
        TyKind::Vector(p, n) => {
            let size = (prim_size(*p) * u64::from(*n)).next_power_of_two();
            return Some((size, size));
        }
        TyKind::Mem => return Some((0, 1)),
        TyKind::Ptr { space, .. } => {
            let bytes = types.spaces().pointer_bytes(*space);
            return Some((bytes, bytes));
        }
        TyKind::Code | TyKind::Cn(_) => {
            let bytes = types.spaces().pointer_bytes(0);
            let n = if matches!(types.kind(ty), TyKind::Code) { 1 } else { 2 };
            return Some((n * bytes, bytes));
        }
        TyKind::Array(elem, n) => {
            let (size, align) = compute(types, *elem, known)?;
            (size.checked_mul(*n).filter(|s| *s < 1 << 47)?, align)
        }
        TyKind::IndefArray(elem) => (0, compute(types, *elem, known)?.1),
        TyKind::Tuple(_) | TyKind::Struct(_) => {
            let (mut size, mut align) = (0u64, 1);
            for idx in 0..types.n_parts(ty)? {
                let (s, a) = compute(types, types.part(ty, idx)?, known)?;
                size = size.next_multiple_of(a).checked_add(s).filter(|s| *s < 1 << 47)?;
                align = align.max(a);
            }
            (size.next_multiple_of(align), align)
        }
    };
    known.insert(ty, layout);
    Some(layout)
}

/// Byte offset of part `idx` of a tuple, struct, array or vector.
pub fn offset(types: &Types, ty: Ty, idx: u64) -> Option<u64> {
    match types.kind(ty) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => size_align(types, *elem)?.0.checked_mul(idx),
        TyKind::Vector(prim, _) => prim_size(*prim).checked_mul(idx),
        _ => {
            let mut at = 0u64;
            for i in 0..=idx {
                let (size, align) = size_align(types, types.part(ty, i)?)?;
                at = at.next_multiple_of(align);
                if i < idx {
                    at += size;
                }
            }
            Some(at)
        }
    }
}
