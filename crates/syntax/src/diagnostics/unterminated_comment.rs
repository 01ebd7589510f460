//! A comment that begins with `/*` has no end.
//!
//! Comments nest: a `/*` inside of a comment needs its own `*/`.
//!
//! ```impala
//! /* The outer comment /* holds an inner one */ and goes on to the end of the file.
//! fn f() -> i32 { 1 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! /* The outer comment /* holds an inner one */ and ends here. */
//! fn f() -> i32 { 1 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("unterminated-comment", span, "comment is not closed, expected `*/`")
        .label("begins here")
        .hint("comments nest: every `/*` inside needs its own `*/`")
}
