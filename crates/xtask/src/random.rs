//! Random programs: the specialized program, the one specialized no more than needed, and the source must give equal
//! results. If some of the inputs are known during specialization (`split_i`), the residual program on the others must
//! do what the source does on all. A program that disagrees is reduced.
//!
//! The size of residual programs in continuations is measured in two ways. *For each of the source* divides it by the
//! continuations of the source. That is what a user sees first, but an `@` may require many. *For each asked for*
//! divides it by the continuations that the program asks for: the source itself, a body of the function for every call
//! that annotations unfold and for every copy for other known values or functions, and a body of a loop for every round
//! that `@@` unrolls, as if all of these bodies remained complete. As a rule, a residual program is smaller; it is
//! larger only if continuations within functions were copied. A copy with a single call is put in place of the call,
//! but counts like the others.

pub mod faults;
mod maker;
mod vectorized;

use crate::bad_input::reduce::reduce;
use crate::bad_input::{child, examine_or_exit, watched};
use crate::texts::{Tier, gate_cpu, older_cpus};
use crate::{Tally, root};
use nyala::{Failed, Files, FrontEnd, Graph, Options, Report, Residual};
use nyala_base::SideTable;
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, World};
use nyala_specialize::facts::{Facts, is_function};
use nyala_specialize::record::{self, Record, Why};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The arguments with which every program runs.
const INPUTS: &[[u32; 4]] = &[[0, 0, 0, 0], [1, 2, 3, 4], [7, 3, 0, 1], [100, 41, 6, 2], [3_000_000_000, 5, 2, 77]];
/// The name of this processor for `--cpu`.
const THIS_CPU: &str = "native";
/// Limit on the steps of a program; longer ones are left out. Residual programs may take a few more, because some of
/// their jumps between blocks are not calls of the source.
const MAX_STEPS: u64 = 60_000;
const RESIDUAL_STEPS: u64 = 3;
/// One in this many programs also runs as native code, which takes as long as everything else of about ten programs.
const NATIVE_EVERY: u64 = 64;
/// One in this many programs is a `vectorize`. These run as native code, for which they are made, and may take longer,
/// because they fill arrays first.
const LANES_EVERY: u64 = 61;
const MAX_STEPS_OF_LANES: u64 = 4 * MAX_STEPS;
/// One in this many programs is also specialized no more than needed (`--no-pe`).
const PLAIN_EVERY: u64 = 4;
/// A C compiler takes seconds for a program with lanes, so that only every eighth of them runs as C text.
const LANES_AS_C_EVERY: u64 = 8;
/// Budgets of partial evaluation. A program that spends the first one is tried with the second, in whose report most
/// endless programs show a reason.
const BUDGETS: [f64; 2] = [0.001, 0.004];
/// Limit on the programs of a run that spend the budget without a reason in the report.
const MAX_UNEXPLAINED: u64 = 1;
/// Residual programs with more continuations for each of the source are compared with the continuations asked for.
const LARGE: f64 = 6.0;
/// Limit on the continuations for each asked for; more are a fault. Programs above [`NOTABLE`] are kept with `--keep`.
/// The worst of some eighty thousand programs has 2.2 (seed 835575163992164814). If every block were copied for each
/// jump to it, one in ten of the large programs would have more than 2.
const MAX_FOR_EACH_ASKED: f64 = 3.0;
const NOTABLE: f64 = 1.0;
/// The outcome of a source that takes too many steps.
const TOO_LONG: &str = "the source takes too long";
/// The time limit for one program while a failing one is reduced.
const MAX_TIME_OF_CHILD: Duration = Duration::from_secs(60);
/// The run ends after this many failures.
const MAX_FAILED: usize = 5;

/// The programs that are made, and how they run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    /// All programs are a `vectorize`.
    Lanes,
    /// No program is a `vectorize`, and none runs as native code.
    Interpreted,
}

