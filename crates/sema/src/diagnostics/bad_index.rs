//! An index is not an integer.
//!
//! An index may have any integer type. A float must be converted, which drops its fraction.
//!
//! ```impala
//! fn f(a: &[i32], x: f32) -> i32 { a(x) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: &[i32], x: f32) -> i32 { a(x as i32) }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("bad-index", span, format!("found an index of type `{found}`, expected an integer"))
        .hint("indices are integers; convert it with `as i32`")
}
