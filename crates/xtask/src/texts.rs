//! Text tests: programs and IR under `tests/`, with what must hold as comments in them.
//!
//! | line | meaning |
//! |---|---|
//! | `//? f(2, 5) == 32` | holds under every engine, the arguments known and unknown ([`nyala_driver::testing`]) |
//! | `fn test_f() -> () { … }` | comes to its end under every engine |
//! | `//> text` | a line of what `main` prints, under every engine; `//= 3`: its exit code |
//! | `//! residual f: "mul(" == 2` | the text occurs so often in the function at that stage; `<=` too; `*` is the whole stage |
//! | `//! flat f loop: "load" <= 9` | the same in the deepest loop with most instructions of the function |
//! | `//! explain f: "only call" == 1` | the same in what `nyala explain --fn f` says |
//! | `//! bytes f <= 65536` | the machine code of the function has at most so many bytes; `*` is all code of the object together |
//! | `//! pe-budget 0.01` | for the whole file: the budget of partial evaluation, as the option says it |
//! | `//! device host` | for the whole file: kernels run on the host |
//! | `//! stage cuda` | for the whole file, in `tests/ui`: the diagnostics are those of this stage of `nyala emit` |
//! | `//! deny CODE` | for the whole file: warnings of this code are errors, as the option says it |
//! | `//! tune NAME: 8, 16` | nothing is checked: values for `nyala tune` |
//! | `//! same-residual OTHER f` | the file OTHER beside this one leaves the same of f, but for names |
//! | `//~ error[code]: text` | on a line (`^`: on the next one; `v`: on the one before): this diagnostic is reported there, and no others; a `main` of `tests/ui` without findings runs in the interpreter |
//! | a file in `tests/run/vectorize` | its queries hold in code for older processors as well (not with `--quick`, which also leaves out engines) |
//! | a file with `.residual`, `.explain`, `.lanes`, `.kernels` or `.stderr` for `.impala` | the whole residual program, what `nyala explain` says, also with `--vector` and `--kernels`, the whole output |
//!
//! Programs in Sierra and VecImp, files `.sierra` and `.vecimp`, have the same lines. Programs in Markdown pages are tests too: [`crate::snippets`]. A test under `tests/ir/` has `; test PASS`, IR, and
//! after `; ---` the expected IR or the messages of the pass. `; test PASS WORD…` says what else the pass depends on: `host` (kernels
//! run there), checks, a device's back end. The expected text is that which `x bless` writes, like the files of the last row. For `; test run`, see
//! [`crate::evaluate`].

use crate::costs::{self, Part, Table};
use crate::memory::Known;
use crate::queue::{Answer, Order};
use crate::results::Results;
use crate::root;
use nyala_base::Severity;
use nyala_driver::{Failed, Files, FrontEnd, Graph, Options, Report, testing};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The limit on the processor time of a program of a text test, under one engine.
pub const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The units that a run may take, twenty times, before its cost is known.
const UNKNOWN: f64 = 30.0;

/// The files after which their costs are written, and a unit is measured anew.
const BLESSED_AT_ONCE: usize = 50;

/// How much of the text tests runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// As in the gate, but under [`QUICK_ENGINES`] only.
    Quick,
    /// The parts of `tests/costs.txt`, or all tests of chosen files, compiled for [`gate_cpu`].
    Gate,
    /// All tests, compiled for [`gate_cpu`], without what is kept of earlier runs.
    Measured,
    /// Everything, compiled for this processor and for older ones, without what is kept of earlier runs.
    All,
}

/// One of the ways in which a file is tested, which together find its faults.
#[derive(Clone, Copy)]
enum Run {
    /// The tests and the output under an engine; compiled for an older processor if one is named.
    Engine(testing::Engine, Option<&'static str>),
    /// Rules, expected outputs and diagnostics, which need no engine.
    Text,
    /// Function values that are left ([`crate::closures`]).
    Closures,
}

impl Run {
    fn name(self) -> String {
        match self {
            Run::Engine(engine, None) => engine.name.into(),
            Run::Engine(engine, Some(cpu)) => format!("{} --cpu {cpu}", engine.name),
            Run::Text => "text".into(),
            Run::Closures => "closures".into(),
        }
    }