/// The programs that a run makes, and how it judges them.
pub struct Plan<'a> {
    /// The seed of the first program; the others count up from it.
    pub first: u64,
    /// The programs from the first on that are left out, which other runs make.
    pub before: u64,
    pub max_programs: u64,
    pub time: Duration,
    pub which: Which,
    /// Lists of processors, of which a body of `vectorize` takes one by its seed: native code is made for all of that list.
    pub cpus: Vec<Vec<&'static str>>,
    /// A folder for programs that spend the budget or have a large residual program.
    pub keep: Option<&'a Path>,
    /// With blessed seeds, the sizes of residual programs and the number of those without a reason are limited. With fresh
    /// ones they are only told.
    pub has_limits: bool,
    pub threads: usize,
}

/// Makes and checks programs until the time is over. Says every program that disagrees.
pub fn run(plan: &Plan, say: &(dyn Fn(String) + Sync)) -> Tally {
    let &Plan { first, which, .. } = plan;
    let start = Instant::now();
    let next = AtomicU64::new(plan.before);
    let found: Mutex<(Tally, [u64; 4])> = Mutex::default();
    let sizes: Mutex<Vec<(Size, u64)>> = Mutex::default();
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let failed = found.lock().unwrap_or_else(|e| e.into_inner()).0.failed;
            if i - plan.before >= plan.max_programs || start.elapsed() > plan.time || failed >= MAX_FAILED {
                return;
            }
            let seed = first.wrapping_add(i);
            let has_lanes = match which {
                Which::All => seed.is_multiple_of(LANES_EVERY),
                Which::Lanes => true,
                Which::Interpreted => false,
            };
            let program = if has_lanes { vectorized::generate(seed) } else { maker::generate(seed) };
            let of_lanes = &plan.cpus[seed as usize % plan.cpus.len()];
            let engines = Engines {
                native: has_lanes || which == Which::All && i.is_multiple_of(NATIVE_EVERY),
                plain: which != Which::Interpreted && i.is_multiple_of(PLAIN_EVERY),
                c: !has_lanes || i.is_multiple_of(LANES_AS_C_EVERY),
                max_steps: if has_lanes { MAX_STEPS_OF_LANES } else { MAX_STEPS },
                cpus: if has_lanes { of_lanes.clone() } else { plan.cpus[0].clone() },
                has_limits: plan.has_limits,
            };
            let _running = engines.native.then(|| Running::note(seed, &program));
            let outcome = check_all(&program, &engines);
            if let Outcome::Fault(e) = &outcome {
                // Reducing it takes a while.
                say(format!("FAILED random program, seed {seed}: {e}"));
                let smaller = smaller(program.clone());
                say(format!("seed {seed}, made smaller:\n{smaller}"));
                if !plan.has_limits {
                    say(keep_found(seed, &smaller));
                }
            }
            let kept = match &outcome {
                Outcome::Diverges(e) => Some((seed.to_string(), e.clone())),
                Outcome::Agrees(Size { for_each_asked: Some(n), .. }) if *n > NOTABLE => {
                    Some((format!("large_{seed}"), format!("{n:.1} continuations for each asked for")))
                }
                _ => None,
            };
            if let (Some((name, why)), Some(folder)) = (kept, plan.keep) {
                let comment: String = why.lines().map(|l| format!("// {l}\n")).collect();
                let path = folder.join(name + ".impala");
                let diverges = matches!(outcome, Outcome::Diverges(_));
                let text = if diverges { unsplit(&program) } else { program };
                if let Err(e) = std::fs::write(&path, comment + &text) {
                    say(format!("cannot write {}: {e}", path.display()));
                }
            }
            let (tally, [too_long, diverged, limited, unexplained]) =
                &mut *found.lock().unwrap_or_else(|e| e.into_inner());
            match &outcome {
                Outcome::Agrees(size) => sizes.lock().unwrap_or_else(|e| e.into_inner()).push((*size, seed)),
                Outcome::TooLong => *too_long += 1,
                Outcome::Limited => *limited += 1,
                Outcome::Diverges(e) => {
                    *diverged += 1;
                    if !counts(e) {
                        *unexplained += 1;
                        say(format!("seed {seed} spends the budget, though no known number is seen to count"));
                    }
                }
                Outcome::Fault(_) => tally.failed += 1,
            }
            tally.passed += !matches!(outcome, Outcome::Fault(_) | Outcome::TooLong) as usize;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            // The compiler may recurse deeply.
            drop(std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, work));
        }
    });
    let (mut tally, [too_long, diverged, limited, unexplained]) = found.into_inner().unwrap_or_else(|e| e.into_inner());
    if plan.has_limits && unexplained > MAX_UNEXPLAINED {
        say(format!("FAILED {unexplained} random programs spend the budget, though no known number is seen to count"));
        tally.failed += 1;
    }
    say(format!(
        "{} random programs agree, {} disagree; {too_long} left out as too long, {diverged} spent the budget of partial \
         evaluation (all inputs unknown), {limited} are a limitation of native code",
        tally.passed, tally.failed
    ));
    let sizes = sizes.into_inner().unwrap_or_else(|e| e.into_inner());
    show_sizes("source", sizes.iter().map(|(size, seed)| (size.for_each_of_source, *seed)).collect(), say);
    // The sizes of large programs.
    show_sizes("asked for", sizes.iter().filter_map(|(size, seed)| Some((size.for_each_asked?, *seed))).collect(), say);
    // The programs of a run count as one test, because their number depends on the machine.
    Tally { passed: (tally.failed == 0) as usize, failed: (tally.failed > 0) as usize, skipped: 0 }
}

