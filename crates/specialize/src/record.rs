//! The record of every decision: the outcome of each call and the reason for it, counted on the way. Nothing here
//! decides anything, so that explaining cannot change what is explained. `eval/explain.rs` fills the record.
//!
//! A *row* counts the calls of one call site that had the same callee, outcome and reason, in code of one residual
//! function. (A continuation of the source has one body, hence one call.) The number of rows depends on the size of the
//! program and on the number of residual functions, not on the number of calls, and is at most [`MAX_ROWS`]. The row of
//! residual code follows from the order in which values were made.

use crate::link::Placed;
use nyala_base::{Id, SideTable, Span};
use nyala_ir::{Cont, Node, Op, Val, World};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Limit on the rows that are told apart by residual function. Beyond it, a call site has one row for all functions.
const MAX_ROWS: usize = 200_000;
/// Limit on the residual functions and loops that are told apart.
const MAX_INSTANCES: usize = 20_000;
/// Limit on the noted changes from row to row, which say to which row values belong.
const MAX_MARKS: usize = 4_000_000;
/// Limit on the example values of specialized parameters that a row keeps.
const MAX_EXAMPLES: usize = 4;
/// Limit on the steps of the time line. When it is reached, neighboring steps are merged in pairs.
const MAX_STEPS: usize = 240;

pub type RowId = u32;

/// Flag bit in place of a row: code of a function that no recorded call led to.
const OWN: RowId = 1 << 31;

/// The outcome of a call or of a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// Evaluation went on in the callee's body.
    Unfolded,
    /// Evaluation went on in the callee's body, because of an `@` before the call.
    Run,
    /// The interpreter did all of it (`eval/computed.rs`).
    Computed,
    /// Became a call of a copy that knows some arguments.
    Specialized,
    /// Became a call of the callee as it is.
    Residual,
    /// Became a call of the callee as it is, because of a `$` before the call.
    Halted,
    /// Became a jump back to a call in progress that has equal arguments.
    Knot,
    /// Specialized in fewer parameters than asked for, because the arguments would never repeat.
    Generalized,
    /// A branch whose condition was known.
    Decided,
    /// A branch whose condition was not known.
    Left,
}

/// The origin of an unknown value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unknown {
    /// A parameter of a source continuation that stays residual.
    Param(Cont, u32),
    /// The result of an operation.
    Op(Op, Span),
    Nowhere,
}

/// Why a call had its outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    /// By `@@`.
    Unfold,
    /// By `@`.
    Run,
    /// Within a call by `@`.
    WithinRun,
    /// By `$`.
    Halt,
    /// The filter of the function is true.
    Filter,
    /// Every parameter is specialized: its filter is true, or it is a function.
    Parameters,
    /// It is the only call of the function in the code of the export.
    OnlyCall,
    /// It is the only call of the function, and has a `$`: it was left as asked for, and then replaced by the callee's
    /// body.
    HaltedOnlyCall,
    /// A loop in a function called by `@@`, whose condition is known.
    KnownLoop,
    /// The condition of such a loop is not known.
    UnknownLoop(Unknown),
    /// A loop in a function that is not called by `@@`.
    PlainLoop,
    /// `--no-pe`.
    NoAnnotations,
    /// The callee is a function outside of the program.
    External,
    /// The callee was not known.
    UnknownCallee(Unknown),
    /// A call in progress has equal arguments.
    Repeats,
    /// These parameters were different, and not known, in every call.
    Drift(u64, Unknown),
    /// There would be too many copies of the function.
    Shared,
    /// Neither the function nor its parameters have filters.
    NoFilter,
    /// The filter of the function (`None`) or of a parameter is false.
    FalseFilter(Option<u32>),
    /// The filter of the function (`None`) or of a parameter is not known.
    UnknownFilter(Option<u32>, Unknown),
    /// The condition of the branch is not known.
    Condition(Unknown),
    /// Several reasons that are no longer told apart.
    Various,
}

impl Unknown {
    fn renamed(self, of_source: impl Fn(Cont) -> Cont) -> Unknown {
        match self {
            Unknown::Param(k, i) => Unknown::Param(of_source(k), i),
            Unknown::Op(..) | Unknown::Nowhere => self,
        }
    }
}

