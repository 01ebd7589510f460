//! The contents of an object by leaf, and values as leaves. Separate from what a state says about objects: contents are
//! shared between states, block by block, and their memory is counted here.

use super::{Shapes, Wide};
use nyala_ir::{Node, Op, Ty, TyKind, Val, World};
use std::cell::Cell;
use std::rc::Rc;

/// The number of leaves in a block, the unit of sharing between states.
const BLOCK: usize = 64;
/// Aggregates with more leaves are not split into parts unless they are constants.
const MAX_UNKNOWN_PARTS: u64 = 64;

/// The known contents of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    Unknown,
    /// Never written.
    Undefined,
    /// The bits of a literal.
    Lit(u64),
    /// A node that is not a literal.
    Val(Wide),
}

pub(super) fn leaf_of(w: &World, val: Val) -> Leaf {
    match w.node(val) {
        Node::Lit(bits) => Leaf::Lit(bits),
        Node::Undef => Leaf::Undefined,
        _ => Leaf::Val(Wide::new(val)),
    }
}

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The number of bytes of known contents, over all states of this thread.
pub fn bytes() -> usize {
    BYTES.get()
}

/// A number of bytes that is included in [`bytes`] as long as it lives.
#[derive(Default)]
pub(super) struct Counted(usize);

impl Counted {
    pub fn new(n: usize) -> Counted {
        let mut counted = Counted(0);
        counted.add(n);
        counted
    }

    pub fn add(&mut self, n: usize) {
        self.0 += n;
        BYTES.set(BYTES.get() + n);
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(self.0)
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
        Rc::new(Block { leaves, _bytes: Counted::new(size_of::<Block>()) })
    }
}

#[derive(Clone, Default)]
struct Blocks {
    all: Vec<Rc<Block>>,
    bytes: Counted,
}

/// The leaves of an object.
#[derive(Clone)]
pub(super) struct Leaves {
    blocks: Rc<Blocks>,
    /// The contents of all leaves after those in blocks.
    rest: Leaf,
}

impl Leaves {
    pub fn new(rest: Leaf) -> Leaves {
        Leaves { blocks: Rc::default(), rest }
    }

    pub fn get(&self, at: u64) -> Leaf {
        let at = at as usize;
        self.blocks.all.get(at / BLOCK).map_or(self.rest, |block| block.leaves[at % BLOCK])
    }

    pub fn set(&mut self, at: u64, leaf: Leaf) {
        let at = at as usize;
        match Rc::make_mut(&mut self.blocks).all.get_mut(at / BLOCK) {
            Some(block) => Rc::make_mut(block).leaves[at % BLOCK] = leaf,
            None => self.fill(at as u64, 1, leaf),
        }
    }

    pub fn fill(&mut self, at: u64, n: u64, leaf: Leaf) {
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

    /// Whether both are the same, as constant time can tell.
    pub fn is_shared_with(&self, other: &Leaves) -> bool {
        self.rest == other.rest && Rc::ptr_eq(&self.blocks, &other.blocks)
    }

    /// Whether everything known here is known in `other` too.
    pub fn is_within(&self, other: &Leaves) -> bool {
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

    /// The leaves that are equal in both; the others are unknown.
    pub fn merge(&self, other: &Leaves) -> Leaves {
        if self.is_shared_with(other) {
            return self.clone();
        }
        let both = |a: Leaf, b: Leaf| if a == b { a } else { Leaf::Unknown };
        let rest = both(self.rest, other.rest);
        let n = self.blocks.all.len().max(other.blocks.all.len());
        let mut blocks = Blocks { all: Vec::with_capacity(n), bytes: Counted::new(n * size_of::<Rc<Block>>()) };
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

/// Writes the leaves of `val`, from leaf `start` on.
pub(super) fn write(w: &mut World, shapes: &mut Shapes, leaves: &mut Leaves, start: u64, val: Val) {
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
            // The base is written first, then the part over it.
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

/// The value of type `ty` with these leaves. The recursion is as deep as the type, whose nesting the compiler limits.
pub(super) fn assemble(w: &mut World, ty: Ty, leaves: &mut impl Iterator<Item = Leaf>) -> Val {
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
