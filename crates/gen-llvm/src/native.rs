//! Initializers of the native target, which LLVM keeps as inline functions in its headers and `inkwell` asks for.

use llvm_sys::prelude::LLVMBool;

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

/// Registers the native target with LLVM and keeps the shims from being dropped by the linker.
pub(crate) fn initialize() {
    LLVM_InitializeNativeTarget();
    LLVM_InitializeNativeAsmPrinter();
    LLVM_InitializeNativeAsmParser();
}
