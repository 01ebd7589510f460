//! A bracket is opened but never closed.
//!
//! Every `(`, `[` and `{` needs its counterpart before the file ends. The error points to the bracket without a
//! counterpart. If the indentation disagrees, the missing bracket may belong to an inner one.
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

/// `opener` is not closed; `expected` describes its counterpart.
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
