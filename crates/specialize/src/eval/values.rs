//! Residual values of source values and operations, and the effects of operations on the known contents of memory.

use super::Evaluator;
use super::state::Site;
use crate::memory;
use nyala_base::Span;
use nyala_ir::{Cont, Node, Op, Rule, TyKind, Val};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Fewer pending stores are made without a search for those that nobody can read.
const MIN_PENDING: usize = 64;

/// The strongest memory order that guarantees nothing about other locations.
const RELAXED: u64 = 2;

impl Evaluator<'_> {
    // Values.

    /// The residual value of a source value that does not depend on where it is used.
    pub(super) fn value(&mut self, v: Val) -> Val {
        if let Some(x) = self.cache.literals[v] {
            return x;
        }
        let ty = self.source.ty(v);
        let x = match self.source.node(v) {
            Node::Op(op) => {
                let operands: Vec<Val> = self.source.args(v).iter().map(|&a| self.value(a)).collect();
                self.make(op, v, &operands)
            }
            Node::Lit(bits) => self.dst.lit(ty, bits),
            Node::Cont(c) => self.closed(c),
            Node::Builtin(b) => self.dst.builtin(b),
            Node::Global(g) => self.dst.global_val(g),
            Node::Undef | Node::Param(..) => self.dst.undef(ty),
        };
        self.cache.literals[v] = Some(x);
        x
    }

    /// The value of a continuation that captures nothing.
    fn closed(&mut self, c: Cont) -> Val {
        let data = self.source.cont(c);
        if data.linkage.is_external() {
            self.dst.set_origin(data.origin);
            if let Some(k) = self.dst.external(data) {
                return self.dst.cont_val(k);
            }
        }
        let s = self.stub(c, 0, Rc::new([]), Span::NO_CALL);
        self.dst.cont_val(self.stubs[s].cont)
    }

    /// The result of an operation. If pending stores are made before it, `args` then begins with the memory after them.
    pub(super) fn compute(&mut self, op: Op, v: Val, args: &mut [Val], site: &mut Site) -> Val {
        match op {
            Op::Load => {
                if let Some(known) = site.memory.load(&mut self.dst, &mut self.cache.shapes, args[1]) {
                    return known;
                }
                self.flush(site, args, Some(1));
                let loaded = self.dst.op(op, args);
                site.memory.loaded(&mut self.dst, &mut self.cache.shapes, args[1], loaded);
                loaded
            }
            Op::Store => {
                if site.memory.load(&mut self.dst, &mut self.cache.shapes, args[1]) == Some(args[2]) {
                    return args[0];
                }
                self.escape(args[2], site, false);
                self.flush(site, args, Some(1));
                site.memory.store(&mut self.dst, &mut self.cache.shapes, args[1], args[2]);
                let stored = self.dst.op(op, args);
                if self.source.is_fast(v) {
                    self.dst.set_streaming(stored);
                }
                stored
            }
            Op::Slot | Op::Alloc => {
                let made = self.make(op, v, args);
                let ptr = self.dst.extract(made, 1);
                site.memory.make(&self.dst, ptr);
                made
            }
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
                let orders = args[op.literal_operands()].iter().map(|&o| self.dst.as_lit(o));
                let is_ordered = orders.into_iter().any(|o| o.is_none_or(|o| o > RELAXED));
                let at = op.writes().map(|w| w.0).or((op == Op::AtomicLoad).then_some(1));
                if let Some((_, written)) = op.writes() {
                    self.escape(args[written], site, false);
                }
                // A release shows all writes before it to other threads.
                self.flush(site, args, at.filter(|_| !is_ordered));
                if let Some((at, _)) = op.writes() {
                    site.memory.touch(&mut self.dst, &mut self.cache.shapes, args[at]);
                }
                // The writes of other threads become visible.
                if is_ordered {
                    site.memory.clobber();
                }
                self.make(op, v, args)
            }
            // A name keeps no variable in memory.
            Op::DebugValue if self.has_object(args[1]) => args[0],
            // The evaluator tells objects apart anyway, and `restrict` would hide what it knows of their contents.
            Op::Restrict if memory::is_object(&self.dst, memory::base_of(&self.dst, args[0])) => args[0],
            Op::Aligned | Op::Restrict => {
                self.escape(args[0], site, false);
                self.make(op, v, args)
            }
            Op::Select => {
                let r = self.make(op, v, args);
                if self.dst.is_op(r, Op::Select) {
                    self.escape(args[1], site, false);
                    self.escape(args[2], site, false);
                }
                r
            }
            Op::Bitcast => {
                let from_ptr = matches!(self.dst.types.kind(self.dst.ty(args[0])), TyKind::Ptr { .. });
                if from_ptr && !matches!(self.source.types.kind(self.source.ty(v)), TyKind::Ptr { .. }) {
                    self.escape(args[0], site, false);
                }
                self.make(op, v, args)
            }
            _ => self.make(op, v, args),
        }
    }

    /// Makes the pending stores before a block ends. Stores to objects whose address the rest of the program cannot
    /// reach from `args` and `others` may be dropped.
    pub(super) fn flush_all(&mut self, site: &mut Site, args: &mut [Val], others: &[Val]) {
        let n_pending = site.memory.n_pending();
        if n_pending >= MIN_PENDING
            && let Some(used) = self.reached(args.iter().skip(1).chain(others).copied().collect(), 4 * n_pending)
        {
            site.memory.forget_unused(&used);
        }
        self.flush(site, args, None);
    }

    /// The values that `work` is computed from, memory excluded. `None` if there are more than `limit`.
    fn reached(&self, mut work: Vec<Val>, limit: usize) -> Option<FxHashSet<Val>> {
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            if self.dst.ty(v) == self.dst.types.mem() || !seen.insert(v) {
                continue;
            }
            self.budget.pay(1);
            if seen.len() > limit {
                return None;
            }
            match self.stub_of_val(v) {
                Some(s) => work.extend(self.stubs[s].vals.iter()),
                None => work.extend(self.dst.args(v)),
            }
        }
        Some(seen)
    }

    /// Makes the pending stores that an operation with these arguments would see at the address `args[at]`, or all of
    /// them.
    pub(super) fn flush(&mut self, site: &mut Site, args: &mut [Val], at: Option<usize>) {
        let base = at.map(|at| memory::base_of(&self.dst, args[at]));
        args[0] = site.memory.flush(&mut self.dst, &mut self.cache.shapes, args[0], base);
    }

    /// Makes operation `op` of the source value `v` on residual operands.
    pub(super) fn make(&mut self, op: Op, v: Val, args: &[Val]) -> Val {
        match op {
            Op::Known => {
                let known = self.options.annotations && self.is_known(args[0]);
                self.dst.lit_bool(known)
            }
            Op::Hlt | Op::Unfold | Op::Run if !self.options.annotations => args[0],
            Op::Slot | Op::Alloc => {
                let ty = self.source.ty(v);
                let ptr = self.source.types.part(ty, 1).and_then(|p| self.source.types.pointee(p));
                let elem = match (op, ptr) {
                    (Op::Alloc, Some(array)) => self.source.types.part(array, 0),
                    (_, ptr) => ptr,
                };
                self.dst.op_ty(op, elem.unwrap_or(ty), args)
            }
            _ => {
                let old = self.dst.set_fast(self.source.is_fast(v));
                let made = match op.rule() {
                    Rule::Stated => self.dst.op_ty(op, self.source.ty(v), args),
                    _ => self.dst.op(op, args),
                };
                self.dst.set_fast(old);
                made
            }
        }
    }

    /// `?v`: whether every part of the value is known.
    pub fn is_known(&self, v: Val) -> bool {
        let mut work = vec![v];
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            let known = match self.dst.node(v) {
                Node::Lit(_) | Node::Undef | Node::Global(_) | Node::Cont(_) | Node::Builtin(_) => true,
                Node::Param(..) => false,
                Node::Op(Op::Tuple | Op::Struct | Op::Array | Op::Splat | Op::Insert | Op::Lea | Op::Bitcast) => {
                    if seen.insert(v) {
                        work.extend(self.dst.args(v));
                    }
                    true
                }
                Node::Op(Op::Extract) => self.dst.is_op(self.dst.args(v)[0], Op::Slot),
                Node::Op(_) => false,
            };
            if !known {
                return false;
            }
        }
        true
    }
}
