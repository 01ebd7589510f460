//! Texts for LLVM, and what machine code does. One executable, since each takes seconds to link.

mod cpus;
mod flat;
mod jit;
mod layers;
mod memory;
mod operations;
mod rounding;
mod tail_calls;
mod variables;
mod vector_math;
mod vectors;
