//! A statement does not end with a semicolon.
//!
//! `let`, `static`, assignments and calls end with `;`. Only the last expression of a block has none: it is the block's
//! value. `if`, `for`, `while` and blocks end with their `}`.
//!
//! ```impala
//! fn f() -> i32 {
//!     let x = 1
//!     x + 1
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 {
//!     let x = 1;
//!     x + 1
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `span` is the place after `after`, where the semicolon belongs.
pub fn error(span: Span, after: &str) -> Diagnostic {
    Diagnostic::error("missing-semicolon", span, format!("found no `;` after {after}")).hint("end it with `;`")
}
