//! All automation, the text-test runner included.
#![forbid(unsafe_code)]

mod bad_input;
mod bench;
mod book;
mod child;
mod closures;
mod demo;
mod devices;
mod evaluate;
mod foreign;
mod pages;
mod patterns;
mod plots;
mod random;
mod registers;
mod replay;
mod snippets;
mod texts;
mod tidy;

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
    /// Run the whole test suite
    Test {
        /// Run only the quick part
        #[arg(long)]
        quick: bool,
        /// Run only the tests for other machines: the conformance list on the interpreter, the host, and each device
        /// present, and programs on other processors, by QEMU; with FILTER, only those programs
        #[arg(long, conflicts_with = "quick")]
        devices: bool,
        /// Run only text tests whose path contains this
        filter: Option<String>,
    },
    /// Write the expected outputs of text tests, and the pages of docs/ that are generated from the sources
    Bless {
        /// Only tests and pages whose path contains this
        filter: Option<String>,
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
        /// Test `std::pattern` with random patterns and texts beside the `regex` crate
        #[arg(long, conflicts_with_all = ["lanes", "interpreted", "front"])]
        patterns: bool,
        /// Read the inputs in this process
        #[arg(long, hide = true)]
        child: bool,
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
    Tidy,
    /// Make a book of all pages, target/book
    Book,
    /// Measure compile times and the blur, and write the results to bench/results/
    Bench { filter: Option<String> },
}

/// The numbers of random programs, random bodies of `vectorize`, bad inputs and random patterns in `./x test`. On two slow
/// cores the first take three minutes, the second five.
const N_PROGRAMS: u64 = 3_000;
const N_LANES: u64 = 150;
const N_INPUTS: u64 = 8_000;
const N_PATTERNS: u64 = 300;
/// The parts that `./x test --quick` leaves out, beside engines.
const LEFT_OUT: &str = "tests of the crates that are programs of their own (crates/*/tests), native code for older processors, \
                        counts of function values, random bodies of `vectorize`, 15 of 16 random programs, bad inputs and random patterns";

/// The numbers of tests that passed, failed and were skipped.
#[derive(Default)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Tally {
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
        Task::Test { devices: true, filter, .. } => test_devices(filter.as_deref()),
        Task::Test { quick, filter, .. } => test(quick, filter.as_deref()),
        Task::Bless { .. } if std::env::var_os("CI").is_some() => Err("expected outputs are not accepted in CI".into()),
        Task::Bless { filter } => texts_and_pages(filter.as_deref(), true, true).map(|t| t.failed == 0),
        Task::Fuzz { front: true, child, note, seed, file, seconds, programs, .. } => {
            let time = std::time::Duration::from_secs(seconds);
            match (child, file, note) {
                (true, Some(file), _) => bad_input::read_file(&file),
                (true, None, Some(note)) => bad_input::read_inputs(seed.unwrap_or(0), time, programs, &note),
                (_, Some(file), _) => bad_input::run_file(&file),
                _ => Ok(bad_input::run(seed, time, programs).failed == 0),
            }
        }
        Task::Fuzz { patterns: true, seed, seconds, programs, .. } => {
            let limit =
                if programs == u64::MAX { std::time::Duration::from_secs(seconds) } else { std::time::Duration::MAX };
            Ok(patterns::run(seed, limit, programs).failed == 0)
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
            let tally = random::run(seed, time, programs, keep.as_deref(), which);
            Ok(tally.failed == 0)
        }
        Task::Replay { revision, filter } => replay::run(&revision, filter.as_deref()),
        Task::Tidy => {
            let tally = tidy::run();
            println!("{} passed, {} failed, 0 skipped", tally.passed, tally.failed);
            Ok(tally.failed == 0)
        }
        Task::Book => book::run(),
        Task::Bench { filter } => bench::run(filter.as_deref()),
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

fn test_devices(filter: Option<&str>) -> Result<bool, String> {
    phase("building");
    build_command()?;
    let mut tally = Tally::default();
    if filter.is_none() {
        phase("conformance of devices");
        tally.add(devices::run(false)?);
    }
    phase("programs on other processors");
    tally.add(foreign::run(filter));
    phase("end");
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed == 0)
}

/// Runs the text tests, and compares the pages that are made from the sources.
fn texts_and_pages(filter: Option<&str>, bless: bool, quick: bool) -> Result<Tally, String> {
    if filter == Some("devices") && bless {
        build_command()?;
        return devices::run(true);
    }
    if filter == Some("closures") {
        return Ok(closures::run(bless));
    }
    let mut tally = pages::run(filter, bless);
    tally.add(texts::run(filter, bless, quick)?);
    if filter.is_none() && !quick {
        tally.add(closures::run(bless));
    }
    if tally.passed + tally.failed == 0 {
        return Err(format!("no text test has `{}` in its path", filter.unwrap_or_default()));
    }
    Ok(tally)
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
    let mut tally = Tally::default();
    phase("building");
    build_command()?;
    if filter.is_none() {
        phase("unit tests");
        tally.add(unit_tests(quick)?);
        phase("tidy");
        tally.add(tidy::run());
    }
    phase("text tests");
    tally.add(texts_and_pages(filter, false, quick)?);
    if filter.is_none() {
        // The seeds and counts are fixed, so that a run can be repeated. `./x fuzz` has fresh seeds.
        let seed = Some(random::seed_of_commit());
        let forever = std::time::Duration::MAX;
        let of_quick = |n: u64| if quick { n / 16 } else { n };
        phase("random programs");
        tally.add(random::run(seed, forever, of_quick(N_PROGRAMS), None, random::Which::All));
        if !quick {
            phase("random bodies of `vectorize`");
            tally.add(random::run(seed, forever, N_LANES, None, random::Which::Lanes));
        }
        phase("bad input");
        tally.add(bad_input::run(seed, forever, of_quick(N_INPUTS)));
        phase("random patterns");
        tally.add(patterns::run(seed, forever, of_quick(N_PATTERNS)));
    }
    phase("end");
    if quick {
        let engines = nyala::testing::ENGINES.iter().map(|e| e.name);
        let engines: Vec<&str> = engines.filter(|name| !texts::QUICK_ENGINES.contains(name)).collect();
        println!("left out by --quick: {LEFT_OUT}; text tests under {}", engines.join(", "));
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed == 0)
}

/// Runs the crates' own tests, and sums up the counts of their closing lines.
fn unit_tests(quick: bool) -> Result<Tally, String> {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(["test", "--quiet", "--workspace", "--no-fail-fast"]);
    if quick {
        command.arg("--lib");
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cannot run cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut tally = Tally::default();
    for line in text.lines().filter(|l| l.starts_with("test result:")) {
        let count = |what: &str| -> usize {
            let words: Vec<&str> = line.split([' ', ';', '.']).filter(|w| !w.is_empty()).collect();
            words.windows(2).find(|w| w[1] == what).and_then(|w| w[0].parse().ok()).unwrap_or(0)
        };
        tally.add(Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") });
    }
    if !output.status.success() {
        print!("{text}");
        if tally.failed == 0 {
            return Err("cargo test failed before it ran the tests".into());
        }
    }
    Ok(tally)
}
