//! Budgets, and the units that they belong to. A unit is the code of a root, of a function that captures nothing and is
//! called with nothing specialized, or of a kernel that one of these launches. Budgets and hints belong to units, so that
//! the result for one function does not depend on how many others there are, nor on its kernels. Spending the budget of all
//! units together only leads to a diagnostic.
//!
//! A unit is abandoned when its budget is spent, or when it has found enough for another round. The other units are
//! still evaluated to their ends, and may find more for the next round.

use super::{Evaluator, memory};
use crate::facts::is_function;
use crate::whistle::{self, Diverged, UnitName};
use nyala_base::{Id, SideTable, Span};
use nyala_ir::{Cont, Val};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;

/// Limit on the bodies entered in one unit ([`Budget::unit`]).
const MAX_REDUCTIONS: u64 = 50_000_000;
/// Limit on the nodes of the residual graph in one unit.
const MAX_NODES: u64 = 20_000_000;
/// Limit on the steps of the evaluator in one unit: on what it looks at to decide, besides unfolding and making nodes, for
/// which it pays as below. No single step takes long, so that this is a limit on time that is the same on each machine.
const MAX_STEPS: u64 = 500_000_000;
const STEPS_OF_REDUCTION: u64 = 4;
const STEPS_OF_NODE: u64 = 10;
/// Comparing an object where states meet counts as so many steps: it is looked up in the tables of all states.
pub(super) const STEPS_OF_OBJECT: usize = 6;
/// The limits are looked at after so many steps at the latest.
const STEPS_OF_LOOK: u64 = 1 << 20;
/// Limit on the blocks made of one continuation in one unit.
const MAX_BLOCKS_PER_CONT: u64 = 250_000;
/// Limit on the bytes of nodes, stubs and known contents of memory, for all units of an export together. Large arrays have
/// many bytes and few nodes. With what allocators round up, and what tables keep free for more, a program that spends it takes less than 1 GB.
const MAX_BYTES: u64 = 700 << 20;
/// The least part of it that a small budget leaves: what is computed at compile time does not grow with the program.
const LEAST_PART: f64 = 0.15;
/// The bytes of a node and of a continuation of the residual graph, without operands, roughly.
const NODE_BYTES: usize = 32;
const CONT_BYTES: usize = 128;
/// The bytes of a stub with its values, its requests and its places in tables, roughly.
const STUB_BYTES: usize = 768;
/// Once a recursion was found to drift, or lanes to meet late, a round only goes on for what else it may find. A unit is then abandoned when
/// its nodes have grown by this factor since its last finding, unless it is small.
const MAX_GROWTH: u64 = 4;
const MIN_GROWN: u64 = 5_000;

/// The number of unfolded recursive calls that are kept for the report of a divergence.
const CHAIN: usize = 1024;

/// A call for the report of a divergence, and its arguments.
type Link = (Cont, Span, Vec<String>);

nyala_base::define_id!(
    /// A unit of the export that is evaluated.
    pub(super) struct UnitId, "unit"
);

/// A unit, and the resources that its evaluation has used in this round.
#[derive(Clone)]
pub(super) struct Unit {
    pub name: UnitName,
    pub nodes: u64,
    pub reductions: u64,
    pub steps: u64,
    /// The largest number of blocks that one continuation has.
    pub blocks: u64,
    /// The number of nodes at which to search for functions with too many copies.
    pub next_look: u64,
    /// The number of nodes when a recursion was last found to drift, or lanes to meet late.
    pub last_found: Option<u64>,
    /// It is not evaluated any further. If a budget is the reason, `is_spent` is set too.
    pub is_left: bool,
    pub is_spent: bool,
}

impl Unit {
    fn new(name: UnitName) -> Unit {
        Unit {
            name,
            nodes: 0,
            reductions: 0,
            steps: 0,
            blocks: 0,
            next_look: 0,
            last_found: None,
            is_left: false,
            is_spent: false,
        }
    }
}

