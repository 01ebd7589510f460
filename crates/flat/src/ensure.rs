//! Judges what a program asserts of its code: `ensure_residual` and `ensure_no_branch`. Separate from other analyses: it changes
//! nothing but removes the marks of `ensure_no_branch`.
//!
//! Code belongs to a block of the program by its origin: it was written there, or in a function that was unfolded in a call that
//! was written there. The copies of a block differ in the calls around it ([`Calls`]), or in the function that they are in.
//!
//! ```text
//! fn f(…) {                        func g(…):            copy of `f` in the call of line 9
//!     ensure_residual("no call");    x = load …          written in f
//!     for i in range(0, n) { … }     c = lt i, n         written in `range`, which f called
//! }                                  call h(x)           written in f: the assertion fails
//! ```
//!
//! Nothing is asserted of blocks that end the program, such as those of `assert`, nor of code that is computed at compile time.
//! Calls and loops are judged before bodies of `parallel`, `vectorize` and launches become functions that are called in loops.

use crate::analysis::{Cfg, loops};
use crate::data::*;
use crate::vector::VectorOp;
use nyala_base::{CallId, Calls, Id, Span};
use nyala_ir::ensure::{Ensure, Thing};
use nyala_ir::{Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Limit on the places that a failure lists.
const MAX_PLACES: usize = 3;
/// Limit on the steps between an address and the variable that it is an address of.
const MAX_STEPS: usize = 100;

/// An assertion that does not hold.
pub struct Failure {
    /// The place of the assertion.
    pub place: Span,
    /// The term that does not hold; `None` for `ensure_no_branch`.
    pub term: Option<usize>,
    /// The name of the function that has the code.
    pub function: String,
    /// How many there are.
    pub found: u64,
    /// Where they are, some of them.
    pub places: Vec<Span>,
}

/// Membership of code in one block of the program.
struct Scope<'a> {
    calls: &'a Calls,
    block: Span,
    /// By the calls around code, the calls around its copy of the block, if the code belongs to one.
    known: FxHashMap<CallId, Option<CallId>>,
}

impl Scope<'_> {
    fn contains(&self, code: Span) -> bool {
        code.file == self.block.file && code.lo >= self.block.lo && code.hi <= self.block.hi && !code.is_none()
    }

    /// The copy of the block that code belongs to, named by the calls around it.
    fn copy(&mut self, code: Span) -> Option<CallId> {
        if self.contains(code) {
            return Some(code.call);
        }
        if let Some(&known) = self.known.get(&code.call) {
            return known;
        }
        let found = self.calls.places(code).find(|&call| self.contains(call)).map(|call| call.call);
        self.known.insert(code.call, found);
        found
    }
}

/// What a copy of a block has of one thing.
#[derive(Default)]
struct Count {
    found: u64,
    places: Vec<Span>,
}

impl Count {
    fn add(&mut self, place: Span) {
        self.found += 1;
        if self.places.len() < MAX_PLACES && !self.places.contains(&place) {
            self.places.push(place);
        }
    }
}

/// The stages at which code is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Bodies of loops are named by the instructions that run them: calls, closures and loops are judged.
    Plain,
    /// Vectorized code: all else is judged.
    Vectorized,
}

/// Judges assertions on code at a stage.
pub fn judge(module: &Module, ensures: &[Ensure], calls: &Calls, stage: Stage) -> Vec<Failure> {
    let modules = || std::iter::once(module).chain(module.devices.iter().map(|d| &d.module));
    let mut failures = Vec::new();
    for ensure in ensures.iter().filter(|e| !e.terms.is_empty()) {
        let mut scope = Scope { calls, block: ensure.scope, known: FxHashMap::default() };
        for module in modules() {
            failures.append(&mut judge_in(module, ensure, &mut scope, stage));
        }
    }
    failures
}

