//! A library, an object or a header of a program that exports nothing.
//!
//! Other programs see the functions of a library that are declared by `extern fn`. Without one, a library is empty: a program linked
//! with it does not find the function that it calls, and what nobody calls is left out. `main` is for executables. This is a warning.
//!
//! ```sh
//! nyala build program.impala -o libprogram.so     # program.impala: fn square(x: i32) -> i32 { x * x }
//! ```
//!
//! ## Instead
//!
//! Export the functions that others call:
//!
//! ```impala
//! extern fn square(x: i32) -> i32 { x * x }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is the kind of file; `like`: a function that the program may mean to export, with its place.
pub fn warning(what: &str, like: Option<(&str, Span)>) -> Diagnostic {
    let message = format!("the program exports no function, so that {what} of it is empty");
    let (name, span) = like.unwrap_or(("f", Span::NONE));
    let diagnostic = Diagnostic::warning("no-exports", span, message);
    let diagnostic = if span.is_none() { diagnostic } else { diagnostic.label("is not exported") };
    diagnostic.hint(format!("write `extern fn {name}(…)` for what other programs call"))
}
