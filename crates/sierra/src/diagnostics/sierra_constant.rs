//! A program in Sierra needs a constant, and the compiler cannot compute it.
//!
//! Constants are the length of an array, the number of lanes, the value behind `case`, that of an enumeration's name, and that of a variable outside of
//! functions.
//!
//! They are made of literals, names of enumerations, `const` variables with such values, and operators.
//!
//! ```text
//! int n = 4;
//! int table[n];
//! ```
//!
//! ## Instead
//!
//! ```text
//! const int n = 4;
//! int table[n];
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-constant", span, "this is no constant")
}

pub fn length(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-constant", span, "an array has 1 to 4294967296 elements")
}

pub fn twice(span: Span, value: i64) -> Diagnostic {
    Diagnostic::error("sierra-constant", span, format!("another `case` has the value {value}"))
}
