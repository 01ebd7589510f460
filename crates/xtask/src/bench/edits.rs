//! The loop of editing: the time from a save to the result, of `nyala run` with a program of 5,000 lines.

use super::{Out, Plan, median, ms};
use crate::texts::nyala;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const RUNS: usize = 5;
/// Copies of `front.txt`, each with a function that calls it.
const COPIES: usize = 75;

/// An edit, the same for each run but for a number: the name, a text of the program, what it becomes.
type Edit = (&'static str, &'static str, fn(usize) -> String);

const EDITS: &[Edit] = &[
    ("nothing", "", |_| String::new()),
    ("a comment above all", "// Moves.\n", |i| format!("// Moves.\n{}", "//\n".repeat(i + 1))),
    ("one function", "total += if heavy", |i| format!("total += {} + if heavy", i + 1)),
    ("a function that half of the others call", "a * 0.5f32", |i| format!("a * {}.5f32", i + 1)),
    ("everything (a cache without entries)", "", |_| String::new()),
];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let text = program();
    let _ = writeln!(
        out,
        "edit and run again, {} lines, ms\n  {:<42} {:>6} {:>6} {:>6}",
        text.lines().count(),
        "changed",
        "median",
        "least",
        "most"
    );
    let folder = std::env::temp_dir().join(format!("nyala-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = EDITS.iter().try_for_each(|(name, from, to)| {
        let cache = folder.join("cache");
        time(&folder, &cache, &text)?;
        let mut times = Vec::new();
        for i in 0..plan.turns(RUNS) {
            if name.starts_with("everything") {
                std::fs::remove_dir_all(&cache).map_err(|e| e.to_string())?;
            }
            times.push(time(&folder, &cache, &text.replacen(from, &to(i), 1))?);
        }
        let middle = median(&mut times);
        let (least, most) = (times[0], times[times.len() - 1]);
        let _ = writeln!(out, "  {name:<42} {middle:>6.0} {least:>6.0} {most:>6.0}");
        Ok(())
    });
    let _ = std::fs::remove_dir_all(&folder);
    let _ = writeln!(out);
    result
}

/// Writes the program, and runs it.
fn time(folder: &Path, cache: &Path, text: &str) -> Result<f64, String> {
    let file = folder.join("edited.impala");
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = Command::new(nyala());
    command.arg("run").arg(&file).env("XDG_CACHE_HOME", cache);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let output = command.output().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let taken = ms(start.elapsed());
    match output.status.success() {
        true => Ok(taken),
        false => Err(format!("{command:?}: {:.2000}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Functions that are called twice, so that they stay functions.
fn program() -> String {
    let mut out = String::from("// Moves.\nfn mix(a: f32, b: f32) -> f32 { a * 0.5f32 + b }\n\n");
    for k in 0..COPIES {
        let unit = include_str!("front.txt").replace("0.5f32 * body.mass * square", "mix(body.mass, square)");
        let before = if k == 0 { "(0, 0.0f32)" } else { "report_J(&bodies(0) as &[Body_J], count - 1)" };
        let unit = unit.replace("report_J(&bodies(0) as &[Body_J], count - 1)", before);
        out.push_str(&unit.replace("_K", &format!("_{k}")).replace("_J", &format!("_{}", k.saturating_sub(1))));
        let _ = write!(
            out,
            "fn use_{k}(n: i32) -> i32 {{
    let mut bodies: [Body_{k} * 8];
    for i in range(0, 8) {{
        bodies(i) = Body_{k} {{ position: [0f32, .. 3], speed: [1f32, 2f32, 3f32], mass: n as f32, neighbor: i - 2 }};
    }}
    let energy = step_{k}(n, &mut bodies, 0.1f32) + step_{k}(n + 1, &mut bodies, 0.2f32);
    let (count, mass) = report_{k}(&bodies as &[Body_{k}], n);
    count + mass as i32 + energy as i32
}}

"
        );
    }
    out.push_str("fn main(argc: i32, argv: &[&[u8]]) -> i32 {\n    let mut sum = 0;\n");
    for k in 0..COPIES {
        let _ = writeln!(out, "    sum += use_{k}(argc) + use_{k}(argc + 1);");
    }
    out.push_str("    print_i32(sum);\n    0\n}\n");
    out
}
