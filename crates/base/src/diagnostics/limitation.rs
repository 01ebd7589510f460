//! The language has this feature, this compiler does not yet.
//!
//! Your program is right as far as it could be understood. The message names what is missing and the hint a way around
//! it. The rest of the file is checked as usual, but what depends on the missing feature is not.
//!
//! ```impala
//! extern "Rust" { fn square(i32) -> i32; }
//! fn f() -> i32 { square(2) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "C" { fn abs(i32) -> i32; }
//! fn f() -> i32 { abs(-2) }
//! ```

use crate::{Diagnostic, Span};

/// `hint` is a way around it.
pub fn error(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error("limitation", span, message).hint(hint)
}

/// `what` in the plural.
/// Something is done, but not as it says.
pub fn warning(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::warning("limitation", span, message).hint(hint)
}

pub fn not_supported(span: Span, what: &str, hint: &str) -> Diagnostic {
    error(span, format!("{what} are not supported yet"), hint)
}
