//! `x bench align`: `lib/align` beside its peers, each in one program and in turns: pairs of reads beside intrinsics, a protein and a
//! database beside parasail and SSW, two long sequences beside parasail and edlib. With AVX-512, all but the last also with AVX2 alone.

use super::{machine, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

pub fn run() -> Result<String, String> {
    let out = root().join("out/bench/align");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]);
    sh(&mut cargo)?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let mut text = format!("align, medians of turns; {}", machine());
    let cpus: &[&str] = match (std::is_x86_feature_detected!("avx512bw"), std::is_x86_feature_detected!("avx2")) {
        (true, _) => &["native", "x86-64-v3"],
        (false, true) => &["native"],
        _ => &[],
    };
    if cpus.is_empty() {
        text.push_str("  pairs of reads: not measured: the intrinsics need AVX2\n");
    }
    // The peers are Debian's libparasail-dev, libssw-dev, and libedlib-dev.
    let lacks = |headers: &[&'static str]| headers.iter().copied().find(|header| !has_header(header));
    let (no_search, no_long) = (lacks(&["parasail.h", "ssw.h"]), lacks(&["parasail.h", "edlib.h"]));
    for cpu in cpus {
        text.push_str(&measure(&nyala, &out, cpu, "reads", &[])?);
        match no_search {
            None => text.push_str(&measure(&nyala, &out, cpu, "search", &["-lparasail", "-lssw"])?),
            Some(header) => {
                let _ = writeln!(text, "  proteins: not measured: {header} is not installed");
            }
        }
    }
    match no_long {
        None => text.push_str(&measure(&nyala, &out, "native", "long", &["-lparasail", "-ledlib"])?),
        Some(header) => {
            let _ = writeln!(text, "  long sequences: not measured: {header} is not installed");
        }
    }
    let _ = writeln!(text, "  {}\n", output_of("c++", &["--version"]).lines().next().unwrap_or(""));
    Ok(text)
}

/// Runs a program of ours with its peers, on one thread and on two, compiled for a CPU.
fn measure(nyala: &Path, out: &Path, cpu: &str, name: &str, libraries: &[&str]) -> Result<String, String> {
    let (ours, program) = (out.join(format!("lib{name}-{cpu}.so")), out.join(format!("{name}-{cpu}")));
    sh(Command::new(nyala)
        .args(["build", "--cpu", cpu, "-o"])
        .arg(&ours)
        .arg(root().join(format!("bench/align/{name}.impala"))))?;
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", &format!("-march={cpu}"), "-fopenmp", "-o"]).arg(&program);
    compiler.arg(root().join(format!("bench/peers/align/{name}.cpp"))).arg(&ours).args(libraries);
    compiler.arg(format!("-Wl,-rpath,{}", out.display()));
    sh(&mut compiler)?;
    let mut text = String::new();
    for threads in ["1", "2"] {
        let output = Command::new(&program).arg(threads).output().map_err(|e| e.to_string())?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let _ = writeln!(text, "  {cpu}, {threads} thread{}, {line}", if threads == "1" { "" } else { "s" });
        }
    }
    Ok(text)
}

/// Whether the C++ compiler finds a header.
fn has_header(name: &str) -> bool {
    let mut compiler = Command::new("c++");
    compiler.args(["-include", name, "-E", "-x", "c++", "/dev/null"]);
    compiler.output().is_ok_and(|o| o.status.success())
}
