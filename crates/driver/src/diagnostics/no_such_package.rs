//! A package that a manifest names cannot be had.
//!
//! Its folder does not exist or has no `nyala.toml`; its repository cannot be reached, or has no such revision; the commit is not
//! what the lock says; there is no command `git`; or an option, `--locked` or `--offline`, forbids what would be needed.
//!
//! ```toml
//! [dependencies]
//! shapes = { path = "../nowhere" }
//! ```
//!
//! ## Instead
//!
//! ```toml
//! [dependencies]
//! shapes = { path = "../shapes" }
//! ```

use nyala_base::{Diagnostic, Span};

/// `message` says which package, and why it cannot be had.
pub fn error(span: Span, message: String) -> Diagnostic {
    Diagnostic::error("no-such-package", span, message)
}
