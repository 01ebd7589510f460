//! The contents of memory that are known at one point of an evaluation.
//!
//! Addresses start from a *base*: an *object*, which is a slot, an allocation or a mutable global, or any other
//! pointer. Distinct objects do not overlap. Other pointers may point into any object that has *escaped*. An object
//! whose making this state has not seen counts as escaped.
//!
//! The contents of an object are known by *leaf*: the numbers, addresses, functions and vectors in it, counted in order
//! through all nested aggregates. Leaves are kept in blocks that states share. So a branch gives each side its own
//! state for free, and a table of a hundred thousand entries takes memory for its entries once and is filled in linear
//! time. Contents behind other pointers are known by address.
//!
//! Writes to *private* objects are *pending*: they are not written to the residual program at once. An object is
//! private if it was made along this path and its address was not given away, so nobody but the path itself can tell.
//! Pending writes are made when an operation of the residual program reads the object, or when a residual block ends
//! ([`Memory::flush`]). Only the last of several writes to one place remains.

mod leaves;
mod pending;
mod place;
mod shapes;

use leaves::{Counted, Leaves, assemble, leaf_of, write};
use nyala_base::SideTable;
use nyala_ir::{Node, Op, TyKind, Val, World};
use pending::Pending;
use place::Place;
use rpds::HashTrieMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::rc::Rc;

pub use leaves::{Leaf, bytes};
pub use place::{address, base_of, is_object, known_place};
pub use shapes::Shapes;

type Map<K, V> = HashTrieMap<K, V, archery::RcK, FxBuildHasher>;

/// Objects with more leaves are not tracked.
pub const MAX_LEAVES: u64 = 1 << 23;
/// If a range of more leaves is written, [`Memory::without`] forgets the whole object.
const MAX_FORGOTTEN: u64 = 1 << 14;
/// Aggregates with more leaves are not assembled into one value.
const MAX_PARTS: u64 = 1024;

/// The bytes that an object has in the table of a state, with the node above it, which is copied for it, roughly.
const OBJECT_BYTES: usize = 384;
/// The bytes that the known contents behind another pointer have in the table of a state, roughly.
const ENTRY_BYTES: usize = 256;
/// Limit on the objects in [`Memory`]'s `open` list.
const MAX_OPEN: usize = 16;
/// Limit on the contents behind unknown addresses that are known where states meet.
const MAX_MERGED: usize = 1024;

/// A range of leaves of an object: the first leaf, and the number of leaves.
pub type Range = (u64, u64);
/// All leaves of an object, whose address may be given away as well.
pub const WHOLE: Range = (0, u64::MAX);
/// The ranges that are written, by object or by the value whose address they are reached through.
pub type Written = FxHashMap<Val, Vec<Range>>;

/// A node in 64 bits. With it, all variants of an enum have one layout, so that the enum is passed in registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// Whether the object was made along this path, and its address has not been given away.
    private: bool,
    /// If the object is not private, the contents were known in this epoch.
    epoch: u32,
    leaves: Leaves,
    /// Writes that are not in the residual program yet.
    pending: Option<Rc<Pending>>,
    /// Tables share an object, so that it is counted where it is, and not where the tables are.
    _bytes: Counted,
}

impl Object {
    fn new(private: bool, epoch: u32, leaves: Leaves) -> Object {
        Object { private, epoch, leaves, pending: None, _bytes: Counted::new(OBJECT_BYTES) }
    }

    /// Whether `other` says the same of the same contents, as constant time can tell.
    fn is_shared_with(&self, other: &Object) -> bool {
        self.private == other.private && self.leaves.is_shared_with(&other.leaves)
    }
}

/// The contents behind a pointer.
#[derive(Clone)]
struct Entry {
    val: Val,
    _bytes: Counted,
}

/// The known contents of memory; the module's header explains it. A clone has an empty `open` list.
pub struct Memory {
    /// All objects but those in `open`.
    objects: Rc<Map<Val, Object>>,
    /// Objects in frequent use while a block is evaluated, the one used last at the end. It is empty in states that are
    /// kept.
    open: Vec<(Val, Object)>,
    /// Objects with pending stores.
    with_pending: Vec<Val>,
    /// Contents behind other pointers, by address. A write that may change them removes them.
    entries: Rc<Map<Val, Entry>>,
    /// Incremented by each write that may have changed any escaped object.
    epoch: u32,
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        let mut objects = self.objects.clone();
        if !self.open.is_empty() {
            let objects = Rc::make_mut(&mut objects);
            self.open.iter().for_each(|(base, object)| objects.insert_mut(*base, object.clone()));
        }
        let (with_pending, entries) = (self.with_pending.clone(), self.entries.clone());
        Memory { objects, open: Vec::new(), with_pending, entries, epoch: self.epoch }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        thread_local! {
            static NO_OBJECTS: Rc<Map<Val, Object>> = Rc::new(empty());
            static NO_ENTRIES: Rc<Map<Val, Entry>> = Rc::new(empty());
        }
        let (objects, entries) = (NO_OBJECTS.with(Rc::clone), NO_ENTRIES.with(Rc::clone));
        let (open, with_pending) = (Vec::new(), Vec::new());
        Memory { objects, open, with_pending, entries, epoch: 0 }
    }
}

