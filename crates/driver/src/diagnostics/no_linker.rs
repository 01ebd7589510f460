//! A tool that links programs is not installed.
//!
//! The system's `cc` links executables and shared libraries; its `objcopy` and `ar` make static libraries. The
//! environment variables `CC`, `OBJCOPY` and `AR` name other tools.
//!
//! ```sh
//! CC=no-such-compiler nyala build program.impala -o program
//! ```
//!
//! ## Instead
//!
//! Install gcc or clang with binutils, or name a tool that is installed:
//!
//! ```sh
//! CC=clang nyala build program.impala -o program
//! ```

use nyala_base::{Diagnostic, Span};

/// `variable` is the environment variable that names another tool; `why` is the system's message.
pub fn error(tool: &str, variable: &str, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("no-linker", Span::NONE, format!("cannot run `{tool}`, which links programs: {why}"))
        .hint(format!("install gcc or clang with binutils, or name the tool in the environment variable `{variable}`"))
}
