//! What is known of memory at one point of an evaluation.
//!
//! Addresses start from a *base*: a slot, an allocation, a mutable global, which are *objects*, or any other pointer.
//! Distinct objects do not overlap; other pointers may point into whatever has *escaped*. An object that this state has
//! not seen being made counts as escaped.
//!
//! The contents of an object are known by *leaf*: its numbers, addresses, functions, vectors, whatever it nests them in,
//! counted in order. They are kept in blocks that states share, so that a branch gives each side its own state for free,
//! a table of a hundred thousand entries takes as much memory as its entries, and filling it is no work. What other
//! pointers lead to is known by address.
//!
//! Writes to *private* objects, those made along this path whose address was not given away, are not written to the
//! residual program at once: they are *pending*. Nobody but the path itself can tell, until an operation of the residual
//! program reads the object, or a residual block ends ([`Memory::flush`]). Of several writes to one place the last remains.

mod leaves;
mod pending;
mod place;
mod shapes;

use leaves::{Leaves, assemble, leaf_of, write};
use nyala_base::SideTable;
use nyala_ir::{Node, Op, TyKind, Val, World};
use pending::Pending;
use place::Place;
use rpds::HashTrieMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::rc::Rc;

pub use leaves::{Leaf, bytes};
pub use place::{address, base_of, is_object, known_place};
pub use shapes::Shapes;

type Map<K, V> = HashTrieMap<K, V, archery::RcK, FxBuildHasher>;

/// Objects with more leaves are not looked into.
pub const MAX_LEAVES: u64 = 1 << 23;
/// More leaves of an object are not forgotten on their own.
const MAX_FORGOTTEN: u64 = 1 << 14;
/// Aggregates with more leaves are not put together.
const MAX_PARTS: u64 = 1024;

/// Objects at hand (see [`Memory`]).
const MAX_OPEN: usize = 16;

/// Leaves of an object: the first, and how many.
pub type Range = (u64, u64);
/// All of an object, which may be given away.
pub const WHOLE: Range = (0, u64::MAX);
/// What is written, by objects or by the values that lead to them.
pub type Written = FxHashMap<Val, Vec<Range>>;

/// A node in 64 bits: enums whose variants are alike in memory are passed in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wide(u64);

impl Wide {
    pub fn new(v: Val) -> Wide {
        Wide(u64::from(v.0))
    }
    pub fn val(self) -> Val {
        Val(self.0 as u32)
    }
}

#[derive(Clone)]
struct Object {
    /// Made along this path, and its address not given away.
    private: bool,
    /// If not private, the contents were known at that time.
    epoch: u32,
    leaves: Leaves,
    /// Writes that the residual program does not have yet.
    pending: Option<Rc<Pending>>,
}

/// See the module's header. A copy has nothing at hand.
pub struct Memory {
    /// But for those at hand.
    objects: Map<Val, Object>,
    /// Objects at hand, the last used one last: while a block is evaluated. States that are kept have none.
    open: Vec<(Val, Object)>,
    /// Objects with pending stores.
    with_pending: Vec<Val>,
    /// Contents behind other pointers: forgotten by writes that may have changed them.
    entries: Map<Val, Val>,
    /// Counts writes that may have changed whatever escaped.
    epoch: u32,
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        let mut objects = self.objects.clone();
        for (base, object) in &self.open {
            objects.insert_mut(*base, object.clone());
        }
        Memory {
            objects,
            open: Vec::new(),
            with_pending: self.with_pending.clone(),
            entries: self.entries.clone(),
            ..*self
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        let hasher = FxBuildHasher;
        Memory {
            objects: Map::new_with_hasher_and_ptr_kind(hasher),
            open: Vec::new(),
            with_pending: Vec::new(),
            entries: Map::new_with_hasher_and_ptr_kind(hasher),
            epoch: 0,
        }
    }
}

impl Memory {
    /// A new slot or allocation `ptr`. What is in it is undefined; on the heap, that is left to be found out.
    pub fn make(&mut self, w: &World, ptr: Val) {
        let on_heap = w.args(ptr).first().is_some_and(|&made| w.is_op(made, Op::Alloc));
        let leaves = Leaves::new(if on_heap { Leaf::Unknown } else { Leaf::Undefined });
        self.open.retain(|o| o.0 != ptr);
        self.put(ptr, Object { private: true, epoch: 0, leaves, pending: None });
    }

    fn put(&mut self, base: Val, object: Object) {
        if self.open.len() == MAX_OPEN {
            let (old, object) = self.open.remove(0);
            self.objects.insert_mut(old, object);
        }
        self.open.push((base, object));
    }

    /// An object that this state has seen.
    fn object(&mut self, base: Val) -> Option<&mut Object> {
        let at = self.open.iter().rposition(|o| o.0 == base);
        if at.is_none() {
            let object = self.objects.get(&base)?.clone();
            self.objects.remove_mut(&base);
            self.put(base, object);
        }
        let at = at.unwrap_or(self.open.len() - 1);
        Some(&mut self.open[at].1)
    }

