//! The machines that code is made for: LLVM's targets and their registration.
//!
//! LLVM keeps the initializers of the native target as inline functions in its headers and `inkwell` asks for them.

use crate::diagnostics::{bug, limitation, unknown_target};
use crate::options::Options;
use crate::rounding;
use inkwell::OptimizationLevel;
use inkwell::targets::{ByteOrdering, CodeModel, RelocMode, Target, TargetMachine, TargetTriple};
use llvm_sys::prelude::LLVMBool;
use llvm_sys::support::LLVMParseCommandLineOptions;
use nyala_base::{Diagnostic, Span};
use std::sync::Once;

macro_rules! shim {
    ($name:ident, $($target:ident),*) => {
        /// # Safety
        /// None: registering a target twice does nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> LLVMBool {
            unsafe extern "C" {
                $(fn $target();)*
            }
            // SAFETY: these functions take nothing and only register the target, under LLVM's own lock.
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

/// Registers the native target with LLVM and keeps the shims from being dropped by the linker; sets LLVM's options.
pub(crate) fn initialize() {
    static OPTIONS: Once = Once::new();
    LLVM_InitializeNativeTarget();
    LLVM_InitializeNativeAsmPrinter();
    LLVM_InitializeNativeAsmParser();
    OPTIONS.call_once(|| {
        let arguments = [c"nyala".as_ptr(), rounding::OPTION.as_ptr()];
        // SAFETY: as many C strings as it says, and no overview; once, before any pass runs.
        unsafe { LLVMParseCommandLineOptions(arguments.len() as i32, arguments.as_ptr(), std::ptr::null()) };
    });
}

macro_rules! cross_targets {
    ($($arch:literal: $info:ident $target:ident $mc:ident $printer:ident $parser:ident,)*) => {
        /// Architectures, as triples begin, that objects are made for.
        pub const ARCHITECTURES: &[&str] = &[$($arch),*];

        fn initialize_cross(arch: &str) -> bool {
            unsafe extern "C" {
                $(fn $info(); fn $target(); fn $mc(); fn $printer(); fn $parser();)*
            }
            match arch {
                // SAFETY: these functions take nothing and only register the target, under LLVM's own lock.
                $($arch => unsafe { $info(); $target(); $mc(); $printer(); $parser(); },)*
                _ => return false,
            }
            true
        }
    };
}

// Little-endian, with pointers of 64 bits, C's layout as `nyala_ir::layout` has it, and a convention of LLVM in which
// calls in tail position are jumps.
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

/// The triple of this machine.
pub fn default_triple() -> String {
    TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned()
}

/// Whether code for the triple runs on this machine: same architecture and operating system.
pub fn is_native(triple: &str) -> bool {
    let parts = |t: &str| {
        let os = ["linux", "darwin", "windows", "freebsd"].into_iter().find(|os| t.contains(os));
        (t.split('-').next().unwrap_or("").to_string(), os)
    };
    parts(triple) == parts(&default_triple())
}

pub(crate) fn machine(options: &Options, level: u8) -> Result<TargetMachine, Box<Diagnostic>> {
    initialize();
    let triple = match &options.target {
        Some(named) => {
            let (arch, rest) = named.split_once('-').unwrap_or((named, ""));
            // Rust's names say the extensions too.
            let arch = if arch.starts_with("riscv64") { "riscv64" } else { arch };
            if !initialize_cross(arch) {
                return Err(Box::new(unknown_target::error(named, ARCHITECTURES)));
            }
            TargetTriple::create(&format!("{arch}-{rest}"))
        }
        None => TargetMachine::get_default_triple(),
    };
    let text = triple.as_str().to_string_lossy().into_owned();
    let target = Target::from_triple(&triple).map_err(|e| bug(e.to_string()))?;
    let (cpu, features) = cpu_and_features(options, &text);
    let level = match level {
        0 => OptimizationLevel::None,
        1 => OptimizationLevel::Less,
        2 => OptimizationLevel::Default,
        _ => OptimizationLevel::Aggressive,
    };
    let machine = target
        .create_target_machine(&triple, &cpu, &features, level, RelocMode::PIC, CodeModel::Default)
        .ok_or_else(|| bug(format!("LLVM has no machine for {text}")))?;
    let data = machine.get_target_data();
    if data.get_pointer_byte_size(None) != 8 || data.get_byte_ordering() != ByteOrdering::LittleEndian {
        let message = format!("code for `{text}`: only little-endian machines with addresses of 64 bits");
        return Err(Box::new(limitation::error(Span::NONE, message, "build for another target")));
    }
    Ok(machine)
}

fn cpu_and_features(options: &Options, triple: &str) -> (String, String) {
    let foreign = options.target.as_deref().is_some_and(|t| !is_native(t));
    match &options.cpu {
        Some(cpu) if cpu != "native" || foreign => {
            (cpu.clone(), if cpu == default_cpu(triple) { default_features(triple) } else { tuning(cpu) }.into())
        }
        _ if foreign => (default_cpu(triple).into(), default_features(triple).into()),
        _ => (host_cpu(), TargetMachine::get_host_cpu_features().to_string_lossy().into_owned()),
    }
}

/// LLVM's name of this machine's CPU.
pub fn host_cpu() -> String {
    TargetMachine::get_host_cpu_name().to_string_lossy().into_owned()
}

/// What LLVM should know of a CPU beyond its name.
pub(crate) fn tuning(cpu: &str) -> &'static str {
    // LLVM thinks of the first machines of this level, on which a gather was no faster than single loads. Now it is: 2.4
    // times from the first cache of a Sapphire Rapids, 1.2 times from the second.
    if cpu == "x86-64-v3" { "+fast-gather" } else { "" }
}

/// Everything about the machine, and about LLVM, that decides which code it makes.
pub fn machine_name(options: &Options) -> String {
    let triple = options.target.clone().unwrap_or_else(default_triple);
    let (cpu, features) = cpu_and_features(options, &triple);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: writes three numbers.
    unsafe { llvm_sys::core::LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    format!("LLVM {major}.{minor}.{patch} {triple} {cpu} {features}")
}

/// The CPU of a foreign target when none is named.
fn default_cpu(triple: &str) -> &'static str {
    match triple.split('-').next().unwrap_or("") {
        "x86_64" => "x86-64",
        "riscv64" => "generic-rv64",
        "powerpc64le" => "ppc64le",
        _ => "generic",
    }
}

/// What Linux expects of such machines beyond the CPU's least.
fn default_features(triple: &str) -> &'static str {
    match triple.split('-').next().unwrap_or("") {
        "riscv64" => "+m,+a,+f,+d,+c",
        "wasm64" => "+tail-call",
        _ => "",
    }
}
