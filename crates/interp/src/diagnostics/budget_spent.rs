//! The program takes more steps or memory than checked execution allows.
//!
//! The interpreter keeps the frames of recursive calls on a heap of its own, and the memory that the program allocates
//! beside it. Both have a limit, so that a program that never ends is reported before the machine runs out of memory. A
//! call in tail position needs no memory; a call whose result is still used does.
//!
//! ```impala
//! fn count(n: i64) -> i64 { 1i64 + count(n + 1i64) }
//! fn main() -> i32 { count(0i64) as i32 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn count(n: i64) -> i64 { if n == 10i64 { 0i64 } else { 1i64 + count(n + 1i64) } }
//! fn main() -> i32 { if count(0i64) == 10i64 { 0 } else { 1 } }
//! ```

use nyala_base::{Diagnostic, Span};

fn error(message: String, hint: &str) -> Diagnostic {
    Diagnostic::error("budget-spent", Span::NONE, message).hint(hint)
}

pub fn recursion() -> Diagnostic {
    error(
        "the recursion is too deep".into(),
        "check what ends it; a call in tail position, whose result is the function's own, needs no memory",
    )
}

pub fn steps(limit: u64) -> Diagnostic {
    error(format!("the program takes more than {limit} steps"), "check what ends its loops").hint(crate::fault::NATIVE)
}

pub fn memory() -> Diagnostic {
    error("out of memory".into(), "allocate less, or free memory that is no longer used")
}
