//! A program as graphs: before partial evaluation, and the residual program. Each is a value with what was found up to there, and can
//! be specialized, interpreted or made flat any number of times. Separate from flat SSA, where nothing is higher-order any more.

use crate::diagnostics::{constant_fault, heap_closure, unknown_cpu};
use crate::front::FrontEnd;
use crate::pipelines::{GRAPH, SPECIALIZE};
use crate::report::{Failed, Report};
use crate::{Options, closures, sierra, staged, target_facts};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Id};
use nyala_ir::ensure::Ensure;
use nyala_ir::{Builtin, Cont, Node, World, callbacks};
use nyala_specialize::record::Record;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A program before partial evaluation.
pub struct Graph {
    /// The options for what comes of it.
    pub options: Options,
    /// What was found up to here.
    pub report: Report,
    /// The graph; residual programs share it.
    pub world: Arc<World>,
}

/// A program after partial evaluation.
pub struct Residual {
    /// The options for what comes of it.
    pub options: Options,
    /// What was found up to here.
    pub report: Report,
    /// The residual graph.
    pub world: World,
    /// What the program asserts of its code. It is judged in flat SSA.
    pub ensures: Vec<Ensure>,
    /// The graph that it was made of.
    pub(crate) source: Arc<World>,
    /// All decisions of partial evaluation, if they were recorded.
    pub(crate) record: Option<Box<Record>>,
}

/// The error of partial evaluation.
pub struct Diverged {
    /// What is wrong.
    pub failed: Failed,
    /// The decisions up to the end of an evaluation that was given up.
    pub(crate) record: Option<Box<Record>>,
    /// The graph that was evaluated.
    pub(crate) source: Arc<World>,
}

/// LLVM would take an unknown CPU for one that can do little.
fn check_cpus(options: &Options) -> Result<(), Failed> {
    if options.cpu.is_none() && options.more_cpus.is_empty() {
        return Ok(());
    }
    let target = options.target();
    let arch = target.arch_name();
    let known = nyala_ir::target::cpus(arch);
    let mut report = Report::default();
    for cpu in options.cpu.iter().chain(&options.more_cpus) {
        let is_known = known.is_empty() || known.contains(&cpu.as_str()) || cpu == "native" && target.is_native;
        if !is_known {
            let similar = nyala_sema::closest(cpu, known.iter().copied());
            report.sink.push(unknown_cpu::error(cpu, arch, similar));
        }
    }
    report.check(options)
}

/// Where a program reaches an operation that is not implemented.
fn unsupported(world: &World) -> impl Iterator<Item = nyala_ir::Body<'_>> {
    let bodies = (0..world.n_conts()).filter_map(|k| world.body(Cont::from_idx(k)));
    bodies.filter(|body| {
        matches!(world.node(body.callee), Node::Builtin(Builtin::Limited)) && world.as_lit(body.args[2]) == Some(0)
    })
}

fn verify(options: &Options, report: &mut Report, pass: &'static str, world: &World) -> Result<(), Failed> {
    if !options.verify {
        return Ok(());
    }
    let faults = nyala_ir::verify::verify(world, &world.roots());
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(report.bug(pass, fault)),
    }
}

/// The options that a graph is made with.
#[derive(PartialEq, Eq)]
pub(crate) struct Made {
    spaces: nyala_ir::target::Spaces,
    wrap: bool,
    debug: bool,
    checks_bounds: bool,
    lanes: u32,
    has_masks: bool,
}

impl FrontEnd {
    pub(crate) fn made(&self) -> Made {
        let options = &self.options;
        Made {
            spaces: options.target().spaces,
            wrap: options.wrap,
            debug: options.debug,
            checks_bounds: options.is_interpreted || options.checked().bounds,
            lanes: sierra::lanes(options),
            has_masks: options.target().facts().masks,
        }
    }

    /// All that the program has, as one graph.
    pub(crate) fn lower(&self, report: &mut Report) -> Option<World> {
        let options = &self.options;
        let Made { spaces, wrap, debug, checks_bounds, .. } = self.made();
        let lowering = nyala_sema::Lowering { spaces, wrap, debug, checks_bounds };
        report.time(
            options,
            "lower",
            |r| {
                let mut world = nyala_sema::lower(self.program(), &r.sources, lowering, &mut r.sink);
                if let Some(world) = &mut world {
                    staged::lower(&self.staged, r, options, world);
                }
                if let Some(world) = &mut world {
                    sierra::lower(r, options, world);
                }
                world
            },
            |w| w.as_ref().map_or(0, World::n_vals),
        )
    }

    /// The program's graph.
    ///
    /// # Errors
    /// All that the user can simply have wrong.
    pub fn graph(&self) -> Result<Graph, Failed> {
        let options = &self.options;
        check_cpus(options)?;
        let mut report = self.without_errors()?;
        let lowered = self.lowered.lock().ok().and_then(|mut kept| kept.take()).filter(|kept| kept.0 == self.made());
        let world = match lowered {
            Some((_, world)) => Some(world),
            None => self.lower(&mut report),
        };
        let mut world = report.checked(options, world)?;
        report.facts = target_facts::asked(self, &world).into();
        world.keeps_faults = options.checked() != nyala_checks::Checks::default();
        for pass in GRAPH {
            report.time(options, pass.name, |r| (pass.run)(&mut world, options, r), |_| 0)?;
            for (span, fault) in std::mem::take(&mut world.fold_warnings) {
                report.sink.push(constant_fault::warning(span, fault));
            }
            if pass.verified {
                verify(options, &mut report, pass.name, &world)?;
            }
        }
        Ok(Graph { options: options.clone(), report, world: Arc::new(world) })
    }
}

