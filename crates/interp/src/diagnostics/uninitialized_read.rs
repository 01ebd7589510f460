//! A value is used before it is set.
//!
//! `let mut x: T;` and memory from the heap start undefined, and may be filled part by part. Reading a part before it
//! is set gives an arbitrary value. Copying that value is allowed; computing with it, branching on it and passing it to
//! C is a fault.
//!
//! ```impala
//! fn main() -> i32 { let mut x: i32; x + 1 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main() -> i32 { let mut x: i32; x = -1; x + 1 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` names the value and its use.
pub fn error(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error("uninitialized-read", Span::NONE, what).hint("set it first")
}
