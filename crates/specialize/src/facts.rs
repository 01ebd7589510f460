//! Facts about the source graph that the evaluator asks for, computed once.

use crate::exchanges::{exchanges, run_here, runs_elsewhere};
use crate::memory::Written;
use nyala_base::{Id, Lists, SideTable, graph};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Linkage, Node, Op, Ty, TyKind, Val, World};
use rustc_hash::FxHashSet;
use std::cell::OnceCell;

/// Facts about the continuations of a source graph.
pub struct Facts {
    pub nest: Nest,
    /// Whether a cycle of references leads through the continuation, but through no binder of its free values
    /// (`docs/design/specializer.md`, Recursive continuations).
    pub is_recursive: SideTable<Cont, bool>,
    /// Position in the postorder of the reference graph, arguments visited before callees: a caller has a greater
    /// position than its callee.
    pub postorder: SideTable<Cont, u32>,
    /// Bit mask of the parameters that are specialized because they are functions (`001` 4.3).
    pub automatic: SideTable<Cont, u64>,
    /// For the header of a loop whose condition depends on parameters of an enclosing function: that function. A call
    /// of the function by `@@` unrolls the loop as long as the condition is known (`001` 4.6.1).
    pub loop_of: SideTable<Cont, Option<Cont>>,
    /// The innermost function around a continuation, itself included. A function is a continuation with a parameter
    /// that is or contains a function.
    pub function: SideTable<Cont, Option<Cont>>,
    /// Functions that are some loop's `loop_of`.
    pub has_loop: SideTable<Cont, bool>,
    /// Continuations from which one with local variables in memory can be reached.
    pub has_variables: SideTable<Cont, bool>,
    pub stores_variables: SideTable<Cont, bool>,
    /// The program has operations across lanes.
    pub has_exchanges: bool,
    /// For functions, the parameters that the same lanes may call, a bit each; if the program has operations across lanes.
    pub runs_here: SideTable<Cont, Option<u64>>,
    /// Functions from which an operation across lanes can be reached.
    pub exchanges: SideTable<Cont, bool>,
    /// Continuations from whose code an operation across lanes can be reached.
    pub leads_to_exchange: SideTable<Cont, bool>,
    /// Continuations from which one can be reached through functions that they capture or are given, if these lead there
    /// (`eval/meeting.rs`).
    pub may_exchange: SideTable<Cont, bool>,
    /// Blocks that never return to their function and from which a panic can be reached. Copies for different calls stay apart, so
    /// that the panic tells the calls that led to it.
    pub tells_calls: SideTable<Cont, bool>,
    /// Computed when `eval/kept.rs` first asks for it.
    pub written: OnceCell<SideTable<Cont, Written>>,
    /// Computed when `eval/computed.rs` first asks for it.
    pub traits: OnceCell<SideTable<Cont, Traits>>,
}

/// Properties that speak for or against computing the calls of a continuation as a whole.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Traits {
    /// An operation may be reached that the interpreter does not support, or that it does not treat as the evaluator
    /// does.
    pub is_open: bool,
    /// A call that filters leave residual may be reached.
    pub is_partial: bool,
    /// A recursive continuation may be reached.
    pub has_loop: bool,
}

impl Facts {
    pub fn new(w: &World, roots: &[Cont]) -> Facts {
        // A function that is referenced only by a global may be loaded from there and called.
        let (nest, _) = Nest::of_program(w, roots);
        let mut facts = Facts {
            is_recursive: SideTable::default(),
            postorder: SideTable::default(),
            automatic: SideTable::default(),
            loop_of: SideTable::default(),
            has_loop: SideTable::default(),
            has_variables: SideTable::default(),
            stores_variables: SideTable::default(),
            has_exchanges: false,
            runs_here: SideTable::default(),
            exchanges: SideTable::default(),
            may_exchange: SideTable::default(),
            leads_to_exchange: SideTable::default(),
            function: SideTable::default(),
            tells_calls: SideTable::default(),
            written: OnceCell::new(),
            traits: OnceCell::new(),
            nest,
        };
        let refs = facts.nest.all_references().clone();
        for &k in &facts.nest.conts {
            facts.automatic[k] = automatic(w, &facts.nest, k);
        }
        let order: Vec<Cont> = roots.iter().chain(&facts.nest.conts).copied().collect();
        facts.number(&order, &refs);
        facts.find_functions(w);
        facts.find_recursive(&refs);
        facts.find_loops(w);
        let referrers = facts.nest.referrers();
        facts.find_variables(w, &referrers);
        facts.find_exchanges(w, &referrers);
        facts.find_panics(w, &referrers);
        facts
    }

