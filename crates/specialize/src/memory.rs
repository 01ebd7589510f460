//! What is known of memory at one point of an evaluation: contents, known or symbolic, of places that are reached by
//! an address with literal indices.
//!
//! A *base* is where an address starts: a slot, an allocation, a mutable global, or any other pointer. Distinct slots,
//! allocations and globals do not overlap; other pointers may point into whatever has *escaped*. A slot that this state
//! has not seen being made counts as escaped. States are persistent: a branch gives each side its own for free.

use nyala_ir::{Node, Op, TyKind, Val, World, fold};
use rpds::HashTrieMap;
use rustc_hash::FxBuildHasher;

type Map<K, V> = HashTrieMap<K, V, archery::RcK, FxBuildHasher>;

/// Aggregates of more parts are known by element only.
const WHOLE_PARTS: u64 = 64;

#[derive(Clone, Copy, PartialEq)]
struct Entry {
    val: Val,
    generation: u32,
    epoch: u32,
}

#[derive(Clone, Copy, PartialEq, Default)]
struct Base {
    /// Made along this path, and its address not given away.
    private: bool,
    /// Entries of other generations are forgotten.
    generation: u32,
}

/// Where an address leads: what it starts from, and whether all indices on the way are literals.
struct Place {
    base: Val,
    exact: bool,
}

/// See the module's header.
#[derive(Clone)]
pub struct Memory {
    entries: Map<Val, Entry>,
    bases: Map<Val, Base>,
    /// Counts writes that may have changed whatever escaped.
    epoch: u32,
    /// Counts writes that may have changed what is reached by other pointers than slots, allocations, globals.
    pointer_epoch: u32,
    next_generation: u32,
}

impl Default for Memory {
    fn default() -> Memory {
        let hasher = FxBuildHasher;
        Memory {
            entries: Map::new_with_hasher_and_ptr_kind(hasher),
            bases: Map::new_with_hasher_and_ptr_kind(hasher),
            epoch: 0,
            pointer_epoch: 0,
            next_generation: 0,
        }
    }
}

impl Memory {
    /// A new slot or allocation `ptr`, its contents undefined.
    pub fn make(&mut self, w: &mut World, ptr: Val, defined: bool) {
        self.next_generation += 1;
        let generation = self.next_generation;
        self.bases.insert_mut(ptr, Base { private: true, generation });
        if let Some(pointee) = w.types.pointee(w.ty(ptr))
            && !defined
            && is_whole(w, pointee)
        {
            let val = w.undef(pointee);
            self.entries.insert_mut(ptr, Entry { val, generation, epoch: 0 });
        }
    }

    /// The contents at `ptr`, if known.
    pub fn load(&self, w: &mut World, ptr: Val) -> Option<Val> {
        let ptr = plain(w, ptr);
        let Place { base, exact } = place(w, ptr);
        if !exact {
            return None;
        }
        let mut path = Vec::new();
        let mut at = ptr;
        loop {
            if let Some(entry) = self.valid(w, at, base) {
                let mut val = entry.val;
                for &idx in path.iter().rev() {
                    if w.types.n_parts(w.ty(val)).is_none_or(|n| idx >= n) {
                        return None;
                    }
                    val = w.extract(val, idx);
                }
                return Some(val);
            }
            match w.node(at) {
                Node::Op(Op::Lea) if at != base => {
                    path.push(w.as_lit(w.args(at)[1])?);
                    at = w.args(at)[0];
                }
                Node::Op(Op::Bitcast) if at != base => at = w.args(at)[0],
                _ => return None,
            }
        }
    }

    /// Remembers what was read at `ptr`.
    pub fn loaded(&mut self, w: &mut World, ptr: Val, val: Val) {
        let ptr = plain(w, ptr);
        let Place { base, exact } = place(w, ptr);
        if exact {
            self.insert(w, ptr, base, val);
        }
    }

    /// `val` is written to `ptr`.
    pub fn store(&mut self, w: &mut World, ptr: Val, val: Val) {
        let ptr = plain(w, ptr);
        let Place { base, exact } = place(w, ptr);
        self.wrote(w, base);
        let is_aggregate = w.types.n_parts(w.ty(val)).is_some();
        if !exact || is_aggregate {
            // What is known of parts of the base may have changed.
            self.forget(base);
        }
        if !exact {
            return;
        }
        // Known wholes around the part follow, or are forgotten.
        let mut at = ptr;
        let mut part = Some(val);
        while at != base {
            let (outer, idx) = match w.node(at) {
                Node::Op(Op::Lea) => (w.args(at)[0], w.as_lit(w.args(at)[1])),
                _ => (w.args(at)[0], None),
            };
            if let Node::Op(Op::Bitcast) = w.node(at) {
                at = outer;
                if self.entries.contains_key(&at) {
                    self.entries.remove_mut(&at);
                    part = None;
                }
                continue;
            }
            let whole = self.valid(w, outer, base).map(|e| e.val);
            part = match (whole, idx, part) {
                (Some(whole), Some(idx), Some(part)) if w.types.n_parts(w.ty(whole)).is_some_and(|n| idx < n) => {
                    let whole = w.insert(whole, idx, part);
                    self.insert(w, outer, base, whole);
                    Some(whole)
                }
                _ => {
                    self.entries.remove_mut(&outer);
                    None
                }
            };
            at = outer;
        }
        self.insert(w, ptr, base, val);
    }