fn judge_in(module: &Module, ensure: &Ensure, scope: &mut Scope, stage: Stage) -> Vec<Failure> {
    let is_due = |thing| (stage == Stage::Plain) == matches!(thing, Thing::Call | Thing::Closure | Thing::Loop);
    // Copies by the calls around them, and functions with some of their code.
    let mut copies: BTreeMap<CallId, Vec<Func>> = BTreeMap::new();
    for (i, function) in module.funcs.iter().enumerate() {
        let insts = function.blocks.iter().flat_map(|b| &b.insts).map(|i| i.span);
        for code in insts.chain(function.blocks.iter().filter_map(tail_call)) {
            if let Some(copy) = scope.copy(code) {
                let functions = copies.entry(copy).or_default();
                if functions.last() != Some(&Func::from_idx(i)) {
                    functions.push(Func::from_idx(i));
                }
            }
        }
    }
    let mut failures: Vec<Failure> = Vec::new();
    for (copy, functions) in copies {
        let place = Span { call: copy, ..ensure.place };
        let mut lanes: Option<(u64, Func)> = None;
        for &func in &functions {
            let code = Code::new(module, func, scope, copy);
            lanes = lanes.max(Some((code.lanes(), func)));
            for (i, term) in ensure.terms.iter().enumerate().filter(|(_, t)| is_due(t.thing) && t.thing != Thing::Lanes)
            {
                for count in code.count(term.thing, term.inner) {
                    if !term.holds(count.found) {
                        let function = module.func(func).name.to_string();
                        let Count { found, places } = count;
                        failures.push(Failure { place, term: Some(i), function, found, places });
                    }
                }
            }
        }
        for (i, term) in ensure.terms.iter().enumerate().filter(|(_, t)| is_due(t.thing) && t.thing == Thing::Lanes) {
            if let Some((found, func)) = lanes.filter(|l| !term.holds(l.0)) {
                let function = module.func(func).name.to_string();
                failures.push(Failure { place, term: Some(i), function, found, places: Vec::new() });
            }
        }
    }
    failures
}

/// The code of a block's copy in one function.
struct Code<'a> {
    module: &'a Module,
    function: &'a Function,
    /// By block: its instructions that belong to the copy, unless it ends the program.
    insts: Vec<Vec<&'a Inst>>,
    /// By block, the call that it ends with, if that belongs to the copy.
    tail_calls: Vec<Option<Span>>,
    /// Branches that belong to the copy, but for those that end the program or decide on another round of a loop.
    branches: Vec<(Block, Span)>,
    /// Loops that belong to the copy, by their first block.
    loops: Vec<(Block, FxHashSet<Block>)>,
}

