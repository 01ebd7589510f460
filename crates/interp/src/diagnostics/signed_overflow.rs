//! The result of signed arithmetic does not fit its type.
//!
//! `+`, `-`, `*`, negation, `++` and `--` of signed integers must not overflow, nor must `/` and `%` of the least
//! number by `-1`. Optimized code assumes that they do not. Unsigned arithmetic wraps.
//!
//! ```impala
//! static mut one = 1;
//! fn main() -> i32 { 2147483647 + one }
//! ```
//!
//! ## Instead
//!
//! Compute with a wider type, or with an unsigned one if it is meant to wrap:
//!
//! ```impala
//! static mut one = 1;
//! fn main() -> i32 { if 2147483647i64 + one as i64 == 2147483648i64 { 0 } else { 1 } }
//! ```

use nyala_base::{Diagnostic, Span};

/// `expression` is the operation with its operands; `ty` is the type of its result.
pub fn error(expression: &str, ty: &str) -> Diagnostic {
    let message = format!("signed overflow: `{expression}` does not fit `{ty}`");
    Diagnostic::error("signed-overflow", Span::NONE, message)
        .hint("compute with a wider type, or with an unsigned one if it is meant to wrap")
}