    /// Puts away what is at hand, so that the state can be kept.
    fn close(&mut self) {
        for (base, object) in self.open.drain(..) {
            self.objects.insert_mut(base, object);
        }
    }

    /// The leaf of an object.
    pub fn leaf(&mut self, base: Val, at: u64) -> Leaf {
        let epoch = self.epoch;
        match self.object(base) {
            Some(object) if object.private || object.epoch == epoch => object.leaves.get(at),
            _ => Leaf::Unknown,
        }
    }

    pub fn is_private(&mut self, base: Val) -> bool {
        self.object(base).is_some_and(|o| o.private)
    }

    /// Writes a leaf of a private object, without a pending store.
    pub fn set_leaf(&mut self, base: Val, at: u64, leaf: Leaf) {
        if let Some(object) = self.object(base) {
            object.leaves.set(at, leaf);
        }
    }

    /// The contents at `ptr`, if known.
    pub fn load(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val) -> Option<Val> {
        let place = Place::of(w, shapes, ptr);
        if !place.exact {
            return None;
        }
        if !is_object(w, place.base) {
            return self.load_entry(w, place.at, place.base);
        }
        let epoch = self.epoch;
        let object = self.object(place.base).filter(|o| o.private || o.epoch == epoch)?;
        let ((start, n), ty) = (place.range?, w.types.pointee(w.ty(ptr))?);
        if n > MAX_PARTS || matches!(w.types.kind(ty), TyKind::IndefArray(_)) {
            return None;
        }
        let leaves: Vec<Leaf> = (start..start + n).map(|at| object.leaves.get(at)).collect();
        if leaves.contains(&Leaf::Unknown) {
            return None;
        }
        Some(assemble(w, ty, &mut leaves.into_iter()))
    }

    fn load_entry(&self, w: &mut World, ptr: Val, base: Val) -> Option<Val> {
        let mut path = Vec::new();
        let mut at = ptr;
        loop {
            if let Some(&entry) = self.entries.get(&at) {
                let mut val = entry;
                for &idx in path.iter().rev() {
                    if w.types.n_parts(w.ty(val)).is_none_or(|n| idx >= n) {
                        return None;
                    }
                    val = w.extract(val, idx);
                }
                return Some(val);
            }
            if at == base {
                return None;
            }
            path.push(w.as_lit(w.args(at)[1])?);
            at = w.args(at)[0];
        }
    }

    /// Remembers what was read at `ptr`.
    pub fn loaded(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val, val: Val) {
        let place = Place::of(w, shapes, ptr);
        if place.exact {
            self.remember(w, shapes, &place, val);
        }
    }

    /// `val` is written to `ptr`.
    pub fn store(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val, val: Val) {
        let place = Place::of(w, shapes, ptr);
        self.wrote(w, place.base);
        if place.exact {
            self.remember(w, shapes, &place, val);
        } else {
            self.forget(&place);
        }
    }

    /// Something unknown is written to `ptr`.
    pub fn touch(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val) {
        let place = Place::of(w, shapes, ptr);
        self.wrote(w, place.base);
        self.forget(&place);
    }

    /// Unknown code ran: whatever escaped may have changed.
    pub fn clobber(&mut self) {
        self.epoch += 1;
        self.forget_entries();
    }

    fn forget_entries(&mut self) {
        if !self.entries.is_empty() {
            self.entries = Map::new_with_hasher_and_ptr_kind(FxBuildHasher);
        }
    }

    /// `base`, a slot, allocation or global, can be reached from elsewhere from now on.
    pub fn escape(&mut self, base: Val) {
        let epoch = self.epoch;
        if let Some(object) = self.object(base).filter(|o| o.private) {
            object.private = false;
            object.epoch = epoch;
        }
    }

    /// Whether there may be anything that can escape.
    pub fn has_objects(&self) -> bool {
        !self.objects.is_empty() || !self.open.is_empty()
    }

    /// Whether there is anything that can escape.
    pub fn has_private(&self) -> bool {
        let is_open = |base: Val| self.open.iter().any(|(b, _)| *b == base);
        self.open.iter().any(|(_, o)| o.private) || self.objects.iter().any(|(&base, o)| o.private && !is_open(base))
    }

