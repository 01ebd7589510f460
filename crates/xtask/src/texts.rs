//! Text tests: programs and IR under `tests/`, with what must hold as comments in them.
//!
//! | line | meaning |
//! |---|---|
//! | `//? f(2, 5) == 32` | holds under every engine, the arguments known and unknown ([`nyala::testing`]) |
//! | `fn test_f() -> () { … }` | comes to its end under every engine |
//! | `//> text` | a line of what `main` prints, under every engine; `//= 3`: its exit code |
//! | `//! residual f: "mul(" == 2` | the text occurs so often in the function at that stage; `<=` too; `*` is the whole stage |
//! | `//! flat f loop: "load" <= 9` | the same in the deepest loop with most instructions of the function |
//! | `//! explain f: "only call" == 1` | the same in what `nyala explain --fn f` says |
//! | `//! pe-budget 0.01` | for the whole file: the budget of partial evaluation, as the option says it |
//! | `//! device host` | for the whole file: kernels run on the host |
//! | `//! deny CODE` | for the whole file: warnings of this code are errors, as the option says it |
//! | `//! tune NAME: 8, 16` | nothing is checked: values for `nyala tune` |
//! | `//! same-residual OTHER f` | the file OTHER beside this one leaves the same of f, but for names |
//! | `//~ error[code]: text` | on a line (`^`: on the next one; `v`: on the one before): this diagnostic is reported there, and no others; a `main` of `tests/ui` without findings runs in the interpreter |
//! | a file in `tests/run/vectorize` | its queries hold in code for older processors as well (not with `--quick`, which also leaves out engines) |
//! | a file with `.residual`, `.explain`, `.lanes`, `.kernels` or `.stderr` for `.impala` | the whole residual program, what `nyala explain` says, also with `--vector` and `--kernels`, the whole output |
//!
//! Programs in Markdown pages are tests too: [`crate::snippets`]. A test under `tests/ir/` has `; test PASS`, IR, and
//! after `; ---` the expected IR, which `x bless` writes, like the files of the last row. For `; test run`, see
//! [`crate::evaluate`].

use crate::{Tally, child, root};
use libtest_mimic::{Arguments, Failed, Trial};
use nyala::{Options, Session, testing};
use nyala_base::Severity;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time limit for a program of a text test, under one engine: LLVM takes more than two minutes for
/// `lib/image/tests/devices.impala`, checked, on a slow processor.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The time limit for one file of the text tests.
const FILE_LIMIT: Duration = Duration::from_secs(600);

/// Folders with tests that take long. These begin first, so that no core idles at the end.
const LONG: &[&str] = &["tests/run/vectorize", "lib/image/tests", "tests/explain"];

/// The number of slowest tests whose times are shown.
const SLOWEST: usize = 20;

/// Runs the tests whose paths contain `filter`. Writes expected outputs if `bless`. Leaves out engines and code for older
/// processors if `quick`.
pub fn run(filter: Option<&str>, bless: bool, quick: bool) -> Result<Tally, String> {
    let mut files = Vec::new();
    for folder in ["run", "residual", "explain", "seeds", "ui", "ir"] {
        collect(&root().join("tests").join(folder), &mut files);
    }
    for folder in ["examples", "lib", "docs", "bench/game"] {
        collect(&root().join(folder), &mut files);
    }
    files.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|page| root().join(page)));
    files.sort_by_cached_key(|f| (!LONG.iter().any(|folder| f.starts_with(root().join(folder))), f.clone()));
    files.retain(|f| filter.is_none_or(|t| f.display().to_string().contains(t)));
    let times: Arc<Mutex<Vec<(Duration, String)>>> = Arc::default();
    let trials = files.into_iter().map(|file| {
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        let times = times.clone();
        Trial::test(name.clone(), move || {
            let start = Instant::now();
            let faults = in_time(file, bless, quick);
            times.lock().unwrap_or_else(|e| e.into_inner()).push((start.elapsed(), name));
            if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults.join("\n"))) }
        })
    });
    // The whole list of tests would be too long.
    let args = Arguments { quiet: filter.is_none(), ..Arguments::default() };
    let conclusion = libtest_mimic::run(&args, trials.collect());
    let mut times = std::mem::take(&mut *times.lock().unwrap_or_else(|e| e.into_inner()));
    times.sort_unstable_by(|a, b| b.cmp(a));
    for (time, name) in times.iter().take(SLOWEST) {
        println!("{:6.1} s {name}", time.as_secs_f64());
    }
    let skipped = show_skipped();
    Ok(Tally {
        passed: conclusion.num_passed as usize,
        failed: conclusion.num_failed as usize,
        skipped: conclusion.num_ignored as usize + skipped,
    })
}

