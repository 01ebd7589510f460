//! An integer is divided by zero.
//!
//! The quotient and the remainder of a division by zero are undefined: compiled code may do anything. (Floating-point
//! division by zero is defined: it gives an infinity or NaN.)
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { 10 / n }
//! ```
//!
//! ## Instead
//!
//! Test the divisor where it may be zero:
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { if n == 0 { 0 } else { 10 / n } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(dividend: &str, remainder: bool) -> Diagnostic {
    let what = if remainder { "remainder of a division" } else { "division" };
    Diagnostic::error("division-by-zero", Span::NONE, format!("{what} by zero: {dividend} and 0"))
        .hint("test the divisor first: the result is undefined in compiled code")
}
