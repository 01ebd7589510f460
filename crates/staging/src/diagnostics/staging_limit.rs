//! Staging does not end, or its result is too large.
//!
//! Code that is active is executed while the program is compiled. A recursion whose end depends on nothing that is known there goes on
//! forever, and one that makes code in each turn may make too much of it. The message names the code that was to be executed next.
//!
//! ```text
//! let f (int n) {
//!   n+1 (m)
//!   f m
//! }
//! f 0
//! ```
//!
//! ## Instead
//!
//! Give the recursion an end, or stage it on a value that is known later:
//!
//! ```text
//! let f (int n, int to, fn[int] end) {
//!   n==to (b)
//!   if b () { end n } ()
//!   n+1 (m)
//!   f m to end
//! }
//! ```

use nyala_base::{Diagnostic, Span};

const MORE: &str = "if it ends later, `--pe-budget N` multiplies the limit";

pub fn steps(span: Span, limit: u64) -> Diagnostic {
    Diagnostic::error("staging-limit", span, format!("staging did not end within {limit} steps"))
        .label("was to be executed next")
        .hint("stage the recursion on a value that is known later: `@x: …`")
        .hint(MORE)
}

/// Before anything is executed.
pub fn variables(span: Span) -> Diagnostic {
    Diagnostic::error("staging-limit", span, "the statements behind this use too many variables")
        .hint("keep variables in arrays, or write several functions")
        .hint("`--pe-budget N` multiplies the limit")
}

pub fn size(span: Span) -> Diagnostic {
    Diagnostic::error("staging-limit", span, "staging made too much code")
        .label("was to be executed next")
        .hint("stage the recursion on a value that is known later: `@x: …`")
        .hint(MORE)
}