impl Why {
    fn renamed(self, of_source: impl Fn(Cont) -> Cont) -> Why {
        match self {
            Why::UnknownLoop(unknown) => Why::UnknownLoop(unknown.renamed(of_source)),
            Why::UnknownCallee(unknown) => Why::UnknownCallee(unknown.renamed(of_source)),
            Why::Drift(params, unknown) => Why::Drift(params, unknown.renamed(of_source)),
            Why::UnknownFilter(param, unknown) => Why::UnknownFilter(param, unknown.renamed(of_source)),
            Why::Condition(unknown) => Why::Condition(unknown.renamed(of_source)),
            Why::Unfold
            | Why::Run
            | Why::WithinRun
            | Why::Halt
            | Why::Filter
            | Why::Parameters
            | Why::OnlyCall
            | Why::HaltedOnlyCall
            | Why::KnownLoop
            | Why::PlainLoop
            | Why::NoAnnotations
            | Why::External
            | Why::Repeats
            | Why::Shared
            | Why::NoFilter
            | Why::FalseFilter(_)
            | Why::Various => self,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The residual function or loop in whose code the call was; 0 stands for any.
    pub instance: u32,
    /// The continuation that the call ends.
    pub site: Cont,
    /// The callee, or the target of a decided branch. `None`: not a continuation of the program.
    pub callee: Option<Cont>,
    pub outcome: Outcome,
    pub why: Why,
    /// Bit mask of the specialized parameters.
    pub mask: u64,
}

/// A piece of an example.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Text(String),
    Function(Cont),
    Unknown(Unknown),
}

/// The values of a call's specialized parameters.
pub type Example = Vec<(u32, Vec<Piece>)>;

fn renamed(values: Example, of_source: impl Fn(Cont) -> Cont + Copy) -> Example {
    let piece = |piece| match piece {
        Piece::Function(k) => Piece::Function(of_source(k)),
        Piece::Unknown(unknown) => Piece::Unknown(unknown.renamed(of_source)),
        Piece::Text(_) => piece,
    };
    values.into_iter().map(|(param, pieces)| (param, pieces.into_iter().map(piece).collect())).collect()
}

#[derive(Clone, Debug)]
pub struct Row {
    pub key: Key,
    pub calls: u64,
    /// For computed calls, the number of calls and jumps within.
    pub steps: u64,
    /// Residual continuations made for these calls; calls with equal values share one.
    pub made: u64,
    /// Operations and continuations of the residual program that the callee's own code left.
    pub nodes: u64,
    pub examples: Vec<Example>,
}

/// A residual function or loop.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The continuation of the source that it was made of.
    pub source: Cont,
    pub values: Example,
    /// The instance in whose code this one was first requested.
    pub parent: u32,
    /// The continuation of the residual program. `None` if nothing is left of the instance.
    pub residual: Option<Cont>,
}

/// A section of the time line of an evaluation.
#[derive(Clone, Default, Debug)]
pub struct Step {
    /// Reductions from the start of the evaluation to the end of the step.
    pub reductions: u64,
    pub micros: u64,
    /// The reductions of the step, by source function.
    pub by_function: Vec<(Cont, u64)>,
}

/// The row that counted the last call of a site, with the data by which another such call is recognized.
#[derive(Clone, Copy, Default)]
struct Recent {
    instance: u32,
    callee: u32,
    class: u8,
    row: RowId,
}

pub struct Record {
    pub rows: Vec<Row>,
    /// The first instance stands for code of no particular function.
    pub instances: Vec<Instance>,
    pub steps: Vec<Step>,
    pub rounds: usize,
    pub reductions: u64,
    /// There were too many rows, residual functions or values to tell all of them apart.
    pub is_rough: bool,
    /// By continuation of the residual program, the number of its instance.
    pub instance_of: SideTable<Cont, u32>,
    /// By function of the source: nodes of the residual program to which no call led, as in the body of an exported
    /// function.
    pub own_nodes: SideTable<Cont, u64>,
    index: FxHashMap<Key, RowId>,
    recent: SideTable<Cont, Recent>,
    /// By function of the source: the row of the call that entered it last, counted from 1.
    entered_by: SideTable<Cont, RowId>,
    /// The row of the code that is being evaluated, counted from 1, or [`OWN`] with a function.
    current: RowId,
    pub(crate) instance: u32,
    /// Pairs of a value number and a row: values from that number on were made in that row, counted from 1.
    marks: Vec<(u32, RowId)>,
    /// By continuation of the evaluator's graph.
    blocks: SideTable<Cont, Block>,
    counts: SideTable<Cont, u64>,
    touched: Vec<Cont>,
    start: Instant,
    /// The number of reductions in a step.
    step: u64,
}

/// A residual continuation.
#[derive(Clone, Copy, Default)]
struct Block {
    source: Option<Cont>,
    instance: u32,
    row: RowId,
    /// The row of the call that the continuation ends with, counted from 1.
    call: RowId,
    /// The function in which evaluation of the continuation ended, and the row at that time.
    end: Option<(Cont, RowId)>,
    /// The instance in whose code the closure was made, counted from 1.
    made_in: u32,
}

