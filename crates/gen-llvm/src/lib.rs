//! Flat SSA to LLVM: JIT, object files, device code.
