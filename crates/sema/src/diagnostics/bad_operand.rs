//! An operator does not take operands of this type.
//!
//! Arithmetic takes numbers; `&`, `|`, `^` integers and `bool`; shifts integers; comparisons numbers, `bool` and pointers.
//! Structs, tuples, arrays and functions have no operators: compare or add their parts.
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

/// `expected` says which types `op` takes; `hint` what to do with one like this.
pub fn error(span: Span, op: &str, found: &str, expected: &str, hint: &str) -> Diagnostic {
    let message = format!("found operand of type `{found}` for `{op}`, expected {expected}");
    Diagnostic::error("bad-operand", span, message).hint(hint)
}
