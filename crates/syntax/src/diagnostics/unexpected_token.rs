//! A word or symbol stands where the grammar allows none like it.
//!
//! The message says what was found and what could stand there. Often the fault is just before that place: an operator
//! without its operand, a comma too few. Words of other languages are met with a hint of what they are called here.
//!
//! ```impala
//! fn f(a: i32) -> i32 { a + }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: i32) -> i32 { a + 1 }
//! ```
//!
//! Some things that are written otherwise than in Rust or C:
//!
//! ```impala
//! fn g(a: &[i32], t: (i32, i32), n: i32) -> i32 {
//!     let mut sum = t(0) + t(1);
//!     for i in range(0, n) {
//!         sum += a(i);
//!     }
//!     sum
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `found` and `expected` in words, tokens in backticks.
pub fn error(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("unexpected-token", span, format!("found {found}, expected {expected}"))
}

/// A bracket is closed by something else.
pub fn in_brackets(span: Span, found: &str, expected: &str, opener: Span) -> Diagnostic {
    error(span, found, expected).other(opener, "to close this")
}

/// `t.0`.
pub fn dot_index(span: Span, index: &str) -> Diagnostic {
    error(span, &format!("`.{index}`"), "a field name").hint(format!("parts of tuples are `t({index})`"))
}

/// `a[1]`.
pub fn bracket_index(span: Span, found: &str) -> Diagnostic {
    error(span, found, "a type").hint("elements of arrays are `a(i)`; brackets hold types")
}

/// Something follows what was taken for the value of a block.
pub fn after_result(span: Span, found: &str, result: Span) -> Diagnostic {
    error(span, found, "`}` after the block's result").other(result, "the result; end it with `;` if it is none")
}
