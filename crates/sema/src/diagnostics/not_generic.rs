//! Type arguments are given to something that takes none.
//!
//! `f[T]` gives type arguments to a generic function or type. Elements of arrays and parts of tuples are chosen in
//! parentheses, like arguments.
//!
//! ```impala
//! fn f(a: &[i32], i: i32) -> i32 { a[i] }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: &[i32], i: i32) -> i32 { a(i) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is what the name stands for.
pub fn error(span: Span, name: &str, what: &str) -> Diagnostic {
    Diagnostic::error("not-generic", span, format!("found type arguments for `{name}`, which takes none"))
        .label(format!("`{name}` is {what}"))
        .hint(format!("elements of arrays are `{name}(i)`; brackets hold types"))
}
