//! What tells which numbers of a value are defined, and how it gets into memory and out of it. Separate from the pass, which decides where
//! that is needed.
//!
//! A value has *leaves*, in order: numbers, other parts that are none, and arrays of many elements. A `bool` tells of a number, an array of an
//! array: its elements tell of one element each, as a tuple if that has several leaves. Loops go through such arrays, so the code is no
//! longer for longer ones.

use super::Outside;
use crate::code::Code;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};

/// Arrays of more elements, or of more bytes, are one leaf.
const MAX_ELEMENTS: u64 = 32;
const MAX_BYTES: u64 = 256;
/// Limit on the leaves of a value that is looked at.
const MAX_LEAVES: usize = 1024;

pub struct Leaf {
    offset: u64,
    kind: Kind,
}

enum Kind {
    /// A number of so many bytes.
    Number(u64),
    /// An array: its type, the type of its elements, and their number.
    Array(Ty, Ty, u64),
    Other,
}

/// The leaves of a value. `None` if there are too many.
pub fn leaves(types: &Types, ty: Ty) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    let mut work = vec![(ty, 0)];
    while let Some((ty, offset)) = work.pop() {
        match types.kind(ty) {
            TyKind::Array(..) if is_long(types, ty) => {
                let (n, element) = (types.n_parts(ty)?, types.part(ty, 0)?);
                let kind = match has_numbers(&leaves(types, element)?) {
                    true => Kind::Array(ty, element, n),
                    false => Kind::Other,
                };
                found.push(Leaf { offset, kind });
            }
            TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) => {
                let n = types.n_parts(ty).filter(|&n| n <= MAX_LEAVES as u64)?;
                for i in (0..n).rev() {
                    work.push((types.part(ty, i)?, offset + layout::offset(types, ty, i)?));
                }
            }
            TyKind::Prim(_) => found.push(Leaf { offset, kind: Kind::Number(layout::size_align(types, ty)?.0) }),
            _ => found.push(Leaf { offset, kind: Kind::Other }),
        }
        if found.len() + work.len() > MAX_LEAVES {
            return None;
        }
    }
    Some(found)
}

fn has_numbers(leaves: &[Leaf]) -> bool {
    leaves.iter().any(|leaf| !matches!(leaf.kind, Kind::Other))
}

/// Whether an array is one leaf.
fn is_long(types: &Types, ty: Ty) -> bool {
    let size = layout::size_align(types, ty).map_or(0, |s| s.0);
    types.n_parts(ty).is_some_and(|n| n > MAX_ELEMENTS || size > MAX_BYTES)
}

/// The number of leaves of a value that has numbers.
pub fn n_leaves(types: &Types, ty: Ty) -> Option<usize> {
    leaves(types, ty).filter(|leaves| has_numbers(leaves)).map(|leaves| leaves.len())
}

/// Where the leaves of a part are among those of the whole.
fn leaves_of_part(types: &Types, ty: Ty, idx: u64) -> Option<std::ops::Range<usize>> {
    let n = |i: u64| Some(leaves(types, types.part(ty, i)?)?.len());
    let start = (0..idx).map(n).sum::<Option<usize>>()?;
    Some(start..start + n(idx)?)
}

/// The types of what tells of a value of a type.
pub fn told_types(types: &mut Types, ty: Ty) -> Vec<Ty> {
    let leaves = leaves(types, ty).unwrap_or_default();
    let mut told = Vec::new();
    for leaf in leaves {
        told.push(match leaf.kind {
            Kind::Array(ty, element, _) => array_type(types, ty, element),
            _ => types.bool(),
        });
    }
    told
}

/// The type of what tells of a value, as one value.
fn joined_type(types: &mut Types, ty: Ty) -> Ty {
    match told_types(types, ty)[..] {
        [one] => one,
        ref several => types.tuple(several),
    }
}

/// The type of an array that tells of another one.
fn array_type(types: &mut Types, whole: Ty, element: Ty) -> Ty {
    let element = joined_type(types, element);
    types.array(element, types.n_parts(whole).unwrap_or(0))
}

/// What tells of a value of a type, as one value.
pub fn join(code: &mut Code, told: &[Value], ty: Ty) -> Value {
    match *told {
        [one] => one,
        _ => {
            let ty = joined_type(code.types, ty);
            code.op(Op::Tuple, told, ty)
        }
    }
}

