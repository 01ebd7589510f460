//! A library named by `--load` cannot be loaded.
//!
//! `nyala run --load LIB.so` loads a shared library whose C functions the program imports. The file must exist, be a shared
//! library for this machine, and find the libraries that it needs itself.
//!
//! ```sh
//! nyala run --load libmissing.so program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! cc -shared -fPIC -o libmine.so mine.c
//! nyala run --load ./libmine.so program.impala
//! ```

use crate::{Diagnostic, Span};

pub fn error(path: &std::path::Path, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("library-not-loaded", Span::NONE, format!("cannot load `{}`: {why}", path.display()))
        .hint("`--load` takes the path of a shared library for this machine")
}
