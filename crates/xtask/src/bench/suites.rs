//! `x bench vectorize`, `x bench image`: programs of `bench/<suite>` beside peers in `bench/peers/<suite>`: what compilers make of
//! scalar C++, of loops that ask for vectors, and of intrinsics; vectors of Zig and Rust; kernels of Intel's OpenCL; Halide, OpenCV,
//! Numba. On one thread and on all, in turns; first all results are compared. `x bench "vectorize volume"` measures one program. Then speedups over one lane by
//! number of lanes, as a picture; `x bench "vectorize plot"` measures only these.

use super::levels::Level;
use super::{Out, Plan, cores, median, pictures};
use crate::plots::{Bars, Line, Lines, Series, bars};
use crate::{root, sh};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The number of rounds, each of which runs everything once. The lowest and the highest of five ratios are the 94 %
/// interval of the median.
pub const ROUNDS: usize = 5;

/// A program, the numbers of lanes that it is run with where registers have 64 bytes, and its description.
type Workload = (&'static str, &'static [u32], &'static str);
/// A peer: its name, tool, options for C++, the program's function, and its kind in pictures, or an empty text if it is
/// not in them.
type Peer = (&'static str, &'static str, &'static [&'static str], &'static str, &'static str);

pub struct Suite {
    pub name: &'static str,
    pub title: &'static str,
    pub workloads: &'static [Workload],
    pub peers: &'static [Peer],
    /// Programs that compare several ways in Impala, with their descriptions.
    pub alone: &'static [(&'static str, &'static str)],
    /// Which of the numbers of lanes the brief form has.
    brief: usize,
    /// The numbers of lanes in the picture; the first is the plain loop. If empty, there is no picture.
    pub plotted: &'static [u32],
    /// Programs that compute images: the algorithm's operations and bytes of memory traffic for each pixel, where an
    /// exponential counts as one operation; and the widths of square images that are plotted, with the usual width.
    pub images: &'static [(&'static str, f64, f64, &'static [u32], u32)],
}

/// The measurements of a program: its milliseconds and, for each peer by its index in the table, the ratio of its time
/// to that of the peer.
pub struct Measured {
    pub program: &'static str,
    pub ours: Vec<f64>,
    pub ratios: Vec<(usize, Vec<f64>)>,
}

const SUITES: &[Suite] = &[
    Suite {
        name: "vectorize",
        title: "Vectorized loops",
        workloads: &[
            ("mandelbrot", &[32, 48], "1536×1024 points, up to 256 rounds"),
            ("black_scholes", &[32, 64], "1,048,576 options"),
            ("binomial", &[16, 32], "32,768 options, 64 steps"),
            ("ambient_occlusion", &[32, 48], "256×256 pixels, 4 samples, 64 rays each"),
            ("volume", &[16, 32], "896×1184 rays through 128³ densities"),
            ("gather", &[16, 32], "4,194,304 dependent look-ups"),
            ("strided", &[16, 64], "4,194,304 pixels of three bytes"),
        ],
        peers: &[
            ("g++ -O3", "g++", &["-fopenmp"], "scalar", ""),
            ("clang++ -O3", "clang++", &[], "scalar", ""),
            ("g++, omp simd, fast math", "g++", FAST_GCC, "simd", "C++, omp simd"),
            ("clang++, omp simd, fast math", "clang++", FAST_CLANG, "simd", "C++, omp simd"),
            ("intrinsics, g++", "g++", FAST_GCC, "hand", "intrinsics"),
            ("intrinsics, clang++", "clang++", FAST_CLANG, "hand", "intrinsics"),
            ("Zig, @Vector", "Zig", &["-fopenmp"], "object", "Zig"),
            ("Rust, std::simd", "Rust (nightly)", &["-fopenmp"], "object", "Rust"),
            ("Intel OpenCL", "Intel OpenCL", &[], "kernel", "Intel OpenCL"),
        ],
        alone: &[],
        brief: 1,
        plotted: &[1, 4, 8, 16, 32, 64],
        images: &[],
    },
    Suite {
        name: "image",
        title: "Image filters",
        workloads: &[
            ("blur", &[16, 32], "3×3 means, i32, 4096²"),
            ("gauss", &[16, 32], "5×5, f32, 4096²"),
            ("harris", &[16, 32], "corners, f32, 4096²"),
            ("bilateral", &[16, 32], "13×13, f32, 1024²"),
            ("jacobi", &[16, 32], "one sweep, f32, 4096²"),
            ("residual_restrict", &[16, 32], "f32, 4096²"),
        ],
        peers: &[
            ("not fused, g++", "g++", FAST_GCC, "scalar", "C++, not fused"),
            ("not fused, clang++", "clang++", FAST_CLANG, "scalar", "C++, not fused"),
            ("omp simd, g++", "g++", FAST_GCC, "simd", "C++, omp simd"),
            ("omp simd, clang++", "clang++", FAST_CLANG, "simd", "C++, omp simd"),
            ("intrinsics, g++", "g++", FAST_GCC, "hand", "intrinsics"),
            ("intrinsics, clang++", "clang++", FAST_CLANG, "hand", "intrinsics"),
            ("Halide", "Halide", &[], "halide", "Halide"),
            ("OpenCV", "OpenCV", &[], "opencv", "OpenCV"),
            ("Numba", "Numba", &[], "numba", "Numba"),
        ],
        alone: &[("level", "finest level of a V-cycle, f32, 4096²")],
        brief: 0,
        plotted: &[],
        images: &[
            ("blur", 6.0, 8.0, SIZES, 4096),
            ("gauss", 18.0, 8.0, SIZES, 4096),
            ("harris", 36.0, 8.0, SIZES, 4096),
            ("bilateral", 1353.0, 8.0, &[256, 512, 1024, 2048], 1024),
            ("jacobi", 5.0, 12.0, SIZES, 4096),
            ("residual_restrict", 7.0, 9.0, SIZES, 4096),
        ],
    },
];

