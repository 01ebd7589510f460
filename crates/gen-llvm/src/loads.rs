//! Keeps LLVM's instruction selection linear in the loads of a block. This works on LLVM's modules, like `divisions`, so that the
//! optimizer does not see it.
//!
//! LLVM 22 looks for neighbors of each load among all loads of its block that no store separates, and sorts them each time: 20,000
//! loads, as an unrolled loop may have, take half a minute. A fence for this thread alone, which becomes no instruction, separates
//! them as a store does.

use inkwell::AtomicOrdering;
use inkwell::builder::BuilderError;
use inkwell::module::Module;
use inkwell::values::InstructionOpcode;

/// The loads that nothing separates. Few blocks of programs that are not unrolled by the thousands have more.
const MAX_LOADS: usize = 1024;

/// Separates loads in blocks that have very many.
pub(crate) fn separate(module: &Module) -> Result<(), BuilderError> {
    let builder = module.get_context().create_builder();
    for block in module.get_functions().flat_map(|f| f.get_basic_blocks()) {
        let mut n = 0;
        for inst in block.get_instructions() {
            match inst.get_opcode() {
                InstructionOpcode::Load => n += 1,
                InstructionOpcode::Store | InstructionOpcode::Fence => n = 0,
                _ => continue,
            }
            if n > MAX_LOADS {
                builder.position_before(&inst);
                builder.build_fence(AtomicOrdering::AcquireRelease, true, "")?;
                n = 1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    /// How many fences separate `n` loads, with a store after every `stores`.
    fn fences(n: usize, stores: usize) -> usize {
        crate::load_llvm().unwrap();
        let mut text = String::from("define void @f(ptr %p) {\n");
        for i in 0..n {
            text += &format!("  %v{i} = load i32, ptr %p\n");
            if stores != 0 && i % stores == 0 {
                text += "  store i32 0, ptr %p\n";
            }
        }
        text += "  ret void\n}\n\0";
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "t");
        let module = context.create_module_from_ir(buffer).unwrap();
        separate(&module).unwrap();
        module.verify().unwrap();
        module.print_to_string().to_string().matches("fence syncscope").count()
    }

    #[test]
    fn only_very_many_loads_are_separated() {
        assert_eq!([fences(0, 0), fences(MAX_LOADS, 0), fences(MAX_LOADS + 1, 0)], [0, 0, 1]);
        assert_eq!(fences(3 * MAX_LOADS, 0), 2);
        assert_eq!(fences(3 * MAX_LOADS, 1000), 0);
    }
}