/// Runs a test on another thread, with a large stack. An endless test only stops with the process.
fn in_time(file: PathBuf, bless: bool, quick: bool) -> Vec<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let run = move || drop(sender.send(run_file(&file, bless, quick)));
    match std::thread::Builder::new().stack_size(512 << 20).spawn(run) {
        Err(e) => vec![format!("no thread for it: {e}")],
        Ok(_) => receiver.recv_timeout(FILE_LIMIT).unwrap_or_else(|e| match e {
            RecvTimeoutError::Timeout => vec![format!("takes more than {} s", FILE_LIMIT.as_secs())],
            RecvTimeoutError::Disconnected => vec!["the compiler panicked".into()],
        }),
    }
}

/// Collects the tests below a folder. The prelude is not a test: all programs read it, and as a program it would
/// declare its own traits in place of `Ord` and `Num`, which would not allow operators.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.ends_with("lib/std/src/prelude.impala") {
            continue;
        } else if path.extension().is_some_and(|e| e == "impala" || e == "ir" || e == "md") {
            files.push(path);
        }
    }
}

/// Runs a test. Returns its faults.
pub fn run_file(path: &Path, bless: bool, quick: bool) -> Vec<String> {
    if path.extension().is_some_and(|e| e == "md") {
        return crate::snippets::run_page(path, bless);
    }
    let mut faults = Vec::new();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) => return vec![format!("cannot read: {e}")],
    };
    if path.extension().is_some_and(|e| e == "ir") {
        run_ir(path, &text, bless, &mut faults);
        return faults;
    }
    let directives: Vec<&str> = text.lines().map(str::trim).collect();
    if text.contains("//~") || path.starts_with(root().join("tests/ui")) {
        check_diagnostics(path, &text, bless, &mut faults);
        return faults;
    }
    let suite = testing::find(&path.display().to_string(), &text);
    if !suite.tests.is_empty() {
        check_tests(path, &text, &suite, quick, &mut faults);
    }
    // Spaces at the end of a line are part of the output.
    let output = text.lines().filter_map(|l| l.trim_start().strip_prefix("//>"));
    let output: Vec<&str> = output.map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
    let code = directives.iter().find_map(|l| l.strip_prefix("//=")).and_then(|c| c.trim().parse().ok());
    if !output.is_empty() || code.is_some() {
        check_output(path, &text, &output, code.unwrap_or(0), quick, &mut faults);
    }
    let mut checks_something = !suite.tests.is_empty() || !output.is_empty() || code.is_some();
    let rules = directives.iter().filter_map(|l| l.strip_prefix("//!")).map(str::trim);
    // Candidates are only for `nyala tune`.
    for rule in rules.filter(|r| !["pe-budget ", "deny ", "device ", "tune "].iter().any(|w| r.starts_with(w))) {
        checks_something = true;
        if let Err(e) = check_rule(path, &text, rule) {
            faults.push(e);
        }
    }
    for kind in ["residual", "explain", "lanes", "kernels"] {
        let golden = path.with_extension(kind);
        if golden.exists()
            || bless && !["lanes", "kernels"].contains(&kind) && path.starts_with(root().join("tests").join(kind))
        {
            checks_something = true;
            let found = match kind {
                "residual" => stage(path, &text, kind),
                "lanes" => lanes(path, &text),
                "kernels" => kernels(path, &text),
                _ => explained(path, &text, None),
            };
            match found {
                Ok(found) => compare(&golden, &found, bless, &mut faults),
                Err(e) => faults.push(e),
            }
        }
    }
    let is_program = ["examples", "lib", "out"].iter().any(|folder| path.starts_with(root().join(folder)));
    if !checks_something {
        if is_program {
            if let Err(e) = stage(path, &text, "flat") {
                faults.push(e);
            }
        } else {
            faults.push("nothing in this test checks anything".into());
        }
    }
    faults
}

/// Whether the kernels of a test run on the host.
fn is_on_host(text: &str) -> bool {
    text.lines().any(|l| l.trim() == "//! device host")
}