/// What tells of the leaves of a value of a type.
pub fn split(code: &mut Code, joined: Value, ty: Ty) -> Vec<Value> {
    match told_types(code.types, ty)[..] {
        [_] => vec![joined],
        ref several => several.iter().enumerate().map(|(i, &ty)| code.part(joined, i, ty)).collect(),
    }
}

/// That all numbers of a value are defined, or none, as `bit` says.
pub fn known(code: &mut Code, ty: Ty, bit: u64) -> Vec<Value> {
    let bit = code.literal(Prim::Bool, bit);
    same(code, ty, bit)
}

/// That the numbers of a value are defined if a condition holds.
pub fn same(code: &mut Code, ty: Ty, holds: Value) -> Vec<Value> {
    let mut told = Vec::new();
    for leaf in leaves(code.types, ty).unwrap_or_default() {
        told.push(match leaf.kind {
            Kind::Array(ty, element, _) => {
                let parts = same(code, element, holds);
                let (part, ty) = (join(code, &parts, element), array_type(code.types, ty, element));
                code.op(Op::Splat, &[part], ty)
            }
            _ => holds,
        });
    }
    told
}

/// Whether all numbers of a value are defined; `None` if that is certain.
pub fn all(code: &mut Code, told: &[Value], ty: Ty) -> Option<Value> {
    let bool_ty = code.types.bool();
    let mut all = None;
    for (leaf, &told) in leaves(code.types, ty).unwrap_or_default().iter().zip(told) {
        let one = match leaf.kind {
            _ if code.function.as_bits(told) == Some(1) => continue,
            Kind::Array(_, element, n) => {
                let yes = code.literal(Prim::Bool, 1);
                code.counted(n, yes, |code, i, before| {
                    let ty = joined_type(code.types, element);
                    let part = code.op(Op::Extract, &[told, i], ty);
                    let parts = split(code, part, element);
                    let one = self::all(code, &parts, element);
                    one.map_or(before, |one| code.op(Op::And, &[before, one], bool_ty))
                })
            }
            _ => told,
        };
        all = Some(all.map_or(one, |before| code.op(Op::And, &[before, one], bool_ty)));
    }
    all
}

/// What tells of a value, from what tells of its parts.
pub fn collect(code: &mut Code, parts: Vec<Vec<Value>>, whole: Ty) -> Vec<Value> {
    match code.types.part(whole, 0) {
        Some(element) if is_array_leaf(code.types, whole) => {
            let parts: Vec<Value> = parts.iter().map(|part| join(code, part, element)).collect();
            let ty = array_type(code.types, whole, element);
            vec![code.op(Op::Array, &parts, ty)]
        }
        _ => parts.concat(),
    }
}

/// What tells of an array whose elements are equal.
pub fn repeat(code: &mut Code, told: Vec<Value>, whole: Ty) -> Vec<Value> {
    match code.types.part(whole, 0) {
        Some(element) if is_array_leaf(code.types, whole) => {
            let part = join(code, &told, element);
            let ty = array_type(code.types, whole, element);
            vec![code.op(Op::Splat, &[part], ty)]
        }
        _ => vec![told; code.types.n_parts(whole).unwrap_or(0) as usize].concat(),
    }
}

/// What tells of a part.
pub fn extract(code: &mut Code, told: Vec<Value>, whole: Ty, idx: Value) -> Option<Vec<Value>> {
    let known = code.function.as_index(idx);
    if let (Some(i), false) = (known, is_array_leaf(code.types, whole)) {
        return told.get(leaves_of_part(code.types, whole, i)?).map(<[Value]>::to_vec);
    }
    let (array, element) = as_array(code, &told, whole)?;
    let ty = joined_type(code.types, element);
    let part = code.op(Op::Extract, &[array, idx], ty);
    Some(split(code, part, element))
}

/// What tells of a value in which a part was replaced.
pub fn insert(code: &mut Code, mut told: Vec<Value>, whole: Ty, idx: Value, part: Vec<Value>) -> Option<Vec<Value>> {
    let (known, is_leaf) = (code.function.as_index(idx), is_array_leaf(code.types, whole));
    if let (Some(i), false) = (known, is_leaf) {
        let range = leaves_of_part(code.types, whole, i).filter(|r| r.end <= told.len())?;
        told.splice(range, part);
        return Some(told);
    }
    let (array, element) = as_array(code, &told, whole)?;
    let (part, ty) = (join(code, &part, element), code.function.ty(array));
    let array = code.op(Op::Insert, &[array, idx, part], ty);
    if is_leaf {
        return Some(vec![array]);
    }
    let (n, ty) = (code.types.n_parts(whole)?, joined_type(code.types, element));
    let mut told = Vec::new();
    for i in 0..n {
        let part = code.part(array, i as usize, ty);
        told.extend(split(code, part, element));
    }
    Some(told)
}

