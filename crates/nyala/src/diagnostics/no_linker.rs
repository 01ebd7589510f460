//! A tool that links programs is not there.
//!
//! Executables and libraries are linked by the system's `cc`, and static libraries made by its `objcopy` and `ar`. The
//! environment variables `CC`, `OBJCOPY` and `AR` name others.
//!
//! ```sh
//! CC=no-such-compiler nyala build program.impala -o program
//! ```
//!
//! ## Instead
//!
//! Install gcc or clang with binutils, or name a tool that is there:
//!
//! ```sh
//! CC=clang nyala build program.impala -o program
//! ```

use nyala_base::{Diagnostic, Span};

/// The environment's `variable` names another tool.
pub fn error(tool: &str, variable: &str, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("no-linker", Span::NONE, format!("cannot run `{tool}`, which links programs: {why}"))
        .hint(format!("install gcc or clang with binutils, or name the tool by the environment's `{variable}`"))
}
