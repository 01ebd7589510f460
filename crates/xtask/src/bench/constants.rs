//! Evaluation at compile time against `constexpr` of g++ and clang and `const fn` of rustc: the same programs, less the time
//! for an empty one. No program lets results of calls be remembered.

use super::{median, ms};
use crate::root;
use crate::texts::nyala;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const RUNS: usize = 5;

/// Program and sizes, each about four times the work of the one before.
const PROGRAMS: &[(&str, &[u32])] = &[
    ("ackermann", &[5, 6, 7]),
    ("fibonacci", &[17, 20, 23]),
    ("sieve", &[10_000, 40_000, 160_000]),
    ("machine", &[10_000, 40_000, 160_000]),
];

/// Name, ending of its programs, an empty program, command.
const TOOLS: &[(&str, &str, &str, &[&str])] = &[
    ("nyala", "impala", "fn main() -> i32 { 0 }", &["nyala", "emit", "--stage", "residual"]),
    ("g++", "cpp", "int main() {}", GCC),
    ("clang++", "cpp", "int main() {}", CLANG),
    ("rustc", "rs", "fn main() {}", &["rustc", "--emit=metadata", "-o", "/dev/null"]),
];
const GCC: &[&str] = &[
    "g++",
    "-std=c++20",
    "-fconstexpr-depth=1000000",
    "-fconstexpr-ops-limit=100000000000",
    "-fconstexpr-loop-limit=1000000000",
    "-fsyntax-only",
];
const CLANG: &[&str] =
    &["clang++", "-std=c++20", "-fconstexpr-depth=1000000", "-fconstexpr-steps=4294967295", "-fsyntax-only"];

pub fn run() -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("nyala-constants-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = table(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn table(folder: &Path) -> Result<String, String> {
    let mut block = format!("evaluation at compile time, ms less those of an empty program\n  {:<22}", "");
    let mut empty = Vec::new();
    for &(tool, ending, text, command) in TOOLS {
        let _ = write!(block, "{tool:>12}");
        empty.push(time(command, &folder.join(format!("empty.{ending}")), text));
    }
    block.push_str("   fastest of the others\n");
    for &(program, sizes) in PROGRAMS {
        for &size in sizes {
            let _ = write!(block, "  {:<22}", format!("{program} {size}"));
            let mut times = Vec::new();
            for (&(_, ending, _, command), empty) in TOOLS.iter().zip(&empty) {
                let source = root().join("bench/peers/constants").join(format!("{program}.{ending}"));
                let text = std::fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
                let text = text.replace("SIZE", &size.to_string());
                let took = empty.and_then(|empty| {
                    let whole = time(command, &folder.join(format!("{program}.{ending}")), &text)?;
                    Some((whole - empty).max(0.1))
                });
                let _ = match took {
                    Some(took) => write!(block, "{took:>12.1}"),
                    None => write!(block, "{:>12}", "-"),
                };
                times.push(took);
            }
            let fastest = times[1..].iter().flatten().copied().fold(f64::INFINITY, f64::min);
            if let Some(took) = times[0] {
                let _ = write!(block, "{:>12.1} times ours", fastest / took);
            }
            block.push('\n');
        }
    }
    block.push('\n');
    Ok(block)
}

/// Milliseconds of a command on a file with this text. `None`: there is no such command, or it gives up.
fn time(command: &[&str], file: &Path, text: &str) -> Option<f64> {
    std::fs::write(file, text).ok()?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut c = match command[0] {
            "nyala" => Command::new(nyala()),
            other => Command::new(other),
        };
        c.args(&command[1..]).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        if !c.status().ok()?.success() {
            return None;
        }
        times.push(ms(start.elapsed()));
    }
    Some(median(&mut times))
}
