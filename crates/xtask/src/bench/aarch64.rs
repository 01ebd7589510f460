//! `x bench aarch64`: instructions that loops execute on AArch64, ours beside gcc's for the same loops, counted by a plugin of QEMU's user
//! mode, so no times. Once for NEON, once for SVE with registers of 256 bits. `bench/aarch64` has our loops, `bench/peers/aarch64` gcc's, a
//! program that calls one of them, and the plugin.

use super::{Out, Plan, output_of};
use crate::{root, sh};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const LOOPS: &[(&str, &str)] = &[
    ("saxpy", "a x + y, f32"),
    ("stencil", "three neighbors, f32"),
    ("dot", "sum of squares, f32"),
    ("least", "least of f32"),
    ("count", "bytes that are 7"),
    ("gray", "pixels of three bytes"),
    ("gather", "f32 by indices"),
    ("clamp", "both sides of an if, f32"),
    ("rounds", "Mandelbrot's, 64 at most"),
];

/// Instructions: their name, our options, gcc's, and the processor that QEMU is asked for.
type Machine = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);
const MACHINES: [Machine; 2] = [
    ("NEON", &[], &["-march=armv8-a"], "cortex-a57"),
    ("SVE, 256 bits", &["--cpu", "neoverse-v1"], &["-mcpu=neoverse-v1", "-msve-vector-bits=256"], "max,sve256=on"),
];

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// The numbers of calls in two runs, of which the difference is one call.
const CALLS: [usize; 2] = [1, 2];

pub fn run(_: &Plan, out: &mut Out) -> Result<(), String> {
    for tool in [COMPILER, EMULATOR] {
        if output_of(tool, &["--version"]).is_empty() {
            let _ = writeln!(out, "aarch64: not measured: there is no `{tool}`, which `./x setup` brings\n");
            return Ok(());
        }
    }
    let (folder, peers) = (super::folder("aarch64")?, root().join("bench/peers/aarch64"));
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--release", "--package", "nyala"]))?;
    let nyala = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("nyala");
    let plugin = folder.join("libcount.so");
    let mut cc = Command::new("cc");
    sh(cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&plugin).arg(peers.join("count.c")))?;
    let versions = [output_of(COMPILER, &["--version"]), output_of(EMULATOR, &["--version"])];
    let versions: Vec<&str> = versions.iter().filter_map(|text| text.lines().next()).collect();
    let _ = writeln!(out, "aarch64, instructions executed for 4,096 elements; {}", versions.join("; "));
    for (name, own, theirs, processor) in MACHINES {
        let [object, peer, program] = ["ours.o", "peer.o", "loops"].map(|file| folder.join(file));
        let mut build = Command::new(&nyala);
        build.args(["build", "--target", "aarch64-unknown-linux-gnu", "--kind", "obj"]).args(own);
        sh(build.arg("-o").arg(&object).arg(root().join("bench/aarch64/loops.impala")))?;
        let mut gcc = Command::new(COMPILER);
        gcc.args(["-O3", "-ffast-math", "-c", "-o"]).arg(&peer).args(theirs).arg(peers.join("loops.c"));
        sh(&mut gcc)?;
        let mut link = Command::new(COMPILER);
        sh(link.args(["-O2", "-static", "-o"]).arg(&program).arg(peers.join("main.c")).arg(&object).arg(&peer))?;
        let _ = writeln!(out, "  {name}: gcc -O3 -ffast-math {}", theirs.join(" "));
        for (of, about) in LOOPS {
            let count = |whose: &str| of_a_call(&plugin, processor, &program, &[of, whose]);
            let (ours, theirs) = (count("ours")?, count("peer")?);
            if !is_near(ours.1, theirs.1) {
                return Err(format!("{of}, {name}: ours computes {}, gcc's {}", ours.1, theirs.1));
            }
            let ratio = ours.0 as f64 / theirs.0 as f64;
            let _ = writeln!(out, "    {of:<8} ours {:>8} gcc {:>8}   ours/gcc {ratio:.2}   {about}", ours.0, theirs.0);
        }
    }
    let _ = writeln!(out);
    Ok(())
}

/// The instructions of one call, and what the program computed.
fn of_a_call(plugin: &Path, processor: &str, program: &Path, words: &[&str]) -> Result<(u64, f64), String> {
    let mut counts = [0; 2];
    let mut computed = f64::NAN;
    for (count, calls) in counts.iter_mut().zip(CALLS) {
        let mut emulator = Command::new(EMULATOR);
        emulator.args(["-cpu", processor, "-plugin"]).arg(plugin).arg(program).args(words).arg(calls.to_string());
        let output = emulator.output().map_err(|e| format!("{EMULATOR}: {e}"))?;
        let [printed, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let counted = counted(&said).filter(|_| output.status.success());
        *count = counted.ok_or_else(|| format!("{}: {} {said}", words.join(" "), output.status))?;
        if calls == CALLS[0] {
            computed = printed.trim().parse().unwrap_or(f64::NAN);
        }
    }
    Ok((counts[1].saturating_sub(counts[0]), computed))
}

/// The number that the plugin prints.
fn counted(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.strip_prefix("instructions ")?.trim().parse().ok())
}

/// Whether two results are the same but for the order of additions, and a round more or less of a few points.
fn is_near(x: f64, y: f64) -> bool {
    (x - y).abs() <= 1e-4 * x.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_read_and_results_are_compared() {
        assert_eq!(counted("warning\ninstructions 4096\n"), Some(4096));
        assert_eq!(counted("qemu: fault"), None);
        assert!(is_near(784957.0, 784977.0) && !is_near(1.0, 1.1) && !is_near(f64::NAN, 1.0));
        let header = std::fs::read_to_string(root().join("bench/peers/aarch64/loops.h")).unwrap();
        for (name, _) in LOOPS {
            assert!(header.contains(&format!("X({name})")), "{name}");
        }
    }
}
