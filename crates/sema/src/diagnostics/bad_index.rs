//! An index is not an integer.
//!
//! An index may have any integer type. A float must be converted, which drops its fraction. A struct or enum takes the indices
//! that its impls of `Index` are for.
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

/// The type has impls of `Index`, but none for such an index.
pub fn no_impl(span: Span, found: &str, ty: &str) -> Diagnostic {
    let message = format!("found an index of type `{found}`, which no impl of `Index` for `{ty}` takes");
    Diagnostic::error("bad-index", span, message)
        .hint(format!("write `impl Index[{found}, &T] for {ty} {{ … }}`, where `T` is the type of an element"))
}