    /// Finds operations across lanes, and restricts specialization around them; the reasons are in `eval/meeting.rs`. Nor
    /// does `@@` unroll a loop that leads to such an operation, if it goes on in several places: lanes may take part in
    /// different iterations then. `Evaluator::ticket` handles two calls in which lanes would meet too early.
    fn find_exchanges(&mut self, w: &World, referrers: &Lists<Cont, Cont>) {
        let mut work: Vec<Cont> = self.nest.conts.iter().copied().filter(|&k| exchanges(w, k)).collect();
        if work.is_empty() {
            return;
        }
        self.has_exchanges = true;
        // Callees come first; what is in a cycle counts as run here.
        let mut functions: Vec<Cont> = self.nest.conts.iter().copied().filter(|&k| is_function(w, k)).collect();
        functions.sort_by_key(|&k| self.postorder[k]);
        for k in functions.into_iter().filter(|&k| w.body(k).is_some()) {
            self.runs_here[k] = Some(run_here(w, self, k));
        }
        while let Some(k) = work.pop() {
            if !std::mem::replace(&mut self.leads_to_exchange[k], true) {
                work.extend(referrers[k].iter().filter(|&&r| !runs_elsewhere(w, self, r, k)));
            }
        }
        let takes_functions = |k: Cont| {
            let (ret, others) = w.params(k).split_last().map_or((None, &[][..]), |(r, others)| (Some(*r), others));
            let is_ret = |p: Val| is_return(w, p);
            others.iter().chain(ret.iter().filter(|&&p| !is_ret(p))).any(|&p| w.types.has_function(w.ty(p)))
                || self.nest.free(k).iter().any(|&v| w.types.has_function(w.ty(v)))
        };
        let takes_functions: Vec<Cont> =
            self.nest.conts.iter().copied().filter(|&k| w.body(k).is_some() && takes_functions(k)).collect();
        for &k in &self.nest.conts {
            self.exchanges[k] = self.leads_to_exchange[k] && is_function(w, k) && w.body(k).is_some();
            if self.leads_to_exchange[k] && self.goes_on_in_several_places(&referrers[k], k) {
                self.loop_of[k] = None;
            }
            if self.leads_to_exchange[k] && self.is_join(w, k) {
                self.automatic[k] = 0;
            }
        }
        for k in takes_functions {
            // Tickets for the calls of a recursion would peel off its first round.
            let is_asked = is_function(w, k) && !self.is_recursive[k] || self.automatic[k] != 0 && self.is_join(w, k);
            self.may_exchange[k] = is_asked && !self.leads_to_exchange[k];
        }
    }

    /// Whether paths may join in a continuation: it returns to nobody. One that captures nothing is a function, which
    /// returns a function.
    pub fn is_join(&self, w: &World, k: Cont) -> bool {
        let returns = w.params(k).last().is_some_and(|&p| is_return(w, p));
        !self.is_recursive[k] && !returns && !self.nest.free(k).is_empty()
    }

    /// Whether a loop goes on in several places, among those that refer to its header.
    fn goes_on_in_several_places(&self, referrers: &[Cont], header: Cont) -> bool {
        let is_inside = |&&k: &&Cont| {
            let mut around = Some(k);
            while around.is_some_and(|k| k != header) {
                around = around.and_then(|k| self.nest.parent(k));
            }
            around.is_some()
        };
        referrers.iter().filter(is_inside).count() > 1
    }

