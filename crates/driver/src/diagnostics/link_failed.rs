//! The system's linker refuses to link the program.
//!
//! `nyala build` calls the system's compiler driver to make executables and libraries. The hint shows its message.
//!
//! ```sh
//! nyala build program.impala not-an-object.o -o program
//! ```
//!
//! ## Instead
//!
//! Look at the linker's message. To link by other means, build an object:
//!
//! ```sh
//! nyala build program.impala -o program.o
//! ```

use nyala_base::{Diagnostic, Span};
use std::path::Path;

/// `said` is the message of `tool`.
pub fn error(out: &Path, tool: &str, said: &str) -> Diagnostic {
    Diagnostic::error("link-failed", Span::NONE, format!("cannot link {}", out.display()))
        .hint(format!("`{tool}` says: {said}"))
}
