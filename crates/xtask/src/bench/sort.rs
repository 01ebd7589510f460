//! `x bench sort`: Impala's `std::sort` beside those of C++ and Rust, x86-simd-sort, which NumPy carries, and Highway's vqsort, in turns.
//! The programs are in `bench/peers/sort`; each prints names and nanoseconds, medians of 15 repetitions.

use super::levels::{Level, V3, V4};
use super::{Out, Plan, RUNS, Turns, has_header, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

const FORMS: [&str; 4] = ["random", "sorted", "reversed", "few"];
const SORTED: [&str; 2] = ["i32", "f64"];
const STABLE: [&str; 3] = ["stable_i32", "stable_f64", "stable_pair"];
/// The elements of most rows, and of others with random numbers.
const USUAL: usize = 1_000_000;
const SIZES: &[usize] = &[1_000, 10_000, 100_000, 10_000_000];
/// The elements of the brief form.
const FEWER: usize = 100_000;
const BRIEF: &[&str] = &["i32_random", "f64_random", "stable_i32_random", "stable_pair_few"];

/// The workloads and their sizes.
fn workloads(plan: &Plan) -> Vec<(String, usize)> {
    let forms = |of: &[&str]| -> Vec<(String, usize)> {
        of.iter().flat_map(|element| FORMS.map(|form| (format!("{element}_{form}"), USUAL))).collect()
    };
    let random = SORTED.iter().flat_map(|element| SIZES.iter().map(move |&n| (format!("{element}_random"), n)));
    let mut all: Vec<(String, usize)> = forms(&SORTED).into_iter().chain(random).chain(forms(&STABLE)).collect();
    all.retain(|(name, _)| !plan.is_brief || BRIEF.contains(&name.as_str()));
    all.retain(|(name, n)| (!plan.is_brief || *n == USUAL) && name.contains(plan.part("sort")));
    all.iter_mut().filter(|_| plan.is_brief).for_each(|one| one.1 = FEWER);
    all
}

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let (peers, folder) = (root().join("bench/peers/sort"), super::folder("")?);
    let mut programs = Vec::new();
    let (cpp, rust, vqsort, own) =
        (folder.join("sort"), folder.join("sort-rs"), folder.join("sort-vqsort"), folder.join("sort-impala"));
    let compiler = |more: &[&str], to: &std::path::Path| {
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-O3", &plan.level.march(), "-o"]).arg(to).arg(peers.join("sort.cpp")).args(more);
        compiler.output().is_ok_and(|o| o.status.success())
    };
    if !compiler(&[], &cpp) {
        return Err("cannot compile bench/peers/sort/sort.cpp with `c++`".into());
    }
    programs.push(("C++", Command::new(&cpp)));
    let mut rustc = Command::new("rustc");
    rustc.args(["-O", &plan.level.target_cpu(), "-o"]).arg(&rust).arg(peers.join("sort.rs"));
    if !rustc.output().is_ok_and(|o| o.status.success()) {
        return Err("cannot compile bench/peers/sort/sort.rs with `rustc`".into());
    }
    programs.push(("Rust", Command::new(&rust)));
    let python = root().join("out/peers/bin/python");
    let numpy = |level: &Level| {
        let mut command = Command::new(&python);
        command.arg("-B").arg(peers.join("sort.py"));
        level.limit("NumPy", &mut command);
        command
    };
    if python.is_file() {
        programs.push(("NumPy", numpy(plan.level)));
        // Its code for AVX-512 is slow where the processor compresses to memory slowly.
        if plan.level.is_native() && V4.check().is_ok() {
            programs.push(("NumPy, AVX2", numpy(V3)));
        }
    } else {
        let _ = writeln!(out, "  NumPy: not measured: bench/peers/install.sh installs it");
    }
    if !plan.has("vqsort", out) {
    } else if has_header("hwy/contrib/sort/vqsort.h") && compiler(&["-DVQSORT", "-lhwy_contrib", "-lhwy"], &vqsort) {
        programs.push(("vqsort", Command::new(&vqsort)));
    } else {
        let _ = writeln!(out, "  vqsort: not measured: there is no hwy/contrib/sort/vqsort.h, of Debian's libhwy-dev");
    }
    let mut cargo = Command::new("cargo");
    sh(cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    sh(Command::new(nyala).args(["build", "--cpu", plan.level.name, "-o"]).arg(&own).arg(peers.join("sort.impala")))?;
    programs.push(("ours", Command::new(&own)));
    let versions = [output_of("c++", &["--version"]), output_of("rustc", &["--version"])];
    let versions: Vec<&str> = versions.iter().filter_map(|text| text.lines().next()).collect();
    let runs = plan.turns(RUNS);
    let _ = writeln!(out, "sort, ms, medians of {runs} runs in turns{}; {}", plan.level.said(), versions.join("; "));
    let mut turns = Turns::new(runs, programs);
    for (name, n) in workloads(plan) {
        let times = turns.run(&[&name, &n.to_string()], &[(name.as_str(), ())], out)?;
        let ours = times[times.len() - 1][0];
        let _ = write!(out, "  {n:>8} {name:<20}");
        let mut fastest = f64::INFINITY;
        for (program, time) in turns.names().zip(&times).filter(|p| p.1[0].is_finite()) {
            let _ = write!(out, " {program} {:>7.3}", time[0] / 1e6);
            if program != "ours" {
                fastest = fastest.min(time[0]);
            }
        }
        let _ = writeln!(out, "   ours/Rust {:.2}, ours/fastest {:.2}", ours / times[1][0], ours / fastest);
    }
    let _ = writeln!(out);
    Ok(())
}
