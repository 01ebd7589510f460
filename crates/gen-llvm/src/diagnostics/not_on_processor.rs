//! The program uses an instruction that the processor does not have for which it is compiled.
//!
//! Some functions are instructions of newer processors or GPUs: `rcp14` is one of AVX-512, some operations of NVIDIA's GPUs came with
//! one generation. Code is made for this machine, or for the one that `--cpu`, `--target` or `--cuda` names.
//!
//! ```sh
//! nyala build --cpu x86-64-v3 program.impala   # program.impala uses `rcp14`
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala build --cpu x86-64-v4 program.impala
//! ```

use nyala_base::{Diagnostic, Span};

/// `op` is an instruction of `needs`, which `machine` does not have.
pub(crate) fn instruction(span: Span, op: &str, needs: &str, machine: &str) -> Diagnostic {
    let message = format!("`{op}` is an instruction of {needs}, which `{machine}` does not have");
    Diagnostic::error("not-on-processor", span, message)
        .hint("name a processor that has it, as in `--cpu x86-64-v4`, or divide")
}

/// NVIDIA's GPUs have `symbol` from the generation `least` on.
pub(crate) fn on_gpu(span: Span, symbol: &str, gpu: &str, least: u32) -> Diagnostic {
    let message = format!("`{symbol}` is an operation of GPUs from `sm_{least}` on, which `{gpu}` does not have");
    Diagnostic::error("not-on-processor", span, message)
        .hint(format!("let kernels be compiled for newer GPUs only: `--cuda sm_{least}`"))
}
