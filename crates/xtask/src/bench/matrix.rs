//! `x bench matrix`: the matrix product of `examples/20_matrix_product.impala` beside the BLAS libraries that PyPI has, in turns: for this
//! processor, and where it has AVX-512, all of them limited to AVX2 as well. A script, `bench/peers/matrix/product.py`, calls all of them
//! in the same way, ours as a shared library.

use super::levels::{V3, V4};
use super::{Out, Plan, RUNS, Turns, machine};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The workloads of the script, and their operations.
const WORKLOADS: &[(&str, f64)] = &[
    ("f32_512", 2.0 * 512.0 * 512.0 * 512.0),
    ("f32_1024", 2.0 * 1024.0 * 1024.0 * 1024.0),
    ("f32_2048", 2.0 * 2048.0 * 2048.0 * 2048.0),
    ("f32_odd", 2.0 * 1000.0 * 700.0 * 1300.0),
    ("f64_1024", 2.0 * 1024.0 * 1024.0 * 1024.0),
];

/// The peers, and the script's arguments.
const PEERS: &[(&str, &str)] = &[("OpenBLAS", "openblas"), ("MKL", "mkl"), ("BLIS", "blis")];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let (folder, python) = (super::folder("")?, root().join("out/peers/bin/python"));
    if !python.exists() {
        let _ = writeln!(out, "matrix: not measured: bench/peers/install.sh installs the peers\n");
        return Ok(());
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "nyala",
        "--package",
        "nyala-runtime",
    ]);
    sh(&mut cargo)?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let has_512 = V4.check().is_ok();
    let levels = if plan.level.is_native() && has_512 { vec![plan.level, V3] } else { vec![plan.level] };
    let runs = plan.turns(RUNS);
    for level in levels {
        let cpu = level.name;
        let _ = write!(out, "matrix, --cpu {cpu}, GFLOP/s, medians of {runs} runs in turns; {}", machine());
        for threads in plan.threads() {
            let library = folder.join(format!("libproduct-{cpu}-{threads}.so"));
            let mut build = Command::new(&nyala);
            build.args(["build", "--cpu", cpu, "-D", &format!("THREADS={threads}"), "-o"]).arg(&library);
            sh(build.arg(root().join("examples/20_matrix_product.impala")))?;
            let script = |library: &std::ffi::OsStr| {
                let mut command = Command::new(&python);
                command.arg("-B").arg(root().join("bench/peers/matrix/product.py"));
                command.arg(library).arg(threads.to_string());
                command
            };
            let mut programs = vec![("ours", script(library.as_os_str()))];
            for &(name, argument) in PEERS {
                if let Some(why) = level.left_out(name) {
                    let _ = writeln!(out, "  {name}: not measured: {why}");
                    continue;
                }
                let mut command = script(argument.as_ref());
                level.limit(name, &mut command);
                programs.push((name, command));
                // OpenBLAS does not always choose well.
                if name == "OpenBLAS" && level.is_native() && has_512 {
                    let mut command = script(argument.as_ref());
                    V4.limit(name, &mut command);
                    programs.push(("OpenBLAS, AVX-512", command));
                }
            }
            let mut turns = Turns::new(runs, programs);
            for size @ (workload, operations) in plan.sizes(WORKLOADS, 1) {
                let times = turns.run(&[workload], std::slice::from_ref(size), out)?;
                let _ = write!(out, "  {workload:<10} {threads} threads:");
                for (name, times) in turns.names().zip(&times) {
                    let _ = write!(out, "  {name} {:.0}", operations / times[0]);
                }
                let fastest = times[1..].iter().map(|t| t[0]).fold(f64::INFINITY, f64::min);
                let _ = writeln!(out, "   {:.2} of the fastest", fastest / times[0][0]);
            }
        }
        let _ = writeln!(out);
    }
    Ok(())
}
