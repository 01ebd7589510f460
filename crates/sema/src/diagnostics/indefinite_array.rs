//! An array without a length stands where a value is needed.
//!
//! `[T]` is an array of unknown length. Such an array exists in memory only, behind a pointer: a variable, parameter,
//! field, element or result cannot have this type, for its size is not known.
//!
//! ```impala
//! fn f(a: [i32]) -> i32 { a(0) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: &[i32]) -> i32 { a(0) }
//! fn g(a: [i32 * 4]) -> i32 { a(0) }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("indefinite-array", span, format!("found `{found}`, expected a type with a size"))
        .hint("indefinite arrays stand behind pointers, `&[T]`; with a length, `[T * n]`, they are values")
}

/// `[n: T]` by itself.
pub fn value(span: Span) -> Diagnostic {
    Diagnostic::error("indefinite-array", span, "found an array of run-time length, which is not a value")
        .hint("put it on the heap: `~[n: T]`")
}
