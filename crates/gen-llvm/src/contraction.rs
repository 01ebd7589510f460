//! Contracts sums of products that have several uses. This works on LLVM's modules, like `divisions`, since LLVM's optimizer chooses the
//! order of sums.
//!
//! LLVM 22 makes one operation of a product and a sum if the product has no other use. Where all its uses are sums, each can be one
//! operation, and the product is none:
//!
//! ```text
//! %p = fmul fast float %x, %x                 %s = call fast float @llvm.fma.f32(float %x, float %x, float %a)
//! %s = fadd fast float %p, %a                 %n = fneg fast float %x
//! %t = fsub fast float %b, %p                 %t = call fast float @llvm.fma.f32(float %n, float %x, float %b)
//! ```
//!
//! If a sum has two such products, the first is contracted. The second product stays an operation then, and none of its sums is contracted:
//! that would save no operation, and many processors have more units that add than units that multiply.

use inkwell::attributes::AttributeLoc;
use inkwell::builder::{Builder, BuilderError};
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, BasicTypeEnum};
use inkwell::values::{
    AnyValueEnum, BasicValue, BasicValueEnum, FastMathFlags, FunctionValue, InstructionOpcode, InstructionValue,
};
use nyala_ir::Target;
use std::cell::LazyCell;

/// Contracts in all functions whose CPU is of x86-64 and has fused multiplication. That of AArch64 overwrites the summand: there
/// Mandelbrot's loop becomes longer.
pub(crate) fn contract(module: &Module, target: &Target) -> Result<(), BuilderError> {
    let builder = module.get_context().create_builder();
    // Found once, since it asks the machine for its caches, too.
    let target_has_fma = LazyCell::new(|| target.facts().fma);
    for function in module.get_functions() {
        let is_product = |i: &InstructionValue| i.get_opcode() == InstructionOpcode::FMul;
        let blocks = function.get_basic_blocks().into_iter();
        let products: Vec<_> = blocks.flat_map(|block| block.get_instructions().filter(is_product)).collect();
        let has_fma = || match own_cpu(function) {
            Some(cpu) => target.with_cpu(Some(&cpu)).facts().fma,
            None => *target_has_fma,
        };
        if products.is_empty() || !has_fma() {
            continue;
        }
        for product in products {
            // Asked for one after the other, as each has fewer sums when those before it are contracted.
            if is_contractible(product) {
                for sum in users(product).collect::<Vec<_>>() {
                    contract_one(module, &builder, product, sum)?;
                }
                if product.get_first_use().is_none() {
                    product.erase_from_basic_block();
                }
            }
        }
    }
    Ok(())
}

/// The CPU that a function of a module for several CPUs names.
fn own_cpu(function: FunctionValue) -> Option<String> {
    let own = function.get_string_attribute(AttributeLoc::Function, "target-cpu")?;
    Some(own.get_string_value().to_string_lossy().into_owned())
}

/// The instructions that use a value; of other users, none.
fn users<'ctx>(value: InstructionValue<'ctx>) -> impl Iterator<Item = InstructionValue<'ctx>> {
    let uses = std::iter::successors(value.get_first_use(), |u| u.get_next_use());
    uses.filter_map(|u| match u.get_user() {
        AnyValueEnum::FloatValue(v) => v.as_instruction(),
        AnyValueEnum::VectorValue(v) => v.as_instruction(),
        _ => None,
    })
}

fn may_contract(inst: InstructionValue) -> bool {
    inst.get_fast_math_flags().is_ok_and(|flags| flags.contains(FastMathFlags::AllowContract))
}

fn is_sum(inst: InstructionValue) -> bool {
    matches!(inst.get_opcode(), InstructionOpcode::FAdd | InstructionOpcode::FSub) && may_contract(inst)
}

/// Whether an instruction is a product with several uses, all of which are sums in its block.
fn is_contractible(inst: InstructionValue) -> bool {
    if !may_contract(inst) || intrinsic_type(inst).is_none() {
        return false;
    }
    let uses = std::iter::successors(inst.get_first_use(), |u| u.get_next_use()).count();
    let is_here = |sum: InstructionValue| sum.get_parent() == inst.get_parent();
    // `p + p` uses the product twice.
    let is_once = |sum: InstructionValue| value(sum, 0) != value(sum, 1);
    let sums = users(inst).filter(|&sum| is_sum(sum) && is_here(sum) && is_once(sum)).count();
    uses > 1 && sums == uses
}

/// The type of an instruction, if it is `f32`, `f64` or a vector of these.
fn intrinsic_type(inst: InstructionValue) -> Option<BasicTypeEnum> {
    let (ty, element) = match inst.get_type() {
        AnyTypeEnum::FloatType(ty) => (ty.into(), ty),
        AnyTypeEnum::VectorType(ty) => (ty.into(), ty.get_element_type().into_float_type()),
        _ => return None,
    };
    let context = element.get_context();
    (element == context.f32_type() || element == context.f64_type()).then_some(ty)
}

