//! The contents of memory that a loop or the body of a parallel loop knows: those of variables that are not given away,
//! and that no code reachable from there writes. So a table that is filled before a loop is known in the loop, and of a
//! struct, all fields that the loop does not write.
//!
//! An assumption is chosen from the code alone. Whether it holds is checked at each jump to the block that was built
//! with it ([`Evaluator::target`]). Where it does not hold, another block is built.

use super::Evaluator;
use super::budget::UnitId;
use super::state::StubId;
use crate::facts::Facts;
use crate::memory::{self, Memory, Range, Shapes, WHOLE, Written};
use nyala_base::SideTable;
use nyala_ir::{Cont, Node, Op, TyKind, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Limit on the blocks of one loop with different assumptions.
const MAX_ASSUMPTIONS: usize = 4;
/// Limits on the objects that code reachable from one closure may write, and on their sum over all closures of a unit.
/// Beyond them, nothing is assumed to be known.
const MAX_OBJECTS: usize = 1000;
const MAX_OBJECTS_OF_UNIT: usize = 1 << 20;
/// Limit on the ranges that are told apart in one object.
const MAX_RANGES: usize = 8;

impl Evaluator<'_> {
    /// The block to jump to for a stub with this memory, and the stub to request if the block is not built yet.
    pub(super) fn target(&mut self, s: StubId, memory: &Memory) -> (Cont, Option<StubId>) {
        for s in self.stubs.line(s) {
            self.budget.pay(self.stubs[s].assumed.as_ref().map_or(1, |assumed| assumed.0.size()));
            if let Some((assumed, block)) = self.stubs[s].assumed.as_deref()
                && memory.implies(assumed)
            {
                return (*block, None);
            }
        }
        let s = self.live(s);
        (self.stubs[s].cont, Some(s))
    }

    /// The part of `memory` that code reachable from a stub does not write or give away.
    pub(super) fn kept(&mut self, s: StubId, memory: &Memory) -> Memory {
        if memory.is_empty() {
            return Memory::default();
        }
        self.budget.pay(memory.size());
        match self.writes(s) {
            Some(written) => memory.without(&written),
            None => Memory::default(),
        }
    }

    /// Whether another block with assumptions may be built for the stub that this one stands in for.
    pub(super) fn may_assume(&self, s: StubId) -> bool {
        let first = self.first_like(s);
        let all = first.into_iter().flat_map(|first| self.stubs.line(first));
        let n = all.filter(|&s| self.stubs[s].assumed.is_some()).count();
        n < MAX_ASSUMPTIONS
    }

    /// The ranges of objects that code reachable from a closure may write or give away. `None` if there are too many.
    ///
    /// A closure is made after those it captures, so the result of each is computed once and memoized.
    fn writes(&mut self, s: StubId) -> Option<Rc<Written>> {
        let mut work = vec![s];
        while let Some(&s) = work.last() {
            if self.writes_of.all.contains_key(&s) {
                work.pop();
                continue;
            }
            let (own, inner) = self.own_writes_of(s);
            debug_assert!(inner.iter().all(|&inner| inner < s));
            let n = work.len();
            work.extend(inner.iter().filter(|s| !self.writes_of.all.contains_key(s)));
            if work.len() > n {
                continue;
            }
            work.pop();
            let mut all: Option<Rc<Written>> = Some(Rc::default());
            for s in inner {
                self.budget.pay(self.writes_of.all[&s].as_ref().map_or(1, |written| written.len()));
                all = match (all, &self.writes_of.all[&s]) {
                    (Some(all), Some(more)) if all.is_empty() => Some(more.clone()),
                    (Some(all), Some(more)) => {
                        Some(union(all, more.iter().flat_map(|(&v, r)| r.iter().map(move |&r| (v, r)))))
                    }
                    _ => None,
                };
            }
            let all = all.map(|all| union(all, own.into_iter())).filter(|all| all.len() <= MAX_OBJECTS);
            // A set that is shared with a captured closure takes no memory of its own.
            let n_objects = &mut self.writes_of.n_objects[self.stubs[s].unit];
            *n_objects += all.as_ref().filter(|all| Rc::strong_count(all) == 1).map_or(0, |all| all.len());
            let all = all.filter(|_| *n_objects <= MAX_OBJECTS_OF_UNIT);
            self.writes_of.all.insert(s, all);
        }
        self.writes_of.all[&s].clone()
    }

    /// The writes in the code of one closure, and the closures that it captures.
    fn own_writes_of(&mut self, s: StubId) -> (Vec<(Val, Range)>, Vec<StubId>) {
        let (facts, mut written, mut found) = (self.facts, Vec::new(), Vec::new());
        let (source, vals) = (self.stubs[s].source, self.stubs[s].vals.clone());
        let roots = &facts.written.get_or_init(|| all_writes(self.source, facts))[source];
        let free = facts.nest.free(source);
        for (i, &v) in vals.iter().enumerate() {
            // After the captured values come the specialized parameters.
            let ranges = free.get(i).map_or(Some(&[WHOLE][..]), |f| roots.get(f).map(|ranges| &ranges[..]));
            let top = v;
            let mut parts = vec![v];
            let mut seen_parts: FxHashSet<Val> = FxHashSet::default();
            while let Some(v) = parts.pop() {
                if !seen_parts.insert(v) {
                    continue;
                }
                self.budget.pay(1);
                if let Some(inner) = self.stub_of_val(v) {
                    if self.stubs[inner].holds_address {
                        found.push(inner);
                    }
                    continue;
                }
                match self.dst.types.kind(self.dst.ty(v)) {
                    TyKind::Ptr { .. } => {
                        let Some(ranges) = ranges else { continue };
                        let place = memory::known_place(&mut self.dst, &mut self.cache.shapes, v).filter(|_| v == top);
                        for &(start, n) in ranges {
                            written.push(match place.filter(|_| (start, n) != WHOLE) {
                                Some((base, at)) => (base, (at + start, n)),
                                None => (memory::base_of(&self.dst, v), WHOLE),
                            });
                        }
                    }
                    TyKind::Prim(_) => {}
                    _ => parts.extend(self.dst.args(v)),
                }
            }
        }
        (written, found)
    }
}