/// A compiler for peers. In its commands, `{peers}` is the folder of `bench/peers/install.sh`, `{source}` a program,
/// `{out}` its output, `{mcpu}` and `{target_cpu}` the options of Zig and Rust for a level.
struct Tool {
    name: &'static str,
    /// The possible commands, of which the first that is installed is used.
    commands: &'static [&'static [&'static str]],
    /// The arguments that print its version.
    version: &'static [&'static str],
    ending: &'static str,
    /// The arguments that compile an object file, which the C++ program of that name calls. Empty for C++ itself and
    /// for scripts.
    object: &'static [&'static str],
}
const TOOLS: &[Tool] = &[
    Tool { name: "g++", commands: &[&["g++"]], version: &["--version"], ending: "cpp", object: &[] },
    Tool {
        name: "clang++",
        commands: &[&["clang++-22"], &["clang++-19"], &["clang++"]],
        version: &["--version"],
        ending: "cpp",
        object: &[],
    },
    Tool {
        name: "Zig",
        commands: &[&["{peers}/bin/python", "-m", "ziglang"], &["python3", "-m", "ziglang"]],
        version: &["version"],
        ending: "zig",
        object: &["build-obj", "-O", "ReleaseFast", "{mcpu}", "-fPIC", "-femit-bin={out}.o", "{source}"],
    },
    Tool {
        name: "Rust (nightly)",
        commands: &[&["rustup", "run", "nightly", "rustc"]],
        version: &["--version"],
        ending: "rs",
        object: &[
            "--edition=2024",
            "-Ccodegen-units=1",
            "-Cpanic=abort",
            "-Copt-level=3",
            "{target_cpu}",
            "--emit=obj",
            "-o{out}.o",
            "{source}",
        ],
    },
    Tool {
        name: "Intel OpenCL",
        commands: &[&[
            "env",
            "LD_LIBRARY_PATH={peers}/lib",
            "OCL_ICD_VENDORS={peers}/vendors",
            "{peers}/bin/python",
            "-B",
        ]],
        version: &["-c", "import pyopencl as cl; print(*(p.name + ', ' + p.version for p in cl.get_platforms()))"],
        ending: "py",
        object: &[],
    },
    python("Halide", &["-c", "import importlib.metadata as m; print(m.version('halide'))"]),
    python("OpenCV", &["-c", "import cv2; print(cv2.__version__)"]),
    python("Numba", &["-c", "import numba; print(numba.__version__)"]),
];

