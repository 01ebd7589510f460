//! A variable has the name of another one of the same function, from a block around it, which is hidden here.
//!
//! A `let` in the same block may well take up the name of the one before. It is a warning.
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     if x > 0 { let x = 1; print_i32(x) }
//!     x
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     if x > 0 { let y = 1; print_i32(y) }
//!     x
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::warning("shadowed-name", span, format!("`{name}` hides another variable of this name"))
        .other(first, "the one that is hidden")
        .hint("give one of the two another name")
}