    /// Whether it is native code of the file.
    fn is_native(self) -> bool {
        matches!(self, Run::Engine(engine, _) if engine.name != "interp")
    }
}

/// The ways in which a file is tested.
fn runs(path: &Path, text: &str, tier: Tier) -> Vec<Run> {
    let mut runs = Vec::new();
    let is_program =
        path.extension().is_some_and(|e| ["impala", "ispc", "sierra", "vecimp"].iter().any(|known| e == *known));
    if is_program && !is_of_diagnostics(path, text) {
        if !testing::find(&shown(path), text).tests.is_empty() || expected_output(text).is_some() {
            runs.extend(engines(tier).map(|e| Run::Engine(e, None)));
        }
        // The code for lanes depends on the processor.
        if tier != Tier::Quick && path.starts_with(root().join("tests/run/vectorize")) {
            let optimized = *testing::ENGINES.iter().find(|e| e.name == "-O3").expect("the optimizing engine");
            runs.extend(older_cpus(tier).map(|cpu| Run::Engine(optimized, Some(cpu))));
        }
        if tier != Tier::Quick && crate::closures::counts_in(path) {
            runs.push(Run::Closures);
        }
    }
    runs.push(Run::Text);
    runs
}

/// The files of text tests whose paths contain `filter`.
fn files(filter: Option<&str>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["run", "residual", "explain", "seeds", "ui", "ir"] {
        collect(&root().join("tests").join(folder), &mut files);
    }
    for folder in ["examples", "lib", "docs", "bench"] {
        collect(&root().join(folder), &mut files);
    }
    files.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|page| root().join(page)));
    files.sort();
    files.retain(|f| filter.is_none_or(|t| shown(f).contains(t)));
    files
}

/// A path as messages and the table of costs name it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// What a tier leaves out of the text tests.
#[derive(Default)]
pub struct LeftOut {
    /// Runs of a file under an engine.
    pub runs: usize,
    /// Tests of files of which only a part runs, once for each engine that does not run it.
    pub tests: usize,
}

/// The orders for the tests whose paths contain `filter`; files that a filter chooses are tested whole. `bless` writes expected
/// outputs, and runs nothing else.
pub fn orders(filter: Option<&str>, bless: bool, tier: Tier) -> Result<(Vec<Order>, LeftOut), String> {
    let table = Table::read()?;
    let (mut orders, mut left_out) = (Vec::new(), LeftOut::default());
    for path in files(filter) {
        // Outside of the game's programs, a benchmark is only compiled.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = shown(&path);
        let is_bench = name.starts_with("bench/") && !name.starts_with("bench/game/");
        for run in runs(&path, &text, tier) {
            if is_bench && !matches!(run, Run::Closures) || bless && !matches!(run, Run::Text) {
                continue;
            }
            let line = table.line(&name, &run.name());
            let is_whole = bless || filter.is_some() || [Tier::Measured, Tier::All].contains(&tier);
            let (part, cost) = if is_whole { (Part::Whole, line.whole) } else { (line.part, line.gate) };
            let part = match part {
                Part::None => {
                    left_out.runs += 1;
                    continue;
                }
                Part::OneIn(n) => {
                    let tests = testing::find(&name, &text).tests.len();
                    // A file may have lost tests since it was measured.
                    let n = n.min(tests).max(1);
                    left_out.tests += tests - (0..tests).filter(|i| is_in_part(*i, run, n)).count();
                    n
                }
                Part::Whole => 1,
            };
            let tier = format!("{tier:?}");
            let words = ["text".into(), name.clone(), run.name(), part.to_string(), tier, bless.to_string()];
            orders.push(Order { words: words.into(), cost });
        }
    }
    Ok((orders, left_out))
}

