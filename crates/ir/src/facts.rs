//! Facts about graphs: who owns a value, where it is computed, what is free in a continuation, how continuations nest.
//!
//! A value is *owned* by the innermost continuation whose parameters it depends on: that is the earliest place where
//! it can be computed. Writes and partial operations are owned by the continuation of their `mem`, and computed there.
//! Other operations are computed, if their owner is not the only user, as late as all uses allow: in the continuation
//! that dominates them in the reference graph. (As early as possible would carry every value that is needed anywhere
//! through all continuations in between: quadratic in a long function.) Operations on closed values or on
//! continuations are owned by nobody and computed wherever they are used.
//!
//! The continuations that bind the free values of a continuation lie on every path of references that leads to it from
//! a root: they are its dominators, ordered by depth in the dominator tree.

use crate::ops::Effect;
use crate::world::{Cont, Global, Node, Val, World};
use nyala_base::{Lists, SideTable, graph};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit of iterations; see `find_leaders`.
const MAX_LEADER_ROUNDS: usize = 8;

/// Nesting of everything reachable from some roots.
pub struct Nest {
    /// Reachable continuations in order of discovery; foreign ones included.
    pub conts: Vec<Cont>,
    /// For each continuation those that it refers to directly.
    references: Lists<Cont, Cont>,
    dominators: Dominators,
    owner: SideTable<Val, Option<Cont>>,
    home: SideTable<Val, Option<Cont>>,
    free: Lists<Cont, Val>,
    ops: Lists<Cont, Val>,
    parent: SideTable<Cont, Option<Cont>>,
}

impl Nest {
    /// Nesting of what is reachable from the roots.
    pub fn new(w: &World, roots: &[Cont]) -> Nest {
        let mut nest = Nest::without_free(w, roots);
        nest.find_free(w);
        nest
    }

    /// Finds continuations and references only: not free values, homes and parents.
    fn without_free(w: &World, roots: &[Cont]) -> Nest {
        let mut nest = Nest {
            conts: Vec::new(),
            references: Lists::default(),
            dominators: Dominators::default(),
            owner: SideTable::with_room(w.n_vals()),
            home: SideTable::with_room(w.n_vals()),
            free: Lists::default(),
            ops: Lists::default(),
            parent: SideTable::default(),
        };
        let ops = nest.discover(w, roots);
        nest.find_references(w);
        nest.dominators = Dominators::new(roots, &nest.conts, &nest.references);
        nest.find_homes(w, &ops);
        nest
    }

    /// Finds the free values of all continuations.
    pub fn find_free(&mut self, w: &World) {
        let mut each: SideTable<Cont, Cont> = SideTable::with_default(Cont(0));
        self.conts.iter().for_each(|&k| each[k] = k);
        self.compute_free(w, &each);
        self.find_parents(w);
        let mut done: SideTable<Val, bool> = SideTable::default();
        (0..self.conts.len()).for_each(|i| self.sort_ops(w, self.conts[i], &mut done));
    }

    /// Finds the parent of each continuation: the innermost owner of its free values. A value is free in all
    /// continuations on the paths of references from its owner to a use. Innermost owners come first: a continuation
    /// that already has a parent is skipped, since the rest of the path is nested in that parent.
    pub fn find_parents(&mut self, w: &World) {
        let referrers = self.referrers();
        let mut uses: Vec<(std::cmp::Reverse<usize>, Cont, Cont)> = Vec::new();
        let mut looked_through: SideTable<Val, Option<Cont>> = SideTable::default();
        let mut work: Vec<Val> = Vec::new();
        for &k in &self.conts {
            work.extend(w.body(k).iter().flat_map(|body| body.args.iter().chain([&body.callee])));
            work.extend(self.ops[k].iter().flat_map(|&v| w.args(v)));
            while let Some(v) = work.pop() {
                match self.owner[v] {
                    Some(owner) if owner != k => uses.push((std::cmp::Reverse(self.dominators.depth(owner)), owner, k)),
                    Some(_) => {}
                    None if matches!(w.node(v), Node::Op(_)) && looked_through[v].replace(k) != Some(k) => {
                        work.extend(w.args(v));
                    }
                    None => {}
                }
            }
        }
        uses.sort_unstable();
        uses.dedup();
        self.parent = SideTable::default();
        // The innermost continuation around it whose parent is unknown, or a shortcut towards that.
        let mut around: SideTable<Cont, Option<Cont>> = SideTable::default();
        let mut work: Vec<Cont> = Vec::new();
        for (_, owner, user) in uses {
            work.push(user);
            while let Some(mut k) = work.pop() {
                while let Some(up) = around[k] {
                    around[k] = around[up].or(Some(up));
                    k = up;
                }
                if self.dominators.depth(k) > self.dominators.depth(owner) {
                    (self.parent[k], around[k]) = (Some(owner), Some(owner));
                    work.extend(&referrers[k]);
                }
            }
        }
    }

