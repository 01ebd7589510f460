//! Several traits or impls give the type a method of this name, and nothing says which one is meant.
//!
//! ```impala
//! trait A { fn m(self: &Self) -> i32; }
//! trait B { fn m(self: &Self) -> i32; }
//! fn f[T: A + B](x: T) -> i32 { x.m() }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait A { fn m(self: &Self) -> i32; }
//! trait B { fn m(self: &Self) -> i32; }
//! fn f[T: A + B](x: T) -> i32 { A::m(&x) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `owners` are the traits or types that have the method, and its places there.
pub fn error(span: Span, name: &str, owners: &[(String, Span)]) -> Diagnostic {
    let mut diagnostic = Diagnostic::error("ambiguous-method", span, format!("`{name}` may be one of several methods"));
    for (owner, at) in owners.iter().take(4) {
        diagnostic = diagnostic.other(*at, format!("of `{owner}`"));
    }
    match owners.first() {
        Some((owner, _)) => diagnostic.hint(format!("say which: `{owner}::{name}(…)`")),
        None => diagnostic,
    }
}
