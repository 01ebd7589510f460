//! Flat SSA to text of the C family, with structured control flow: C, later OpenCL C, CUDA and HLS C++.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aliasing;
mod calls;
mod cuda;
mod devices;
mod dialect;
mod emit;
mod expr;
mod flow;
mod function;
mod globals;
mod names;
mod nodes;
mod opencl;
mod ops;
mod print;
mod tail;
mod types;

pub use cuda::CUDA;
pub use dialect::{Atomic, Bits, C, Compound, Dialect, Features, Kernels};
pub use opencl::OPENCL;

use nyala_base::diagnostics::{bug as bugs, limitation as limitations};
use nyala_base::{Diagnostic, Span};
use nyala_flat::Module;

pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Writes a module in a dialect. `wrap`: signed arithmetic is modulo 2ⁿ; otherwise it does not overflow.
///
/// # Errors
/// A `limitation`: what the dialect lacks, or is not done yet.
pub fn emit(module: &Module, dialect: &Dialect, wrap: bool) -> std::result::Result<String, Box<Diagnostic>> {
    let mut module = module.clone();
    tail::make_loops(&mut module)?;
    let results = tail::result_types(&mut module);
    emit::emit(&module, results, dialect, wrap)
}

/// Whether lanes of a `vectorize` exchange values, so that its iterations cannot run one after the other: such modules
/// have to be vectorized first.
pub fn lanes_meet(module: &Module) -> bool {
    calls::lanes_meet(module)
}

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(bugs::error(Span::NONE, format!("in writing C: {message}")))
}

/// Something known that is not done yet.
pub(crate) fn limitation(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(limitations::error(
        span,
        message,
        "do without it, or make machine code: `nyala build`; for kernels, `--device host`",
    ))
}
