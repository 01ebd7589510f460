//! The machines that code is compiled for: LLVM's targets and their registration.
//!
//! LLVM defines the initializers of the native target as inline functions in its headers, and `inkwell` links to them.

use crate::diagnostics::{bug, unknown_target};
use crate::{nvptx, rounding, versions};
use inkwell::OptimizationLevel;
use inkwell::targets::{ByteOrdering, CodeModel, RelocMode, Target, TargetMachine, TargetTriple};
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::prelude::LLVMBool;
use llvm_sys::support::LLVMParseCommandLineOptions;
use nyala_base::Diagnostic;
use nyala_ir::{Arch, Target as Machine};
use std::ffi::{CStr, c_char};
use std::sync::Once;

macro_rules! shim {
    ($name:ident, $($target:ident),*) => {
        /// # Safety
        /// No other thread registers targets meanwhile. Registering one twice does nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> LLVMBool {
            unsafe extern "C" {
                $(fn $target();)*
            }
            // SAFETY: these functions take nothing and only register the target; `initialize` calls them in one thread.
            unsafe {
                $($target();)*
            }
            0
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod shims {
    use super::LLVMBool;
    shim!(LLVM_InitializeNativeTarget, LLVMInitializeX86TargetInfo, LLVMInitializeX86Target, LLVMInitializeX86TargetMC);
    shim!(LLVM_InitializeNativeAsmPrinter, LLVMInitializeX86AsmPrinter);
    shim!(LLVM_InitializeNativeAsmParser, LLVMInitializeX86AsmParser);
    shim!(LLVM_InitializeNativeDisassembler, LLVMInitializeX86Disassembler);
}

#[cfg(target_arch = "aarch64")]
mod shims {
    use super::LLVMBool;
    shim!(
        LLVM_InitializeNativeTarget,
        LLVMInitializeAArch64TargetInfo,
        LLVMInitializeAArch64Target,
        LLVMInitializeAArch64TargetMC
    );
    shim!(LLVM_InitializeNativeAsmPrinter, LLVMInitializeAArch64AsmPrinter);
    shim!(LLVM_InitializeNativeAsmParser, LLVMInitializeAArch64AsmParser);
    shim!(LLVM_InitializeNativeDisassembler, LLVMInitializeAArch64Disassembler);
}

pub(crate) use shims::*;

/// LLVM's options for code that nothing defined reaches: it ends in a trap, instead of going on in whatever lies behind it. Calls that
/// do not come back need none.
const TRAPS: [&CStr; 2] = [c"-trap-unreachable", c"-no-trap-after-noreturn"];

/// LLVM's option that keeps loops from carrying what they load from one round to the next. LLVM vectorizes such a loop with two shuffles
/// for each carried vector, where a second load is cheaper: a blur of known size takes 1.25 of the time with AVX2. `LlvmModule` runs the
/// pass again after vectorization.
const NO_LOAD_PRE: &CStr = c"-enable-load-pre=false";

/// Registers the targets with LLVM, and sets its options. LLVM's list of targets has no lock: with two threads that register the same
/// target, it is in the list twice, and LLVM finds neither. So one thread registers all, before any is looked up. The shims are
/// called to keep the linker from dropping them.
pub(crate) fn initialize() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        LLVM_InitializeNativeTarget();
        LLVM_InitializeNativeAsmPrinter();
        LLVM_InitializeNativeAsmParser();
        initialize_cross();
        initialize_gpus();
        let arguments = [c"nyala", rounding::OPTION, TRAPS[0], TRAPS[1], NO_LOAD_PRE].map(CStr::as_ptr);
        // SAFETY: as many C strings as it says, and no overview; once, before any pass runs.
        unsafe {
            LLVMParseCommandLineOptions(arguments.len() as i32, arguments.as_ptr(), std::ptr::null());
            LLVMInstallFatalErrorHandler(Some(report_fatal));
        }
    });
}

/// Ends the process with LLVM's message, which LLVM would do with a crash report.
extern "C" fn report_fatal(reason: *const c_char) {
    // SAFETY: LLVM hands over a C string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    eprintln!("error[limitation]: LLVM cannot make machine code of the program: {}", reason.trim_end());
    eprintln!("  = hint: name another processor by `--cpu`, or a newer GPU by `--cuda`");
    std::process::exit(1);
}

macro_rules! cross_targets {
    ($($arch:literal: $info:ident $target:ident $mc:ident $printer:ident $parser:ident,)*) => {
        /// Architectures (first part of the triple) that objects are made for.
        pub const ARCHITECTURES: &[&str] = &[$($arch),*];

        fn initialize_cross() {
            unsafe extern "C" {
                $(fn $info(); fn $target(); fn $mc(); fn $printer(); fn $parser();)*
            }
            // SAFETY: these functions take nothing and only register the target; `initialize` calls them in one thread.
            unsafe {
                $($info(); $target(); $mc(); $printer(); $parser();)*
            }
        }
    };
}