fn empty<V>() -> Map<Val, V> {
    Map::new_with_hasher_and_ptr_kind(FxBuildHasher)
}

/// Replaces objects of a table, or removes them.
fn change(objects: &mut Map<Val, Object>, changed: Vec<(Val, Option<Object>)>) {
    for (base, object) in changed {
        match object {
            Some(object) => objects.insert_mut(base, object),
            None => {
                objects.remove_mut(&base);
            }
        }
    }
}

impl Memory {
    /// Adds the new slot or allocation `ptr`. The contents of a slot are undefined, those of an allocation unknown.
    pub fn make(&mut self, w: &World, ptr: Val) {
        let on_heap = w.args(ptr).first().is_some_and(|&made| w.is_op(made, Op::Alloc));
        let leaves = Leaves::new(if on_heap { Leaf::Unknown } else { Leaf::Undefined });
        self.open.retain(|o| o.0 != ptr);
        self.put(ptr, Object::new(true, 0, leaves));
    }

    fn put(&mut self, base: Val, object: Object) {
        if self.open.len() == MAX_OPEN {
            let (old, object) = self.open.remove(0);
            Rc::make_mut(&mut self.objects).insert_mut(old, object);
        }
        self.open.push((base, object));
    }

    /// The object with that base, if this state has seen it. Moves it to the end of `open`.
    fn object(&mut self, base: Val) -> Option<&mut Object> {
        let at = self.open.iter().rposition(|o| o.0 == base);
        if at.is_none() {
            let object = self.objects.get(&base)?.clone();
            Rc::make_mut(&mut self.objects).remove_mut(&base);
            self.put(base, object);
        }
        let at = at.unwrap_or(self.open.len() - 1);
        Some(&mut self.open[at].1)
    }

