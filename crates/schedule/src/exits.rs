//! The continuations by which functions leave, other than by their return. Separate from code generation, because calls
//! depend on the exits of their callees, and these on the exits of the callees' callees.
//!
//! A continuation that depends on the return of a function belongs to the activations of that function (or of one
//! nested in it, if it needs values of that). Code that calls it from elsewhere *exits*: control returns to the
//! activation. A continuation that needs no return, such as a block that ends the program, belongs to no function and
//! is copied to its callers.
//!
//! ```text
//! cont find(m, x, ret) = walk(m, root, k)
//!   cont k(m.1) = ret(m.1, false)
//!   cont walk(m.2, t, done) = …                    walk exits by `found` of `find`; whoever calls it tests for that
//!   cont found(m.3) = ret(m.3, true)
//! ```
//!
//! Where only known calls lead from an activation to an exit, each function on the way has its own number for the exit.
//! A continuation parameter of a function is such an exit as well: each call says what it means there. Continuations
//! that are stored, or captured by function values, are values: pointers to *records* in the activation they belong to.

use super::is_continuation;
use nyala_base::SideTable;
use nyala_ir::facts::Nest;
use nyala_ir::{BuiltinArgs, Cont, Linkage, Node, Ty, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Exits {
    /// Whether the program has no exits.
    is_trivial: bool,
    uses: SideTable<Cont, Uses>,
    /// Functions with a body, and continuations that belong to no function and are values.
    pub entries: Vec<Cont>,
    is_function: SideTable<Cont, bool>,
    is_entry: SideTable<Cont, bool>,
    is_value: SideTable<Cont, bool>,
    /// Continuation parameters, besides returns, that are passed as values.
    by_value: FxHashSet<Val>,
    /// The function to whose activations a block belongs, if it belongs to one.
    home: SideTable<Cont, Option<Cont>>,
    /// The blocks of each entry, itself first.
    regions: SideTable<Cont, Vec<Cont>>,
    exits: SideTable<Cont, BTreeSet<Val>>,
    /// Whether a function may be left by a continuation that is a value.
    is_far: SideTable<Cont, bool>,
    /// Types of function values that may be left in that way.
    far_types: FxHashSet<Ty>,
    /// For each entry the exits whose records it is given.
    records: SideTable<Cont, BTreeSet<Val>>,
    /// For each entry its own continuations that it makes values of.
    reified: SideTable<Cont, BTreeSet<Val>>,
    needs: SideTable<Cont, BTreeSet<Val>>,
    local_ops: SideTable<Cont, FxHashSet<Val>>,
}

/// How the body of a continuation uses others.
#[derive(Clone, Default)]
pub(super) struct Uses {
    /// Continuations where it continues.
    control: Vec<Val>,
    /// Continuations and functions that it uses as values.
    values: Vec<Val>,
    /// Continuations passed to the known callee: parameter and argument.
    passed: Vec<(Val, Val)>,
    pub callee: Option<Cont>,
    /// The type of the function value that it calls, if it calls one.
    pub indirect: Option<Ty>,
    /// The return continuation of the call.
    pub ret: Option<Val>,
}

/// The role of a continuation in a function that calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Block(Cont),
    Return,
    Exit(Val),
    Value,
}

impl Exits {
    pub(super) fn new(w: &World, nest: &mut Nest, is_function: SideTable<Cont, bool>, in_globals: &[Cont]) -> Exits {
        let mut e = Exits { is_function, ..Exits::default() };
        for &k in in_globals {
            e.is_value[k] = true;
        }
        e.collect_uses(w, nest);
        e.entries = nest.conts.iter().copied().filter(|&k| e.is_function[k] && w.body(k).is_some()).collect();
        let has_continuations = |k: &Cont| nest.free(*k).iter().any(|&v| is_continuation(&w.types, w.ty(v)));
        e.is_trivial = e.by_value.is_empty()
            && !e.entries.iter().any(has_continuations)
            && nest.conts.iter().all(|&k| {
                e.uses[k].passed.is_empty()
                    && e.uses[k].values.iter().all(|&v| w.as_cont(v).is_some_and(|c| e.is_function[c]))
            })
            && in_globals.iter().all(|&k| e.is_function[k]);
        if e.is_trivial {
            return e;
        }
        nest.find_free(w);
        let functions = e.entries.clone();
        loop {
            e.entries.clone_from(&functions);
            e.find_homes(w, nest);
            e.find_exits(w);
            if !e.find_records(w, nest) {
                break;
            }
        }
        e.find_needs(w, nest);
        e
    }

