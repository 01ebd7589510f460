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

mod shapes;

use nyala_base::{SideTable, Span};
use nyala_ir::{Node, Op, Ty, TyKind, Val, World, fold};
use rpds::HashTrieMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::cell::Cell;
use std::rc::Rc;

pub use shapes::Shapes;

type Map<K, V> = HashTrieMap<K, V, archery::RcK, FxBuildHasher>;

/// Objects with more leaves are not looked into.
pub const MAX_LEAVES: u64 = 1 << 23;
/// More leaves of an object are not forgotten on their own.
const MAX_FORGOTTEN: u64 = 1 << 14;
/// Aggregates with more leaves are not taken apart if they are no constants, nor put together.
const MAX_PARTS: u64 = 1024;
const MAX_UNKNOWN_PARTS: u64 = 64;
const BLOCK: usize = 64;

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

/// What is known of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    Unknown,
    /// Never written.
    Undefined,
    /// The bits of a literal.
    Lit(u64),
    /// A node; no literal.
    Val(Wide),
}

fn leaf_of(w: &World, val: Val) -> Leaf {
    match w.node(val) {
        Node::Lit(bits) => Leaf::Lit(bits),
        Node::Undef => Leaf::Undefined,
        _ => Leaf::Val(Wide::new(val)),
    }
}

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Bytes of the contents that states of this thread know.
pub fn bytes() -> usize {
    BYTES.get()
}

/// What is counted in [`bytes`].
#[derive(Default)]
struct Counted(usize);

impl Counted {
    fn add(&mut self, n: usize) {
        self.0 += n;
        BYTES.set(BYTES.get() + n);
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        let mut counted = Counted(0);
        counted.add(self.0);
        counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        BYTES.set(BYTES.get() - self.0);
    }
}

#[derive(Clone)]
struct Block {
    leaves: [Leaf; BLOCK],
    _bytes: Counted,
}

impl Block {
    fn new(leaves: [Leaf; BLOCK]) -> Rc<Block> {
        let mut bytes = Counted(0);
        bytes.add(size_of::<Block>());
        Rc::new(Block { leaves, _bytes: bytes })
    }
}

#[derive(Clone, Default)]
struct Blocks {
    all: Vec<Rc<Block>>,
    bytes: Counted,
}

/// The leaves of an object.
#[derive(Clone)]
struct Leaves {
    blocks: Rc<Blocks>,
    /// What stands behind the blocks.
    rest: Leaf,
}

impl Leaves {
    fn new(rest: Leaf) -> Leaves {
        Leaves { blocks: Rc::default(), rest }
    }

    fn get(&self, at: u64) -> Leaf {
        let at = at as usize;
        self.blocks.all.get(at / BLOCK).map_or(self.rest, |block| block.leaves[at % BLOCK])
    }

    fn set(&mut self, at: u64, leaf: Leaf) {
        let at = at as usize;
        match Rc::make_mut(&mut self.blocks).all.get_mut(at / BLOCK) {
            Some(block) => Rc::make_mut(block).leaves[at % BLOCK] = leaf,
            None => self.fill(at as u64, 1, leaf),
        }
    }

    fn fill(&mut self, at: u64, n: u64, leaf: Leaf) {
        let (from, to) = (at as usize, (at + n) as usize);
        if n == 0 || (leaf == self.rest && from / BLOCK >= self.blocks.all.len()) {
            return;
        }
        let Blocks { all: blocks, bytes } = Rc::make_mut(&mut self.blocks);
        if blocks.len() * BLOCK < to {
            bytes.add((to.div_ceil(BLOCK) - blocks.len()) * size_of::<Rc<Block>>());
            blocks.resize(to.div_ceil(BLOCK), Block::new([self.rest; BLOCK]));
        }
        let mut whole: Option<Rc<Block>> = None;
        for (b, block) in blocks[from / BLOCK..to.div_ceil(BLOCK)].iter_mut().enumerate() {
            let start = (from / BLOCK + b) * BLOCK;
            let (lo, hi) = (from.max(start) - start, to.min(start + BLOCK) - start);
            if hi - lo == BLOCK {
                *block = whole.get_or_insert_with(|| Block::new([leaf; BLOCK])).clone();
            } else {
                Rc::make_mut(block).leaves[lo..hi].fill(leaf);
            }
        }
    }

