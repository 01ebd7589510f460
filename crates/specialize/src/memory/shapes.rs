//! The number of leaves of values, and the positions of parts among them.

use super::MAX_LEAVES;
use nyala_base::SideTable;
use nyala_ir::{Ty, TyKind, World};

/// The memoized numbers of leaves of types.
#[derive(Default)]
pub struct Shapes {
    /// The number of leaves plus 1; 0 if it has not been computed yet.
    leaves: SideTable<Ty, u64>,
}

impl Shapes {
    /// The number of leaves of a value of type `ty`. For an array of unknown length, that of one element.
    pub fn leaves(&mut self, w: &World, ty: Ty) -> u64 {
        if self.leaves[ty] != 0 {
            return self.leaves[ty] - 1;
        }
        let n = match w.types.kind(ty) {
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let parts: Vec<Ty> =
                    (0..w.types.n_parts(ty).unwrap_or(0)).filter_map(|i| w.types.part(ty, i)).collect();
                parts.into_iter().fold(0, |sum: u64, part| sum.saturating_add(self.leaves(w, part)))
            }
            &TyKind::Array(elem, n) => self.leaves(w, elem).saturating_mul(n),
            &TyKind::IndefArray(elem) => self.leaves(w, elem),
            _ => 1,
        };
        let n = n.min(u64::MAX / 2);
        self.leaves[ty] = n + 1;
        n
    }

    /// The position of the first leaf of part `idx` in an aggregate. `None` if there is no such part.
    pub fn part_start(&mut self, w: &World, ty: Ty, idx: u64) -> Option<u64> {
        match w.types.kind(ty) {
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                w.types.part(ty, idx)?;
                let parts: Vec<Ty> = (0..idx).filter_map(|i| w.types.part(ty, i)).collect();
                Some(parts.into_iter().map(|part| self.leaves(w, part)).sum())
            }
            &TyKind::Array(elem, n) if idx < n => self.leaves(w, elem).checked_mul(idx),
            &TyKind::IndefArray(elem) if idx < MAX_LEAVES => self.leaves(w, elem).checked_mul(idx),
            _ => None,
        }
    }
}
