//! All tests of this crate, in one executable: each would be linked with the whole compiler.

use nyala_gen_llvm::load_llvm;

mod confined;
mod cpus;
mod endless;
mod flat;
mod jit;
mod layers;
#[path = "../../src/loads.rs"]
mod loads;
mod memory;
mod operations;
mod rounding;
mod tail_calls;
mod targets;
mod variables;
mod vector_math;
mod vectors;
