//! One program under all engines: the specialized program, the one specialized no more than needed, and the source must give
//! equal results. A program has one body or many, so that one compilation serves all; what fails is blamed on a body if that is
//! known. Separate from the choice of programs, since files are checked like this, too.

use super::{INPUTS, RESIDUAL_STEPS};
use nyala_base::{Severity, SideTable};
use nyala_driver::{Failed, Files, Flat, FrontEnd, Graph, Options, Report, Residual, Timing};
use nyala_interp::Machine;
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, World};
use nyala_specialize::facts::{Facts, is_function};
use nyala_specialize::record::{self, Record, Why};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Budgets of partial evaluation. A program of one body that spends the first one is tried with the second, in whose report most
/// endless programs show a reason.
const BUDGETS: [f64; 2] = [0.001, 0.004];
/// What all functions of a body together may take, as a multiple of what one may.
const UNITS_OF_BODY: f64 = 1.5;
/// Residual programs with more continuations for each of the source are compared with the continuations asked for.
pub const LARGE: f64 = 6.0;
/// Limit on the continuations for each asked for; more are a fault.
/// The worst of some eighty thousand programs has 2.2 (seed 835575163992164814). If every block were copied for each
/// jump to it, one in ten of the large programs would have more than 2.
const MAX_FOR_EACH_ASKED: f64 = 3.0;
const FILE: &str = "random.impala";

/// The text of a program and its bodies.
pub struct Program {
    pub text: String,
    pub bodies: Vec<Body>,
}

/// A part of a program whose results are compared.
pub struct Body {
    /// What follows the names of its exported functions.
    pub suffix: String,
    /// Where it stands in the text.
    pub place: Range<usize>,
}

impl Program {
    pub fn of_one_body(text: &str) -> Program {
        let bodies = vec![Body { suffix: String::new(), place: 0..text.len() }];
        Program { text: text.into(), bodies }
    }
}

/// The engines that run a program, beside the interpreter before and after partial evaluation.
#[derive(Clone)]
pub struct Engines {
    pub native: bool,
    /// Whether it also runs without partial evaluation.
    pub plain: bool,
    /// Which kind of native code runs without partial evaluation, by a number; `None` is all kinds.
    pub plain_turn: Option<u64>,
    /// Whether it also runs as C text.
    pub c: bool,
    /// Limit on the steps of the source for each list of inputs.
    pub max_steps: u64,
    /// The processors that optimized native code is made for, which takes most of the time.
    pub cpus: Vec<&'static str>,
    /// Whether it also runs as checked code.
    pub checked: bool,
    /// The optimization of checked code and of C text by their compilers, after all passes over flat code.
    pub other_level: u8,
    /// Whether the size of the residual program is limited.
    pub has_limits: bool,
}

/// Why a body is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It takes too many steps.
    TooLong,
    /// Lanes of one vector meet in memory.
    Meets,
}

pub enum Outcome {
    Agrees(Size),
    Left(Left),
    /// The results agree, but not everything has native code.
    Limited,
    /// Partial evaluation spends its budget, with this report.
    Diverges(String),
    Fault(String),
}

/// The size of the residual program in continuations.
#[derive(Clone, Copy, Default)]
pub struct Size {
    pub for_each_of_source: f64,
    /// The ratio to the continuations asked for, for large programs.
    pub for_each_asked: Option<f64>,
}

/// What a program does not do as it should, and the body that does not, if that is known.
pub struct Blame {
    pub body: Option<usize>,
    pub outcome: Outcome,
}

/// The time of each pass, by the engine that it was for.
pub type Times = Mutex<BTreeMap<(&'static str, &'static str), Duration>>;

/// Notes passes as those for an engine.
fn note_times(timings: &[Timing], engine: &'static str, times: &Times) {
    let mut times = times.lock().unwrap_or_else(|e| e.into_inner());
    for timing in timings {
        *times.entry((engine, timing.pass)).or_default() += timing.time;
    }
}

/// Runs something and notes the time that it takes.
fn timed<T>(engine: &'static str, what: &'static str, times: &Times, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = f();
    *times.lock().unwrap_or_else(|e| e.into_inner()).entry((engine, what)).or_default() += start.elapsed();
    result
}

/// Native code of one kind.
enum Kind<'e> {
    Native { level: u8, cpu: &'e str },
    Checked,
    C,
}

impl Kind<'_> {
    fn name(&self) -> &'static str {
        match self {
            Kind::Native { level: 0, .. } => "-O0",
            Kind::Native { .. } => "-O3",
            Kind::Checked => "--check",
            Kind::C => "C text",
        }
    }
}

