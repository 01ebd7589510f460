//! The target named by `--target` is not known, or programs cannot be made for it.
//!
//! A target is a triple of architecture, vendor and system: `aarch64-unknown-linux-gnu`. Only some architectures are
//! supported; the hint lists them. They have addresses of 64 bits and are little-endian. A GPU is no target for a program: it runs the
//! kernels of one.
//!
//! ```sh
//! nyala build program.impala -o program.o --target z80-unknown-none
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala build program.impala -o program.o --target aarch64-unknown-linux-gnu
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(named: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("unknown-target", Span::NONE, format!("no code can be made for target `{named}`")).hint(format!(
        "a target is a triple such as `aarch64-unknown-linux-gnu`; known architectures: {}",
        known.join(", ")
    ))
}

/// The target runs kernels only.
pub fn of_kernels(span: Span, triple: &str) -> Diagnostic {
    let message = format!("`{triple}` cannot run a program, only kernels that a host launches");
    Diagnostic::error("unknown-target", span, message)
        .hint("build for the host's processor: its kernels go with the program")
}

/// The target's memory is another than code is made for.
pub fn of_other_memory(triple: &str) -> Diagnostic {
    let message =
        format!("`{triple}` is big-endian, or has addresses of other than 64 bits: no code can be made for it");
    Diagnostic::error("unknown-target", Span::NONE, message).hint("build for another target")
}
