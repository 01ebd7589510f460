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

/// `searched` are the files looked for; `all` are the libraries that could be named, and files of those that do not come with the
/// compiler.
pub fn error<'a>(
    span: Span,
    library: &str,
    searched: &[String],
    all: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Diagnostic {
    let embedded: Vec<&str> = crate::libraries::names().collect();
    let all: Vec<_> = all.collect();
    // `random` for `std::random`, or a wrong letter.
    let ends = |name: &str| library.split("::").eq(name.split("::").skip(1));
    let similar = all.iter().map(|l| l.0).find(|l| ends(l));
    let similar = similar.or_else(|| nyala_sema::closest(library, all.iter().map(|l| l.0)));
    let file = similar.and_then(|similar| all.iter().find(|l| l.0 == similar)?.1);
    let diagnostic = Diagnostic::error("no-such-library", span, format!("cannot find library `{library}`"));
    let diagnostic = match (similar, file) {
        (Some(similar), Some(file)) => diagnostic.hint(format!("did you mean `{similar}`, which is `{file}`?")),
        _ => diagnostic.hint_similar(similar),
    };
    diagnostic
        .hint(format!("looked for {}; embedded are: {}", searched.join(", "), embedded.join(", ")))
        .hint("name its folder with `-L`, or its package in `nyala.toml`")
}

/// Another package of the program, `package`, has it.
pub fn hidden(span: Span, library: &str, package: &str) -> Diagnostic {
    Diagnostic::error("no-such-library", span, format!("cannot find library `{library}`"))
        .label(format!("it belongs to the package `{package}`"))
        .hint(format!("this file sees the dependencies of its own package only: add `{package}` to its `nyala.toml`"))
}
