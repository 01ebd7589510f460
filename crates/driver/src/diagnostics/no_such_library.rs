//! A library that the program uses is not found.
//!
//! `use image::*;` searches for `image.impala` beside the file, in the folders given by `-L` and by the environment variable
//! `NYALA_PATH`, then among the libraries that come with the compiler; unless `image` is a module of the program.
//!
//! ```impala
//! use imgae::*;
//! ```
//!
//! ## Instead
//!
//! ```impala
//! use image::*;
//! ```

use nyala_base::{Diagnostic, Span};

/// `searched` are the files looked for.
pub fn error(span: Span, library: &str, searched: &[String]) -> Diagnostic {
    let embedded: Vec<&str> = crate::libraries::names().collect();
    // `random` for `std::random`, or a wrong letter.
    let ends = |name: &&&str| library.split("::").eq(name.split("::").skip(1));
    let similar =
        embedded.iter().find(ends).copied().or_else(|| nyala_sema::closest(library, embedded.iter().copied()));
    Diagnostic::error("no-such-library", span, format!("cannot find library `{library}`"))
        .hint_similar(similar)
        .hint(format!("looked for {}; embedded are: {}", searched.join(", "), embedded.join(", ")))
        .hint("name its folder with `-L`, or its package in `nyala.toml`")
}

/// Another package of the program, `package`, has it.
pub fn hidden(span: Span, library: &str, package: &str) -> Diagnostic {
    Diagnostic::error("no-such-library", span, format!("cannot find library `{library}`"))
        .label(format!("it belongs to the package `{package}`"))
        .hint(format!("this file sees the dependencies of its own package only: add `{package}` to its `nyala.toml`"))
}
