//! This compiler does not support a feature of the language yet.
//!
//! Your program is right as far as the compiler can tell. The message names the missing feature, and the hint a way
//! around it. The rest of the file is checked as usual, except for code that depends on the missing feature.
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

/// `message` names the missing feature; `hint` is a way around it.
pub fn error(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error("limitation", span, message).hint(hint)
}

/// The program is compiled, but not in the way that it asks for.
pub fn warning(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::warning("limitation", span, message).hint(hint)
}

/// `what` is the missing feature, in the plural.
pub fn not_supported(span: Span, what: &str, hint: &str) -> Diagnostic {
    error(span, format!("{what} are not supported yet"), hint)
}
