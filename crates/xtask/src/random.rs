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

mod batch;
mod check;
pub mod faults;
mod maker;
mod vectorized;

use crate::bad_input::reduce::reduce;
use crate::bad_input::{child, examine_or_exit, watched};
use crate::texts::{Tier, gate_cpu, older_cpus};
use crate::{Tally, root};
use batch::{Checked, Made};
use check::{Engines, Left, Outcome, Program, Size, Times, check};
use std::collections::{BTreeMap, HashSet};
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
/// Checked code, which is several times as large as other code, is made for one in this many programs of several bodies.
const CHECKED_EVERY: u64 = 8;
/// C text is optimized for one in this many.
const OPTIMIZED_EVERY: u64 = 8;
/// The number of bodies that are compiled together.
const TOGETHER: u64 = 32;
/// One in this many programs is a `vectorize`. These run as native code, for which they are made, and may take longer,
/// because they fill arrays first.
const LANES_EVERY: u64 = 16;
const MAX_STEPS_OF_LANES: u64 = 4 * MAX_STEPS;
/// Limit on the programs of a run that spend the budget without a reason in the report.
const MAX_UNEXPLAINED: u64 = 1;
/// Programs with more continuations for each asked for are kept with `--keep`.
const NOTABLE: f64 = 1.0;
/// The outcome of a source that takes too many steps.
const TOO_LONG: &str = "the source takes too long";
/// The outcome of a source in which lanes meet.
const MEETS: &str = "lanes of the source meet in memory";
/// The time limit for one program while a failing one is reduced.
const MAX_TIME_OF_CHILD: Duration = Duration::from_secs(60);
/// A run says each time when so many more agree.
const TOLD_EVERY: usize = 1000;
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
    let found: Mutex<(Tally, [u64; 5])> = Mutex::default();
    let sizes: Mutex<Vec<(Size, u64)>> = Mutex::default();
    let times = Times::default();
    let work = || {
        loop {
            let i = next.fetch_add(TOGETHER, Ordering::Relaxed);
            let failed = found.lock().unwrap_or_else(|e| e.into_inner()).0.failed;
            let end = plan.before.saturating_add(plan.max_programs);
            if i >= end || start.elapsed() > plan.time || failed >= MAX_FAILED {
                return;
            }
            let seeds = (i..end.min(i + TOGETHER)).map(|i| first.wrapping_add(i));
            let made = seeds.map(|seed| {
                let has_lanes = match which {
                    Which::All => seed.is_multiple_of(LANES_EVERY),
                    Which::Lanes => true,
                    Which::Interpreted => false,
                };
                Made::new(seed, has_lanes)
            });
            let (with_lanes, without): (Vec<Made>, Vec<Made>) = made.partition(|made| made.has_lanes);
            for (has_lanes, made) in [(true, with_lanes), (false, without)] {
                if made.is_empty() {
                    continue;
                }
                // A body that is repeated runs under all engines.
                let is_one = plan.max_programs == 1;
                let turn = first.wrapping_add(i) / TOGETHER;
                let engines = Engines {
                    native: which != Which::Interpreted,
                    plain: which != Which::Interpreted,
                    plain_turn: (!is_one).then_some(turn),
                    c: true,
                    max_steps: if has_lanes { MAX_STEPS_OF_LANES } else { MAX_STEPS },
                    cpus: plan.cpus[turn as usize % plan.cpus.len()].clone(),
                    checked: is_one || turn % CHECKED_EVERY == CHECKED_EVERY / 2,
                    other_level: if turn.is_multiple_of(OPTIMIZED_EVERY) { 1 } else { 0 },
                    has_limits: plan.has_limits,
                };
                let _running = engines.native.then(|| Running::note(&made));
                let checked = batch::check_together(&made, &engines, &times);
                for (made, checked) in made.iter().zip(checked) {
                    tell(plan, made.seed, &checked, say);
                    let (tally, [too_long, meets, diverged, limited, unexplained]) =
                        &mut *found.lock().unwrap_or_else(|e| e.into_inner());
                    match &checked.outcome {
                        Outcome::Agrees(size) => {
                            sizes.lock().unwrap_or_else(|e| e.into_inner()).push((*size, made.seed));
                        }
                        Outcome::Left(Left::TooLong) => *too_long += 1,
                        Outcome::Left(Left::Meets) => *meets += 1,
                        Outcome::Limited => *limited += 1,
                        Outcome::Diverges(e) => {
                            *diverged += 1;
                            *unexplained += !counts(e) as u64;
                        }
                        Outcome::Fault(_) => tally.failed += 1,
                    }
                    let agrees = !matches!(checked.outcome, Outcome::Fault(_) | Outcome::Left(_));
                    tally.passed += agrees as usize;
                    if agrees && tally.passed.is_multiple_of(TOLD_EVERY) {
                        say(format!("{} random programs agree after {} s", tally.passed, start.elapsed().as_secs()));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            // The compiler may recurse deeply.
            drop(std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, work));
        }
    });
    let (mut tally, [too_long, meets, diverged, limited, unexplained]) =
        found.into_inner().unwrap_or_else(|e| e.into_inner());
    if plan.has_limits && unexplained > MAX_UNEXPLAINED {
        say(format!("FAILED {unexplained} random programs spend the budget, though no known number is seen to count"));
        tally.failed += 1;
    }
    say(format!(
        "{} random programs agree, {} disagree; {too_long} left out as too long, {meets} as their lanes meet, {diverged} spent the budget of partial \
         evaluation (all inputs unknown), {limited} are a limitation of native code",
        tally.passed, tally.failed
    ));
    let sizes = sizes.into_inner().unwrap_or_else(|e| e.into_inner());
    show_sizes("source", sizes.iter().map(|(size, seed)| (size.for_each_of_source, *seed)).collect(), say);
    // The sizes of large programs.
    show_sizes("asked for", sizes.iter().filter_map(|(size, seed)| Some((size.for_each_asked?, *seed))).collect(), say);
    show_times(&times, say);
    // The programs of a run count as one test, because their number depends on the machine.
    Tally { passed: (tally.failed == 0) as usize, failed: (tally.failed > 0) as usize, skipped: 0 }
}

