//! A pattern does not have the form of the values that it is matched with.
//!
//! The pattern `(a, b)` takes apart a tuple of exactly two parts, and `E::A(p)` an option of an enum with one part. `_`
//! stands for a part that is not needed.
//!
//! ```impala
//! fn f() -> () { let (a, b) = (1, 2, 3); }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> () { let (a, b, _) = (1, 2, 3); }
//! ```

use nyala_base::{Diagnostic, Span};

/// The tuple, of type `found`, stands at `value`.
pub fn parts(span: Span, found: &str, n_found: usize, n_expected: usize, value: Span) -> Diagnostic {
    let message = format!("found a tuple of {n_found} parts, expected {n_expected}");
    Diagnostic::error("bad-pattern", span, message)
        .other(value, format!("has type `{found}`"))
        .hint("the pattern needs a name, or `_`, for each part")
}

pub fn no_tuple(span: Span, found: &str, n_expected: usize) -> Diagnostic {
    let message = format!("found `{found}`, expected a tuple of {n_expected} parts");
    Diagnostic::error("bad-pattern", span, message).hint("only tuples are taken apart by `( … )`")
}

pub fn option_parts(span: Span, name: &str, n_found: usize, n_expected: usize, declared: Span) -> Diagnostic {
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let message = format!("found {n_found} part{}, option `{name}` has {n_expected}", s(n_found));
    Diagnostic::error("bad-pattern", span, message).other(declared, "declared here").hint(match n_expected {
        0 => format!("write `{name}` without parts"),
        _ => format!("the pattern needs {n_expected} name{}, or `_`, in parentheses", s(n_expected)),
    })
}

pub fn no_option(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("bad-pattern", span, format!("`{name}` is not an option of an enum"))
        .hint("patterns are literals, names, `_`, tuples, options `E::A(p)` and structs `S { f: p }`")
}
