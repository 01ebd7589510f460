//! `x bench staging`: the programs of Table 1 of the paper on dynamic staging, in Staged-C with and without stages, beside dynamic C++ and templates.
//! One executable has all of them: `bench/peers/staging` calls the functions of `bench/staging`, and checks that the results are the same.

use super::{Out, Plan, RUNS, Turns, output_of};
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

/// Those of the brief form.
const BRIEF: &[&str] = &["power", "conv_1024", "mirror_1024", "fft_2^10"];

const FORMS: [&str; 4] = ["dynamic", "template", "plain", "staged"];

pub fn run(plan: &Plan, out: &mut Out) -> Result<(), String> {
    let folder = super::folder("")?;
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let object = folder.join("staged.o");
    let source = root().join("bench/staging/staged.stagedc");
    sh(Command::new(nyala).args(["build", "--cpu", plan.level.name, "-o"]).arg(&object).arg(source))?;
    let mut programs = Vec::new();
    for compiler in ["g++", "clang++"] {
        let program = folder.join(format!("staging-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-O3", &plan.level.march(), "-o"]).arg(&program);
        command.arg(root().join("bench/peers/staging/staging.cpp")).arg(&object);
        if command.output().is_ok_and(|o| o.status.success()) {
            programs.push((compiler, Command::new(&program)));
        } else {
            let _ = writeln!(out, "  staging: not measured: {compiler}");
        }
    }
    let runs = plan.turns(RUNS);
    let versions = programs.iter().map(|p| {
        let version = output_of(p.0, &["--version"]);
        version.lines().next().unwrap_or("").to_string()
    });
    let versions = versions.collect::<Vec<_>>().join(" / ");
    let _ = writeln!(out, "staging, µs a call, medians of {runs} runs in turns; dynamic and template: {versions}");
    let mut turns = Turns::new(runs, programs);
    for (program, about) in plan.workloads(PROGRAMS, BRIEF) {
        let names = FORMS.map(|form| format!("{program}_{form}"));
        let times = turns.run(&[program], &names.each_ref().map(|n| (n.as_str(), ())), out)?;
        for (compiler, times) in turns.names().zip(times) {
            let [dynamic, template, plain, staged] = [0, 1, 2, 3].map(|form| times[form] / 1e3);
            let _ = writeln!(
                out,
                "  {program:<12} {compiler:<7} dynamic {dynamic:>11.4} template {template:>11.4} plain {plain:>11.4} staged {staged:>11.4} \
                 (template/staged {:.2}, dynamic/template {:.1}, plain/staged {:.1})   {about}",
                template / staged,
                dynamic / template,
                plain / staged
            );
        }
    }
    let _ = writeln!(out);
    Ok(())
}