/// A Python library, for scripts.
const fn python(name: &'static str, version: &'static [&'static str]) -> Tool {
    Tool { name, commands: &[&["{peers}/bin/python", "-B"]], version, ending: "py", object: &[] }
}

const SIZES: &[u32] = &[512, 1024, 2048, 4096, 8192];

/// Options of g++, which only uses vector functions of libmvec with fast math.
const FAST_GCC: &[&str] = &["-fopenmp", "-ffast-math", "-mprefer-vector-width=512"];
const FAST_CLANG: &[&str] = &["-fopenmp-simd", "-ffast-math", "-mprefer-vector-width=512", "-fveclib=libmvec"];

/// A participant in a measurement: its name and command.
type Contender = (String, Command);

/// Runs a suite, or the part of it that the plan names: a program, or the picture.
pub fn run(name: &str, plan: &Plan, out: &mut Out) -> Result<(), String> {
    let part = plan.part(name);
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    for suite in SUITES.iter().filter(|s| s.name == name) {
        if part != "plot" {
            beside_peers(suite, part, plan, out)?;
        }
        if part == "plot" || part.is_empty() && !plan.is_brief {
            if !suite.plotted.is_empty() {
                let _ = write!(out, "{}", speedups(suite, plan.level)?);
            }
            if !suite.images.is_empty() {
                let _ = write!(out, "{}", over_threads(suite, plan.level)?);
                let _ = write!(out, "{}", over_sizes(suite, plan.level)?);
            }
        }
    }
    Ok(())
}

/// The C++ compiler of the brief form, which has no other tools: they compile for long.
const BRIEF_TOOL: &str = "g++";

fn beside_peers(suite: &Suite, only: &str, plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = super::folder(suite.name)?;
    let rounds = plan.turns(ROUNDS);
    let _ = writeln!(out, "{}, ms, medians of {rounds} runs in turns{}", suite.name, plan.level.said());
    let mut tools = BTreeMap::new();
    for tool in TOOLS.iter().filter(|t| suite.peers.iter().any(|p| p.1 == t.name)) {
        if plan.is_brief && tool.name != BRIEF_TOOL || !plan.has(tool.name, out) {
            continue;
        }
        let version_of = |command: &&'static [&'static str]| {
            let version = output(&mut command_of(command, tool.version, "", "", plan.level));
            Some((*command, version.lines().next()?.to_string()))
        };
        let found = tool.commands.iter().find_map(version_of);
        let version = found.as_ref().map_or("not installed: not measured", |f| &f.1);
        let _ = writeln!(out, "  {}: {version}", tool.name);
        if let Some((command, _)) = found {
            tools.insert(tool.name, (tool, command));
        }
    }
    let mut measured: Vec<(usize, Vec<Measured>)> = plan.threads().into_iter().map(|n| (n, Vec::new())).collect();
    for &(program, widths, about) in suite.workloads.iter().filter(|w| w.0.contains(only)) {
        let widths: Vec<u32> = plan.sizes(widths, suite.brief).iter().map(|&lanes| plan.level.lanes(lanes)).collect();
        let mut peers: Vec<(usize, Command)> = Vec::new();
        for (i, &(name, tool, options, variant, _)) in suite.peers.iter().enumerate() {
            let Some(&(tool, command)) = tools.get(tool) else { continue };
            // Scalar code takes most of the time.
            if plan.is_brief && variant == "scalar" {
                continue;
            }
            let file = folder.join(format!("{program}-{i}"));
            match build(suite, program, (tool, command), options, &file, plan.level) {
                Ok(Some(mut peer)) => {
                    peer.arg(variant);
                    peers.push((i, peer));
                }
                Ok(None) => {}
                Err(e) => {
                    let _ = writeln!(out, "  {program}, {name}: not measured: {}", first_line(&e));
                }
            }
        }
        for (threads, all) in &mut measured {
            let (block, one) = measure(suite, (program, &widths, about), &peers, (*threads, plan.level), rounds)?;
            let _ = write!(out, "{block}");
            all.push(one);
        }
    }
    for &(program, about) in suite.alone.iter().filter(|a| a.0.contains(only) && !plan.is_brief) {
        for &(threads, _) in &measured {
            let _ = write!(out, "{}", ways(suite, program, about, threads, plan.level)?);
        }
    }
    if only.is_empty() && !plan.is_brief {
        for (threads, all) in &measured {
            let _ = write!(out, "{}", pictures::ratios(suite, *threads, plan.level, all)?);
            if !suite.images.is_empty() {
                let _ = write!(out, "{}", pictures::roofline(suite, *threads, plan.level, all)?);
            }
        }
    }
    let _ = writeln!(out);
    Ok(())
}

