//! `x bench vectorize`, `x bench image`: programs of `bench/<suite>` beside C++ in `bench/peers/<suite>`: what compilers make of
//! scalar code, of loops that ask for vectors, and of intrinsics. On one thread and on all, in turns; first all results are
//! compared. `x bench "vectorize volume"` measures one program.

use super::{median, output_of};
use crate::{root, sh};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Each round runs everything once; of five ratios the lowest and the highest are the 94 % interval of the median.
const ROUNDS: usize = 5;

/// Program, how many lanes ours is run with, what it is.
type Workload = (&'static str, &'static [u32], &'static str);

struct Suite {
    name: &'static str,
    workloads: &'static [Workload],
    peers: &'static [Peer],
}

const SUITES: &[Suite] = &[
    Suite {
        name: "vectorize",
        workloads: &[
            ("mandelbrot", &[16, 32], "1536×1024 points, up to 256 rounds"),
            ("black_scholes", &[16, 32], "1,048,576 options"),
            ("binomial", &[16, 32], "32,768 options, 64 steps"),
            ("ambient_occlusion", &[8, 16], "256×256 pixels, 4 samples, 64 rays each"),
            ("volume", &[8, 16], "320×240 rays through 128³ densities"),
            ("gather", &[16, 32], "4,194,304 dependent look-ups"),
            ("strided", &[16, 64], "4,194,304 pixels of three bytes"),
        ],
        peers: &[
            ("g++ -O3", GCC, &["-fopenmp"], "scalar"),
            ("clang++ -O3", CLANG, &[], "scalar"),
            ("g++, omp simd, fast math", GCC, FAST_GCC, "simd"),
            ("clang++, omp simd, fast math", CLANG, FAST_CLANG, "simd"),
            ("intrinsics, g++", GCC, FAST_GCC, "hand"),
            ("intrinsics, clang++", CLANG, FAST_CLANG, "hand"),
        ],
    },
    Suite {
        name: "image",
        workloads: &[
            ("blur", &[16, 32], "3×3 means, i32, 4096²"),
            ("gauss", &[16, 32], "5×5, f32, 4096²"),
            ("harris", &[16, 32], "corners, f32, 4096²"),
            ("bilateral", &[16, 32], "13×13, f32, 1024²"),
            ("jacobi", &[16, 32], "one sweep, f32, 4096²"),
            ("residual_restrict", &[16, 32], "f32, 4096²"),
        ],
        peers: &[
            ("not fused, g++", GCC, FAST_GCC, "scalar"),
            ("not fused, clang++", CLANG, FAST_CLANG, "scalar"),
            ("omp simd, g++", GCC, FAST_GCC, "simd"),
            ("omp simd, clang++", CLANG, FAST_CLANG, "simd"),
            ("intrinsics, g++", GCC, FAST_GCC, "hand"),
            ("intrinsics, clang++", CLANG, FAST_CLANG, "hand"),
        ],
    },
];

/// What to call it, compilers to try, options, which of the peer's functions.
type Peer = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);
const GCC: &[&str] = &["g++"];
const CLANG: &[&str] = &["clang++-22", "clang++-19", "clang++"];
/// Without fast mathematics g++ takes no vector function of libmvec.
const FAST_GCC: &[&str] = &["-fopenmp", "-ffast-math", "-mprefer-vector-width=512"];
const FAST_CLANG: &[&str] = &["-fopenmp-simd", "-ffast-math", "-mprefer-vector-width=512", "-fveclib=libmvec"];

/// Who takes part: what it is called, its command.
type Contender = (String, Command);

/// The suites that a filter asks for: all, one, one program of one.
pub fn run(filter: Option<&str>) -> Result<String, String> {
    let mut text = String::new();
    for suite in SUITES {
        let program = filter.and_then(|f| f.strip_prefix(suite.name)).map(str::trim);
        if filter.is_none() || program.is_some() {
            text.push_str(&run_suite(suite, program.unwrap_or(""))?);
        }
    }
    Ok(text)
}

