//! `x bench staging`: the programs of Table 1 of the paper on dynamic staging, in Staged-C with and without stages, beside dynamic C++ and templates.
//! One executable has all of them: `bench/peers/staging` calls the functions of `bench/staging`, and checks that the results are the same.

use super::{RUNS, in_turns, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::process::Command;

/// The programs, with what a call does.
const PROGRAMS: &[(&str, &str)] = &[
    ("power", "x^72"),
    ("conv_1024", "5 coefficients, 1,024 points"),
    ("conv_1e6", "5 coefficients, 1,000,000 points"),
    ("mirror_1024", "with mirrored border, 1,024 points"),
    ("mirror_1e6", "with mirrored border, 1,000,000 points"),
    ("fft_2^10", "2^10 complex numbers"),
    ("fft_2^20", "2^20 complex numbers"),
    ("fft_2^24", "2^24 complex numbers"),
];

const FORMS: [&str; 4] = ["dynamic", "template", "plain", "staged"];

pub fn run() -> Result<String, String> {
    let out = root().join("out/bench");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let object = out.join("staged.o");
    let source = root().join("bench/staging/staged.stagedc");
    sh(Command::new(nyala).args(["build", "--cpu", "native", "-o"]).arg(&object).arg(source))?;
    let mut programs = Vec::new();
    for compiler in ["g++", "clang++"] {
        let program = out.join(format!("staging-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-O3", "-march=native", "-o"]).arg(&program);
        command.arg(root().join("bench/peers/staging/staging.cpp")).arg(&object);
        if command.output().is_ok_and(|o| o.status.success()) {
            programs.push((compiler, Command::new(&program)));
        } else {
            println!("  not measured: {compiler}");
        }
    }
    let names: Vec<String> =
        PROGRAMS.iter().flat_map(|(program, _)| FORMS.map(|form| format!("{program}_{form}"))).collect();
    let workloads: Vec<(&str, ())> = names.iter().map(|n| (n.as_str(), ())).collect();
    let times = in_turns(&mut programs, &workloads)?;
    let mut text = String::new();
    for ((compiler, _), times) in programs.iter().zip(times) {
        let version = output_of(compiler, &["--version"]);
        let version = version.lines().next().unwrap_or("").to_string();
        let _ = writeln!(text, "staging, µs a call, medians of {RUNS} runs in turns; dynamic and template: {version}");
        for (i, (program, about)) in PROGRAMS.iter().enumerate() {
            let [dynamic, template, plain, staged] = [0, 1, 2, 3].map(|form| times[4 * i + form] / 1e3);
            let _ = writeln!(
                text,
                "  {program:<12} dynamic {dynamic:>11.4} template {template:>11.4} plain {plain:>11.4} staged {staged:>11.4} \
                 (template/staged {:.2}, dynamic/template {:.1}, plain/staged {:.1})   {about}",
                template / staged,
                dynamic / template,
                plain / staged
            );
        }
        text.push('\n');
    }
    Ok(text)
}