impl<'a> Code<'a> {
    fn new(module: &'a Module, func: Func, scope: &mut Scope, copy: CallId) -> Code<'a> {
        let function = module.func(func);
        let ends = ends(function);
        let cfg = Cfg::new(function);
        let mut insts: Vec<Vec<&Inst>> = Vec::new();
        let mut tail_calls = Vec::new();
        for (i, block) in function.blocks.iter().enumerate() {
            let call = tail_call(block).filter(|&call| scope.copy(call) == Some(copy));
            tail_calls.push(call.filter(|_| cfg.is_reachable(Block::from_idx(i))));
            let is_alive = cfg.is_reachable(Block::from_idx(i)) && !ends[i];
            insts.push(block.insts.iter().filter(|i| is_alive && scope.copy(i.span) == Some(copy)).collect());
        }
        let defs = definitions(function);
        let all_loops = loops(&cfg);
        let mut branches = Vec::new();
        let mut own_loops = Vec::new();
        for (i, block) in function.blocks.iter().enumerate().filter(|(i, _)| cfg.is_reachable(Block::from_idx(*i))) {
            let b = Block::from_idx(i);
            let Terminator::Branch { cond, then, els } = &block.term else { continue };
            let place = defs.get(cond).map_or_else(|| block.insts.last().map(|i| i.span), |inst| Some(inst.span));
            let Some(place) = place.filter(|&p| scope.copy(p) == Some(copy)) else { continue };
            let leaves = |blocks: &FxHashSet<Block>| {
                blocks.contains(&b) && blocks.contains(&then.block) != blocks.contains(&els.block)
            };
            let is_test = all_loops.iter().any(leaves);
            if !ends[then.block.idx()] && !ends[els.block.idx()] && !is_test {
                branches.push((b, place));
            }
        }
        for blocks in all_loops {
            // The first block of a loop is the first that is reached.
            let Some(&first) = blocks.iter().min_by_key(|b| cfg.position[b.idx()]) else { continue };
            let tests = |b: &&Block| match &function.block(**b).term {
                Terminator::Branch { cond, then, els } => {
                    let leaves = blocks.contains(&then.block) != blocks.contains(&els.block);
                    leaves && defs.get(cond).is_some_and(|inst| scope.copy(inst.span) == Some(copy))
                }
                _ => false,
            };
            let mut in_order: Vec<&Block> = blocks.iter().collect();
            in_order.sort_unstable();
            if in_order.iter().any(tests) {
                own_loops.push((first, blocks));
            }
        }
        own_loops.sort_unstable_by_key(|l| l.0);
        Code { module, function, insts, tail_calls, branches, loops: own_loops }
    }

    /// The most lanes of a vector.
    fn lanes(&self) -> u64 {
        let results = self.insts.iter().flatten().filter_map(|i| i.result);
        let lanes = results.filter_map(|r| Some(self.module.types.as_vector(self.function.ty(r))?.1));
        lanes.max().unwrap_or(1).into()
    }

    /// How many of a thing there are: in all, or in each innermost loop. Without a loop, the code is that of one.
    fn count(&self, thing: Thing, inner: bool) -> Vec<Count> {
        let is_inner = |(_, blocks): &&(Block, FxHashSet<Block>)| {
            !self.loops.iter().any(|(first, other)| other.len() < blocks.len() && blocks.contains(first))
        };
        match inner && !self.loops.is_empty() {
            true => self.loops.iter().filter(is_inner).map(|(_, blocks)| self.count_in(thing, Some(blocks))).collect(),
            false => vec![self.count_in(thing, None)],
        }
    }

    fn count_in(&self, thing: Thing, blocks: Option<&FxHashSet<Block>>) -> Count {
        let is_in = |b: Block| blocks.is_none_or(|blocks| blocks.contains(&b));
        let mut count = Count::default();
        match thing {
            Thing::Branch => {
                self.branches.iter().filter(|(b, _)| is_in(*b)).for_each(|(_, place)| count.add(*place));
            }
            Thing::Loop => {
                for (first, _) in self.loops.iter().filter(|(first, _)| is_in(*first)) {
                    count.add(self.place(*first));
                }
            }
            _ => {
                for (i, insts) in self.insts.iter().enumerate().filter(|(i, _)| is_in(Block::from_idx(*i))) {
                    insts.iter().filter(|inst| self.is(thing, inst)).for_each(|inst| count.add(inst.span));
                    if let (Thing::Call, Some(place)) = (thing, self.tail_calls[i]) {
                        count.add(place);
                    }
                }
            }
        }
        count
    }

    fn place(&self, block: Block) -> Span {
        self.insts[block.idx()].first().map_or(self.function.span, |i| i.span)
    }

    fn is(&self, thing: Thing, inst: &Inst) -> bool {
        let symbol = |f: Func| self.module.func(f).symbol().unwrap_or_default();
        let allocates = |f: Func| symbol(f).starts_with("nyala_alloc");
        // They run bodies that belong to the block.
        let starts = |f: Func| matches!(symbol(f), "nyala_parallel" | "nyala_spawn" | "nyala_launch");
        match (thing, inst.op) {
            (Thing::Instruction, _) => true,
            (Thing::Allocation, InstOp::Op(Op::Alloc)) => true,
            (Thing::Allocation, InstOp::Call(f)) => allocates(f),
            (Thing::Call, InstOp::Call(f)) => !allocates(f) && !starts(f),
            (Thing::Call, InstOp::CallIndirect) => true,
            (Thing::Closure, InstOp::CallIndirect) => true,
            (Thing::Closure, InstOp::Call(f)) if starts(f) => false,
            (Thing::Closure, _) => {
                let is_function =
                    |v: &Value| matches!(self.function.as_const(*v), Some(Const::Func(_) | Const::CFunc(_)));
                inst.args.iter().any(is_function)
            }
            (Thing::Atomic, InstOp::Op(op)) => {
                matches!(op, Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak)
            }
            (Thing::Division, InstOp::Op(op)) => matches!(op, Op::Div | Op::Rem | Op::PDiv | Op::PRem),
            (Thing::Load, InstOp::Op(Op::Load) | InstOp::Vector(VectorOp::Load | VectorOp::Gather)) => true,
            (Thing::Store, InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store | VectorOp::Scatter)) => true,
            (Thing::Gather, InstOp::Vector(VectorOp::Gather)) => true,
            (Thing::Scatter, InstOp::Vector(VectorOp::Scatter)) => true,
            _ => false,
        }
    }
}

fn tail_call(block: &BlockData) -> Option<Span> {
    match block.term {
        Terminator::TailCall { span, .. } => Some(span),
        _ => None,
    }
}

fn definitions(function: &Function) -> FxHashMap<Value, &Inst> {
    function.blocks.iter().flat_map(|b| &b.insts).filter_map(|i| Some((i.result?, i))).collect()
}