fn show_sizes(of_what: &str, mut sizes: Vec<(f64, u64)>, say: &(dyn Fn(String) + Sync)) {
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |percent: usize| sizes.get((sizes.len() * percent / 100).min(sizes.len().saturating_sub(1)));
    if let (Some((median, _)), Some((most, _)), Some((worst, seed))) = (at(50), at(99), sizes.last()) {
        say(format!(
            "continuations of {} residual programs for each {of_what}: median {median:.1}, 99 % up to {most:.1}, worst \
             {worst:.1} (seed {seed})",
            sizes.len()
        ));
    }
}

/// A file with the program that runs as native code. It remains if the program ends this process.
struct Running(PathBuf);

impl Running {
    fn note(seed: u64, program: &str) -> Running {
        let folder = root().join("out/running");
        let path = folder.join(format!("{seed}.impala"));
        // The program can be checked without the file too.
        let _ = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, program));
        Running(path)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The folder of programs that failed once, which `./x test` tries again.
fn found_folder() -> PathBuf {
    root().join("tests/random/found")
}

/// Keeps a program that failed, so that it becomes a test; says where.
fn keep_found(seed: u64, program: &str) -> String {
    let path = found_folder().join(format!("{seed}.impala"));
    match std::fs::create_dir_all(found_folder()).and_then(|()| std::fs::write(&path, program)) {
        Ok(()) => format!("a test from now on: {}", path.display()),
        Err(e) => format!("cannot write {}: {e}", path.display()),
    }
}

