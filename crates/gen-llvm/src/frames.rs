//! Keeps LLVM's code for large stack frames from overwriting a value. This works on LLVM's modules, like `divisions`, since LLVM's
//! optimizer inlines functions and removes allocations.
//!
//! LLVM 22 for x86-64 probes the pages of a frame of more than eight of them in a loop that overwrites `r11`. It may make the frame only
//! behind a branch that leaves the function early (shrink-wrapping), where `r11` may hold a value. At a function's start it holds none.
//! A store to the frame in the first block keeps the frame's making there:
//!
//! ```text
//! entry:                                      entry:
//!   %a = alloca [40000 x i8]                    %a = alloca [40000 x i8]
//!   br i1 %none, label %exit, label %work       store volatile i8 0, ptr %a
//!                                               br i1 %none, label %exit, label %work
//! ```

use inkwell::builder::BuilderError;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};

/// The bytes of all allocations and values of a function from which on its frame may have eight pages: half of these, since LLVM makes
/// more values of some.
const LARGE: u64 = 16 << 10;

/// Makes the frames of functions at their start, if they may be large.
pub(crate) fn anchor(module: &Module, layout: &TargetData) -> Result<(), BuilderError> {
    let context = module.get_context();
    let builder = context.create_builder();
    for function in module.get_functions().filter(|&f| may_be_large(f, layout)) {
        let entry = function.get_first_basic_block();
        let start = entry.and_then(|b| b.get_instructions().find(|i| i.get_opcode() != InstructionOpcode::Alloca));
        let Some(start) = start else { continue };
        builder.position_before(&start);
        let place = builder.build_alloca(context.i8_type(), "")?;
        let store = builder.build_store(place, context.i8_type().const_zero())?;
        // Any store may be volatile.
        let _ = store.set_volatile(true);
    }
    Ok(())
}

fn may_be_large(function: FunctionValue, layout: &TargetData) -> bool {
    let mut bytes = 0u64;
    // The frame of a function of one block is made at its start.
    function.count_basic_blocks() > 1
        && function.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions()).any(|inst| {
            bytes = bytes.saturating_add(bytes_of(inst, layout));
            bytes >= LARGE
        })
}

/// The bytes that an instruction allocates, or that its result has.
fn bytes_of(inst: InstructionValue, layout: &TargetData) -> u64 {
    if let Ok(ty) = inst.get_allocated_type() {
        let count = inst.get_operand(0).and_then(|count| count.value()?.into_int_value().get_zero_extended_constant());
        return layout.get_abi_size(&ty).saturating_mul(count.unwrap_or(1));
    }
    match inst.get_type() {
        AnyTypeEnum::VoidType(_) => 0,
        AnyTypeEnum::VectorType(ty) => layout.get_abi_size(&ty),
        _ => 8,
    }
}
