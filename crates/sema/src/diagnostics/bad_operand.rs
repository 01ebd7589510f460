//! An operator does not take operands of this type.
//!
//! Arithmetic takes numbers. `&`, `|` and `^` take integers and `bool`, shifts take integers, and comparisons take
//! numbers, `bool` and pointers. Structs, tuples, arrays and functions have no operators: compare or add their parts.
//!
//! ```impala
//! fn f(a: bool, b: bool) -> bool { a + b }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: bool, b: bool) -> bool { a | b }
//! fn g(a: bool, b: bool) -> i32 { a as i32 + b as i32 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `expected` describes the types that `op` takes; `hint` says what to do with a value of type `found`.
pub fn error(span: Span, op: &str, found: &str, expected: &str, hint: &str) -> Diagnostic {
    let message = format!("found operand of type `{found}` for `{op}`, expected {expected}");
    Diagnostic::error("bad-operand", span, message).hint(hint)
}
