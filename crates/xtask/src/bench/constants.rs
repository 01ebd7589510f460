//! Evaluation at compile time beside `constexpr` of g++ and clang, `comptime` of Zig, D's CTFE and `const fn` of rustc,
//! with equal programs. The time for an empty program is subtracted. No program can profit from memoized calls.

use super::{Out, Plan, median, ms, slope};
use crate::root;
use crate::texts::nyala;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The number of pairs of runs, of the program and of an empty one. There are as many as fit into the next constant.
const RUNS: std::ops::Range<usize> = 5..41;
const ALL_RUNS: f64 = 1_500.0;
/// A program that takes longer than this, in milliseconds, is measured only once.
const LONG: f64 = 4_000.0;

/// Programs and their sizes, each with about four times the work of the size before.
const PROGRAMS: &[(&str, &[u32])] = &[
    ("ackermann", &[5, 6, 7]),
    ("fibonacci", &[20, 23, 26]),
    ("sieve", &[10_000, 40_000, 160_000]),
    ("machine", &[10_000, 40_000, 160_000]),
];

/// Tools: name, extension of its programs, an empty program, command.
const TOOLS: &[(&str, &str, &str, &[&str])] = &[
    ("nyala", "impala", "fn main() -> i32 { 0 }", &["nyala", "emit", "--stage", "residual"]),
    ("g++", "cpp", "int main() {}", GCC),
    ("clang++", "cpp", "int main() {}", CLANG),
    ("the same, new", "cpp", "int main() {}", CLANG_BYTECODE),
    ("zig", "zig", "export fn answer() i32 { return 0; }", ZIG),
    ("ldc2", "d", "int main() { return 0; }", &["ldc2", "-o-", "-c"]),
    ("rustc", "rs", "fn main() {}", &["rustc", "--emit=metadata"]),
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
/// Clang with its new interpreter for byte code.
const CLANG_BYTECODE: &[&str] = &[
    "clang++",
    "-std=c++20",
    "-fconstexpr-depth=1000000",
    "-fconstexpr-steps=4294967295",
    "-fsyntax-only",
    "-fexperimental-new-constant-interpreter",
];
/// Zig, from `pip install ziglang`. Its caches are beside the program.
const ZIG: &[&str] = &[
    "python3",
    "-m",
    "ziglang",
    "build-obj",
    "-fno-emit-bin",
    "--cache-dir",
    "zig-cache",
    "--global-cache-dir",
    "zig-global-cache",
];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("nyala-constants-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = table(&folder, plan, out);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn table(folder: &Path, plan: &Plan, out: &mut Out) -> Result<(), String> {
    let _ = write!(out, "evaluation at compile time, ms less those of an empty program\n  {:<18}", "");
    for (tool, ..) in TOOLS {
        let _ = write!(out, "{tool:>14}");
    }
    let _ = writeln!(out, "   fastest of the others");
    for &(program, sizes) in PROGRAMS {
        let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); TOOLS.len()];
        for &size in plan.sizes(sizes, 0) {
            let _ = write!(out, "  {:<18}", format!("{program} {size}"));
            let mut times = Vec::new();
            for (i, &(_, ending, empty, command)) in TOOLS.iter().enumerate() {
                let source = root().join("bench/peers/constants").join(format!("{program}.{ending}"));
                let text = std::fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
                let text = text.replace("SIZE", &size.to_string());
                let files = ["empty", program].map(|name| folder.join(format!("{name}.{ending}")));
                let took = difference(command, &files, [empty, &text], plan).map(|took| took.max(0.1));
                points[i].extend(took.map(|took| (work(program, size), took)));
                times.push(took);
                let _ = match took {
                    Some(took) => write!(out, "{took:>14.1}"),
                    None => write!(out, "{:>14}", "-"),
                };
            }
            let fastest = times[1..].iter().flatten().copied().fold(f64::INFINITY, f64::min);
            if let Some(took) = times[0] {
                let _ = write!(out, "{:>12.1} times ours", fastest / took);
            }
            let _ = writeln!(out);
        }
        if plan.is_brief {
            continue;
        }
        let _ = write!(out, "  {:<18}", "  slope");
        for points in &points {
            let _ = match points.len() == sizes.len() {
                true => write!(out, "{:>14.2}", slope(points)),
                false => write!(out, "{:>14}", "-"),
            };
        }
        let _ = writeln!(out);
    }
    let _ = writeln!(out);
    Ok(())
}

/// The number of steps of a program: calls, writes, rounds.
fn work(program: &str, size: u32) -> f64 {
    match program {
        "ackermann" => {
            let two = f64::from(size).exp2();
            (128.0 * two * two - 120.0 * two + 9.0 * f64::from(size) + 37.0) / 3.0
        }
        "fibonacci" => 1.618_034_f64.powi(size as i32),
        "sieve" => {
            let mut composite = vec![false; size as usize];
            let mut steps = 0;
            for i in 2..size as usize {
                steps += 1;
                if !composite[i] {
                    (2 * i..size as usize).step_by(i).for_each(|j| {
                        composite[j] = true;
                        steps += 1;
                    });
                }
            }
            f64::from(steps)
        }
        _ => f64::from(size),
    }
}

/// The milliseconds that a command takes longer for the second file than for the first. `texts` are their contents.
/// `None` if the command does not exist, or gives up.
fn difference(command: &[&str], files: &[PathBuf; 2], texts: [&str; 2], plan: &Plan) -> Option<f64> {
    let (mut differences, mut all) = (Vec::new(), 0.0);
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(file, text).ok()?;
    }
    let (least, most) = (plan.turns(RUNS.start), plan.turns(RUNS.end));
    while differences.len() < least || (differences.len() < most && all < ALL_RUNS) {
        let (empty, whole) = (time(command, &files[0])?, time(command, &files[1])?);
        differences.push(whole - empty);
        all += empty + whole;
        if whole > LONG {
            break;
        }
    }
    Some(median(&mut differences))
}

/// The milliseconds of a command on a file. `None` if the command does not exist, or gives up. It is ended after a
/// minute, or with 10 GB of memory.
fn time(command: &[&str], file: &Path) -> Option<f64> {
    // Zig caches results; only the first run of a text would compile it.
    let _ = std::fs::remove_dir_all(file.parent()?.join("zig-cache"));
    let mut c = Command::new("sh");
    c.args(["-c", "ulimit -v 10000000; exec timeout 60 \"$@\"", "sh"]);
    match command[0] {
        "nyala" => c.arg(nyala()),
        other => c.arg(other),
    };
    c.args(&command[1..]).arg(file);
    // Output goes to the folder of the source.
    c.current_dir(file.parent()?);
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    c.status().ok()?.success().then(|| ms(start.elapsed()))
}
