//! `x bench rays`: `lib/ray` beside Embree, in turns, on one thread and on all: scenes and rays that `bench/rays/make.impala` computes once
//! for all programs; then builders, and the hits of both, compared.

use super::{RUNS, in_turns, machine, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SCENES: &[&str] = &["hall", "blob", "million", "hair", "engine"];
const KINDS: &[&str] = &["primary", "ao", "diffuse", "random"];
/// The ways in which a program traces, as its output names them.
const WAYS: [&str; 2] = ["one", "packet"];
/// Those of ours alone: single rays with quantized nodes, trees by spatial splits, kernels that lose no ray.
const OUR_WAYS: [&str; 5] = ["small", "split_one", "split_packet", "robust_one", "robust_packet"];

pub fn run() -> Result<String, String> {
    let out = root().join("out/bench/rays");
    let Some(embree) = library() else {
        return Ok("rays: not measured: bench/peers/install.sh installs Embree\n\n".into());
    };
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]);
    sh(&mut cargo)?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    sh(Command::new(&nyala).arg("run").arg(root().join("bench/rays/make.impala")).arg("--").arg(&out))?;
    let (ours, peer) = (out.join("ours"), out.join("embree"));
    sh(Command::new(&nyala).args(["build", "-o"]).arg(&ours).arg(root().join("bench/rays/trace.impala")))?;
    let folder = embree.parent().unwrap_or(&embree);
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", "-march=native", "-o"]).arg(&peer);
    compiler
        .arg("-pthread")
        .arg(root().join("bench/peers/rays/embree.cpp"))
        .arg(&embree)
        .arg(format!("-Wl,-rpath,{}", folder.display()));
    sh(&mut compiler)?;

    let version = output_of("c++", &["--version"]);
    let mut text = format!("rays, medians of {RUNS} runs in turns; {}", machine());
    text.push_str("  each one by one / in packets; `split` has spatial splits, as Embree's trees of high quality\n");
    for threads in [1, all_threads()] {
        let _ = writeln!(text, "  ns for each ray, {threads} threads");
        for scene in SCENES {
            text.push_str(&traces(&ours, &peer, &out, scene, threads)?);
        }
    }
    text.push_str(&builds(&nyala, &out, &peer)?);
    for scene in SCENES {
        sh(peer_command(&peer, &out, scene, "medium", "hits", 1).stdout(Stdio::null()))?;
        let compared = our_command(&ours, &out, scene, 1).arg("hits").output().map_err(|e| e.to_string())?;
        text.push_str(&String::from_utf8_lossy(&compared.stdout));
    }
    let _ = writeln!(text, "  {}\n", version.lines().next().unwrap_or(""));
    Ok(text)
}

fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn our_command(program: &Path, out: &Path, scene: &str, threads: usize) -> Command {
    let mut command = Command::new(program);
    command.arg(out).arg(scene).env("NYALA_NUM_THREADS", threads.to_string());
    command
}

fn peer_command(program: &Path, out: &Path, scene: &str, quality: &str, mode: &str, threads: usize) -> Command {
    let mut command = Command::new(program);
    command.arg(out).args([scene, quality, mode, &threads.to_string()]);
    command
}

/// Times of all kinds of rays of a scene.
fn traces(ours: &Path, peer: &Path, out: &Path, scene: &str, threads: usize) -> Result<String, String> {
    let of_kind =
        |kind: &&str| WAYS.iter().chain(&OUR_WAYS).map(|way| format!("{scene}_{kind}_{way}")).collect::<Vec<_>>();
    let names: Vec<String> = KINDS.iter().flat_map(of_kind).collect();
    let workloads: Vec<(&str, ())> = names.iter().map(|name| (name.as_str(), ())).collect();
    let peer = |quality: &str, mode: &str| peer_command(peer, out, scene, quality, mode, threads);
    let mut programs = [
        ("ours", our_command(ours, out, scene, threads)),
        ("Embree", peer("medium", "trace")),
        ("Embree, high", peer("high", "trace")),
        ("Embree, robust", peer("medium", "robust")),
    ];
    let times = in_turns(&mut programs, &workloads)?;
    let mut text = String::new();
    for kind in KINDS {
        let time = |program: usize, way: &str| {
            names.iter().position(|n| *n == format!("{scene}_{kind}_{way}")).map_or(f64::NAN, |i| times[program][i])
        };
        let both = |program: usize, before: &str| WAYS.map(|way| time(program, &format!("{before}{way}")));
        let _ = write!(text, "  {scene} {kind:<8}");
        let least = |t: [f64; 2]| t[0].min(t[1]);
        for (name, ours, peer) in [
            ("", both(0, ""), both(1, "")),
            ("split ", both(0, "split_"), both(2, "")),
            ("robust ", both(0, "robust_"), both(3, "")),
        ] {
            let _ = write!(
                text,
                " {name}ours {:.1}/{:.1} Embree {:.1}/{:.1} speed {:.2};",
                ours[0],
                ours[1],
                peer[0],
                peer[1],
                least(peer) / least(ours)
            );
        }
        let _ = writeln!(text, " quantized {:.1}", time(0, "small"));
    }
    Ok(text)
}

/// Times of building and packing in turns, on one thread and on all, and costs of ours.
fn builds(nyala: &Path, out: &Path, peer: &Path) -> Result<String, String> {
    let ours = out.join("build");
    sh(Command::new(nyala).args(["build", "-o"]).arg(&ours).arg(root().join("bench/rays/build.impala")))?;
    let mut text = String::new();
    for threads in [1, all_threads()] {
        for scene in SCENES {
            let peer = |quality: &str| peer_command(peer, out, scene, quality, "build", threads);
            let mut programs = [
                ("ours", our_command(&ours, out, scene, threads)),
                ("Embree", peer("medium")),
                ("Embree, low", peer("low")),
                ("Embree, high", peer("high")),
            ];
            let columns =
                ["sah", "fast", "split", "refit", "sah_cost", "fast_cost", "split_cost", "medium", "low", "high"];
            let names = columns.map(|c| format!("{scene}_{c}"));
            let workloads = names.each_ref().map(|name| (name.as_str(), ()));
            let times = in_turns(&mut programs, &workloads)?;
            let of = |program: usize, column: &str| {
                columns.iter().position(|c| *c == column).map_or(f64::NAN, |i| times[program][i])
            };
            let ms = |program: usize, column: &str| of(program, column) / 1e6;
            let _ = writeln!(
                text,
                "  {scene} built in ms, {threads} threads: SAH {:.1} (cost {:.2}), merged {:.1} (cost {:.2}), spatial splits {:.1} (cost \
                 {:.2}), refitted {:.1}; Embree {:.1}, by Morton codes {:.1}, spatial splits {:.1}",
                ms(0, "sah"),
                of(0, "sah_cost"),
                ms(0, "fast"),
                of(0, "fast_cost"),
                ms(0, "split"),
                of(0, "split_cost"),
                ms(0, "refit"),
                ms(1, "medium"),
                ms(2, "low"),
                ms(3, "high"),
            );
        }
    }
    Ok(text)
}

/// Embree's library, which Python's package has beside its own.
fn library() -> Option<PathBuf> {
    let lib = root().join("out/peers/lib");
    let versions = std::fs::read_dir(lib).ok()?.flatten().map(|e| e.path().join("site-packages/embreex.libs"));
    let files = versions.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten().map(|e| e.path());
    files.into_iter().find(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with("libembree4")))
}
