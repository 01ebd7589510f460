//! NVIDIA's library of math functions for kernels is missing, or cannot be used.
//!
//! PTX has no `sin` or `pow` in `f64`: NVIDIA's libdevice has, which comes with the CUDA toolkit. The compiler looks for it in the folders
//! that `CUDA_HOME`, `CUDA_PATH` and `CUDA_ROOT` name, and in the usual ones. Kernels whose functions Nyala has itself need no
//! toolkit.
//!
//! ```sh
//! CUDA_HOME=/nowhere nyala emit --stage ptx program.impala
//! ```
//!
//! ## Instead
//!
//! Install the toolkit, or let NVIDIA's driver compile CUDA C++ when the program runs:
//!
//! ```sh
//! CUDA_HOME=/usr/local/cuda nyala emit --stage ptx program.impala
//! nyala build --cuda source program.impala
//! ```

use crate::{Diagnostic, Span};

/// A kernel for PTX calls the function `name`, and there is no libdevice.
pub fn missing(span: Span, name: &str) -> Diagnostic {
    let message = format!("PTX needs NVIDIA's libdevice for `{name}`, and it was not found");
    Diagnostic::error("no-libdevice", span, message).hint(
        "install the CUDA toolkit, and let `CUDA_HOME` name its folder, or make CUDA C++: `--stage cuda`, `--cuda source`",
    )
}

/// `file` is no such library; `why` is the system's or LLVM's message.
pub fn unusable(file: &std::path::Path, why: &str) -> Diagnostic {
    let message = format!("NVIDIA's libdevice in `{}` cannot be used: {why}", file.display());
    Diagnostic::error("no-libdevice", Span::NONE, message)
        .hint("install the CUDA toolkit again, or let `CUDA_HOME` name the folder of another")
}