/// Measures the files whose paths contain `filter`, first whole, then in parts, and writes their lines of the table.
pub fn bless_costs(filter: Option<&str>) -> Result<bool, String> {
    let mut table = Table::read().unwrap_or_default();
    let (mut orders, _) = orders(filter, false, Tier::Measured)?;
    // What they cost is not known yet.
    orders.iter_mut().for_each(|order| order.cost = order.cost.max(UNKNOWN));
    let mut files: Vec<(String, Vec<Order>)> = Vec::new();
    for order in orders {
        match files.last_mut() {
            Some((path, orders)) if *path == order.words[1] => orders.push(order),
            _ => files.push((order.words[1].clone(), vec![order])),
        }
    }
    // Files that are gone lose their lines.
    table.0.retain(|(path, _), _| root().join(path).exists());
    let mut failed = BTreeSet::new();
    let n_files = files.len();
    let mut files = files.into_iter();
    for n_done in (0..n_files).step_by(BLESSED_AT_ONCE) {
        println!("costs of files {} to {} of {n_files}", n_done + 1, n_files.min(n_done + BLESSED_AT_ONCE));
        bless_costs_of(files.by_ref().take(BLESSED_AT_ONCE).collect(), &mut table, &mut failed)?;
        std::fs::write(costs::path(), table.render()).map_err(|e| format!("cannot write tests/costs.txt: {e}"))?;
    }
    println!("the gate costs {:.0} units of {:.0}, without what is not listed", table.sum(), costs::MOST);
    failed.iter().for_each(|path| println!("FAILED {path}: its costs mean nothing"));
    Ok(failed.is_empty())
}

/// Measures files whole, then in parts, and gives the table their lines.
fn bless_costs_of(
    files: Vec<(String, Vec<Order>)>,
    table: &mut Table,
    failed: &mut BTreeSet<String>,
) -> Result<(), String> {
    let mut measured = |orders: Vec<Order>| -> Result<BTreeMap<(String, String), f64>, String> {
        let mut results = Results::new(false)?;
        crate::queue::run(orders, |order, answer| results.add(order, answer))?;
        failed.extend(results.faults.into_keys());
        Ok(results.took)
    };
    let words = |path: &str, run: &str, part: usize| {
        ["text", path, run, &part.to_string(), "Measured", "false"].map(String::from).to_vec()
    };
    let paths: BTreeSet<String> = files.iter().map(|f| f.0.clone()).collect();
    let whole = measured(files.into_iter().flat_map(|f| f.1).collect())?;
    table.0.retain(|(path, _), _| !paths.contains(path));
    let mut in_parts = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let tests = if expected_output(&text).is_none() { testing::find(path, &text).tests.len() } else { 1 };
        for run in runs(&root().join(path), &text, Tier::Gate) {
            let key = (path.clone(), run.name());
            let cost = whole.get(&key).copied().unwrap_or_default();
            let part = costs::part(cost, if matches!(run, Run::Engine(..)) { tests } else { 1 });
            if let Part::OneIn(n) = part {
                in_parts.push(Order { words: words(path, &run.name(), n), cost: cost / n as f64 });
            }
            table.0.insert(key, costs::Line { whole: cost, part, gate: cost });
        }
    }
    for (key, took) in measured(in_parts)? {
        if let Some(line) = table.0.get_mut(&key) {
            line.gate = took;
        }
    }
    for path in &paths {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let of_file = runs(&root().join(path), &text, Tier::Gate);
        let gate = |run: &Run| table.line(path, &run.name()).gate;
        let cheapest = of_file.iter().filter(|r| r.is_native()).min_by(|a, b| gate(a).total_cmp(&gate(b)));
        let cheapest = cheapest.map(|r| r.name());
        for run in &of_file {
            let is_last = !run.is_native() || cheapest == Some(run.name());
            if let Some(line) = table.0.get_mut(&(path.clone(), run.name()))
                && !costs::fits(line.gate, is_last)
            {
                (line.part, line.gate) = (Part::None, 0.0);
            }
        }
    }
    table.0.retain(|_, line| line.whole >= costs::LISTED);
    Ok(())
}