    fn find_panics(&mut self, w: &World, referrers: &Lists<Cont, Cont>) {
        let panics = |k: Cont| {
            let callee = w.body(k).and_then(|body| w.as_cont(body.callee));
            let linkage = callee.map(|callee| &*w.cont(callee).linkage);
            matches!(linkage, Some(Linkage::Foreign(symbol)) if symbol == "nyala_panic_at")
        };
        let mut work: Vec<Cont> = self.nest.conts.iter().copied().filter(|&k| panics(k)).collect();
        while let Some(k) = work.pop() {
            let leaves = self.nest.free(k).iter().any(|&v| w.types.has_function(w.ty(v)));
            if !leaves && !is_function(w, k) && !self.is_recursive[k] && !self.tells_calls[k] {
                self.tells_calls[k] = true;
                work.extend(&referrers[k]);
            }
        }
    }

    fn find_variables(&mut self, w: &World, referrers: &Lists<Cont, Cont>) {
        let (mut has, mut stores) = (Vec::new(), Vec::new());
        for &k in &self.nest.conts {
            for &v in self.nest.ops(k) {
                let given = match w.as_op(v) {
                    Some(Op::Slot) => {
                        has.push(k);
                        continue;
                    }
                    Some(Op::Load | Op::Lea | Op::Bitcast | Op::Extract | Op::Eq | Op::Ne | Op::Known) => continue,
                    Some(Op::Store) => &w.args(v)[2..],
                    _ => w.args(v),
                };
                // A function value may have captured the address of a variable, and a parameter may be such an address.
                let may_be = |a: Val| match w.types.kind(w.ty(a)) {
                    TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem => false,
                    TyKind::Ptr { .. } if w.is_op(v, Op::Store) => {
                        !matches!(base_of(w, a), Node::Global(_) | Node::Lit(_))
                    }
                    TyKind::Ptr { .. } => base_of(w, a) == Node::Op(Op::Slot),
                    _ if w.is_op(v, Op::Store) => !is_data(w, w.ty(a)),
                    _ => w.types.has_function(w.ty(a)),
                };
                if given.iter().any(|&a| may_be(a)) {
                    stores.push(k);
                }
            }
        }
        // Any code that a function can reach may be unfolded in it.
        for (found, mut work) in [(&mut self.has_variables, has), (&mut self.stores_variables, stores)] {
            while let Some(k) = work.pop() {
                if !std::mem::replace(&mut found[k], true) {
                    work.extend(&referrers[k]);
                }
            }
        }
    }

    fn number(&mut self, roots: &[Cont], refs: &Lists<Cont, Cont>) {
        let mut visited: SideTable<Cont, bool> = SideTable::default();
        let mut next = 1;
        for &root in roots {
            let mut stack = vec![(root, false)];
            while let Some((k, done)) = stack.pop() {
                if done {
                    self.postorder[k] = next;
                    next += 1;
                } else if !std::mem::replace(&mut visited[k], true) {
                    stack.push((k, true));
                    // `refs` has the callee first; the arguments go on top of it.
                    stack.extend(refs[k].iter().filter(|&&r| !visited[r]).map(|&r| (r, false)));
                }
            }
        }
    }

    fn find_functions(&mut self, w: &World) {
        for i in 0..self.nest.conts.len() {
            let mut path = Vec::new();
            let mut at = Some(self.nest.conts[i]);
            while let Some(k) = at
                && self.function[k].is_none()
                && !is_function(w, k)
            {
                path.push(k);
                at = self.nest.parent(k);
            }
            let found = at.map(|k| self.function[k].unwrap_or(k));
            for k in path.into_iter().chain(at) {
                self.function[k] = found;
            }
        }
    }

