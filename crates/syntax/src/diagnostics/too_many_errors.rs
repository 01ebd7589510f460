//! A file has more syntax errors than are shown.
//!
//! Only the first hundred syntax errors of a file are shown. Perhaps the file is not an Impala program.
//!
//! ```sh
//! nyala check photograph.png
//! ```
//!
//! ## Instead
//!
//! Fix the first errors, then check again:
//!
//! ```sh
//! nyala check program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(end: Span, limit: usize) -> Diagnostic {
    Diagnostic::error("too-many-errors", end, format!("more than {limit} syntax errors"))
        .hint("fix the first ones; is this an Impala program?")
}