// Little-endian architectures with 64-bit pointers, C's layout as in `nyala_ir::layout`, and a calling convention of
// LLVM in which calls in tail position are jumps.
cross_targets! {
    "aarch64": LLVMInitializeAArch64TargetInfo LLVMInitializeAArch64Target LLVMInitializeAArch64TargetMC
        LLVMInitializeAArch64AsmPrinter LLVMInitializeAArch64AsmParser,
    "loongarch64": LLVMInitializeLoongArchTargetInfo LLVMInitializeLoongArchTarget LLVMInitializeLoongArchTargetMC
        LLVMInitializeLoongArchAsmPrinter LLVMInitializeLoongArchAsmParser,
    "powerpc64le": LLVMInitializePowerPCTargetInfo LLVMInitializePowerPCTarget LLVMInitializePowerPCTargetMC
        LLVMInitializePowerPCAsmPrinter LLVMInitializePowerPCAsmParser,
    "riscv64": LLVMInitializeRISCVTargetInfo LLVMInitializeRISCVTarget LLVMInitializeRISCVTargetMC
        LLVMInitializeRISCVAsmPrinter LLVMInitializeRISCVAsmParser,
    "wasm64": LLVMInitializeWebAssemblyTargetInfo LLVMInitializeWebAssemblyTarget LLVMInitializeWebAssemblyTargetMC
        LLVMInitializeWebAssemblyAsmPrinter LLVMInitializeWebAssemblyAsmParser,
    "x86_64": LLVMInitializeX86TargetInfo LLVMInitializeX86Target LLVMInitializeX86TargetMC
        LLVMInitializeX86AsmPrinter LLVMInitializeX86AsmParser,
}

/// Registers the targets of kernels. NVIDIA's has no parser, since its own tools assemble PTX.
fn initialize_gpus() {
    unsafe extern "C" {
        fn LLVMInitializeNVPTXTargetInfo();
        fn LLVMInitializeNVPTXTarget();
        fn LLVMInitializeNVPTXTargetMC();
        fn LLVMInitializeNVPTXAsmPrinter();
        fn LLVMInitializeAMDGPUTargetInfo();
        fn LLVMInitializeAMDGPUTarget();
        fn LLVMInitializeAMDGPUTargetMC();
        fn LLVMInitializeAMDGPUAsmPrinter();
        fn LLVMInitializeAMDGPUAsmParser();
    }
    // SAFETY: these functions take nothing and only register the target; `initialize` calls them in one thread.
    unsafe {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
        LLVMInitializeAMDGPUTargetInfo();
        LLVMInitializeAMDGPUTarget();
        LLVMInitializeAMDGPUTargetMC();
        LLVMInitializeAMDGPUAsmPrinter();
        LLVMInitializeAMDGPUAsmParser();
    }
}

pub(crate) fn machine(target: &Machine, level: u8) -> Result<TargetMachine, Box<Diagnostic>> {
    initialize();
    if !target.is_gpu() && !ARCHITECTURES.contains(&target.arch.name()) {
        return Err(Box::new(unknown_target::error(&target.triple, ARCHITECTURES)));
    }
    let text = &target.triple;
    let triple = TargetTriple::create(text);
    let of_llvm = Target::from_triple(&triple).map_err(|e| bug(e.to_string()))?;
    let (cpu, features) = cpu_and_features(target);
    let level = match level {
        0 => OptimizationLevel::None,
        1 => OptimizationLevel::Less,
        2 => OptimizationLevel::Default,
        _ => OptimizationLevel::Aggressive,
    };
    let machine = of_llvm
        .create_target_machine(&triple, &cpu, &features, level, RelocMode::PIC, CodeModel::Default)
        .ok_or_else(|| bug(format!("LLVM has no machine for {text}")))?;
    let data = machine.get_target_data();
    let same_pointers = u64::from(data.get_pointer_byte_size(None)) == target.spaces.pointer_bytes(0);
    if !same_pointers || data.get_byte_ordering() != ByteOrdering::LittleEndian {
        return Err(Box::new(unknown_target::of_other_memory(text)));
    }
    Ok(machine)
}

fn cpu_and_features(target: &Machine) -> (String, String) {
    let least = default_cpu(target.arch);
    match target.cpu.as_deref() {
        None if target.is_native => (host_cpu(), TargetMachine::get_host_cpu_features().to_string_lossy().into_owned()),
        Some(cpu) if target.arch == Arch::Nvptx64 => (cpu.into(), nvptx::features(cpu).into()),
        Some(cpu) if cpu != least => (cpu.into(), versions::tuning(cpu).into()),
        _ => (least.into(), default_features(target.arch).into()),
    }
}

/// LLVM's name of this machine's CPU.
pub fn host_cpu() -> String {
    TargetMachine::get_host_cpu_name().to_string_lossy().into_owned()
}

/// A text with all facts about the machine, and about LLVM, that the generated code depends on.
pub fn machine_name(target: &Machine) -> String {
    let (cpu, features) = cpu_and_features(target);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: writes three numbers.
    unsafe { llvm_sys::core::LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("LLVM {major}.{minor}.{patch} {} {cpu} {features}", target.triple)
}

/// The CPU of a foreign target if none is named.
fn default_cpu(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "x86-64",
        Arch::RiscV64 => "generic-rv64",
        Arch::PowerPc64Le => "ppc64le",
        Arch::Nvptx64 => "sm_75",
        Arch::AmdGcn => "gfx90a",
        Arch::Aarch64 | Arch::LoongArch64 | Arch::Wasm64 | Arch::Unknown => "generic",
    }
}

/// Features that Linux expects of such machines beyond the baseline CPU.
fn default_features(arch: Arch) -> &'static str {
    match arch {
        Arch::RiscV64 => "+m,+a,+f,+d,+c",
        Arch::Wasm64 => "+tail-call",
        Arch::Aarch64
        | Arch::AmdGcn
        | Arch::LoongArch64
        | Arch::Nvptx64
        | Arch::PowerPc64Le
        | Arch::X86_64
        | Arch::Unknown => "",
    }
}
