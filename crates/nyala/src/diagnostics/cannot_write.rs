//! The output cannot be written.
//!
//! The folder does not exist, may not be written to, or the disk is full; or it would overwrite a file of the program. What
//! a program prints is lost, too, where standard output is closed or full.
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
use std::path::Path;

fn error(what: String, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("cannot-write", Span::NONE, format!("cannot write {what}: {why}"))
        .hint("the folder must exist, with room on its disk, and you need the right to write there")
}

/// A file; `why` is what the system says.
pub fn file(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    error(format!("`{}`", path.display()), why)
}

/// An output that is one of the sources.
pub fn source(path: &Path) -> Diagnostic {
    let what = format!("cannot write `{}`: it is a file of the program itself", path.display());
    Diagnostic::error("cannot-write", Span::NONE, what).hint("name another one by `-o`")
}

/// Standard output; `why` is what the system says.
pub fn standard_output(why: impl std::fmt::Display) -> Diagnostic {
    error("to standard output".into(), why)
}

/// A file for the time being; `why` is what the system says.
pub fn temporary(why: impl std::fmt::Display) -> Diagnostic {
    error("a temporary file".into(), why)
}