    /// Nesting of all that a program from `roots` may reach, including functions in the initializers of globals; and
    /// these globals, sorted.
    pub fn of_program(w: &World, roots: &[Cont]) -> (Nest, Vec<Global>) {
        let (mut nest, globals) = Nest::program_without_free(w, roots);
        nest.find_free(w);
        (nest, globals)
    }

    /// Like [`Nest::of_program`], but finds the free values of functions only, and no parents. This is cheaper: a value
    /// may be free in each of a hundred thousand blocks. See [`Nest::find_free`], [`Nest::find_parents`].
    pub fn of_functions(w: &World, roots: &[Cont], is_function: impl Fn(Cont) -> bool) -> (Nest, Vec<Global>) {
        let (mut nest, globals) = Nest::program_without_free(w, roots);
        match nest.find_leaders(is_function) {
            Some(leaders) => {
                nest.compute_free(w, &leaders);
                let mut done: SideTable<Val, bool> = SideTable::default();
                (0..nest.conts.len()).for_each(|i| nest.sort_ops(w, nest.conts[i], &mut done));
            }
            None => nest.find_free(w),
        }
        (nest, globals)
    }

    /// The leader of each continuation: the nearest function above it in the dominator tree, or a block that other
    /// leaders' continuations refer to as well. All that refer to a continuation that is no leader have its leader.
    fn find_leaders(&self, is_function: impl Fn(Cont) -> bool) -> Option<SideTable<Cont, Cont>> {
        let mut is_leader: SideTable<Cont, bool> = SideTable::default();
        for &k in &self.conts {
            is_leader[k] = is_function(k) || self.dominator(k).is_none();
        }
        for _ in 0..MAX_LEADER_ROUNDS {
            let mut leader: SideTable<Cont, Option<Cont>> = SideTable::default();
            let mut path = Vec::new();
            for &k in &self.conts {
                let mut at = k;
                while leader[at].is_none() && !is_leader[at] {
                    path.push(at);
                    at = self.dominator(at)?;
                }
                let found = leader[at].unwrap_or(at);
                leader[at] = Some(found);
                path.drain(..).for_each(|k| leader[k] = Some(found));
            }
            let mut is_done = true;
            for &k in &self.conts {
                for &r in &self.references[k] {
                    if leader[k] != leader[r] && !is_leader[r] {
                        (is_done, is_leader[r]) = (false, true);
                    }
                }
            }
            if is_done {
                let mut leaders = SideTable::with_default(Cont(0));
                self.conts.iter().for_each(|&k| leaders[k] = leader[k].unwrap_or(k));
                return Some(leaders);
            }
        }
        None
    }

    fn program_without_free(w: &World, roots: &[Cont]) -> (Nest, Vec<Global>) {
        let mut roots = roots.to_vec();
        loop {
            let nest = Nest::without_free(w, &roots);
            let (mut globals, mut found) = (Vec::new(), Vec::new());
            let mut seen: SideTable<Val, bool> = SideTable::default();
            let mut work: Vec<Val> = Vec::new();
            for &k in &nest.conts {
                if let Some(body) = w.body(k) {
                    work.push(body.callee);
                    work.extend(body.args);
                }
            }
            while let Some(v) = work.pop() {
                if std::mem::replace(&mut seen[v], true) {
                    continue;
                }
                work.extend(w.args(v));
                match w.node(v) {
                    Node::Global(g) => {
                        globals.push(g);
                        work.extend(w.global(g).init);
                    }
                    Node::Cont(c) if !nest.is_reachable(c) => found.push(c),
                    _ => {}
                }
            }
            if found.is_empty() {
                globals.sort_unstable();
                return (nest, globals);
            }
            found.sort_unstable();
            found.dedup();
            roots.extend(found);
        }
    }

    /// The innermost continuation that `val` depends on.
    pub fn owner(&self, val: Val) -> Option<Cont> {
        self.owner[val]
    }

    /// The free values of `k`: those that `k`, or a continuation it refers to, needs and another one computes; sorted.
    pub fn free(&self, k: Cont) -> &[Val] {
        &self.free[k]
    }