/// The resources that the evaluation has used, and its limits.
pub(super) struct Budget {
    /// Multiplies all limits.
    scale: f64,
    /// The limit of all units together, as a multiple of that of one unit.
    of_all: f64,
    /// Bodies entered.
    pub reductions: u64,
    /// What was looked at, in values, objects and the like.
    steps: Cell<u64>,
    /// The number of steps at which to look at the limits at the latest.
    next_look: u64,
    /// The unit whose code is evaluated.
    pub unit: UnitId,
    units: Vec<Unit>,
    /// Units that are functions.
    functions: SideTable<Cont, Option<UnitId>>,
    /// The totals of nodes, reductions and steps when the unit's counts were last updated.
    counted: (u64, u64, u64),
    /// Blocks of each continuation in each unit.
    blocks: FxHashMap<(UnitId, Cont), u64>,
    /// See [`MAX_BYTES`].
    pub max_bytes: u64,
    /// Whether there is another round that can use new hints.
    pub may_start_again: bool,
    /// Whether a budget will soon be spent: from then on, calls are noted for the report.
    pub near_end: bool,
    /// The last calls noted.
    chain: VecDeque<Link>,
}

/// A limit that was exceeded.
struct Spent {
    what: &'static str,
    limit: u64,
    /// Whether it is the limit of all units together.
    is_total: bool,
}

impl Budget {
    /// The budget for a root, which is the first unit.
    pub fn new(root: Cont, scale: f64, of_all: f64, may_start_again: bool) -> Budget {
        let mut functions = SideTable::default();
        functions[root] = Some(UnitId(0));
        Budget {
            scale,
            of_all,
            reductions: 0,
            steps: Cell::new(0),
            next_look: STEPS_OF_LOOK,
            unit: UnitId(0),
            units: vec![Unit::new((root, None))],
            functions,
            counted: (0, 0, 0),
            blocks: FxHashMap::default(),
            max_bytes: (MAX_BYTES as f64 * scale.max(LEAST_PART)) as u64,
            may_start_again,
            near_end: false,
            chain: VecDeque::new(),
        }
    }

    /// What has been used in a unit.
    pub fn of(&self, unit: UnitId) -> &Unit {
        &self.units[unit.idx()]
    }

    pub fn of_mut(&mut self, unit: UnitId) -> &mut Unit {
        &mut self.units[unit.idx()]
    }

    /// The name of the unit whose code is evaluated.
    pub fn name(&self) -> UnitName {
        self.of(self.unit).name
    }

    pub fn spent_units(&self) -> Vec<UnitId> {
        (0..self.units.len()).map(UnitId::from_idx).filter(|&unit| self.of(unit).is_spent).collect()
    }

    fn add(&mut self, name: UnitName) -> UnitId {
        self.units.push(Unit::new(name));
        UnitId::from_idx(self.units.len() - 1)
    }

    /// The unit of a kernel that the present unit launches.
    pub fn launch(&mut self, kernel: Cont) -> UnitId {
        self.add((self.name().0, Some(kernel)))
    }

    pub fn scaled(&self, limit: u64) -> u64 {
        (limit as f64 * self.scale) as u64
    }

    /// The limit of all units together, where that of one unit is `max`.
    fn of_all(&self, max: u64) -> u64 {
        (max as f64 * self.of_all) as u64
    }

    pub fn reductions_left(&self) -> u64 {
        self.scaled(MAX_REDUCTIONS).saturating_sub(self.of(self.unit).reductions)
    }

    /// Adds the work since the last update to the unit's counts. `size` is the present size of the graph.
    fn count(&mut self, size: u64) {
        let unit = &mut self.units[self.unit.idx()];
        let (nodes, reductions) = (size.saturating_sub(self.counted.0), self.reductions - self.counted.1);
        let steps = self.steps.get() + nodes * STEPS_OF_NODE + reductions * STEPS_OF_REDUCTION;
        self.steps.set(steps);
        unit.nodes += nodes;
        unit.reductions += reductions;
        unit.steps += steps - self.counted.2;
        self.counted = (size, self.reductions, steps);
        self.next_look = steps + STEPS_OF_LOOK;
    }

