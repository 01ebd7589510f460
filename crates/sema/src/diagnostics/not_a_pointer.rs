//! `*` is applied to a value that is not a pointer.
//!
//! `*p` is the value that the pointer `p` points to. Fields and elements need no `*`: `.` and `()` follow pointers by
//! themselves.
//!
//! ```impala
//! fn f(x: i32) -> i32 { *x }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: &i32) -> i32 { *x }
//! fn g(x: i32) -> i32 { x }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("not-a-pointer", span, format!("found `{found}`, expected a pointer"))
        .hint("leave out the `*`, or make it a pointer, `&T`")
}