/// A command with more arguments, and its placeholders replaced.
fn command_of(command: &[&str], more: &[&str], source: &str, out: &str, level: &Level) -> Command {
    let peers = root().join("out/peers").display().to_string();
    let mut words = command
        .iter()
        .chain(more)
        .map(|word| word.replace("{peers}", &peers).replace("{source}", source).replace("{out}", out))
        .map(|word| word.replace("{mcpu}", &level.mcpu()).replace("{target_cpu}", &level.target_cpu()));
    let mut filled = Command::new(words.next().unwrap_or_default());
    filled.args(words);
    filled
}

/// The standard output of a command, or an empty text if it fails.
fn output(command: &mut Command) -> String {
    let output = command.output().ok().filter(|o| o.status.success());
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}

/// Builds a peer for a level. Returns its command, or `None` if there is no such program in this language.
fn build(
    suite: &Suite,
    program: &str,
    (tool, command): (&Tool, &[&str]),
    options: &[&str],
    out: &Path,
    level: &Level,
) -> Result<Option<Command>, String> {
    let folder = root().join("bench/peers").join(suite.name);
    let source = folder.join(format!("{program}.{}", tool.ending));
    if !source.exists() {
        return Ok(None);
    }
    let (source, file) = (source.display().to_string(), out.display().to_string());
    if tool.ending == "py" {
        let mut script = command_of(command, &["{source}"], &source, &file, level);
        level.limit(tool.name, &mut script);
        return Ok(Some(script));
    }
    let mut cpp = match tool.object {
        [] => command_of(command, &[], "", "", level),
        object => {
            // Zig's caches are in the current folder.
            let made = command_of(command, object, &source, &file, level).current_dir(root().join("out")).output();
            let made = made.map_err(|e| format!("cannot run {}: {e}", tool.name))?;
            if !made.status.success() {
                return Err(String::from_utf8_lossy(&made.stderr).trim().to_string());
            }
            let mut cpp = Command::new("g++");
            cpp.args(["-DOBJECT", &format!("{file}.o")]);
            cpp
        }
    };
    cpp.args(["-std=c++17", "-O3", &level.march(), "-pthread", "-w", "-o", &file]);
    cpp.args(options).arg(folder.join(format!("{program}.cpp")));
    let made = cpp.output().map_err(|e| format!("cannot run {}: {e}", cpp.get_program().display()))?;
    if !made.status.success() {
        return Err(format!("does not compile: {}", String::from_utf8_lossy(&made.stderr)));
    }
    Ok(Some(Command::new(out)))
}

/// Builds the Impala program with this number of lanes.
fn ours(suite: &Suite, program: &str, lanes: u32, (threads, level): (usize, &Level)) -> Result<Command, String> {
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut command = Command::new(nyala);
    command.args(["run", "--cpu", level.name, "-D", &format!("LANES={lanes}"), "-D", &format!("THREADS={threads}")]);
    command.arg(root().join("bench").join(suite.name).join(format!("{program}.impala")));
    Ok(command)
}

