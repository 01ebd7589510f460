//! A variable hides another one of the same function, which has the same name, in an enclosing block.
//!
//! A `let` may reuse the name of a variable of the same block. This is a warning.
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
        .other(first, "the hidden variable")
        .hint("give one of the two another name")
}
