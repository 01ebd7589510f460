//! Keeps LLVM's instruction selection from moving shuffles over divisions. This works on LLVM's modules and not on the
//! emitted text, since LLVM's optimizer makes some of these divisions.
//!
//! LLVM 22 for x86-64 moves a shuffle of a quotient to dividend and divisor, if the divisor is constant. Then the
//! divisor is undefined in unused lanes, hence the whole quotient, and all lanes become 0. The vectors have types that
//! the machine lacks (other divisions are multiplications by then), most often bytes that are multiplied as larger
//! numbers. An empty piece of assembly stops the shuffle:
//!
//! ```text
//! %q = udiv <8 x i8> %x, splat (i8 3)                %q = udiv <8 x i8> %x, splat (i8 3)
//! %r = shufflevector <8 x i8> %q, …                  %more = shufflevector <8 x i8> %q, …, <16 x i32> …
//!                                                    %opaque = call <16 x i8> asm "", "=x,0"(<16 x i8> %more)
//!                                                    %kept = shufflevector <16 x i8> %opaque, …, <8 x i32> …
//!                                                    %r = shufflevector <8 x i8> %kept, …
//! ```
//!
//! Not handled: vectors larger than an SSE register whose length is no power of two, of which few lanes are used as
//! larger numbers.

use inkwell::builder::{Builder, BuilderError};
use inkwell::module::Module;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, InstructionOpcode, InstructionValue, VectorValue};

/// Width of an SSE register in bits.
const REGISTER: u32 = 128;

/// Shields quotients and remainders of short vectors by constants from shuffles of them.
pub(crate) fn shield(module: &Module) -> Result<(), BuilderError> {
    let builder = module.get_context().create_builder();
    for block in module.get_functions().flat_map(|f| f.get_basic_blocks()) {
        let divisions: Vec<_> = block.get_instructions().filter(|&i| is_short(i)).collect();
        for division in divisions {
            shield_one(&builder, division)?;
        }
    }
    Ok(())
}

fn operand(inst: InstructionValue<'_>, i: u32) -> Option<VectorValue<'_>> {
    match inst.get_operand(i)?.value()? {
        BasicValueEnum::VectorValue(vector) => Some(vector),
        _ => None,
    }
}

/// Whether an instruction divides fewer lanes than fill a register by constants.
fn is_short(inst: InstructionValue) -> bool {
    use InstructionOpcode::{SDiv, SRem, UDiv, URem};
    if !matches!(inst.get_opcode(), UDiv | URem | SDiv | SRem) {
        return false;
    }
    operand(inst, 1).filter(|by| by.is_const()).is_some_and(|by| {
        let (n, bits) = (by.get_type().get_size(), by.get_type().get_element_type().into_int_type().get_bit_width());
        [8, 16, 32, 64].contains(&bits) && n * bits < REGISTER
    })
}

fn shield_one<'ctx>(builder: &Builder<'ctx>, division: InstructionValue<'ctx>) -> Result<(), BuilderError> {
    let (Some(a), Some(b)) = (operand(division, 0), operand(division, 1)) else { return Ok(()) };
    let (ty, context) = (a.get_type(), a.get_type().get_context());
    let (element, n) = (ty.get_element_type().into_int_type(), ty.get_size());
    let wide = element.vec_type(REGISTER / element.get_bit_width());
    let order = |lanes: u32| {
        let numbers: Vec<_> = (0..lanes).map(|k| context.i32_type().const_int(k.min(n).into(), false)).collect();
        VectorType::const_vector(&numbers)
    };
    builder.position_before(&division);
    let quotient = match division.get_opcode() {
        InstructionOpcode::UDiv => builder.build_int_unsigned_div(a, b, "")?,
        InstructionOpcode::URem => builder.build_int_unsigned_rem(a, b, "")?,
        InstructionOpcode::SDiv => builder.build_int_signed_div(a, b, "")?,
        _ => builder.build_int_signed_rem(a, b, "")?,
    };
    let more = builder.build_shuffle_vector(quotient, ty.get_poison(), order(wide.get_size()), "")?;
    let asm_ty = wide.fn_type(&[wide.into()], false);
    let asm = context.create_inline_asm(asm_ty, String::new(), "=x,0".into(), false, false, None, false);
    let opaque = builder.build_indirect_call(asm_ty, asm, &[more.into()], "")?;
    let opaque = opaque.try_as_basic_value().unwrap_basic().into_vector_value();
    let kept = builder.build_shuffle_vector(opaque, wide.get_poison(), order(n), "")?;
    if let Some(kept) = kept.as_instruction() {
        division.replace_all_uses_with(&kept);
        division.erase_from_basic_block();
    }
    Ok(())
}