fn run_suite(suite: &Suite, only: &str) -> Result<String, String> {
    let out = root().join("out/bench").join(suite.name);
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let mut text = format!("{}, ms, medians of {ROUNDS} runs in turns\n", suite.name);
    for compilers in [GCC, CLANG] {
        let found = compilers.iter().find(|c| !output_of(c, &["--version"]).is_empty());
        let version = found.map(|c| output_of(c, &["--version"]));
        let version = version.as_deref().and_then(|v| v.lines().next()).unwrap_or("not installed: not measured");
        let _ = writeln!(text, "  {}: {version}", compilers[compilers.len() - 1]);
    }
    print!("{text}");
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    for &(program, widths, about) in suite.workloads.iter().filter(|w| w.0.contains(only)) {
        let peers = build(suite, program, &out);
        for threads in [1, cores] {
            let block = measure(suite, (program, widths, about), &peers, threads)?;
            print!("{block}");
            text.push_str(&block);
            if cores == 1 {
                break;
            }
        }
    }
    text.push('\n');
    Ok(text)
}

/// The peers that can be compiled here: their places in the table.
fn build(suite: &Suite, program: &str, out: &Path) -> Vec<usize> {
    let source = root().join("bench/peers").join(suite.name).join(format!("{program}.cpp"));
    let compiles = |&(i, peer): &(usize, &Peer)| {
        let (_, compilers, options, _) = *peer;
        compilers.iter().any(|compiler| {
            let mut command = Command::new(compiler);
            command.args(["-std=c++17", "-O3", "-march=native", "-pthread", "-w"]).args(options);
            command.arg("-o").arg(out.join(format!("{program}-{i}"))).arg(&source);
            command.output().is_ok_and(|o| o.status.success())
        })
    };
    suite.peers.iter().enumerate().filter(compiles).map(|(i, _)| i).collect()
}

fn measure(
    suite: &Suite,
    (program, widths, about): Workload,
    peers: &[usize],
    threads: usize,
) -> Result<String, String> {
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut all: Vec<Contender> = Vec::new();
    for width in widths {
        let mut ours = Command::new(&nyala);
        ours.arg("run").args(["-D", &format!("LANES={width}"), "-D", &format!("THREADS={threads}")]);
        ours.arg(root().join("bench").join(suite.name).join(format!("{program}.impala")));
        all.push((format!("ours, {width} lanes"), ours));
    }
    for &i in peers {
        let (name, .., variant) = suite.peers[i];
        let mut peer = Command::new(root().join("out/bench").join(suite.name).join(format!("{program}-{i}")));
        peer.args([variant, &threads.to_string()]);
        all.push((name.into(), peer));
    }
    // Once for the results; a peer without such a function, or on another processor, takes no part.
    let mut expected: Option<BTreeMap<String, f64>> = None;
    let mut taking_part = Vec::new();
    for (name, mut command) in all {
        let Some(found) = lines_of(&name, &mut command)? else { continue };
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
    for _ in 0..ROUNDS {
        for ((name, command), times) in taking_part.iter_mut().zip(&mut times) {
            let found = lines_of(name, command)?.unwrap_or_default();
            times.push(found.get("time").copied().unwrap_or(f64::NAN) / 1e6);
        }
    }
    let middle = |times: &[f64]| median(&mut times.to_vec());
    let best = (0..widths.len()).min_by(|&a, &b| middle(&times[a]).total_cmp(&middle(&times[b]))).unwrap_or(0);
    let threads = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
    let mut block = format!("  {program}, {threads}: {about}\n");
    for (i, (name, _)) in taking_part.iter().enumerate() {
        let _ = write!(block, "    {name:<30} {:>10.3}", middle(&times[i]));
        if i >= widths.len() {
            let mut ratios: Vec<f64> = times[best].iter().zip(&times[i]).map(|(ours, peer)| ours / peer).collect();
            let ratio = median(&mut ratios);
            let (low, high) = (ratios.first().copied().unwrap_or(ratio), ratios.last().copied().unwrap_or(ratio));
            let _ = write!(block, "   ours/it {ratio:>6.2} ({low:.2} to {high:.2})");
        }
        block.push('\n');
    }
    Ok(block)
}

/// What a program prints: names and numbers. Nothing if it says that it does not have what is asked for.
fn lines_of(name: &str, command: &mut Command) -> Result<Option<BTreeMap<String, f64>>, String> {
    let output = command.output().map_err(|e| format!("cannot run the program of {name}: {e}"))?;
    if output.status.code() == Some(3) {
        return Ok(None);
    }
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Some(
        text.lines().filter_map(|l| l.split_once(' ')).filter_map(|(n, x)| Some((n.into(), x.parse().ok()?))).collect(),
    ))
}