/// The names of the programs that failed once.
pub fn found() -> Vec<String> {
    let entries = std::fs::read_dir(found_folder()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Tries a program that failed once, under all engines; its fault.
pub fn check_found(name: &str) -> Option<String> {
    let program = match std::fs::read_to_string(found_folder().join(name)) {
        Ok(program) => program,
        Err(e) => return Some(format!("tests/random/found/{name}: {e}")),
    };
    let engines = Engines {
        native: true,
        plain: true,
        c: true,
        max_steps: MAX_STEPS_OF_LANES,
        cpus: gate_cpus(),
        has_limits: true,
    };
    match check_all(&program, &engines) {
        Outcome::Agrees(_) | Outcome::Limited | Outcome::Diverges(_) => None,
        Outcome::TooLong => Some(TOO_LONG.into()),
        Outcome::Fault(fault) => Some(fault),
    }
}

/// A new seed each time.
pub fn fresh_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
}

/// Checks one program as if it were random.
pub fn run_file(path: &Path) -> Result<bool, String> {
    let program = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let path = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
    let Some(fault) = child(|c| c.arg("--file").arg(&path).stderr(Stdio::inherit()))? else { return Ok(true) };
    println!("{fault}");
    // Reducing it takes a while.
    println!("made smaller:\n{}", smaller(program));
    Ok(false)
}

/// Checks one program and prints the outcome. Called in another process.
pub fn check_file(path: &Path) -> Result<bool, String> {
    let program = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let engines = Engines {
        native: program.contains("fn all("),
        plain: true,
        c: true,
        max_steps: MAX_STEPS_OF_LANES,
        cpus: [all_cpus(), gate_cpus()].concat(),
        has_limits: false,
    };
    watched(MAX_TIME_OF_CHILD, move |started| {
        started();
        examine_or_exit(|| {
            let text = match check_all(&program, &engines) {
                Outcome::Agrees(_) => "agrees".into(),
                Outcome::Limited => "agrees, but is a limitation of native code".into(),
                Outcome::TooLong => return Err(TOO_LONG.into()),
                Outcome::Diverges(e) => format!("spends the budget of partial evaluation: {e}"),
                Outcome::Fault(e) => return Err(e),
            };
            eprintln!("{text}");
            Ok(())
        });
    })
}

/// The fault of a program, if it has one. Another process checks the program, because wrong native code may do
/// anything.
fn fault_in_child(program: &str) -> Option<String> {
    let folder = root().join("out/running");
    let path = folder.join(format!("{}_{:?}.impala", std::process::id(), std::thread::current().id()));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, program));
    let outcome = match written {
        Ok(()) => child(|c| c.arg("--file").arg(&path)).unwrap_or_else(Some),
        Err(e) => Some(format!("cannot write {}: {e}", path.display())),
    };
    let _ = std::fs::remove_file(&path);
    outcome
}

/// The smallest part of a program that still fails in the same way.
fn smaller(program: String) -> String {
    // A fault without numbers, names and quotes of the program.
    let kind = |fault: &str| {
        let first = fault.lines().next().unwrap_or_default();
        first.split([':', '`']).next().unwrap_or_default().replace(|c: char| c.is_ascii_digit(), "")
    };
    let Some(failed) = fault_in_child(&program).map(|fault| kind(&fault)) else {
        return format!("// In a process of its own it does not fail.\n{program}");
    };
    if failed.starts_with("error[") || failed == TOO_LONG {
        // The program was rejected, so its maker is at fault. A rejected program cannot be reduced.
        return program;
    }
    reduce(program, |p| fault_in_child(p).is_some_and(|fault| kind(&fault) == failed))
}

/// Checks a program, of which a panic is a fault. If known inputs make partial evaluation too long, it is checked
/// without them.
fn check_all(program: &str, engines: &Engines) -> Outcome {
    let check = |program: &str| {
        let outcome = std::panic::catch_unwind(|| check(program, engines));
        outcome.unwrap_or_else(|_| Outcome::Fault("the compiler panicked".into()))
    };
    match check(program) {
        Outcome::Diverges(_) if unsplit(program) != program => check(&unsplit(program)),
        outcome => outcome,
    }
}

/// This processor and older ones.
pub fn all_cpus() -> Vec<&'static str> {
    std::iter::once(THIS_CPU).chain(older_cpus(Tier::All)).collect()
}

/// Lists of one processor.
pub fn one_each(cpus: Vec<&'static str>) -> Vec<Vec<&'static str>> {
    cpus.into_iter().map(|cpu| vec![cpu]).collect()
}

/// The processors of the gate, which do not depend on the machine.
pub fn gate_cpus() -> Vec<&'static str> {
    std::iter::once(gate_cpu().unwrap_or(THIS_CPU)).chain(older_cpus(Tier::Gate)).collect()
}

