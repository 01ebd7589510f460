//! A character literal has no closing quote.
//!
//! Characters stand between single quotes on one line, `'a'`. A quote as a character is `'\''`. There are no lifetimes in
//! Impala.
//!
//! ```impala
//! fn f() -> u8 { 'a }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> u8 { 'a' }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("unterminated-char", span, "character literal is not closed, expected `'`")
        .label("begins here")
        .hint("characters are single bytes, `'a'`; longer texts are strings, \"…\"")
}
