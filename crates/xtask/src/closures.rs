//! Counts the function values that remain after specialization. Partial evaluation removes functions that are passed as
//! values; a program should keep heap environments and indirect calls only if it chooses functions at run time.
//! `tests/closures.txt` has the numbers of each program; a program that is not listed there has none. `x bless
//! closures` writes the file: read the difference before you accept it. Environments that `nyala explain` does not list
//! are counted too; there should be none. Records of continuations that are values look like environments, but are not
//! functions of the program.
//!
//! Separate from the text tests because the judgment is about all programs together: tests, libraries, examples and
//! benchmarks.

use crate::{Tally, root, texts};
use nyala::testing;
use nyala_base::Span;
use nyala_flat::{Callee, InstOp, Module, Terminator};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const FOLDERS: &[&str] = &["bench", "examples", "lib", "tests/explain", "tests/residual", "tests/run", "tests/seeds"];

const HEADER: &str =
    "# Heap environments and indirect calls in the flat code of each program that has any; `x bless closures`\n";

/// The numbers of places that make heap environments, of indirect calls, and of environments that `nyala explain` does
/// not list.
type Counts = (usize, usize, usize);

/// Compares the numbers with those of the file, or writes them to it.
pub fn run(bless: bool) -> Tally {
    let mut tally = Tally::default();
    let golden = root().join("tests/closures.txt");
    let found = render(&count_all());
    if bless {
        if let Err(e) = std::fs::write(&golden, found) {
            println!("FAILED closures: cannot write {}: {e}", golden.display());
            tally.failed += 1;
        }
        return tally;
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    if expected == found {
        tally.passed += 1;
    } else {
        tally.failed += 1;
        println!("FAILED closures: function values that are left (`./x bless closures` accepts it)");
        print!("{}", texts::diff(&expected, &found));
    }
    tally
}

fn render(counts: &BTreeMap<String, Counts>) -> String {
    let mut out = String::from(HEADER);
    for (path, (environments, calls, unlisted)) in counts {
        let _ = write!(out, "{path}: {environments} environments, {calls} indirect calls");
        out.push_str(&if *unlisted > 0 {
            format!(", {unlisted} environments that `explain` lacks\n")
        } else {
            "\n".into()
        });
    }
    out
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
    let mut s = texts::session(path, &text);
    let suite = testing::find(&path.display().to_string(), &text);
    if !suite.tests.is_empty() {
        s.add_file("tests", suite.entries);
    }
    let world = s.graph().ok()?;
    let residual = s.residual(&world).ok()?;
    let module = s.flat(&residual).ok()?;
    let (functions, calls) = count(&module);
    let mut places: Vec<(String, usize, usize)> = Vec::new();
    for span in &functions {
        let (line, column) = s.sources.line_col(*span);
        places.push((s.sources.name(span.file).into(), line, column));
    }
    if !places.is_empty() {
        let report = nyala::explain::explain(&mut s).ok()?.report;
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
