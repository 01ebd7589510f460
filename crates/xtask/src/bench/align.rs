//! `x bench align`: scores of pairs of reads by `lib/align` beside intrinsics in C++, in one program and in turns.

use super::{machine, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

pub fn run() -> Result<String, String> {
    if !std::is_x86_feature_detected!("avx512bw") {
        return Ok("align: not measured: the intrinsics need AVX-512\n\n".into());
    }
    let out = root().join("out/bench/align");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "nyala", "-p", "nyala-runtime"]);
    sh(&mut cargo)?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let (ours, program) = (out.join("libreads.so"), out.join("reads"));
    sh(Command::new(&nyala).args(["build", "-o"]).arg(&ours).arg(root().join("bench/align/reads.impala")))?;
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O3", "-march=native", "-fopenmp", "-o"]).arg(&program);
    compiler.arg(root().join("bench/peers/align/reads.cpp")).arg(&ours).arg(format!("-Wl,-rpath,{}", out.display()));
    sh(&mut compiler)?;
    let mut text = format!("align, pairs of reads of 150 letters, medians of 9 runs in turns; {}", machine());
    for threads in ["1", "2"] {
        let output = Command::new(&program).arg(threads).output().map_err(|e| e.to_string())?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let _ = writeln!(text, "  {threads} thread{}, {line}", if threads == "1" { "" } else { "s" });
        }
    }
    let _ = writeln!(text, "  {}\n", output_of("c++", &["--version"]).lines().next().unwrap_or(""));
    Ok(text)
}
