//! Something is changed that is not mutable.
//!
//! Variables, parameters and statics can be assigned only if they are declared with `mut`. A value behind a pointer can
//! be changed only through `&mut`. If several pointers lead to the value, the last one decides.
//!
//! ```impala
//! fn f() -> i32 {
//!     let x = 1;
//!     x = 2;
//!     x
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 {
//!     let mut x = 1;
//!     x = 2;
//!     x
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn variable(span: Span, name: &str, declared: Span) -> Diagnostic {
    Diagnostic::error("immutable", span, format!("variable `{name}` is changed, but not `mut`"))
        .other(declared, "declared here")
        .hint(format!("declare it as `mut {name}`"))
}

pub fn static_item(span: Span, name: &str, declared: Span) -> Diagnostic {
    Diagnostic::error("immutable", span, format!("static `{name}` is changed, but not `mut`"))
        .other(declared, "declared here")
        .hint(format!("declare it as `static mut {name}`"))
}

/// A value behind the `&` pointer at `pointer` is changed.
pub fn pointee(span: Span, pointer: Span) -> Diagnostic {
    Diagnostic::error("immutable", span, "a value behind a `&` pointer is changed")
        .other(pointer, "this is a `&`")
        .hint("make it a `&mut` pointer")
}
