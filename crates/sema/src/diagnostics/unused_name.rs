//! A variable, function or `use` is never used.
//!
//! The compiler reports variables of `let` and of patterns, but not parameters. It reports nested and `priv` functions;
//! in a program with `main` that is one file, it reports all functions that are not exported. If a program consists of
//! several files, it checks the one with `main`, or those with exported functions, and not the files that they use. A
//! name that begins with `_` is never reported. This is a warning.
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
