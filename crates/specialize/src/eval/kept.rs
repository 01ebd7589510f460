//! What a loop, or the body of a parallel one, knows of memory: the contents of variables that are not given away, and that
//! no code reached from there writes. A table filled before a loop is so known in it.
//!
//! The code decides what is worth assuming; whether it holds is asked at each jump to the block that was built with an
//! assumption ([`Evaluator::target`]). Where it does not, another block is built.

use super::{Evaluator, StubId};
use crate::facts::Facts;
use crate::memory::{self, Memory};
use nyala_base::SideTable;
use nyala_ir::{Cont, Node, Op, TyKind, Val, World};
use rustc_hash::FxHashSet;

/// Blocks of one loop with different assumptions.
const MAX_ASSUMPTIONS: usize = 4;
/// Closures looked at; where there are more, nothing is known.
const MAX_CLOSURES: usize = 1000;

impl Evaluator<'_> {
    /// The block to jump to for a stub with this memory; the stub, if it is to be requested.
    pub(super) fn target(&mut self, s: StubId, memory: &Memory) -> (Cont, Option<StubId>) {
        let mut at = Some(s);
        while let Some(s) = at {
            if let Some((assumed, block)) = self.stubs[s].assumed.as_deref()
                && memory.implies(assumed)
            {
                return (*block, None);
            }
            at = self.stubs[s].alias;
        }
        let s = self.live(s);
        (self.stubs[s].cont, Some(s))
    }

    /// Of `memory`, what code reached from a stub leaves alone.
    pub(super) fn kept(&mut self, s: StubId, memory: &Memory) -> Memory {
        if memory.is_empty() {
            return Memory::default();
        }
        match self.writes(s) {
            Some(written) => memory.without(&written),
            None => Memory::default(),
        }
    }

    /// How many blocks there are of the stub that this one stands in for.
    pub(super) fn may_assume(&self, s: StubId) -> bool {
        let stub = &self.stubs[s];
        let first = self.memo.get(&(stub.source, stub.mask, stub.vals.clone())).copied();
        let (mut n, mut at) = (0, first);
        while let Some(s) = at {
            n += self.stubs[s].assumed.is_some() as usize;
            at = self.stubs[s].alias;
        }
        n < MAX_ASSUMPTIONS
    }

    /// The objects that code reached from a closure may write or give away. `None`: too much code.
    fn writes(&mut self, s: StubId) -> Option<FxHashSet<Val>> {
        let mut written = FxHashSet::default();
        let mut seen: FxHashSet<StubId> = FxHashSet::from_iter([s]);
        let mut work = vec![s];
        while let Some(s) = work.pop() {
            if seen.len() > MAX_CLOSURES {
                return None;
            }
            let (source, vals) = (self.stubs[s].source, self.stubs[s].vals.clone());
            let roots = &self.facts.written.get_or_init(|| all_writes(self.source, self.facts))[source];
            let free = self.facts.nest.free(source);
            for (i, &v) in vals.iter().enumerate() {
                // Behind the captured values come the specialized parameters.
                let is_written = free.get(i).is_none_or(|f| roots.contains(f));
                let mut parts = vec![v];
                let mut seen_parts: FxHashSet<Val> = FxHashSet::default();
                while let Some(v) = parts.pop() {
                    if !seen_parts.insert(v) {
                        continue;
                    }
                    if let Some(inner) = self.stub_of_val(v) {
                        if self.stubs[inner].holds_address && seen.insert(inner) {
                            work.push(inner);
                        }
                        continue;
                    }
                    match self.dst.types.kind(self.dst.ty(v)) {
                        TyKind::Ptr { .. } if is_written => drop(written.insert(memory::base_of(&self.dst, v))),
                        TyKind::Ptr { .. } | TyKind::Prim(_) => {}
                        _ => parts.extend(self.dst.args(v)),
                    }
                }
            }
        }
        Some(written)
    }
}

/// For each continuation the free values through which it, or what it refers to, may write, or give an address away.
///
/// Values go up from what writes through them to all that refers to it, as far as they are free there, and where they are
/// computed on to what they are computed from.
fn all_writes(w: &World, facts: &Facts) -> SideTable<Cont, FxHashSet<Val>> {
    let mut referrers: SideTable<Cont, Vec<Cont>> = SideTable::default();
    for &k in &facts.nest.conts {
        facts.nest.references(k).iter().for_each(|&r| referrers[r].push(k));
    }
    let mut written: SideTable<Cont, FxHashSet<Val>> = SideTable::default();
    let mut work: Vec<(Cont, Val)> = Vec::new();
    for &k in &facts.nest.conts {
        own_writes(w, facts, k, |v| work.push((k, v)));
        while let Some((k, mut v)) = work.pop() {
            loop {
                if facts.nest.free(k).binary_search(&v).is_ok() && written[k].insert(v) {
                    work.extend(referrers[k].iter().map(|&r| (r, v)));
                }
                match w.node(v) {
                    Node::Op(Op::Lea | Op::Bitcast | Op::Extract) => v = w.args(v)[0],
                    _ => break,
                }
            }
        }
    }
    written
}

/// What a continuation itself writes to or gives away.
fn own_writes(w: &World, facts: &Facts, k: Cont, mut add: impl FnMut(Val)) {
    let holds_address = |v: Val| !matches!(w.types.kind(w.ty(v)), TyKind::Prim(_) | TyKind::Mem | TyKind::Cn(_));
    for &v in facts.nest.ops(k) {
        let Some(op) = w.as_op(v) else { continue };
        match op {
            Op::Load | Op::Lea | Op::Extract | Op::Eq | Op::Ne | Op::Known => {}
            Op::Bitcast if w.types.pointee(w.ty(v)).is_some() => {}
            _ => w.args(v).iter().copied().filter(|&a| holds_address(a)).for_each(&mut add),
        }
    }
    if let Some(body) = w.body(k) {
        body.args.iter().copied().filter(|&a| holds_address(a)).for_each(&mut add);
    }
}