fn kinds(engines: &Engines, annotations: bool) -> Vec<Kind<'_>> {
    if !engines.native {
        return Vec::new();
    }
    let mut kinds = vec![Kind::Native { level: 0, cpu: engines.cpus[0] }];
    kinds.extend(engines.cpus.iter().map(|cpu| Kind::Native { level: 3, cpu }));
    if engines.checked {
        kinds.push(Kind::Checked);
    }
    if engines.c && crate::texts::is_there(by_c()) {
        kinds.push(Kind::C);
    }
    if let (false, Some(turn)) = (annotations, engines.plain_turn) {
        let one = kinds.swap_remove((turn % kinds.len() as u64) as usize);
        return vec![one];
    }
    kinds
}

/// Checks a program; by body, the size of the residual program, or why it is left out.
pub fn check(program: &Program, engines: &Engines, times: &Times) -> Result<Vec<Result<Size, Left>>, Blame> {
    const INTERPRETER: &str = "interpreter";
    let fault = |report: &Report, what: &str| {
        let separator = if what.is_empty() { "" } else { ": " };
        let outcome = Outcome::Fault(format!("{what}{separator}{}", errors(report)));
        Blame { body: blamed(report, program), outcome }
    };
    let cpu = engines.cpus.first().map(|cpu| cpu.to_string());
    let pe_units = UNITS_OF_BODY * program.bodies.len() as f64;
    let options = Options { verify: true, cpu, pe_units, ..Options::default() };
    let mut graph = FrontEnd::new(options, Files::of(FILE, &*program.text)).graph().map_err(|e| fault(&e, ""))?;
    note_times(&graph.report.timings, INTERPRETER, times);
    let wanted: Vec<usize> = (0..program.bodies.len()).collect();
    let results = timed(INTERPRETER, "interpret source", times, || {
        interpret(&graph.world, program, &wanted, engines.max_steps, false)
    });
    let of_source = |(body, e)| Blame { body: Some(body), outcome: Outcome::Fault(format!("the source: {e}")) };
    let expected = results.map_err(of_source)?;
    let wanted: Vec<usize> = wanted.into_iter().filter(|&i| expected[i].is_ok()).collect();
    let (mut diverges, mut limited, mut sizes) = (None, false, vec![Size::default(); program.bodies.len()]);
    for annotations in [false, true] {
        if !annotations && !engines.plain || wanted.is_empty() {
            continue;
        }
        let what = if annotations { "specialized" } else { "not specialized" };
        graph.options.partial_evaluation = annotations;
        let n_before = graph.report.timings.len();
        let mut residual = match specialize(&mut graph, program) {
            Ok(residual) => residual,
            Err(failed) if is_divergence(&failed) => {
                let blame = Blame { body: blamed(&failed, program), outcome: Outcome::Diverges(failed.render(false)) };
                if program.bodies.len() > 1 {
                    return Err(blame);
                }
                diverges = Some(blame);
                continue;
            }
            Err(failed) => return Err(fault(&failed, what)),
        };
        note_times(residual.report.timings.get(n_before..).unwrap_or_default(), INTERPRETER, times);
        sizes = self::sizes(&graph, &residual.world, program);
        let too_large = |size: &Size| size.for_each_asked.filter(|&n| engines.has_limits && n > MAX_FOR_EACH_ASKED);
        if let Some((body, n)) = sizes.iter().enumerate().find_map(|(i, size)| Some((i, too_large(size)?))) {
            let text = format!("{what}: too large: {n:.1} continuations for each asked for");
            return Err(Blame { body: Some(body), outcome: Outcome::Fault(text) });
        }
        let max_steps = RESIDUAL_STEPS * engines.max_steps;
        let results = timed(INTERPRETER, "interpret residual", times, || {
            interpret(&residual.world, program, &wanted, max_steps, true)
        });
        let differs = |found: &[Ran]| wanted.iter().copied().find(|&i| found[i] != expected[i]);
        let interpreted = match results {
            Ok(results) => differs(&results).map(|i| match &results[i] {
                Err(left) => (i, format!("{left:?}")),
                Ok(found) => (i, format!("{found:?}, not {:?}", expected[i].as_deref().unwrap_or_default())),
            }),
            Err(blame) => Some(blame),
        };
        if let Some((body, e)) = interpreted {
            let text = format!("{what}, interpreted: {e}");
            return Err(Blame { body: Some(body), outcome: Outcome::Fault(text) });
        }
        for kind in kinds(engines, annotations) {
            let (text, results) = match kind {
                Kind::Native { level, cpu } => {
                    residual.options.opt_level = level;
                    residual.options.cpu = Some(cpu.into());
                    let results = run(&residual, &kind, level, program, &wanted, times);
                    residual.options.cpu = Some(engines.cpus[0].into());
                    (format!("{what}, --cpu {cpu}, -O{level}"), results)
                }
                Kind::Checked => {
                    (residual.options.opt_level, residual.options.checks) = (3, nyala_checks::Checks::ALL);
                    let results = run(&residual, &kind, engines.other_level, program, &wanted, times);
                    residual.options.checks = nyala_checks::Checks::default();
                    (format!("{what}, checked, -O{}", engines.other_level), results)
                }
                Kind::C => {
                    residual.options.opt_level = if annotations { 3 } else { 0 };
                    let results = run(&residual, &kind, engines.other_level, program, &wanted, times);
                    (format!("{what}, as C text"), results)
                }
            };
            match results {
                Ok(found) => {
                    if let Some(i) = differs(&found) {
                        let [found, expected] = [&found[i], &expected[i]].map(|r| r.as_deref().unwrap_or_default());
                        let outcome = Outcome::Fault(format!("{text}: {found:?}, not {expected:?}"));
                        return Err(Blame { body: Some(i), outcome });
                    }
                }
                Err(failed) if crate::texts::is_limitation(&failed) => {
                    if program.bodies.len() > 1 {
                        return Err(Blame { body: blamed(&failed, program), outcome: Outcome::Limited });
                    }
                    // What is checked has limitations of its own.
                    limited |= !matches!(kind, Kind::Checked);
                }
                Err(failed) => return Err(fault(&failed, &text)),
            }
        }
    }
    match (diverges, limited) {
        (Some(blame), _) => Err(blame),
        (_, true) => Err(Blame { body: None, outcome: Outcome::Limited }),
        _ => {
            Ok(expected.iter().zip(sizes).map(|(ran, size)| ran.as_ref().map(|_| size).map_err(|&left| left)).collect())
        }
    }
}