impl Default for Record {
    fn default() -> Record {
        let nowhere = Instance { source: Cont(0), values: Vec::new(), parent: 0, residual: None };
        Record {
            rows: Vec::new(),
            instances: vec![nowhere],
            steps: Vec::new(),
            rounds: 0,
            reductions: 0,
            is_rough: false,
            instance_of: SideTable::default(),
            own_nodes: SideTable::default(),
            index: FxHashMap::default(),
            recent: SideTable::default(),
            entered_by: SideTable::default(),
            current: 0,
            instance: 0,
            marks: Vec::new(),
            blocks: SideTable::default(),
            counts: SideTable::default(),
            touched: Vec::new(),
            start: Instant::now(),
            step: 1,
        }
    }
}

impl Record {
    // Called during evaluation.

    /// Notes that the body of `k`, which belongs to `function`, is entered.
    pub(crate) fn enter(&mut self, function: Option<Cont>, k: Cont, reductions: u64, n_vals: usize) {
        let function = function.unwrap_or(k);
        self.add(function, 1);
        let row = self.entered(function);
        if row != self.current {
            self.current = row;
            self.mark(n_vals as u32, row);
        }
        if reductions.is_multiple_of(self.step) {
            self.end_step(reductions);
        }
    }

    /// Counts reductions in a function.
    fn add(&mut self, function: Cont, n: u64) {
        let count = &mut self.counts[function];
        if *count == 0 {
            self.touched.push(function);
        }
        *count += n;
    }

    /// The row to which the code of a function belongs, counted from 1, or [`OWN`] with the function.
    fn entered(&self, function: Cont) -> RowId {
        match self.entered_by[function] {
            0 => OWN | function.0,
            row => row,
        }
    }

    fn mark(&mut self, n_vals: u32, row: RowId) {
        let n = self.marks.len();
        match self.marks.last_mut() {
            Some(last) if last.0 == n_vals => last.1 = row,
            Some(last) if last.1 == row => {}
            _ if n < MAX_MARKS => self.marks.push((n_vals, row)),
            _ => self.is_rough = true,
        }
    }

    fn end_step(&mut self, reductions: u64) {
        let mut by_function = Vec::with_capacity(self.touched.len());
        for k in self.touched.drain(..) {
            by_function.push((k, std::mem::take(&mut self.counts[k])));
        }
        let micros = self.start.elapsed().as_micros() as u64;
        self.steps.push(Step { reductions, micros, by_function });
        self.merge_steps();
    }

    fn merge_steps(&mut self) {
        while self.steps.len() >= MAX_STEPS {
            self.step *= 2;
            let merged = self.steps.chunks(2).map(|pair| {
                let mut all: Vec<(Cont, u64)> = pair.iter().flat_map(|s| s.by_function.iter().copied()).collect();
                all.sort_unstable();
                all.dedup_by(|b, a| {
                    let same = a.0 == b.0;
                    a.1 += if same { b.1 } else { 0 };
                    same
                });
                let last = &pair[pair.len() - 1];
                Step { by_function: all, ..last.clone() }
            });
            self.steps = merged.collect();
        }
    }

    /// Notes that a closure was made. `closure` is its residual continuation, which is built only if it is needed.
    pub(crate) fn make(&mut self, closure: Cont) {
        self.blocks[closure].made_in = self.instance + 1;
    }

    /// Notes that `new` is another stub for the closure `old`.
    pub(crate) fn make_again(&mut self, old: Cont, new: Cont) {
        self.blocks[new].made_in = self.blocks[old].made_in;
    }

    /// Notes that the residual continuation `block` is built next, for the closure `closure` of `source` in `function`.
    /// `from` is the block that requested it first. If `values` are given, `block` is a residual function or loop of
    /// its own.
    pub(crate) fn build(
        &mut self,
        (block, closure): (Cont, Cont),
        source: Cont,
        function: Cont,
        from: Option<Cont>,
        values: Option<Example>,
    ) {
        let asked = from.map(|f| self.blocks[f]).unwrap_or_default();
        let called = asked.call.checked_sub(1).filter(|&r| self.rows[r as usize].key.callee == Some(source));
        let row = match called {
            Some(row) => row + 1,
            None if asked.end.is_some_and(|(f, _)| f == function) => asked.end.map_or(0, |e| e.1),
            None => self.entered(function),
        };
        // The code after a loop is no part of the loop, although the loop's end requests it.
        let made_in = self.blocks[closure].made_in;
        let mut instance = made_in.checked_sub(1).unwrap_or(asked.instance);
        if let Some(values) = values {
            if self.instances.len() < MAX_INSTANCES {
                self.instances.push(Instance { source, values, parent: instance, residual: Some(block) });
                instance = self.instances.len() as u32 - 1;
            } else {
                self.is_rough = true;
                instance = 0;
            }
        }
        self.blocks[block] = Block { source: Some(source), instance, row, made_in, ..Block::default() };
        self.entered_by[function] = row;
    }