impl Graph {
    /// A graph that was not made of a program's text.
    pub fn of(options: Options, world: World) -> Graph {
        Graph { options, report: Report::default(), world: Arc::new(world) }
    }

    /// The graph with other options for what comes of it.
    pub fn with(&self, options: Options) -> Graph {
        Graph { options, report: self.report.clone(), world: self.world.clone() }
    }

    /// The residual program.
    ///
    /// # Errors
    /// Partial evaluation was given up, or the program uses what nobody implements.
    pub fn residual(&self) -> Result<Residual, Failed> {
        let mut residual = self.specialize(false).map_err(|diverged| diverged.failed)?;
        let Residual { report, world, .. } = &mut residual;
        // Unfolded calls show more addresses that leave than the source does.
        for warning in nyala_specialize::leaving_addresses::leaving_addresses(world) {
            let is_known = |d: &Diagnostic| d.code == warning.code && d.primary.span.lo == warning.primary.span.lo;
            if !report.sink.diagnostics.iter().any(is_known) {
                report.sink.push(warning);
            }
        }
        report_unsupported(&self.options, report, world)?;
        report_closures(&self.options, report, world)?;
        Ok(residual)
    }

    /// Reports unsupported functions and, if denied, closures. Only then the program is specialized: both are known no earlier.
    pub fn check_supported(&self) -> Result<Report, Failed> {
        match self.options.denies("heap-closure") || unsupported(&self.world).next().is_some() {
            true => Ok(self.residual()?.report),
            false => Ok(self.report.clone()),
        }
    }

    /// The residual program as partial evaluation leaves it; with `record`, its decisions are recorded.
    ///
    /// # Errors
    /// Partial evaluation was given up.
    pub fn specialize(&self, record: bool) -> Result<Residual, Diverged> {
        let options = &self.options;
        let mut report = self.report.clone();
        let of = nyala_specialize::Options {
            annotations: options.partial_evaluation,
            budget: options.pe_budget,
            units: options.pe_units,
            together: options.together,
            record,
            progress: options.steps(),
        };
        let steps = of.progress.clone();
        let source = match callbacks::are_there(&self.world) {
            true => {
                let mut world = (*self.world).clone();
                callbacks::wrap(&mut world);
                Arc::new(world)
            }
            false => self.world.clone(),
        };
        let result = report.time_steps(
            options,
            SPECIALIZE,
            steps,
            |r| nyala_specialize::specialize(&source, of, &mut r.sink),
            |r| r.as_ref().map_or(0, |(w, _)| w.n_vals()),
        );
        let (mut world, stats) = match result {
            Ok(done) => done,
            Err(diverged) => {
                let is_library = |file| report.is_library(file);
                let found = nyala_specialize::whistle::report(&source, &diverged, is_library);
                report.sink.push(found);
                report.judge_warnings(options);
                return Err(Diverged { failed: report.fail(), record: diverged.record, source });
            }
        };
        report.calls = Arc::new(std::mem::take(&mut world.calls));
        let fine = report.check(options).and_then(|()| verify(options, &mut report, SPECIALIZE, &world));
        fine.map_err(|failed| Diverged { failed, record: None, source: source.clone() })?;
        let ensures = source.ensures.clone();
        Ok(Residual { options: options.clone(), report, world, ensures, source, record: stats.record })
    }
}

impl Residual {
    /// A residual program that was not made of a program's text.
    pub fn of(options: Options, world: World) -> Residual {
        Residual {
            options,
            report: Report::default(),
            world,
            ensures: Vec::new(),
            source: Arc::default(),
            record: None,
        }
    }

    /// The graph that it was made of, with the reports up to there.
    pub(crate) fn graph(&self) -> Graph {
        Graph { options: self.options.clone(), report: self.report.clone(), world: self.source.clone() }
    }

    /// The record of all decisions, if they were recorded.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_deref()
    }
}

/// Reports functions that are values at run time and capture something, if asked to: nothing is wrong with them.
fn report_closures(options: &Options, report: &mut Report, residual: &World) -> Result<(), Failed> {
    if !options.denies("heap-closure") {
        return Ok(());
    }
    let facts = nyala_specialize::facts::Facts::new(residual, &residual.roots());
    let mut seen = FxHashSet::default();
    for closure in closures::find(residual, &facts, &report.sources) {
        let place = residual.cont(closure.cont).origin;
        if !closure.captures.is_empty() && !closure.is_in_frame && seen.insert(place) {
            let captures = closure.captures.join(", ");
            report.sink.push(heap_closure::warning(place, &captures, &closure.why, closure.used));
        }
    }
    report.check(options)
}

/// Reports what the program uses though nobody implements it. In what partial evaluation leaves out it is no fault.
fn report_unsupported(options: &Options, report: &mut Report, residual: &World) -> Result<(), Failed> {
    let mut found: Vec<_> = unsupported(residual).collect();
    found.sort_by_key(|body| (body.origin.file, body.origin.lo));
    for body in found {
        let hint = "do without it, or write it as a function of the program";
        report.sink.push(limitation::error(body.origin, residual.text(body.args[1]), hint));
    }
    report.check(options)
}
