//! Finds parameters whose addresses may be left in memory by a call. If a function passes the address of one of its
//! variables to such a parameter, its frame must not end before its callee in tail position has returned.

use crate::scope::Program;
use nyala_base::SideTable;
use nyala_ir::{Cont, Effect, Node, Op, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

impl Program<'_> {
    /// Whether a call may store its i-th argument in memory that is not the callee's own.
    pub(crate) fn may_store(&mut self, callee: Cont, i: usize) -> bool {
        if self.stored.is_none() {
            self.stored = Some(self.find_stored());
        }
        let stored = self.stored.as_ref();
        self.w.params(callee).get(i).is_some_and(|&p| stored.is_some_and(|stored| stored[p]))
    }

    /// Finds the parameters and local variables whose value, or contents, may be stored in memory other than the
    /// variables of the function.
    fn find_stored(&self) -> SideTable<Val, bool> {
        let (w, mut memo) = (self.w, FxHashMap::default());
        // By destination, the parameters and variables whose values flow there.
        let mut sources: SideTable<Val, Vec<Val>> = SideTable::default();
        let mut stored: SideTable<Val, bool> = SideTable::default();
        let mut work = Vec::new();
        for &k in &self.nest.conts {
            for &v in self.nest.ops(k) {
                let Some((at, written)) = w.as_op(v).and_then(|op| op.writes()) else { continue };
                let args = w.args(v);
                let from = self.addresses(args[written], &mut memo);
                let to = self.addresses(args[at], &mut memo);
                for &source in &from {
                    match to[..] {
                        [variable] if w.is_op(variable, Op::Slot) => sources[variable].push(source),
                        _ if std::mem::replace(&mut stored[source], true) => {}
                        _ => work.push(source),
                    }
                }
            }
            let Some(body) = w.body(k) else { continue };
            let Some(callee) = w.as_cont(body.callee) else { continue };
            for (&param, &arg) in w.params(callee).iter().zip(body.args.iter()) {
                sources[param].extend(self.addresses(arg, &mut memo));
            }
        }
        while let Some(v) = work.pop() {
            for &source in &sources[v] {
                if !std::mem::replace(&mut stored[source], true) {
                    work.push(source);
                }
            }
        }
        stored
    }

    /// The parameters and variables that a value is, points into, or was loaded from.
    fn addresses(&self, v: Val, memo: &mut FxHashMap<Ty, bool>) -> Vec<Val> {
        let (w, mut found) = (self.w, Vec::new());
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            match w.node(v) {
                Node::Op(Op::Slot) => found.push(v),
                // From an operation that allocates or reads memory, only the address counts.
                Node::Op(op) if op.effect() != Effect::Total => work.extend(w.args(v).get(1)),
                _ if !self.can_hold(w.ty(v), memo) || !seen.insert(v) => {}
                Node::Param(..) => found.push(v),
                Node::Op(_) => work.extend(w.args(v)),
                _ => {}
            }
        }
        found
    }
}
