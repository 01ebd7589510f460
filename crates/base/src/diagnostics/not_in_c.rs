//! A type that C does not have goes to C or comes from there.
//!
//! C calls exported functions, and functions of `extern "C"` are C's. Numbers, bools, pointers, structs, tuples and arrays cross that
//! border, the last two as structs. Functions with captured variables, vectors and `()` as a parameter do not: C has no such values.
//!
//! ```text
//! extern fn apply(f: fn(i32) -> i32, x: i32) -> i32 { f(x) }
//! ```
//!
//! ## Instead
//!
//! Pass a number that chooses among functions, or a pointer to the values that a function captures:
//!
//! ```impala
//! extern fn apply(which: i32, x: i32) -> i32 {
//!     if which == 0 { x + 1 } else { 2 * x }
//! }
//! ```

use crate::{Diagnostic, Span};

/// `what` names the value, as in "a parameter of type `T`".
pub fn error(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("not-in-c", span, format!("{what} cannot be passed to C"))
        .hint("numbers, bools, pointers, structs, tuples and arrays can be: pass a pointer, or the parts one by one")
}