    /// Pays for looking at `n` things.
    #[inline]
    pub fn pay(&self, n: usize) {
        self.steps.set(self.steps.get() + n as u64);
    }

    /// Whether so much was looked at since the limits were looked at that this is due again.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.steps.get() > self.next_look
    }

    pub fn enter(&mut self, unit: UnitId, size: u64) {
        if unit != self.unit {
            self.count(size);
            self.unit = unit;
        }
    }

    /// A recursion of the unit was found to drift, or lanes to meet late.
    pub fn note_found(&mut self, size: u64) {
        self.count(size);
        let unit = self.of_mut(self.unit);
        unit.last_found = Some(unit.nodes);
    }

    pub fn add_block(&mut self, unit: UnitId, k: Cont) {
        let n_blocks = self.blocks.entry((unit, k)).or_default();
        *n_blocks += 1;
        let most = &mut self.units[unit.idx()].blocks;
        *most = (*most).max(*n_blocks);
    }

    /// Notes a call shortly before a budget is spent. Describing all calls would cost too much.
    pub fn note_call(&mut self, k: Cont, args: Vec<String>, origin: Span) {
        if self.chain.len() == CHAIN {
            self.chain.pop_front();
        }
        self.chain.push_back((k, origin, args));
    }

    /// The first limit that is exceeded by a graph of `size` nodes with `bytes` bytes.
    fn spent(&self, size: u64, bytes: u64) -> Option<Spent> {
        let unit = self.of(self.unit);
        let (max_reductions, max_nodes) = (self.scaled(MAX_REDUCTIONS), self.scaled(MAX_NODES));
        let max_steps = self.scaled(MAX_STEPS);
        let limits = [
            ("unfoldings", unit.reductions, max_reductions, false),
            ("residual nodes", unit.nodes, max_nodes, false),
            ("blocks of one function", unit.blocks, self.scaled(MAX_BLOCKS_PER_CONT), false),
            ("steps", unit.steps, max_steps, false),
            ("unfoldings", self.reductions, self.of_all(max_reductions), true),
            ("steps", self.steps.get(), self.of_all(max_steps), true),
            ("residual nodes", size, self.of_all(max_nodes), true),
            ("bytes", bytes, self.max_bytes, true),
        ];
        let passed = limits.into_iter().find(|&(_, spent, limit, _)| spent > limit)?;
        let (what, _, limit, is_total) = passed;
        Some(Spent { what, limit, is_total })
    }

    /// Whether calls are noted for the report from now on.
    fn is_nearly_spent(&self, size: u64, bytes: u64) -> bool {
        let unit = self.of(self.unit);
        let (max_reductions, max_nodes) = (self.scaled(MAX_REDUCTIONS), self.scaled(MAX_NODES));
        // For small budgets, the margin is only a part of them: describing calls takes longer than evaluating them.
        let is_near = |spent: u64, max: u64, margin: u64| spent + margin.min(max / 4) > max;
        is_near(unit.reductions, max_reductions, 4096)
            || is_near(unit.nodes, max_nodes, 40_000)
            || is_near(unit.blocks, self.scaled(MAX_BLOCKS_PER_CONT), 2048)
            || is_near(unit.steps, self.scaled(MAX_STEPS), 2 * STEPS_OF_LOOK)
            || is_near(self.steps.get(), self.of_all(self.scaled(MAX_STEPS)), 2 * STEPS_OF_LOOK)
            || is_near(self.reductions, self.of_all(max_reductions), 4096)
            || is_near(size, self.of_all(max_nodes), 40_000)
            || is_near(bytes, self.max_bytes, self.max_bytes)
    }

    /// Whether to search for functions with too many copies, which is done at growing intervals.
    fn is_time_to_look(&mut self) -> bool {
        let first = self.scaled(MAX_NODES) / 100;
        let unit = self.of_mut(self.unit);
        let is_time = unit.nodes > unit.next_look.max(first);
        if is_time {
            unit.next_look = 2 * unit.nodes;
        }
        is_time
    }
}

