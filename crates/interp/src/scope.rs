//! The scope of a function: its blocks, the values it captures, and which of its local variables can live in registers.
//!
//! A continuation is a function of its own if it returns (its last parameter is a continuation, by the convention of
//! `nyala_ir`), if it is exported or foreign, if it has no free values, or if it may be entered when values it needs
//! have been computed anew ([`rounds`](crate::rounds)). All others are blocks. A block belongs to one function: the
//! last function on all paths of references that lead to the block. The block's own values can only be in that
//! function's frame, since all continuations between the function and the block are blocks of the same function.
//! Another function that refers to the block is nested in that function and captures the block as a continuation: an
//! entry point with the frame of the activation that made the closure.

use nyala_base::{Id, SideTable, graph};
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Effect, Linkage, Node, Op, Ty, TyKind, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Facts about the whole program.
pub struct Program<'w> {
    pub w: &'w World,
    pub nest: &'w Nest,
    captured: FxHashMap<Cont, Rc<Vec<Val>>>,
    /// By function, the enclosing functions whose frames it keeps alive.
    frames: FxHashMap<Cont, Rc<Vec<Cont>>>,
    /// Continuations that are functions because they may be entered in a later iteration ([`rounds`](crate::rounds)).
    of_rounds: Vec<Cont>,
    /// See [`escape`](crate::escape).
    pub(crate) stored: Option<SideTable<Val, bool>>,
    is_func: SideTable<Cont, Option<bool>>,
    function: SideTable<Cont, Option<Cont>>,
}

/// Facts about one function.
pub struct Scope {
    /// The function itself and its blocks, in reverse postorder. The block that makes a closure precedes the blocks
    /// that the closure captures.
    pub blocks: Vec<Cont>,
    /// Immediate dominators by position in `blocks`; the first block is its own.
    pub idom: Vec<usize>,
    /// Addresses of local variables that are kept in registers: the slot, and the path to the part.
    pub places: FxHashMap<Val, (Val, Vec<u64>)>,
    /// Local variables in memory.
    pub memory_slots: Vec<Val>,
    /// The variables in memory that live as long as a function value that captures them, because it leaves the
    /// function.
    pub outliving_slots: FxHashSet<Val>,
    /// Values that may hold an address of a local variable in memory.
    pub derived: FxHashSet<Val>,
    /// Whether such an address was stored outside of the function's variables.
    pub escaped: bool,
    /// Some function or continuation value may be a continuation of this function's own frame.
    pub may_hold_own: bool,
}

/// A thing that a function captures: a value, or the frame of an enclosing function.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Captured {
    Value(Val),
    Frame(Cont),
}

/// Slots with more words stay in memory.
const MAX_WORDS: u64 = 64;