    /// Operations that `k` computes, in an order of evaluation: operands first, including the free values of functions
    /// among these, and partial operations before the write that takes the same `mem`.
    pub fn ops(&self, k: Cont) -> &[Val] {
        &self.ops[k]
    }

    /// The innermost continuation that `k` is nested in.
    pub fn parent(&self, k: Cont) -> Option<Cont> {
        self.parent[k]
    }

    /// Whether a continuation is reachable from the roots.
    pub fn is_reachable(&self, k: Cont) -> bool {
        self.dominators.depth(k) != 0
    }

    /// The last continuation before `k` that lies on every path of references to `k` from a root.
    pub fn dominator(&self, k: Cont) -> Option<Cont> {
        if !self.is_reachable(k) {
            return None;
        }
        let up = self.dominators.tree.parent(self.dominators.position[k] as usize);
        up.checked_sub(1).map(|n| self.conts[n])
    }

    /// The nearest common dominator. `a` if there is none, which does not happen in well-formed graphs.
    fn meet(&self, a: Cont, b: Cont) -> Cont {
        let Dominators { tree, position } = &self.dominators;
        let found = tree.meet(position[a] as usize, position[b] as usize);
        found.checked_sub(1).map_or(a, |n| self.conts[n])
    }

    /// Continuations that `k` refers to, each once: the callee first, then the arguments.
    pub fn references(&self, k: Cont) -> &[Cont] {
        &self.references[k]
    }

    /// For each continuation those that refer to it directly.
    pub fn referrers(&self) -> Lists<Cont, Cont> {
        let pairs: Vec<(Cont, Cont)> =
            self.conts.iter().flat_map(|&k| self.references[k].iter().map(move |&r| (r, k))).collect();
        Lists::of_pairs(&pairs)
    }

    /// For each continuation those that it refers to, by its body or through operations.
    pub fn all_references(&self) -> &Lists<Cont, Cont> {
        &self.references
    }

    /// Finds all continuations and the owners of all values; operations with an owner, operands first.
    fn discover(&mut self, w: &World, roots: &[Cont]) -> Vec<Val> {
        // Depth in a spanning tree of the reference graph also orders the binders of a value.
        let mut depths: SideTable<Cont, u32> = SideTable::default();
        let mut ops = Vec::new();
        let mut visited: SideTable<Val, bool> = SideTable::with_room(w.n_vals());
        let mut transparent: SideTable<Val, bool> = SideTable::default();
        let mut queue: Vec<Cont> = Vec::new();
        for &k in roots.iter().rev() {
            if depths[k] == 0 {
                depths[k] = 1;
                queue.push(k);
            }
        }
        let mut stack: Vec<(Val, bool)> = Vec::new();
        while let Some(k) = queue.pop() {
            self.conts.push(k);
            let depth = depths[k];
            let filter = &w.cont(k).filter;
            stack.extend(filter.all.iter().chain(filter.params.iter().flatten()).map(|&v| (v, false)));
            let mut found = Vec::new();
            if let Some(body) = w.body(k) {
                stack.extend(body.args.iter().rev().map(|&v| (v, false)));
                stack.push((body.callee, false));
            }
            while let Some((v, done)) = stack.pop() {
                if done {
                    let Node::Op(op) = w.node(v) else { continue };
                    let args = w.args(v);
                    if op.effect() == Effect::Total {
                        transparent[v] = args.iter().any(|&a| matches!(w.node(a), Node::Cont(_)) || transparent[a]);
                        if !transparent[v] {
                            let owners = args.iter().filter_map(|&a| self.owner[a]);
                            self.owner[v] = owners.max_by_key(|&o| depths[o]);
                        }
                    } else {
                        self.owner[v] = self.owner[args[0]];
                    }
                    if self.owner[v].is_some() {
                        ops.push(v);
                    }
                    continue;
                }
                if visited[v] {
                    continue;
                }
                visited[v] = true;
                match w.node(v) {
                    Node::Op(_) => {
                        stack.push((v, true));
                        stack.extend(w.args(v).iter().rev().map(|&a| (a, false)));
                    }
                    Node::Param(p, _) => self.owner[v] = Some(p),
                    Node::Cont(c) if depths[c] == 0 => {
                        depths[c] = depth + 1;
                        found.push(c);
                    }
                    Node::Lit(_) | Node::Undef | Node::Cont(_) | Node::Builtin(_) | Node::Global(_) => {}
                }
            }
            queue.extend(found.into_iter().rev());
        }
        ops
    }

