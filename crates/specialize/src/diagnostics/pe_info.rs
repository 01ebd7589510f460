//! What `pe_info` was asked to tell about a value during compilation.
//!
//! `pe_info("text", x)` costs nothing in the compiled program. Partial evaluation says, when it comes by, what it knows
//! about `x` there: the value, or that it is not known. This is no fault.
//!
//! ```impala
//! fn @f(x: i32) -> i32 { pe_info("x", x); x + 1 }
//! fn main() -> i32 { f(-1) }
//! ```
//!
//! ## Instead
//!
//! Leave it out to have no message:
//!
//! ```impala
//! fn @f(x: i32) -> i32 { x + 1 }
//! fn main() -> i32 { f(-1) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `shown` is the value, as far as known.
pub fn info(span: Span, text: &str, shown: &str) -> Diagnostic {
    Diagnostic::info("pe-info", span, format!("{text}: {shown}"))
}