pub fn session(path: &Path, text: &str) -> Session {
    let budget = text.lines().find_map(|l| l.strip_prefix("//! pe-budget ")).and_then(|n| n.trim().parse().ok());
    let pe_budget = budget.unwrap_or(Options::default().pe_budget);
    let mut deny: Vec<String> =
        text.lines().filter_map(|l| l.strip_prefix("//! deny ")).map(|code| code.trim().into()).collect();
    // What libraries assert of their kernels is only a warning for programs.
    if !path.starts_with(root().join("tests/ui")) {
        deny.push("ensure-failed".into());
    }
    let device = if is_on_host(text) { nyala::Device::Host } else { nyala::Device::Own };
    let mut session = Session::new(Options { verify: true, device, pe_budget, deny, ..Options::default() });
    session.add_file(path.display().to_string(), text);
    for other in files_of_library(path) {
        let text = std::fs::read_to_string(&other).unwrap_or_default();
        session.add_file(other.display().to_string(), text);
    }
    session
}

/// The other files of a library that is one module of several files, one of which has the library's name.
fn files_of_library(path: &Path) -> Vec<PathBuf> {
    let library = path.strip_prefix(root().join("lib")).ok().and_then(|rest| rest.iter().next());
    let Some((folder, library)) = path.parent().filter(|f| f.ends_with("src")).zip(library) else { return Vec::new() };
    if !folder.join(library).with_extension("impala").exists() {
        return Vec::new();
    }
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    // Files in folders are modules of their own.
    files.retain(|f| f != path && f.parent() == Some(folder) && f.extension().is_some_and(|e| e == "impala"));
    files
}

/// The program at a stage, as `nyala emit` prints it.
fn stage(path: &Path, text: &str, stage: &str) -> Result<String, String> {
    let mut s = session(path, text);
    let text = nyala::emit(&mut s, stage, None);
    text.map_err(|_| s.render(false))
}

/// The output of `nyala explain`, for the program or for one function.
fn explained(path: &Path, text: &str, function: Option<&str>) -> Result<String, String> {
    let mut s = session(path.strip_prefix(root()).unwrap_or(path), text);
    let said = nyala::explain::explain(&mut s)
        .and_then(|explained| nyala::explain::text(&mut s, &explained.report, function, usize::MAX));
    said.map_err(|_| s.render(false))
}

/// The output of `nyala explain --vector`.
fn lanes(path: &Path, text: &str) -> Result<String, String> {
    let mut s = session(path.strip_prefix(root()).unwrap_or(path), text);
    match nyala::explain::lanes::notes(&mut s, None) {
        Ok(notes) => Ok(nyala::explain::lanes::text(&s, &notes)),
        Err(_) => Err(s.render(false)),
    }
}

/// The output of `nyala explain --kernels`.
fn kernels(path: &Path, text: &str) -> Result<String, String> {
    let mut s = session(path.strip_prefix(root()).unwrap_or(path), text);
    let found = nyala::explain::kernels::kernels(&mut s, None);
    found.map(|kernels| nyala::explain::kernels::text(&kernels)).map_err(|_| s.render(false))
}