    fn find_references(&mut self, w: &World) {
        let mut visited: SideTable<Val, bool> = SideTable::default();
        let mut work: Vec<Val> = Vec::new();
        // The continuation that last saw each one.
        let mut known: SideTable<Cont, Option<Cont>> = SideTable::default();
        let mut seen: SideTable<Val, Option<Cont>> = SideTable::default();
        let mut found: Vec<Cont> = Vec::new();
        for &k in &self.conts {
            let Some(body) = w.body(k) else { continue };
            work.extend(body.args.iter().rev());
            work.push(body.callee);
            while let Some(v) = work.pop() {
                match w.node(v) {
                    Node::Cont(c) if known[c].replace(k) != Some(k) => found.push(c),
                    Node::Op(_) => {
                        let first = match self.owner[v] {
                            None => seen[v].replace(k) != Some(k),
                            Some(o) => o == k && !std::mem::replace(&mut visited[v], true),
                        };
                        if first {
                            work.extend(w.args(v).iter().rev());
                        }
                    }
                    _ => {}
                }
            }
            self.references.set(k, found.drain(..));
        }
    }

    /// Finds where each operation is computed: in its owner, or at the nearest common dominator of its uses.
    fn find_homes(&mut self, w: &World, ops: &[Val]) {
        let mut uses: SideTable<Val, Option<Cont>> = SideTable::with_room(w.n_vals());
        let mut looked_through: SideTable<Val, Option<Cont>> = SideTable::default();
        let mut work: Vec<Val> = Vec::new();
        // Adds the values in `work`, used in `k`; empties `work`.
        let mut add_uses = |nest: &Nest, work: &mut Vec<Val>, k: Cont, uses: &mut SideTable<Val, Option<Cont>>| {
            while let Some(v) = work.pop() {
                if !matches!(w.node(v), Node::Op(_)) {
                    continue;
                }
                if nest.owner[v].is_some() {
                    uses[v] = Some(uses[v].map_or(k, |u| nest.meet(u, k)));
                } else if looked_through[v].replace(k) != Some(k) {
                    work.extend(w.args(v));
                }
            }
        };
        for &k in &self.conts {
            let Some(body) = w.body(k) else { continue };
            work.push(body.callee);
            work.extend(body.args);
            add_uses(self, &mut work, k, &mut uses);
        }
        for &v in ops.iter().rev() {
            let is_total = w.as_op(v).is_some_and(|op| op.effect() == Effect::Total);
            let is_address = w.as_op(v) == Some(crate::Op::Extract)
                && w.as_op(w.args(v)[0]).is_some_and(|op| op.effect() != Effect::Total);
            let home = if is_total && !is_address { uses[v] } else { self.owner[v] };
            self.home[v] = home;
            if let Some(home) = home {
                work.extend(w.args(v));
                add_uses(self, &mut work, home, &mut uses);
            }
        }
    }

    /// Finds the free values of leaders. A leader dominates its continuations, and they are entered only through it: so
    /// a value that one of them computes is not free in the leader, and a value of others that one of them uses is.
    fn compute_free(&mut self, w: &World, leader: &SideTable<Cont, Cont>) {
        let mut referrers: Vec<(Cont, Cont)> = Vec::new();
        let mut ops: Vec<(Cont, Val)> = Vec::new();
        let mut edges: FxHashSet<(Cont, Cont)> = FxHashSet::default();
        let mut seen: SideTable<Val, bool> = SideTable::default();
        let mut looked_through: SideTable<Val, Option<Cont>> = SideTable::default();
        let mut uses: Vec<(Val, Cont)> = Vec::new();
        let mut work: Vec<(Cont, Val)> = Vec::new();
        for &k in &self.conts {
            let Some(body) = w.body(k) else { continue };
            work.push((k, body.callee));
            work.extend(body.args.iter().map(|&a| (k, a)));
            while let Some((k, v)) = work.pop() {
                let home = match w.node(v) {
                    Node::Lit(_) | Node::Undef | Node::Builtin(_) | Node::Global(_) => continue,
                    Node::Cont(c) => {
                        if leader[c] != leader[k] && edges.insert((leader[k], c)) {
                            debug_assert_eq!(leader[c], c, "a continuation led by another is entered from elsewhere");
                            referrers.push((c, leader[k]));
                        }
                        continue;
                    }
                    Node::Param(..) => self.owner[v],
                    Node::Op(_) => self.home[v],
                };
                let Some(home) = home else {
                    // Looks through operations without an owner, once for each continuation that uses them.
                    if looked_through[v].replace(k) != Some(k) {
                        work.extend(w.args(v).iter().map(|&a| (k, a)));
                    }
                    continue;
                };
                if leader[home] != leader[k] {
                    uses.push((v, leader[k]));
                }
                if matches!(w.node(v), Node::Op(_)) && !std::mem::replace(&mut seen[v], true) {
                    ops.push((home, v));
                    work.extend(w.args(v).iter().map(|&a| (home, a)));
                }
            }
        }
        self.ops = Lists::of_pairs(&ops);
        let referrers = Lists::of_pairs(&referrers);
        // Sorted by value, so that the last value seen in a continuation tells whether this one was.
        uses.sort_unstable();
        let mut last: SideTable<Cont, Option<Val>> = SideTable::default();
        let mut free: Vec<(Cont, Val)> = Vec::new();
        let mut work: Vec<Cont> = Vec::new();
        for (v, k) in uses {
            let home = if matches!(w.node(v), Node::Op(_)) { self.home[v] } else { self.owner[v] };
            let home = home.map(|h| leader[h]);
            work.push(k);
            while let Some(k) = work.pop() {
                if home != Some(k) && last[k].replace(v) != Some(v) {
                    free.push((k, v));
                    work.extend(&referrers[k]);
                }
            }
        }
        self.free = Lists::of_pairs(&free);
    }

