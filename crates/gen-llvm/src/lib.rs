//! Flat SSA to LLVM: JIT, object files, device code.

pub mod diagnostics;
mod emit;
mod frames;
mod function;
mod jit;
mod module;
mod ops;
mod targets;
mod types;

pub use emit::{emit, emit_text};
pub use jit::{Jit, call_entry};
pub use module::{LlvmModule, Options};
pub use targets::{default_triple, is_native};

/// The shared library of LLVM that this crate was linked with.
pub const LLVM_LIBRARY: &str = env!("NYALA_LLVM_LIBRARY");
