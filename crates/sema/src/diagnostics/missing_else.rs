//! An `if` without `else` stands where a value is needed.
//!
//! Where the condition is false, there is no value. So an `if` without `else` has the type `()`, whatever the value of
//! its block is.
//!
//! ```impala
//! fn sign(x: i32) -> i32 {
//!     if x < 0 { -1 }
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn sign(x: i32) -> i32 {
//!     if x < 0 { -1 } else { 1 }
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, expected: &str) -> Diagnostic {
    Diagnostic::error(
        "missing-else",
        span,
        format!("found an `if` without `else`, expected a value of type `{expected}`"),
    )
    .label("has no value where the condition is false")
    .hint("add `else { … }`")
}
