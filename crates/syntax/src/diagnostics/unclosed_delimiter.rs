//! A bracket is opened and never closed.
//!
//! Every `(`, `[` and `{` needs its counterpart before the file ends. The error is at the bracket that was found without
//! one; where indentation disagrees with it, an inner bracket may be the one that misses.
//!
//! ```impala
//! fn f() -> i32 {
//!     1
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 {
//!     1
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `expected` is what closes it.
pub fn error(span: Span, opener: &str, expected: &str) -> Diagnostic {
    let closer = match opener {
        "(" => ")",
        "[" => "]",
        "|" => "|",
        _ => "}",
    };
    Diagnostic::error("unclosed-delimiter", span, format!("`{opener}` is not closed, expected {expected}"))
        .label("opened here")
        .hint(format!("add `{closer}` where it ends"))
}
