//! Bad input: random bytes and changed programs must compile, or give errors with places in the input, within a time
//! limit.
//!
//! Another process reads the inputs, and notes the seed of each. When it dies or takes too long, this process makes the
//! input again, reduces it as long as it fails in the same way, and writes it to `target/bad_input/`.

mod mutate;
pub mod reduce;

use crate::queue::{own_seconds, this_program};
use crate::{Tally, root};
use mutate::Corpus;
use nyala_driver::{Files, FrontEnd, Options};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The limit on the processor time for one input.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// What hangs without taking processor time ends after that time by the clock.
const WALL_LIMIT: Duration = Duration::from_secs(600);
const MEMORY_LIMIT: u64 = 4 << 30;
const MAX_FAULTS: usize = 5;
/// The stack in bytes with which the `nyala` command works.
const STACK: usize = 256 << 20;

/// What inputs are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// All programs in Impala.
    Impala,
    /// The programs in `fuzz/` only, so that a seed stands for the same input whatever else changes.
    Own,
    /// Programs in DeepCPS, Staged-C and Sierra.
    Other,
}

impl From {
    fn flag(self) -> Option<&'static str> {
        match self {
            From::Impala => None,
            From::Own => Some("--own"),
            From::Other => Some("--other"),
        }
    }
}

/// Makes and reads `max_inputs` inputs, or fewer if the time is over. Says every input that fails.
pub fn run(first: u64, time: Duration, max_inputs: u64, from: From, say: &dyn Fn(String)) -> Tally {
    let folder = root().join("target/bad_input");
    let mut tally = Tally::default();
    match watch(first, (time, max_inputs), from, &folder, &mut tally, say) {
        Ok(n) => say(format!("{n} bad inputs read, {} of them with faults", tally.failed)),
        Err(e) => {
            tally.failed += 1;
            say(format!("FAILED bad input: {e}"));
        }
    }
    // The inputs of a run count as one test, because their number may depend on the machine.
    Tally { passed: (tally.failed == 0) as usize, failed: (tally.failed > 0) as usize, skipped: 0 }
}

/// Runs processes that read inputs. Returns the number of inputs that were read.
fn watch(
    first: u64,
    (time, max): (Duration, u64),
    from: From,
    folder: &Path,
    tally: &mut Tally,
    say: &dyn Fn(String),
) -> Result<u64, String> {
    let io = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(folder).map_err(io)?;
    let corpus = Corpus::new(from);
    let start = Instant::now();
    let mut seed = first;
    loop {
        let seconds = time.saturating_sub(start.elapsed()).as_secs();
        let note = folder.join(format!("seed-{first}-{}", std::process::id()));
        let (seconds, left) = (seconds.to_string(), (first.saturating_add(max).saturating_sub(seed)).to_string());
        let args = ["--front", "--seed", &seed.to_string(), "--seconds", &seconds, "--programs", &left, "--note"];
        let Some(fault) = child(|c| c.args(args).arg(&note).args(from.flag()))? else {
            seed = read_note(&note).unwrap_or(seed) + 1;
            std::fs::remove_file(&note).map_err(io)?;
            return Ok(seed - first);
        };
        seed = read_note(&note).ok_or("the process that reads bad input does not start")?;
        tally.failed += 1;
        say(format!("FAILED bad input, seed {seed}: {fault}"));
        let (ending, input) = mutate::input(seed, &corpus);
        let path = folder.join(format!("{seed}.{ending}"));
        say(reduce_to(&path, input, &fault).map_err(io)?);
        seed += 1;
        if tally.failed >= MAX_FAULTS || seed >= first.saturating_add(max) || start.elapsed() >= time {
            let _ = std::fs::remove_file(&note);
            return Ok(seed - first);
        }
    }
}

/// Writes the smallest part of an input that still has the fault; says where, and shows it if it is short.
fn reduce_to(path: &Path, input: String, fault: &str) -> std::io::Result<String> {
    let kind = kind(fault);
    let fails = |text: &str| {
        let written = std::fs::write(path, text);
        written.is_ok() && run_once(path).is_some_and(|f| self::kind(&f) == kind)
    };
    let reduced = if fails(&input) { reduce::reduce(input, fails) } else { input };
    std::fs::write(path, &reduced)?;
    let shown = if reduced.len() < 2000 { &*reduced } else { "" };
    Ok(format!("{}: {} bytes\n{shown}", path.display(), reduced.len()))
}