/// Whether the gate runs the test of this number, if it runs one in `n`. Each engine has others.
fn is_in_part(number: usize, run: Run, n: usize) -> bool {
    let engine = testing::ENGINES.iter().position(|e| e.name == run.name()).unwrap_or(testing::ENGINES.len());
    (number + engine).is_multiple_of(n)
}

/// Performs an order: its words after the first.
pub fn perform(words: &[String]) -> Answer {
    let mut answer = Answer::default();
    let [path, run, part, tier, bless] = words else {
        answer.faults.push(format!("malformed order {words:?}"));
        return answer;
    };
    let tiers = [Tier::Quick, Tier::Gate, Tier::Measured, Tier::All];
    let tier = tiers.into_iter().find(|t| format!("{t:?}") == *tier).unwrap_or(Tier::Gate);
    let path = root().join(path);
    match std::fs::read_to_string(&path) {
        Err(e) => answer.faults.push(format!("cannot read: {e}")),
        Ok(text) => match runs(&path, &text, tier).into_iter().find(|r| r.name() == *run) {
            Some(run) => {
                run_file(&path, &text, run, part.parse().unwrap_or(1), bless == "true", tier, &mut answer);
            }
            None => answer.faults.push(format!("there is no run `{run}`")),
        },
    }
    answer
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
        } else if path
            .extension()
            .is_some_and(|e| ["impala", "ir", "ispc", "md", "sierra", "vecimp"].iter().any(|known| e == *known))
        {
            files.push(path);
        }
    }
}

/// Whether a test is about diagnostics.
pub fn is_of_diagnostics(path: &Path, text: &str) -> bool {
    text.contains("//~") || path.starts_with(root().join("tests/ui"))
}

/// Runs all of a program that a page has. Returns its faults.
pub fn run_program(path: &Path) -> Vec<String> {
    let mut answer = Answer::default();
    match std::fs::read_to_string(path) {
        Ok(text) => {
            for run in runs(path, &text, Tier::Quick) {
                run_file(path, &text, run, 1, false, Tier::Quick, &mut answer);
            }
        }
        Err(e) => answer.faults.push(format!("cannot read: {e}")),
    }
    answer.faults
}

/// Tests a file in one way: one in `part` of its tests.
fn run_file(path: &Path, text: &str, run: Run, part: usize, bless: bool, tier: Tier, answer: &mut Answer) {
    match run {
        Run::Text => answer.faults.extend(check_text(path, text, bless)),
        Run::Closures => answer.faults.extend(crate::closures::check(path)),
        Run::Engine(engine, _) if !is_there(&engine) => {}
        Run::Engine(engine, older) => {
            let suite =
                testing::find_some(&path.display().to_string(), text, |i| part <= 1 || is_in_part(i, run, part));
            let cpu = older.or_else(|| cpu(tier));
            if suite.tests.iter().any(|t| !t.entries.is_empty()) {
                check_tests(path, text, &suite, engine, cpu, tier, answer);
            }
            if let Some((output, code)) = expected_output(text).filter(|_| older.is_none()) {
                check_output(path, text, &output, code, engine, cpu, answer);
            }
        }
    }
}

/// The lines that `main` should print, and its exit code, if a test has them.
pub fn expected_output(text: &str) -> Option<(Vec<&str>, i32)> {
    // Spaces at the end of a line are part of the output.
    let output = text.lines().filter_map(|l| l.trim_start().strip_prefix("//>"));
    let output: Vec<&str> = output.map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
    let code = text.lines().find_map(|l| l.trim().strip_prefix("//=")).and_then(|c| c.trim().parse().ok());
    (!output.is_empty() || code.is_some()).then(|| (output, code.unwrap_or(0)))
}