fn compare(golden: &Path, found: &str, bless: bool, faults: &mut Vec<String>) {
    if bless {
        if let Err(e) = std::fs::write(golden, found) {
            faults.push(format!("cannot write {}: {e}", golden.display()));
        }
        return;
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    if expected != found {
        faults.push(format!("differs from {} (`./x bless` accepts it):\n{}", golden.display(), diff(&expected, found)));
    }
}

/// The lines that only one text has, in order, and at most a screenful.
pub fn diff(expected: &str, found: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    let mut out = String::new();
    for line in a[start..a.len() - end].iter().take(20) {
        let _ = writeln!(out, "- {line}");
    }
    for line in b[start..b.len() - end].iter().take(20) {
        let _ = writeln!(out, "+ {line}");
    }
    out
}

/// The engines of `--quick`, the two that differ most: the interpreter runs the source and checks every step, and optimized
/// code is made of the residual program.
pub const QUICK_ENGINES: &[&str] = &["interp", "-O3"];

/// The engines that programs run under.
fn engines(quick: bool) -> impl Iterator<Item = testing::Engine> {
    let is_chosen = move |e: &&testing::Engine| !quick || QUICK_ENGINES.contains(&e.name);
    testing::ENGINES.iter().filter(is_chosen).copied()
}

/// Runs the queries and test functions of a file, all in this process.
fn check_tests(path: &Path, text: &str, suite: &testing::Suite, quick: bool, faults: &mut Vec<String>) {
    let mut engines: Vec<(testing::Engine, Option<&str>)> = engines(quick).map(|e| (e, None)).collect();
    // The code for lanes depends on the processor.
    if !quick && path.starts_with(root().join("tests/run/vectorize")) {
        let optimized = *testing::ENGINES.iter().find(|e| e.name == "-O3").expect("the optimizing engine");
        engines.extend(older_cpus().iter().map(|&cpu| (optimized, Some(cpu))));
    }
    for (engine, cpu) in engines.into_iter().filter(|(e, _)| is_there(e)) {
        let mut s = session(path, text);
        s.options.cpu = cpu.map(String::from);
        s.add_file(path.display().to_string(), suite.entries.clone());
        let name = engine.name.to_string() + &cpu.map(|c| format!(" --cpu {c}")).unwrap_or_default();
        let ran = testing::run(&mut s, suite, engine, 0, |i, outcome| {
            if let Some(testing::Outcome::Failed(why)) = outcome {
                faults.push(format!("{name}: line {}: `{}`: {why}", suite.tests[i].line, suite.tests[i].name));
            }
        });
        if ran.is_err() && engine.back_end.needs.is_some() && is_limitation(&s) {
            skip(engine.name, path, first_error(&s));
        } else if ran.is_err() {
            faults.push(format!("{name}: {}", s.render(false)));
        }
    }
}

/// Programs that an engine could not run, each with the reason: a limitation of its back end.
static SKIPPED: Mutex<Vec<(&'static str, String, String)>> = Mutex::new(Vec::new());

fn skip(engine: &'static str, path: &Path, reason: String) {
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let mut skipped = SKIPPED.lock().unwrap_or_else(|e| e.into_inner());
    if !skipped.iter().any(|s| s.0 == engine && s.1 == name) {
        skipped.push((engine, name, reason));
    }
}

/// Shows what engines could not run; how many programs that are.
fn show_skipped() -> usize {
    let mut skipped = std::mem::take(&mut *SKIPPED.lock().unwrap_or_else(|e| e.into_inner()));
    skipped.sort();
    for (engine, name, reason) in &skipped {
        println!("skipped under {engine}: {name}: {reason}");
    }
    for engine in testing::ENGINES.iter().filter(|e| !is_there(e)) {
        let what = engine.lacks().unwrap_or_default();
        println!("skipped: everything under {}, since {what} is missing", engine.name);
    }
    skipped.len() + testing::ENGINES.iter().filter(|e| !is_there(e)).count()
}

/// Whether what an engine needs of the system is there.
pub fn is_there(engine: &testing::Engine) -> bool {
    static FOUND: std::sync::OnceLock<Vec<(&str, bool)>> = std::sync::OnceLock::new();
    let found = FOUND.get_or_init(|| testing::ENGINES.iter().map(|e| (e.name, e.lacks().is_none())).collect());
    found.iter().any(|f| f.0 == engine.name && f.1)
}

/// Whether all errors are limitations of the compiler.
pub fn is_limitation(s: &Session) -> bool {
    let mut errors = s.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    s.sink.has_errors() && errors.all(|d| d.code == "limitation")
}

fn first_error(s: &Session) -> String {
    let error = s.sink.diagnostics.iter().find(|d| d.severity == Severity::Error);
    error.map_or(String::new(), |d| d.message.clone())
}

/// Older processors with narrower vectors, SSE4.2 and AVX2, whose code this processor runs.
pub fn older_cpus() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    return if is_x86_feature_detected!("avx512f") {
        &["nehalem", "haswell"]
    } else if is_x86_feature_detected!("avx2") {
        &["nehalem"]
    } else {
        &[]
    };
    #[cfg(not(target_arch = "x86_64"))]
    &[]
}

/// The path of the command under test, which cargo built beside this program.
pub fn nyala() -> PathBuf {
    let name = format!("nyala{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    beside.unwrap_or_else(|| "nyala".into())
}

fn check_output(path: &Path, text: &str, expected: &[&str], code: i32, quick: bool, faults: &mut Vec<String>) {
    let device: &[&str] = if is_on_host(text) { &["--device", "host"] } else { &[] };
    for testing::Engine { name: engine, args, back_end, .. } in engines(quick).filter(is_there) {
        let mut command = Command::new(nyala());
        command.arg("run").args(args).args(device).arg(path).current_dir(root());
        match output_within(&mut command, TIME_LIMIT) {
            Ok((Some(1), _, stderr)) if back_end.needs.is_some() && stderr.contains("error[limitation]") => {
                let reason = stderr.lines().find_map(|l| l.strip_prefix("error[limitation]: ")).unwrap_or_default();
                skip(engine, path, reason.to_string());
            }
            Ok((status, stdout, stderr)) => {
                let lines: Vec<&str> = stdout.lines().collect();
                if lines != expected {
                    let found = if stdout.is_empty() { stderr.clone() } else { diff(&expected.join("\n"), &stdout) };
                    faults.push(format!("{engine}: output differs:\n{found}"));
                }
                if status != Some(code) {
                    faults.push(format!("{engine}: exit code {status:?}, expected {code}\n{stderr}"));
                }
            }
            Err(e) => faults.push(format!("{engine}: {e}")),
        }
    }
}

/// Runs a command, and stops it after `limit` of processor time. Returns its exit code, standard output and standard error.
pub fn output_within(command: &mut Command, limit: Duration) -> Result<(Option<i32>, String, String), String> {
    let ended = child::run(command, limit)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((ended.status.code(), text(&ended.stdout), text(&ended.stderr)))
}

/// Checks the rule `STAGE FN [loop]: "TEXT" == N`.
fn check_rule(path: &Path, text: &str, rule: &str) -> Result<(), String> {
    if let Some(rest) = rule.strip_prefix("same-residual ") {
        return check_same_residual(path, text, rest);
    }
    let malformed = || format!("malformed rule `{rule}`");
    let (subject, condition) = rule.split_once(':').ok_or_else(malformed)?;
    let words: Vec<&str> = subject.split_whitespace().collect();
    let (pattern, rest) = condition.trim().strip_prefix('"').and_then(|c| c.rsplit_once('"')).ok_or_else(malformed)?;
    let (relation, n) = rest.trim().split_once(' ').ok_or_else(malformed)?;
    let n: usize = n.trim().parse().map_err(|_| malformed())?;
    let (stage_name, function) = (*words.first().ok_or_else(malformed)?, *words.get(1).ok_or_else(malformed)?);
    let mut s = session(path, text);
    let function = (function != "*").then_some(function);
    let found = match words.get(2) {
        None if stage_name == "explain" => {
            return check_count(rule, &explained(path, text, function)?, pattern, relation, n);
        }
        None => nyala::emit(&mut s, stage_name, function),
        Some(&"loop") => nyala::emit_deepest_loop(&mut s, function.unwrap_or("main")),
        Some(_) => return Err(malformed()),
    };
    let found = found.map_err(|_| s.render(false))?;
    check_count(rule, &found, pattern, relation, n)
}

fn check_count(rule: &str, found: &str, pattern: &str, relation: &str, n: usize) -> Result<(), String> {
    let count = found.matches(pattern).count();
    let holds = match relation {
        "==" => count == n,
        "<=" => count <= n,
        ">=" => count >= n,
        _ => return Err(format!("malformed rule `{rule}`")),
    };
    if holds { Ok(()) } else { Err(format!("`{rule}` does not hold, it is {count}:\n{found}")) }
}

/// Checks the rule `same-residual OTHER FN`.
fn check_same_residual(path: &Path, text: &str, rule: &str) -> Result<(), String> {
    let (other, function) = rule.split_once(' ').ok_or_else(|| format!("malformed rule `same-residual {rule}`"))?;
    let other = path.with_file_name(other);
    let other_text = std::fs::read_to_string(&other).map_err(|e| format!("cannot read {}: {e}", other.display()))?;
    let residual = |path: &Path, text: &str| {
        let mut s = session(path, text);
        nyala::emit(&mut s, "residual", Some(function)).map_err(|_| s.render(false))
    };
    let (here, there) = (residual(path, text)?, residual(&other, &other_text)?);
    let (a, b) = (without_names(&here), without_names(&there));
    if a == b {
        Ok(())
    } else {
        Err(format!("another residual program than {}:\n{}", other.display(), diff(&there, &here)))
    }
}

/// IR text with names replaced by numbers in the order of their first occurrences. Operations, types and literals stay.
fn without_names(text: &str) -> String {
    const KEYWORDS: &[&str] =
        &["export", "foreign", "cont", "let", "graph", "mem", "cn", "branch", "bool", "true", "false"];
    let mut numbers = std::collections::HashMap::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if len == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let word = &rest[..len];
        let is_type = word.len() <= 3 && word[1..].parse::<u8>().is_ok();
        if c.is_ascii_digit() || is_type || KEYWORDS.contains(&word) || nyala_ir::Op::from_name(word).is_some() {
            out.push_str(word);
        } else {
            let next = numbers.len();
            let _ = write!(out, "n{}", numbers.entry(word).or_insert(next));
        }
        rest = &rest[len..];
    }
    out
}

/// Compares diagnostics with the `//~` comments, and with the `.stderr` file if there is one.
fn check_diagnostics(path: &Path, text: &str, bless: bool, faults: &mut Vec<String>) {
    let mut s = session(path, text);
    // Names are relative to the root, so that they do not depend on the machine.
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let mut named = Session::new(s.options.clone());
    named.add_file(shown, text);
    std::mem::swap(&mut s, &mut named);
    let through = |s: &mut Session| -> Result<(), nyala::Reported> {
        let world = s.graph()?;
        // Faults that only appear when the program runs.
        if path.starts_with(root().join("tests/ui"))
            && s.sink.diagnostics.is_empty()
            && world.find_root("main").is_some()
        {
            s.interpret(&world, "main", &["main".into()], &[])?;
        }
        let residual = s.residual(&world)?;
        s.flat(&residual).map(drop)
    };
    let _ = through(&mut s);
    let mut expected: Vec<(usize, String)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some((_, comment)) = line.split_once("//~") {
            let up = comment.chars().take_while(|&c| c == '^').count();
            let down = comment[up..].chars().take_while(|&c| c == 'v').count();
            expected.push((i + 1 + down - up, comment[up + down..].trim().to_string()));
        }
    }
    if expected.is_empty() {
        faults.push("no line says which diagnostic it has".into());
    }
    for d in &s.sink.diagnostics {
        let (line, _) = s.sources.line_col(d.primary.span);
        let severity = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let found = format!("{severity}[{}]: {}", d.code, d.message);
        match expected.iter().position(|(l, e)| *l == line && found.starts_with(e.as_str())) {
            Some(i) => drop(expected.remove(i)),
            None => faults.push(format!("unexpected, line {line}: {found}")),
        }
    }
    for (line, e) in expected {
        faults.push(format!("not reported, line {line}: {e}"));
    }
    let golden = path.with_extension("stderr");
    // Only a code's first test has the whole output. Others get it with an empty file, which is then filled.
    let is_first = path.file_stem() == path.parent().and_then(Path::file_name);
    if golden.exists() || bless && is_first {
        compare(&golden, &s.render(false), bless, faults);
    }
}

fn run_ir(path: &Path, text: &str, bless: bool, faults: &mut Vec<String>) {
    let (input, expected) = text.split_once("; ---\n").unwrap_or((text, ""));
    let Some(pass) = input.lines().next().and_then(|l| l.strip_prefix("; test ")) else {
        return faults.push("the first line is not `; test PASS`".into());
    };
    if pass.trim() == "run" {
        return crate::evaluate::run(text, faults);
    }
    let found = match nyala::run_pass(pass.trim(), input) {
        Ok(found) => found,
        Err(e) => return faults.push(e),
    };
    let found: String = found.lines().map(|l| format!("; {l}\n")).collect();
    if bless {
        if let Err(e) = std::fs::write(path, format!("{}\n; ---\n{found}", input.trim_end())) {
            faults.push(format!("cannot write: {e}"));
        }
    } else if found != expected {
        faults.push(format!("`{pass}` gives something else (`./x bless` accepts it):\n{}", diff(expected, &found)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_tests_run_under_engines_that_exist() {
        let chosen: Vec<&str> = engines(true).map(|e| e.name).collect();
        assert_eq!(chosen, QUICK_ENGINES);
        assert_eq!(engines(false).count(), testing::ENGINES.len());
    }
}
