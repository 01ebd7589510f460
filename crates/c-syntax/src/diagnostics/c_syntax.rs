//! A program in Sierra, ISPC's dialect or Staged-C does not follow its grammar, which is that of C with parts of C++.
//!
//! The first fault ends a file. What is within each other is limited: parentheses, brackets, statements, initializers.
//!
//! ```text
//! int square(int n) { return n * n }
//! ```
//!
//! ## Instead
//!
//! ```text
//! int square(int n) { return n * n; }
//! ```

use nyala_base::{Diagnostic, Span};

/// `found` is the token there.
pub fn unexpected(span: Span, found: &str, expected: &str) -> Diagnostic {
    let found = if found.is_empty() { "the end of the file".to_string() } else { format!("`{found}`") };
    Diagnostic::error("c-syntax", span, format!("found {found}, expected {expected}"))
}

pub fn too_deep(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("c-syntax", span, format!("nested deeper than {limit} levels"))
        .hint("move inner parts into functions or variables of their own")
}

pub fn no_type(span: Span) -> Diagnostic {
    Diagnostic::error("c-syntax", span, "these words are no type together")
}

pub fn literal(span: Span, text: &str, what: &str) -> Diagnostic {
    Diagnostic::error("c-syntax", span, format!("`{text}` is no {what}"))
}

/// The number of elements of `soa<n>`.
pub fn no_soa(span: Span, found: &str, limit: u32) -> Diagnostic {
    Diagnostic::error("c-syntax", span, format!("found `{found}`, expected a power of two from 2 to {limit}"))
        .hint("`soa<8>` has eight elements side by side")
}

/// A parameter without a name, where the function has a body.
pub fn no_name(span: Span) -> Diagnostic {
    Diagnostic::error("c-syntax", span, "the parameter has no name")
}

/// `what` is `break`, `case` and the like; `around` is what they stand in.
pub fn misplaced(span: Span, what: &str, around: &str) -> Diagnostic {
    Diagnostic::error("c-syntax", span, format!("`{what}` stands in no {around}"))
}
