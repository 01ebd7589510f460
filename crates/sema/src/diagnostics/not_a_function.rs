//! A value that is applied to arguments is not a function, array or tuple.
//!
//! `x(y)` calls a function, or chooses an element of an array or a part of a tuple. Other values cannot be applied.
//!
//! ```impala
//! fn f(x: i32) -> i32 { x(1) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: fn(i32) -> i32) -> i32 { x(1) }
//! fn g(x: &[i32]) -> i32 { x(1) }
//! fn h(x: i32) -> i32 { x * (1) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `callee` is the place of the applied value, if it is known.
pub fn error(span: Span, found: &str, callee: Option<Span>) -> Diagnostic {
    let message = format!("found `{found}`, expected a function, array or tuple");
    let diagnostic = Diagnostic::error("not-a-function", span, message)
        .hint("`x(y)` calls a function or chooses an element; an operator or `;` may be missing between the two");
    match callee {
        Some(callee) => diagnostic.other(callee, format!("has type `{found}`")),
        None => diagnostic,
    }
}

/// Adds that the applied value is the local `name`, which hides a function of that name; its place, unless it is the prelude's.
pub fn hides(error: Diagnostic, local: Span, name: &str, function: Option<Span>) -> Diagnostic {
    let (place, of) = match function {
        Some(place) => (Some(place), ""),
        None => (None, " of the prelude"),
    };
    let mut error = error.other(local, format!("`{name}` is this local here"));
    if let Some(place) = place {
        error = error.other(place, "which hides this function");
    }
    error.hint(format!("the local `{name}` hides the function `{name}`{of}: give one of them another name"))
}
