//! Flat SSA to LLVM: JIT, object files, device code.
//!
//! Text is the only interface to LLVM. Files above the line write the text of a module; they do not use LLVM's library,
//! which takes longer to load than a small program to compile. Files below the line read the text and work on the
//! library's objects; they know nothing of flat SSA. A row imports from rows above it; `tests/layers.rs` checks the
//! line. Text asks the module's [`Target`](nyala_ir::Target) for facts about the machine.
//!
//! ```text
//! wishes, refusals     options  diagnostics
//! facts                types  versions  units  lifetimes  masked  origins  debug_types
//! text, one state      emit  function  ops  comparisons  instructions  polynomials  rounding  libmvec  tables  vectors
//!                      abi  statics  aliases  assembly  gpu  nvptx  amdgpu  debug_values
//! ─────────────────────────────────────────────── text ───────────────────────────────────────────────
//! LLVM's library       library  targets
//! modules in memory    module  contraction  divisions  frames  loads  libdevice  endless  confined
//! machine code         jit  locate  debuggers
//! ```

mod abi;
mod aliases;
mod amdgpu;
mod assembly;
mod comparisons;
mod confined;
mod contraction;
mod debug_types;
mod debug_values;
mod debuggers;
pub mod diagnostics;
mod divisions;
mod emit;
mod endless;
mod frames;
mod function;
mod gpu;
mod instructions;
mod jit;
mod known_numbers;
mod libdevice;
mod libmvec;
mod library;
mod lifetimes;
mod loads;
mod locate;
mod masked;
mod module;
mod nvptx;
mod ops;
mod options;
mod origins;
mod polynomials;
mod rounding;
mod statics;
mod tables;
mod targets;
mod types;
mod units;
mod vectors;
mod versions;
mod wide_masks;

pub use emit::{Emitted, Program, emit_module, emit_text, emit_units, emit_versions, quote};
pub use gpu::{needs_libdevice, without_libdevice};
pub use jit::{Jit, call_entry, time_calls};
pub use library::{llvm_library, llvm_version, load_llvm, own_file};
pub use locate::{Place, Places, places};
pub use module::{LlvmModule, emit};
pub use options::{MAX_UNIT, Options, Sanitizer};
pub use origins::Lines;
pub use targets::{ARCHITECTURES, host_cpu, machine_name};
pub use versions::versions;