impl<'w> Program<'w> {
    pub fn new(w: &'w World, nest: &'w Nest) -> Program<'w> {
        let mut program = Program {
            w,
            nest,
            captured: FxHashMap::default(),
            frames: FxHashMap::default(),
            of_rounds: Vec::new(),
            stored: None,
            is_func: SideTable::default(),
            function: SideTable::default(),
        };
        program.find_captured();
        program.find_rounds();
        program
    }

    /// Makes these blocks functions, and updates what functions capture.
    pub(super) fn make_functions(&mut self, blocks: &[Cont]) {
        blocks.iter().for_each(|&k| self.is_func[k] = Some(true));
        self.of_rounds.extend(blocks);
        self.function = SideTable::default();
        self.find_captured();
    }

    /// Whether a continuation of this type is a function that returns.
    pub fn returns(&self, ty: Ty) -> bool {
        let mut ty = ty;
        let mut returns = false;
        while let TyKind::Cn(params) = self.w.types.kind(ty) {
            match params.last() {
                Some(&last) if matches!(self.w.types.kind(last), TyKind::Cn(_)) => ty = last,
                _ => break,
            }
            returns = !returns;
        }
        returns
    }

    pub fn is_func(&mut self, k: Cont) -> bool {
        if let Some(known) = self.is_func[k] {
            return known;
        }
        let data = self.w.cont(k);
        let is = *data.linkage != Linkage::Internal || self.returns(data.ty) || self.nest.free(k).is_empty();
        self.is_func[k] = Some(is);
        is
    }

    /// The return continuation's position among the parameters.
    pub fn ret_param(&self, k: Cont) -> Option<usize> {
        let data = self.w.cont(k);
        let last = self.w.params(k).len().checked_sub(1)?;
        self.returns(data.ty).then_some(last)
    }

    /// The function that a continuation belongs to.
    pub fn function(&mut self, k: Cont) -> Cont {
        let mut path = Vec::new();
        let mut at = k;
        let function = loop {
            if let Some(known) = self.function[at] {
                break known;
            }
            if self.is_func(at) {
                break at;
            }
            path.push(at);
            match self.nest.dominator(at) {
                Some(up) => at = up,
                None => break at,
            }
        };
        for block in path {
            self.function[block] = Some(function);
        }
        function
    }

    pub fn is_block_of(&mut self, k: Cont, f: Cont) -> bool {
        !self.is_func(k) && self.function(k) == f
    }

    /// The values that a function captures, in order: parameters, results of effects, blocks of other functions.
    pub fn captured(&self, k: Cont) -> Rc<Vec<Val>> {
        self.captured.get(&k).cloned().unwrap_or_default()
    }

    /// The enclosing functions whose frames must live as long as this function: it may have addresses of their local
    /// variables.
    pub fn frames(&self, k: Cont) -> Rc<Vec<Cont>> {
        self.frames.get(&k).cloned().unwrap_or_default()
    }

    fn find_captured(&mut self) {
        let mut members: FxHashMap<Cont, Vec<Cont>> = FxHashMap::default();
        let mut open: Vec<Cont> = Vec::new();
        for i in 0..self.nest.conts.len() {
            let k = self.nest.conts[i];
            let f = self.function(k);
            if !self.nest.free(f).is_empty() {
                if f == k {
                    open.push(f);
                }
                members.entry(f).or_default().push(k);
            }
        }
        let mut referrers: FxHashMap<Cont, Vec<Cont>> = FxHashMap::default();
        let mut work: Vec<(Cont, Captured)> = Vec::new();
        for &f in &open {
            let (needed, functions) = self.needed(f, &members[&f]);
            work.extend(needed.into_iter().map(|v| (f, Captured::Value(v))));
            for g in functions {
                referrers.entry(g).or_default().push(f);
            }
        }
        for i in 0..self.of_rounds.len() {
            let k = self.of_rounds[i];
            if let Some(up) = self.nest.dominator(k) {
                work.push((k, Captured::Frame(self.function(up))));
            }
        }
        let (mut values, mut frames): (FxHashMap<Cont, Vec<Val>>, FxHashMap<Cont, Vec<Cont>>) = Default::default();
        let mut seen: FxHashSet<(Cont, Captured)> = FxHashSet::default();
        while let Some((f, what)) = work.pop() {
            let home = match what {
                Captured::Frame(g) => Some(g),
                Captured::Value(v) => match self.w.node(v) {
                    Node::Cont(c) => Some(c),
                    _ => self.nest.owner(v),
                },
            };
            if home.is_some_and(|k| self.function(k) == f) || !seen.insert((f, what)) {
                continue;
            }
            match what {
                Captured::Frame(g) => frames.entry(f).or_default().push(g),
                Captured::Value(v) => values.entry(f).or_default().push(v),
            }
            work.extend(referrers.get(&f).into_iter().flatten().map(|&r| (r, what)));
        }
        values.values_mut().for_each(|found| found.sort_unstable());
        frames.values_mut().for_each(|found| found.sort_unstable());
        self.captured = values.into_iter().map(|(f, found)| (f, Rc::new(found))).collect();
        self.frames = frames.into_iter().map(|(f, found)| (f, Rc::new(found))).collect();
    }

    /// The values that the function's own blocks need from outside, and the functions they refer to that capture
    /// values.
    fn needed(&mut self, f: Cont, blocks: &[Cont]) -> (Vec<Val>, Vec<Cont>) {
        let w = self.w;
        let (mut needed, mut functions) = (Vec::new(), Vec::new());
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work: Vec<Val> = Vec::new();
        for &k in blocks {
            if let Some(body) = w.body(k) {
                work.push(body.callee);
                work.extend(body.args);
            }
            for &v in self.nest.ops(k) {
                if w.as_op(v).is_some_and(|op| op.effect() != Effect::Total) {
                    work.extend(w.args(v));
                }
            }
            while let Some(v) = work.pop() {
                if !seen.insert(v) {
                    continue;
                }
                match w.node(v) {
                    Node::Param(..) => needed.push(v),
                    Node::Op(op) if op.effect() != Effect::Total => needed.push(v),
                    Node::Op(_) => work.extend(w.args(v)),
                    Node::Cont(c) if !self.is_func(c) => needed.push(v),
                    Node::Cont(c) if c != f && !self.nest.free(c).is_empty() => functions.push(c),
                    _ => {}
                }
            }
        }
        needed.retain(|&v| w.ty(v) != w.types.mem());
        (needed, functions)
    }

    /// The continuations that a body refers to, directly or through operations, in order.
    pub fn references(&self, k: Cont) -> Vec<Cont> {
        let mut found = Vec::new();
        let Some(body) = self.w.body(k) else { return found };
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work: Vec<Val> = body.args.iter().rev().copied().collect();
        work.push(body.callee);
        // Stored continuations are referenced by their store.
        for &op in self.nest.ops(k) {
            if self.w.as_op(op).is_some_and(|op| op.effect() != Effect::Total) {
                work.extend(self.w.args(op));
            }
        }
        while let Some(v) = work.pop() {
            match self.w.node(v) {
                Node::Cont(c) if !found.contains(&c) => found.push(c),
                Node::Op(op) if op.effect() == Effect::Total && seen.insert(v) => {
                    work.extend(self.w.args(v).iter().rev());
                }
                _ => {}
            }
        }
        found
    }

    pub fn scope(&mut self, f: Cont, count: &mut dyn FnMut(Ty) -> u64) -> Scope {
        let (blocks, successors) = self.blocks(f);
        let idom = graph::dominators(&successors, 0);
        let mut scope = Scope {
            blocks,
            idom,
            places: FxHashMap::default(),
            memory_slots: Vec::new(),
            outliving_slots: FxHashSet::default(),
            derived: FxHashSet::default(),
            escaped: false,
            may_hold_own: false,
        };
        self.find_places(&mut scope, count);
        self.find_derived(f, &mut scope);
        scope.may_hold_own = self.may_hold_own(f, &scope);
        scope
    }

    /// The blocks in reverse postorder, and by position, the positions of their successors.
    pub(super) fn blocks(&mut self, f: Cont) -> (Vec<Cont>, Vec<Vec<usize>>) {
        let mut succ: FxHashMap<Cont, Vec<Cont>> = FxHashMap::default();
        let mut post: Vec<Cont> = Vec::new();
        let mut stack: Vec<(Cont, usize)> = vec![(f, 0)];
        let first = self.block_references(f, f);
        succ.insert(f, first);
        while let Some((k, i)) = stack.last_mut() {
            let next = succ[&*k].get(*i).copied();
            *i += 1;
            match next {
                Some(c) if !succ.contains_key(&c) => {
                    let refs = self.block_references(f, c);
                    succ.insert(c, refs);
                    stack.push((c, 0));
                }
                Some(_) => {}
                None => {
                    post.push(*k);
                    stack.pop();
                }
            }
        }
        post.reverse();
        let position: FxHashMap<Cont, usize> = post.iter().enumerate().map(|(i, &k)| (k, i)).collect();
        let successors = post.iter().map(|k| succ[k].iter().map(|c| position[c]).collect()).collect();
        (post, successors)
    }

    /// Blocks of `f` that control may reach from its block `k`, directly or through functions that capture them.
    fn block_references(&mut self, f: Cont, k: Cont) -> Vec<Cont> {
        let mut found = Vec::new();
        let mut known: FxHashSet<Cont> = FxHashSet::default();
        for c in self.references(k) {
            self.own_blocks_in(f, c, &mut |block| {
                if known.insert(block) {
                    found.push(block);
                }
            });
        }
        found
    }

    /// Calls `each` for the blocks of `f` that a continuation is or captures.
    fn own_blocks_in(&mut self, f: Cont, c: Cont, each: &mut dyn FnMut(Cont)) {
        if !self.is_func(c) {
            if self.function(c) == f {
                each(c);
            }
            return;
        }
        for &v in self.captured(c).iter() {
            if let Node::Cont(block) = self.w.node(v)
                && self.function(block) == f
            {
                each(block);
            }
        }
    }

    /// Finds slots whose address is only used in this function, to load and store the variable or a part of it.
    fn find_places(&mut self, scope: &mut Scope, count: &mut dyn FnMut(Ty) -> u64) {
        let w = self.w;
        let mut places: FxHashMap<Val, (Val, Vec<u64>)> = FxHashMap::default();
        let mut escapes: FxHashSet<Val> = FxHashSet::default();
        for i in 0..scope.blocks.len() {
            let k = scope.blocks[i];
            for &v in self.nest.ops(k) {
                let Some(op) = w.as_op(v) else { continue };
                let args = w.args(v);
                let place = |i: usize| places.get(&args[i]).cloned();
                match op {
                    Op::Slot => {
                        let words =
                            w.types.part(w.ty(v), 1).and_then(|p| w.types.pointee(p)).map_or(u64::MAX, &mut *count);
                        if words > MAX_WORDS {
                            escapes.insert(v);
                        }
                        places.insert(v, (v, Vec::new()));
                    }
                    Op::Extract if w.is_op(args[0], Op::Slot) => {
                        if let Some(place) = place(0) {
                            places.insert(v, place);
                        }
                    }
                    Op::Lea => {
                        let Some((slot, mut path)) = place(0) else { continue };
                        let n = w.types.pointee(w.ty(args[0])).and_then(|t| w.types.n_parts(t));
                        match (w.as_lit(args[1]), n) {
                            (Some(idx), Some(n)) if idx < n => {
                                path.push(idx);
                                places.insert(v, (slot, path));
                            }
                            _ => {
                                escapes.insert(slot);
                            }
                        }
                    }
                    Op::Load => {}
                    Op::Store => {
                        if let Some((slot, _)) = place(2) {
                            escapes.insert(slot);
                        }
                    }
                    _ => escapes.extend(args.iter().filter_map(|a| places.get(a)).map(|p| p.0)),
                }
            }
            if let Some(body) = w.body(k) {
                // Operations that no continuation owns count as part of the arguments.
                let mut work: Vec<Val> = body.args.to_vec();
                work.push(body.callee);
                while let Some(v) = work.pop() {
                    if let Some((slot, _)) = places.get(&v) {
                        escapes.insert(*slot);
                    }
                    if matches!(w.node(v), Node::Op(_)) && self.nest.owner(v).is_none() {
                        work.extend(w.args(v));
                    }
                }
            }
            for c in self.references(k) {
                if self.is_func(c) {
                    let captured = self.captured(c);
                    escapes.extend(captured.iter().filter_map(|v| places.get(v)).map(|p| p.0));
                }
            }
        }
        places.retain(|_, (slot, _)| !escapes.contains(slot));
        scope.places = places;
    }

    /// Whether a value of this type can hold an address or a closure.
    pub(crate) fn can_hold(&self, ty: Ty, memo: &mut FxHashMap<Ty, bool>) -> bool {
        if let Some(&known) = memo.get(&ty) {
            return known;
        }
        let types = &self.w.types;
        let holds = match types.kind(ty) {
            TyKind::Prim(p) | TyKind::Vector(p, _) => p.is_int() && p.bits() == 64,
            TyKind::Ptr { .. } | TyKind::Cn(_) => true,
            TyKind::Code | TyKind::Mem => false,
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => self.can_hold(*elem, memo),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let n = types.n_parts(ty).unwrap_or(0);
                (0..n).filter_map(|i| types.part(ty, i)).any(|p| self.can_hold(p, memo))
            }
        };
        memo.insert(ty, holds);
        holds
    }

    /// Finds the values that may hold addresses of local variables in memory.
    fn find_derived(&mut self, f: Cont, scope: &mut Scope) {
        let w = self.w;
        let is_memory_slot = |v: &Val| w.is_op(*v, Op::Slot) && !scope.places.contains_key(v);
        let ops = scope.blocks.iter().flat_map(|&k| self.nest.ops(k));
        scope.memory_slots = ops.copied().filter(is_memory_slot).collect();
        if scope.memory_slots.is_empty() {
            return;
        }
        let mut memo = FxHashMap::default();
        let mut derived: FxHashSet<Val> = FxHashSet::default();
        let (mut in_slots, mut escaped) = (false, false);
        loop {
            let before = (derived.len(), in_slots, escaped);
            for i in 0..scope.blocks.len() {
                let k = scope.blocks[i];
                for v in self.nest.ops(k).to_vec() {
                    let Some(op) = w.as_op(v) else { continue };
                    let args = w.args(v);
                    let any = args.iter().any(|&a| derived.contains(&a)) || self.holds_derived(args, &derived);
                    if let Some((at, written)) = op.writes()
                        && (derived.contains(&args[written]) || self.holds_derived(&args[written..=written], &derived))
                    {
                        let own = derived.contains(&args[at]) || scope.places.contains_key(&args[at]);
                        in_slots |= own;
                        escaped |= !own;
                    }
                    match op {
                        Op::Slot if !scope.places.contains_key(&v) => {
                            derived.insert(v);
                        }
                        Op::Store => {}
                        Op::Load => {
                            let own = derived.contains(&args[1]) || scope.places.contains_key(&args[1]);
                            if own && in_slots && self.can_hold(w.ty(v), &mut memo) {
                                derived.insert(v);
                            }
                        }
                        _ => {
                            if any && self.can_hold(w.ty(v), &mut memo) {
                                derived.insert(v);
                            }
                        }
                    }
                }
                let Some(body) = w.body(k) else { continue };
                let args: Vec<Val> = body.args.to_vec();
                let any = self.holds_derived(&args, &derived) || self.holds_derived(&[body.callee], &derived);
                match w.as_cont(body.callee).filter(|&c| self.is_block_of(c, f)) {
                    Some(block) => {
                        for (&param, &arg) in w.params(block).iter().zip(args.iter()) {
                            if self.holds_derived(&[arg], &derived) {
                                derived.insert(param);
                            }
                        }
                    }
                    None if any => {
                        // The callee may store one address in another slot, and may return it.
                        in_slots = true;
                        let callee = w.as_cont(body.callee).filter(|_| !escaped);
                        escaped |= callee.is_some_and(|c| {
                            let mut passed = (0..args.len()).filter(|&i| derived.contains(&args[i]));
                            passed.any(|i| self.may_store(c, i))
                        });
                        for c in self.references(k) {
                            let mut blocks = Vec::new();
                            self.own_blocks_in(f, c, &mut |block| blocks.push(block));
                            for &param in blocks.iter().flat_map(|&block| w.params(block)) {
                                if self.can_hold(w.ty(param), &mut memo) {
                                    derived.insert(param);
                                }
                            }
                        }
                    }
                    None => {}
                }
            }
            if before == (derived.len(), in_slots, escaped) {
                break;
            }
        }
        if self.function_leaves(f, scope, &derived) {
            for i in 0..scope.blocks.len() {
                for c in self.references(scope.blocks[i]) {
                    if self.is_func(c) {
                        let slots = self.captured(c).iter().map(|&v| base_of(w, v)).collect::<Vec<_>>();
                        scope.outliving_slots.extend(slots.into_iter().filter(|v| scope.memory_slots.contains(v)));
                    }
                }
            }
        }
        scope.derived = derived;
        scope.escaped = escaped;
    }

    /// Whether a function value that holds a value derived from local variables may be returned, or stored elsewhere.
    fn function_leaves(&mut self, f: Cont, scope: &Scope, derived: &FxHashSet<Val>) -> bool {
        let w = self.w;
        let is_function = |v: Val| w.types.has_function(w.ty(v));
        for &k in &scope.blocks {
            for v in self.nest.ops(k).to_vec() {
                if let Some((at, written)) = w.as_op(v).and_then(|op| op.writes())
                    && is_function(w.args(v)[written])
                    && !derived.contains(&w.args(v)[at])
                    && !scope.places.contains_key(&w.args(v)[at])
                    && self.holds_derived(&w.args(v)[written..=written], derived)
                {
                    return true;
                }
            }
            let Some(body) = w.body(k) else { continue };
            let given: Vec<usize> = (0..body.args.len()).filter(|&i| is_function(body.args[i])).collect();
            let leaves = match w.node(body.callee) {
                Node::Cont(c) if self.is_block_of(c, f) => continue,
                // In tail position, the result of the callee leaves this function, too.
                Node::Cont(_)
                    if body.args.last().is_some_and(|&ret| matches!(w.node(ret), Node::Param(k, _) if k == f)) =>
                {
                    given
                }
                Node::Cont(c) => given.into_iter().filter(|&i| self.may_store(c, i)).collect(),
                Node::Param(..) if !self.returns(w.ty(body.callee)) => given,
                _ => continue,
            };
            if leaves.into_iter().any(|i| self.holds_derived(&body.args[i..=i], derived)) {
                return true;
            }
        }
        false
    }

    /// Whether one of the values is derived, or is a function that captures a derived value.
    pub fn holds_derived(&mut self, values: &[Val], derived: &FxHashSet<Val>) -> bool {
        if derived.is_empty() {
            return false;
        }
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work: Vec<Val> = values.to_vec();
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            if derived.contains(&v) {
                return true;
            }
            match self.w.node(v) {
                Node::Cont(c) if self.is_func(c) && self.captured(c).iter().any(|v| derived.contains(v)) => {
                    return true;
                }
                Node::Op(_) if self.nest.owner(v).is_none() => work.extend(self.w.args(v)),
                _ => {}
            }
        }
        false
    }

    /// Whether a continuation in the function's frame, or a function that captures one, may be passed to a block's
    /// parameter, stored in memory, or passed to a function whose result may hold it.
    fn may_hold_own(&mut self, f: Cont, scope: &Scope) -> bool {
        let w = self.w;
        for &k in &scope.blocks {
            let stored: Vec<Val> =
                self.nest.ops(k).iter().filter(|&&v| w.is_op(v, Op::Store)).map(|&v| w.args(v)[2]).collect();
            if stored.iter().any(|&v| self.mentions_own(f, v)) {
                return true;
            }
            let Some(body) = w.body(k) else { continue };
            if w.as_cont(body.callee).is_some_and(|c| self.is_block_of(c, f)) {
                if body.args.iter().any(|&a| self.mentions_own(f, a)) {
                    return true;
                }
                continue;
            }
            let Some((&last, args)) = body.args.split_last() else { continue };
            let others: Vec<Val> = args.iter().copied().chain([body.callee]).collect();
            let ret = w.as_cont(last).filter(|&k| self.is_block_of(k, f));
            // The return continuation may receive the other arguments. A callee that is given a block which receives
            // functions may pass all of them to it.
            let is_held = match ret {
                Some(ret) if receives(w, ret) => others.iter().any(|&v| self.mentions_own(f, v)),
                Some(_) => false,
                None => self.mentions_receiver(f, last),
            };
            if is_held || others.iter().any(|&v| self.mentions_receiver(f, v)) {
                return true;
            }
        }
        false
    }

    /// Whether a continuation is a block of `f`, captures one, or keeps the frame of `f`.
    pub fn captures_own(&mut self, f: Cont, c: Cont) -> bool {
        self.captures(f, c, &|_| true) || self.frames.get(&c).is_some_and(|frames| frames.contains(&f))
    }

    /// Whether a value is, or is built from, a continuation for which [`Program::captures_own`] is true.
    pub fn mentions_own(&mut self, f: Cont, v: Val) -> bool {
        self.mentions(v, &mut |program, c| program.captures_own(f, c))
    }

    /// Whether a value is, or is built from, a block of `f` that receives functions, or a function that captures one.
    fn mentions_receiver(&mut self, f: Cont, v: Val) -> bool {
        self.mentions(v, &mut |program, c| program.captures(f, c, &|block| receives(program.w, block)))
    }

    fn captures(&mut self, f: Cont, c: Cont, such: &dyn Fn(Cont) -> bool) -> bool {
        let mut any = false;
        self.own_blocks_in(f, c, &mut |block| any |= such(block));
        any
    }

    fn mentions(&mut self, v: Val, such: &mut dyn FnMut(&mut Self, Cont) -> bool) -> bool {
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if !matches!(self.w.node(v), Node::Cont(_) | Node::Op(_)) || !seen.insert(v) {
                continue;
            }
            match self.w.node(v) {
                Node::Cont(c) if such(self, c) => return true,
                Node::Op(_) if self.nest.owner(v).is_none() => work.extend(self.w.args(v)),
                Node::Op(op) if op.effect() == Effect::Total && self.has_function_part(v) => {
                    work.extend(self.w.args(v))
                }
                _ => {}
            }
        }
        false
    }

    fn has_function_part(&self, v: Val) -> bool {
        self.w.types.has_function(self.w.ty(v))
    }
}

/// Whether a block has parameters that are functions.
fn receives(w: &World, block: Cont) -> bool {
    w.params(block).iter().any(|&p| w.types.has_function(w.ty(p)))
}

/// The name of a continuation in messages.
pub fn name(w: &World, k: Cont) -> String {
    if w.name(k).is_empty() { format!("k{}", k.idx()) } else { w.name(k).to_string() }
}

/// The `slot` operation of the variable that an address points into, or the address itself.
fn base_of(w: &World, mut v: Val) -> Val {
    while let Some(Op::Lea | Op::Bitcast | Op::Extract) = w.as_op(v) {
        v = w.args(v)[0];
    }
    v
}
