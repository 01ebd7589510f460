//! `x bench sort`: Impala's `std::sort` beside those of C++ and Rust, in turns. The programs are in `bench/peers/sort`; each
//! prints names and nanoseconds, medians of 15 repetitions.

use super::{Out, Plan, RUNS, Turns, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The workloads of the programs: 1,000,000 elements each.
const WORKLOADS: &[(&str, &str)] = &[
    ("i32_random", "sort, std::sort, sort_unstable: random i32"),
    ("i32_sorted", "sort, std::sort, sort_unstable: sorted i32"),
    ("i32_reversed", "sort, std::sort, sort_unstable: reversed i32"),
    ("i32_few", "sort, std::sort, sort_unstable: few different i32"),
    ("f64_random", "sort, std::sort, sort_unstable: random f64"),
    ("f64_sorted", "sort, std::sort, sort_unstable: sorted f64"),
    ("f64_reversed", "sort, std::sort, sort_unstable: reversed f64"),
    ("f64_few", "sort, std::sort, sort_unstable: few different f64"),
    ("stable_i32_random", "sort_stable, std::stable_sort, sort: random i32"),
    ("stable_i32_sorted", "sort_stable, std::stable_sort, sort: sorted i32"),
    ("stable_i32_reversed", "sort_stable, std::stable_sort, sort: reversed i32"),
    ("stable_i32_few", "sort_stable, std::stable_sort, sort: few different i32"),
    ("stable_f64_random", "sort_stable, std::stable_sort, sort: random f64"),
    ("stable_f64_sorted", "sort_stable, std::stable_sort, sort: sorted f64"),
    ("stable_f64_reversed", "sort_stable, std::stable_sort, sort: reversed f64"),
    ("stable_f64_few", "sort_stable, std::stable_sort, sort: few different f64"),
    ("stable_pair_random", "sort_stable, std::stable_sort, sort: random pairs of i32, by the first"),
    ("stable_pair_sorted", "sort_stable, std::stable_sort, sort: sorted pairs of i32, by the first"),
    ("stable_pair_reversed", "sort_stable, std::stable_sort, sort: reversed pairs of i32, by the first"),
    ("stable_pair_few", "sort_stable, std::stable_sort, sort: few different pairs of i32, by the first"),
];

/// Those of the brief form.
const BRIEF: &[&str] = &["i32_random", "f64_random", "stable_i32_random", "stable_pair_few"];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let (peers, folder) = (root().join("bench/peers/sort"), super::folder("")?);
    let program = folder.join("sort");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", "-march=native", "-o"]).arg(&program).arg(peers.join("sort.cpp"));
    if !compiler.output().is_ok_and(|o| o.status.success()) {
        return Err("cannot compile bench/peers/sort/sort.cpp with `c++`".into());
    }
    let rust = folder.join("sort-rs");
    let mut compiler = Command::new("rustc");
    compiler.args(["-O", "-C", "target-cpu=native", "-o"]).arg(&rust).arg(peers.join("sort.rs"));
    if !compiler.output().is_ok_and(|o| o.status.success()) {
        return Err("cannot compile bench/peers/sort/sort.rs with `rustc`".into());
    }
    sh(Command::new("cargo").current_dir(root()).args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "nyala",
        "-p",
        "nyala-runtime",
    ]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let own = folder.join("sort-impala");
    sh(Command::new(nyala).args(["build", "--cpu", "native", "-o"]).arg(&own).arg(peers.join("sort.impala")))?;
    let programs = vec![("C++", Command::new(&program)), ("Rust", Command::new(&rust)), ("ours", Command::new(&own))];
    let versions = [output_of("c++", &["--version"]), output_of("rustc", &["--version"])];
    let versions: Vec<&str> = versions.iter().filter_map(|text| text.lines().next()).collect();
    let runs = plan.turns(RUNS);
    let _ = writeln!(out, "sort, 1,000,000 elements, ms, medians of {runs} runs in turns; {}", versions.join("; "));
    let mut turns = Turns::new(runs, programs);
    for workload @ (name, about) in plan.workloads(WORKLOADS, BRIEF) {
        let times = turns.run(&[name], std::slice::from_ref(workload), out)?;
        let [cpp, rust, ours] = [0, 1, 2].map(|p| times[p][0] / 1e6);
        let (by_cpp, by_rust) = (ours / cpp, ours / rust);
        let _ = writeln!(
            out,
            "  {name:<20} C++ {cpp:>6.2} Rust {rust:>6.2} ours {ours:>6.2} (ours/C++ {by_cpp:.2}, /Rust {by_rust:.2})  {about}"
        );
    }
    let _ = writeln!(out);
    Ok(())
}
