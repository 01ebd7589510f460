//! Parsing and checking long programs: time and memory of `nyala check`.

use super::{Out, Plan, median, ms};
use crate::texts::nyala;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LINES: &[usize] = &[10_000, 100_000, 1_000_000];
const RUNS: usize = 3;

/// The cost of one run.
struct Run {
    parse: f64,
    check: f64,
    whole: f64,
    /// The peak of memory in MiB.
    memory: f64,
}

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let _ = writeln!(out, "front end, lines\n  lines, thousands   parse, ms   check, ms   whole, ms   memory, MiB");
    let folder = std::env::temp_dir().join(format!("nyala-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = plan.sizes(LINES, 0).iter().try_for_each(|&lines| {
        let file = folder.join(format!("{lines}.impala"));
        std::fs::write(&file, program(lines)).map_err(|e| format!("{}: {e}", file.display()))?;
        let runs = (0..plan.turns(RUNS)).map(|_| check(&file)).collect::<Result<Vec<Run>, String>>()?;
        let of = |f: fn(&Run) -> f64| median(&mut runs.iter().map(f).collect::<Vec<f64>>());
        let (parse, check, whole, memory) = (of(|r| r.parse), of(|r| r.check), of(|r| r.whole), of(|r| r.memory));
        let _ = writeln!(out, "  {:>16} {parse:>11.1} {check:>11.1} {whole:>11.1} {memory:>13.0}", lines / 1000);
        Ok(())
    });
    let _ = std::fs::remove_dir_all(&folder);
    let _ = writeln!(out);
    result
}

fn check(file: &Path) -> Result<Run, String> {
    let start = Instant::now();
    let mut command = Command::new(nyala());
    command.args(["check", "--no-pe", "--time-passes"]).arg(file).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    // The peak so far, as long as the process exists. Its output fits into the pipe.
    let status = format!("/proc/{}/status", child.id());
    let mut memory = 0.0;
    let code = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
        memory = f64::max(memory, peak.unwrap_or(0.0) / 1024.0);
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(code) => break code,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let whole = ms(start.elapsed());
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !code.success() {
        return Err(format!("{command:?}: {text:.2000}"));
    }
    let pass = |name: &str| {
        let line = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|w| w.get(2) == Some(&name));
        line.and_then(|w| w[0].parse().ok()).unwrap_or(f64::NAN)
    };
    Ok(Run { parse: pass("parse"), check: pass("check"), whole, memory })
}

/// A program of about `lines` lines: units of functions and structs with unique names, which call earlier units.
fn program(lines: usize) -> String {
    let unit = UNIT.lines().count();
    let mut out = String::new();
    for k in 0..lines / unit {
        let text = UNIT.replace("_K", &format!("_{k}")).replace("_J", &format!("_{}", k.saturating_sub(1 + k % 7)));
        out.push_str(&text);
    }
    out
}

const UNIT: &str = include_str!("front.txt");