/// The program without the entries with known inputs.
fn unsplit(program: &str) -> String {
    program.lines().filter(|l| !l.contains(" split_")).map(|l| format!("{l}\n")).collect()
}

/// The engines that run a program, beside the interpreter before and after partial evaluation.
struct Engines {
    native: bool,
    /// Whether it also runs without partial evaluation.
    plain: bool,
    /// Whether it also runs as C text.
    c: bool,
    /// Limit on the steps of the source for each list of inputs.
    max_steps: u64,
    /// The processors that optimized native code is made for, which takes most of the time.
    cpus: Vec<&'static str>,
    /// Whether the size of the residual program is limited.
    has_limits: bool,
}

enum Outcome {
    Agrees(Size),
    /// The results agree, but not everything has native code.
    Limited,
    TooLong,
    /// Partial evaluation spends its budget, with this report.
    Diverges(String),
    Fault(String),
}

/// The size of the residual program in continuations.
#[derive(Clone, Copy, Default)]
struct Size {
    for_each_of_source: f64,
    /// The ratio to the continuations asked for, for large programs.
    for_each_asked: Option<f64>,
}

fn check(program: &str, engines: &Engines) -> Outcome {
    let cpu = engines.cpus.first().map(|cpu| cpu.to_string());
    let options = Options { verify: true, cpu, ..Options::default() };
    let mut graph = match FrontEnd::new(options, Files::of("random.impala", program)).graph() {
        Ok(graph) => graph,
        Err(failed) => return Outcome::Fault(errors(&failed)),
    };
    let expected = match interpret(&graph.world, engines.max_steps, false) {
        Ok(Some(results)) => results,
        Ok(None) => return Outcome::TooLong,
        Err(e) => return Outcome::Fault(format!("the source: {e}")),
    };
    let (mut diverges, mut limited, mut size) = (None, false, Size::default());
    for annotations in [false, true] {
        if !annotations && !engines.plain {
            continue;
        }
        let what = if annotations { "specialized" } else { "not specialized" };
        graph.options.partial_evaluation = annotations;
        let mut residual = match specialize(&mut graph) {
            Ok(residual) => residual,
            Err(failed) if is_divergence(&failed) => {
                diverges = Some(failed.render(false));
                continue;
            }
            Err(failed) => return Outcome::Fault(format!("{what}: {}", errors(&failed))),
        };
        size = sizes(&graph, &residual.world);
        if engines.has_limits && size.for_each_asked.is_some_and(|n| n > MAX_FOR_EACH_ASKED) {
            return Outcome::Fault(format!(
                "{what}: too large: {:.1} continuations for each asked for",
                size.for_each_asked.unwrap_or_default()
            ));
        }
        let fault = match interpret(&residual.world, RESIDUAL_STEPS * engines.max_steps, true) {
            Ok(Some(results)) if results == expected => None,
            Ok(Some(results)) => Some(format!("{results:?}, not {expected:?}")),
            Ok(None) => Some("takes too long".into()),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            return Outcome::Fault(format!("{what}, interpreted: {fault}"));
        }
        let optimized = engines.cpus.iter().map(|&cpu| (3, cpu));
        let runs = [(0, engines.cpus[0])].into_iter().chain(optimized).filter(|_| engines.native);
        for (opt_level, cpu) in runs {
            residual.options.opt_level = opt_level;
            residual.options.cpu = Some(cpu.into());
            let what = format!("{what}, --cpu {cpu}");
            let result = run_native(&residual);
            residual.options.cpu = Some(engines.cpus[0].into());
            match result {
                Ok(result) if [result] == *expected => {}
                Ok(result) => return Outcome::Fault(format!("{what}, -O{opt_level}: {result}, not {expected:?}")),
                Err(failed) if has_limitation(&failed) => {
                    limited = true;
                    break;
                }
                Err(failed) => return Outcome::Fault(format!("{what}, -O{opt_level}: {}", errors(&failed))),
            }
        }
        if engines.native {
            (residual.options.opt_level, residual.options.checks) = (3, nyala_checks::Checks::ALL);
            let result = run_native(&residual);
            residual.options.checks = nyala_checks::Checks::default();
            match result {
                Ok(result) if [result] == *expected => {}
                Ok(result) => return Outcome::Fault(format!("{what}, checked: {result}, not {expected:?}")),
                Err(failed) if has_limitation(&failed) => {}
                Err(failed) => return Outcome::Fault(format!("{what}, checked: {}", errors(&failed))),
            }
        }
        if engines.native && engines.c && crate::texts::is_there(by_c()) {
            residual.options.opt_level = if annotations { 3 } else { 0 };
            match run_by_c(&residual) {
                Ok(result) if [result] == *expected => {}
                Ok(result) => return Outcome::Fault(format!("{what}, as C text: {result}, not {expected:?}")),
                Err(failed) if crate::texts::is_limitation(&failed) => limited = true,
                Err(failed) => return Outcome::Fault(format!("{what}, as C text: {}", errors(&failed))),
            }
        }
    }
    match (diverges, limited) {
        (Some(e), _) => Outcome::Diverges(e),
        (_, true) => Outcome::Limited,
        _ => Outcome::Agrees(size),
    }
}

