//! Code that promises LLVM nothing: what a module says of numbers, addresses and values that do not occur is taken away before LLVM
//! optimizes it. So a function that only has checked accesses and operations with a result (`nyala_checks::confine`) does nothing else
//! than these, whatever it is given. Works on LLVM's modules, since their text is written in many places.
//!
//! - Arithmetic wraps around, and addresses are sums: no `nsw`, no `inbounds`. (Flags of floats LLVM can add here, not take away: confined
//!   code has no fast operations.)
//! - An undefined operand is 0.
//! - What is read is some value, the same for each use, even if nobody wrote it or a thread writes it just then: a `freeze` behind each
//!   load, which becomes no instruction.
//!
//! ```text
//! %i = add nsw i64 %a, %b                        %i = add i64 %a, %b
//! %p = getelementptr inbounds i32, ptr %d, %i    %p = getelementptr i32, ptr %d, %i
//! %x = load i32, ptr %p                          %x = load i32, ptr %p
//!                                                %y = freeze i32 %x
//! ```

use inkwell::module::Module;
use inkwell::values::{AsValueRef, InstructionOpcode, InstructionValue};
use llvm_sys::core::{
    LLVMBuildFreeze, LLVMConstNull, LLVMGEPSetNoWrapFlags, LLVMGetNumOperands, LLVMGetOperand, LLVMIsUndef,
    LLVMReplaceAllUsesWith, LLVMSetNSW, LLVMSetNUW, LLVMSetOperand, LLVMTypeOf,
};

/// Takes the flags away that say that something does not happen.
pub(crate) fn drop_flags(inst: InstructionValue<'_>) {
    let v = inst.as_value_ref();
    // SAFETY: flags are set of instructions that have them.
    unsafe {
        match inst.get_opcode() {
            InstructionOpcode::Add | InstructionOpcode::Sub | InstructionOpcode::Mul | InstructionOpcode::Shl => {
                LLVMSetNSW(v, 0);
                LLVMSetNUW(v, 0);
            }
            InstructionOpcode::GetElementPtr => LLVMGEPSetNoWrapFlags(v, 0),
            _ => {}
        }
    }
}

/// Makes the undefined operands of an instruction 0.
pub(crate) fn define_operands(inst: InstructionValue<'_>) {
    let v = inst.as_value_ref();
    // SAFETY: constants have the types of the operands that they replace.
    unsafe {
        for i in 0..LLVMGetNumOperands(v) as u32 {
            let operand = LLVMGetOperand(v, i);
            if LLVMIsUndef(operand) != 0 {
                LLVMSetOperand(v, i, LLVMConstNull(LLVMTypeOf(operand)));
            }
        }
    }
}

/// Whether an instruction reads memory of the program.
fn reads(inst: InstructionValue<'_>) -> bool {
    match inst.get_opcode() {
        InstructionOpcode::Load => true,
        InstructionOpcode::Call => {
            let callee =
                inkwell::values::CallSiteValue::try_from(inst).ok().and_then(|call| call.get_called_fn_value());
            let name = callee.map(|f| f.get_name().to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with("llvm.masked.load") || name.starts_with("llvm.masked.gather")
        }
        _ => false,
    }
}

/// Takes all promises of a module away.
pub(crate) fn confine(module: &Module) {
    let builder = module.get_context().create_builder();
    let insts: Vec<InstructionValue> =
        module.get_functions().flat_map(|f| f.get_basic_blocks()).flat_map(|b| b.get_instructions()).collect();
    for inst in insts {
        drop_flags(inst);
        define_operands(inst);
        let Some(next) = inst.get_next_instruction().filter(|_| reads(inst)) else { continue };
        builder.position_before(&next);
        // SAFETY: the instruction has a value, and the builder stands behind it.
        unsafe {
            let read = inst.as_value_ref();
            let frozen = LLVMBuildFreeze(builder.as_mut_ptr(), read, c"".as_ptr());
            LLVMReplaceAllUsesWith(read, frozen);
            LLVMSetOperand(frozen, 0, read);
        }
    }
}
