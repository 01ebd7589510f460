//! A name is used as a type, but means something else.
//!
//! The name means a function, a variable or a static. Types and values share one namespace.
//!
//! ```impala
//! fn g() -> () { }
//! fn f(x: g) -> () { }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn g() -> () { }
//! fn f(x: fn() -> ()) -> () { x() }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is what the name stands for.
pub fn error(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error("not-a-type", span, format!("found `{name}`, expected a type"))
        .label(format!("is {what}"))
        .hint("name a type: a primitive one such as `i32`, a `struct` or a `type`")
}