    /// Whether it is compiled as a function: it is one, or it belongs to no function and is a value.
    pub(super) fn is_entry(&self, k: Cont) -> bool {
        self.is_function[k] || self.is_entry[k]
    }

    pub(super) fn uses(&self, k: Cont) -> &Uses {
        &self.uses[k]
    }

    pub(super) fn region(&self, k: Cont) -> &[Cont] {
        &self.regions[k]
    }

    pub(super) fn is_value(&self, k: Cont) -> bool {
        self.is_value[k]
    }

    pub(super) fn is_far(&self, k: Cont) -> bool {
        self.is_far[k]
    }

    pub(super) fn is_far_type(&self, ty: Ty) -> bool {
        self.far_types.contains(&ty)
    }

    pub(super) fn far_types(&self) -> Vec<Ty> {
        let mut types: Vec<Ty> = self.far_types.iter().copied().collect();
        types.sort_unstable();
        types
    }

    /// The exits of a function that its callers have to know; empty for function values, which get records instead.
    pub(super) fn exits(&self, k: Cont) -> Vec<Val> {
        if self.is_value[k] { Vec::new() } else { self.exits[k].iter().copied().collect() }
    }

    pub(super) fn records(&self, k: Cont) -> Vec<Val> {
        self.records[k].iter().copied().collect()
    }

    pub(super) fn reified(&self, k: Cont) -> Vec<Val> {
        self.reified[k].iter().copied().collect()
    }

    /// The free values of an entry, without records; sorted.
    pub(super) fn needs(&self, nest: &Nest, k: Cont) -> Vec<Val> {
        if self.is_trivial { nest.free(k).to_vec() } else { self.needs[k].iter().copied().collect() }
    }

    /// Operations on values of a function that the graph computes in other functions, which exit to it.
    pub(super) fn local_ops(&self, entry: Cont) -> &FxHashSet<Val> {
        &self.local_ops[entry]
    }

    /// Whether the code after calls says what the parameter is, so that no argument is passed for it.
    pub(super) fn is_static(&self, w: &World, param: Val) -> bool {
        let Node::Param(k, i) = w.node(param) else { return false };
        is_continuation(&w.types, w.ty(param))
            && self.is_function[k]
            && i as usize + 1 < w.params(k).len()
            && !self.by_value.contains(&param)
    }

    /// Whether it belongs to an activation: the return of a function, or a parameter that is an exit of its function.
    fn is_anchor(&self, w: &World, v: Val) -> bool {
        let Node::Param(k, i) = w.node(v) else { return false };
        self.is_function[k]
            && is_continuation(&w.types, w.ty(v))
            && (i as usize + 1 == w.params(k).len() || !self.by_value.contains(&v))
    }

    /// The role of `v` in a function.
    pub(super) fn target(&self, w: &World, entry: Cont, v: Val) -> Target {
        match w.node(v) {
            Node::Cont(c) if self.is_function[c] => Target::Value,
            Node::Cont(c) => match self.home[c] {
                Some(home) if home != entry && !self.is_trivial => Target::Exit(v),
                _ => Target::Block(c),
            },
            Node::Param(k, i) if self.is_anchor(w, v) => {
                if k == entry && i as usize + 1 == w.params(k).len() {
                    Target::Return
                } else {
                    Target::Exit(v)
                }
            }
            _ => Target::Value,
        }
    }

    /// The continuation that an exit of the function called by `c` means in the caller.
    pub(super) fn at_call(&self, w: &World, c: Cont, exit: Val) -> Val {
        match w.node(exit) {
            Node::Param(k, _) if Some(k) == self.uses[c].callee && self.is_static(w, exit) => {
                self.uses[c].passed.iter().find(|p| p.0 == exit).map_or(exit, |p| p.1)
            }
            _ => exit,
        }
    }