    /// Unknown code ran: whatever escaped may have changed.
    pub fn clobber(&mut self) {
        self.epoch += 1;
        self.pointer_epoch += 1;
    }

    /// `base`, a slot, allocation or global, can be reached from elsewhere from now on.
    pub fn escape(&mut self, base: Val) {
        if let Some(b) = self.bases.get(&base).copied().filter(|b| b.private) {
            self.bases.insert_mut(base, Base { private: false, ..b });
        }
    }

    pub fn is_private(&self, base: Val) -> bool {
        self.bases.get(&base).is_some_and(|b| b.private)
    }

    /// What is known whichever of the states was there before.
    pub fn merge(w: &World, states: &[Memory]) -> Memory {
        let Some((first, others)) = states.split_first() else { return Memory::default() };
        if others.is_empty() {
            return first.clone();
        }
        let next_generation = states.iter().map(|s| s.next_generation).max().unwrap_or(0) + 1;
        let mut merged = Memory { next_generation, ..Memory::default() };
        let mut bases: Vec<(Val, bool)> = first.bases.iter().map(|(&b, info)| (b, info.private)).collect();
        bases.sort_unstable();
        for (base, private) in bases {
            let private = private && others.iter().all(|o| o.is_private(base));
            merged.bases.insert_mut(base, Base { private, generation: 0 });
        }
        for (&ptr, entry) in first.entries.iter() {
            let Place { base, exact } = place(w, ptr);
            let known = exact
                && first.valid(w, ptr, base).is_some()
                && others.iter().all(|o| o.valid(w, ptr, base).is_some_and(|e| e.val == entry.val));
            if known {
                merged.insert(w, ptr, base, entry.val);
            }
        }
        merged
    }

    /// Whether anything is known at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.bases.is_empty()
    }

    fn insert(&mut self, w: &World, ptr: Val, base: Val, val: Val) {
        let generation = self.generation(base);
        let epoch = self.epoch_of(w, base);
        self.entries.insert_mut(ptr, Entry { val, generation, epoch });
    }

    fn valid(&self, w: &World, ptr: Val, base: Val) -> Option<Entry> {
        let entry = *self.entries.get(&ptr)?;
        let current = entry.generation == self.generation(base) && entry.epoch == self.epoch_of(w, base);
        current.then_some(entry)
    }

    fn generation(&self, base: Val) -> u32 {
        self.bases.get(&base).map_or(0, |b| b.generation)
    }

    fn epoch_of(&self, w: &World, base: Val) -> u32 {
        if self.is_private(base) {
            0
        } else if is_object(w, base) {
            self.epoch
        } else {
            self.pointer_epoch
        }
    }

    /// A write somewhere below `base` may have changed other things too.
    fn wrote(&mut self, w: &World, base: Val) {
        if is_object(w, base) {
            if !self.is_private(base) {
                self.pointer_epoch += 1;
            }
        } else {
            self.clobber();
        }
    }

    fn forget(&mut self, base: Val) {
        self.next_generation += 1;
        let private = self.is_private(base);
        self.bases.insert_mut(base, Base { private, generation: self.next_generation });
    }
}

/// Slots, allocations and globals are objects of their own.
pub fn is_object(w: &World, base: Val) -> bool {
    match w.node(base) {
        Node::Global(_) => true,
        Node::Op(Op::Extract) => matches!(w.as_op(w.args(base)[0]), Some(Op::Slot | Op::Alloc)),
        _ => false,
    }
}

/// The object or pointer that an address starts from.
pub fn base_of(w: &World, ptr: Val) -> Val {
    let Place { base, .. } = place(w, ptr);
    base
}

fn place(w: &World, ptr: Val) -> Place {
    let (mut base, mut exact) = (ptr, true);
    loop {
        match w.node(base) {
            Node::Op(Op::Lea) => {
                exact &= w.as_lit(w.args(base)[1]).is_some();
                base = w.args(base)[0];
            }
            Node::Op(Op::Bitcast) if matches!(w.types.kind(w.ty(w.args(base)[0])), TyKind::Ptr { .. }) => {
                exact &= fold::is_same_place(w, base);
                base = w.args(base)[0];
            }
            _ => return Place { base, exact },
        }
    }
}

/// `ptr` without the bitcasts on its way that lead to the same place, so that each place has one name here.
fn plain(w: &mut World, ptr: Val) -> Val {
    let (mut at, mut path, mut found) = (ptr, Vec::new(), false);
    loop {
        match w.node(at) {
            Node::Op(Op::Lea) => path.push(w.args(at)[1]),
            Node::Op(Op::Bitcast)
                if matches!(w.types.kind(w.ty(w.args(at)[0])), TyKind::Ptr { .. }) && fold::is_same_place(w, at) =>
            {
                found = true;
            }
            _ => break,
        }
        at = w.args(at)[0];
    }
    if !found {
        return ptr;
    }
    path.into_iter().rev().fold(at, |base, idx| w.op(Op::Lea, &[base, idx]))
}

fn is_whole(w: &World, ty: nyala_ir::Ty) -> bool {
    match w.types.n_parts(ty) {
        None => !matches!(w.types.kind(ty), TyKind::IndefArray(_)),
        Some(n) => n <= WHOLE_PARTS,
    }
}
