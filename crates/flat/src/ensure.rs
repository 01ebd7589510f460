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
//! A block of a library does not have code of the program's own files: functions that the program gives it, with all that they
//! call. Calls of them, and of functions that are only known at run time, are the program's as well.
//!
//! Nothing is asserted of blocks that end the program, such as those of `assert`, nor of code that is computed at compile time.
//! Calls and loops are judged before bodies of `parallel`, `vectorize` and launches become functions that are called in loops.

use crate::analysis::{Cfg, loops};
use crate::data::*;
use crate::vector::VectorOp;
use nyala_base::{CallId, Calls, FileId, Id, Span};
use nyala_ir::Op;
use nyala_ir::ensure::{Ensure, Thing};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::rc::Rc;

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

impl Failure {
    fn new(ensure: &Ensure, copy: CallId, term: Option<usize>, function: &Function, count: Count) -> Failure {
        let Count { found, places } = count;
        let place = Span { call: copy, ..ensure.place };
        Failure { place, term, function: function.name.to_string(), found, places }
    }
}

/// Where code comes from.
#[derive(Clone, Copy)]
pub struct Origins<'a> {
    /// Calls that were unfolded.
    pub calls: &'a Calls,
    /// Files of libraries.
    pub libraries: &'a [FileId],
}

/// What a program gives to the library that has a block.
#[derive(Clone, Copy)]
struct Given<'a> {
    /// Files of libraries, if the block is in one.
    libraries: Option<&'a [FileId]>,
}

impl Given<'_> {
    /// Whether code is the program's.
    fn has(self, code: Span) -> bool {
        self.libraries.is_some_and(|files| !code.is_none() && !files.contains(&code.file))
    }
}

/// Membership of code in one block of the program.
struct Scope<'a> {
    calls: &'a Calls,
    block: Span,
    given: Given<'a>,
    /// By the calls around code, the calls around its copy of the block, if the code belongs to one.
    known: FxHashMap<CallId, Option<CallId>>,
}