    fn find_loops(&mut self, w: &World) {
        let callee = |k: Cont| w.as_cont(w.body(k)?.callee);
        let pairs: Vec<(Cont, Cont)> = self.nest.conts.iter().filter_map(|&k| Some((callee(k)?, k))).collect();
        let entries = Lists::of_pairs(&pairs);
        let mut on_function = OnFunction::default();
        for i in 0..self.nest.conts.len() {
            let header = self.nest.conts[i];
            if !self.is_recursive[header] || is_function(w, header) || !w.cont(header).filter.is_empty() {
                continue;
            }
            let Some(cond) = loop_condition(w, header) else { continue };
            // The values that the condition is computed from, and the initial values of the loop's parameters among
            // them.
            let mut depends = false;
            let mut seen: FxHashSet<Val> = FxHashSet::default();
            let mut work = vec![cond];
            while let Some(v) = work.pop() {
                if self.nest.owner(v) != Some(header) {
                    depends |= on_function.of(w, v);
                } else if seen.insert(v) {
                    work.extend(w.args(v));
                    let Node::Param(_, idx) = w.node(v) else { continue };
                    if w.ty(v) == w.types.mem() {
                        continue;
                    }
                    let starts = entries[header].iter().filter(|&&e| e != header).filter_map(|&e| w.body(e));
                    depends |= starts.into_iter().any(|body| on_function.of(w, body.args[idx as usize]));
                }
            }
            if let Some(k) = self.function[header].filter(|_| depends) {
                self.loop_of[header] = Some(k);
                self.has_loop[k] = true;
            }
        }
    }

    /// Finds recursive continuations by peeling headers off strongly connected components, level by level. A header is
    /// a continuation whose binders all lie outside the component. It is recursive: the component has a cycle through
    /// it, and contains none of its binders. If some headers are entered from outside the component, only these count:
    /// the blocks of a loop's body are not recursive because the loop's header is.
    fn find_recursive(&mut self, refs: &Lists<Cont, Cont>) {
        let mut level: SideTable<Cont, u32> = SideTable::default();
        let mut sets: Vec<Vec<Cont>> = vec![self.nest.conts.clone()];
        let mut next_level = 0;
        let mut entered: SideTable<Cont, bool> = SideTable::default();
        let mut search = graph::Components::default();
        // The number of each continuation's component in the current set, counted from 1.
        let mut component_of: SideTable<Cont, usize> = SideTable::default();
        while let Some(set) = sets.pop() {
            next_level += 1;
            for &k in &set {
                level[k] = next_level;
            }
            let in_set = |k: Cont| level[k] == next_level;
            let nodes: Vec<usize> = set.iter().map(|k| k.idx()).collect();
            let reference = |k: usize, i: usize| refs[Cont::from_idx(k)].get(i).map(|r| r.idx());
            let components = search.find(&nodes, reference, |k| in_set(Cont::from_idx(k)));
            let to_conts = |component: Vec<usize>| component.into_iter().map(Cont::from_idx).collect();
            let components: Vec<Vec<Cont>> = components.into_iter().map(to_conts).collect();
            for (i, component) in components.iter().enumerate() {
                component.iter().for_each(|&k| component_of[k] = i + 1);
            }
            for &k in &set {
                for &r in refs[k].iter().filter(|&&r| in_set(r) && component_of[r] != component_of[k]) {
                    entered[r] = true;
                }
            }
            for component in components {
                let members: FxHashSet<Cont> = component.iter().copied().collect();
                let is_cycle = component.len() > 1 || refs[component[0]].contains(&component[0]);
                if !is_cycle {
                    continue;
                }
                let binders_outside = |&k: &Cont| {
                    self.nest.free(k).iter().all(|&v| self.nest.owner(v).is_none_or(|o| !members.contains(&o)))
                };
                let mut headers: Vec<Cont> = component.iter().copied().filter(binders_outside).collect();
                if headers.iter().any(|&k| entered[k]) {
                    headers.retain(|&k| entered[k]);
                }
                for &k in &headers {
                    self.is_recursive[k] = true;
                    level[k] = 0;
                    refs[k].iter().for_each(|&r| entered[r] = true);
                }
                let rest: Vec<Cont> = component.iter().copied().filter(|&k| level[k] != 0).collect();
                if !rest.is_empty() && !headers.is_empty() {
                    sets.push(rest);
                }
            }
        }
    }
}

