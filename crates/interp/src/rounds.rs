//! Finds continuations that must be functions because they may be entered in a later iteration than the one that made
//! them.
//!
//! Blocks share the frame of their function, in which each value has one place: a later iteration of a loop overwrites
//! the values of an earlier one. A continuation that is only a return continuation or a jump target is entered in the
//! iteration that made it. One that is stored, passed to code that may store it, or captured by another function may be
//! entered in any later iteration, and must see the values of its own. If it needs any such value, it is made a
//! function, which captures them. Continuations that it leads to become functions too, if need be.
//!
//! Return continuations are recognized by convention: the last argument of a call of a continuation whose last
//! parameter is one. At a join, such a parameter may also be a variable that holds a continuation. Then it is used in
//! another way than being called or passed on as a last argument.

use crate::scope::Program;
use nyala_base::{SideTable, graph};
use nyala_ir::{Builtin, Cont, Node, Op, Ty, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};

/// How a body uses a continuation or parameter.
#[derive(Clone, Copy)]
enum Use {
    Callee,
    /// As the last argument of a call of this value.
    Last(Val),
    Value,
}

/// Continuations and continuation types whose last parameter is used for more than returning.
#[derive(Default)]
struct Keepers {
    conts: SideTable<Cont, bool>,
    types: FxHashSet<Ty>,
}

impl Keepers {
    fn keeps(&self, w: &World, callee: Val) -> bool {
        match w.node(callee) {
            Node::Cont(c) => self.conts[c],
            _ => self.types.contains(&w.ty(callee)),
        }
    }
}

impl Program<'_> {
    /// Makes these continuations functions.
    pub(super) fn find_rounds(&mut self) {
        let uses = self.uses();
        let keepers = self.keepers(&uses);
        // Each iteration turns some blocks into functions.
        loop {
            let mut values: FxHashMap<Cont, Vec<Cont>> = FxHashMap::default();
            for &(k, v, how) in &uses {
                let Node::Cont(c) = self.w.node(v) else { continue };
                if self.is_func(c) {
                    continue;
                }
                let f = self.function(c);
                let is_plain = match how {
                    Use::Callee => true,
                    Use::Last(callee) => !keepers.keeps(self.w, callee),
                    Use::Value => false,
                };
                if !is_plain || self.function(k) != f {
                    values.entry(f).or_default().push(c);
                }
            }
            let mut found = Vec::new();
            for (f, mut values) in values {
                values.sort_unstable();
                values.dedup();
                self.add_rounds(f, &values, &mut found);
            }
            if found.is_empty() {
                return;
            }
            self.make_functions(&found);
        }
    }

    /// Adds to `found` those blocks in `values` that need a value which may be computed again.
    fn add_rounds(&mut self, f: Cont, values: &[Cont], found: &mut Vec<Cont>) {
        let (blocks, succs) = self.blocks(f);
        let position: FxHashMap<Cont, usize> = blocks.iter().enumerate().map(|(i, &k)| (k, i)).collect();
        let mut again = graph::in_cycles(&succs, 0);
        let entered: Vec<usize> = values.iter().filter_map(|c| position.get(c).copied()).collect();
        for (n, is_reached) in graph::reachable(&succs, &entered).into_iter().enumerate() {
            again[n] |= is_reached;
        }
        for &c in values {
            let is_of_round = |&v: &Val| {
                let owner = self.nest.owner(v).and_then(|k| position.get(&k));
                self.w.ty(v) != self.w.types.mem() && owner.is_some_and(|&n| again[n])
            };
            if self.nest.free(c).iter().any(is_of_round) {
                found.push(c);
            }
        }
    }

    /// The uses of continuations, and of parameters that hold them, in all bodies.
    fn uses(&self) -> Vec<(Cont, Val, Use)> {
        let w = self.w;
        let mut uses = Vec::new();
        let mut work: Vec<(Val, Use)> = Vec::new();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        for &k in &self.nest.conts {
            let Some(body) = w.body(k) else { continue };
            let callee = strip(w, body.callee);
            let is_branch = w.node(callee) == Node::Builtin(Builtin::Branch);
            let returns = matches!(w.node(callee), Node::Builtin(_)) || self.returns(w.ty(callee));
            work.push((callee, Use::Callee));
            for (i, &a) in body.args.iter().enumerate() {
                let how = match () {
                    () if is_branch => Use::Callee,
                    () if returns && i + 1 == body.args.len() => Use::Last(callee),
                    () => Use::Value,
                };
                work.push((strip(w, a), how));
            }
            work.extend(self.nest.ops(k).iter().flat_map(|&v| w.args(v)).map(|&a| (strip(w, a), Use::Value)));
            seen.clear();
            while let Some((v, how)) = work.pop() {
                match w.node(v) {
                    Node::Cont(_) => uses.push((k, v, how)),
                    Node::Param(..) if w.types.has_function(w.ty(v)) => uses.push((k, v, how)),
                    Node::Op(_) if self.nest.owner(v).is_none() && seen.insert(v) => {
                        work.extend(w.args(v).iter().map(|&a| (strip(w, a), Use::Value)));
                    }
                    _ => {}
                }
            }
        }
        uses
    }

    fn keepers(&self, uses: &[(Cont, Val, Use)]) -> Keepers {
        let w = self.w;
        // The continuation whose last parameter `v` is.
        let whose = |v: Val| match w.node(v) {
            Node::Param(k, i) if i as usize + 1 == w.params(k).len() && self.returns(w.cont(k).ty) => Some(k),
            _ => None,
        };
        let mut keepers = Keepers::default();
        loop {
            let mut is_done = true;
            // Callers come first.
            for &(_, v, how) in uses.iter().rev() {
                let Some(k) = whose(v) else { continue };
                let keeps = match how {
                    Use::Callee => false,
                    Use::Last(callee) => keepers.keeps(w, callee),
                    Use::Value => true,
                };
                if keeps && !std::mem::replace(&mut keepers.conts[k], true) {
                    keepers.types.insert(w.cont(k).ty);
                    is_done = false;
                }
            }
            if is_done {
                return keepers;
            }
        }
    }
}

/// The operand below all annotations for the partial evaluator.
fn strip(w: &World, mut v: Val) -> Val {
    while matches!(w.as_op(v), Some(Op::Hlt | Op::Unfold | Op::Run)) {
        v = w.args(v)[0];
    }
    v
}