impl Evaluator<'_> {
    /// The unit in which a function is evaluated that is called from the current unit.
    pub(super) fn unit_of(&mut self, k: Cont, mask: u64, captures_nothing: bool) -> UnitId {
        match self.is_unit(k, mask, captures_nothing) {
            true => match self.budget.functions[k] {
                Some(unit) => unit,
                None => {
                    let unit = self.budget.add((k, None));
                    self.budget.functions[k] = Some(unit);
                    unit
                }
            },
            false => self.budget.unit,
        }
    }

    /// Whether a function that is called is a unit.
    pub(super) fn is_unit(&self, k: Cont, mask: u64, captures_nothing: bool) -> bool {
        mask == 0 && captures_nothing && is_function(self.source, k)
    }

    pub(super) fn check_budget(&mut self) -> Result<(), Box<Diverged>> {
        let (size, bytes) = (self.size(), self.bytes());
        self.budget.count(size);
        if self.options.progress.as_ref().is_some_and(|p| p.is_ended()) {
            return Err(Box::new(Diverged { is_total: true, ..*self.diverged("time", 0) }));
        }
        if let Some(Spent { what, limit, is_total }) = self.budget.spent(size, bytes) {
            return Err(Box::new(Diverged { is_total, ..*self.diverged(what, limit) }));
        }
        if self.budget.may_start_again {
            let unit = self.budget.unit;
            let &Unit { nodes, last_found, .. } = self.budget.of(unit);
            let mut is_early = last_found.is_some_and(|at| nodes > MAX_GROWTH * at.max(MIN_GROWN));
            if self.budget.is_time_to_look() {
                is_early |= self.note_shared(unit, true);
            }
            if is_early {
                return Err(Box::new(Diverged { is_early, ..*self.diverged("residual nodes", nodes) }));
            }
        }
        self.budget.near_end = self.budget.is_nearly_spent(size, bytes);
        Ok(())
    }

    /// The bytes of arrays: these may grow much from one body to the next.
    pub(super) fn array_bytes(&self) -> u64 {
        (self.dst.n_operands() * size_of::<Val>() + memory::bytes()) as u64
    }

    /// See [`MAX_BYTES`].
    fn bytes(&self) -> u64 {
        let nodes = self.dst.n_vals() * NODE_BYTES + self.dst.n_conts() * CONT_BYTES;
        self.array_bytes() + (nodes + self.stubs.len() * STUB_BYTES) as u64
    }

    pub(super) fn size(&self) -> u64 {
        (self.dst.n_vals() + 4 * self.dst.n_conts()) as u64
    }

    pub(super) fn diverged(&self, what: &'static str, limit: u64) -> Box<Diverged> {
        let mut calls: FxHashMap<Cont, (Vec<&[String]>, Span)> = FxHashMap::default();
        for (k, span, args) in &self.budget.chain {
            let (calls, last) = calls.entry(*k).or_default();
            calls.push(args);
            *last = *span;
        }
        // Prefer a continuation with a counting argument, then the one with the most numbers.
        let rank = |k: Cont, calls: &[&[String]]| {
            let counts = whistle::counts(&whistle::last_calls(calls));
            let (numbers, _) = whistle::numbers(calls);
            (counts, numbers.max(whistle::FEW_NUMBERS), self.facts.is_recursive[k], calls.len(), k)
        };
        let worst = calls.iter().max_by_key(|(k, (calls, _))| rank(**k, calls));
        let cont = worst.map(|(k, _)| *k);
        let last = worst.map(|(_, (calls, _))| whistle::last_calls(calls)).unwrap_or_default();
        let chain = last.into_iter().map(<[String]>::to_vec).collect();
        let call = worst.map_or(self.dst.current_origin(), |(_, (_, last))| *last);
        let mut around = cont.map_or(Vec::new(), |k| self.calls_around(k));
        // A call in tail position leaves no continuation behind.
        around.extend(self.dst.calls.around(call).map(|(_, span)| span));
        let (is_early, is_total) = (false, false);
        Box::new(Diverged { what, limit, cont, call, around, chain, is_early, is_total, record: None })
    }
}