fn is_array_leaf(types: &Types, ty: Ty) -> bool {
    matches!(types.kind(ty), TyKind::Array(..)) && is_long(types, ty)
}

/// What tells of an array as an array, and the type of elements.
fn as_array(code: &mut Code, told: &[Value], whole: Ty) -> Option<(Value, Ty)> {
    let element = match code.types.kind(whole) {
        TyKind::Array(..) => code.types.part(whole, 0)?,
        _ => return None,
    };
    if let [one] = *told
        && is_array_leaf(code.types, whole)
    {
        return Some((one, element));
    }
    let each = leaves(code.types, element)?.len();
    let mut parts = Vec::new();
    for told in told.chunks(each.max(1)) {
        parts.push(join(code, told, element));
    }
    let ty = array_type(code.types, whole, element);
    Some((code.op(Op::Array, &parts, ty), element))
}

/// Whether the numbers at an address are initialized.
pub fn read(code: &mut Code, outside: &Outside, address: Value, ty: Ty) -> Vec<Value> {
    let bool_ty = code.types.bool();
    let yes = code.literal(Prim::Bool, 1);
    let mut told = Vec::new();
    for leaf in leaves(code.types, ty).unwrap_or_default() {
        told.push(match leaf.kind {
            Kind::Number(size) => {
                let at = place(code, address, leaf.offset);
                let size = code.literal(Prim::I64, size);
                code.call(outside.is_written, &[at, size], Some(bool_ty))
            }
            Kind::Array(array, element, n) => {
                let from = array_at(code, address, leaf.offset, array);
                let (told, all) = (joined_type(code.types, element), array_type(code.types, array, element));
                let to = code.types.ptr(all);
                let to = code.op(Op::Slot, &[], to);
                code.counted(n, yes, |code, i, state| {
                    let (from, at) = (element_at(code, from, i, element), element_at(code, to, i, told));
                    let parts = read(code, outside, from, element);
                    let part = join(code, &parts, element);
                    code.push(InstOp::Op(Op::Store), &[at, part], None);
                    state
                });
                code.op(Op::Load, &[to], all)
            }
            Kind::Other => yes,
        });
    }
    told
}

/// Notes that the numbers at an address are as defined as what is told.
pub fn keep(code: &mut Code, outside: &Outside, address: Value, told: &[Value], ty: Ty) {
    for (leaf, &told) in leaves(code.types, ty).unwrap_or_default().iter().zip(told) {
        match leaf.kind {
            Kind::Number(size) if code.function.as_bits(told) != Some(1) => {
                let at = place(code, address, leaf.offset);
                let size = code.literal(Prim::I64, size);
                code.call(outside.keep, &[at, size, told], None);
            }
            Kind::Array(array, element, n) => {
                let to = array_at(code, address, leaf.offset, array);
                let yes = code.literal(Prim::Bool, 1);
                code.counted(n, yes, |code, i, state| {
                    let ty = joined_type(code.types, element);
                    let part = code.op(Op::Extract, &[told, i], ty);
                    let parts = split(code, part, element);
                    let at = element_at(code, to, i, element);
                    keep(code, outside, at, &parts, element);
                    state
                });
            }
            _ => {}
        }
    }
}

/// The address of a byte behind another one.
fn place(code: &mut Code, address: Value, offset: u64) -> Value {
    let u8 = code.types.prim(Prim::U8);
    let (all, one) = (code.types.indef_array(u8), code.types.ptr(u8));
    let all = code.types.ptr(all);
    let all = code.op(Op::Bitcast, &[address], all);
    let offset = code.literal(Prim::I64, offset);
    code.op(Op::Lea, &[all, offset], one)
}

fn array_at(code: &mut Code, address: Value, offset: u64, array: Ty) -> Value {
    let at = place(code, address, offset);
    let ty = code.types.ptr(array);
    code.op(Op::Bitcast, &[at], ty)
}

fn element_at(code: &mut Code, array: Value, i: Value, element: Ty) -> Value {
    let ty = code.types.ptr(element);
    code.op(Op::Lea, &[array, i], ty)
}
