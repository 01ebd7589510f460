//! Whether lanes meet behind a call: whether an operation across lanes, such as a barrier, can be reached from its callee.
//!
//! Lanes that have diverged reconverge where their paths join in the source. A join that is specialized in a function has
//! several copies, in which lanes would not meet. So joins from which such an operation can be reached are not
//! specialized. What can be reached is asked for each call: the operation may be in the callee's own code
//! ([`leads_to_exchange`](crate::facts::Facts::leads_to_exchange)), or in a function that it captures or is given, as it is or
//! in a record. So a program may have both kinds of calls of one function, and what becomes of one does not depend on the other.
//!
//! A function that is only passed on to a launch, `vectorize` or another thread runs there: it does not count
//! ([`exchanges`](crate::exchanges)).
//! A function that is loaded from memory counts, unless it comes from a static without such functions.

use super::Evaluator;
use super::state::StubId;
use crate::exchanges::{From, Path, Use, exchanges, uses};
use nyala_base::SideTable;
use nyala_ir::{Cont, Node, Op, Val};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// What was found so far.
#[derive(Default)]
pub(super) struct Meetings {
    uses: SideTable<Cont, Option<Rc<[Use]>>>,
    /// Whether an operation across lanes can be reached from a closure, by its residual continuation.
    known: SideTable<Cont, Option<bool>>,
}

impl Evaluator<'_> {
    /// Whether lanes meet in `k`, called with these captured values and arguments, or behind it.
    pub(super) fn lanes_meet(&mut self, k: Cont, free: &[Val], args: &[Val]) -> bool {
        if self.facts.leads_to_exchange[k] {
            return true;
        }
        let uses = self.uses(k);
        if loads(&uses) {
            return true;
        }
        let given = |u: &Use| match u.from {
            From::Free(i) => free.get(i).map(|&v| (v, u.path.clone())),
            From::Param(i) => args.get(i).map(|&v| (v, u.path.clone())),
            From::Memory => None,
        };
        self.reach_exchange(uses.iter().filter_map(given).collect())
    }

    /// Whether copies of the join `k`, called with these captured values and arguments, would part lanes that meet behind it.
    pub(super) fn parts_lanes(&mut self, k: Cont, free: &[Val], args: &[Val]) -> bool {
        self.facts.may_exchange[k] && self.facts.is_join(self.source, k) && self.lanes_meet(k, free, args)
    }

    /// Whether lanes meet in the code of a closure, or behind it.
    pub(super) fn lanes_meet_in(&mut self, s: StubId) -> bool {
        let cont = self.stubs[s].cont;
        let v = self.dst.cont_val(cont);
        self.facts.has_exchanges && self.reach_exchange(vec![(v, Path::new())])
    }

    fn reach_exchange(&mut self, mut work: Vec<(Val, Path)>) -> bool {
        let mut seen: FxHashSet<(Val, Path)> = FxHashSet::default();
        let mut closures: Vec<Cont> = Vec::new();
        while let Some((v, path)) = work.pop() {
            if !self.dst.types.has_function(self.dst.ty(v)) || !seen.insert((v, path.clone())) {
                continue;
            }
            if let Some(s) = self.stub_of_val(v) {
                let (source, cont) = (self.stubs[s].source, self.stubs[s].cont);
                match self.meetings.known[cont] {
                    Some(true) => return true,
                    Some(false) => continue,
                    None if self.facts.leads_to_exchange[source] => {
                        self.meetings.known[cont] = Some(true);
                        return true;
                    }
                    None => closures.push(cont),
                }
                let (vals, mask) = (self.stubs[s].vals.clone(), self.stubs[s].mask);
                let n_free = self.facts.nest.free(source).len();
                let uses = self.uses(source);
                if loads(&uses) {
                    self.meetings.known[cont] = Some(true);
                    return true;
                }
                for u in uses.iter() {
                    let at = match u.from {
                        From::Free(i) => Some(i),
                        From::Param(i) if i < 64 && mask >> i & 1 == 1 => {
                            Some(n_free + (mask & ((1 << i) - 1)).count_ones() as usize)
                        }
                        From::Param(_) | From::Memory => None,
                    };
                    work.extend(at.and_then(|at| vals.get(at)).map(|&v| (v, u.path.clone())));
                }
                continue;
            }
            self.add_sources(v, path, &mut work);
            if self.dst.as_cont(v).is_some_and(|k| exchanges(&self.dst, k)) {
                return true;
            }
        }
        closures.into_iter().for_each(|k| self.meetings.known[k] = Some(false));
        false
    }

    /// Adds what the part of a residual value at a path is made of.
    fn add_sources(&self, v: Val, mut path: Path, work: &mut Vec<(Val, Path)>) {
        let dst = &self.dst;
        let args = dst.args(v);
        match dst.node(v) {
            Node::Global(g) => work.extend(dst.global(g).init.map(|init| (init, Path::new()))),
            Node::Op(Op::Extract) => {
                match dst.as_lit(args[1]) {
                    Some(i) => path.insert(0, i),
                    None => path.clear(),
                }
                work.push((args[0], path));
            }
            Node::Op(Op::Insert) => match (dst.as_lit(args[1]), path.first()) {
                (Some(i), Some(&first)) if i == first => work.push((args[2], path[1..].into())),
                (Some(_), Some(_)) => work.push((args[0], path)),
                _ => work.extend([args[0], args[2]].map(|v| (v, Path::new()))),
            },
            Node::Op(Op::Tuple | Op::Array) if !path.is_empty() => {
                let part = usize::try_from(path[0]).ok().and_then(|i| args.get(i));
                work.extend(part.map(|&v| (v, path[1..].into())));
            }
            Node::Op(Op::Select) => work.extend(args[1..].iter().map(|&v| (v, path.clone()))),
            Node::Op(_) => work.extend(args.iter().map(|&v| (v, Path::new()))),
            _ => {}
        }
    }

    /// The functions from outside that are used in `k`, or in code in it.
    fn uses(&mut self, k: Cont) -> Rc<[Use]> {
        if let Some(uses) = &self.meetings.uses[k] {
            return uses.clone();
        }
        let uses: Rc<[Use]> = uses(self.source, self.facts, k).into();
        self.meetings.uses[k] = Some(uses.clone());
        uses
    }
}

fn loads(uses: &[Use]) -> bool {
    uses.iter().any(|u| u.from == From::Memory)
}
