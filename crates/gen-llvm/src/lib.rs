//! Flat SSA to LLVM: JIT, object files, device code.

mod abi;
mod aliases;
mod assembly;
mod comparisons;
mod cpus;
pub mod diagnostics;
mod divisions;
mod emit;
mod frames;
mod function;
mod instructions;
mod jit;
mod libmvec;
mod library;
mod lifetimes;
mod locate;
mod module;
mod ops;
mod origins;
mod polynomials;
mod rounding;
mod targets;
mod types;
mod vectors;
mod versions;

pub use cpus::cpus;
pub use emit::{Emitted, emit, emit_module, emit_text};
pub use jit::{Jit, call_entry};
pub use library::{LLVM_LIBRARY, load_llvm};
pub use locate::Place;
pub use module::{LlvmModule, Options};
pub use origins::Lines;
pub use targets::{ARCHITECTURES, default_triple, host_cpu, is_native, machine_name};