impl<'a> Scope<'a> {
    fn new(origins: Origins<'a>, ensure: &Ensure) -> Scope<'a> {
        let Origins { calls, libraries } = origins;
        let given = Given { libraries: libraries.contains(&ensure.scope.file).then_some(libraries) };
        Scope { calls, block: ensure.scope, given, known: FxHashMap::default() }
    }

    fn contains(&self, code: Span) -> bool {
        code.file == self.block.file && code.lo >= self.block.lo && code.hi <= self.block.hi && !code.is_none()
    }

    /// The copy of the block that code belongs to, named by the calls around it.
    fn copy(&mut self, code: Span) -> Option<CallId> {
        if self.contains(code) {
            return Some(code.call);
        }
        if self.given.has(code) {
            return None;
        }
        if let Some(&known) = self.known.get(&code.call) {
            return known;
        }
        let mut own = self.calls.places(code).take_while(|&call| !self.given.has(call));
        let found = own.find(|&call| self.contains(call)).map(|call| call.call);
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
pub fn judge(module: &Module, ensures: &[Ensure], origins: Origins, stage: Stage) -> Vec<Failure> {
    let modules = || std::iter::once(module).chain(module.devices.iter().map(|d| &d.module));
    let mut failures = Vec::new();
    for ensure in ensures.iter().filter(|e| !e.terms.is_empty()) {
        let mut scope = Scope::new(origins, ensure);
        for module in modules() {
            failures.append(&mut judge_in(module, ensure, &mut scope, stage));
        }
    }
    failures
}

fn judge_in<'a>(module: &'a Module, ensure: &Ensure, scope: &mut Scope<'a>, stage: Stage) -> Vec<Failure> {
    let is_due = |thing| (stage == Stage::Plain) == matches!(thing, Thing::Call | Thing::Closure | Thing::Loop);
    let terms = || ensure.terms.iter().enumerate().filter(|(_, t)| is_due(t.thing));
    let mut failures: Vec<Failure> = Vec::new();
    // The most lanes of each copy, in all functions that have some of it.
    let mut lanes: BTreeMap<CallId, (u64, Func)> = BTreeMap::new();
    for func in (0..module.funcs.len()).map(Func::from_idx) {
        for (copy, code) in copies(module, func, scope) {
            let most = lanes.entry(copy).or_insert((0, func));
            *most = (*most).max((code.lanes(), func));
            for (i, term) in terms().filter(|(_, t)| t.thing != Thing::Lanes) {
                for count in code.count(term.thing, term.inner).into_iter().filter(|c| !term.holds(c.found)) {
                    failures.push(Failure::new(ensure, copy, Some(i), module.func(func), count));
                }
            }
        }
    }
    for (i, term) in terms().filter(|(_, t)| t.thing == Thing::Lanes) {
        for (&copy, &(found, func)) in lanes.iter().filter(|(_, most)| !term.holds(most.0)) {
            let count = Count { found, places: Vec::new() };
            failures.push(Failure::new(ensure, copy, Some(i), module.func(func), count));
        }
    }
    failures
}

/// The code of a block's copy in one function.
struct Code<'a> {
    module: &'a Module,
    given: Given<'a>,
    function: &'a Function,
    /// Instructions, but for those of blocks that end the program.
    insts: Vec<(Block, &'a Inst)>,
    tail_calls: Vec<(Block, Span)>,
    /// Branches, but for those that end the program or decide on another round of a loop.
    branches: Vec<(Block, Span)>,
    /// Loops, by their first block.
    loops: Vec<(Block, Rc<FxHashSet<Block>>)>,
}

/// The copies of a block that a function has code of. The function is looked at once, however many they are.
fn copies<'a>(module: &'a Module, func: Func, scope: &mut Scope<'a>) -> BTreeMap<CallId, Code<'a>> {
    let function = module.func(func);
    let mut found: BTreeMap<CallId, Code> = BTreeMap::new();
    let insts = function.blocks.iter().flat_map(|b| &b.insts).map(|i| i.span);
    let tail_calls = function.blocks.iter().filter_map(|b| match b.term {
        Terminator::TailCall { span, .. } => Some(span),
        _ => None,
    });
    for code in insts.chain(tail_calls) {
        if let Some(copy) = scope.copy(code) {
            found.entry(copy).or_insert_with(|| Code::new(module, function, scope.given));
        }
    }
    if found.is_empty() {
        return found;
    }
    let (cfg, ends, defs) = (Cfg::new(function), ends(function), definitions(function));
    let loops: Vec<Rc<FxHashSet<Block>>> = loops(&cfg).into_iter().map(Rc::new).collect();
    for &b in &cfg.rpo {
        let block = function.block(b);
        if let Terminator::TailCall { callee, span, .. } = &block.term
            && let Some(code) = scope.copy(*span).and_then(|copy| found.get_mut(&copy))
            && !code.is_given(match callee {
                Callee::Func(f) => Some(*f),
                Callee::Indirect(_) => None,
            })
        {
            code.tail_calls.push((b, *span));
        }
        for inst in block.insts.iter().filter(|_| !ends[b.idx()]) {
            if let Some(code) = scope.copy(inst.span).and_then(|copy| found.get_mut(&copy)) {
                code.insts.push((b, inst));
            }
        }
        let Terminator::Branch { cond, then, els } = &block.term else { continue };
        let place = defs.get(cond).map_or_else(|| block.insts.last().map(|i| i.span), |inst| Some(inst.span));
        let Some((place, copy)) = place.and_then(|place| Some((place, scope.copy(place)?))) else { continue };
        let Some(code) = found.get_mut(&copy) else { continue };
        let leaves = |blocks: &&Rc<FxHashSet<Block>>| {
            blocks.contains(&b) && blocks.contains(&then.block) != blocks.contains(&els.block)
        };
        let mut is_test = false;
        for blocks in loops.iter().filter(leaves) {
            is_test = true;
            // The first block of a loop is the first that is reached.
            let first = blocks.iter().copied().min_by_key(|b| cfg.position[b.idx()]).unwrap_or(b);
            if !code.loops.iter().any(|(known, _)| *known == first) {
                code.loops.push((first, blocks.clone()));
            }
        }
        if !ends[then.block.idx()] && !ends[els.block.idx()] && !is_test {
            code.branches.push((b, place));
        }
    }
    found
}

impl<'a> Code<'a> {
    fn new(module: &'a Module, function: &'a Function, given: Given<'a>) -> Code<'a> {
        let (insts, tail_calls, branches, loops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Code { module, function, given, insts, tail_calls, branches, loops }
    }

    /// The most lanes of a vector.
    fn lanes(&self) -> u64 {
        let results = self.insts.iter().filter_map(|(_, inst)| inst.result);
        let lanes = results.filter_map(|r| Some(self.module.types.as_vector(self.function.ty(r))?.1));
        lanes.max().unwrap_or(1).into()
    }

    /// How many of a thing there are: in all, or in each innermost loop. Without a loop, the code is that of one.
    fn count(&self, thing: Thing, inner: bool) -> Vec<Count> {
        let is_inner = |(_, blocks): &&(Block, Rc<FxHashSet<Block>>)| {
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
                for (_, inst) in self.insts.iter().filter(|(b, inst)| is_in(*b) && self.is(thing, inst)) {
                    count.add(inst.span);
                }
                for (_, place) in self.tail_calls.iter().filter(|(b, _)| thing == Thing::Call && is_in(*b)) {
                    count.add(*place);
                }
            }
        }
        count
    }

    /// Whether a program gives the function, which may be known, to the library that calls it.
    fn is_given(&self, f: Option<Func>) -> bool {
        f.map_or(self.given.libraries.is_some(), |f| self.given.has(self.module.func(f).span))
    }

    fn place(&self, block: Block) -> Span {
        self.insts.iter().find(|(b, _)| *b == block).map_or(self.function.span, |(_, inst)| inst.span)
    }

    fn is(&self, thing: Thing, inst: &Inst) -> bool {
        let symbol = |f: Func| self.module.func(f).symbol().unwrap_or_default();
        let allocates = |f: Func| symbol(f).starts_with("nyala_alloc");
        // They keep the environments of closures, which count themselves.
        let counts = |f: Func| {
            ["nyala_environment", "nyala_retain", "nyala_release"].iter().any(|prefix| symbol(f).starts_with(prefix))
        };
        // They run bodies that belong to the block.
        let starts = |f: Func| matches!(symbol(f), "nyala_parallel" | "nyala_spawn" | "nyala_launch");
        match (thing, inst.op) {
            (Thing::Instruction, _) => true,
            (Thing::Allocation, InstOp::Op(Op::Alloc)) => true,
            (Thing::Allocation, InstOp::Call(f)) => allocates(f),
            (Thing::Call, InstOp::Call(f)) => !allocates(f) && !counts(f) && !starts(f) && !self.is_given(Some(f)),
            (Thing::Call | Thing::Closure, InstOp::CallIndirect) => !self.is_given(None),
            (Thing::Closure, InstOp::Call(f)) if starts(f) => false,
            (Thing::Closure, _) => {
                let is_own = |v: &Value| match self.function.as_const(*v) {
                    Some(Const::Func(f) | Const::CFunc(f)) => !self.is_given(Some(f)),
                    _ => false,
                };
                inst.args.iter().any(is_own)
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
pub fn watch(module: &mut Module, ensures: &[Ensure], origins: Origins) -> Vec<Failure> {
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
        let function = &module.funcs[i];
        let flows = Flows::new(function);
        for mark in &marks {
            let place = mark.span.without_call();
            let Some(ensure) = ensures.iter().find(|e| e.place == place) else { continue };
            let mut scope = Scope::new(origins, ensure);
            let copy = scope.copy(mark.span);
            let mut count = Count::default();
            let places = flows.branches_on(mark.args[0]);
            places.filter(|&place| scope.copy(place) == copy).for_each(|place| count.add(place));
            if count.found > 0 {
                failures.push(Failure::new(ensure, mark.span.call, None, function, count));
            }
        }
    }
    failures
}

/// Where values of a function go: into what is computed from them, also through variables in memory, and into branches.
struct Flows {
    into: FxHashMap<Value, Vec<Value>>,
    /// Conditions of branches that do not end the program, each with its place.
    conditions: Vec<(Value, Span)>,
}

impl Flows {
    fn new(function: &Function) -> Flows {
        let (defs, ends) = (definitions(function), ends(function));
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
        let mut into: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        let mut add = |from: Value, to: Option<Value>| into.entry(from).or_default().extend(to);
        let mut conditions = Vec::new();
        for block in &function.blocks {
            for inst in &block.insts {
                inst.args.iter().for_each(|&a| add(a, inst.result));
                match (inst.op, &inst.args[..]) {
                    (InstOp::Op(Op::Store), &[to, stored]) => add(stored, variable(to)),
                    (InstOp::Op(Op::Load), &[from]) => variable(from).into_iter().for_each(|v| add(v, inst.result)),
                    _ => {}
                }
            }
            for edge in block.term.edges() {
                let params = &function.block(edge.block).params;
                params.iter().zip(&edge.args).for_each(|(&param, &arg)| add(arg, Some(param)));
            }
            if let Terminator::Branch { cond, then, els } = &block.term
                && !ends[then.block.idx()]
                && !ends[els.block.idx()]
            {
                let place = defs.get(cond).or(block.insts.last().as_ref()).map_or(function.span, |inst| inst.span);
                conditions.push((*cond, place));
            }
        }
        Flows { into, conditions }
    }

    /// The places of branches on what is computed from a value.
    fn branches_on(&self, value: Value) -> impl Iterator<Item = Span> {
        let mut depends: FxHashSet<Value> = FxHashSet::from_iter([value]);
        let mut work = vec![value];
        while let Some(v) = work.pop() {
            work.extend(self.into.get(&v).into_iter().flatten().filter(|&&to| depends.insert(to)));
        }
        self.conditions.iter().filter(move |(cond, _)| depends.contains(cond)).map(|(_, place)| *place)
    }
}
