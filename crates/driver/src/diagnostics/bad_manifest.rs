//! A manifest, `nyala.toml`, or a lock, `nyala.lock`, says something that cannot be.
//!
//! A package has a name, that of its library, and dependencies, each with a `path`, or with `git` and `rev`. The names of the
//! libraries that come with the compiler, `std` among them, are taken. `docs/packages.md` has all that can stand there.
//!
//! ```toml
//! [package]
//! name = "std"
//! ```
//!
//! ## Instead
//!
//! ```toml
//! [package]
//! name = "shapes"
//! ```

use nyala_base::{Diagnostic, Span};

/// `message` says what is wrong with it.
pub fn error(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error("bad-manifest", span, message)
}