    /// Moves all objects out of `open`, so that the state can be kept.
    pub fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let objects = Rc::make_mut(&mut self.objects);
        for (base, object) in self.open.drain(..) {
            objects.insert_mut(base, object);
        }
    }

    /// The number of objects and other contents that the state knows of.
    pub fn size(&self) -> usize {
        self.objects.size() + self.open.len() + self.entries.size()
    }

    /// Whether both share what they know, which takes constant time to find out.
    pub fn is_shared_with(&self, other: &Memory) -> bool {
        let is_closed = self.open.is_empty() && other.open.is_empty() && self.epoch == other.epoch;
        is_closed && Rc::ptr_eq(&self.objects, &other.objects) && Rc::ptr_eq(&self.entries, &other.entries)
    }

    /// The contents of leaf `at` of an object.
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
            if let Some(entry) = self.entries.get(&at) {
                let mut val = entry.val;
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

    /// Notes that `val` was read at `ptr`.
    pub fn loaded(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val, val: Val) {
        let place = Place::of(w, shapes, ptr);
        if place.exact {
            self.remember(w, shapes, &place, val);
        }
    }

    /// Notes that `val` is written to `ptr`.
    pub fn store(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val, val: Val) {
        let place = Place::of(w, shapes, ptr);
        self.wrote(w, place.base);
        if place.exact {
            self.remember(w, shapes, &place, val);
        } else {
            self.forget(&place);
        }
    }

    /// Notes that an unknown value is written to `ptr`.
    pub fn touch(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val) {
        let place = Place::of(w, shapes, ptr);
        self.wrote(w, place.base);
        self.forget(&place);
    }

    /// Notes that unknown code ran, which may have changed any escaped object.
    pub fn clobber(&mut self) {
        self.epoch += 1;
        self.forget_entries();
    }

    fn forget_entries(&mut self) {
        if !self.entries.is_empty() {
            self.entries = Rc::new(empty());
        }
    }

    /// Notes that `base`, a slot, allocation or global, can be reached from elsewhere from now on.
    pub fn escape(&mut self, base: Val) {
        let epoch = self.epoch;
        if let Some(object) = self.object(base).filter(|o| o.private) {
            object.private = false;
            object.epoch = epoch;
        }
    }

    /// Whether the state has any objects, private ones or not.
    pub fn has_objects(&self) -> bool {
        !self.objects.is_empty() || !self.open.is_empty()
    }

    /// Whether the state has private objects, which can still escape.
    pub fn has_private(&self) -> bool {
        let is_open = |base: Val| self.open.iter().any(|(b, _)| *b == base);
        self.open.iter().any(|(_, o)| o.private) || self.objects.iter().any(|(&base, o)| o.private && !is_open(base))
    }

    /// The contents that are known in all states. Of very many contents behind unknown addresses, none is kept: each join would
    /// look at all of them, so that a long row of branches would take quadratic time.
    pub fn merge(states: &[Memory]) -> Memory {
        let Some((first, others)) = states.split_first() else { return Memory::default() };
        if others.iter().all(|other| first.is_shared_with(other)) {
            return first.clone();
        }
        // The states mostly know the same, so that the result shares the first one's tables: with new ones at each join, a long row
        // of branches would take quadratic memory.
        let mut merged = Memory { epoch: first.epoch, ..Memory::default() };
        let mut changed: Vec<(Val, Option<Object>)> = Vec::new();
        for (&base, object) in first.objects.iter() {
            let known = |o: &&Object, epoch: u32| o.private || o.epoch == epoch;
            let found: Option<SmallVec<[&Object; 4]>> =
                others.iter().map(|other| other.objects.get(&base).filter(|o| known(o, other.epoch))).collect();
            let Some(found) = found.filter(|_| known(&object, first.epoch)) else {
                changed.push((base, None));
                continue;
            };
            if found.iter().all(|o| object.is_shared_with(o)) {
                continue;
            }
            let mut object = object.clone();
            for o in found {
                object.private &= o.private;
                object.leaves = object.leaves.merge(&o.leaves);
            }
            object.epoch = first.epoch;
            changed.push((base, Some(object)));
        }
        merged.objects = first.objects.clone();
        if !changed.is_empty() {
            change(Rc::make_mut(&mut merged.objects), changed);
        }
        if first.entries.size() <= MAX_MERGED {
            merged.entries = first.entries.clone();
            let others: Vec<&Memory> = others.iter().filter(|o| !Rc::ptr_eq(&o.entries, &first.entries)).collect();
            for (ptr, val) in first.entries.iter() {
                if others.iter().any(|o| o.entries.get(ptr).is_none_or(|o| o.val != val.val)) {
                    Rc::make_mut(&mut merged.entries).remove_mut(ptr);
                }
            }
        }
        merged
    }

    /// The known contents of private objects, except for the ranges in `written`.
    pub fn without(&self, written: &Written) -> Memory {
        let mut kept = self.clone();
        let mut changed: Vec<(Val, Option<Object>)> = Vec::new();
        for (&base, object) in kept.objects.iter() {
            let ranges = written.get(&base).map_or(&[][..], |ranges| ranges);
            if !object.private
                || ranges.iter().any(|&(start, n)| n > MAX_FORGOTTEN || start.saturating_add(n) > MAX_LEAVES)
            {
                changed.push((base, None));
            } else if !ranges.is_empty() {
                let mut object = object.clone();
                ranges.iter().for_each(|&(start, n)| object.leaves.fill(start, n, Leaf::Unknown));
                changed.push((base, Some(object)));
            }
        }
        if !changed.is_empty() {
            change(Rc::make_mut(&mut kept.objects), changed);
        }
        Memory { objects: kept.objects, ..Memory::default() }
    }

    /// Whether everything known in `other` is known here too.
    pub fn implies(&self, other: &Memory) -> bool {
        if self.is_shared_with(other) {
            return true;
        }
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
        }) && other.entries.iter().all(|(ptr, e)| self.entries.get(ptr).is_some_and(|o| o.val == e.val))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.open.is_empty() && self.entries.is_empty()
    }

    fn remember(&mut self, w: &mut World, shapes: &mut Shapes, place: &Place, val: Val) {
        if !is_object(w, place.base) {
            let entry = Entry { val, _bytes: Counted::new(ENTRY_BYTES) };
            Rc::make_mut(&mut self.entries).insert_mut(place.at, entry);
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

    /// The leaves of an object. They are reset to unknown if they are from an earlier epoch.
    fn leaves(&mut self, base: Val) -> &mut Leaves {
        let epoch = self.epoch;
        if self.object(base).is_none() {
            self.put(base, Object::new(false, epoch, Leaves::new(Leaf::Unknown)));
        }
        let object = self.object(base).expect("just put there");
        if !object.private && object.epoch != epoch {
            object.leaves = Leaves::new(Leaf::Unknown);
            object.epoch = epoch;
        }
        &mut object.leaves
    }

    /// Forgets the other contents that a write somewhere below `base` may have changed.
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

/// The contents of immutable globals, memoized.
#[derive(Default)]
pub struct Constants {
    leaves: SideTable<Val, Option<Leaves>>,
}

impl Constants {
    /// Leaf `at` of the immutable global `base`. `None` if `base` is something else.
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