fn value(inst: InstructionValue<'_>, i: u32) -> Option<BasicValueEnum<'_>> {
    inst.get_operand(i)?.value()
}

/// Replaces `sum`, of which `product` is an operand, by one operation.
fn contract_one<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    product: InstructionValue<'ctx>,
    sum: InstructionValue<'ctx>,
) -> Result<(), BuilderError> {
    let is_first = value(sum, 0).and_then(|v| v.as_instruction_value()) == Some(product);
    let (Some(a), Some(b), Some(other)) = (value(product, 0), value(product, 1), value(sum, u32::from(is_first)))
    else {
        return Ok(());
    };
    let Some(fma) = intrinsic_type(sum).and_then(|ty| Intrinsic::find("llvm.fma")?.get_declaration(module, &[ty]))
    else {
        return Ok(());
    };
    builder.position_before(&sum);
    let is_difference = sum.get_opcode() == InstructionOpcode::FSub;
    let a = if is_difference && !is_first { negated(builder, a)? } else { a };
    let other = if is_difference && is_first { negated(builder, other)? } else { other };
    let call = builder.build_call(fma, &[a.into(), b.into(), other.into()], "")?;
    let call = call.try_as_basic_value().unwrap_basic();
    let Some(call) = call.as_instruction_value() else { return Ok(()) };
    if let (Ok(one), Ok(two)) = (product.get_fast_math_flags(), sum.get_fast_math_flags()) {
        // A call of a function with a float result takes flags.
        let _ = call.set_fast_math_flags(one & two);
    }
    sum.replace_all_uses_with(&call);
    sum.erase_from_basic_block();
    Ok(())
}

fn negated<'ctx>(builder: &Builder<'ctx>, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>, BuilderError> {
    Ok(match value {
        BasicValueEnum::FloatValue(v) => builder.build_float_neg(v, "")?.into(),
        BasicValueEnum::VectorValue(v) => builder.build_float_neg(v, "")?.into(),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    /// The operations on floats that are left of a body with parameters `%x`, `%y`, `%c`, in order.
    fn contracted(cpu: &str, body: &str) -> Vec<String> {
        crate::load_llvm().unwrap();
        let text = format!("define {{float, float}} @f(float %x, float %y, float %c) {{\n{body}\n}}\n\0");
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "t");
        let module = context.create_module_from_ir(buffer).unwrap();
        contract(&module, &Target::new(Some("x86_64-unknown-linux-gnu"), Some(cpu))).unwrap();
        module.verify().unwrap();
        let text = module.print_to_string().to_string();
        let operation = |line: &str| {
            let words = line.split_once(" = ")?.1;
            words.contains(" float ").then(|| words.split("float").next().unwrap_or("").trim().to_string())
        };
        text.lines().filter_map(operation).collect()
    }

    const RESULT: &str = "%r = insertvalue {float, float} poison, float %s, 0
        %q = insertvalue {float, float} %r, float %t, 1
        ret {float, float} %q";

    #[test]
    fn products_of_sums_only() {
        let of = |cpu, flags: &str, t: &str| {
            let product = format!("%p = fmul {flags} float %x, %y\n%s = fadd {flags} float %p, %c");
            let mut all = contracted(cpu, &format!("{product}\n%t = {t} float %x, %p\n{RESULT}"));
            all.retain(|op| !op.starts_with("insertvalue"));
            all
        };
        assert_eq!(of("x86-64-v3", "fast", "fsub fast"), ["call fast", "fneg", "call fast"]);
        let kept = ["fmul fast", "fadd fast", "fsub fast"];
        assert_eq!(of("x86-64-v2", "fast", "fsub fast"), kept);
        assert_eq!(of("x86-64-v3", "fast", "fsub"), ["fmul fast", "fadd fast", "fsub"]);
        assert_eq!(of("x86-64-v3", "fast", "fdiv fast"), ["fmul fast", "fadd fast", "fdiv fast"]);
    }

    /// `zr² + cr - zi²` and `zr² + zi²`.
    #[test]
    fn of_two_products_one_is_left() {
        let body = format!(
            "%a = fmul fast float %x, %x\n%b = fmul fast float %y, %y\n%s = fadd fast float %a, %b
             %u = fadd fast float %a, %c\n%t = fsub fast float %u, %b\n{RESULT}"
        );
        let mut all = contracted("x86-64-v3", &body);
        all.retain(|op| !op.starts_with("insertvalue"));
        assert_eq!(all, ["fmul fast", "call fast", "call fast", "fsub fast"]);
    }
}