/// Whether a continuation is a function: some parameter is or contains a function.
pub fn is_function(w: &World, k: Cont) -> bool {
    w.params(k).iter().any(|&p| w.types.has_function(w.ty(p)))
}

/// Whether a type is made of numbers and vectors only: primitive types, vectors, and arrays, structs and tuples of
/// these.
pub fn is_data(w: &World, ty: Ty) -> bool {
    // A type may have the same part in many places.
    let mut seen: FxHashSet<Ty> = FxHashSet::default();
    let mut work = vec![ty];
    while let Some(ty) = work.pop() {
        match *w.types.kind(ty) {
            _ if !seen.insert(ty) => {}
            TyKind::Prim(_) | TyKind::Vector(..) => {}
            TyKind::Array(elem, _) => work.push(elem),
            TyKind::Struct(_) | TyKind::Tuple(_) => {
                work.extend((0..w.types.n_parts(ty).unwrap_or(0)).filter_map(|i| w.types.part(ty, i)));
            }
            _ => return false,
        }
    }
    true
}

/// Whether a parameter is a continuation that a function returns to.
pub fn is_return(w: &World, param: Val) -> bool {
    let params = w.types.cn_params(w.ty(param));
    params.is_some_and(|params| params.iter().all(|&t| !w.types.has_function(t)))
}

/// The condition of the branch that ends a continuation. `None` if it does not end with a branch.
pub fn loop_condition(w: &World, k: Cont) -> Option<Val> {
    let body = w.body(k)?;
    (w.node(body.callee) == Node::Builtin(nyala_ir::Builtin::Branch)).then(|| body.args[1])
}

/// The node that an address is computed from.
fn base_of(w: &World, v: Val) -> Node {
    let mut base = v;
    while let Some(Op::Lea | Op::Bitcast | Op::Extract) = w.as_op(base) {
        base = w.args(base)[0];
    }
    w.node(base)
}

/// Memoizes which values are computed from parameters of functions.
#[derive(Default)]
struct OnFunction {
    known: SideTable<Val, Option<bool>>,
}

impl OnFunction {
    fn of(&mut self, w: &World, v: Val) -> bool {
        let mut stack = vec![(v, false)];
        while let Some((v, ready)) = stack.pop() {
            match w.node(v) {
                _ if self.known[v].is_some() => {}
                Node::Op(_) if !ready => {
                    stack.push((v, true));
                    stack.extend(w.args(v).iter().map(|&a| (a, false)));
                }
                Node::Op(_) => self.known[v] = Some(w.args(v).iter().any(|&a| self.known[a] == Some(true))),
                Node::Param(k, _) => self.known[v] = Some(w.ty(v) != w.types.mem() && is_function(w, k)),
                _ => self.known[v] = Some(false),
            }
        }
        self.known[v] == Some(true)
    }
}

fn automatic(w: &World, nest: &Nest, k: Cont) -> u64 {
    let mut mask = 0u64;
    let mut only = None;
    for (i, &p) in w.params(k).iter().enumerate().take(64) {
        if w.types.has_function(w.ty(p)) {
            mask |= 1 << i;
            only = Some(p);
        }
    }
    let first_order = |p: Val| matches!(w.types.kind(w.ty(p)), TyKind::Cn(params) if params.iter().all(|&t| !w.types.has_function(t)));
    match only {
        Some(p) if mask.count_ones() == 1 && first_order(p) && nest.free(k).is_empty() => 0,
        _ => mask,
    }
}