/// The errors of a report, without its warnings, which would hide them in a log.
fn errors(report: &Report) -> String {
    let errors = report.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| d.render(&report.sources, false)).collect()
}

/// Whether the program only spends the budget of partial evaluation.
fn is_divergence(report: &Report) -> bool {
    let mut errors = report.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    errors.all(|d| d.code == "specialization-diverges")
}

/// The body that the first error with a place in one names.
fn blamed(report: &Report, program: &Program) -> Option<usize> {
    places(report).find_map(|at| program.bodies.iter().position(|b| b.place.contains(&at)))
}

/// Where the errors of a report and their notes are, in the file of random bodies.
fn places(report: &Report) -> impl Iterator<Item = usize> {
    let errors = report.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let spans = errors.flat_map(|d| std::iter::once(&d.primary).chain(&d.others)).map(|label| label.span);
    spans.filter(|span| report.sources.name(span.file) == FILE).map(|span| span.lo as usize)
}

/// The engine that a C compiler belongs to.
fn by_c() -> &'static nyala_driver::testing::Engine {
    let mut engines = nyala_driver::testing::ENGINES.iter();
    engines.find(|e| e.back_end.name == "c").expect("the engine of the C back end")
}

/// The results of a body, or why it has none.
type Ran = Result<Vec<u32>, Left>;

/// The results of native code, which the compiler of the back end optimizes at `level`.
fn run(
    residual: &Residual,
    kind: &Kind,
    level: u8,
    program: &Program,
    wanted: &[usize],
    times: &Times,
) -> Result<Vec<Ran>, Failed> {
    let is_c = matches!(kind, Kind::C);
    let mut flat: Flat = if is_c { residual.flat_for(by_c().back_end)? } else { residual.flat()? };
    flat.options.opt_level = level;
    let loaded = if is_c { flat.load_by_c(&[])? } else { flat.load(&[])? };
    let n_before = residual.report.timings.len();
    note_times(loaded.report.timings.get(n_before..).unwrap_or_default(), kind.name(), times);
    let mut results = vec![Err(Left::TooLong); program.bodies.len()];
    for &i in wanted {
        let name = format!("all{}", program.bodies[i].suffix);
        results[i] = Ok(vec![timed(kind.name(), "run", times, || loaded.call_i32(&name))? as u32]);
    }
    Ok(results)
}

/// The residual program, or the report of one that spends all budgets or has other errors. The graph has the budget that was tried
/// last.
fn specialize(graph: &mut Graph, program: &Program) -> Result<Residual, Failed> {
    let mut tried = Err(Box::default());
    // A body that spends the first one among others is tried alone.
    for &budget in if program.bodies.len() > 1 { &BUDGETS[..1] } else { &BUDGETS } {
        graph.options.pe_budget = budget;
        tried = graph.residual();
        if !tried.as_ref().is_err_and(|failed| is_divergence(failed)) {
            break;
        }
    }
    tried
}

