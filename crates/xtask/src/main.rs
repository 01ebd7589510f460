//! All automation, the text-test runner included.
#![forbid(unsafe_code)]

mod alignments;
mod all;
mod bad_input;
mod bench;
mod book;
mod budgets;
mod child;
mod closures;
mod costs;
mod demo;
mod devices;
mod dist;
mod evaluate;
mod foreign;
mod memory;
mod pages;
mod plots;
mod queue;
mod random;
mod random_patterns;
mod rays;
mod replay;
mod results;
mod sanitized;
mod sass;
mod setup;
mod snippets;
mod texts;
mod tidy;
mod work;

/// A quarter of the time of compilation is the allocation of small objects.
#[global_allocator]
static ALLOCATOR: nyala_runtime::Remapping<mimalloc::MiMalloc> = nyala_runtime::Remapping(mimalloc::MiMalloc);

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Nyala's own automation.
#[derive(Parser)]
#[command(name = "x", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Blur a photograph with a specialized program, and show how
    Demo,
    /// Run the tests that guard a change; with FILTER, all text tests whose path contains it
    Test {
        /// Run only what takes a minute or two
        #[arg(long)]
        quick: bool,
        /// Run only the conformance list of devices: on the interpreter and the host, and as texts for all platforms
        #[arg(long, conflicts_with_all = ["quick", "filter"])]
        devices: bool,
        /// Run everything there is, or a part (`--all list` names them); with another FILTER, all of those text tests. It goes on
        /// where it was interrupted
        #[arg(long, conflicts_with_all = ["quick", "devices"])]
        all: bool,
        /// With `--all`: begin from the start
        #[arg(long, requires = "all")]
        anew: bool,
        /// Run only text tests whose path contains this
        filter: Option<String>,
    },
    /// Install what tests of devices and other processors need
    Setup,
    /// Run orders of a queue of tests
    #[command(hide = true)]
    Work {
        /// The queue's socket
        socket: PathBuf,
    },
    /// Write the expected outputs of text tests, and the pages of docs/ that are generated from the sources
    Bless {
        /// Only tests and pages whose path contains this; `costs`, `closures` and `devices` write their tables
        filter: Option<String>,
        /// With `costs`: only files whose path contains this
        rest: Option<String>,
    },
    /// Run random programs under all engines, or compile bad input (`--front`)
    Fuzz {
        /// Run only random bodies of `vectorize`
        #[arg(long)]
        lanes: bool,
        /// Test partial evaluation only, without native code and `vectorize`: twice as fast
        #[arg(long, conflicts_with = "lanes")]
        interpreted: bool,
        /// Test the lexer, the parser and the checker with random bytes and mutated programs
        #[arg(long)]
        front: bool,
        /// Test those of DeepCPS, Staged-C and Sierra, with `--front`
        #[arg(long, requires = "front")]
        other: bool,
        /// Test `std::pattern` with random patterns and texts beside the `regex` crate
        #[arg(long, conflicts_with_all = ["lanes", "interpreted", "front"])]
        patterns: bool,
        /// Compare checked native code with the interpreter on random programs that go wrong
        #[arg(long, conflicts_with_all = ["lanes", "interpreted", "front", "patterns"])]
        faults: bool,
        /// Read the inputs in this process
        #[arg(long, hide = true)]
        child: bool,
        /// Make inputs of the programs in fuzz/ only
        #[arg(long, hide = true)]
        own: bool,
        /// File in which that process notes the seeds
        #[arg(long, hide = true)]
        note: Option<PathBuf>,
        /// First seed, instead of a fresh one
        #[arg(long)]
        seed: Option<u64>,
        /// Check this program, with an `entry` of up to four `u32`s, instead of random programs
        #[arg(long)]
        file: Option<PathBuf>,
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        #[arg(long, default_value_t = u64::MAX)]
        programs: u64,
        /// Folder in which programs are kept that spend the budget of partial evaluation
        #[arg(long)]
        keep: Option<PathBuf>,
    },
    /// Compare residual programs, flat code and machine code of all programs with those of another revision
    Replay {
        /// The revision, as git names it
        revision: String,
        /// Compile only programs whose path contains this
        filter: Option<String>,
    },
    /// Check the map in ARCHITECTURE.md, dependencies, headers, file lengths
    Tidy {
        /// Check the links in the documentation of all items, too: minutes
        #[arg(long)]
        docs: bool,
    },
    /// Make a book of all pages, target/book
    Book,
    /// Make a release, target/dist/nyala-….tar.gz, and test it without the Rust toolchain
    Dist,
    /// Measure the compiler and its programs beside peers; without a name everything, with results written to bench/results/
    Bench {
        /// A bench, or the name of one and a part of it: `sort`, `"game fasta"`
        filter: Option<String>,
        /// One size, three turns, one thread: each bench takes less than a minute, beside other load as well
        #[arg(long)]
        brief: bool,
        /// Level of x86-64 that the programs and their peers are limited to; a peer that cannot be limited is left out by name
        #[arg(long, value_name = "LEVEL", default_value = bench::LEVELS[0], value_parser = clap::builder::PossibleValuesParser::new(bench::LEVELS))]
        cpu: String,
    },
}

