//! `nyala test`: runs the tests in Impala files under every engine. Tests run in other processes, which print a mark
//! before and after each test. So a test that ends its process, or does not end, is only one failed test.

use super::package::Part;
use super::{FAILED, Input, USAGE, show_all, with_files_of};
use nyala_base::Sources;
use nyala_base::diagnostics::LACKS;
use nyala_driver::diagnostics::{cannot_read, test_failed};
use nyala_driver::pipelines::Form;
use nyala_driver::testing::{self, ENGINES, Engine, Outcome, Suite};
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Run `//?` lines and `test…` functions of files, or of all files in folders, under every engine
#[derive(clap::Args)]
#[command(mut_arg("files", |files| files.value_name("FILE|FOLDER").help("Files, and folders with all files in them; each file is a program. Without any, `src` and `tests` of the package around this folder")))]
pub struct Test {
    #[command(flatten)]
    input: Input,
    /// Run only tests with this text in their name or file
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Use only this engine: interp, "no-pe -O0", "no-pe -O3", -O0, -O3, checked, c. The engine c compiles C text with the
    /// system's C compiler; it is used only if it is named here
    #[arg(long, value_name = "NAME", value_parser = parse_engine, allow_hyphen_values = true)]
    engine: Option<Engine>,
    /// Time limit in seconds for one test under one engine
    #[arg(long, value_name = "S", default_value_t = 60)]
    timeout: u64,
    /// Run the tests of one file from this number on, in this process
    #[arg(long, hide = true, value_name = "N")]
    worker: Option<usize>,
    /// Keep native code between runs
    #[arg(long, hide = true)]
    keep: bool,
}

fn parse_engine(name: &str) -> Result<Engine, String> {
    let known = || ENGINES.iter().map(|e| e.name).collect::<Vec<_>>().join(", ");
    ENGINES.iter().copied().find(|e| e.name == name).ok_or_else(|| format!("there are {}", known()))
}

/// Begins a worker's messages about its tests on standard error, and the output of each test on standard output.
const MARK: char = '\u{1e}';

/// A file with tests that should run.
struct File {
    path: PathBuf,
    sources: Sources,
    suite: Suite,
    wanted: Vec<bool>,
}

/// A failure: the index of the test, or `None` for the whole file; the engine's name; and a description.
type Failure = (Option<usize>, &'static str, String);

/// The outcome of the tests that have ended.
#[derive(Default)]
struct Report {
    /// The number of files whose tests have ended.
    ended: usize,
    /// Whether a line of progress stands on the terminal.
    has_progress: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    fn show_progress(&mut self, n_files: usize) {
        if std::io::stderr().is_terminal() && self.ended < n_files {
            eprint!("\r{} of {n_files} files ", self.ended);
            self.has_progress = true;
        }
    }

    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            eprint!("\r\x1b[K");
        }
    }
}

impl Test {
    /// The tests of files as native code, which is kept.
    pub(super) fn of_watched(input: Input) -> Test {
        let engine = ENGINES.iter().copied().find(|e| e.name == "-O3");
        Test { input, filter: None, engine, timeout: 60, worker: None, keep: true }
    }

    pub fn run(mut self) -> u8 {
        if let Err(code) = self.input.complete(Part::Tests) {
            return code;
        }
        if let Some(first) = self.worker {
            return self.work(first);
        }
        let mut paths = Vec::new();
        for path in &self.input.files {
            if let Err(e) = collect(path, &mut paths) {
                show_all(&[cannot_read::error(path, &e.to_string())], &Sources::new(), self.input.json);
                return FAILED;
            }
        }
        let mut files = Vec::new();
        let mut n_tests = 0;
        for path in paths {
            let text = match nyala_driver::files::read(&path) {
                Ok(text) => text,
                Err(e) => {
                    show_all(&[cannot_read::error(&path, &e)], &Sources::new(), self.input.json);
                    return FAILED;
                }
            };
            let name = path.display().to_string();
            let suite = testing::find(&name, &text);
            let matches = |t: &testing::Test| {
                self.filter.as_ref().is_none_or(|f| name.contains(f.as_str()) || t.name.contains(f.as_str()))
            };
            let wanted: Vec<bool> = suite.tests.iter().map(matches).collect();
            let mut sources = Sources::new();
            sources.add(&name, &text);
            show_all(&suite.findings, &sources, self.input.json);
            n_tests += wanted.len();
            if wanted.contains(&true) {
                files.push(File { path, sources, suite, wanted });
            }
        }
        if files.is_empty() {
            if let (Some(filter), 1..) = (&self.filter, n_tests) {
                eprintln!("error: none of {n_tests} tests has `{filter}` in its name or file");
                return USAGE;
            }
            eprintln!("error: no tests found");
            eprintln!(
                "  = hint: a test is a line `//? f(2) == 4`, or a function `fn test_f() -> () {{ assert(f(2) == 4) }}`"
            );
            return USAGE;
        }
        self.run_files(&files)
    }

