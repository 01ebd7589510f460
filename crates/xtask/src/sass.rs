//! The machine code of kernels for NVIDIA's GPUs, without a GPU: registers, stack, spills and instructions of the code that
//! NVIDIA's assembler makes of our PTX, beside those of the code that `nvcc -O3` makes of our CUDA C++.
//! `tests/device/registers.txt` has them; `./x bless devices` writes it.

use crate::{Tally, root};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A kernel's machine code.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Code {
    facts: nyala_driver::explain::kernels::Code,
    /// Instructions, without those that only fill lines.
    instructions: u64,
}

/// For each kernel of a program the code by way of PTX, and by nvcc.
pub type Codes = BTreeMap<(String, String), [Option<Code>; 2]>;

/// Bytes of an instruction, since Volta.
const INSTRUCTION: usize = 16;
/// The lowest bits of `NOP`.
const NOP: u16 = 0x918;

/// Adds the kernels of a program, from the assembler's words (`-v`) and its machine code. `which` is 0 for PTX, 1 for nvcc.
pub fn add(codes: &mut Codes, program: &str, which: usize, said: &str, cubin: &[u8]) {
    for (kernel, facts) in nyala_driver::explain::kernels::codes(said) {
        codes.entry((program.into(), kernel)).or_default()[which] = Some(Code { facts, instructions: 0 });
    }
    let Ok(file) = object::File::parse(cubin) else { return };
    for section in file.sections() {
        let name = section.name().ok().and_then(|name| name.strip_prefix(".text."));
        let known = name.and_then(|name| codes.get_mut(&(program.into(), name.into())));
        if let (Some(Some(code)), Ok(data)) = (known.map(|known| known[which].as_mut()), section.data()) {
            let is_nop = |i: &[u8]| u16::from_le_bytes([i[0], i[1]]) & 0xfff == NOP;
            code.instructions = data.chunks_exact(INSTRUCTION).filter(|i| !is_nop(i)).count() as u64;
        }
    }
}

/// A tool's output, and the machine code that it makes.
pub type Assembled = Result<(String, Vec<u8>), String>;

/// Adds the kernels of `bench/gpu`, ours beside those written in CUDA C++, where `assemble` runs a tool of the CUDA toolkit and
/// returns its words and the machine code.
pub fn add_bench(
    codes: &mut Codes,
    emit: &mut dyn FnMut(&Path, &Path) -> Result<(), String>,
    assemble: &mut dyn FnMut(&str, &[&str], &Path) -> Assembled,
) -> Result<(), String> {
    let folder = root().join("bench/gpu");
    let text = root().join("target/device/bench.ptx");
    emit(&folder.join("kernels.impala"), &text)?;
    let (said, code) = assemble("ptxas", &["-arch=sm_90", "-v"], &text)?;
    let mut ours = Codes::new();
    add(&mut ours, "", 0, &said, &code);
    let (said, code) =
        assemble("nvcc", &["-O3", "-use_fast_math", "-arch=sm_90", "-cubin", "-Xptxas=-v"], &folder.join("peers.cu"))?;
    let mut theirs = Codes::new();
    add(&mut theirs, "", 1, &said, &code);
    for ((_, kernel), [own, _]) in ours {
        let name = kernel.trim_start_matches("ours_").trim_end_matches("_kernel").to_string();
        let peer = theirs.get(&(String::new(), format!("theirs_{name}"))).and_then(|both| both[1]);
        codes.insert(("bench/gpu".into(), name), [own, peer]);
    }
    Ok(())
}

/// Compares the kernels with the file, or writes it. `version` is the assembler's.
pub fn compare(codes: &Codes, version: &str, bless: bool, tally: &mut Tally) -> Result<(), String> {
    let path = root().join("tests/device/registers.txt");
    let text = table(codes, version);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    match () {
        () if bless => std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?,
        () if old == text => tally.passed += 1,
        () if old.lines().next() != text.lines().next() => {
            println!("skipped: tests/device/registers.txt, which is of another assembler than {version}");
            tally.skipped += 1;
        }
        () => {
            let known: Vec<&str> = old.lines().collect();
            text.lines().filter(|line| !known.contains(line)).for_each(|line| println!("  {line}"));
            println!("FAILED tests/device/registers.txt: these lines are new (`./x bless devices` writes them)");
            tally.failed += 1;
        }
    }
    Ok(())
}

fn table(codes: &Codes, version: &str) -> String {
    let mut text = format!("# {version}, sm_90: by way of PTX, and in brackets by nvcc from CUDA C++\n");
    let (mut ratios, mut n) = ([0f64; 2], 0);
    for ((program, kernel), both) in codes {
        let [Some(ours), theirs] = both else { continue };
        let pair = |get: fn(&Code) -> u64| match theirs {
            Some(theirs) => format!("{} ({})", get(ours), get(theirs)),
            None => get(ours).to_string(),
        };
        let (registers, stack) = (pair(|c| c.facts.registers), pair(|c| c.facts.stack));
        let (spills, instructions) = (pair(|c| c.facts.spills), pair(|c| c.instructions));
        let _ = writeln!(
            text,
            "{program} {kernel}: {registers} registers, {stack} bytes of stack, {spills} of spills, {instructions} instructions"
        );
        if let Some(theirs) = theirs {
            let ratio = |a: u64, b: u64| (a.max(1) as f64 / b.max(1) as f64).ln();
            ratios[0] += ratio(ours.facts.registers, theirs.facts.registers);
            ratios[1] += ratio(ours.instructions, theirs.instructions);
            n += 1;
        }
    }
    let mean = |sum: f64| (sum / f64::from(n.max(1))).exp();
    let [registers, instructions] = ratios.map(mean);
    let _ = writeln!(
        text,
        "# PTX / nvcc, geometric means of {n} kernels: registers {registers:.3}, instructions {instructions:.3}"
    );
    text
}
