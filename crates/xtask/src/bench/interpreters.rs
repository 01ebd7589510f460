//! `x bench interpreters`: the speed of specialized interpreters. Programs of the language of `examples/12` run beside
//! equal programs in Impala, and beside its interpreter with programs that are read at run time. Patterns of
//! `examples/13` run beside the `regex` crate, on the text of this repository's pages; the counts of matches are
//! compared.

use super::{RUNS, in_turns, median};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The workloads of the language's programs.
const LANGUAGE: &[(&str, &str)] = &[
    ("fib", "fib(32), specialized"),
    ("fib_directly", "the same, in Impala"),
    ("fib_interpreted", "the same, interpreted"),
    ("primes", "primes below 300,000, specialized"),
    ("primes_directly", "the same, in Impala"),
    ("primes_interpreted", "the same, interpreted"),
];

/// The patterns of `examples/13`: function, and regular expression.
const PATTERNS: &[(&str, &str)] =
    &[("dates", "[0-9]+?-[0-9]+?-[0-9]+?"), ("words", "[a-z]*?ing[^a-z]"), ("links", r"\[[^\]]+?\]\(.*?\)")];

/// The bytes of the text, for which the pages are repeated.
const TEXT_SIZE: usize = 4 << 20;

/// Impala code that runs `f` a few times, and prints its name and median time. `f` gets a zero that LLVM does not know,
/// and its result is stored, so that it is computed each time, before the clock is read.
const REPORT: &str = r#"
static mut computed = 0i64;
fn @report(name: &[u8], runs: i32, f: fn(i64) -> i64) -> i64 {
    let times = alloc_i64(16);
        for i in range(0, runs) {
        let start = time_ns();
        computed = f(start >> 62);
        times(i) = time_ns() - start;
    }
    sort_i64(runs, times);
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

const PATTERNS_MAIN: &str = r#"
extern fn dates(n: i32, s: &[u8]) -> i32 { let mut at = -1; count("[0-9]+-[0-9]+-[0-9]+", n, s, &mut at) }
fn main(argc: i32, argv: &[&[u8]]) -> i32 {
    let text = read_file(argv(1));
    let n = text.size as i32;
    let d = report("dates", 5, |z| dates(n + z as i32, text.data) as i64);
    let w = report("words", 5, |z| words_in_ing(n + z as i32, text.data) as i64);
    let l = report("links", 5, |z| links(n + z as i32, text.data) as i64);
    print_string("counts "); print_i64(d); print_char(' '); print_i64(w); print_char(' '); print_i64(l); println();
    0
}
"#;

pub fn run() -> Result<String, String> {
    let out = root().join("out/bench");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let program = |lesson: &str, main: &str| -> Result<Command, String> {
        let text = std::fs::read_to_string(root().join("examples").join(lesson)).map_err(|e| e.to_string())?;
        let before = text.split("\nfn main").next().unwrap_or("");
        let path = out.join(lesson);
        std::fs::write(&path, format!("use std::sort::*;\nuse std::files::*;\n{before}\n{REPORT}{main}"))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let mut command = Command::new(&nyala);
        command.arg("run").arg(path);
        Ok(command)
    };
    let mut block = format!("specialized interpreters, ms, medians of {RUNS} runs\n");
    let mut language = [("ours", program("12_small_language.impala", LANGUAGE_MAIN)?)];
    let times = in_turns(&mut language, LANGUAGE)?;
    for (i, (_, about)) in LANGUAGE.iter().enumerate() {
        let beside = times[0][i - i % 3];
        let _ =
            writeln!(block, "  {:>10.3}  {:>7.2} of the specialized  {about}", times[0][i] / 1e6, times[0][i] / beside);
    }
    let text = out.join("pages.txt");
    let pages = pages()?;
    std::fs::write(&text, &pages).map_err(|e| format!("cannot write {}: {e}", text.display()))?;
    let mut ours = program("13_patterns.impala", PATTERNS_MAIN)?;
    ours.arg("--").arg(&text);
    let counts = counts(&mut ours)?;
    let names: Vec<(&str, &str)> = PATTERNS.to_vec();
    let times = in_turns(&mut [("ours", ours)], &names)?;
    let size = pages.len() as f64 / 1e6;
    let _ = writeln!(block, "patterns in {size:.1} MB of text, MB/s; the regex crate beside it");
    for (i, (name, pattern)) in PATTERNS.iter().enumerate() {
        let (found, time) = regex_crate(pattern, &pages)?;
        if counts.get(i) != Some(&found) {
            return Err(format!("`{pattern}` is found {found} times by regex, and {:?} times by ours", counts.get(i)));
        }
        let (ours, theirs) = (size / (times[0][i] / 1e9), size / time);
        let _ = writeln!(
            block,
            "  {name:<6} ours {ours:>7.0} regex {theirs:>7.0} (ours/regex {:.2})   {found} matches of {pattern}",
            ours / theirs
        );
    }
    block.push('\n');
    Ok(block)
}

/// The text of all Markdown pages, repeated.
fn pages() -> Result<Vec<u8>, String> {
    let mut files = Vec::new();
    markdown(&root(), &mut files)?;
    files.sort();
    let mut once = Vec::new();
    for file in files {
        once.extend(std::fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?);
    }
    once.retain(|&b| b != 0);
    let mut text = Vec::with_capacity(TEXT_SIZE);
    while text.len() < TEXT_SIZE && !once.is_empty() {
        text.extend(&once);
    }
    Ok(text)
}

/// Collects the pages in `folder` and below, except in folders with output.
fn markdown(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "out" {
            markdown(&path, files)?;
        } else if name.ends_with(".md") {
            files.push(path);
        }
    }
    Ok(())
}

/// The number of matches of each pattern.
fn counts(command: &mut Command) -> Result<Vec<usize>, String> {
    let output = command.output().map_err(|e| format!("cannot run the patterns: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix("counts "));
    let counts = line.map(|l| l.split(' ').filter_map(|n| n.parse().ok()).collect());
    counts.ok_or_else(|| format!("the patterns did not run\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// The number of matches that the crate finds, and its seconds.
fn regex_crate(pattern: &str, text: &[u8]) -> Result<(usize, f64), String> {
    let regex = regex::bytes::Regex::new(&format!("(?-u){pattern}")).map_err(|e| e.to_string())?;
    let mut found = 0;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        found = regex.find_iter(text).count();
        times.push(start.elapsed().as_secs_f64());
    }
    Ok((found, median(&mut times)))
}