/// The errors of a report, without its warnings, which would hide them in a log.
fn errors(report: &Report) -> String {
    let errors = report.sink.diagnostics.iter().filter(|d| d.severity == nyala_base::Severity::Error);
    errors.map(|d| d.render(&report.sources, false)).collect()
}

fn has_limitation(report: &Report) -> bool {
    report.sink.diagnostics.iter().any(|d| d.code == "limitation")
}

/// Whether the program only spends the budget of partial evaluation.
fn is_divergence(report: &Report) -> bool {
    let is_error = |d: &&nyala_base::Diagnostic| d.severity == nyala_base::Severity::Error;
    report.sink.diagnostics.iter().filter(is_error).all(|d| d.code == "specialization-diverges")
}

/// The engine that a C compiler belongs to.
fn by_c() -> &'static nyala::testing::Engine {
    let mut engines = nyala::testing::ENGINES.iter();
    engines.find(|e| e.back_end.name == "c").expect("the engine of the C back end")
}

/// The result of a residual program as C text.
fn run_by_c(residual: &Residual) -> Result<u32, Failed> {
    residual.flat_for(by_c().back_end)?.load_by_c(&[])?.call_i32("all").map(|r| r as u32)
}

/// The residual program, or the report of one that spends all budgets or has other errors. The graph has the budget that was tried
/// last.
fn specialize(graph: &mut Graph) -> Result<Residual, Failed> {
    let mut tried = Err(Box::default());
    for budget in BUDGETS {
        graph.options.pe_budget = budget;
        tried = graph.residual();
        if !tried.as_ref().is_err_and(|failed| is_divergence(failed)) {
            break;
        }
    }
    tried
}