    /// Continuations and functions that `c` uses as values.
    fn values<'a>(&'a self, c: Cont) -> impl Iterator<Item = Val> + 'a {
        let uses = &self.uses[c];
        let passed = uses.passed.iter().filter(|p| self.by_value.contains(&p.0)).map(|p| p.1);
        uses.values.iter().copied().chain(passed)
    }

    /// Blocks and the return of `entry` that code in its block `c` uses as values.
    pub(super) fn reified_at(&self, w: &World, nest: &Nest, entry: Cont, c: Cont) -> Vec<Val> {
        if self.is_trivial {
            return Vec::new();
        }
        let given = nest.references(c).iter().flat_map(|&r| self.records[r].iter().copied());
        let mut found: Vec<Val> = self.values(c).chain(given).collect();
        found
            .retain(|&v| self.is_record(w, v) && matches!(self.target(w, entry, v), Target::Block(_) | Target::Return));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a value needs a record: it is a continuation that belongs to an activation.
    pub(super) fn is_record(&self, w: &World, v: Val) -> bool {
        match w.node(v) {
            Node::Cont(c) => !self.is_function[c] && self.home[c].is_some(),
            _ => self.is_anchor(w, v),
        }
    }

    /// Blocks of `entry` where exits of the call in `c` arrive.
    pub(super) fn landings(&self, w: &World, entry: Cont, c: Cont) -> Vec<Cont> {
        let Some(callee) = self.uses[c].callee.filter(|_| !self.is_trivial) else { return Vec::new() };
        let mut found = Vec::new();
        for x in self.exits(callee) {
            if let Target::Block(t) = self.target(w, entry, self.at_call(w, c, x)) {
                found.push(t);
            }
        }
        found
    }

    fn collect_uses(&mut self, w: &World, nest: &Nest) {
        for &k in &nest.conts {
            if self.is_function[k] && (w.body(k).is_none() || *w.cont(k).linkage != Linkage::Internal) {
                self.pass_by_value(w, k);
            }
        }
        let mut seen: SideTable<Val, Option<Cont>> = SideTable::with_room(w.n_vals());
        for &c in &nest.conts {
            let Some(body) = w.body(c) else { continue };
            let mut uses = Uses::default();
            // Operations whose operands are values.
            let mut work: Vec<Val> = nest.ops(c).iter().flat_map(|&v| w.args(v)).copied().collect();
            match w.node(body.callee) {
                Node::Builtin(b) => {
                    let BuiltinArgs { values, next, .. } = b.args();
                    uses.control.extend(&body.args[next]);
                    work.extend(&body.args[values]);
                }
                node => {
                    let ty = w.ty(body.callee);
                    let mut n = body.args.len();
                    if is_continuation(&w.types, ty) && !matches!(node, Node::Cont(k) if self.is_function[k]) {
                        uses.control.push(body.callee);
                        if !matches!(node, Node::Cont(_)) {
                            uses.indirect = Some(ty);
                        }
                    } else {
                        let params = w.types.cn_params(ty).unwrap_or(&[]);
                        if params.last().is_some_and(|&t| is_continuation(&w.types, t)) {
                            n -= 1;
                            uses.ret = Some(body.args[n]);
                            uses.control.push(body.args[n]);
                        }
                        match node {
                            Node::Cont(k) => uses.callee = Some(k),
                            _ => {
                                uses.indirect = Some(ty);
                                work.push(body.callee);
                            }
                        }
                    }
                    for (i, &a) in body.args[..n].iter().enumerate() {
                        match uses.callee {
                            Some(k) if is_continuation(&w.types, w.ty(w.params(k)[i])) => {
                                uses.passed.push((w.params(k)[i], a));
                                if w.as_op(a).is_some() || w.as_cont(a).is_some_and(|f| self.is_function[f]) {
                                    work.push(a);
                                }
                            }
                            _ => work.push(a),
                        }
                    }
                }
            }
            for &v in &uses.control {
                if w.as_op(v).is_some() {
                    work.push(v);
                }
            }
            while let Some(v) = work.pop() {
                if seen[v].replace(c) == Some(c) {
                    continue;
                }
                match w.node(v) {
                    Node::Cont(k) => {
                        self.is_value[k] = true;
                        if self.is_function[k] {
                            self.pass_by_value(w, k);
                        }
                        uses.values.push(v);
                    }
                    Node::Param(..) if is_continuation(&w.types, w.ty(v)) => {
                        self.by_value.insert(v);
                        uses.values.push(v);
                    }
                    Node::Op(_) if nest.owner(v).is_none() => work.extend(w.args(v)),
                    _ => {}
                }
            }
            uses.values.sort_unstable();
            self.uses[c] = uses;
        }
    }

    /// Marks the parameters of a function with unknown callers as passed by value, since these do not know what they
    /// mean.
    fn pass_by_value(&mut self, w: &World, k: Cont) {
        let params = w.params(k);
        for &p in &params[..params.len().saturating_sub(1)] {
            if is_continuation(&w.types, w.ty(p)) {
                self.by_value.insert(p);
            }
        }
    }

    /// Finds the activations that blocks belong to, the entries, and the blocks of each.
    fn find_homes(&mut self, w: &World, nest: &Nest) {
        self.home.clear();
        self.regions.clear();
        self.is_entry.clear();
        // The function around each block.
        let mut around: SideTable<Cont, Option<Cont>> = SideTable::default();
        for &c in &nest.conts {
            if self.is_function[c] || !nest.free(c).iter().any(|&v| self.is_anchor(w, v)) {
                continue;
            }
            let mut at = c;
            let mut path = Vec::new();
            let home = loop {
                match nest.parent(at) {
                    Some(up) if self.is_function[up] => break Some(up),
                    Some(up) => match around[up] {
                        Some(known) => break Some(known),
                        None => at = up,
                    },
                    None => break None,
                }
                path.push(at);
            };
            for block in path.into_iter().chain([c]) {
                around[block] = home;
            }
            self.home[c] = home;
        }
        for &c in &nest.conts {
            let passed = self.uses[c].passed.iter().filter(|p| self.by_value.contains(&p.0));
            let values: Vec<Cont> = passed.filter_map(|p| w.as_cont(p.1)).collect();
            for v in values {
                self.is_value[v] = true;
            }
        }
        for &c in &nest.conts {
            if !self.is_function[c] && self.is_value[c] && self.home[c].is_none() {
                self.is_entry[c] = true;
                self.entries.push(c);
            }
        }
        for &k in &self.entries {
            self.regions[k].push(k);
        }
        for &c in &nest.conts {
            if let Some(home) = self.home[c] {
                self.regions[home].push(c);
            }
        }
        // Copies blocks that belong to no function.
        for &k in &self.entries {
            let mut region = std::mem::take(&mut self.regions[k]);
            let mut seen: FxHashSet<Cont> = region.iter().copied().collect();
            let mut next = 0;
            while next < region.len() {
                let uses = &self.uses[region[next]];
                let passed = uses.passed.iter().filter(|p| !self.by_value.contains(&p.0)).map(|p| p.1);
                for v in uses.control.iter().copied().chain(passed) {
                    if let Target::Block(t) = self.target(w, k, v)
                        && seen.insert(t)
                    {
                        region.push(t);
                    }
                }
                next += 1;
            }
            self.regions[k] = region;
        }
    }

    /// Finds the exits of functions: their own and those of their callees.
    fn find_exits(&mut self, w: &World) {
        self.exits.clear();
        self.is_far.clear();
        self.far_types.clear();
        // Calls of a record's continuation leave by it.
        for &k in &self.entries {
            for &c in &self.regions[k] {
                let given = self.values(c).filter(|&v| self.is_record(w, v));
                let found: Vec<Ty> = given.map(|v| w.ty(v)).collect();
                self.far_types.extend(found);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.entries.len()).rev() {
                let k = self.entries[i];
                let (exits, is_far) = self.exits_of(w, k);
                changed |= exits.len() != self.exits[k].len() || is_far != self.is_far[k];
                if self.is_value[k] && is_far {
                    changed |= self.far_types.insert(w.cont(k).ty);
                }
                self.exits[k] = exits;
                self.is_far[k] = is_far;
            }
        }
    }

    fn exits_of(&self, w: &World, k: Cont) -> (BTreeSet<Val>, bool) {
        let mut exits = BTreeSet::new();
        let mut is_far = false;
        let mut leave = |v: Val| match self.target(w, k, v) {
            Target::Exit(t) => {
                exits.insert(t);
            }
            Target::Value => is_far |= self.far_types.contains(&w.ty(v)),
            Target::Block(_) | Target::Return => {}
        };
        for &c in &self.regions[k] {
            let uses = &self.uses[c];
            for &v in &uses.control {
                leave(v);
            }
            if let Some(callee) = uses.callee.filter(|&f| !self.is_value[f]) {
                for &x in &self.exits[callee] {
                    leave(self.at_call(w, c, x));
                }
            }
        }
        for &c in &self.regions[k] {
            let uses = &self.uses[c];
            is_far |= uses.callee.is_some_and(|f| self.is_far[f]);
            is_far |= uses.indirect.is_some_and(|t| self.far_types.contains(&t));
        }
        is_far |= self.is_value[k] && !exits.is_empty();
        (exits, is_far)
    }

    /// Finds the records that entries are given and make. Returns true if a parameter turned out to be passed by value.
    fn find_records(&mut self, w: &World, nest: &Nest) -> bool {
        self.records.clear();
        self.reified.clear();
        let before = self.by_value.len();
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.entries.len()).rev() {
                let k = self.entries[i];
                let mut found: Vec<Val> = Vec::new();
                for &c in &self.regions[k] {
                    found.extend(self.values(c).filter(|&v| self.is_record(w, v)));
                    for &r in nest.references(c) {
                        found.extend(&self.records[r]);
                    }
                }
                if self.is_value[k] {
                    found.extend(&self.exits[k]);
                }
                for v in found {
                    match self.target(w, k, v) {
                        Target::Exit(t) => changed |= self.records[k].insert(t),
                        Target::Block(_) | Target::Return => changed |= self.reified[k].insert(v),
                        Target::Value => {}
                    }
                    // The return continuation stays static.
                    if self.is_static(w, v) {
                        self.by_value.insert(v);
                    }
                }
            }
        }
        self.by_value.len() != before
    }

    /// Finds the values of others that each entry, or an entry it refers to, needs.
    fn find_needs(&mut self, w: &World, nest: &Nest) {
        let mut referrers: SideTable<Cont, Vec<Cont>> = SideTable::default();
        let mut work: Vec<(Cont, Val)> = Vec::new();
        let mut computed: SideTable<Cont, FxHashSet<Val>> = SideTable::default();
        let mut blocks: FxHashMap<Cont, FxHashSet<Cont>> = FxHashMap::default();
        for &k in &self.entries {
            for &c in &self.regions[k] {
                blocks.entry(k).or_default().insert(c);
                computed[k].extend(nest.ops(c));
                if let Some(body) = w.body(c) {
                    work.push((k, body.callee));
                    work.extend(body.args.iter().map(|&a| (k, a)));
                }
                for &r in nest.references(c) {
                    if self.is_entry(r) {
                        referrers[r].push(k);
                    }
                }
            }
        }
        let mut seen: FxHashSet<(Cont, Val)> = FxHashSet::default();
        while let Some((k, v)) = work.pop() {
            let is_value = matches!(w.node(v), Node::Param(..) | Node::Op(_));
            if !is_value || w.ty(v) == w.types.mem() && matches!(w.node(v), Node::Param(..)) || !seen.insert((k, v)) {
                continue;
            }
            let is_own = |c: Cont| blocks.get(&k).is_some_and(|b| b.contains(&c));
            let owner = nest.owner(v);
            let is_op = w.as_op(v).is_some();
            let is_here = owner.is_some_and(is_own) || computed[k].contains(&v);
            if is_op && (is_here || owner.is_none()) {
                if !computed[k].contains(&v) && owner.is_some() {
                    self.local_ops[k].insert(v);
                }
                work.extend(w.args(v).iter().map(|&a| (k, a)));
            } else if !is_here && !self.is_anchor(w, v) && self.needs[k].insert(v) {
                work.extend(referrers[k].iter().map(|&r| (r, v)));
            }
        }
    }
}
