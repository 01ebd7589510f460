//! `x bench parallel`: the cost of parallel loops, beside OpenMP and TBB, in turns. The programs are in
//! `bench/peers/parallel`; each prints names and nanoseconds, medians of 15 repetitions.

use super::{Out, Plan, RUNS, Turns, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The workloads of the programs, and their units.
const WORKLOADS: &[(&str, &str)] = &[
    ("empty", "64 cheap iterations, loop after loop: ns per loop"),
    ("spaced", "the same after 60,000 steps of other work: ns per loop and work"),
    ("call", "1,000,000 cheap calls: ns per iteration"),
    ("store", "4,194,304 stores: ns per iteration"),
    ("uneven", "2,000 iterations, the i-th of i steps: ns per loop"),
    ("nested", "a loop of 64 in a loop of 64, cheap calls: ns per iteration"),
];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let (peers, folder) = (root().join("bench/peers/parallel"), super::folder("")?);
    let (march, level) = (plan.level.march(), plan.level.name);
    let compile = |compiler: &str, args: &[&str], sources: &[&Path], to: &Path| {
        let mut command = Command::new(compiler);
        command.args(["-O3", &march, "-o"]).arg(to).args(sources).args(args);
        command.output().is_ok_and(|o| o.status.success())
    };
    let (work, library) = (folder.join("work.o"), folder.join("libwork.so"));
    let source = peers.join("work.c");
    if !compile("cc", &["-c"], &[&source], &work) || !compile("cc", &["-shared", "-fPIC"], &[&source], &library) {
        return Err("cannot compile bench/peers/parallel/work.c with `cc`".into());
    }
    let (openmp, tbb) = (folder.join("openmp"), folder.join("tbb"));
    let mut programs: Vec<(&str, Command)> = Vec::new();
    if compile("cc", &["-fopenmp"], &[&peers.join("openmp.c"), &work], &openmp) {
        programs.push(("OpenMP", Command::new(&openmp)));
    }
    if compile("c++", &["-std=c++17", "-ltbb"], &[&peers.join("tbb.cpp"), &work], &tbb) {
        programs.push(("TBB", Command::new(&tbb)));
    }
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut ours = Command::new(nyala);
    ours.args(["run", "--cpu", level, "--load"]).arg(&library).arg(peers.join("parallel.impala")).arg("--");
    programs.push(("ours", ours));
    let version = output_of("cc", &["--version"]);
    let runs = plan.turns(RUNS);
    let _ = writeln!(
        out,
        "parallel loops, medians of {runs} runs in turns{}; {}",
        plan.level.said(),
        version.lines().next().unwrap_or("")
    );
    let peers: Vec<&str> = programs.iter().map(|p| p.0).collect();
    for wanted in ["OpenMP", "TBB"].iter().filter(|w| !peers.contains(w)) {
        let _ = writeln!(out, "  {wanted} is not installed: not measured");
    }
    let mut turns = Turns::new(runs, programs);
    for workload @ (name, about) in WORKLOADS {
        let times = turns.run(&[name], std::slice::from_ref(workload), out)?;
        let medians: Vec<f64> = times.iter().map(|t| t[0]).collect();
        let ours = medians[medians.len() - 1];
        let _ = write!(out, "  {name:<8}");
        for (peer, &time) in peers.iter().zip(&medians) {
            let _ = write!(out, " {peer} {time:>12.3}");
            if *peer != "ours" {
                let _ = write!(out, " (ours/{peer} {:.2})", ours / time);
            }
        }
        let _ = writeln!(out, "   {about}");
    }
    let _ = writeln!(out);
    Ok(())
}
