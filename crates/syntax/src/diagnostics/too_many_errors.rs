//! A file has more syntax errors than are shown.
//!
//! Only the first hundred syntax errors of a file are shown. Perhaps the file is no Impala program at all.
//!
//! ```sh
//! nyala check photograph.png
//! ```
//!
//! ## Instead
//!
//! Mend the first errors, then check again:
//!
//! ```sh
//! nyala check program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(end: Span, limit: usize) -> Diagnostic {
    Diagnostic::error("too-many-errors", end, format!("more than {limit} syntax errors"))
        .hint("mend the first ones; is this an Impala program?")
}