    /// Evaluation of `block` ended in `function`.
    pub(crate) fn end(&mut self, block: Cont, function: Cont) {
        self.blocks[block].end = Some((function, self.current));
    }

    /// Notes that evaluation goes on in the residual continuation `block`.
    pub(crate) fn begin(&mut self, block: Cont) {
        self.instance = self.blocks[block].instance;
    }

    /// The source continuation that a residual continuation was made of.
    pub(crate) fn source_of(&self, block: Cont) -> Option<Cont> {
        self.blocks[block].source
    }

    /// Counts a call, with a number that stands for its outcome and reason. `None` if the last call at that site was
    /// not equal.
    pub(crate) fn again(&mut self, site: Cont, callee: Cont, class: u8) -> Option<RowId> {
        let recent = self.recent[site];
        let is_it = recent.instance == self.instance && recent.callee == callee.0 && recent.class == class;
        (is_it && class != 0).then(|| {
            self.rows[recent.row as usize].calls += 1;
            recent.row
        })
    }

    pub(crate) fn remember(&mut self, site: Cont, callee: Cont, class: u8, row: RowId) {
        self.recent[site] = Recent { instance: self.instance, callee: callee.0, class, row };
    }

    pub(crate) fn count(&mut self, site: Cont, callee: Option<Cont>, outcome: Outcome, why: Why, mask: u64) -> RowId {
        let mut key = Key { instance: self.instance, site, callee, outcome, why, mask };
        if self.rows.len() >= MAX_ROWS && !self.index.contains_key(&key) {
            self.is_rough = true;
            key.instance = 0;
            if self.rows.len() >= 2 * MAX_ROWS {
                (key.why, key.mask) = (Why::Various, 0);
            }
        }
        let row = *self.index.entry(key).or_insert(self.rows.len() as u32);
        if row as usize == self.rows.len() {
            self.rows.push(Row { key, calls: 0, steps: 0, made: 0, nodes: 0, examples: Vec::new() });
        }
        self.rows[row as usize].calls += 1;
        row
    }

    /// The code of `callee` that is evaluated next belongs to `row`.
    pub(crate) fn enter_by(&mut self, callee: Cont, row: RowId) {
        self.entered_by[callee] = row + 1;
    }

    /// The call by which the function `callee` was entered last has been computed, in `steps` steps.
    pub(crate) fn compute(&mut self, callee: Cont, steps: u64) {
        self.add(callee, steps);
        let Some(row) = self.entered_by[callee].checked_sub(1) else { return };
        let Row { key, calls, .. } = &mut self.rows[row as usize];
        if key.callee != Some(callee) || !matches!(key.outcome, Outcome::Unfolded | Outcome::Run) {
            return;
        }
        *calls -= 1;
        let Key { site, why, .. } = *key;
        let row = self.count(site, Some(callee), Outcome::Computed, why, 0);
        self.rows[row as usize].steps += steps;
    }

    pub(crate) fn wants_example(&self, row: RowId) -> bool {
        self.rows[row as usize].examples.len() < MAX_EXAMPLES
    }

    pub(crate) fn add_example(&mut self, row: RowId, example: Example) {
        let examples = &mut self.rows[row as usize].examples;
        if !examples.contains(&example) {
            examples.push(example);
        }
    }

    /// Notes the row of the call that a residual continuation ends with.
    pub(crate) fn set_call(&mut self, block: Cont, row: RowId) {
        self.blocks[block].call = row + 1;
    }

    /// The call that a residual continuation ended with turns out to be the only one: its callee goes on there.
    pub(crate) fn inline(&mut self, block: Cont, callee: Cont) {
        self.instance = self.blocks[block].instance;
        let Some(row) = std::mem::take(&mut self.blocks[block].call).checked_sub(1) else { return };
        let old = &mut self.rows[row as usize];
        old.calls -= 1;
        old.made = old.made.saturating_sub(1);
        let Key { site, instance, outcome, .. } = old.key;
        let why = if outcome == Outcome::Halted { Why::HaltedOnlyCall } else { Why::OnlyCall };
        let here = std::mem::replace(&mut self.instance, instance);
        let row = self.count(site, Some(callee), Outcome::Unfolded, why, 0);
        self.instance = here;
        self.enter_by(callee, row);
    }

