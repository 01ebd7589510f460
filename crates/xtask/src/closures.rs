//! Counts the function values that remain after specialization. Partial evaluation removes functions that are passed as
//! values; a program should keep heap environments and indirect calls only if it chooses functions at run time.
//! `tests/closures.txt` has the numbers of each program; a program that is not listed there has none. `x bless
//! closures` writes the file: read the difference before you accept it. Environments that `nyala explain` does not list
//! are counted too; there should be none. Records of continuations that are values look like environments, but are not
//! functions of the program.
//!
//! Separate from the other text tests since it counts in all programs: tests, libraries, examples and benchmarks.

use crate::{root, texts};
use nyala_base::Span;
use nyala_driver::{Flat, FrontEnd, testing};
use nyala_flat::{Callee, InstOp, Module, Terminator};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const FOLDERS: &[&str] = &["bench", "examples", "lib", "tests/explain", "tests/residual", "tests/run", "tests/seeds"];

const HEADER: &str =
    "# Heap environments and indirect calls in the flat code of each program that has any; `x bless closures`\n";

/// The numbers of places that make heap environments, of indirect calls, and of environments that `nyala explain` does
/// not list.
type Counts = (usize, usize, usize);

fn golden() -> PathBuf {
    root().join("tests/closures.txt")
}

/// Writes the numbers of all programs.
pub fn bless() -> Result<bool, String> {
    std::fs::write(golden(), render(&count_all())).map_err(|e| format!("cannot write tests/closures.txt: {e}"))?;
    Ok(true)
}

/// Whether a file is one of those whose values are counted.
pub fn counts_in(path: &Path) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(root().join(folder)))
}

/// Compares a program's numbers with its line; its fault.
pub fn check(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(golden()).unwrap_or_default();
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let expected: String = text.lines().filter(|l| l.starts_with(&format!("{name}: "))).collect();
    let found = count_file(path).filter(|&(environments, calls, _)| (environments, calls) != (0, 0));
    let found = found.map(|counts| line(&name, counts)).unwrap_or_default();
    (expected != found.trim_end()).then(|| {
        let shown =
            |line: &str| if line.is_empty() { "no function values".into() } else { line.trim_end().to_string() };
        format!(
            "function values are left (`./x bless closures` accepts it):\n- {}\n+ {}",
            shown(&expected),
            shown(&found)
        )
    })
}

/// Lines about files that are not there.
pub fn stale() -> Vec<String> {
    let text = std::fs::read_to_string(golden()).unwrap_or_default();
    let paths = text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| Some(l.split_once(": ")?.0.to_string()));
    paths.filter(|path| !root().join(path).exists()).collect()
}

fn render(counts: &BTreeMap<String, Counts>) -> String {
    let lines: String = counts.iter().map(|(path, counts)| line(path, *counts)).collect();
    HEADER.to_string() + &lines
}

fn line(path: &str, (environments, calls, unlisted): Counts) -> String {
    let unlisted = match unlisted {
        0 => String::new(),
        n => format!(", {n} environments that `explain` lacks"),
    };
    format!("{path}: {environments} environments, {calls} indirect calls{unlisted}\n")
}

/// The numbers of all programs that have function values left.
fn count_all() -> BTreeMap<String, Counts> {
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| texts::collect(&root().join(folder), &mut files));
    files.retain(|f| f.extension().is_some_and(|e| e == "impala"));
    let next = AtomicUsize::new(0);
    let all: Mutex<BTreeMap<String, Counts>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get()) {
            let worker = std::thread::Builder::new().stack_size(512 << 20);
            let spawned = worker.spawn_scoped(scope, || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(counts) =
                        count_file(file).filter(|&(environments, calls, _)| (environments, calls) != (0, 0))
                    else {
                        continue;
                    };
                    let path = file.strip_prefix(root()).unwrap_or(file).display().to_string();
                    all.lock().unwrap_or_else(|e| e.into_inner()).insert(path, counts);
                }
            });
            drop(spawned);
        }
    });
    all.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// The numbers of a program, with its tests exported. `None` if it does not compile, which other tests report.
fn count_file(path: &Path) -> Option<Counts> {
    let text = std::fs::read_to_string(path).ok()?;
    let (mut options, mut files) = texts::program(path, &text);
    // Each test would have copies of its own.
    options.together = true;
    let suite = testing::find(&path.display().to_string(), &text);
    if !suite.tests.is_empty() {
        files.add("tests", suite.entries);
    }
    let graph = FrontEnd::new(options, files).graph().ok()?;
    let Flat { module, report, .. } = graph.residual().ok()?.flat().ok()?;
    let (functions, calls) = count(&module);
    let mut places: Vec<(String, usize, usize)> = Vec::new();
    for span in &functions {
        let (line, column) = report.sources.line_col(*span);
        places.push((report.sources.name(span.file).into(), line, column));
    }
    if !places.is_empty() {
        let report = nyala_driver::explain::explain(&graph).ok()?.report;
        let listed = report
            .closures
            .into_iter()
            .filter(|c| !["frame", "no-environment"].contains(&c.freed))
            .filter_map(|c| c.place);
        let listed: Vec<_> = listed.map(|p| (p.file, p.line, p.column)).collect();
        places.retain(|place| !listed.contains(place));
    }
    Some((functions.len(), calls, places.len()))
}

/// The places where environments are made, and the number of indirect calls.
fn count(module: &Module) -> (Vec<Span>, usize) {
    let (mut functions, mut calls) = (Vec::new(), 0);
    for function in &module.funcs {
        for block in &function.blocks {
            for inst in &block.insts {
                match inst.op {
                    InstOp::Call(f) if module.func(f).symbol() == Some("nyala_environment") => {
                        functions.push(inst.span);
                    }
                    InstOp::CallIndirect => calls += 1,
                    _ => {}
                }
            }
            calls += matches!(block.term, Terminator::TailCall { callee: Callee::Indirect(_), .. }) as usize;
        }
    }
    (functions, calls)
}