/// The gate checks one in this many programs with a small budget.
const GATE_BUDGETS: usize = 24;
/// `./x test --quick` makes one in this many random programs of the gate.
const QUICK_SHARE: u64 = 16;

/// The numbers of tests that passed, failed and were skipped.
#[derive(Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Tally {
    /// Counts a test, and shows its faults.
    fn count(&mut self, name: &str, faults: &[String]) {
        faults.iter().for_each(|fault| println!("FAILED {name}: {fault}"));
        match faults {
            [] => self.passed += 1,
            _ => self.failed += 1,
        }
    }

    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap_or_else(|_| PathBuf::from("."))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ok = match cli.task {
        Task::Demo => demo::run(),
        Task::Test { devices: true, .. } => test_devices(),
        Task::Test { all: true, filter, anew, .. } => all::run(filter.as_deref(), anew),
        Task::Test { quick, filter, .. } => test(quick, filter.as_deref()),
        Task::Setup => setup::run(),
        Task::Work { socket } => queue::work(&socket),
        Task::Bless { .. } if std::env::var_os("CI").is_some() => Err("expected outputs are not accepted in CI".into()),
        Task::Bless { filter, rest } => bless(filter.as_deref(), rest.as_deref()),
        Task::Fuzz { front: true, other, child, own, note, seed, file, seconds, programs, .. } => {
            let time = std::time::Duration::from_secs(seconds);
            let from = match (other, own) {
                (true, _) => bad_input::From::Other,
                (_, true) => bad_input::From::Own,
                _ => bad_input::From::Impala,
            };
            match (child, file, note) {
                (true, Some(file), _) => bad_input::read_file(&file),
                (true, None, Some(note)) => bad_input::read_inputs(seed.unwrap_or(0), time, programs, from, &note),
                (_, Some(file), _) => bad_input::run_file(&file),
                _ => {
                    let first = seed.unwrap_or_else(random::fresh_seed);
                    let of_other = if other { " --other" } else { "" };
                    println!(
                        "bad input from seed {first} (repeat one with `./x fuzz --front{of_other} --seed SEED --seconds 0`)"
                    );
                    Ok(bad_input::run(first, time, programs, from, &|said| println!("{said}")).failed == 0)
                }
            }
        }
        Task::Fuzz { patterns: true, seed, seconds, programs, .. } => {
            let limit =
                if programs == u64::MAX { std::time::Duration::from_secs(seconds) } else { std::time::Duration::MAX };
            let first = seed.unwrap_or_else(random::fresh_seed);
            println!(
                "random patterns from seed {first} (repeat with `./x fuzz --patterns --seed SEED --programs NUMBER`)"
            );
            Ok(random_patterns::run(first, limit, programs, &|said| println!("{said}")).failed == 0)
        }
        Task::Fuzz { faults: true, seed, seconds, programs, .. } => {
            let limit =
                if programs == u64::MAX { std::time::Duration::from_secs(seconds) } else { std::time::Duration::MAX };
            let first = seed.unwrap_or_else(random::fresh_seed);
            println!(
                "random programs with a fault from seed {first} (repeat one with `./x fuzz --faults --seed SEED --programs 1`)"
            );
            Ok(random::faults::run(first, limit, programs, &|said| println!("{said}")).failed == 0)
        }
        Task::Fuzz { file: Some(file), child: true, .. } => random::check_file(&file),
        Task::Fuzz { file: Some(file), .. } => random::run_file(&file),
        Task::Fuzz { lanes, interpreted, seed, seconds, programs, keep, .. } => {
            let time = std::time::Duration::from_secs(seconds);
            let which = match (lanes, interpreted) {
                (true, _) => random::Which::Lanes,
                (_, true) => random::Which::Interpreted,
                _ => random::Which::All,
            };
            let first = seed.unwrap_or_else(random::fresh_seed);
            let option =
                if lanes { "--lanes " } else { "" }.to_string() + if interpreted { "--interpreted " } else { "" };
            println!("random programs from seed {first} (repeat one with `./x fuzz {option}--seed SEED --programs 1`)");
            let plan = random::Plan {
                first,
                before: 0,
                max_programs: programs,
                time,
                which,
                // A program that is repeated runs on all processors that may have failed.
                cpus: match programs {
                    1 => vec![[random::all_cpus(), random::gate_cpus()].concat()],
                    _ => random::one_each(random::all_cpus()),
                },
                keep: keep.as_deref(),
                has_limits: false,
                threads: std::thread::available_parallelism().map_or(2, |n| n.get()),
            };
            Ok(random::run(&plan, &|said| println!("{said}")).failed == 0)
        }
        Task::Replay { revision, filter } => replay::run(&revision, filter.as_deref()),
        Task::Tidy { docs } => {
            let mut tally = tidy::run();
            if docs {
                tally.add(tidy::check_docs());
            }
            println!("{} passed, {} failed, 0 skipped", tally.passed, tally.failed);
            Ok(tally.failed == 0)
        }
        Task::Book => book::run(),
        Task::Dist => dist::run(),
        Task::Bench { filter, brief, cpu } => bench::run(filter.as_deref(), brief, &cpu),
    };
    match ok {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the command under test, and the runtime that it links.
fn build_command() -> Result<(), String> {
    let packages = ["--package", "nyala", "--package", "nyala-runtime"];
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet"]).args(packages))
}

/// Announces a part of the tests, with the minutes since the command began.
fn phase(name: &str) {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let minutes = BEGIN.get_or_init(std::time::Instant::now).elapsed().as_secs_f64() / 60.0;
    eprintln!("{name} ({minutes:.1} min)");
}

fn test_devices() -> Result<bool, String> {
    let _lock = lock()?;
    phase("building");
    build_command()?;
    phase("conformance of devices");
    let (orders, skipped) = devices::orders()?;
    let (tally, lacks) = run_orders(orders)?;
    lacks.iter().for_each(|what| println!("lacking: {what}"));
    skipped.iter().for_each(|what| println!("skipped: {what}"));
    phase("end");
    println!(
        "left out, in `./x test --all devices`: PoCL, lavapipe, nvcc, ptxas, spirv-val, and the tests of lib/image and lib/ray on devices"
    );
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped + skipped.len());
    Ok(tally.failed == 0)
}

