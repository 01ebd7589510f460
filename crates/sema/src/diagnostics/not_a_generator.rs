//! The expression after `in` is not a call of a generator.
//!
//! `for x in g(args) { … }` calls the function `g` with the arguments and, as the last one, the body of the loop as a
//! function. So a call must follow `in`. The generator `range(a, b)` counts from `a` to `b - 1`. There are no ranges
//! `a..b` and no iterators.
//!
//! ```impala
//! fn f(a: &[i32]) -> () { for x in a { } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: &[i32], n: i32) -> () { for i in range(0, n) { print_i32(a(i)); } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("not-a-generator", span, "found no call after `in`")
        .hint("loops run over generators: `for i in range(0, n) { … }`")
}

/// The value that is called, of type `found`, is not a function.
pub fn no_function(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "not-a-generator",
        span,
        format!("found `{found}`, expected a function that takes the loop's body"),
    )
    .hint("loops run over generators: `for i in range(0, n) { … }`")
}

/// The last parameter of the called function, of type `found`, is not a function.
pub fn no_body(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "not-a-generator",
        span,
        format!("found a last parameter of type `{found}`, expected one for the body"),
    )
    .hint("a generator takes the loop's body as its last argument: `fn g(body: fn(i32) -> ()) -> ()`")
}