fn measure(
    suite: &Suite,
    (program, widths, about): (&'static str, &[u32], &str),
    peers: &[(usize, Command)],
    (threads, level): (usize, &Level),
    rounds: usize,
) -> Result<(String, Measured), String> {
    let mut all: Vec<Contender> = Vec::new();
    for &width in widths {
        all.push((format!("ours, {width} lanes"), ours(suite, program, width, (threads, level))?));
    }
    for (i, peer) in peers {
        let mut command = Command::new(peer.get_program());
        command.args(peer.get_args()).arg(threads.to_string());
        command.envs(peer.get_envs().filter_map(|(name, value)| Some((name, value?))));
        all.push((suite.peers[*i].0.to_string(), command));
    }
    let (taking_part, times, failed) = in_rounds(program, widths.len(), all, rounds)?;
    let middle = |times: &[f64]| median(&mut times.to_vec());
    let best = (0..widths.len()).min_by(|&a, &b| middle(&times[a]).total_cmp(&middle(&times[b]))).unwrap_or(0);
    let mut measured = Measured { program, ours: times[best].clone(), ratios: Vec::new() };
    let threads = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
    let mut block = format!("  {program}, {threads}: {about}\n");
    for (i, (name, _)) in taking_part.iter().enumerate() {
        let _ = write!(block, "    {name:<30} {:>10.3}", middle(&times[i]));
        if i >= widths.len() {
            let mut ratios: Vec<f64> = times[best].iter().zip(&times[i]).map(|(ours, peer)| ours / peer).collect();
            let ratio = median(&mut ratios);
            let (low, high) = (ratios.first().copied().unwrap_or(ratio), ratios.last().copied().unwrap_or(ratio));
            let _ = write!(block, "   ours/it {ratio:>6.2} ({low:.2} to {high:.2})");
            measured.ratios.extend(suite.peers.iter().position(|p| p.0 == name).map(|i| (i, ratios)));
        }
        block.push('\n');
    }
    for why in failed {
        let _ = writeln!(block, "    not measured: {}", last_line(&why));
    }
    Ok((block, measured))
}

/// Runs a program that compares several ways itself, in rounds. Returns the ratios to the first way.
fn ways(suite: &Suite, program: &str, about: &str, threads: usize, level: &Level) -> Result<String, String> {
    let mut command = ours(suite, program, 32, (threads, level))?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(lines_of(program, &mut command)?.unwrap_or_default());
    }
    let mut text = format!("  {program}, threads: {threads}: {about}\n");
    let names: Vec<String> = rounds[0].keys().cloned().collect();
    for name in &names {
        let all = rounds.iter().map(|r| r.get(name).copied().unwrap_or(f64::NAN) / 1e6);
        let _ = writeln!(text, "    {name:<30} {:>10.3}", pictures::value(all).value);
    }
    for name in names.iter().skip(1) {
        let ratio = pictures::value(rounds.iter().map(|r| r[name] / r[&names[0]]));
        let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
        let _ = writeln!(text, "    {name} / {} {:.2} ({low:.2} to {high:.2})", names[0], ratio.value);
    }
    Ok(text)
}

/// The participants, the milliseconds of each by round, and the reasons why others do not take part.
type Rounds = (Vec<Contender>, Vec<Vec<f64>>, Vec<String>);

/// Runs all programs in turns; the first `n_ours` are Impala programs. Before that, each runs once, and the results
/// must be equal. A peer does not take part if it fails, has no such function, or is for another processor; each is named.
fn in_rounds(program: &str, n_ours: usize, all: Vec<Contender>, rounds: usize) -> Result<Rounds, String> {
    let mut expected: Option<BTreeMap<String, f64>> = None;
    let (mut taking_part, mut failed) = (Vec::new(), Vec::new());
    for (i, (name, mut command)) in all.into_iter().enumerate() {
        let found = match lines_of(&name, &mut command) {
            Ok(Some(found)) => found,
            Ok(None) => {
                failed.push(format!("{name}: no such code, or none for these instructions"));
                continue;
            }
            Err(e) if i < n_ours => return Err(e),
            Err(e) => {
                failed.push(e);
                continue;
            }
        };
        let same = expected.as_ref().is_none_or(|e| {
            ["sum", "weighted"].iter().all(|s| {
                let (x, y) = (e.get(*s).copied().unwrap_or(f64::NAN), found.get(*s).copied().unwrap_or(f64::NAN));
                (x - y).abs() <= 1e-4 * x.abs()
            })
        });
        if !same {
            return Err(format!("{program}: {name} gives {found:?}, others {expected:?}"));
        }
        expected.get_or_insert(found);
        taking_part.push((name, command));
    }
    let mut times = vec![Vec::new(); taking_part.len()];
    for _ in 0..rounds {
        let mut i = 0;
        while let Some((name, command)) = taking_part.get_mut(i) {
            match lines_of(name, command) {
                Ok(found) => {
                    times[i].push(found.unwrap_or_default().get("time").copied().unwrap_or(f64::NAN) / 1e6);
                    i += 1;
                }
                Err(e) if i < n_ours => return Err(e),
                Err(e) => {
                    failed.push(e);
                    taking_part.remove(i);
                    times.remove(i);
                }
            }
        }
    }
    Ok((taking_part, times, failed))
}

