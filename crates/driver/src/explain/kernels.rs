//! `nyala explain --kernels`: reports the kernels of a program: which values became their parameters, what costs time for
//! certain, and, where NVIDIA's assembler is installed, registers and spills.

use super::text::at;
use super::{Place, place};
use crate::build::temporary_folder;
use crate::flat::Flat;
use crate::{Options, devices, emit};
use nyala_flat::{Linkage, Module};
use nyala_ir::lanes::PLATFORMS;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

/// A kernel, as `--json` prints it.
#[derive(Serialize)]
pub struct Kernel {
    name: String,
    platform: &'static str,
    /// The places where it is launched.
    launches: Vec<Option<Place>>,
    /// Work items of a block on each axis, 0 where they are known at run time only.
    block: [u32; 3],
    /// Names and types.
    parameters: Vec<String>,
    costs: Vec<Cost>,
    /// Numbers from NVIDIA's assembler.
    code: Option<Code>,
}

#[derive(Serialize)]
struct Cost {
    place: Option<Place>,
    subject: &'static str,
    text: String,
}

/// Facts about a kernel's machine code for NVIDIA's GPUs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Code {
    /// Registers of a work item.
    pub registers: u64,
    /// Bytes of a work item's stack.
    pub stack: u64,
    /// Bytes that are stored and loaded for want of registers.
    pub spills: u64,
}

/// Reports the kernels of a program's devices.
pub fn kernels(flat: &Flat, function: Option<&str>) -> Vec<Kernel> {
    let Flat { module, report, options, .. } = flat;
    let mut found = Vec::new();
    for device in &module.devices {
        let platform = PLATFORMS.get(device.platform as usize).copied().unwrap_or_default();
        let codes =
            if ["cuda", "nvvm"].contains(&platform) { assembled(options, &device.module) } else { BTreeMap::new() };
        let mut names: Vec<_> = device.launches.iter().map(|l| l.2).collect();
        names.sort_unstable();
        names.dedup();
        for func in names {
            let kernel = device.module.func(func);
            let Linkage::Kernel(symbol, block) = &kernel.linkage else { continue };
            let of = symbol.split("_kernel").next();
            if function.is_some_and(|f| Some(f) != of && f != symbol) {
                continue;
            }
            let launches =
                device.launches.iter().filter(|l| l.2 == func).map(|l| place(&report.sources, l.1)).collect();
            let types = &device.module.types;
            let parameters = kernel.blocks.first().map_or(&[][..], |b| &b.params);
            let shown = |&v: &nyala_flat::Value| match kernel.name(v) {
                "" => types.display(kernel.ty(v)).to_string(),
                name => format!("{name}: {}", types.display(kernel.ty(v))),
            };
            let costs = nyala_kernels::costs(&device.module, func).into_iter();
            let costs = costs.map(|c| Cost { place: place(&report.sources, c.span), subject: c.subject, text: c.text });
            found.push(Kernel {
                name: symbol.clone(),
                platform,
                launches,
                block: *block,
                parameters: parameters.iter().map(shown).collect(),
                costs: costs.collect(),
                code: codes.get(symbol).copied(),
            });
        }
    }
    found
}

/// NVIDIA's assembler's numbers for the kernels of a module; nothing if it is not installed, or if they are no PTX.
fn assembled(options: &Options, module: &Module) -> BTreeMap<String, Code> {
    let is_there = |c: &mut Command| c.arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(tool) = devices::cuda_tools("ptxas").find(|path| is_there(&mut Command::new(path))) else {
        return BTreeMap::new();
    };
    let ptx = emit::ptx(options, module);
    let run = || {
        let folder = temporary_folder().ok()?;
        let (text, out) = (folder.path().join("kernels.ptx"), folder.path().join("kernels.cubin"));
        std::fs::write(&text, ptx.ok()?).ok()?;
        let gpu = options.cuda.as_deref().filter(|&gpu| gpu != crate::CUDA_SOURCE).unwrap_or(crate::CUDA_LEAST);
        let output = Command::new(tool).args(["-v", "-arch", gpu, "-o"]).args([&out, &text]).output().ok()?;
        Some(codes(&(String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr))))
    };
    run().unwrap_or_default()
}

/// The facts in the words of NVIDIA's assembler (`ptxas -v`), by kernel.
pub fn codes(said: &str) -> BTreeMap<String, Code> {
    let number = |line: &str, unit: &str| -> u64 {
        let before = line.split(unit).next().filter(|before| before.len() < line.len());
        before.and_then(|b| b.split_whitespace().next_back()).and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let mut codes: BTreeMap<String, Code> = BTreeMap::new();
    let mut kernel = None;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernel = rest.split('\'').next();
        }
        let Some(name) = kernel else { continue };
        let code = codes.entry(name.into()).or_default();
        if line.contains(" bytes stack frame") {
            code.stack = number(line, " bytes stack frame");
            code.spills = number(line, " bytes spill stores") + number(line, " bytes spill loads");
        } else if line.contains(" registers") {
            code.registers = number(line, " registers");
        }
    }
    codes
}

/// The kernels as text.
pub fn text(kernels: &[Kernel]) -> String {
    if kernels.is_empty() {
        return "no kernel runs on a device\n".into();
    }
    let mut out = String::new();
    for kernel in kernels {
        let gap = if out.is_empty() { "" } else { "\n" };
        let places: Vec<String> = kernel.launches.iter().map(at).collect();
        let block = kernel.block.map(|n| if n == 0 { "?".to_string() } else { n.to_string() }).join(" by ");
        let _ = writeln!(out, "{gap}{} for {}, launched at {}", kernel.name, kernel.platform, places.join(", "));
        let _ = writeln!(out, "  blocks of {block} work items");
        match &kernel.parameters[..] {
            [] => out.push_str("  no parameters\n"),
            all => {
                let _ = writeln!(out, "  parameters: {}", all.join(", "));
            }
        }
        if let Some(code) = kernel.code {
            let Code { registers, stack, spills } = code;
            let _ = writeln!(out, "  {registers} registers, {stack} bytes of stack, {spills} bytes of spills");
        }
        for cost in &kernel.costs {
            let _ = writeln!(out, "  {}  {}: {}", at(&cost.place), cost.subject, cost.text);
        }
    }
    out
}

/// The kernels as JSON.
pub fn json(kernels: &[Kernel]) -> String {
    serde_json::to_string_pretty(kernels).unwrap_or_default()
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
        let code = Code { registers: 30, stack: 40, spills: 12 };
        assert_eq!(codes(said).into_iter().collect::<Vec<_>>(), [("k_2".to_string(), code)]);
    }
}
