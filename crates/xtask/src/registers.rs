//! The machine code of kernels for NVIDIA's GPUs, without a GPU: registers, stack, spills and instructions of the code that
//! NVIDIA's assembler makes of our PTX, beside those of the code that `nvcc -O3` makes of our CUDA C++.
//! `tests/device/registers.txt` has them; `./x bless devices` writes it.

use crate::{Tally, root};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Facts about a kernel's machine code.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Code {
    registers: u64,
    /// Bytes of a work item's stack.
    stack: u64,
    /// Bytes that are stored and loaded for want of registers.
    spills: u64,
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
    let number = |line: &str, unit: &str| -> u64 {
        let before = line.split(unit).next().filter(|before| before.len() < line.len());
        before.and_then(|b| b.split_whitespace().next_back()).and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let mut kernel = None;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next();
        }
        let Some(name) = kernel else { continue };
        let code = codes.entry((program.into(), name.into())).or_default()[which].get_or_insert_default();
        if line.contains(" bytes stack frame") {
            code.stack = number(line, " bytes stack frame");
            code.spills = number(line, " bytes spill stores") + number(line, " bytes spill loads");
        } else if line.contains(" registers") {
            code.registers = number(line, " registers");
        }
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
        let (registers, stack) = (pair(|c| c.registers), pair(|c| c.stack));
        let (spills, instructions) = (pair(|c| c.spills), pair(|c| c.instructions));
        let _ = writeln!(
            text,
            "{program} {kernel}: {registers} registers, {stack} bytes of stack, {spills} of spills, {instructions} instructions"
        );
        if let Some(theirs) = theirs {
            let ratio = |a: u64, b: u64| (a.max(1) as f64 / b.max(1) as f64).ln();
            ratios[0] += ratio(ours.registers, theirs.registers);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_assembler_says() {
        let said = "ptxas info    : Compiling entry function 'k_2' for 'sm_90'\n\
            ptxas info    : Function properties for k_2\n    \
            40 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
            ptxas info    : Used 30 registers, used 0 barriers, 40 bytes cumulative stack size\n";
        let mut codes = Codes::new();
        add(&mut codes, "p", 1, said, &[]);
        let code = Code { registers: 30, stack: 40, spills: 12, instructions: 0 };
        assert_eq!(codes.into_iter().next(), Some((("p".into(), "k_2".into()), [None, Some(code)])));
    }
}
