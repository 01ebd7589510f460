//! A value is used that was never set.
//!
//! `let mut x: T;` and memory from the heap start undefined, and may be filled part by part. Who looks at a part before it
//! is set gets anything. Copying it is no fault; computing with it, branching on it or handing it to C is.
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

/// `what` says what is used.
pub fn error(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error("uninitialized-read", Span::NONE, what).hint("set it first")
}