/// Draws Figure 6.2 of Leissa's thesis for these programs, to `bench/results/`: their speedups over one lane, by number
/// of lanes, on one thread. Returns them as a table too.
fn speedups(suite: &Suite, level: &Level) -> Result<String, String> {
    let mut text = format!("speedups over one lane, one thread, medians of {ROUNDS} runs in turns\n  {:<18}", "lanes");
    for lanes in suite.plotted {
        let _ = write!(text, "{lanes:>22}");
    }
    let mut series: Vec<Series> = Vec::new();
    for &lanes in suite.plotted.iter().skip(1) {
        series.push(Series { name: format!("{lanes} lanes"), values: Vec::new() });
    }
    for &(program, ..) in suite.workloads {
        let mut all: Vec<Contender> = Vec::new();
        for &lanes in suite.plotted {
            all.push((format!("ours, {lanes} lanes"), ours(suite, program, lanes, (1, level))?));
        }
        let (_, times, _) = in_rounds(program, all.len(), all, ROUNDS)?;
        let _ = write!(text, "\n  {program:<18}{:>19.3} ms", median(&mut times[0].clone()));
        for (series, widened) in series.iter_mut().zip(&times[1..]) {
            let value = pictures::value(times[0].iter().zip(widened).map(|(one, more)| one / more));
            let (low, high) = value.interval.unwrap_or((value.value, value.value));
            series.values.push(Some(value));
            let _ = write!(text, "{:>22}", format!("{:.2} ({low:.2}-{high:.2})", value.value));
        }
    }
    let groups: Vec<&str> = suite.workloads.iter().map(|w| w.0).collect();
    let plot = Bars {
        title: "Vectorized loops: speedup over the same program with one lane",
        about: &pictures::about(&format!("one thread{}", level.said()), "higher is better"),
        y_label: "times as fast",
        groups: &groups,
        series: &series,
        reference: Some(1.0),
    };
    let file = pictures::file(suite.name, "lanes")?;
    bars(&plot, &file.path)?;
    let _ = writeln!(text, "\n{}", file.drawn);
    Ok(text)
}

/// The speedups of the Impala programs over one thread, on up to twice as many threads as processors.
fn over_threads(suite: &Suite, level: &Level) -> Result<String, String> {
    let counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&n| n <= 2 * cores()).collect();
    let mut text = "speedups over one thread\n".to_string();
    let mut lines = Vec::new();
    for &(program, widths, _) in suite.workloads {
        let all: Result<Vec<Contender>, String> = counts
            .iter()
            .map(|&n| Ok((format!("ours, {n} threads"), ours(suite, program, widths[widths.len() - 1], (n, level))?)))
            .collect();
        let (_, times, _) = in_rounds(program, counts.len(), all?, ROUNDS)?;
        let _ = write!(text, "  {program:<18}");
        let mut points = Vec::new();
        for (&n, more) in counts.iter().zip(&times) {
            let value = pictures::value(times[0].iter().zip(more).map(|(one, more)| one / more));
            let _ = write!(text, " {n}: {:.2}", value.value);
            points.push((n as f64, value));
        }
        text.push('\n');
        lines.push(Line { name: program.into(), points, labels: Vec::new() });
    }
    let plot = Lines {
        title: &format!("{}: speedup over one thread", suite.title),
        about: &pictures::about(&format!("{} processors{}", cores(), level.said()), "higher is better"),
        x_label: "threads",
        y_label: "times as fast",
        lines: &lines,
    };
    let file = pictures::file(suite.name, "threads")?;
    crate::plots::lines(&plot, &file.path)?;
    text.push_str(&file.drawn);
    Ok(text)
}

/// The nanoseconds for each pixel, by the size of the image, on one thread.
fn over_sizes(suite: &Suite, level: &Level) -> Result<String, String> {
    let mut text = "nanoseconds for each pixel, one thread\n".to_string();
    let mut lines = Vec::new();
    for &(program, _, _, sizes, _) in suite.images {
        let Some(&(_, widths, _)) = suite.workloads.iter().find(|w| w.0 == program) else { continue };
        let _ = write!(text, "  {program:<18}");
        let mut points = Vec::new();
        for &size in sizes {
            let mut command = ours(suite, program, widths[widths.len() - 1], (1, level))?;
            command.args(["-D", &format!("N={size}")]);
            let (_, times, _) = in_rounds(program, 1, vec![(format!("ours, {size}²"), command)], ROUNDS)?;
            let pixels = f64::from(size) * f64::from(size);
            let value = pictures::value(times[0].iter().map(|ms| ms * 1e6 / pixels));
            let _ = write!(text, " {size}²: {:.3}", value.value);
            points.push((pixels, value));
        }
        text.push('\n');
        lines.push(Line { name: program.into(), points, labels: Vec::new() });
    }
    let plot = Lines {
        title: &format!("{}: time for each pixel by size of the image", suite.title),
        about: &pictures::about(&format!("one thread{}", level.said()), "lower is better"),
        x_label: "pixels",
        y_label: "ns for each pixel",
        lines: &lines,
    };
    let file = pictures::file(suite.name, "sizes")?;
    crate::plots::lines(&plot, &file.path)?;
    text.push_str(&file.drawn);
    Ok(text)
}

