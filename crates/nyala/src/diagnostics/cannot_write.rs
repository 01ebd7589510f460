//! The output cannot be written.
//!
//! The folder does not exist, may not be written to, or the disk is full.
//!
//! ```sh
//! nyala emit program.impala -o /no/such/folder/out.txt
//! ```
//!
//! ## Instead
//!
//! ```sh
//! mkdir -p out
//! nyala emit program.impala -o out/out.txt
//! ```

use nyala_base::{Diagnostic, Span};

/// `target` is a path, or says where to.
pub fn error(target: &str, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("cannot-write", Span::NONE, format!("cannot write {target}: {why}"))
        .hint("the folder must exist, and you need the right to write there")
}