    /// Whether `other` has all that is known here.
    fn is_within(&self, other: &Leaves) -> bool {
        let within = |a: Leaf, b: Leaf| a == b || a == Leaf::Unknown;
        if Rc::ptr_eq(&self.blocks, &other.blocks) {
            return within(self.rest, other.rest);
        }
        let (blocks, others) = (&self.blocks.all, &other.blocks.all);
        within(self.rest, other.rest)
            && (0..blocks.len().max(others.len())).all(|i| match (blocks.get(i), others.get(i)) {
                (Some(a), Some(b)) if Rc::ptr_eq(a, b) => true,
                _ => (i * BLOCK..(i + 1) * BLOCK).all(|at| within(self.get(at as u64), other.get(at as u64))),
            })
    }

    /// What both have.
    fn merge(&self, other: &Leaves) -> Leaves {
        if Rc::ptr_eq(&self.blocks, &other.blocks) && self.rest == other.rest {
            return self.clone();
        }
        let both = |a: Leaf, b: Leaf| if a == b { a } else { Leaf::Unknown };
        let rest = both(self.rest, other.rest);
        let n = self.blocks.all.len().max(other.blocks.all.len());
        let mut blocks = Blocks { all: Vec::with_capacity(n), bytes: Counted(0) };
        blocks.bytes.add(n * size_of::<Rc<Block>>());
        for i in 0..n {
            blocks.all.push(match (self.blocks.all.get(i), other.blocks.all.get(i)) {
                (Some(a), Some(b)) if Rc::ptr_eq(a, b) => a.clone(),
                (a, b) => {
                    let (a, b) =
                        (a.map_or([self.rest; BLOCK], |a| a.leaves), b.map_or([other.rest; BLOCK], |b| b.leaves));
                    Block::new(std::array::from_fn(|i| both(a[i], b[i])))
                }
            });
        }
        Leaves { blocks: Rc::new(blocks), rest }
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

#[derive(Clone, Default)]
struct Pending {
    writes: Vec<Write>,
    /// The leaves that they are to, a bit each.
    leaves: Vec<u64>,
    bytes: Counted,
}

/// To leaf `at` and those behind it, of a value of that type.
#[derive(Clone, Copy)]
struct Write {
    at: u32,
    n: u32,
    ty: Ty,
    origin: Span,
}

impl Pending {
    /// Whether any of the leaves is not in the set yet; all are then.
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

/// Where an address leads.
struct Place {
    base: Val,
    /// The address that stands for all of the place.
    at: Val,
    /// First leaf and number of leaves; all leaves of the object if there is none.
    range: Option<(u64, u64)>,
    /// Whether all indices on the way are literals; if not, the range is that of the innermost known aggregate.
    exact: bool,
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

    /// A value of type `ty`, leaves from `at` on, was written to a private object: the store is pending.
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

    /// How many stores are pending.
    pub fn n_pending(&mut self) -> usize {
        let with_pending = std::mem::take(&mut self.with_pending);
        let n = with_pending
            .iter()
            .map(|&o| self.object(o).and_then(|o| o.pending.as_ref()).map_or(0, |o| o.writes.len()))
            .sum();
        self.with_pending = with_pending;
        n
    }

    /// Forgets private objects with pending stores, but for those in `used`: the rest of the program has no address
    /// that leads there.
    pub fn forget_unused(&mut self, used: &FxHashSet<Val>) {
        for object in std::mem::take(&mut self.with_pending) {
            if used.contains(&object) || !self.is_private(object) {
                self.with_pending.push(object);
            } else {
                self.open.retain(|o| o.0 != object);
            }
        }
    }

    /// Whether stores are pending that the residual program would see at `base`, or anywhere.
    pub fn has_pending(&mut self, base: Option<Val>) -> bool {
        let with_pending = std::mem::take(&mut self.with_pending);
        let has_pending = with_pending.iter().any(|&o| base.is_none_or(|base| o == base) || !self.is_private(o));
        self.with_pending = with_pending;
        has_pending
    }

    /// Makes the pending stores, those that would be seen at `base`, or all of them; the memory behind them.
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
            // Later ones may have written all of what earlier ones did.
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

    /// The contents at `ptr`, if known.
    pub fn load(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val) -> Option<Val> {
        let place = place(w, shapes, ptr);
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
        let place = place(w, shapes, ptr);
        if place.exact {
            self.remember(w, shapes, &place, val);
        }
    }

    /// `val` is written to `ptr`.
    pub fn store(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val, val: Val) {
        let place = place(w, shapes, ptr);
        self.wrote(w, place.base);
        if place.exact {
            self.remember(w, shapes, &place, val);
        } else {
            self.forget(&place);
        }
    }

    /// Something unknown is written to `ptr`.
    pub fn touch(&mut self, w: &mut World, shapes: &mut Shapes, ptr: Val) {
        let place = place(w, shapes, ptr);
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

/// Writes the leaves of a value.
fn write(w: &mut World, shapes: &mut Shapes, leaves: &mut Leaves, start: u64, val: Val) {
    let mut work = vec![(start, val)];
    while let Some((at, val)) = work.pop() {
        let ty = w.ty(val);
        let n = shapes.leaves(w, ty);
        let is_aggregate = w.types.n_parts(ty).is_some() && w.types.as_vector(ty).is_none();
        match w.node(val) {
            Node::Undef => leaves.fill(at, n, Leaf::Undefined),
            _ if !is_aggregate => leaves.set(at, leaf_of(w, val)),
            Node::Op(Op::Tuple | Op::Struct | Op::Array) => {
                let mut at = at;
                for part in w.args(val).to_vec() {
                    work.push((at, part));
                    at += shapes.leaves(w, w.ty(part));
                }
            }
            Node::Op(Op::Splat) => {
                let elem = w.args(val)[0];
                let step = shapes.leaves(w, w.ty(elem));
                if step == 1 && w.types.n_parts(w.ty(elem)).is_none() {
                    leaves.fill(at, n, leaf_of(w, elem));
                } else {
                    let elems = w.types.n_parts(ty).unwrap_or(0);
                    work.extend((0..elems).map(|i| (at + i * step, elem)));
                }
            }
            // The part is written after the rest.
            Node::Op(Op::Insert) if w.as_lit(w.args(val)[1]).is_some() => {
                let (base, part) = (w.args(val)[0], w.args(val)[2]);
                let idx = w.as_lit(w.args(val)[1]).unwrap_or(0);
                if let Some(offset) = shapes.part_start(w, ty, idx) {
                    work.push((at + offset, part));
                }
                work.push((at, base));
            }
            _ if n <= MAX_UNKNOWN_PARTS => {
                let mut at = at;
                for i in 0..w.types.n_parts(ty).unwrap_or(0) {
                    let part = w.extract(val, i);
                    work.push((at, part));
                    at += shapes.leaves(w, w.ty(part));
                }
            }
            _ => leaves.fill(at, n, Leaf::Unknown),
        }
    }
}

/// The value of a type that has these leaves. Types are as deep as their source, which is limited.
fn assemble(w: &mut World, ty: Ty, leaves: &mut impl Iterator<Item = Leaf>) -> Val {
    let parts = match w.types.kind(ty) {
        TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..) => w.types.n_parts(ty).unwrap_or(0),
        _ => {
            return match leaves.next() {
                Some(Leaf::Lit(bits)) => w.lit(ty, bits),
                Some(Leaf::Val(val)) => val.val(),
                Some(Leaf::Undefined | Leaf::Unknown) | None => w.undef(ty),
            };
        }
    };
    let parts: Vec<Val> = (0..parts)
        .map(|i| {
            let part = w.types.part(ty, i).unwrap_or(ty);
            assemble(w, part, leaves)
        })
        .collect();
    if !parts.is_empty() && parts.iter().all(|&p| w.node(p) == Node::Undef) {
        return w.undef(ty);
    }
    match w.types.kind(ty) {
        TyKind::Tuple(_) => w.op(Op::Tuple, &parts),
        TyKind::Struct(_) => w.op_ty(Op::Struct, ty, &parts),
        _ if parts.len() > 1 && parts.iter().all(|p| *p == parts[0]) => w.op_ty(Op::Splat, ty, &parts[..1]),
        _ => w.op_ty(Op::Array, ty, &parts),
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
    let mut base = ptr;
    loop {
        match w.node(base) {
            Node::Op(Op::Lea) => base = w.args(base)[0],
            Node::Op(Op::Bitcast) if w.types.pointee(w.ty(w.args(base)[0])).is_some() => base = w.args(base)[0],
            _ => return base,
        }
    }
}

/// A place may have several addresses, `&[T * n]` as `&[T]` or in another space: it is known by the one that is made
/// without bitcasts.
fn place(w: &mut World, shapes: &mut Shapes, ptr: Val) -> Place {
    let (mut base, mut exact, mut casts) = (ptr, true, false);
    let mut path = Vec::new();
    let pointee = w.types.pointee(w.ty(ptr));
    let mut range = pointee.map(|ty| (0, shapes.leaves(w, ty)));
    if pointee.is_some_and(|ty| matches!(w.types.kind(ty), TyKind::IndefArray(_))) {
        range = None;
    }
    loop {
        match w.node(base) {
            Node::Op(Op::Lea) => {
                let (outer, idx) = (w.args(base)[0], w.args(base)[1]);
                let outer_ty = w.types.pointee(w.ty(outer));
                let start = w.as_lit(idx).zip(outer_ty).and_then(|(i, ty)| shapes.part_start(w, ty, i));
                match (start, outer_ty) {
                    (Some(start), _) => range = range.map(|(at, n)| (at + start, n)),
                    // Somewhere in the aggregate around it.
                    (None, Some(ty)) if w.types.n_parts(ty).is_some() => range = Some((0, shapes.leaves(w, ty))),
                    (None, _) => range = None,
                }
                exact &= start.is_some();
                path.push(idx);
                base = outer;
            }
            Node::Op(Op::Bitcast) if w.types.pointee(w.ty(w.args(base)[0])).is_some() => {
                // Behind the end of an array of known length is something else.
                let from = w.types.pointee(w.ty(w.args(base)[0]));
                let sized = from.filter(|&ty| !matches!(w.types.kind(ty), TyKind::IndefArray(_)));
                let is_inside = match (sized, range) {
                    (Some(ty), Some((at, n))) => at + n <= shapes.leaves(w, ty),
                    _ => true,
                };
                if !fold::is_same_place(w, base) || !is_inside {
                    (exact, range) = (false, None);
                }
                casts = true;
                base = w.args(base)[0];
            }
            _ => break,
        }
    }
    let mut at = ptr;
    if casts && exact {
        at = path.iter().rev().fold(base, |at, &idx| w.op(Op::Lea, &[at, idx]));
    }
    Place { base, at, range, exact }
}

/// The address of the value of type `ty` whose leaves in an object begin at `at`; for `[T]` that of a `[T * n]`. Types are
/// as deep as their source, which is limited.
pub fn address(w: &mut World, shapes: &mut Shapes, base: Val, mut at: u64, ty: Ty) -> Val {
    let mut ptr = base;
    while let Some(outer) = w.types.pointee(w.ty(ptr)).filter(|&outer| outer != ty) {
        let idx = match (w.types.kind(outer), w.types.kind(ty)) {
            (TyKind::Array(a, _), TyKind::IndefArray(b)) if a == b => break,
            (&TyKind::Array(elem, _) | &TyKind::IndefArray(elem), _) => at / shapes.leaves(w, elem).max(1),
            _ => {
                let n = w.types.n_parts(outer).unwrap_or(0);
                let mut idx = 0;
                while idx + 1 < n && shapes.part_start(w, outer, idx + 1).is_some_and(|start| start <= at) {
                    idx += 1;
                }
                idx
            }
        };
        let Some(start) = shapes.part_start(w, outer, idx) else { break };
        at -= start.min(at);
        let idx = w.lit_i64(idx as i64);
        ptr = w.op(Op::Lea, &[ptr, idx]);
    }
    ptr
}

/// Where an address leads that is known: the object, the first leaf.
pub fn known_place(w: &mut World, shapes: &mut Shapes, mut ptr: Val) -> Option<(Val, u64)> {
    // The elements of an array are where the array is.
    let space = |v: Val| match w.types.kind(w.ty(v)) {
        TyKind::Ptr { pointee, space } => Some((*space, matches!(w.types.kind(*pointee), TyKind::IndefArray(_)))),
        _ => None,
    };
    if w.is_op(ptr, Op::Bitcast) && space(ptr).is_some_and(|s| s.1 && space(w.args(ptr)[0]) == Some((s.0, false))) {
        if !fold::is_same_place(w, ptr) {
            return None;
        }
        ptr = w.args(ptr)[0];
    }
    let place = place(w, shapes, ptr);
    let (start, n) = place.range.filter(|_| place.exact && is_object(w, place.base))?;
    (n > 0 && start < MAX_LEAVES).then_some((place.base, start))
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
