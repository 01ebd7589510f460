//! Nothing of this name is in scope, in a program in DeepCPS or Staged-C.
//!
//! A name is a parameter, a stage, what `let` or `fix def` declares before, or a built-in function. A function's parameters and its stage are
//! visible in its body, and since the rest of a program is within the last argument of a call, in all that follows it.
//!
//! ```text
//! let f (int n, fn[int] cont) {
//!   n+1 (m)
//!   cont k
//! }
//! ```
//!
//! ## Instead
//!
//! ```text
//! let f (int n, fn[int] cont) {
//!   n+1 (m)
//!   cont m
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("found no `{name}` in scope"))
        .hint("declare it as a parameter, with `let` or with `fix def`")
}

pub fn exported(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("the program has another function `{name}`"))
        .hint("rename one of them")
}

/// Staged-C has no functions as results of calls.
pub fn compile(span: Span) -> Diagnostic {
    Diagnostic::error("staging-name", span, "`compile` is called, expected it in a declaration")
        .hint("declare a function that is made while the program runs: `int g(int x) = compile f<x, n>;`")
}

/// In Staged-C.
pub fn in_c(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("found no `{name}` in scope"))
        .hint("declare it before; functions may stand anywhere in the program")
}

pub fn function(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("`{name}` is a function, expected a variable"))
        .hint(format!("call it: `{name}(…)`"))
}

pub fn unassigned(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("`{name}` has no value here"))
        .hint("assign it on all ways that lead here")
}

pub fn structure(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("found no `struct {name}` in scope"))
        .hint("declare it before: a struct, too, knows those above it only")
}

pub fn field_twice(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("the struct has another field `{name}`")).hint("rename one of them")
}

pub fn twice(span: Span, name: &str, before: Span) -> Diagnostic {
    Diagnostic::error("staging-name", span, format!("another function is called `{name}`"))
        .other(before, "the first one")
        .hint("rename one of them")
}
