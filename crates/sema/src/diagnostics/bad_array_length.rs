//! The length of an array is not a constant, or not one from 0 to 2^40 - 1.
//!
//! The length is a part of an array's type, so it must be known when the program is compiled: an integer literal, a
//! `static` with such a value, a `const` parameter, or sums and products of these. An array whose length is only known at run time lies on
//! the heap, behind a pointer `&mut [T]`.
//!
//! ```impala
//! fn f(n: i32) -> () { let a = [0, .. n]; }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! static n = 16;
//! fn f() -> () { let a = [0, .. n]; }
//! fn g(n: i32) -> () { let a = alloc[i32](n as i64); }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("bad-array-length", span, "length of the array is not a constant").hint(
        "lengths are integer literals, statics or `const` parameters; `alloc[T](n)` makes an array whose length is only known at run time",
    )
}

/// The length is a constant with this value, which no array can have.
pub fn value(span: Span, value: &str) -> Diagnostic {
    Diagnostic::error("bad-array-length", span, format!("length of the array is `{value}`"))
        .hint("lengths are integers from 0 to 2^40 - 1")
}
