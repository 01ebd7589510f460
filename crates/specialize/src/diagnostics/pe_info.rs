//! `pe_info` asks what partial evaluation knows about a value.
//!
//! When partial evaluation reaches `pe_info("text", x)`, it reports the value of `x`, or that it is not known. The call
//! costs nothing in the compiled program. This is not a fault.
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

/// `shown` is the value, as far as it is known.
pub fn info(span: Span, text: &str, shown: &str) -> Diagnostic {
    Diagnostic::info("pe-info", span, format!("{text}: {shown}"))
}
