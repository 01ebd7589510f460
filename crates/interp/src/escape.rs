//! Parameters whose addresses calls may leave in memory: who passes the address of a variable of its own to one of these
//! must not end before what it calls then has returned.

use crate::scope::Program;
use nyala_base::SideTable;
use nyala_ir::{Cont, Effect, Node, Op, Ty, Val};
use rustc_hash::{FxHashMap, FxHashSet};

impl Program<'_> {
    /// Whether the i-th argument of a call may come into memory that is not the callee's.
    pub(crate) fn may_store(&mut self, callee: Cont, i: usize) -> bool {
        if self.stored.is_none() {
            self.stored = Some(self.find_stored());
        }
        let stored = self.stored.as_ref();
        self.w.params(callee).get(i).is_some_and(|&p| stored.is_some_and(|stored| stored[p]))
    }

    /// Parameters, and local variables, of which the value or what they hold may come into memory that is no variable of
    /// the function.
    fn find_stored(&self) -> SideTable<Val, bool> {
        let (w, mut memo) = (self.w, FxHashMap::default());
        // Where to from where.
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

    /// The parameters and variables that a value is, points into, or was read from.
    fn addresses(&self, v: Val, memo: &mut FxHashMap<Ty, bool>) -> Vec<Val> {
        let (w, mut found) = (self.w, Vec::new());
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            match w.node(v) {
                Node::Op(Op::Slot) => found.push(v),
                // Of what makes memory, or reads it: the address.
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
