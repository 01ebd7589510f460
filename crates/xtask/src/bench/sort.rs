//! `x bench sort`: Impala's `std::sort` beside that of C++, in turns. The programs are in `bench/peers/sort`; each
//! prints names and nanoseconds, medians of 15 repetitions.

use super::{RUNS, in_turns, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The workloads of the programs.
const WORKLOADS: &[(&str, &str)] = &[
    ("i32_random", "sort[i32], std::sort of 1,000,000 random elements"),
    ("f64_random", "sort[f64], std::sort of 1,000,000 random elements"),
    ("stable_i32_random", "sort_stable, std::stable_sort of 1,000,000 random i32"),
    ("stable_f64_random", "sort_stable, std::stable_sort of 1,000,000 random f64"),
    ("stable_pair_random", "sort_stable, std::stable_sort of 1,000,000 random pairs of i32, by the first"),
    ("stable_i32_sorted", "sort_stable, std::stable_sort of 1,000,000 sorted i32"),
    ("stable_f64_sorted", "sort_stable, std::stable_sort of 1,000,000 sorted f64"),
    ("stable_pair_sorted", "sort_stable, std::stable_sort of 1,000,000 sorted pairs of i32, by the first"),
    ("stable_i32_reversed", "sort_stable, std::stable_sort of 1,000,000 reversed i32"),
    ("stable_f64_reversed", "sort_stable, std::stable_sort of 1,000,000 reversed f64"),
    ("stable_pair_reversed", "sort_stable, std::stable_sort of 1,000,000 reversed pairs of i32, by the first"),
    ("stable_i32_few", "sort_stable, std::stable_sort of 1,000,000 few different i32"),
    ("stable_f64_few", "sort_stable, std::stable_sort of 1,000,000 few different f64"),
    ("stable_pair_few", "sort_stable, std::stable_sort of 1,000,000 few different pairs of i32, by the first"),
];

pub fn run() -> Result<String, String> {
    let (peers, out) = (root().join("bench/peers/sort"), root().join("out/bench"));
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let program = out.join("sort");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", "-march=native", "-o"]).arg(&program).arg(peers.join("sort.cpp"));
    if !compiler.output().is_ok_and(|o| o.status.success()) {
        return Err("cannot compile bench/peers/sort/sort.cpp with `c++`".into());
    }
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut ours = Command::new(nyala);
    ours.arg("run").arg(peers.join("sort.impala"));
    let mut programs = [("C++", Command::new(&program)), ("ours", ours)];
    let times = in_turns(&mut programs, WORKLOADS)?;
    let version = output_of("c++", &["--version"]);
    let mut text = format!("sort, ms, medians of {RUNS} runs in turns; {}\n", version.lines().next().unwrap_or(""));
    for (i, (name, about)) in WORKLOADS.iter().enumerate() {
        let (peer, ours) = (times[0][i] / 1e6, times[1][i] / 1e6);
        let _ = writeln!(text, "  {name:<20} C++ {peer:>8.2} ours {ours:>8.2} (ours/C++ {:.2})   {about}", ours / peer);
    }
    text.push('\n');
    Ok(text)
}
