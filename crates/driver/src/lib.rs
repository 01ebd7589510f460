//! The driver: source in; program, function, object, report out. The pipelines, and what they need from outside.
//!
//! ```text
//! let front = FrontEnd::new(Options::default(), Files::of("pow.impala", text));    // never fails: see `front.report`
//! let graph = front.graph()?;
//! let residual = graph.residual()?;
//! let program = residual.flat()?.load(&[])?;
//! let result = program.call_i32("pow5");
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod build;
pub mod cache;
mod closures;
pub mod code;
pub mod compiled_c;
mod devices;
pub mod diagnostics;
mod emit;
mod ensures;
pub mod explain;
mod faults;
pub mod files;
pub mod flat;
pub mod front;
pub mod graph;
pub mod json;
pub mod libraries;
mod one_function;
mod options;
pub mod outputs;
pub mod packages;
pub mod pipelines;
mod progress;
pub mod report;
pub mod run;
pub mod shims;
mod sierra;
pub mod staged;
mod statics;
mod target_facts;
pub mod testing;
pub mod tuning;
mod units;
pub mod variants;
mod versions;

pub use code::Code;
pub use devices::CodeOf;
pub use emit::{Text, emit, emit_deepest_loop, emit_drivers_code, residual_of, run_pass};
pub use flat::Flat;
pub use front::{Files, FrontEnd, Trees};
pub use graph::{Graph, Residual};
pub use options::*;
pub use report::{Failed, Report, Timing};
pub use sierra::is_sierra;
pub use staged::is_staged;
pub use target_facts::INTERPRETED;
pub use variants::{Fixed, Variant};

/// Writes out what programs of this process have printed.
pub fn flush() {
    nyala_runtime::nyala_flush();
}

/// Whether a file of that name is a program in another language than Impala.
pub fn is_other(name: &str) -> bool {
    is_staged(name) || is_sierra(name)
}