/// Runs orders that are a test each. Returns what programs lack on platforms, too.
pub fn run_orders(orders: Vec<queue::Order>) -> Result<(Tally, std::collections::BTreeSet<String>), String> {
    let (mut tally, mut lacks) = (Tally::default(), std::collections::BTreeSet::new());
    queue::run(orders, |order, answer| {
        lacks.extend(answer.skipped);
        tally.count(&order.words.join(" "), &answer.faults);
    })?;
    Ok((tally, lacks))
}

fn bless(filter: Option<&str>, rest: Option<&str>) -> Result<bool, String> {
    let _lock = lock()?;
    build_command()?;
    match (filter, rest) {
        (Some("devices"), None) => return devices::run(true).map(|t| t.failed == 0),
        (Some("closures"), None) => return closures::bless(),
        (Some("costs"), _) => return texts::bless_costs(rest),
        (_, Some(_)) => return Err("only `costs` takes a second word".into()),
        _ => {}
    }
    let mut tally = pages::run(filter, true);
    tally.add(run_texts(filter, true, texts::Tier::Gate, Vec::new())?);
    if tally.passed + tally.failed == 0 {
        return Err(format!("no text test has `{}` in its path", filter.unwrap_or_default()));
    }
    Ok(tally.failed == 0)
}