/// The first line of a fault, which has its place in the compiler, without names of the program.
fn kind(fault: &str) -> String {
    let line = fault.lines().next().unwrap_or_default();
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    if fault.starts_with("reports a bug") {
        outside.concat().replace(|c: char| c.is_ascii_digit(), "")
    } else {
        line.into()
    }
}

fn read_note(note: &Path) -> Option<u64> {
    std::fs::read_to_string(note).ok()?.trim().parse().ok()
}

/// The fault of a file, if it has one.
fn run_once(path: &Path) -> Option<String> {
    child(|c| c.args(["--front", "--file"]).arg(path)).unwrap_or_else(Some)
}

/// Runs this command in another process, to read inputs. Returns the fault that it ends with.
pub fn child(args: impl FnOnce(&mut Command) -> &mut Command) -> Result<Option<String>, String> {
    let mut command = Command::new(this_program()?);
    command.args(["fuzz", "--child"]).current_dir(root()).stdin(Stdio::null()).stderr(Stdio::null());
    let output = args(&mut command).output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(match output.status.code() {
        Some(0) => None,
        Some(FAULT) => Some(text),
        _ => Some(format!("the process ends with {}", output.status)),
    })
}

/// The exit code of a process that has printed a fault.
const FAULT: i32 = 10;

/// Reads inputs with seeds from `seed` on. Called in the other process.
pub fn read_inputs(seed: u64, time: Duration, max_inputs: u64, from: From, note: &Path) -> Result<bool, String> {
    let corpus = Corpus::new(from);
    let start = Instant::now();
    let mut note = std::fs::File::create(note).map_err(|e| format!("cannot write {}: {e}", note.display()))?;
    watched(TIME_LIMIT, move |started| {
        for seed in seed..=seed.saturating_add(max_inputs.saturating_sub(1)) {
            let _ = note.rewind().and_then(|()| write!(note, "{seed:020}"));
            let (ending, input) = mutate::input(seed, &corpus);
            started();
            examine_or_exit(|| examine(ending, &input));
            if start.elapsed() >= time {
                break;
            }
        }
    })
}

/// Reads one file. Called in another process.
pub fn read_file(path: &Path) -> Result<bool, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("impala").to_string();
    watched(TIME_LIMIT, move |started| {
        started();
        examine_or_exit(|| examine(&ending, &text));
    })
}

/// Checks one file, and prints its fault and a reduced input.
pub fn run_file(path: &Path) -> Result<bool, String> {
    let io = |e: std::io::Error| format!("{}: {e}", path.display());
    let path = path.canonicalize().map_err(io)?;
    let Some(fault) = run_once(&path) else {
        println!("no fault");
        return Ok(true);
    };
    println!("{fault}");
    let folder = root().join("target/bad_input");
    std::fs::create_dir_all(&folder).map_err(io)?;
    let input = String::from_utf8_lossy(&std::fs::read(&path).map_err(io)?).into_owned();
    println!(
        "{}",
        reduce_to(&folder.join("file").with_extension(path.extension().unwrap_or_default()), input, &fault)
            .map_err(io)?
    );
    Ok(false)
}

fn fail(fault: &str) -> ! {
    println!("{fault}");
    std::process::exit(FAULT)
}

/// Prints a fault or panic for the process that waits for this one, and exits.
pub fn examine_or_exit(examine: impl FnOnce() -> Result<(), String> + std::panic::UnwindSafe) {
    match crate::queue::caught(examine) {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => fail(&fault),
        Err(panic) => fail(&format!("panic at {panic}")),
    }
}

