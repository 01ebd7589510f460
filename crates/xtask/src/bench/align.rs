//! `x bench align`: `lib/align` beside its peers, each in one program and in turns: pairs of reads beside intrinsics, a protein and a
//! database beside parasail and SSW, two long sequences beside parasail and edlib. With AVX-512, all but the last also with AVX2 alone.

use super::levels::{V3, V4};
use super::{Out, Plan, each_line, has_header, machine, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = super::folder("align")?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]);
    sh(&mut cargo)?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let _ = write!(out, "align, medians of turns; {}", machine());
    let level = plan.level.name;
    let is_narrow = V3.check().is_err() || plan.level.left_out("parasail, SSW, edlib").is_some();
    let cpus: &[&str] = match V4.check() {
        _ if is_narrow => &[],
        Ok(()) if !plan.is_brief && plan.level.is_native() => &[level, V3.name],
        _ => &[level],
    };
    if cpus.is_empty() {
        let _ = writeln!(out, "  pairs of reads: not measured: the intrinsics need AVX2");
    }
    // The peers are Debian's libparasail-dev, libssw-dev, and libedlib-dev.
    let lacks = |headers: &[&'static str]| headers.iter().copied().find(|header| !has_header(header));
    let (no_search, no_long) = (lacks(&["parasail.h", "ssw.h"]), lacks(&["parasail.h", "edlib.h"]));
    for cpu in cpus {
        measure(&nyala, &folder, (cpu, "reads", &[]), plan, out)?;
        match no_search {
            None => measure(&nyala, &folder, (cpu, "search", &["-lparasail", "-lssw"]), plan, out)?,
            Some(header) => {
                let _ = writeln!(out, "  proteins: not measured: {header} is not installed");
            }
        }
    }
    match no_long {
        _ if !plan.has("parasail, SSW, edlib", out) => {}
        None => measure(&nyala, &folder, (level, "long", &["-lparasail", "-ledlib"]), plan, out)?,
        Some(header) => {
            let _ = writeln!(out, "  long sequences: not measured: {header} is not installed");
        }
    }
    let _ = writeln!(out, "  {}\n", output_of("c++", &["--version"]).lines().next().unwrap_or(""));
    Ok(())
}

/// Runs a program of ours with its peers, on one thread and on two, compiled for a CPU.
fn measure(
    nyala: &Path,
    folder: &Path,
    (cpu, name, libraries): (&str, &str, &[&str]),
    plan: &Plan,
    out: &mut Out,
) -> Result<(), String> {
    let (ours, program) = (folder.join(format!("lib{name}-{cpu}.so")), folder.join(format!("{name}-{cpu}")));
    sh(Command::new(nyala)
        .args(["build", "--cpu", cpu, "-o"])
        .arg(&ours)
        .arg(root().join(format!("bench/align/{name}.impala"))))?;
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", &format!("-march={cpu}"), "-fopenmp", "-o"]).arg(&program);
    compiler.arg(root().join(format!("bench/peers/align/{name}.cpp"))).arg(&ours).args(libraries);
    compiler.arg(format!("-Wl,-rpath,{}", folder.display()));
    if plan.is_brief {
        compiler.args(["-DBRIEF", &format!("-DROUNDS={}", plan.turns(usize::MAX))]);
    }
    sh(&mut compiler)?;
    for threads in plan.threads() {
        let count = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        let mut run = Command::new(&program);
        // Else threads of OpenMP go on for milliseconds behind their loops, on the cores of ours.
        run.env("OMP_WAIT_POLICY", "passive");
        each_line(run.arg(threads.to_string()), |line| _ = writeln!(out, "  {cpu}, {count}, {line}"))?;
    }
    Ok(())
}
