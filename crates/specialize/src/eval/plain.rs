//! The values that the machine computes with: numbers, closures, structs and addresses, which become nodes of the
//! residual graph only when they have to.

use super::{Diverged, Evaluator};
use crate::memory;
use nyala_base::CallId;
use nyala_ir::{Cont, Node, Op, Ty, TyKind, Val};
use smallvec::SmallVec;
use std::rc::Rc;

/// The number of bytes of closures at which dead ones are freed for the first time.
const MIN_BYTES: usize = 1 << 20;
/// Limit on the bytes of live closures. They grow to twice as many before dead ones are freed, and are there twice meanwhile.
const MAX_BYTES: usize = 256 << 20;

/// A value of the machine. All variants have one layout, so that values are passed in registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Value {
    /// The bits of a literal, whose type is that of its slot in the frame.
    Lit(u64),
    /// A node of the residual graph that is not a literal.
    Node(memory::Wide),
    /// A closure in [`Plain`].
    Closure(Idx),
    /// A struct or tuple in [`Plain`].
    Parts(Idx),
    /// The address of a leaf of an object. The type of the address tells how many leaves are meant.
    Place(Place),
}

/// The index of a value in [`Plain`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Idx(u64);

/// The base of an object, a node, and the number of a leaf, 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place(u64);

impl Idx {
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

impl Place {
    pub fn base(self) -> Val {
        Val(self.0 as u32)
    }
    pub fn at(self) -> u64 {
        self.0 >> 32
    }
}

impl Value {
    pub fn node(v: Val) -> Value {
        Value::Node(memory::Wide::new(v))
    }
    /// The place of leaf `at`, which must fit in 32 bits.
    pub fn place(base: Val, at: u64) -> Value {
        Value::Place(Place(u64::from(base.0) | at << 32))
    }
}

/// The closures that are not stubs yet, and the structs that are not nodes yet.
#[derive(Default)]
pub(super) struct Plain {
    pub all: Vec<PlainValue>,
    parts: Vec<Value>,
    /// The number of bytes at which dead values are freed next.
    limit: usize,
    /// The buffers into which live values are moved next.
    spare: (Vec<PlainValue>, Vec<Value>),
}

impl Plain {
    fn bytes(&self) -> usize {
        self.all.len() * size_of::<PlainValue>() + self.parts.len() * size_of::<Value>()
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.parts.clear();
    }

    pub fn parts(&self, v: Idx) -> &[Value] {
        let PlainValue { start, n, .. } = self.all[v.idx()];
        &self.parts[start as usize..(start + n) as usize]
    }
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Closure(Cont),
    Parts(Ty),
}

#[derive(Clone, Copy)]
pub(super) struct PlainValue {
    pub kind: Kind,
    /// The start of the values that a closure captures, in the order of the source's free values, or of a struct's
    /// parts.
    start: u32,
    n: u32,
    pub rank: (u32, u32),
    made: u64,
    /// The unfolded call whose code made a closure.
    pub call: CallId,
    pub node: Option<Val>,
}

impl Evaluator<'_> {
    pub(super) fn parts(&mut self, ty: Ty, parts: &[Value]) -> Value {
        let rank = parts.iter().fold((0, 0), |rank: (u32, u32), &v| {
            let (birth, height) = self.rank_of(v);
            (rank.0.max(birth), rank.1.max(height))
        });
        let start = self.plain.parts.len() as u32;
        self.plain.parts.extend_from_slice(parts);
        let n = parts.len() as u32;
        self.plain.all.push(PlainValue { kind: Kind::Parts(ty), start, n, rank, made: 0, call: self.call, node: None });
        Value::Parts(Idx(self.plain.all.len() as u64 - 1))
    }

    pub(super) fn make_closure(&mut self, k: Cont, slots: &[u32], frame: &[Value]) -> Value {
        let start = self.plain.parts.len() as u32;
        let mut rank = (0, 0);
        for &slot in slots {
            let v = frame[slot as usize];
            let (birth, height) = self.rank_of(v);
            rank = (rank.0.max(birth), rank.1.max(height));
            self.plain.parts.push(v);
        }
        let (n, rank) = (slots.len() as u32, (rank.0, rank.1 + 1));
        let kind = Kind::Closure(k);
        let made = self.budget.reductions;
        self.plain.all.push(PlainValue { kind, start, n, rank, made, call: self.call, node: None });
        let closure = Value::Closure(Idx(self.plain.all.len() as u64 - 1));
        if self.is_run_own(k) {
            return closure;
        }
        let any = self.dst.types.mem();
        Value::node(self.node_of(closure, any))
    }

    pub(super) fn rank_of(&mut self, v: Value) -> (u32, u32) {
        match v {
            Value::Lit(_) => (0, 0),
            Value::Node(v) => self.rank(v.val()),
            Value::Place(p) => self.rank(p.base()),
            Value::Closure(c) | Value::Parts(c) => self.plain.all[c.idx()].rank,
        }
    }

    // Values as nodes.

    pub(super) fn value_of(&mut self, v: Val) -> Value {
        match self.dst.node(v) {
            Node::Lit(bits) => Value::Lit(bits),
            Node::Global(_) | Node::Op(Op::Extract | Op::Lea | Op::Bitcast)
                if matches!(self.dst.types.kind(self.dst.ty(v)), TyKind::Ptr { .. })
                    && memory::is_object(&self.dst, memory::base_of(&self.dst, v)) =>
            {
                match memory::known_place(&mut self.dst, &mut self.cache.shapes, v) {
                    Some((base, at)) => Value::place(base, at),
                    None => Value::node(v),
                }
            }
            _ => Value::node(v),
        }
    }

