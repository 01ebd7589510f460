//! Writes to private objects that are not in the residual program yet. They are noted, forgotten where nobody can read
//! them, and made before somebody does. Separate because they say nothing of what is known, only of what is still to be
//! written.

use super::leaves::{Counted, assemble};
use super::{Memory, Shapes, address};
use nyala_base::Span;
use nyala_ir::{Op, Ty, Val, World};
use rustc_hash::FxHashSet;
use std::rc::Rc;

#[derive(Clone, Default)]
pub(super) struct Pending {
    writes: Vec<Write>,
    /// Bit set of the leaves that are written.
    leaves: Vec<u64>,
    bytes: Counted,
}

/// A write of a value of type `ty` to `n` leaves, from leaf `at` on.
#[derive(Clone, Copy)]
struct Write {
    at: u32,
    n: u32,
    ty: Ty,
    origin: Span,
}

impl Pending {
    /// Adds leaves to the set. Returns whether any of them is new.
    fn add(&mut self, at: usize, n: usize) -> bool {
        if self.leaves.len() * 64 < at + n {
            self.bytes.add(((at + n).div_ceil(64) - self.leaves.len()) * size_of::<u64>());
            self.leaves.resize((at + n).div_ceil(64), 0);
        }
        let mut new = false;
        for i in at..at + n {
            new |= self.leaves[i / 64] >> (i % 64) & 1 == 0;
            self.leaves[i / 64] |= 1 << (i % 64);
        }
        new
    }
}

impl Memory {
    /// Notes a pending store of a value of type `ty` to a private object, to `n` leaves from `at` on.
    pub fn add_pending(&mut self, base: Val, (at, n): (u64, u64), ty: Ty, origin: Span) {
        let Some(object) = self.object(base) else { return };
        let first = object.pending.is_none();
        let pending = Rc::make_mut(object.pending.get_or_insert_default());
        if pending.add(at as usize, n as usize) {
            pending.writes.push(Write { at: at as u32, n: n as u32, ty, origin });
        }
        if first {
            self.with_pending.push(base);
        }
    }

    /// The number of pending stores.
    pub fn n_pending(&mut self) -> usize {
        let with_pending = std::mem::take(&mut self.with_pending);
        let n = with_pending
            .iter()
            .map(|&o| self.object(o).and_then(|o| o.pending.as_ref()).map_or(0, |o| o.writes.len()))
            .sum();
        self.with_pending = with_pending;
        n
    }

    /// Forgets private objects with pending stores, except for those in `used`. The rest of the program has no address
    /// of the forgotten ones.
    pub fn forget_unused(&mut self, used: &FxHashSet<Val>) {
        for object in std::mem::take(&mut self.with_pending) {
            if used.contains(&object) || !self.is_private(object) {
                self.with_pending.push(object);
            } else {
                self.open.retain(|o| o.0 != object);
            }
        }
    }

    /// Whether there are pending stores that residual code would see at `base`, or anywhere if that is `None`.
    pub fn has_pending(&mut self, base: Option<Val>) -> bool {
        let with_pending = std::mem::take(&mut self.with_pending);
        let has_pending = with_pending.iter().any(|&o| base.is_none_or(|base| o == base) || !self.is_private(o));
        self.with_pending = with_pending;
        has_pending
    }

    /// Makes the pending stores that would be seen at `base`, or all of them if that is `None`. Returns the memory
    /// after them.
    pub fn flush(&mut self, w: &mut World, shapes: &mut Shapes, mut mem: Val, base: Option<Val>) -> Val {
        let origin = w.current_origin();
        for object in std::mem::take(&mut self.with_pending) {
            if base.is_some_and(|base| object != base) && self.is_private(object) {
                self.with_pending.push(object);
                continue;
            }
            let Some((leaves, pending)) = self.object(object).and_then(|o| Some((o.leaves.clone(), o.pending.take()?)))
            else {
                continue;
            };
            // Later writes may have overwritten all leaves of earlier ones.
            let mut seen = Pending::default();
            let mut writes = pending.writes.clone();
            writes.reverse();
            writes.retain(|write| seen.add(write.at as usize, write.n as usize));
            for write in writes.iter().rev() {
                let start = u64::from(write.at);
                let mut parts = (start..start + u64::from(write.n)).map(|at| leaves.get(at));
                w.set_origin(write.origin);
                let val = assemble(w, write.ty, &mut parts);
                let ptr = address(w, shapes, object, start, write.ty);
                mem = w.op(Op::Store, &[mem, ptr, val]);
            }
        }
        w.set_origin(origin);
        if base.is_none() {
            self.close();
        }
        mem
    }
}