/// Runs text tests, and other orders beside them.
fn run_texts(filter: Option<&str>, bless: bool, tier: texts::Tier, others: Vec<queue::Order>) -> Result<Tally, String> {
    let (mut orders, left_out) = texts::orders(filter, bless, tier)?;
    orders.extend(others);
    let judges = tier == texts::Tier::Gate && filter.is_none();
    let (mut results, mut tally) = (results::Results::new(judges)?, Tally::default());
    queue::run(orders, |order, answer| match &*order.words[0] {
        "text" => results.add(order, answer),
        _ => tally.count(&order.words.join(" "), &answer.faults),
    })?;
    let slow = std::mem::take(&mut results.slow);
    if !slow.is_empty() {
        phase("what took too long, once more");
        queue::run(slow, |order, answer| results.add(order, answer))?;
    }
    tally.add(results.end());
    if left_out.runs + left_out.tests > 0 {
        println!(
            "left out, in `./x test --all`: {} runs of files under an engine, and {} of tests of files of which a part runs",
            left_out.runs, left_out.tests
        );
    }
    Ok(tally)
}

/// Two runs of tests in one checkout would write the same files: the second waits.
pub fn lock() -> Result<std::fs::File, String> {
    let path = queue::cache_folder().with_file_name("test.lock");
    let file = std::fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("waiting for another run of tests in this checkout …");
        file.lock().map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(file)
}

/// Runs a command, whose output is shown.
pub fn sh(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(e) => Err(format!("{shown}: {e}")),
    }
}

fn test(quick: bool, filter: Option<&str>) -> Result<bool, String> {
    let _lock = lock()?;
    let mut tally = Tally::default();
    phase("building");
    build_command()?;
    if filter.is_none() {
        phase("tests of the crates");
        tally.add(if quick { changed_crate_tests()? } else { crate_tests(&["--tests"], &[])? });
        if !quick {
            // No default members: whoever builds the others does not link the compiler into these libraries, too.
            let libraries = ["--tests", "--package", "nyala-capi", "--package", "nyala-python"];
            tally.add(crate_tests(&libraries, &[])?);
            phase("programs with a small budget");
            tally.add(budgets::run(GATE_BUDGETS));
        }
        phase("tidy");
        tally.add(tidy::run());
    }
    tally.add(pages::run(filter, false));
    let tier = if quick { texts::Tier::Quick } else { texts::Tier::Gate };
    let mut random = Vec::new();
    if filter.is_none() {
        if !quick {
            random.extend(work::found_orders());
        }
        for phase in work::PHASES.iter().filter(|p| !quick || p.name == "programs") {
            random.extend(phase.gate_orders(if quick { QUICK_SHARE } else { 1 })?);
        }
    }
    phase(if filter.is_none() { "text tests and random programs" } else { "text tests" });
    tally.add(run_texts(filter, false, tier, random)?);
    if tally.passed + tally.failed == 0 {
        return Err(format!("no text test has `{}` in its path", filter.unwrap_or_default()));
    }
    phase("end");
    if quick {
        let engines = nyala_driver::testing::ENGINES.iter().map(|e| e.name);
        let engines: Vec<&str> = engines.filter(|name| !texts::QUICK_ENGINES.contains(name)).collect();
        println!(
            "left out by --quick: crates/*/tests; text tests under {}, for older processors, and their closures; random bodies of \
             `vectorize`, bad input, random patterns, faults, and {} of {QUICK_SHARE} random programs",
            engines.join(", "),
            QUICK_SHARE - 1
        );
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed == 0)
}

