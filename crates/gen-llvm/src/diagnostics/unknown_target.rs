//! The target named by `--target` is not known.
//!
//! A target is a triple of architecture, vendor and system: `aarch64-unknown-linux-gnu`. Only some architectures are
//! supported; the hint lists them.
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
