//! Facts about graphs: who owns a value, what is free in a continuation, how continuations nest.
//!
//! A value is *owned* by the innermost continuation whose parameters it depends on: that is the earliest place where
//! it can be computed. Writes and partial operations are owned by the continuation of their `mem`. Operations on
//! closed values or on continuations are owned by nobody and computed wherever they are used.
//!
//! All binders of what is free in a continuation lie on every path of references that leads to it from a root; so
//! depth in any spanning tree of the reference graph orders them, and no dominators are needed.

use crate::ops::Effect;
use crate::world::{Cont, Node, Val, World};
use nyala_base::SideTable;
use rustc_hash::{FxHashMap, FxHashSet};

/// Nesting of everything reachable from some roots.
pub struct Nest {
    /// Reachable continuations in order of discovery; foreign ones included.
    pub conts: Vec<Cont>,
    depth: SideTable<Cont, u32>,
    owner: SideTable<Val, Option<Cont>>,
    free: SideTable<Cont, Vec<Val>>,
    ops: SideTable<Cont, Vec<Val>>,
    parent: SideTable<Cont, Option<Cont>>,
}

impl Nest {
    pub fn new(w: &World, roots: &[Cont]) -> Nest {
        let mut nest = Nest {
            conts: Vec::new(),
            depth: SideTable::default(),
            owner: SideTable::default(),
            free: SideTable::default(),
            ops: SideTable::default(),
            parent: SideTable::default(),
        };
        nest.discover(w, roots);
        nest.compute_free(w);
        for i in 0..nest.conts.len() {
            let k = nest.conts[i];
            nest.free[k].sort_unstable();
            let parent = nest.free[k].iter().filter_map(|&v| nest.owner[v]).max_by_key(|&o| nest.depth[o]);
            nest.parent[k] = parent;
            nest.sort_ops(w, k);
        }
        nest
    }

    /// The innermost continuation that `val` depends on.
    pub fn owner(&self, val: Val) -> Option<Cont> {
        self.owner[val]
    }

    /// Values owned by other continuations that `k` or what it refers to needs; sorted.
    pub fn free(&self, k: Cont) -> &[Val] {
        &self.free[k]
    }

    /// Operations that `k` owns and that are needed, in an order in which they can be computed: operands first, and
    /// partial operations before the write that takes the same `mem`.
    pub fn ops(&self, k: Cont) -> &[Val] {
        &self.ops[k]
    }

    /// The innermost continuation that `k` is nested in.
    pub fn parent(&self, k: Cont) -> Option<Cont> {
        self.parent[k]
    }

    pub fn is_reachable(&self, k: Cont) -> bool {
        self.depth[k] != 0
    }

    /// Finds all continuations, their depths in the spanning tree, and the owners of all values.
    fn discover(&mut self, w: &World, roots: &[Cont]) {
        let mut visited: SideTable<Val, bool> = SideTable::default();
        let mut transparent: SideTable<Val, bool> = SideTable::default();
        let mut queue: Vec<Cont> = Vec::new();
        for &k in roots.iter().rev() {
            if self.depth[k] == 0 {
                self.depth[k] = 1;
                queue.push(k);
            }
        }
        let mut stack: Vec<(Val, bool)> = Vec::new();
        while let Some(k) = queue.pop() {
            self.conts.push(k);
            let depth = self.depth[k];
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
                            self.owner[v] = owners.max_by_key(|&o| self.depth[o]);
                        }
                    } else {
                        self.owner[v] = self.owner[args[0]];
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
                    Node::Cont(c) if self.depth[c] == 0 => {
                        self.depth[c] = depth + 1;
                        found.push(c);
                    }
                    Node::Lit(_) | Node::Undef | Node::Cont(_) | Node::Builtin(_) | Node::Global(_) => {}
                }
            }
            queue.extend(found.into_iter().rev());
        }
    }

    fn compute_free(&mut self, w: &World) {
        let mut referrers: SideTable<Cont, Vec<Cont>> = SideTable::default();
        let mut edges: FxHashSet<(Cont, Cont)> = FxHashSet::default();
        let mut is_free: FxHashSet<(Cont, Val)> = FxHashSet::default();
        let mut seen: SideTable<Val, bool> = SideTable::default();
        let mut work: Vec<(Cont, Val)> = Vec::new();
        for i in (0..self.conts.len()).rev() {
            let k = self.conts[i];
            let Some(body) = w.body(k) else { continue };
            work.push((k, body.callee));
            work.extend(body.args.iter().map(|&a| (k, a)));
            while let Some((k, v)) = work.pop() {
                match w.node(v) {
                    Node::Lit(_) | Node::Undef | Node::Builtin(_) | Node::Global(_) => {}
                    Node::Cont(c) => {
                        if c != k && edges.insert((k, c)) {
                            referrers[c].push(k);
                            work.extend(self.free[c].iter().map(|&v| (k, v)));
                        }
                    }
                    Node::Param(..) | Node::Op(_) => {
                        let owner = self.owner[v];
                        if owner.is_none() {
                            work.extend(w.args(v).iter().map(|&a| (k, a)));
                        } else if owner == Some(k) {
                            if !seen[v] && matches!(w.node(v), Node::Op(_)) {
                                seen[v] = true;
                                self.ops[k].push(v);
                                work.extend(w.args(v).iter().map(|&a| (k, a)));
                            }
                        } else if is_free.insert((k, v)) {
                            self.free[k].push(v);
                            work.extend(referrers[k].iter().map(|&r| (r, v)));
                        }
                    }
                }
            }
        }
    }

    fn sort_ops(&mut self, w: &World, k: Cont) {
        let mut ops = std::mem::take(&mut self.ops[k]);
        ops.sort_unstable();
        let members: FxHashSet<Val> = ops.iter().copied().collect();
        let mut partials: FxHashMap<Val, Vec<Val>> = FxHashMap::default();
        for &v in &ops {
            if w.as_op(v).is_some_and(|op| op.effect() == Effect::Partial) {
                partials.entry(w.args(v)[0]).or_default().push(v);
            }
        }
        let mut order = Vec::with_capacity(ops.len());
        let mut done: FxHashSet<Val> = FxHashSet::default();
        let mut stack: Vec<(Val, bool)> = Vec::new();
        for &root in &ops {
            stack.push((root, false));
            while let Some((v, operands_done)) = stack.pop() {
                if operands_done {
                    order.push(v);
                    continue;
                }
                // Operations that nobody owns are looked through.
                let owned = members.contains(&v);
                if (owned && !done.insert(v)) || (!owned && self.owner[v].is_some()) {
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
        self.ops[k] = order;
    }
}
