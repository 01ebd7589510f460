//! `x bench game`: the programs of the Benchmarks Game in `bench/game` beside C of the same algorithm in `bench/peers/game`, as
//! processes in turns. First the outputs are compared, byte for byte. `x bench "game fasta"` measures one of them.

use super::levels::Level;
use super::{Out, Plan, median, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The number of rounds. The second lowest and the second highest of eleven ratios are the 98.8 % interval of the
/// median.
const ROUNDS: usize = 11;

/// Programs, their arguments, and the number of units that `fasta` makes for their standard input, or 0.
const WORKLOADS: &[(&str, &str, usize)] = &[
    ("ao_bench", "256", 0),
    ("fannkuch_redux", "10", 0),
    ("fasta", "10000000", 0),
    ("mandelbrot", "4000", 0),
    ("meteor_contest", "2098", 0),
    ("n_body", "10000000", 0),
    ("pidigits", "10000", 0),
    ("regex_redux", "", 500_000),
    ("reverse_complement", "", 10_000_000),
    ("spectral_norm", "3000", 0),
];

/// C compilers: the first of each list that is installed.
const COMPILERS: &[&[&str]] = &[&["gcc"], &["clang-22", "clang-19", "clang"]];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let only = plan.part("game");
    let folder = super::folder("game")?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let rounds = plan.turns(ROUNDS);
    let _ = writeln!(
        out,
        "game, ms of processes, medians of {rounds} in turns; the ratio is ours to the faster C, of pairs{}",
        plan.level.said()
    );
    let mut compilers = Vec::new();
    for commands in COMPILERS {
        let found =
            commands.iter().map(|c| (*c, output_of(c, &["--version"]))).find(|(_, version)| !version.is_empty());
        let version = found.as_ref().map_or("not installed: not measured", |f| f.1.lines().next().unwrap_or(""));
        let _ = writeln!(out, "  {}: {version}", commands[0]);
        compilers.extend(found.map(|f| f.0));
    }
    if compilers.is_empty() {
        return Err("there is no C compiler to compare with: install gcc or clang".into());
    }
    for &(program, argument, units) in WORKLOADS.iter().filter(|w| w.0.contains(only)) {
        let input = if units == 0 { None } else { Some(fasta(&folder, units, &compilers, plan.level)?) };
        let mut contenders = vec![("ours", ours(&folder, program, plan.level)?)];
        for compiler in &compilers {
            // A peer that fails is left out.
            let runs = peer(&folder, program, compiler, plan.level).and_then(|file| {
                timed(&file, argument, input.as_deref(), None)?;
                Ok(file)
            });
            match runs {
                Ok(file) => contenders.push((compiler, file)),
                Err(e) => {
                    let _ = writeln!(out, "  {program}, {compiler}: not measured: {}", e.trim());
                }
            }
        }
        if contenders.len() == 1 {
            continue;
        }
        let line = measure(program, argument, input.as_deref(), &folder, &contenders, rounds)?;
        let _ = write!(out, "{line}");
    }
    let _ = writeln!(out);
    Ok(())
}

/// Builds the Impala program for a level.
fn ours(out: &Path, program: &str, level: &Level) -> Result<PathBuf, String> {
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let built = out.join(program);
    let mut command = Command::new(nyala);
    command.args(["build", "-O3", "--cpu", level.name, "-o"]).arg(&built);
    sh(command.arg(root().join("bench/game").join(format!("{program}.impala"))))?;
    Ok(built)
}

/// Builds the C program.
fn peer(out: &Path, program: &str, compiler: &str, level: &Level) -> Result<PathBuf, String> {
    let built = out.join(format!("{program}-{compiler}"));
    let source = root().join("bench/peers/game").join(format!("{program}.c"));
    sh(Command::new(compiler).args(["-std=gnu11", "-O3", &level.march(), "-o"]).arg(&built).arg(source).arg("-lm"))?;
    Ok(built)
}

/// The file with the output of the C program `fasta`.
fn fasta(out: &Path, units: usize, compilers: &[&str], level: &Level) -> Result<PathBuf, String> {
    let file = out.join(format!("fasta-{units}.txt"));
    timed(&peer(out, "fasta", compilers[0], level)?, &units.to_string(), None, Some(&file))?;
    Ok(file)
}

/// Runs a program and measures its time. Its output goes to a file, or is dropped.
fn timed(program: &Path, argument: &str, input: Option<&Path>, output: Option<&Path>) -> Result<Duration, String> {
    let at = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let stdin = match input {
        Some(path) => Stdio::from(File::open(path).map_err(|e| at(path, e))?),
        None => Stdio::null(),
    };
    let stdout = match output {
        Some(path) => Stdio::from(File::create(path).map_err(|e| at(path, e))?),
        None => Stdio::null(),
    };
    let mut command = Command::new(program);
    command.args(Some(argument).filter(|a| !a.is_empty())).stdin(stdin).stdout(stdout);
    let start = Instant::now();
    let status = command.status().map_err(|e| at(program, e))?;
    let time = start.elapsed();
    if status.success() { Ok(time) } else { Err(format!("{} ends with {status}", program.display())) }
}

fn measure(
    program: &str,
    argument: &str,
    input: Option<&Path>,
    out: &Path,
    contenders: &[(&str, PathBuf)],
    rounds: usize,
) -> Result<String, String> {
    let output = |name: &str| out.join(format!("{program}-{name}.out"));
    let read = |path: PathBuf| std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let mut expected = None;
    for (name, file) in contenders {
        timed(file, argument, input, Some(&output(name)))?;
        let found = read(output(name))?;
        let same = expected.get_or_insert_with(|| found.clone()) == &found;
        if !same || found.is_empty() {
            return Err(format!("{program} {argument}: {} differs from ours", output(name).display()));
        }
    }
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for ((_, file), times) in contenders.iter().zip(&mut times) {
            times.push(timed(file, argument, input, None)?.as_secs_f64() * 1e3);
        }
    }
    for (name, _) in contenders {
        // Some of these files have hundreds of megabytes.
        let _ = std::fs::remove_file(output(name));
    }
    let middle = |times: &[f64]| median(&mut times.to_vec());
    let mut line = format!("  {:<28}", format!("{program} {argument}"));
    for ((name, _), times) in contenders.iter().zip(&times) {
        let _ = write!(line, " {name} {:>8.1}", middle(times));
    }
    let fastest = (1..times.len()).min_by(|&a, &b| middle(&times[a]).total_cmp(&middle(&times[b]))).unwrap_or(0);
    let mut ratios: Vec<f64> = times[0].iter().zip(&times[fastest]).map(|(ours, c)| ours / c).collect();
    let ratio = median(&mut ratios);
    // An interval of few rounds is from the least to the greatest ratio.
    let beside = usize::from(rounds >= 5);
    let _ = writeln!(line, "   {ratio:>5.2} ({:.2} to {:.2})", ratios[beside], ratios[rounds - 1 - beside]);
    Ok(line)
}
