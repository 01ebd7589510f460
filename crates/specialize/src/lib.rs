//! The partial evaluator: filters, run and halt, budget, memo, the record of every decision.
//!
//! The source graph is read-only. An environment machine evaluates it; what stays dynamic is built into a second graph,
//! whose constructors fold, so *a value is a node of that second graph*, and a known value is a literal there, an
//! aggregate of known parts, a function, the address of a slot or global.
//!
//! A continuation together with the values it captures, and those of the parameters it is specialized in, is a
//! [*stub*](eval::Stub): a continuation of the residual graph whose body is built only when residual code needs it. Stubs
//! are memoized, so equal specializations are one (`001` 4.4). Evaluating a call either goes on in the callee's body
//! (*unfolds*), without a trace in the residual program, or ends the residual block under way with a call of a stub.
//!
//! ```text
//! cont pow(m, x, n, ret) @(?n) = branch(m, eq(n, 0), then, else)      pow(m, y, 2, k) leaves
//!   cont then(m.1) = ret(m.1, 1)                                      k(m, mul(y, y))
//!   cont else(m.2) = pow(m.2, x, add(n, -1), |m.3, r| ret(m.3, mul(r, x)))
//! ```
//!
//! Each export is evaluated alone, and [`link`] puts the results together: siblings change nothing.
//!
//! Which parameters a call specializes is decided in `eval/call.rs`. `eval/run.rs` implements run and halt, and
//! [`postdom`] finds where a run goes on. [`memory`] keeps the known contents of memory. [`whistle`] decides when a
//! recursion is taken for divergent and generalized. A question that cannot be answered on the way becomes a hint for
//! the next round: whether a recursion's argument drifts, whether a function is called only once, or so often that its
//! copies have to be shared (`eval/sharing.rs`). Evaluation takes two rounds as a rule, and [`MAX_ROUNDS`] at most.
//!
//! Source: `001` 3 and 4, `002` 10 and 11.
#![forbid(unsafe_code)]

pub mod diagnostics;
pub mod eval;
pub mod exchanges;
pub mod facts;
pub mod finish;
pub mod leaving_addresses;
mod link;
pub mod memory;
pub mod postdom;
mod progress;
pub mod record;
pub mod recursive_runs;
pub mod whistle;

use crate::diagnostics::{static_assert_failed, static_assert_unknown};
use crate::finish::Finished;
use crate::link::{Linker, Placed};
use crate::whistle::Diverged;
use std::sync::Arc;

pub use crate::progress::Progress;
use nyala_base::{Diagnostic, Id, SideTable, Sink, Span, graph};
use nyala_ir::facts::Nest;
use nyala_ir::{Builtin, Cont, Extractor, Linkage, Node, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};

/// Upper limit on the number of rounds. A further round only makes the residual program smaller.
pub const MAX_ROUNDS: usize = 8;

/// Upper limit on the rounds in which a budget is spent. The round after the first one can do with less.
const MAX_FAILURES: usize = 4;

#[derive(Clone, Debug)]
pub struct Options {
    /// Whether annotations count; if not, only functions are specialized (`--no-pe`).
    pub annotations: bool,
    /// Multiplies all budgets.
    pub budget: f64,
    /// The budget of all units of an export together, as a multiple of that of one unit.
    pub units: f64,
    /// Evaluate all exports as one, instead of each alone: for tests, which are many and call the same functions.
    pub together: bool,
    /// Keep a [record](record::Record) of what is decided.
    pub record: bool,
    /// Is told how far evaluation has come.
    pub progress: Option<Arc<Progress>>,
}

impl Default for Options {
    fn default() -> Options {
        Options { annotations: true, budget: 1.0, units: 1.5, together: false, record: false, progress: None }
    }
}

/// Statistics of one evaluation.
#[derive(Default)]
pub struct Stats {
    pub rounds: usize,
    /// Bodies entered, all rounds together.
    pub reductions: u64,
    /// Values of the residual graph before clean-up, last round.
    pub nodes: usize,
    /// The record of the last round, if [`Options::record`] is set.
    pub record: Option<Box<record::Record>>,
}