    /// Sorts the operations that `k` computes; `done` marks those that have been sorted, in any continuation.
    fn sort_ops(&mut self, w: &World, k: Cont, done: &mut SideTable<Val, bool>) {
        if let [] | [_] = self.ops[k] {
            return;
        }
        let mut ops = self.ops[k].to_vec();
        ops.sort_unstable();
        let mut partials: FxHashMap<Val, Vec<Val>> = FxHashMap::default();
        for &v in &ops {
            if w.as_op(v).is_some_and(|op| op.effect() == Effect::Partial) {
                partials.entry(w.args(v)[0]).or_default().push(v);
            }
        }
        let mut order = Vec::with_capacity(ops.len());
        let mut closed: FxHashSet<Cont> = FxHashSet::default();
        let mut stack: Vec<(Val, bool)> = Vec::new();
        for &root in &ops {
            stack.push((root, false));
            while let Some((v, operands_done)) = stack.pop() {
                if operands_done {
                    order.push(v);
                    continue;
                }
                // A function among the operands needs its free values.
                if let Node::Cont(c) = w.node(v) {
                    if closed.insert(c) {
                        stack.extend(self.free[c].iter().rev().map(|&f| (f, false)));
                    }
                    continue;
                }
                // Looks through operations without an owner.
                let owned = self.home[v] == Some(k);
                if (owned && std::mem::replace(&mut done[v], true)) || (!owned && self.owner[v].is_some()) {
                    continue;
                }
                if owned {
                    stack.push((v, true));
                }
                if w.as_op(v).is_some_and(|op| op.effect() == Effect::Write) && owned {
                    stack.extend(partials.get(&w.args(v)[0]).into_iter().flatten().map(|&p| (p, false)));
                }
                stack.extend(w.args(v).iter().rev().map(|&a| (a, false)));
            }
        }
        self.ops.list_mut(k).copy_from_slice(&order);
    }
}

/// The dominator tree of a graph of continuations.
#[derive(Default)]
struct Dominators {
    /// Over positions, below a virtual node 0 above the roots.
    tree: graph::Tree,
    /// Position of each continuation among those given, from 1.
    position: SideTable<Cont, u32>,
}

impl Dominators {
    fn new(roots: &[Cont], conts: &[Cont], references: &Lists<Cont, Cont>) -> Dominators {
        let mut position: SideTable<Cont, u32> = SideTable::default();
        conts.iter().enumerate().for_each(|(i, &k)| position[k] = i as u32 + 1);
        let succ = |n: usize, i: usize| {
            let succs = n.checked_sub(1).map_or(roots, |n| &references[conts[n]]);
            succs.get(i).map(|&k| position[k] as usize)
        };
        let (idom, order) = graph::dominator_tree(conts.len() + 1, 0, succ);
        Dominators { tree: graph::Tree::new(idom, &order), position }
    }

    /// Depth from 1; 0 where unreachable.
    fn depth(&self, k: Cont) -> usize {
        self.tree.depth(self.position[k] as usize)
    }
}
