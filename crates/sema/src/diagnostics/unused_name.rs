//! A variable, function or `use` is never used.
//!
//! Of variables those of `let` and of patterns count, not parameters; of functions the nested and the `priv` ones, and in a program
//! with `main` that is one file all that are not exported. Of several files that form a program only the one with `main` is looked
//! at, or those with exported functions: the others are merely used. A name that begins with `_` is meant to be unused. It is a
//! warning.
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     let y = x + 1;
//!     x
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     let _y = x + 1;
//!     x
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn variable(span: Span, name: &str) -> Diagnostic {
    warning(span, &format!("variable `{name}`"), &format!("remove it, or call it `_{name}`"))
}

pub fn function(span: Span, name: &str) -> Diagnostic {
    warning(span, &format!("function `{name}`"), &format!("remove it, call it `_{name}`, or export it: `extern fn`"))
}

pub fn import(span: Span, name: &str) -> Diagnostic {
    warning(span, &format!("`use` of `{name}`"), "remove it")
}

fn warning(span: Span, what: &str, hint: &str) -> Diagnostic {
    Diagnostic::warning("unused-name", span, format!("{what} is never used")).hint(hint)
}
