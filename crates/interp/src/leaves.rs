//! Values as words: the scalars of a type in order, and their offsets in memory.

use crate::fault::{Fault, limitation};
use nyala_ir::{Prim, Ty, TyKind, World, layout};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The kind of one word of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    Prim(Prim),
    Ptr,
    /// A function or continuation; 16 bytes in memory.
    Cn,
}

impl Leaf {
    pub fn size(self) -> usize {
        match self {
            Leaf::Prim(Prim::Bool) => 1,
            Leaf::Prim(p) => p.bits() as usize / 8,
            Leaf::Ptr => 8,
            Leaf::Cn => 16,
        }
    }
}

/// The words of a type.
#[derive(Debug)]
pub struct Layout {
    /// Each word and its offset in memory.
    pub leaves: Vec<(Leaf, usize)>,
    pub size: usize,
    pub align: usize,
}

/// Values with more words are not supported.
const MAX_LEAVES: u64 = 1 << 22;

/// The memoized layouts of all types.
pub struct Layouts<'w> {
    pub w: &'w World,
    layouts: FxHashMap<Ty, Rc<Layout>>,
    counts: FxHashMap<Ty, u64>,
}

impl<'w> Layouts<'w> {
    pub fn new(w: &'w World) -> Layouts<'w> {
        Layouts { w, layouts: FxHashMap::default(), counts: FxHashMap::default() }
    }

    /// The number of words of a type.
    pub fn count(&mut self, ty: Ty) -> u64 {
        if let Some(&n) = self.counts.get(&ty) {
            return n;
        }
        let types = &self.w.types;
        let n = match types.kind(ty) {
            TyKind::Mem => 0,
            TyKind::Array(elem, n) => self.count(*elem).saturating_mul(*n),
            TyKind::Vector(_, n) => u64::from(*n),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let parts = types.n_parts(ty).unwrap_or(0);
                let parts: Vec<Ty> = (0..parts).filter_map(|i| types.part(ty, i)).collect();
                parts.into_iter().fold(0u64, |sum, p| sum.saturating_add(self.count(p)))
            }
            _ => 1,
        };
        self.counts.insert(ty, n);
        n
    }

    /// The index of the first word of a part.
    pub fn part_start(&mut self, ty: Ty, idx: u64) -> u64 {
        let types = &self.w.types;
        match types.kind(ty) {
            TyKind::Array(elem, _) => self.count(*elem).saturating_mul(idx),
            TyKind::Vector(..) => idx,
            _ => {
                let parts: Vec<Ty> = (0..idx).filter_map(|i| types.part(ty, i)).collect();
                parts.into_iter().map(|p| self.count(p)).sum()
            }
        }
    }

    pub fn layout(&mut self, ty: Ty) -> Result<Rc<Layout>, Box<Fault>> {
        if let Some(layout) = self.layouts.get(&ty) {
            return Ok(layout.clone());
        }
        let types = &self.w.types;
        let too_large =
            || limitation(format!("a value of type `{}` is too large for the interpreter", types.display(ty)));
        if self.count(ty) > MAX_LEAVES {
            return Err(too_large());
        }
        let (size, align) = layout::size_align(types, ty).ok_or_else(too_large)?;
        let mut leaves = Vec::new();
        let mut work = vec![(ty, 0u64)];
        while let Some((ty, at)) = work.pop() {
            if let Some(leaf) = leaf(types.kind(ty)) {
                leaves.push((leaf, at as usize));
                continue;
            }
            match types.kind(ty) {
                TyKind::Vector(p, n) => leaves.extend(repeat(Leaf::Prim(*p), at, u64::from(*n))),
                TyKind::Prim(_) | TyKind::Ptr { .. } | TyKind::Code | TyKind::Cn(_) | TyKind::Mem => {}
                TyKind::IndefArray(_) => return Err(too_large()),
                // The elements have no words, so their number does not matter.
                &TyKind::Array(elem, _) if self.count(elem) == 0 => {}
                &TyKind::Array(elem, n) if let Some(leaf) = leaf(types.kind(elem)) => {
                    leaves.extend(repeat(leaf, at, n))
                }
                TyKind::Array(..) | TyKind::Tuple(_) | TyKind::Struct(_) => {
                    for i in (0..types.n_parts(ty).unwrap_or(0)).rev() {
                        let part = types.part(ty, i).ok_or_else(too_large)?;
                        let offset = layout::offset(types, ty, i).ok_or_else(too_large)?;
                        work.push((part, at + offset));
                    }
                }
            }
        }
        let layout = Rc::new(Layout { leaves, size: size as usize, align: align as usize });
        self.layouts.insert(ty, layout.clone());
        Ok(layout)
    }
}

/// The kind of a scalar type. `None` for other types.
fn leaf(kind: &TyKind) -> Option<Leaf> {
    match kind {
        TyKind::Prim(p) => Some(Leaf::Prim(*p)),
        TyKind::Ptr { .. } | TyKind::Code => Some(Leaf::Ptr),
        TyKind::Cn(_) => Some(Leaf::Cn),
        _ => None,
    }
}

/// `n` equal scalars in sequence, with their offsets.
fn repeat(leaf: Leaf, at: u64, n: u64) -> impl Iterator<Item = (Leaf, usize)> {
    (0..n as usize).map(move |i| (leaf, at as usize + i * leaf.size()))
}