/// Checks what needs no engine. Returns the faults.
fn check_text(path: &Path, text: &str, bless: bool) -> Vec<String> {
    if path.extension().is_some_and(|e| e == "md") {
        return crate::snippets::run_page(path, bless);
    }
    let mut faults = Vec::new();
    if path.extension().is_some_and(|e| e == "ir") {
        run_ir(path, text, bless, &mut faults);
        return faults;
    }
    if is_of_diagnostics(path, text) {
        check_diagnostics(path, text, bless, &mut faults);
        return faults;
    }
    let mut checks_something = !testing::find(&shown(path), text).tests.is_empty() || expected_output(text).is_some();
    let rules = text.lines().filter_map(|l| l.trim().strip_prefix("//!")).map(str::trim);
    // Candidates are only for `nyala tune`.
    for rule in rules.filter(|r| !["pe-budget ", "deny ", "device host", "tune "].iter().any(|w| r.starts_with(w))) {
        checks_something = true;
        if let Err(e) = check_rule(path, text, rule) {
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
                "residual" => stage(path, text, kind),
                "lanes" => lanes(path, text),
                "kernels" => kernels(path, text),
                _ => explained(path, text, None),
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
            if let Err(e) = stage(path, text, "flat") {
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

/// The program of a text test, with the options that its rules ask for.
pub fn program(path: &Path, text: &str) -> (Options, Files) {
    let budget = text.lines().find_map(|l| l.strip_prefix("//! pe-budget ")).and_then(|n| n.trim().parse().ok());
    let pe_budget = budget.unwrap_or(Options::default().pe_budget);
    let mut deny: Vec<String> =
        text.lines().filter_map(|l| l.strip_prefix("//! deny ")).map(|code| code.trim().into()).collect();
    // What libraries assert of their kernels is only a warning for programs.
    if !path.starts_with(root().join("tests/ui")) {
        deny.push("ensure-failed".into());
    }
    let device = if is_on_host(text) { nyala_driver::Device::Host } else { nyala_driver::Device::Own };
    let cpu = cpu(Tier::Gate).map(String::from);
    let mut files = Files::of(path.display().to_string(), text);
    for other in files_of_library(path) {
        let text = std::fs::read_to_string(&other).unwrap_or_default();
        files.add(other.display().to_string(), text);
    }
    (Options { verify: true, device, pe_budget, deny, cpu, ..Options::default() }, files)
}

/// The graph of a text test, with paths from the root.
fn graph(path: &Path, text: &str) -> Result<Graph, Failed> {
    let (options, files) = program(path.strip_prefix(root()).unwrap_or(path), text);
    FrontEnd::new(options, files).graph()
}

/// The other files of an embedded library that form one module with it.
fn files_of_library(path: &Path) -> Vec<PathBuf> {
    let (_, mut files) = nyala_driver::libraries::siblings(path).unwrap_or_default();
    files.retain(|f| f != path);
    files
}

/// The program at a stage, as `nyala emit` prints it.
fn stage(path: &Path, text: &str, stage: &str) -> Result<String, String> {
    let (options, files) = program(path, text);
    let text = nyala_driver::emit(&options, &files, stage, None);
    text.map(|(text, _)| text).map_err(|failed| failed.render(false))
}

/// The output of `nyala explain`, for the program or for one function.
fn explained(path: &Path, text: &str, function: Option<&str>) -> Result<String, String> {
    let explained = graph(path, text).and_then(|graph| nyala_driver::explain::explain(&graph));
    let mut explained = explained.map_err(|failed| failed.render(false))?;
    let said = nyala_driver::explain::text(&explained.report, function, usize::MAX);
    said.map_err(|d| explained.residual.report.report(*d).render(false))
}

/// The output of `nyala explain --vector`.
fn lanes(path: &Path, text: &str) -> Result<String, String> {
    let residual = graph(path, text).and_then(|graph| graph.residual());
    match residual.and_then(|residual| nyala_driver::explain::vector_code::notes(residual, None)) {
        Ok((notes, report)) => Ok(nyala_driver::explain::vector_code::text(&report.sources, &notes)),
        Err(failed) => Err(failed.render(false)),
    }
}

/// The output of `nyala explain --kernels`.
fn kernels(path: &Path, text: &str) -> Result<String, String> {
    let flat = graph(path, text).and_then(|graph| graph.residual()?.split(&nyala_driver::pipelines::LLVM));
    let found = flat.map(|flat| nyala_driver::explain::kernels::kernels(&flat, None));
    found.map(|kernels| nyala_driver::explain::kernels::text(&kernels)).map_err(|failed| failed.render(false))
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
fn engines(tier: Tier) -> impl Iterator<Item = testing::Engine> {
    let is_chosen = move |e: &&testing::Engine| tier != Tier::Quick || QUICK_ENGINES.contains(&e.name);
    testing::ENGINES.iter().filter(is_chosen).copied()
}

/// Runs the queries and test functions of a file, all in this process.
fn check_tests(
    path: &Path,
    text: &str,
    suite: &testing::Suite,
    engine: testing::Engine,
    cpu: Option<&str>,
    tier: Tier,
    answer: &mut Answer,
) {
    let (mut options, mut files) = program(path, text);
    options.cpu = cpu.map(String::from);
    options.cache = (![Tier::Measured, Tier::All].contains(&tier)).then(crate::work::objects);
    files.add(path.display().to_string(), suite.entries.clone());
    let ran = testing::graph(&options, &files, engine).and_then(|graph| {
        let known = (tier == Tier::Quick).then(|| Known::of(&graph, suite, engine));
        if known.as_ref().is_some_and(Known::has_passed) {
            answer.is_known = true;
            return Ok(());
        }
        let n_faults = answer.faults.len();
        let ran = testing::run_graph(&graph, &files, suite, engine, 0, |i, outcome| {
            if let Some(testing::Outcome::Failed(why)) = outcome {
                answer.faults.push(format!("line {}: `{}`: {why}", suite.tests[i].line, suite.tests[i].name));
            }
        });
        if ran.is_ok() && answer.faults.len() == n_faults {
            known.inspect(Known::pass);
        }
        ran.map(drop)
    });
    match ran {
        Ok(()) => {}
        Err(failed) if engine.back_end.needs.is_some() && is_limitation(&failed) => {
            answer.skipped.push(format!("{} under {}: {}", shown(path), engine.name, first_error(&failed)));
        }
        Err(failed) => answer.faults.push(failed.render(false)),
    }
}

/// Whether what an engine needs of the system is there.
pub fn is_there(engine: &testing::Engine) -> bool {
    static FOUND: std::sync::OnceLock<Vec<(&str, bool)>> = std::sync::OnceLock::new();
    let found = FOUND.get_or_init(|| testing::ENGINES.iter().map(|e| (e.name, e.lacks().is_none())).collect());
    found.iter().any(|f| f.0 == engine.name && f.1)
}

/// Whether all errors say what the compiler, a platform or a processor lacks.
pub fn is_limitation(report: &Report) -> bool {
    let mut errors = report.sink.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    report.sink.has_errors() && errors.all(|d| nyala_base::diagnostics::LACKS.contains(&d.code))
}

pub fn first_error(report: &Report) -> String {
    let error = report.sink.diagnostics.iter().find(|d| d.severity == Severity::Error);
    error.map_or(String::new(), |d| d.message.clone())
}

/// The processor that the gate compiles for, whichever it runs on; `None` is this one.
pub fn gate_cpu() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    return if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2") {
        Some("x86-64-v3")
    } else {
        Some("x86-64-v2")
    };
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The processor that a tier compiles for; `None` is this one.
fn cpu(tier: Tier) -> Option<&'static str> {
    if tier == Tier::All { None } else { gate_cpu() }
}

/// Processors with narrower vectors, SSE4.2 and AVX2, for whose code a tier runs tests of lanes, too. The gate has the same on
/// each machine.
pub fn older_cpus(tier: Tier) -> impl Iterator<Item = &'static str> {
    #[cfg(target_arch = "x86_64")]
    let (avx512, avx2) = (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx2"));
    #[cfg(not(target_arch = "x86_64"))]
    let (avx512, avx2) = (false, false);
    let cpus = [("nehalem", avx2), ("haswell", avx512 && tier == Tier::All)];
    cpus.into_iter().filter(|c| c.1).map(|c| c.0)
}

/// The path of the command under test, which cargo built beside this program.
pub fn nyala() -> PathBuf {
    let name = format!("nyala{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    beside.unwrap_or_else(|| "nyala".into())
}

fn check_output(
    path: &Path,
    text: &str,
    expected: &[&str],
    code: i32,
    engine: testing::Engine,
    cpu: Option<&str>,
    answer: &mut Answer,
) {
    let mut command = Command::new(nyala());
    command.arg("run").args(engine.args).args(cpu.iter().flat_map(|cpu| ["--cpu", cpu]));
    if is_on_host(text) {
        command.args(["--device", "host"]);
    }
    command.arg(path).current_dir(root());
    match output_within(&mut command, TIME_LIMIT) {
        Ok((Some(1), _, stderr)) if engine.back_end.needs.is_some() && stderr.contains("error[limitation]") => {
            let reason = stderr.lines().find_map(|l| l.strip_prefix("error[limitation]: ")).unwrap_or_default();
            answer.skipped.push(format!("{} under {}: {reason}", shown(path), engine.name));
        }
        Ok((status, stdout, stderr)) => {
            let lines: Vec<&str> = stdout.lines().collect();
            if lines != expected {
                let found = if stdout.is_empty() { stderr.clone() } else { diff(&expected.join("\n"), &stdout) };
                answer.faults.push(format!("output differs:\n{found}"));
            }
            if status != Some(code) {
                answer.faults.push(format!("exit code {status:?}, expected {code}\n{stderr}"));
            }
        }
        Err(e) => answer.faults.push(e),
    }
}

/// Runs a command, and stops it after that much processor time. Returns its exit code, standard output and standard error.
pub fn output_within(command: &mut Command, limit: Duration) -> Result<(Option<i32>, String, String), String> {
    let ended = crate::child::run(command, limit)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((ended.status.code(), text(ended.stdout), text(ended.stderr)))
}

/// Checks the rule `STAGE FN [loop]: "TEXT" == N`.
fn check_rule(path: &Path, text: &str, rule: &str) -> Result<(), String> {
    if let Some(rest) = rule.strip_prefix("same-residual ") {
        return check_same_residual(path, text, rest);
    }
    if let Some(rest) = rule.strip_prefix("bytes ") {
        return check_bytes(path, text, rest);
    }
    let malformed = || format!("malformed rule `{rule}`");
    let (subject, condition) = rule.split_once(':').ok_or_else(malformed)?;
    let words: Vec<&str> = subject.split_whitespace().collect();
    let (pattern, rest) = condition.trim().strip_prefix('"').and_then(|c| c.rsplit_once('"')).ok_or_else(malformed)?;
    let (relation, n) = rest.trim().split_once(' ').ok_or_else(malformed)?;
    let n: usize = n.trim().parse().map_err(|_| malformed())?;
    let (stage_name, function) = (*words.first().ok_or_else(malformed)?, *words.get(1).ok_or_else(malformed)?);
    let (options, files) = program(path, text);
    let function = (function != "*").then_some(function);
    let found = match words.get(2) {
        None if stage_name == "explain" => {
            return check_count(rule, &explained(path, text, function)?, pattern, relation, n);
        }
        None if stage_name == "device" => nyala_driver::emit(&options, &files, stage_name, None),
        None => nyala_driver::emit(&options, &files, stage_name, function),
        Some(&"loop") => nyala_driver::emit_deepest_loop(&options, &files, function.unwrap_or("main")),
        Some(_) => return Err(malformed()),
    };
    let (found, _) = found.map_err(|failed| failed.render(false))?;
    match function.filter(|_| stage_name == "device") {
        Some(name) => check_count(rule, function_of_device(&found, name)?, pattern, relation, n),
        None => check_count(rule, &found, pattern, relation, n),
    }
}

/// A kernel or a function in the text of the stage `device`, from its head to its end.
fn function_of_device<'a>(text: &'a str, name: &str) -> Result<&'a str, String> {
    let is_head = |line: &str| line.split('(').next().is_some_and(|head| head.split(' ').next_back() == Some(name));
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1));
    let mut heads = starts.filter(|&i| ["kernel ", "func "].iter().any(|word| text[i..].starts_with(word)));
    let head = heads.find(|&i| text[i..].lines().next().is_some_and(is_head));
    let rest = &text[head.ok_or_else(|| format!("no kernel or function `{name}`:\n{text}"))?..];
    Ok(rest.find("\n}").map_or(rest, |end| &rest[..end]))
}

