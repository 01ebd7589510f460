//! Benchmarks of Impala code: functions whose name begins with `bench`. This module decides what is a benchmark, measures one,
//! and has the file beside the program with earlier results; the command prints.
//!
//! ```text
//! fn bench_sort() -> i32 { … }     its result, a number, keeps what it computes from being removed
//! ```
//!
//! A benchmark is called again and again in native code in memory. A *batch* is so many calls that the clock is precise enough.
//! The sample of a batch is its time per call; [`Estimate`] has the median of the samples.

use super::super::tune::search::{Estimate, estimate};
use nyala_base::diagnostics::bug;
use nyala_base::{Diagnostic, Sink, Span};
use nyala_driver::diagnostics::not_a_benchmark;
use nyala_driver::front::Files;
use nyala_driver::report::{Failed, Report};
use nyala_driver::run::Loaded;
use nyala_driver::testing::is_named;
use nyala_syntax::ast::{self, Filter, ItemKind, Ret, TypeKind};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The types of results, besides `()`.
const RESULTS: &[&str] =
    &["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "int", "uint", "float", "double"];

/// The shortest batch.
const BATCH: Duration = Duration::from_millis(1);
/// The fewest batches: with fewer, an interval would say nothing.
const LEAST: usize = 8;
/// Limit on batches.
const MOST: usize = 100_000;

/// The time of a benchmark.
pub struct Measured {
    /// Seconds for each call.
    pub seconds: Estimate,
    /// The number of calls in all batches.
    pub calls: u64,
}

/// The benchmarks in a program's files, in their order; for each file another one of its name, which exports them by [`entry`], each
/// in the line of the benchmark, so that places in it are shown as places of that line. What looks like a benchmark and is none is an
/// error.
pub fn find(files: &Files) -> Result<(Vec<String>, Files), Failed> {
    let (mut names, mut all, mut report) = (Vec::new(), Files::default(), Report::default());
    for (name, text) in &files.given {
        let (mut entries, mut line) = (String::new(), 1);
        let file = report.sources.add(name, text.clone());
        // Errors of syntax are reported when the program is compiled.
        let module = nyala_syntax::parse(file, text, &mut Sink::default());
        for item in &module.items {
            let ItemKind::Fn(f) = &item.kind else { continue };
            if !f.name.text.starts_with("bench") || f.body.is_none() {
                continue;
            }
            match result_of(&module, f) {
                Ok(result) => {
                    let at = report.sources.line_col(f.name.span).0;
                    entries.extend(std::iter::repeat_n('\n', at.saturating_sub(line)));
                    line = line.max(at);
                    let _ = write!(entries, "extern fn {}() -> {result} {{ {}() }} ", entry(names.len()), f.name.text);
                    names.push(f.name.text.to_string());
                }
                Err(why) => report.sink.push(not_a_benchmark::error(f.name.span, &f.name.text, why)),
            }
        }
        all.add(name.clone(), entries);
    }
    if report.sink.has_errors() { Err(Box::new(report)) } else { Ok((names, all)) }
}

/// The name of the exported function that calls a benchmark.
pub fn entry(index: usize) -> String {
    format!("bench_function_{index}")
}

/// The result of a function as text, or why it is no benchmark.
fn result_of(module: &ast::Module, f: &ast::Fn) -> Result<&'static str, &'static str> {
    if !f.params.is_empty() || !f.type_params.is_empty() {
        return Err("has parameters");
    }
    if matches!(f.filter, Filter::When(_)) {
        return Err("has a filter");
    }
    let Ret::Type(ty) = f.result else { return Err("has no written result") };
    match &module[ty].kind {
        TypeKind::Tuple(parts) if parts.is_empty() => Ok("()"),
        _ => RESULTS.iter().find(|r| is_named(module, ty, r)).copied().ok_or("has a result that is no number"),
    }
}

/// Measures a function of a program in memory for about `time`; `stop` ends it early, with no result if it is too early.
///
/// # Errors
/// The function is not there, or cannot be called.
pub fn measure(
    loaded: &Loaded,
    entry: &str,
    time: Duration,
    stop: impl Fn() -> bool,
) -> Result<Option<Measured>, Box<Diagnostic>> {
    let address = loaded.jit.lookup(entry)?;
    let batch = |n: u64| -> Result<Duration, Box<Diagnostic>> {
        let ns = nyala_gen_llvm::time_calls(address, n).map_err(|e| Box::new(bug::error(Span::NONE, e)))?;
        Ok(Duration::from_nanos(ns))
    };
    // The search for the size of batches warms up caches, branch predictors and clocks as well.
    let mut n = 1;
    let mut start = Instant::now();
    let warm_up = time / 5;
    loop {
        let took = batch(n)?;
        if stop() {
            return Ok(None);
        }
        if took >= BATCH {
            if start.elapsed() >= warm_up {
                break;
            }
        } else if n < 1 << 40 {
            n *= 2;
        }
    }
    let mut samples = Vec::new();
    start = Instant::now();
    while samples.len() < LEAST || start.elapsed() < time && samples.len() < MOST {
        samples.push(batch(n)?.as_secs_f64() / n as f64);
        if stop() {
            break;
        }
    }
    let calls = n * samples.len() as u64;
    Ok(estimate(samples).map(|seconds| Measured { seconds, calls }))
}

/// The file beside the program with results, by the names that `--save` gave.
pub fn file_of(program: &Path) -> PathBuf {
    program.with_extension("bench.json")
}