    /// The machine's value for a node, without resolving addresses to places.
    pub(super) fn simple_value(&self, v: Val) -> Value {
        match self.dst.node(v) {
            Node::Lit(bits) => Value::Lit(bits),
            _ => Value::node(v),
        }
    }

    pub(super) fn is_value_known(&self, v: Value) -> bool {
        let mut work: SmallVec<[Value; 8]> = SmallVec::from_slice(&[v]);
        while let Some(v) = work.pop() {
            match v {
                Value::Lit(_) | Value::Closure(_) => {}
                Value::Node(v) if self.is_known(v.val()) => {}
                Value::Place(p) if self.is_known(p.base()) => {}
                Value::Node(_) | Value::Place(..) => return false,
                Value::Parts(c) => work.extend_from_slice(self.plain.parts(c)),
            }
        }
        true
    }

    /// The node for a value. Closures become stubs, and so do the closures that they capture.
    pub(super) fn node_of(&mut self, v: Value, ty: Ty) -> Val {
        let root = match v {
            Value::Closure(c) | Value::Parts(c) => c,
            _ => return self.simple_node(v, ty),
        };
        let mut stack = vec![root];
        while let Some(&c) = stack.last() {
            let PlainValue { kind, start, n, made, call, node, .. } = self.plain.all[c.idx()];
            if node.is_some() {
                stack.pop();
                continue;
            }
            let before = stack.len();
            for v in self.plain.parts(c) {
                if let Value::Closure(inner) | Value::Parts(inner) = *v
                    && self.plain.all[inner.idx()].node.is_none()
                {
                    stack.push(inner);
                }
            }
            if stack.len() > before {
                continue;
            }
            let mut vals = Vec::with_capacity(n as usize);
            for i in 0..n as usize {
                let ty = match kind {
                    Kind::Closure(k) => self.source.ty(self.facts.nest.free(k)[i]),
                    Kind::Parts(ty) => self.dst.types.part(ty, i as u64).unwrap_or(ty),
                };
                let v = self.plain.parts[start as usize + i];
                vals.push(self.simple_node(v, ty));
            }
            let node = match kind {
                Kind::Closure(k) => {
                    let s = self.stub(k, 0, Rc::from(vals), call);
                    self.note_made(s, made);
                    self.dst.cont_val(self.stubs[s].cont)
                }
                Kind::Parts(ty) if matches!(self.dst.types.kind(ty), TyKind::Tuple(_)) => self.dst.op(Op::Tuple, &vals),
                Kind::Parts(ty) => self.dst.op_ty(Op::Struct, ty, &vals),
            };
            self.plain.all[c.idx()].node = Some(node);
            stack.pop();
        }
        self.plain.all[root.idx()].node.unwrap_or(Val(0))
    }

    /// The node for a value whose parts, if any, have already become nodes.
    fn simple_node(&mut self, v: Value, ty: Ty) -> Val {
        match v {
            Value::Lit(bits) => self.dst.lit(ty, bits),
            Value::Node(v) => v.val(),
            Value::Closure(c) | Value::Parts(c) => self.plain.all[c.idx()].node.unwrap_or(Val(0)),
            Value::Place(p) => {
                let Some(pointee) = self.dst.types.pointee(ty) else { return p.base() };
                let ptr = memory::address(&mut self.dst, &mut self.cache.shapes, p.base(), p.at(), pointee);
                match self.dst.ty(ptr) == ty {
                    true => ptr,
                    false => self.dst.op_ty(Op::Bitcast, ty, &[ptr]),
                }
            }
        }
    }

    /// Frees the closures and structs that cannot be reached from the frame. Fails if too many bytes are live.
    pub(super) fn collect(&mut self, frame: &mut [Value]) -> Result<(), Box<Diverged>> {
        if self.plain.bytes() < self.plain.limit.max(MIN_BYTES) {
            return Ok(());
        }
        self.repeated.close();
        let mut old = std::mem::take(&mut self.plain);
        let (all, parts) = std::mem::take(&mut old.spare);
        let mut new = Plain { all, parts, ..Plain::default() };
        let mut moved = vec![u64::MAX; old.all.len()];
        let mut forward = |v: &mut Value, new: &mut Plain| {
            let (Value::Closure(c) | Value::Parts(c)) = v else { return };
            let to = &mut moved[c.idx()];
            if *to == u64::MAX {
                let mut kept = old.all[c.idx()];
                kept.start = new.parts.len() as u32;
                new.parts.extend_from_slice(old.parts(*c));
                *to = new.all.len() as u64;
                new.all.push(kept);
            }
            *c = Idx(*to);
        };
        frame.iter_mut().for_each(|v| forward(v, &mut new));
        let mut at = 0;
        while at < new.parts.len() {
            let mut v = new.parts[at];
            forward(&mut v, &mut new);
            new.parts[at] = v;
            at += 1;
        }
        new.limit = 2 * new.bytes();
        old.clear();
        new.spare = (old.all, old.parts);
        self.plain = new;
        let limit = (MAX_BYTES as f64 * self.options.budget.max(0.1)) as usize;
        self.budget.near_end |= self.plain.bytes() * 2 > limit;
        match self.plain.bytes() > limit {
            true => Err(self.diverged("bytes of closures", limit as u64)),
            false => Ok(()),
        }
    }
}
