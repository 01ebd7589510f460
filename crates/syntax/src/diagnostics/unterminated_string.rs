//! A string has no closing quote.
//!
//! Strings end with `"`, and may span several lines. A quote inside is `\"`.
//!
//! ```impala
//! fn f() -> () { print_string("hello); }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> () { print_string("hello"); }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("unterminated-string", span, "string is not closed, expected `\"`")
        .label("begins here")
        .hint("a quote inside of a string is `\\\"`; the rest of the file is taken for the string")
}