fn sizes(graph: &Graph, residual: &World) -> Size {
    let world = &*graph.world;
    let (source, _) = Nest::of_program(world, &world.roots());
    // All continuations of the residual program are reachable.
    let n = residual.n_conts() as f64;
    let for_each_of_source = n / source.conts.len().max(1) as f64;
    // The record is made with the budget that was tried last.
    let recorded = (for_each_of_source > LARGE).then(|| graph.specialize(true).ok()).flatten();
    let record = recorded.as_ref().and_then(Residual::record);
    let for_each_asked = record.map(|record| n / (source.conts.len() as u64 + asked(world, record)) as f64);
    Size { for_each_of_source, for_each_asked }
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
        // Each unit that makes the only call of a function has a copy; a block stays the one it is.
        (Some(k), _, Why::OnlyCall | Why::HaltedOnlyCall) => is_function(world, k) as u64 * size[k] * row.calls,
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

/// Whether the report of an endless partial evaluation shows a known number that changes.
fn counts(report: &str) -> bool {
    let shown = report.lines().filter_map(|l| l.split_once("over the last calls, ")?.1.split_once("` was "));
    shown.into_iter().any(|(_, values)| {
        let is_number = |v: &&str| v.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let different: HashSet<&str> = values.split(", ").filter(is_number).collect();
        different.len() > 1
    })
}

/// The results of the program for all inputs: of `all`, which also calls the entries with known inputs, or else of
/// `entry` for each list. `None` if it takes too long.
fn interpret(world: &World, max_steps: u64, residual: bool) -> Result<Option<Vec<u32>>, String> {
    let (entry, n_runs, inputs) = match (world.find_root("all"), world.find_root("entry")) {
        // `all` is called once, because the interpreter compiles the whole program first.
        (Some(all), _) => (all, INPUTS.len() as u64, &INPUTS[..1]),
        (None, Some(entry)) => (entry, 1, INPUTS),
        (None, None) => return Err("no `entry`".into()),
    };
    let options = nyala_interp::Options { max_steps: Some(n_runs * max_steps), residual, ..Default::default() };
    // The parameters without memory and the return continuation.
    let n_params = world.params(entry).len().saturating_sub(2);
    let mut all = Vec::new();
    for inputs in inputs {
        let inputs: Vec<u64> = inputs.iter().take(n_params).map(|&x| x.into()).collect();
        match nyala_interp::run(world, entry, &inputs, &options) {
            Ok(results) => all.extend(results.iter().map(|&r| r as u32)),
            Err(fault) if fault.code() == "budget-spent" => return Ok(None),
            Err(fault) => return Err(fault.diagnostic().message),
        }
    }
    Ok(Some(all))
}

/// The result of native code for all inputs.
fn run_native(residual: &Residual) -> Result<u32, Failed> {
    Ok(residual.flat()?.load(&[])?.call_i32("all")? as u32)
}

// Random numbers.

pub struct Rng(u64);

/// Integer types with their ends.
const ENDS: &[(&str, i128, i128)] = &[
    ("i8", i8::MIN as i128, i8::MAX as i128),
    ("i16", i16::MIN as i128, i16::MAX as i128),
    ("i32", i32::MIN as i128, i32::MAX as i128),
    ("i64", i64::MIN as i128, i64::MAX as i128),
    ("u8", 0, u8::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("u64", 0, u64::MAX as i128),
];

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each call of `f` passes another function, and is the only call of its copy. There are 1 + 3 + 9 + 27 copies.
    #[test]
    fn copies_with_one_call_are_asked_for() {
        let program = "
            fn f(n: u32, h: fn(u32) -> u32) -> u32 {
                let mut i = n % 3u32;
                while i > 0u32 { i -= if h(i) > 9u32 { 1u32 } else { i } }
                if n > h(1u32) { n } else { h(n) }
            }
            extern fn entry(x: u32, y: u32, z: u32, w: u32) -> u32 {
                f(x, |a| f(y ^ a, |b| f(z ^ b, |c| f(c ^ y, |d| d ^ w))))
            }";
        let engines = Engines {
            native: false,
            plain: false,
            c: false,
            max_steps: MAX_STEPS,
            cpus: vec![THIS_CPU],
            has_limits: true,
        };
        let size = match check(program, &engines) {
            Outcome::Agrees(size) => size,
            Outcome::Fault(e) | Outcome::Diverges(e) => panic!("{e}"),
            Outcome::Limited | Outcome::TooLong => panic!("not checked"),
        };
        assert!(size.for_each_of_source > LARGE, "{}", size.for_each_of_source);
        assert!(size.for_each_asked.is_some_and(|n| n < 1.0), "{:?}", size.for_each_asked);
    }
}