/// Evaluates `source` and returns the residual program of all its exports. Each is evaluated alone, so that its code does not depend
/// on what else the program has, unless the options say otherwise. Evaluation may be given up as divergent; [`whistle::report`] makes
/// the error from that.
pub fn specialize(source: &World, options: Options, sink: &mut Sink) -> Result<(World, Stats), Box<Diverged>> {
    let roots = source.roots();
    let mut stats = Stats::default();
    let as_one = match roots.len() == 1 || options.together && !roots.is_empty() {
        true => match specialize_export(source, &roots, &options, &mut stats) {
            Err(diverged) if roots.len() > 1 && diverged.is_total => None,
            done => Some(done?),
        },
        false => None,
    };
    let residual = match as_one {
        Some(mut export) => {
            let Finished { world, conts, vals } = export.residual;
            if let Some(record) = &mut export.record {
                record.finish(&conts, &vals, export.size, &world, export.reductions);
            }
            stats.record = export.record;
            sink.diagnostics.extend(export.reports);
            world
        }
        // Together they spend the budget of one export.
        None if options.together && roots.len() > 1 => {
            let (a, b) = roots.split_at(roots.len() / 2);
            specialize_exports(source, &roots, vec![b, a], &options, &mut stats, sink)?
        }
        None => {
            let ordered = callees_first(source, &roots);
            specialize_exports(source, &roots, ordered.chunks(1).rev().collect(), &options, &mut stats, sink)?
        }
    };
    if options.annotations {
        report_static_asserts(&residual, sink);
    }
    Ok((residual, stats))
}

/// The exports, each after those that it leads to, unless these lead to it as well.
fn callees_first(source: &World, exports: &[Cont]) -> Vec<Cont> {
    let (nest, _) = Nest::of_program(source, exports);
    let nodes: Vec<usize> = nest.conts.iter().map(|k| k.idx()).collect();
    let succ = |n: usize, i: usize| nest.references(Cont::from_idx(n)).get(i).map(|k| k.idx());
    let components = graph::Components::default().find(&nodes, succ, |n| nest.is_reachable(Cont::from_idx(n)));
    components.into_iter().flatten().map(Cont::from_idx).filter(|&k| is_export(source, k)).collect()
}

/// Evaluates groups of exports, the last one first, each on the part of the program that it reaches, so that it costs what that part
/// costs. A group of several is divided if it spends its budget. To a group, exports outside of it are functions as others.
fn specialize_exports<'r>(
    source: &World,
    roots: &'r [Cont],
    mut groups: Vec<&'r [Cont]>,
    options: &Options,
    stats: &mut Stats,
    sink: &mut Sink,
) -> Result<World, Box<Diverged>> {
    let (mut extractor, mut linker) = (Extractor::new(source), Linker::new(source, roots));
    let mut record = options.record.then(Box::<record::Record>::default);
    // Many exports reach the same code.
    let mut reported: FxHashSet<(Span, String)> = FxHashSet::default();
    while let Some(group) = groups.pop() {
        let mut part = extractor.extract(group);
        let own: Vec<Cont> = group.iter().filter_map(|&root| part.find(root)).collect();
        for other in part.world.roots().into_iter().filter(|k| !own.contains(k)) {
            part.world.cont_mut(other).linkage = Linkage::Internal.into();
        }
        let export = match specialize_export(&part.world, &own, options, stats) {
            Ok(export) => export,
            Err(diverged) if group.len() > 1 && diverged.is_total => {
                let (a, b) = group.split_at(group.len() / 2);
                groups.extend([b, a]);
                continue;
            }
            Err(mut diverged) => {
                diverged.cont = diverged.cont.map(|k| part.conts[k.idx()]);
                if let (Some(mut all), Some(last)) = (record, diverged.record.take()) {
                    all.absorb(*last, &part.conts, &Placed::default());
                    diverged.record = Some(all);
                }
                return Err(diverged);
            }
        };
        let Finished { world: residual, mut conts, mut vals } = export.residual;
        let first_new = Val::from_idx(linker.program.n_vals());
        let placed = linker.add(&part, &residual, &residual.roots());
        for mut report in export.reports {
            let span = &mut report.primary.span;
            span.call = placed.calls.get(span.call.0 as usize).copied().unwrap_or(span.call);
            if reported.insert((*span, report.message.clone())) {
                sink.diagnostics.push(report);
            }
        }
        if let (Some(all), Some(mut own)) = (&mut record, export.record) {
            // What an earlier export has left as well is counted there.
            own.leave_out(|k| conts[k].is_some_and(|k| placed.was_there[k]));
            conts.iter_mut().for_each(|k| *k = k.filter(|&k| !placed.was_there[k]));
            vals.iter_mut().for_each(|v| *v = v.filter(|&v| placed.vals[v].is_some_and(|v| v >= first_new)));
            own.finish(&conts, &vals, export.size, &residual, export.reductions);
            all.absorb(*own, &part.conts, &placed);
        }
    }
    stats.record = record;
    Ok(linker.finish())
}

/// What evaluation made of one export.
struct Export {
    residual: Finished,
    reports: Vec<Diagnostic>,
    /// Not finished.
    record: Option<Box<record::Record>>,
    /// Continuations and values of the evaluator's graph.
    size: (usize, usize),
    /// Of the last round.
    reductions: u64,
}