/// Says what a body does not do as it should, and keeps programs.
fn tell(plan: &Plan, seed: u64, checked: &batch::Checked, say: &(dyn Fn(String) + Sync)) {
    let Checked { outcome, program } = checked;
    let kept = match outcome {
        Outcome::Fault(e) => {
            // Reducing it takes a while.
            say(format!("FAILED random program, seed {seed}: {e}"));
            let smaller = smaller(program.clone());
            say(format!("seed {seed}, made smaller:\n{smaller}"));
            if !plan.has_limits {
                say(keep_found(seed, &smaller));
            }
            return;
        }
        Outcome::Diverges(e) => {
            if !counts(e) {
                say(format!("seed {seed} spends the budget, though no known number is seen to count"));
            }
            (seed.to_string(), e.clone(), unsplit(program))
        }
        Outcome::Agrees(Size { for_each_asked: Some(n), .. }) if *n > NOTABLE => {
            (format!("large_{seed}"), format!("{n:.1} continuations for each asked for"), program.clone())
        }
        _ => return,
    };
    if let ((name, why, text), Some(folder)) = (kept, plan.keep) {
        let comment: String = why.lines().map(|l| format!("// {l}\n")).collect();
        let path = folder.join(name + ".impala");
        if let Err(e) = std::fs::write(&path, comment + &text) {
            say(format!("cannot write {}: {e}", path.display()));
        }
    }
}

