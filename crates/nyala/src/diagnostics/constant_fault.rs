//! A constant expression divides by zero or overflows.
//!
//! The compiler knows the operands, so this is certain to happen when the code runs. It may never run, so this is only
//! a warning. Division by zero stays in the program, and is undefined there; signed overflow gives the result modulo a
//! power of two.
//!
//! ```impala
//! fn f() -> i32 { 1 / 0 }
//! extern fn g() -> i32 { f() }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 { 1 / 2 }
//! extern fn g() -> i32 { f() }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is the fault: division by zero, or signed overflow.
pub fn warning(span: Span, what: &str) -> Diagnostic {
    Diagnostic::warning("constant-fault", span, format!("{what} in a constant expression"))
        .hint("the result is undefined in compiled code; change the operands, or use a wider or unsigned type")
}
