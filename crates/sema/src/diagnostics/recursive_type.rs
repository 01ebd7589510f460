//! A type contains itself without a pointer in between.
//!
//! A struct that has a field of its own type would be larger than itself. A pointer to it has a fixed size. An alias is
//! only another name, so it cannot refer to itself at all.
//!
//! ```impala
//! struct List { head: i32, tail: List }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct List { head: i32, tail: &List }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is `struct` or `enum`.
pub fn of_value(span: Span, what: &str, name: &str) -> Diagnostic {
    Diagnostic::error("recursive-type", span, format!("{what} `{name}` contains itself"))
        .hint("put a pointer in between, `&T`")
}

pub fn alias(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("recursive-type", span, format!("type `{name}` contains itself"))
        .hint("recursion needs a `struct`")
}

pub fn of_trait(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("recursive-type", span, format!("trait `{name}` is its own super-trait"))
        .hint("take it out of the chain of super-traits")
}