/// Runs the unit tests of the crates that have changed since these tests passed last.
fn changed_crate_tests() -> Result<Tally, String> {
    let passed = queue::cache_folder().with_file_name("quick-passed");
    let since = std::fs::metadata(&passed).and_then(|m| m.modified()).ok();
    let now = std::time::SystemTime::now();
    let mut changed = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten() {
        // Those that have unit tests.
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
        let is_tested = !manifest.contains("\ntest = false\n") && entry.path().join("src/lib.rs").exists();
        if is_tested && entry.file_name() != "scene" && since.is_none_or(|since| newest(&entry.path()) > since) {
            let name = manifest.lines().find_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"'));
            changed.extend(name.map(String::from));
        }
    }
    changed.sort();
    if changed.is_empty() {
        return Ok(Tally::default());
    }
    println!("unit tests of {}", changed.join(", "));
    let options: Vec<&str> =
        std::iter::once("--lib").chain(changed.iter().flat_map(|name| ["--package", name])).collect();
    let tally = crate_tests(&options, &[])?;
    if tally.failed == 0 {
        let file = std::fs::File::create(&passed).map_err(|e| format!("{}: {e}", passed.display()))?;
        // What changes while the tests run counts as changed.
        let _ = file.set_modified(now);
    }
    Ok(tally)
}

/// The time of the last change below a folder.
fn newest(folder: &Path) -> std::time::SystemTime {
    let mut newest = std::time::UNIX_EPOCH;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.metadata().and_then(|m| m.modified()).unwrap_or(newest);
        let inner = if entry.path().is_dir() { self::newest(&entry.path()) } else { own };
        newest = newest.max(own).max(inner);
    }
    newest
}

/// Runs the crates' own tests with options for Cargo and for the tests, and sums up the counts of their closing lines. A test
/// that lacks a tool writes what it lacks to the file `NYALA_SKIPPED`.
pub fn crate_tests(options: &[&str], of_tests: &[&str]) -> Result<Tally, String> {
    let skipped = queue::cache_folder().with_file_name("skipped");
    let _ = std::fs::remove_file(&skipped);
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(["test", "--quiet", "--no-fail-fast"]).args(options).arg("--").args(of_tests);
    if !of_tests.contains(&"--include-ignored") {
        command.env("NYALA_SKIPPED", &skipped);
    } else {
        command.env("NYALA_SKIPPED", "fail");
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cannot run cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut tally, mut left_out) = (Tally::default(), 0);
    for line in text.lines().filter(|l| l.starts_with("test result:")) {
        let count = |what: &str| -> usize {
            let words: Vec<&str> = line.split([' ', ';', '.']).filter(|w| !w.is_empty()).collect();
            words.windows(2).find(|w| w[1] == what).and_then(|w| w[0].parse().ok()).unwrap_or(0)
        };
        tally.add(Tally { passed: count("passed"), failed: count("failed"), skipped: 0 });
        left_out += count("ignored");
    }
    for what in std::fs::read_to_string(&skipped).unwrap_or_default().lines() {
        println!("skipped: {what}");
        tally.skipped += 1;
    }
    if left_out > 0 {
        println!("left out, in `./x test --all crates`: {} tests of the crates", left_out);
    }
    if !output.status.success() {
        print!("{text}");
        if tally.failed == 0 {
            return Err("cargo test failed before it ran the tests".into());
        }
    }
    Ok(tally)
}
