//! Checked execution of the graph, as obvious as can be: the living definition of the language.
//!
//! [`run`] executes a continuation of a [`World`] as it is, before or after any pass. Nothing that optimized code
//! leaves undefined goes unnoticed: signed overflow, division by zero, wrong addresses, uninitialized reads, dead
//! continuations end in a [`Fault`] with the place and the chain of calls.
//!
//! A function is compiled on its first call to a register program ([`compile`]). The blocks and return continuations in
//! it share its frame. A continuation of this kind, as a value, is an entry point and a frame. A function, as a value,
//! is an entry point and a record of the values it captures. Frames and records lie in a heap of their own ([`heap`]).
//! Frames are released when their function is left; abandoned ones are found by marking. So nothing recurses on the
//! host's stack, and loops made of tail calls take constant memory.
#![forbid(unsafe_code)]

mod code;
mod compile;
mod constant;
pub mod diagnostics;
mod escape;
mod eval;
mod externals;
mod fault;
mod heap;
mod lane_groups;
mod leaves;
mod machine;
mod races;
mod restricted;
mod rounds;
mod scope;

pub use constant::constant;
pub use fault::Fault;
pub use machine::Machine;

use nyala_ir::facts::Nest;
use nyala_ir::{Cont, World};
use nyala_runtime::Library;

/// Options and limits of a run.
#[derive(Default)]
pub struct Options {
    /// Libraries in which foreign functions are looked up, besides the runtime and the process.
    pub libraries: Vec<Library>,
    /// Upper limit on the number of calls and jumps; `None` for no limit.
    pub max_steps: Option<u64>,
    /// Signed overflow wraps.
    pub wrap: bool,
    /// No foreign function is called; results may be uninitialized ([`UNINITIALIZED`]).
    pub confined: bool,
    /// The program has been specialized: its calls are not those of the source, so that lanes cannot be told apart by
    /// them.
    pub residual: bool,
}

/// A word that was never written.
pub const UNINITIALIZED: u64 = code::POISON;

/// Calls `entry` with `args` and returns the arguments that its return continuation gets. Values are words: numbers in
/// the form that [`normalize`](nyala_ir::Prim::normalize) returns, and addresses. Aggregates are the words of their
/// scalars, in order. The arguments are those between `mem` and the return continuation.
pub fn run(world: &World, entry: Cont, args: &[u64], options: &Options) -> Result<Vec<u64>, Box<Fault>> {
    let mut roots = world.roots();
    if !roots.contains(&entry) {
        roots.push(entry);
    }
    let (nest, _) = Nest::of_program(world, &roots);
    let results = Machine::new(world, &nest, options)?.run(entry, args);
    nyala_runtime::nyala_flush();
    results
}
