//! The condition of a `static_assert` is false.
//!
//! Partial evaluation decides `static_assert(condition, "text")` once for each specialization of the function around
//! it. In one of them the condition is known to be false.
//!
//! ```impala
//! fn @pow(x: i32, n: i32) -> i32 {
//!     static_assert(n >= 0, "the exponent is not negative");
//!     if n <= 0 { 1 } else { x * pow(x, n - 1) }
//! }
//! extern fn inverse(x: i32) -> i32 { pow(x, -1) }
//! ```
//!
//! ## Instead
//!
//! Call the function with arguments that it is made for:
//!
//! ```impala
//! fn @pow(x: i32, n: i32) -> i32 {
//!     static_assert(n >= 0, "the exponent is not negative");
//!     if n <= 0 { 1 } else { x * pow(x, n - 1) }
//! }
//! extern fn square(x: i32) -> i32 { pow(x, 2) }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("static-assert-failed", span, format!("static assertion failed: {text}"))
        .label("false here")
        .hint("look for the call with such arguments; `pe_info(\"text\", x)` shows what is known about `x`")
}