    fn run_files(&self, files: &[File]) -> u8 {
        let start = Instant::now();
        for engine in ENGINES.iter().filter(|e| self.engine.is_none() && e.back_end.needs.is_none()) {
            if let Some(what) = engine.lacks() {
                eprintln!("skipped: everything under {}, since {what} is missing", engine.name);
            }
        }
        let next = AtomicUsize::new(0);
        let report = Mutex::new(Report::default());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
                scope.spawn(|| {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let failures = self.run_file(file);
                        let mut report = report.lock().unwrap_or_else(|e| e.into_inner());
                        report.clear_progress();
                        self.show_file(file, &failures, files.len(), &mut report);
                        if start.elapsed() > Duration::from_secs(1) {
                            report.show_progress(files.len());
                        }
                    }
                });
            }
        });
        let mut report = report.into_inner().unwrap_or_else(|e| e.into_inner());
        report.clear_progress();
        let Report { passed, failed, skipped, .. } = report;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { 0 } else { FAILED }
    }

    /// Shows the tests of a file, one of `n_files`, when they have ended, and counts them.
    fn show_file(&self, file: &File, failures: &[Failure], n_files: usize, report: &mut Report) {
        report.ended += 1;
        let whole: Vec<_> = failures.iter().filter(|f| f.0.is_none()).collect();
        let total = file.wanted.iter().filter(|w| **w).count();
        let lacks = |f: &&Failure| LACKS.iter().any(|code| f.2.contains(&format!("error[{code}]")));
        let is_skipped = whole.iter().all(lacks);
        for group in group(&whole) {
            println!("{} {}: {group}", if is_skipped { "SKIPPED" } else { "FAILED" }, file.path.display());
        }
        if !whole.is_empty() && !is_skipped {
            report.failed += total;
            group(&whole).iter().for_each(|how| self.note(file, None, how));
            return;
        }
        let mut passed = 0;
        for (i, test) in file.suite.tests.iter().enumerate().filter(|t| file.wanted[t.0]) {
            let own: Vec<_> = failures.iter().filter(|f| f.0 == Some(i)).collect();
            for group in group(&own) {
                println!("FAILED {}:{}: `{}`: {group}", file.path.display(), test.line, test.name);
                self.note(file, Some(test), &group);
            }
            match (own.is_empty(), whole.is_empty()) {
                (false, _) => report.failed += 1,
                (true, true) => passed += 1,
                (true, false) => report.skipped += 1,
            }
        }
        report.passed += passed;
        // With one file, the last line says it.
        if n_files > 1 && passed > 0 {
            println!("{}: {passed} passed", file.path.display());
        }
        let _ = std::io::stdout().flush();
    }

    /// Prints a failure as JSON, if `--json` is given.
    fn note(&self, file: &File, test: Option<&testing::Test>, how: &str) {
        if self.input.json {
            let name = file.path.display().to_string();
            let span = file.sources.line_span(&name, test.map_or(1, |t| t.line)).unwrap_or_default();
            show_all(&[test_failed::error(span, test.map(|t| &*t.name), how)], &file.sources, self.input.json);
        }
    }

    /// Runs the tests of a file under all engines. Returns the failures.
    fn run_file(&self, file: &File) -> Vec<Failure> {
        let mut failures = Vec::new();
        // An engine that needs other programs runs if it is named.
        let wanted = |e: &&Engine| match self.engine {
            Some(only) => only.name == e.name,
            None => is_usual(e),
        };
        for engine in ENGINES.iter().filter(wanted) {
            let mut first = 0;
            while let Some(step) = file.wanted.iter().skip(first).position(|w| *w) {
                first += step;
                match self.run_worker(file, engine, first, &mut failures) {
                    Some(next) => first = next,
                    // The file does not compile.
                    None if engine.back_end.takes == Form::Graph => return failures,
                    None => break,
                }
            }
        }
        failures
    }

    /// Runs the tests from index `first` on, until one ends the process. Returns the index of the next test, or `None`
    /// if no test ran.
    fn run_worker(&self, file: &File, engine: &Engine, first: usize, failures: &mut Vec<Failure>) -> Option<usize> {
        let n = file.suite.tests.len();
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "nyala".into()));
        command.args(["test", "--worker", &first.to_string(), "--engine", engine.name]);
        if let Some(filter) = &self.filter {
            command.args(["--filter", filter]);
        }
        if self.keep {
            command.arg("--keep");
        }
        command.args(self.input.worker_args(&self.input.defines)).arg(&file.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => {
                failures.push((None, engine.name, format!("cannot start a process for the tests: {e}")));
                return None;
            }
        };
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        let said = Mutex::new((Vec::new(), Instant::now()));
        let (printed, status) = std::thread::scope(|scope| {
            let printed = scope.spawn(|| {
                let mut bytes = Vec::new();
                if let Some(out) = &mut out {
                    let _ = out.read_to_end(&mut bytes);
                }
                bytes
            });
            let reader = scope.spawn(|| {
                let mut buffer = [0; 4096];
                while let Some(n @ 1..) = err.as_mut().and_then(|e| e.read(&mut buffer).ok()) {
                    let mut said = said.lock().unwrap_or_else(|e| e.into_inner());
                    said.0.extend_from_slice(&buffer[..n]);
                    said.1 = Instant::now();
                }
            });
            let status = loop {
                match child.try_wait() {
                    Ok(Some(status)) => break status.to_string(),
                    Ok(None) => {}
                    Err(e) => break e.to_string(),
                }
                let since = said.lock().unwrap_or_else(|e| e.into_inner()).1;
                if since.elapsed() > Duration::from_secs(self.timeout) {
                    let _ = child.kill();
                    let _ = child.wait();
                    break format!(
                        "takes more than {} s; `--timeout` sets the limit, `--engine` names the engines that run the test",
                        self.timeout
                    );
                }
                std::thread::sleep(Duration::from_millis(2));
            };
            drop(reader.join());
            (printed.join().unwrap_or_default(), status)
        });
        let said = said.into_inner().unwrap_or_else(|e| e.into_inner()).0;
        let (said, printed) = (String::from_utf8_lossy(&said), String::from_utf8_lossy(&printed));
        let printed_by = |i: usize| {
            let start = printed.find(&format!("{MARK}begin {i}\n"))?;
            printed[start..].split_once('\n')?.1.split(MARK).next().map(str::trim_end).filter(|t| !t.is_empty())
        };
        let with_output = |i: usize, text: &str| match printed_by(i) {
            Some(output) => format!("{}\nits output:\n{output}", text.trim_end()),
            None => text.trim_end().to_string(),
        };
        let mut parts = said.split(MARK);
        let before = parts.next().unwrap_or_default().trim_end();
        let mut running = None;
        let mut next = None;
        for part in parts {
            let (mark, rest) = part.split_once('\n').unwrap_or((part, ""));
            let Some((word, i)) = mark.split_once(' ').and_then(|(w, i)| Some((w, i.parse::<usize>().ok()?))) else {
                continue;
            };
            next = Some(i + 1);
            running = (word == "begin").then(|| (i, rest.to_string()));
            if word == "failed" {
                failures.push((Some(i), engine.name, with_output(i, rest)));
            }
        }
        match running {
            Some((i, text)) => failures.push((Some(i), engine.name, with_output(i, &format!("{text}{status}")))),
            None if next.is_none() => {
                let text = if before.is_empty() { status } else { before.to_string() };
                failures.push((None, engine.name, text));
            }
            None => next = Some(n),
        }
        next
    }

    /// Runs tests from index `first` on in a worker process. Returns its exit code.
    fn work(&self, first: usize) -> u8 {
        let [path] = &self.input.files[..] else { return USAGE };
        let Some(engine) = self.engine else { return USAGE };
        let name = path.display().to_string();
        let kept = |o: &mut nyala_driver::Options| {
            o.cache = if self.keep { nyala_driver::cache::Objects::of_user() } else { None };
        };
        with_files_of(&self.input, kept, |options, mut files| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let mut suite = testing::find(&name, &text);
            if let Some(filter) = self.filter.as_ref().filter(|f| !name.contains(f.as_str())) {
                suite.tests.iter_mut().filter(|t| !t.name.contains(filter.as_str())).for_each(|t| t.entries.clear());
            }
            files.add(name.clone(), suite.entries.clone());
            let report = testing::run(&options, &files, &suite, engine, first, |i, outcome| {
                nyala_driver::flush();
                let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
                match outcome {
                    None => {
                        let _ = writeln!(out, "{MARK}begin {i}").and_then(|()| out.flush());
                        let _ = writeln!(err, "{MARK}begin {i}");
                    }
                    Some(Outcome::Passed) => drop(writeln!(err, "{MARK}passed {i}")),
                    Some(Outcome::Failed(text)) => drop(writeln!(err, "{MARK}failed {i}\n{text}")),
                }
            })?;
            Ok((0, report))
        })
    }
}

/// Whether the engine runs tests if none is named: it needs nothing that this machine lacks, and no other programs.
fn is_usual(engine: &Engine) -> bool {
    engine.back_end.needs.is_none() && engine.lacks().is_none()
}

/// Merges failures with equal texts. Each result begins with the list of their engines.
fn group(failures: &[&Failure]) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
    for (_, engine, text) in failures {
        match groups.iter_mut().find(|g| g.1 == text) {
            Some(group) => group.0.push(engine),
            None => groups.push((vec![engine], text)),
        }
    }
    let indent = |text: &str| text.lines().map(|l| format!("    {l}")).collect::<Vec<_>>().join("\n");
    let n_engines = ENGINES.iter().filter(|e| is_usual(e)).count();
    let engines = |e: &[&str]| if e.len() == n_engines { "every engine".into() } else { e.join(", ") };
    groups.iter().map(|(e, text)| format!("{}\n{}", engines(e), indent(text))).collect()
}

/// Collects the Impala files of a path, in alphabetical order.
pub(super) fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        std::fs::File::open(path)?;
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut pending = vec![path.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            // Symbolic links could form cycles.
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "impala")
                || path.to_str().is_some_and(nyala_driver::is_other)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    files.extend(found);
    Ok(())
}