/// Runs `f` while another thread watches the processor time and the memory. `f` calls its argument when it begins with an
/// input.
pub fn watched(limit: Duration, f: impl FnOnce(&dyn Fn()) + Send + 'static) -> Result<bool, String> {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let started = || {
        STARTED.fetch_add(1, Ordering::Relaxed);
    };
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || f(&started)).map_err(|e| e.to_string())?;
    let (mut input, mut began, mut start) = (0, 0.0, Instant::now());
    while !worker.is_finished() {
        std::thread::sleep(Duration::from_millis(5));
        let now = STARTED.load(Ordering::Relaxed);
        if now != input {
            (input, began, start) = (now, own_seconds(), Instant::now());
        }
        if start.elapsed() < Duration::from_millis(100) {
            continue;
        }
        if own_seconds() - began > limit.as_secs_f64() {
            fail(&format!("takes more than {} s", limit.as_secs()));
        }
        if start.elapsed() > WALL_LIMIT {
            fail(&format!("hangs: no end after {} min", WALL_LIMIT.as_secs() / 60));
        }
        if memory().is_some_and(|m| m > MEMORY_LIMIT) {
            fail(&format!("takes more than {} GiB of memory", MEMORY_LIMIT >> 30));
        }
    }
    worker.join().map(|()| true).map_err(|_| "the worker panics".into())
}

/// The memory of this process in bytes, if the system tells it.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

/// Reads an input with the parser, the checker and the lowering. Returns what they do wrong.
fn examine(ending: &str, text: &str) -> Result<(), String> {
    let name = format!("bad_input.{ending}");
    // Staging of a program that does not end takes a time that is in proportion to its budget.
    let pe_budget = if nyala_driver::is_staged(&name) { 0.02 } else { 1.0 };
    let front = FrontEnd::new(Options { verify: true, pe_budget, ..Options::default() }, Files::of(&name, text));
    for tree in front.trees().all() {
        nyala_syntax::print(tree);
    }
    let has_syntax_errors = front.trees().report.sink.has_errors();
    let (has_graph, report) = match front.graph() {
        Ok(graph) => (true, graph.report),
        Err(failed) => (false, *failed),
    };
    if has_graph == report.sink.has_errors() {
        return Err(format!("has errors: {}, but a graph: {has_graph}", report.sink.has_errors()));
    }
    if has_syntax_errors && has_graph {
        return Err("errors of syntax are lost".into());
    }
    for d in &report.sink.diagnostics {
        let shown = || format!("{}: {}", d.code, d.message);
        if d.code == "bug" {
            return Err(format!("reports a bug: {}", shown()));
        }
        for label in std::iter::once(&d.primary).chain(&d.others) {
            let text = report.sources.text(label.span.file);
            if !label.span.is_none() && text.get(label.span.lo as usize..label.span.hi as usize).is_none() {
                return Err(format!("`{}` has a place that is none\n{} {:?}", d.code, shown(), label.span));
            }
        }
        // An error in a library is not the fault of the program that uses it.
        if d.primary.span.is_none() || report.sources.name(d.primary.span.file) != name {
            let place = report.sources.place(d.primary.span);
            return Err(format!("`{}` is about a place the user did not write\n{}: {place}", d.code, shown()));
        }
    }
    report.render(false);
    Ok(())
}

/// The programs that inputs are made from, in folders and of that ending.
fn programs(folders: &[&str], ending: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, ending, out);
            } else if path.extension().is_some_and(|e| e == ending) {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    for folder in folders {
        collect(&root().join(folder), ending, &mut out);
    }
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_of_the_grammar_is_read() {
        let text = include_str!("../../../fuzz/syntax.impala");
        let trees =
            nyala_driver::Trees::new(nyala_driver::Options::default(), nyala_driver::Files::of("syntax.impala", text));
        assert!(!trees.report.sink.has_errors(), "{}", trees.report.render(false));
    }

    #[test]
    fn pieces_are_the_text() {
        let text = "fn f(a: &[i32]) -> () { \"x y\" <<= 'ä' // z\n }\n\"open";
        let pieces = super::mutate::pieces(text);
        assert_eq!(pieces.concat(), text);
        for piece in ["fn", " ", "->", "\"x y\"", "// z", "\"open"] {
            assert!(pieces.iter().any(|p| p == piece), "{piece} in {pieces:?}");
        }
    }

    #[test]
    fn reduces_to_what_fails() {
        let text = (0..50).map(|i| format!("let x{i} = {i} + 1;\n")).collect::<String>();
        let reduced = super::reduce::reduce(text, |t| t.contains("x17") && t.contains("x33"));
        assert_eq!(reduced.split_whitespace().collect::<Vec<_>>(), ["x17", "x33"]);
    }
}