    /// What is known whichever of the states was there before.
    pub fn merge(states: &[Memory]) -> Memory {
        let Some((first, others)) = states.split_first() else { return Memory::default() };
        if others.is_empty() {
            return first.clone();
        }
        let mut merged = Memory::default();
        'objects: for (&base, object) in first.objects.iter() {
            let mut object = object.clone();
            if !object.private && object.epoch != first.epoch {
                continue;
            }
            for other in others {
                let Some(o) = other.objects.get(&base).filter(|o| o.private || o.epoch == other.epoch) else {
                    continue 'objects;
                };
                object.private &= o.private;
                object.leaves = object.leaves.merge(&o.leaves);
            }
            object.epoch = 0;
            merged.objects.insert_mut(base, object);
        }
        for (&ptr, &val) in first.entries.iter() {
            if others.iter().all(|o| o.entries.get(&ptr) == Some(&val)) {
                merged.entries.insert_mut(ptr, val);
            }
        }
        merged
    }

    /// What is known of variables that are not given away, but for what is written.
    pub fn without(&self, written: &Written) -> Memory {
        let mut kept = Memory::default();
        let all = self.objects.iter().chain(self.open.iter().map(|(base, object)| (base, object)));
        for (&base, object) in all.filter(|(_, o)| o.private) {
            let ranges = written.get(&base).map_or(&[][..], |ranges| ranges);
            if ranges.iter().any(|&(start, n)| n > MAX_FORGOTTEN || start.saturating_add(n) > MAX_LEAVES) {
                continue;
            }
            let mut object = object.clone();
            ranges.iter().for_each(|&(start, n)| object.leaves.fill(start, n, Leaf::Unknown));
            kept.objects.insert_mut(base, object);
        }
        kept
    }

    /// Whether all that `other` knows is known here.
    pub fn implies(&self, other: &Memory) -> bool {
        let object_of = |memory: &'_ Memory, base: &Val| -> Option<Object> {
            let open = memory.open.iter().find(|o| o.0 == *base).map(|o| &o.1);
            let object = open.or_else(|| memory.objects.get(base)).cloned();
            object.filter(|o| o.private || o.epoch == memory.epoch)
        };
        let bases = other.objects.keys().chain(other.open.iter().map(|(base, _)| base));
        bases.into_iter().all(|base| {
            let Some(object) = object_of(other, base) else { return true };
            let found = object_of(self, base);
            found.is_some_and(|o| o.private >= object.private && object.leaves.is_within(&o.leaves))
        }) && other.entries.iter().all(|(ptr, val)| self.entries.get(ptr) == Some(val))
    }

    /// Whether anything is known at all.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.open.is_empty() && self.entries.is_empty()
    }

    fn remember(&mut self, w: &mut World, shapes: &mut Shapes, place: &Place, val: Val) {
        if !is_object(w, place.base) {
            self.entries.insert_mut(place.at, val);
            return;
        }
        let Some((start, n)) = place.range.filter(|(start, n)| start.saturating_add(*n) <= MAX_LEAVES) else {
            return self.forget(place);
        };
        let leaves = self.leaves(place.base);
        if n == 1 && w.types.n_parts(w.ty(val)).is_none() {
            return leaves.set(start, leaf_of(w, val));
        }
        write(w, shapes, leaves, start, val);
    }

    fn forget(&mut self, place: &Place) {
        if self.object(place.base).is_none() {
            return;
        }
        let leaves = self.leaves(place.base);
        match place.range.filter(|(start, n)| start.saturating_add(*n) <= MAX_LEAVES) {
            Some((start, n)) => leaves.fill(start, n, Leaf::Unknown),
            None => *leaves = Leaves::new(Leaf::Unknown),
        }
    }

    /// The leaves of an object; unknown ones where what was known is out of date.
    fn leaves(&mut self, base: Val) -> &mut Leaves {
        let epoch = self.epoch;
        if self.object(base).is_none() {
            self.put(base, Object { private: false, epoch, leaves: Leaves::new(Leaf::Unknown), pending: None });
        }
        let object = self.object(base).expect("just put there");
        if !object.private && object.epoch != epoch {
            object.leaves = Leaves::new(Leaf::Unknown);
            object.epoch = epoch;
        }
        &mut object.leaves
    }

    /// A write somewhere below `base` may have changed other things too.
    fn wrote(&mut self, w: &World, base: Val) {
        if is_object(w, base) {
            if !self.is_private(base) {
                self.forget_entries();
            }
        } else {
            self.clobber();
        }
    }
}

/// The contents of a global that does not change.
#[derive(Default)]
pub struct Constants {
    leaves: SideTable<Val, Option<Leaves>>,
}

impl Constants {
    /// `None`: `base` is something else.
    pub fn leaf(&mut self, w: &mut World, shapes: &mut Shapes, base: Val, at: u64) -> Option<Leaf> {
        if self.leaves[base].is_none() {
            let Node::Global(g) = w.node(base) else { return None };
            let data = w.global(g);
            let init = data.init.filter(|_| !data.mutable)?;
            let mut leaves = Leaves::new(Leaf::Unknown);
            if shapes.leaves(w, w.ty(init)) <= MAX_LEAVES {
                write(w, shapes, &mut leaves, 0, init);
            }
            self.leaves[base] = Some(leaves);
        }
        self.leaves[base].as_ref().map(|leaves| leaves.get(at))
    }
}
