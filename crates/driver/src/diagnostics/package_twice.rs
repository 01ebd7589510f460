//! A name means two packages, or two revisions of one, in the same program.
//!
//! A name is one library in all of a program, so that values of its types can be handed from any package to any other. Two
//! packages of a program that name a third one therefore have to agree where it comes from.
//!
//! ```toml
//! [dependencies]
//! shapes = { git = "https://example.org/shapes.git", rev = "v1" }
//! # scenes itself depends on revision v2 of shapes
//! scenes = { path = "../scenes" }
//! ```
//!
//! ## Instead
//!
//! ```toml
//! [dependencies]
//! shapes = { git = "https://example.org/shapes.git", rev = "v2" }
//! scenes = { path = "../scenes" }
//! ```

use nyala_base::{Diagnostic, Span};

/// `here` and `there` say where the two come from.
pub fn error(span: Span, name: &str, here: &str, first: Span, there: &str) -> Diagnostic {
    Diagnostic::error("package-twice", span, format!("`{name}` is two packages"))
        .label(format!("here, {here}"))
        .other(first, format!("there, {there}"))
        .hint("let both name the same one")
}

/// A library of two packages: it is not of their names.
pub fn library(span: Span, library: &str, here: &str, there: &str) -> Diagnostic {
    Diagnostic::error("package-twice", span, format!("two packages have a library `{library}`"))
        .label(format!("this one is in {here}, the other in {there}"))
        .hint("libraries of a package are called by its name: `mod` is for its other files")
}