/// The memoized results of [`Evaluator::writes`].
#[derive(Default)]
pub(super) struct WritesOf {
    all: FxHashMap<StubId, Option<Rc<Written>>>,
    /// By unit, the number of objects in all these sets.
    n_objects: SideTable<UnitId, usize>,
}

fn union(mut all: Rc<Written>, more: impl Iterator<Item = (Val, Range)>) -> Rc<Written> {
    for (v, range) in more {
        if !covers(all.get(&v).map_or(&[], |ranges| ranges), range) {
            add(Rc::make_mut(&mut all), v, range);
        }
    }
    all
}

fn covers(ranges: &[Range], range: Range) -> bool {
    let end = |(start, n): Range| start.saturating_add(n);
    ranges.iter().any(|&r| r.0 <= range.0 && end(range) <= end(r))
}

/// For each continuation, the free values through which it, or a continuation that it refers to, may write or give an
/// address away.
///
/// Written values propagate from a continuation to all that refer to it, as long as they are free there. A continuation
/// that computes such a value gets the values that it is computed from instead.
fn all_writes(w: &World, facts: &Facts) -> SideTable<Cont, Written> {
    let mut shapes = Shapes::default();
    let referrers = facts.nest.referrers();
    let mut written: SideTable<Cont, Written> = SideTable::default();
    let mut work: Vec<(Cont, Val, Range)> = Vec::new();
    for &k in &facts.nest.conts {
        own_writes(w, facts, &mut shapes, k, |v, range| work.push((k, v, range)));
        while let Some((k, mut v, mut range)) = work.pop() {
            loop {
                if facts.nest.free(k).binary_search(&v).is_ok()
                    && let Some(new) = add(&mut written[k], v, range)
                {
                    work.extend(referrers[k].iter().map(|&r| (r, v, new)));
                }
                match w.node(v) {
                    Node::Op(op @ (Op::Lea | Op::Bitcast | Op::Extract)) => {
                        range = around(w, &mut shapes, op, w.args(v), range);
                        v = w.args(v)[0];
                    }
                    _ => break,
                }
            }
        }
    }
    written
}

/// Adds a range, or the whole object if it has too many ranges. Returns the added range, if it is new.
fn add(written: &mut Written, v: Val, range: Range) -> Option<Range> {
    let ranges = written.entry(v).or_default();
    if covers(ranges, range) {
        return None;
    }
    if range == WHOLE || ranges.len() == MAX_RANGES {
        *ranges = vec![WHOLE];
        return Some(WHOLE);
    }
    ranges.push(range);
    Some(range)
}

/// Maps a range of the object that the result of an operation points to, to the range of the object that its first
/// operand points to.
fn around(w: &World, shapes: &mut Shapes, op: Op, args: &[Val], (start, n): Range) -> Range {
    if (start, n) == WHOLE {
        return WHOLE;
    }
    let pointee = w.types.pointee(w.ty(args[0]));
    match (op, pointee, pointee.map(|ty| w.types.kind(ty))) {
        (Op::Lea, Some(ty), Some(TyKind::Struct(_) | TyKind::Tuple(_) | TyKind::Array(..))) => {
            match w.as_lit(args[1]).and_then(|i| shapes.part_start(w, ty, i)) {
                Some(first) => (first.saturating_add(start), n),
                None => (0, shapes.leaves(w, ty)),
            }
        }
        // Extracts the address of a new variable.
        (Op::Extract, ..) if matches!(w.as_op(args[0]), Some(Op::Slot | Op::Alloc)) => (start, n),
        _ => WHOLE,
    }
}

/// Calls `add` for each value through which a continuation itself writes or gives an address away.
fn own_writes(w: &World, facts: &Facts, shapes: &mut Shapes, k: Cont, mut add: impl FnMut(Val, Range)) {
    let holds_address = |v: Val| !matches!(w.types.kind(w.ty(v)), TyKind::Prim(_) | TyKind::Mem | TyKind::Cn(_));
    for &v in facts.nest.ops(k) {
        let Some(op) = w.as_op(v) else { continue };
        match op {
            Op::Load | Op::Lea | Op::Extract | Op::Eq | Op::Ne | Op::Known => {}
            Op::Bitcast if w.types.pointee(w.ty(v)).is_some() => {}
            Op::Store => {
                let (to, val) = (w.args(v)[1], w.args(v)[2]);
                add(to, (0, shapes.leaves(w, w.ty(val))));
                if holds_address(val) {
                    add(val, WHOLE);
                }
            }
            _ => w.args(v).iter().copied().filter(|&a| holds_address(a)).for_each(|a| add(a, WHOLE)),
        }
    }
    if let Some(body) = w.body(k) {
        body.args.iter().copied().filter(|&a| holds_address(a)).for_each(|a| add(a, WHOLE));
    }
}
