//! The output cannot be written.
//!
//! The folder does not exist, may not be written to, or the disk is full; or it would overwrite a file of the program.
//! This is also reported if standard output is closed or full, so that the program's output is lost.
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

/// The file `path` cannot be written; `why` is the system's message.
pub fn file(path: &Path, why: impl std::fmt::Display) -> Diagnostic {
    error(format!("`{}`", path.display()), why)
}

/// The output `path` is a source file of the program.
pub fn source(path: &Path) -> Diagnostic {
    let what = format!("cannot write `{}`: it is a file of the program itself", path.display());
    Diagnostic::error("cannot-write", Span::NONE, what).hint("name another file with `-o`")
}

/// Standard output cannot be written; `why` is the system's message.
pub fn standard_output(why: impl std::fmt::Display) -> Diagnostic {
    error("to standard output".into(), why)
}

/// A temporary file cannot be written; `why` is the system's message.
pub fn temporary(why: impl std::fmt::Display) -> Diagnostic {
    error("a temporary file".into(), why)
}