/// Evaluates one export, or several as one; there is one at least.
fn specialize_export(
    source: &World,
    exports: &[Cont],
    options: &Options,
    stats: &mut Stats,
) -> Result<Export, Box<Diverged>> {
    let facts = facts::Facts::new(source, exports);
    let mut hints = whistle::Hints::default();
    let (mut rounds, mut failures) = (0, 0);
    let mut may_start_again = true;
    loop {
        rounds += 1;
        stats.rounds = stats.rounds.max(rounds);
        let may_start_again_now = may_start_again && rounds + 2 < MAX_ROUNDS;
        let mut evaluator =
            eval::Evaluator::new(source, &facts, &hints, options.clone(), exports[0], may_start_again_now);
        let outcome = evaluator.run(exports);
        stats.reductions += evaluator.reductions();
        if let Err(mut diverged) = outcome {
            // A function found late to have too many copies may cost much less if that is known from the start.
            if !diverged.is_early {
                evaluator.note_shared_in_spent();
                failures += 1;
            }
            let noted = evaluator.take_noted();
            diverged.record = evaluator.take_record();
            let (size, reductions) = (evaluator.size_of_graph(), evaluator.reductions());
            if let Some(record) = &mut diverged.record {
                record.finish(&SideTable::default(), &SideTable::default(), size, &World::new(), reductions);
                record.rounds = rounds;
            }
            let found = hints.absorb(noted);
            // An evaluation that was given up without a new hint is not given up early again.
            may_start_again &= found;
            // The caller divides the exports.
            let is_divided = exports.len() > 1 && diverged.is_total;
            let is_ended = options.progress.as_ref().is_some_and(|p| p.is_ended());
            if !is_ended
                && !is_divided
                && rounds < MAX_ROUNDS
                && failures < MAX_FAILURES
                && (found || diverged.is_early)
            {
                continue;
            }
            return Err(diverged);
        }
        let reachable = finish::find_reachable(&evaluator, exports);
        evaluator.note_single_calls(|k| reachable.calls[k] + 2 * reachable.values[k]);
        let mut more = hints.clone();
        if rounds < MAX_ROUNDS && more.absorb(evaluator.take_noted()) {
            drop(evaluator);
            hints = more;
            continue;
        }
        let residual = finish::copy(&mut evaluator, exports, reachable);
        let size = evaluator.size_of_graph();
        stats.nodes += size.1;
        let mut record = evaluator.take_record();
        record.iter_mut().for_each(|record| record.rounds = rounds);
        let mut reports = evaluator.take_reports();
        reports.extend(evaluator.long_unrolls(&residual));
        let reductions = evaluator.reductions();
        return Ok(Export { residual, reports, record, size, reductions });
    }
}

fn is_export(w: &World, k: Cont) -> bool {
    matches!(*w.cont(k).linkage, Linkage::Exported(_))
}

/// Reports every static assertion that is left in the residual program, as failed or as not decided.
fn report_static_asserts(residual: &World, sink: &mut Sink) {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut callers: Option<Callers> = None;
    for k in (0..residual.n_conts()).map(Cont::from_idx) {
        let Some(body) = residual.body(k) else { continue };
        if residual.node(body.callee) != Node::Builtin(Builtin::StaticAssert) {
            continue;
        }
        let text = residual.text(body.args[2]);
        let mut diagnostic = if residual.as_lit(body.args[1]).is_some() {
            static_assert_failed::error(body.origin, &text)
        } else {
            static_assert_unknown::error(body.origin, &text)
        };
        let callers = callers.get_or_insert_with(|| Callers::new(residual));
        diagnostic.add_calls(callers.chain(residual, k).into_iter());
        found.push(diagnostic);
    }
    sink.diagnostics.extend(found);
}

/// The calls of a residual program's functions.
struct Callers {
    nest: Nest,
    /// A call of each function, by its continuation: the one that makes it.
    calls: FxHashMap<Cont, Cont>,
}

impl Callers {
    fn new(residual: &World) -> Callers {
        let (nest, _) = Nest::of_program(residual, &residual.roots());
        let mut calls = FxHashMap::default();
        for &k in &nest.conts {
            if let Some(body) = residual.body(k)
                && let Node::Cont(callee) = residual.node(body.callee)
                && nest.parent(callee).is_none()
            {
                calls.entry(callee).or_insert(k);
            }
        }
        Callers { nest, calls }
    }

    /// A chain of calls that leads to the code of `k`: names of functions, and where they are called.
    fn chain<'w>(&self, residual: &'w World, k: Cont) -> Vec<(&'w str, Span)> {
        let mut seen = FxHashSet::default();
        let mut chain = Vec::new();
        let mut at = k;
        loop {
            while let Some(around) = self.nest.parent(at) {
                at = around;
            }
            let Some(&caller) = self.calls.get(&at).filter(|_| seen.insert(at) && chain.len() < 8) else {
                return chain;
            };
            chain.push((residual.name(at), residual.body(caller).map_or(Span::NONE, |b| b.origin)));
            at = caller;
        }
    }
}