/// Says where the time went: engines, with the passes that took most.
fn show_times(times: &Times, say: &(dyn Fn(String) + Sync)) {
    let times = times.lock().unwrap_or_else(|e| e.into_inner());
    let mut engines: BTreeMap<&str, Vec<(f64, &str)>> = BTreeMap::new();
    for ((engine, pass), time) in times.iter() {
        engines.entry(engine).or_default().push((time.as_secs_f64(), pass));
    }
    for (engine, passes) in &mut engines {
        passes.sort_by(|a, b| b.0.total_cmp(&a.0));
        let all: f64 = passes.iter().map(|p| p.0).sum();
        let most: Vec<String> = passes.iter().take(5).map(|(time, pass)| format!("{pass} {time:.1}")).collect();
        say(format!("{engine}: {all:.1} s: {}", most.join(", ")));
    }
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

/// A file with the seeds of bodies that run as native code. It remains if one ends this process.
struct Running(PathBuf);

impl Running {
    fn note(bodies: &[Made]) -> Running {
        let folder = root().join("out/running");
        let seeds: Vec<String> = bodies.iter().map(|made| made.seed.to_string()).collect();
        let path = folder.join(format!("{}.seeds", seeds.first().map_or("", |seed| seed)));
        // The program can be checked without the file too.
        let _ = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, seeds.join("\n")));
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
        plain_turn: None,
        c: true,
        max_steps: MAX_STEPS_OF_LANES,
        cpus: gate_cpus(),
        checked: true,
        other_level: 3,
        has_limits: true,
    };
    match check_all(&program, &engines, &Times::default()) {
        Outcome::Agrees(_) | Outcome::Limited | Outcome::Diverges(_) => None,
        Outcome::Left(Left::TooLong) => Some(TOO_LONG.into()),
        // What failed once may be found to be wrong itself.
        Outcome::Left(Left::Meets) => Some(MEETS.into()),
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
        plain_turn: None,
        c: true,
        max_steps: MAX_STEPS_OF_LANES,
        cpus: [all_cpus(), gate_cpus()].concat(),
        checked: true,
        other_level: 3,
        has_limits: false,
    };
    watched(MAX_TIME_OF_CHILD, move |started| {
        started();
        examine_or_exit(|| {
            let text = match check_all(&program, &engines, &Times::default()) {
                Outcome::Agrees(_) => "agrees".into(),
                Outcome::Limited => "agrees, but is a limitation of native code".into(),
                Outcome::Left(Left::TooLong) => return Err(TOO_LONG.into()),
                Outcome::Left(Left::Meets) => return Err(MEETS.into()),
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
    if failed.starts_with("error[") || failed == TOO_LONG || failed == MEETS {
        // The program was rejected, so its maker is at fault. A rejected program cannot be reduced.
        return program;
    }
    reduce(program, |p| fault_in_child(p).is_some_and(|fault| kind(&fault) == failed))
}

/// Checks a program of one body, of which a panic is a fault. If known inputs make partial evaluation too long, it is checked
/// without them.
fn check_all(program: &str, engines: &Engines, times: &Times) -> Outcome {
    let check = |program: &str| {
        let checked = std::panic::catch_unwind(|| check(&Program::of_one_body(program), engines, times));
        match checked {
            Ok(Ok(sizes)) => match sizes.first() {
                Some(Ok(size)) => Outcome::Agrees(*size),
                Some(Err(left)) => Outcome::Left(*left),
                None => Outcome::Fault("nothing was checked".into()),
            },
            Ok(Err(blame)) => blame.outcome,
            Err(_) => Outcome::Fault("the compiler panicked".into()),
        }
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

/// Whether the report of an endless partial evaluation shows a known number that changes.
fn counts(report: &str) -> bool {
    let shown = report.lines().filter_map(|l| l.split_once("over the last calls, ")?.1.split_once("` was "));
    shown.into_iter().any(|(_, values)| {
        let is_number = |v: &&str| v.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let different: HashSet<&str> = values.split(", ").filter(is_number).collect();
        different.len() > 1
    })
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

    fn interpreted() -> Engines {
        Engines {
            native: false,
            plain: false,
            plain_turn: None,
            c: false,
            max_steps: MAX_STEPS,
            cpus: vec![THIS_CPU],
            checked: false,
            other_level: 0,
            has_limits: true,
        }
    }

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
        let size = match check_all(program, &interpreted(), &Times::default()) {
            Outcome::Agrees(size) => size,
            Outcome::Fault(e) | Outcome::Diverges(e) => panic!("{e}"),
            Outcome::Limited | Outcome::Left(_) => panic!("not checked"),
        };
        assert!(size.for_each_of_source > check::LARGE, "{}", size.for_each_of_source);
        assert!(size.for_each_asked.is_some_and(|n| n < 1.0), "{:?}", size.for_each_asked);
    }

    /// What is wrong with one body is said of it alone.
    #[test]
    fn bodies_are_judged_one_by_one() {
        let entry = |body: &str| {
            format!(
                "extern fn entry(x: u32, y: u32, z: u32, w: u32) -> u32 {{ {body} }}
                extern fn all() -> u32 {{ entry($1u32, $2u32, $3u32, $4u32) }}\n"
            )
        };
        let bodies = [
            entry("triple(x) ^ y"),
            format!(
                "fn @count(n: u32) -> u32 {{ if g0 == n {{ n }} else {{ count(n + 1u32) }} }}\n{}",
                entry("count(x & 0u32)")
            ),
            entry("let mut i = x; while i > 0u32 { i |= y } i"),
            entry("table((w & 7u32) as i32 + 4)"),
            entry("x * y + z"),
        ];
        let made: Vec<Made> = (0..).zip(&bodies).map(|(seed, text)| Made::of_text(seed, text)).collect();
        let checked = batch::check_together(&made, &interpreted(), &Times::default());
        let said: Vec<&str> = checked
            .iter()
            .map(|c| match &c.outcome {
                Outcome::Agrees(_) => "agrees",
                Outcome::Left(Left::TooLong) => "too long",
                Outcome::Left(Left::Meets) => "meets",
                Outcome::Diverges(_) => "diverges",
                Outcome::Limited => "limited",
                Outcome::Fault(e) if e.starts_with("the source: ") => "wrong",
                Outcome::Fault(e) => panic!("{e}"),
            })
            .collect();
        assert_eq!(said, ["agrees", "diverges", "too long", "wrong", "agrees"]);
    }
}
