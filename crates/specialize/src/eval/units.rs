//! Units, and what the evaluation of each may take. A unit is the code of a root, or of a function that captures nothing and
//! is called with nothing specialized. Budgets, and what one round tells the next, belong to units: what becomes of a
//! function does not depend on how many others there are. A budget of all units together only ends with a diagnostic.
//!
//! A unit that is left, because its budget is spent or because it found enough for another round, leaves the others alone:
//! they are evaluated to their ends, and may find more for the next round.

use super::{Evaluator, memory};
use crate::facts::is_function;
use crate::whistle::Diverged;
use nyala_ir::{Cont, Val};

/// Bodies entered, in one unit ([`Evaluator::unit`]).
const MAX_REDUCTIONS: u64 = 50_000_000;
/// Nodes of the residual graph, in one unit.
const MAX_NODES: u64 = 20_000_000;
/// All units together may have this many times what one may have.
const MAX_UNITS: f64 = 1.5;
/// Blocks made of one continuation, in one unit.
const MAX_BLOCKS_PER_CONT: u64 = 250_000;
/// Bytes of the operands of nodes, and of what is known of memory, all units together: large arrays are few nodes.
const MAX_BYTES: u64 = 1 << 30;
/// A round in which a recursion was found to drift is only gone through for what else it finds: a unit is left once it has
/// this many times the nodes that it had when it found something last, but for small ones.
const MAX_GROWTH: u64 = 4;
const MIN_GROWN: u64 = 5_000;

/// What the evaluation of a unit took so far, in this round.
#[derive(Clone, Default)]
pub(super) struct Unit {
    pub nodes: u64,
    pub reductions: u64,
    /// The most that one continuation has.
    pub blocks: u64,
    /// Nodes at which to look for functions with too many copies.
    pub next_look: u64,
    /// Nodes when a recursion was last found to drift.
    pub last_found: Option<u64>,
    /// It is not evaluated any further; if because a budget is spent.
    pub is_left: bool,
    pub is_spent: bool,
}

/// See [`MAX_BYTES`].
pub(super) fn max_bytes(budget: f64) -> u64 {
    (MAX_BYTES as f64 * budget.max(0.1)) as u64
}

impl Evaluator<'_> {
    /// The unit in which a function is evaluated that is called from the present one.
    pub(super) fn unit_of(&self, k: Cont, mask: u64, captures_nothing: bool) -> Cont {
        match mask == 0 && captures_nothing && is_function(self.source, k) {
            true => k,
            false => self.unit,
        }
    }

    /// Adds what was made since the last time to what the unit has.
    pub(super) fn count(&mut self) {
        let (nodes, reductions) = (self.size(), self.reductions);
        let unit = &mut self.units[self.unit];
        unit.nodes += nodes.saturating_sub(self.counted.0);
        unit.reductions += reductions - self.counted.1;
        self.counted = (nodes, reductions);
    }

    /// Nodes that the unit has.
    pub(super) fn unit_nodes(&mut self) -> u64 {
        self.count();
        self.units[self.unit].nodes
    }

    pub(super) fn enter_unit(&mut self, unit: Cont) {
        if unit != self.unit {
            self.count();
            self.unit = unit;
        }
    }

    pub(super) fn check_budget(&mut self) -> Result<(), Box<Diverged>> {
        let (max_reductions, max_nodes) = (self.scaled(MAX_REDUCTIONS), self.scaled(MAX_NODES));
        let max_blocks = self.scaled(MAX_BLOCKS_PER_CONT);
        self.count();
        let unit = self.units[self.unit].clone();
        if unit.reductions > max_reductions {
            return Err(self.diverged("unfoldings", max_reductions));
        }
        if unit.nodes > max_nodes {
            return Err(self.diverged("residual nodes", max_nodes));
        }
        if unit.blocks > max_blocks {
            return Err(self.diverged("blocks of one function", max_blocks));
        }
        let of_all = |max: u64| (max as f64 * MAX_UNITS) as u64;
        let totals = [
            ("unfoldings", self.reductions, of_all(max_reductions)),
            ("residual nodes", self.size(), of_all(max_nodes)),
            ("bytes of arrays and variables", self.bytes(), self.max_bytes),
        ];
        for (what, spent, max) in totals {
            if spent > max {
                return Err(Box::new(Diverged { is_total: true, ..*self.diverged(what, max) }));
            }
        }
        if self.may_start_again {
            let mut is_early = unit.last_found.is_some_and(|at| unit.nodes > MAX_GROWTH * at.max(MIN_GROWN));
            if unit.nodes > unit.next_look.max(max_nodes / 100) {
                self.units[self.unit].next_look = 2 * unit.nodes;
                is_early |= self.note_shared(self.unit, true);
            }
            if is_early {
                return Err(Box::new(Diverged { is_early: true, ..*self.diverged("residual nodes", unit.nodes) }));
            }
        }
        // A part of small budgets only: what is shown for the report takes longer than to evaluate it.
        let is_near = |spent: u64, max: u64, margin: u64| spent + margin.min(max / 4) > max;
        self.near_end = is_near(unit.reductions, max_reductions, 4096)
            || is_near(unit.nodes, max_nodes, 40_000)
            || is_near(unit.blocks, max_blocks, 2048)
            || is_near(self.reductions, of_all(max_reductions), 4096)
            || is_near(self.size(), of_all(max_nodes), 40_000)
            || is_near(self.bytes(), self.max_bytes, self.max_bytes);
        Ok(())
    }

    /// See [`MAX_BYTES`].
    pub(super) fn bytes(&self) -> u64 {
        (self.dst.n_operands() * size_of::<Val>() + memory::bytes()) as u64
    }

    pub(super) fn reductions_left(&self) -> u64 {
        self.scaled(MAX_REDUCTIONS).saturating_sub(self.units[self.unit].reductions)
    }

    pub(super) fn size(&self) -> u64 {
        (self.dst.n_vals() + 4 * self.dst.n_conts()) as u64
    }

    pub(super) fn scaled(&self, limit: u64) -> u64 {
        (limit as f64 * self.options.budget) as u64
    }
}
