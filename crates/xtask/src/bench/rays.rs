//! `x bench rays`: `lib/ray` beside Embree, in turns, on one thread: scenes and rays that `bench/rays/make.impala` computes once for
//! all programs; then the hits of both, compared.

use super::{RUNS, in_turns, machine, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCENES: &[&str] = &["hall", "blob"];
const KINDS: &[&str] = &["primary", "ao", "diffuse", "random"];
/// The ways in which a program traces, as its output names them.
const WAYS: [&str; 2] = ["one", "packet"];
/// Single rays with quantized nodes, by ours only.
const SMALL: &str = "small";

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
        .arg(root().join("bench/peers/rays/embree.cpp"))
        .arg(&embree)
        .arg(format!("-Wl,-rpath,{}", folder.display()));
    sh(&mut compiler)?;

    let mut names = Vec::new();
    for scene in SCENES {
        names.extend(
            KINDS
                .iter()
                .flat_map(|kind| WAYS.iter().chain([&SMALL]).map(move |way| (format!("{scene}_{kind}_{way}"), ()))),
        );
    }
    let workloads: Vec<(&str, ())> = names.iter().map(|(name, ())| (name.as_str(), ())).collect();
    let command = |program: &PathBuf, argument: &str| {
        let mut command = Command::new(program);
        command.arg(&out).args((!argument.is_empty()).then_some(argument));
        command
    };
    let mut programs =
        [("ours", command(&ours, "")), ("Embree", command(&peer, "medium")), ("Embree, high", command(&peer, "high"))];
    let times = in_turns(&mut programs, &workloads)?;
    let time =
        |program: usize, name: &str| workloads.iter().position(|w| w.0 == name).map_or(f64::NAN, |i| times[program][i]);
    let mut text = format!("rays, ns for each, medians of {RUNS} runs in turns, one thread; {}", machine());
    text.push_str("  trees by binned SAH; `high` is Embree's with spatial splits; ratios are the faster of Embree's ways to ours\n");
    for scene in SCENES {
        for kind in KINDS {
            let both = |program: usize| WAYS.map(|way| time(program, &format!("{scene}_{kind}_{way}")));
            let (ours, medium, high) = (both(0), both(1), both(2));
            let least = |t: [f64; 2]| t[0].min(t[1]);
            let _ = writeln!(
                text,
                "  {scene} {kind:<8} one, packet: ours {:>6.1} {:>6.1} (quantized {:>6.1})  Embree {:>6.1} {:>6.1}  high {:>6.1} {:>6.1}   speed {:.2} of \
                 Embree's, {:.2} of high",
                ours[0],
                ours[1],
                time(0, &format!("{scene}_{kind}_{SMALL}")),
                medium[0],
                medium[1],
                high[0],
                high[1],
                least(medium) / least(ours),
                least(high) / least(ours),
            );
        }
    }
    text.push_str(&builds(&nyala, &out, &peer)?);
    sh(command(&peer, "medium").arg("hits"))?;
    let compared = command(&ours, "hits").output().map_err(|e| e.to_string())?;
    text.push_str(&String::from_utf8_lossy(&compared.stdout));
    let _ = writeln!(text, "  {}\n", output_of("c++", &["--version"]).lines().next().unwrap_or(""));
    Ok(text)
}

/// Times of building and packing in turns, on one thread and on all, and costs of ours.
fn builds(nyala: &Path, out: &Path, peer: &Path) -> Result<String, String> {
    let ours = out.join("build");
    sh(Command::new(nyala).args(["build", "-o"]).arg(&ours).arg(root().join("bench/rays/build.impala")))?;
    let mut text = String::new();
    for threads in [1, std::thread::available_parallelism().map_or(1, usize::from)] {
        let mut our_command = Command::new(&ours);
        our_command.arg(out).env("NYALA_NUM_THREADS", threads.to_string());
        let their_command = |quality: &str| {
            let mut command = Command::new(peer);
            command.arg(out).args([quality, "build", &threads.to_string()]);
            command
        };
        let mut programs =
            [("ours", our_command), ("Embree", their_command("medium")), ("Embree, low", their_command("low"))];
        let columns = ["sah", "fast", "refit", "sah_cost", "fast_cost", "medium", "low"];
        let names: Vec<String> = SCENES.iter().flat_map(|s| columns.map(|c| format!("{s}_{c}"))).collect();
        let workloads: Vec<(&str, ())> = names.iter().map(|name| (name.as_str(), ())).collect();
        let times = in_turns(&mut programs, &workloads)?;
        for (s, scene) in SCENES.iter().enumerate() {
            let of = |program: usize, column: usize| times[program][s * columns.len() + column];
            let _ = writeln!(
                text,
                "  {scene} built in ms, {threads} threads: SAH {:.1} (cost {:.2}), merged {:.1} (cost {:.2}), refitted {:.1}; Embree {:.1}, \
                 by Morton codes {:.1}",
                of(0, 0) / 1e6,
                of(0, 3),
                of(0, 1) / 1e6,
                of(0, 4),
                of(0, 2) / 1e6,
                of(1, 5) / 1e6,
                of(2, 6) / 1e6,
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