/// By block, whether the program ends there for certain.
fn ends(function: &Function) -> Vec<bool> {
    let mut ends = vec![false; function.blocks.len()];
    // Blocks mostly come before those that they lead to.
    loop {
        let mut found = false;
        for (i, block) in function.blocks.iter().enumerate().rev().filter(|(_, b)| !leaves(&b.term)) {
            if !ends[i] && block.term.edges().all(|e| ends[e.block.idx()]) {
                (ends[i], found) = (true, true);
            }
        }
        if !found {
            return ends;
        }
    }
}

/// Whether control leaves the function.
fn leaves(term: &Terminator) -> bool {
    matches!(term, Terminator::Return(_) | Terminator::TailCall { .. })
}

/// Removes the marks of `ensure_no_branch`. Returns the branches that depend on a marked value.
pub fn watch(module: &mut Module, ensures: &[Ensure], calls: &Calls) -> Vec<Failure> {
    let mut failures = Vec::new();
    for i in 0..module.funcs.len() {
        let is_mark = |inst: &Inst| inst.op == InstOp::Op(Op::Watch);
        let marks: Vec<Inst> =
            module.funcs[i].blocks.iter().flat_map(|b| &b.insts).filter(|i| is_mark(i)).cloned().collect();
        if marks.is_empty() {
            continue;
        }
        for block in &mut module.funcs[i].blocks {
            block.insts.retain(|inst| !is_mark(inst));
        }
        for mark in &marks {
            let place = mark.span.without_call();
            let Some(ensure) = ensures.iter().find(|e| e.place == place) else { continue };
            let mut scope = Scope { calls, block: ensure.scope, known: FxHashMap::default() };
            let copy = scope.copy(mark.span);
            let function = &module.funcs[i];
            let count = dependent_branches(module, function, mark.args[0], |place| scope.copy(place) == copy);
            if count.found > 0 {
                let Count { found, places } = count;
                failures.push(Failure {
                    place: mark.span,
                    term: None,
                    function: function.name.to_string(),
                    found,
                    places,
                });
            }
        }
    }
    failures
}

/// Branches of a block whose conditions are computed from a value, also through variables in memory.
fn dependent_branches(
    module: &Module,
    function: &Function,
    value: Value,
    mut is_own: impl FnMut(Span) -> bool,
) -> Count {
    let defs = definitions(function);
    let variable = |address: Value| {
        let mut at = address;
        for _ in 0..MAX_STEPS {
            match defs.get(&at) {
                Some(inst) if inst.op == InstOp::Op(Op::Slot) => return Some(at),
                Some(inst) if !inst.args.is_empty() => at = inst.args[0],
                _ => return None,
            }
        }
        None
    };
    let is_address = |v: Value| matches!(module.types.kind(function.ty(v)), TyKind::Ptr { .. });
    let mut depends: FxHashSet<Value> = FxHashSet::from_iter([value]);
    let mut n = 0;
    // Grows until nothing is added, so it ends.
    while depends.len() > n {
        n = depends.len();
        for block in &function.blocks {
            for inst in &block.insts {
                if !inst.args.iter().any(|a| depends.contains(a)) {
                    let loads = matches!(inst.op, InstOp::Op(Op::Load));
                    if !(loads && variable(inst.args[0]).is_some_and(|slot| depends.contains(&slot))) {
                        continue;
                    }
                }
                depends.extend(inst.result.filter(|&r| !is_address(r) || depends.contains(&inst.args[0])));
                if let (InstOp::Op(Op::Store), [to, stored]) = (inst.op, &inst.args[..])
                    && depends.contains(stored)
                {
                    depends.extend(variable(*to));
                }
            }
            for edge in block.term.edges() {
                for (&param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                    if depends.contains(arg) {
                        depends.insert(param);
                    }
                }
            }
        }
    }
    let ends = ends(function);
    let mut count = Count::default();
    for block in &function.blocks {
        let Terminator::Branch { cond, then, els } = &block.term else { continue };
        if depends.contains(cond) && !ends[then.block.idx()] && !ends[els.block.idx()] {
            let place = defs.get(cond).map_or_else(|| block.insts.last().map(|i| i.span), |inst| Some(inst.span));
            count.places.extend(place.filter(|&p| is_own(p)).filter(|_| count.places.len() < MAX_PLACES));
            count.found += u64::from(place.is_none_or(&mut is_own));
        }
    }
    count
}
