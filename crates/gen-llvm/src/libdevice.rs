//! NVIDIA's libdevice: math functions for kernels, as LLVM bitcode that comes with NVIDIA's compilers.

use crate::diagnostics::bug;
use inkwell::context::ContextRef;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use nyala_base::Diagnostic;
use nyala_base::diagnostics::no_libdevice;
use std::path::Path;

/// Adds the functions of the library in `file` to a module, where only its kernels can be seen from outside.
pub(crate) fn link<'c>(context: ContextRef<'c>, module: &Module<'c>, file: &Path) -> Result<(), Box<Diagnostic>> {
    let unusable = |why: String| Box::new(no_libdevice::unusable(file, &why));
    let buffer = MemoryBuffer::create_from_file(file).map_err(|e| unusable(e.to_string()))?;
    let library = context.create_module_from_ir(buffer).map_err(|e| unusable(e.to_string()))?;
    library.set_triple(&module.get_triple());
    library.set_data_layout(&module.get_data_layout());
    let names: Vec<_> = library.get_functions().filter(|f| f.count_basic_blocks() > 0).collect();
    let names: Vec<_> = names.iter().map(|f| f.get_name().to_owned()).collect();
    module.link_in_module(library).map_err(|e| bug(e.to_string()))?;
    for name in names {
        let function = name.to_str().ok().and_then(|name| module.get_function(name));
        function.inspect(|f| f.set_linkage(Linkage::Internal));
    }
    Ok(())
}