/// Runs a program that prints names and numbers. `None` if it reports that it does not have the function.
fn lines_of(name: &str, command: &mut Command) -> Result<Option<BTreeMap<String, f64>>, String> {
    let output = command.output().map_err(|e| format!("cannot run the program of {name}: {e}"))?;
    if output.status.code() == Some(3) {
        return Ok(None);
    }
    if !output.status.success() {
        return Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Some(
        text.lines().filter_map(|l| l.split_once(' ')).filter_map(|(n, x)| Some((n.into(), x.parse().ok()?))).collect(),
    ))
}

/// The line of a compiler's messages that says what is wrong, or the first one.
fn first_line(messages: &str) -> &str {
    messages.lines().find(|line| line.contains("error")).or(messages.lines().next()).unwrap_or_default().trim()
}

/// The last line of a failure, after the name of the program. Scripts print the cause last.
fn last_line(why: &str) -> String {
    let mut lines = why.lines();
    let first = lines.next().unwrap_or_default();
    lines.next_back().map_or(first.into(), |last| format!("{first} … {}", last.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::levels::V3;
    use super::*;

    fn contender(name: &str, script: &str) -> Contender {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (name.into(), command)
    }

    #[test]
    fn a_peer_that_fails_is_reported_and_left_out() {
        const WELL: &str = "echo sum 1; echo weighted 2; echo time 3000000";
        let folder = tempfile::tempdir().unwrap();
        // This one fails in its second run.
        let later =
            format!("{WELL}; mkdir {0}/once 2>/dev/null || {{ echo gone >&2; exit 1; }}", folder.path().display());
        let all = || {
            vec![
                contender("ours", WELL),
                contender("well", WELL),
                contender("broken", "echo no >&2; echo device >&2; exit 1"),
                contender("without", "exit 3"),
                contender("later", &later),
                contender("missing", "exec /no/such/program"),
            ]
        };
        let (taking_part, times, failed) = in_rounds("p", 1, all(), ROUNDS).unwrap();
        assert_eq!(taking_part.iter().map(|c| c.0.as_str()).collect::<Vec<_>>(), ["ours", "well"]);
        assert_eq!(times, vec![vec![3.0; ROUNDS]; 2]);
        let failed: Vec<String> = failed.iter().map(|f| last_line(f)).collect();
        assert_eq!(failed.len(), 4);
        assert!(failed[0].starts_with("broken: ") && failed[0].ends_with(" … device"), "{failed:?}");
        assert!(failed[2].starts_with("missing: ") && failed[3].starts_with("later: "), "{failed:?}");
        assert_eq!(failed[1], "without: no such code, or none for these instructions");
        // An Impala program must not fail, and all results must be equal.
        assert!(in_rounds("p", 3, all(), ROUNDS).is_err());
        let other = vec![contender("ours", WELL), contender("other", "echo sum 2; echo weighted 2; echo time 1")];
        assert!(in_rounds("p", 1, other, ROUNDS).is_err());
    }

    #[test]
    fn a_peer_that_does_not_compile_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let (tool, suite) = (&TOOLS[0], &SUITES[0]);
        let out = folder.path().join("peer");
        let built = |option: &str| build(suite, "gather", (tool, &["g++"]), &[option], &out, V3);
        assert!(built("-Wall").unwrap().is_some());
        let why = built("-fno-such-thing").unwrap_err();
        assert!(why.starts_with("does not compile: ") && first_line(&why).contains("-fno-such-thing"), "{why}");
        // Zig has no such program.
        assert!(build(suite, "gather", (&TOOLS[2], &["zig"]), &[], &out, V3).unwrap().is_none());
        assert_eq!(first_line("In file\n  x.cpp:1: error: no\n"), "x.cpp:1: error: no");
    }

    #[test]
    fn each_peer_has_a_limit() {
        let tools = SUITES.iter().flat_map(|suite| suite.peers).map(|peer| peer.1);
        for peer in tools.chain(["OpenBLAS", "MKL", "BLIS", "NumPy", "Embree", "regex", "Polars", "vqsort"]) {
            let why = V3.left_out(peer);
            assert!(why.as_deref() != Some("it is not known how to limit it"), "{peer}");
        }
    }
}
