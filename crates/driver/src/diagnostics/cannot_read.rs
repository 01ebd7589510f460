//! A source file cannot be read.
//!
//! The file does not exist, may not be read, is not text in UTF-8, or has more than 256 MiB.
//!
//! ```sh
//! nyala check missing.impala
//! ```
//!
//! ## Instead
//!
//! Give the path from the current folder:
//!
//! ```sh
//! nyala check examples/01_power.impala
//! ```
//!
//! Arguments of the program that runs stand after `--`:
//!
//! ```sh
//! nyala run program.impala -- data.csv
//! ```

use nyala_base::{Diagnostic, Span};

/// `why` is the system's message.
pub fn error(path: &std::path::Path, why: &str) -> Diagnostic {
    let is_binary = path.extension().is_some_and(|e| ["a", "o", "so"].iter().any(|binary| e == *binary));
    let diagnostic = Diagnostic::error("cannot-read", Span::NONE, format!("cannot read `{}`: {why}", path.display()));
    if is_binary {
        return diagnostic.hint(
            "`nyala build` takes objects and libraries beside sources, `nyala run` shared libraries by `--load`",
        );
    }
    diagnostic
        .hint("sources are files of text in UTF-8, given by their paths from the current folder; a program's own arguments stand after `--`")
}