/// The roots that a body's results come from.
fn roots(world: &World, body: &Body) -> Vec<Cont> {
    world.find_root(&format!("all{}", body.suffix)).map_or_else(|| world.roots(), |root| vec![root])
}

fn sizes(graph: &Graph, residual: &World, program: &Program) -> Vec<Size> {
    let world = &*graph.world;
    let n_conts = |world: &World, body: &Body| Nest::of_program(world, &roots(world, body)).0.conts.len();
    let sizes = program.bodies.iter().map(|body| {
        let (n, n_source) = (n_conts(residual, body) as f64, n_conts(world, body));
        let for_each_of_source = n / n_source.max(1) as f64;
        // What others ask for is in the same record. It is made with the budget that was tried last.
        let is_wanted = for_each_of_source > LARGE && program.bodies.len() == 1;
        let recorded = is_wanted.then(|| graph.specialize(true).ok()).flatten();
        let record = recorded.as_ref().and_then(Residual::record);
        let for_each_asked = record.map(|record| n / (n_source as u64 + asked(world, record)) as f64);
        Size { for_each_of_source, for_each_asked }
    });
    sizes.collect()
}

/// The number of continuations of all bodies that the program asks for, beside the source.
fn asked(world: &World, record: &Record) -> u64 {
    let facts = Facts::new(world, &world.roots());
    let nest = &facts.nest;
    // The size of the function or loop that begins with a continuation.
    let mut size: SideTable<Cont, u64> = SideTable::default();
    for &k in &nest.conts {
        let mut at = Some(k);
        while let Some(around) = at {
            size[around] += 1;
            at = nest.parent(around).filter(|_| !is_function(world, around));
        }
    }
    let copies = record.rows.iter().map(|row| match (row.key.callee, row.key.outcome, row.key.why) {
        (None, ..) => 0,
        // A copy for other functions, or the body of the source itself.
        (Some(k), _, Why::OnlyCall | Why::HaltedOnlyCall) => (facts.automatic[k] != 0) as u64 * size[k] * row.calls,
        (Some(k), record::Outcome::Unfolded, Why::KnownLoop) => size[k] * row.calls,
        (Some(k), record::Outcome::Unfolded | record::Outcome::Run, _) if is_function(world, k) => size[k] * row.calls,
        (
            Some(k),
            record::Outcome::Specialized
            | record::Outcome::Halted
            | record::Outcome::Knot
            | record::Outcome::Generalized,
            _,
        ) => size[k] * row.made,
        _ => 0,
    });
    copies.sum()
}

/// The results of the program's bodies for all inputs: of `all`, which also calls the entries with known inputs, or else of
/// `entry` for each list. The error has the body.
fn interpret(
    world: &World,
    program: &Program,
    wanted: &[usize],
    max_steps: u64,
    residual: bool,
) -> Result<Vec<Ran>, (usize, String)> {
    let (nest, _) = Nest::of_program(world, &world.roots());
    let options = nyala_interp::Options { residual, ..Default::default() };
    let start = || Machine::new(world, &nest, &options).map_err(|fault| (0, fault.diagnostic().message));
    let (mut machine, mut all) = (start()?, vec![Err(Left::TooLong); program.bodies.len()]);
    for &i in wanted {
        let root = |name: &str| world.find_root(&format!("{name}{}", program.bodies[i].suffix));
        let (entry, n_runs, inputs) = match (root("all"), root("entry")) {
            // `all` calls it with each list.
            (Some(all), _) => (all, INPUTS.len() as u64, &INPUTS[..1]),
            (None, Some(entry)) => (entry, 1, INPUTS),
            (None, None) => return Err((i, "no `entry`".into())),
        };
        machine.limit_steps(n_runs * max_steps);
        // The parameters without memory and the return continuation.
        let n_params = world.params(entry).len().saturating_sub(2);
        let mut results = Ok(Vec::new());
        for inputs in inputs {
            let inputs: Vec<u64> = inputs.iter().take(n_params).map(|&x| x.into()).collect();
            match machine.run(entry, &inputs) {
                Ok(found) => results.iter_mut().for_each(|r| r.extend(found.iter().map(|&r| r as u32))),
                Err(fault) if fault.code() == "budget-spent" => results = Err(Left::TooLong),
                Err(fault) if fault.code() == "data-race" && !residual => results = Err(Left::Meets),
                Err(fault) => return Err((i, fault.diagnostic().message)),
            }
            if results.is_err() {
                // After a fault, a machine is not used again.
                machine = start()?;
                break;
            }
        }
        all[i] = results;
    }
    nyala_runtime::nyala_flush();
    Ok(all)
}
