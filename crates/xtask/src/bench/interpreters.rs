//! `x bench interpreters`: the speed of specialized interpreters. Programs of the language of `examples/12` run beside
//! equal programs in Impala, and beside its interpreter with programs that are read at run time.

use super::{Out, Plan, RUNS, Turns};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The workloads of the language's programs.
const LANGUAGE: &[(&str, &str)] = &[
    ("fib", "fib(32), specialized"),
    ("fib_directly", "the same, in Impala"),
    ("fib_interpreted", "the same, interpreted"),
    ("primes", "primes below 300,000, specialized"),
    ("primes_directly", "the same, in Impala"),
    ("primes_interpreted", "the same, interpreted"),
];

/// Impala code that runs `f` a few times, and prints its name and median time. `f` gets a zero that LLVM does not know,
/// and its result is stored, so that it is computed each time, before the clock is read.
const REPORT: &str = r#"
static mut computed = 0i64;
fn @report(name: &[u8], runs: i32, f: fn(i64) -> i64) -> i64 {
    let times = alloc[i64](16);
        for i in range(0, runs) {
        let start = time_ns();
        computed = f(start >> 62);
        times(i) = time_ns() - start;
    }
    mut_slice(times, runs as i64).sort();
    print_string(name); print_char(' '); print_i64(times(runs / 2)); println();
    computed
}
"#;

const LANGUAGE_MAIN: &str = r#"
fn main() -> i32 {
    // The length is not known before the program runs.
    let n = if time_ns() > 0 { 32i64 } else { 0i64 };
    let limit = n * 300000 / 32;
    let f = report("fib", 5, |z| fib_of(n + z));
    let fd = report("fib_directly", 5, |z| fib_directly(n + z));
    let fi = report("fib_interpreted", 1, |z| interpret(fib, n + z));
    let p = report("primes", 5, |z| primes_below(limit + z));
    let pd = report("primes_directly", 5, |z| primes_directly(limit + z));
    let pi = report("primes_interpreted", 1, |z| interpret(primes, limit + z));
    if f == fd && f == fi && p == pd && p == pi { 0 } else { 1 }
}
"#;

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = super::folder("")?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let program = |lesson: &str, main: &str| -> Result<Command, String> {
        let text = std::fs::read_to_string(root().join("examples").join(lesson)).map_err(|e| e.to_string())?;
        let before = text.split("\nfn main").next().unwrap_or("");
        let path = folder.join(lesson);
        std::fs::write(
            &path,
            format!("use std::slice::*;\nuse std::sort::*;\nuse std::files::*;\n{before}\n{REPORT}{main}"),
        )
        .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let mut command = Command::new(&nyala);
        command.arg("run").arg(path);
        Ok(command)
    };
    let runs = plan.turns(RUNS);
    let _ = writeln!(out, "specialized interpreters, ms, medians of {runs} runs");
    let language = vec![("ours", program("12_small_language.impala", LANGUAGE_MAIN)?)];
    let times = Turns::new(runs, language).run(&[], LANGUAGE, out)?;
    for (i, (_, about)) in LANGUAGE.iter().enumerate() {
        let beside = times[0][i - i % 3];
        let _ =
            writeln!(out, "  {:>10.3}  {:>7.2} of the specialized  {about}", times[0][i] / 1e6, times[0][i] / beside);
    }
    let _ = writeln!(out);
    Ok(())
}