    // Called when the evaluation is over.

    /// Leaves out calls in code of residual functions that are in the program already, made for another export.
    pub(crate) fn leave_out(&mut self, is_there: impl Fn(Cont) -> bool) {
        let left: Vec<bool> = self.instances.iter().map(|made| made.residual.is_some_and(&is_there)).collect();
        for row in self.rows.iter_mut().filter(|row| left[row.key.instance as usize]) {
            (row.calls, row.steps, row.made) = (0, 0, 0);
        }
    }

    /// Assigns the nodes of the residual program to rows. `conts` and `vals` map the evaluator's graph, of `n_conts`
    /// continuations and `n_vals` values, to the residual program `new`.
    pub(crate) fn finish(
        &mut self,
        conts: &SideTable<Cont, Option<Cont>>,
        vals: &SideTable<Val, Option<Val>>,
        (n_conts, n_vals): (usize, usize),
        new: &World,
        reductions: u64,
    ) {
        self.reductions = reductions;
        self.end_step(reductions);
        for instance in &mut self.instances {
            instance.residual = instance.residual.and_then(|k| conts[k]);
        }
        for k in (0..n_conts).map(Cont::from_idx) {
            let (Some(new), block) = (conts[k], self.blocks[k]) else { continue };
            self.instance_of[new] = block.instance;
            self.add_node(block.row);
        }
        let mut is_counted: SideTable<Val, bool> = SideTable::default();
        let mut mark = 0;
        for v in (0..n_vals).map(Val::from_idx) {
            while self.marks.get(mark).is_some_and(|m| m.0 <= v.0) {
                mark += 1;
            }
            let Some(copy) = vals[v] else { continue };
            if !matches!(new.node(copy), Node::Op(_)) || std::mem::replace(&mut is_counted[copy], true) {
                continue;
            }
            let row = mark.checked_sub(1).map_or(0, |m| self.marks[m].1);
            self.add_node(row);
        }
        self.rows.retain(|r| r.calls > 0 || r.nodes > 0);
    }

    /// Adds the record of a part of the program, which is finished. `conts` has for each continuation of the part the one of the
    /// source, and `placed` for each residual one its place in the residual program.
    pub(crate) fn absorb(&mut self, part: Record, conts: &[Cont], placed: &Placed) {
        let before = self.instances.len() as u32 - 1;
        let number = |instance: u32| if instance == 0 { 0 } else { before + instance };
        let of_source = |k: Cont| conts.get(k.idx()).copied().unwrap_or(k);
        let instances = part.instances.into_iter().skip(1);
        self.instances.extend(instances.map(|made| Instance {
            source: of_source(made.source),
            values: renamed(made.values, of_source),
            parent: number(made.parent),
            residual: made.residual.and_then(|k| placed.conts[k]),
        }));
        self.rows.extend(part.rows.into_iter().map(|row| {
            let Key { instance, site, callee, outcome, why, mask } = row.key;
            let (site, callee, why) = (of_source(site), callee.map(of_source), why.renamed(of_source));
            let examples = row.examples.into_iter().map(|values| renamed(values, of_source)).collect();
            Row { key: Key { instance: number(instance), site, callee, outcome, why, mask }, examples, ..row }
        }));
        for (k, instance) in part.instance_of.iter() {
            if let Some(k) = placed.conts[k].filter(|_| *instance != 0) {
                self.instance_of[k] = number(*instance);
            }
        }
        for (k, &n) in part.own_nodes.iter().filter(|(_, n)| **n != 0) {
            self.own_nodes[of_source(k)] += n;
        }
        let (reductions, micros) = (self.reductions, self.steps.last().map_or(0, |step| step.micros));
        self.steps.extend(part.steps.into_iter().map(|step| Step {
            reductions: reductions + step.reductions,
            micros: micros + step.micros,
            by_function: step.by_function.into_iter().map(|(k, n)| (of_source(k), n)).collect(),
        }));
        self.merge_steps();
        self.reductions += part.reductions;
        self.rounds = self.rounds.max(part.rounds);
        self.is_rough |= part.is_rough;
    }

    fn add_node(&mut self, row: RowId) {
        if row >= OWN {
            self.own_nodes[Cont(row & !OWN)] += 1;
        } else if let Some(row) = row.checked_sub(1) {
            self.rows[row as usize].nodes += 1;
        }
    }
}
