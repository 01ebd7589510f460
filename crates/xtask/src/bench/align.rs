//! `x bench align`: `lib/align` beside its peers, each in one program and in turns: pairs of reads beside intrinsics, a protein and a
//! database beside parasail and SSW.

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
    match std::is_x86_feature_detected!("avx512bw") {
        true => text.push_str(&measure(&nyala, &out, "reads", &[])?),
        false => text.push_str("  pairs of reads: not measured: the intrinsics need AVX-512\n"),
    }
    // The peers are Debian's libparasail-dev and libssw-dev.
    match ["parasail.h", "ssw.h"].iter().find(|header| !has_header(header)) {
        None => text.push_str(&measure(&nyala, &out, "search", &["-lparasail", "-lssw"])?),
        Some(header) => {
            let _ = writeln!(text, "  proteins: not measured: {header} is not installed");
        }
    }
    let _ = writeln!(text, "  {}\n", output_of("c++", &["--version"]).lines().next().unwrap_or(""));
    Ok(text)
}

/// Runs a program of ours with its peers, on one thread and on two.
fn measure(nyala: &Path, out: &Path, name: &str, libraries: &[&str]) -> Result<String, String> {
    let (ours, program) = (out.join(format!("lib{name}.so")), out.join(name));
    sh(Command::new(nyala).args(["build", "-o"]).arg(&ours).arg(root().join(format!("bench/align/{name}.impala"))))?;
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", "-march=native", "-fopenmp", "-o"]).arg(&program);
    compiler.arg(root().join(format!("bench/peers/align/{name}.cpp"))).arg(&ours).args(libraries);
    compiler.arg(format!("-Wl,-rpath,{}", out.display()));
    sh(&mut compiler)?;
    let mut text = String::new();
    for threads in ["1", "2"] {
        let output = Command::new(&program).arg(threads).output().map_err(|e| e.to_string())?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let _ = writeln!(text, "  {threads} thread{}, {line}", if threads == "1" { "" } else { "s" });
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