/// Checks the rule `bytes FN <= N`.
fn check_bytes(path: &Path, text: &str, rule: &str) -> Result<(), String> {
    let malformed = || format!("malformed rule `bytes {rule}`");
    let [name, "<=", most] = rule.split_whitespace().collect::<Vec<_>>()[..] else { return Err(malformed()) };
    let most: u64 = most.parse().map_err(|_| malformed())?;
    let flat = graph(path, text).and_then(|graph| graph.residual()?.flat());
    let object = flat.and_then(|flat| nyala_driver::Code::of(&flat, None)?.object());
    let object = object.map_err(|failed| failed.render(false))?;
    let file = object::File::parse(&*object).map_err(|e| format!("an object made by LLVM cannot be read: {e}"))?;
    let functions = file.symbols().filter(|s| s.kind() == object::SymbolKind::Text && s.size() > 0);
    let sizes: BTreeMap<&str, u64> = functions.filter_map(|s| Some((s.name().ok()?, s.size()))).collect();
    let found = if name == "*" { Some(sizes.values().sum()) } else { sizes.get(name).copied() };
    match found.filter(|&bytes| bytes > 0) {
        Some(bytes) if bytes <= most => Ok(()),
        Some(bytes) => Err(format!("`bytes {rule}` does not hold, it is {bytes}: {sizes:?}")),
        None => Err(format!("`bytes {rule}`: there is no code of it: {sizes:?}")),
    }
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
        let (options, files) = program(path, text);
        let emitted = nyala_driver::emit(&options, &files, "residual", Some(function));
        emitted.map(|(text, _)| text).map_err(|failed| failed.render(false))
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
    let (options, _) = program(path, text);
    // Names are relative to the root, so that they do not depend on the machine.
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let through = || {
        if let Some(stage) = text.lines().find_map(|l| l.strip_prefix("//! stage ")) {
            return Ok(nyala_driver::emit(&options, &Files::of(shown, text), stage.trim(), None)?.1);
        }
        let graph = FrontEnd::new(options, Files::of(shown, text)).graph()?;
        // Faults that only appear when the program runs.
        if path.starts_with(root().join("tests/ui"))
            && graph.report.sink.diagnostics.is_empty()
            && graph.world.find_root("main").is_some()
        {
            graph.interpret("main", &["main".into()], &[])?;
        }
        Ok(graph.residual()?.flat()?.report)
    };
    let report = through().unwrap_or_else(|failed: Failed| *failed);
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
    for d in &report.sink.diagnostics {
        let (line, _) = report.sources.line_col(d.primary.span);
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
        compare(&golden, &report.render(false), bless, faults);
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
    let found = match nyala_driver::run_pass(pass.trim(), input) {
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
        let chosen: Vec<&str> = engines(Tier::Quick).map(|e| e.name).collect();
        assert_eq!(chosen, QUICK_ENGINES);
        assert_eq!(engines(Tier::Gate).count(), testing::ENGINES.len());
    }

    #[test]
    fn engines_share_the_tests_of_a_file() {
        let n = testing::ENGINES.len();
        for number in 0..2 * n {
            let of_engine = |e: &&testing::Engine| is_in_part(number, Run::Engine(**e, None), n);
            assert_eq!(testing::ENGINES.iter().filter(of_engine).count(), 1);
        }
    }
}
