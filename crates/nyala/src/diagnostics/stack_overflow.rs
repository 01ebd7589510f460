//! A recursion goes so deep that the stack is full.
//!
//! Every call that has not returned takes a piece of the stack, which has a fixed size. A call in tail position, whose
//! result is the function's own, takes none. Reported by compiled programs; the interpreter reports `budget-spent`.
//!
//! ```text
//! fn count(n: i32) -> i32 { 1 + count(n + 1) % 7 }
//! ```
//!
//! ## Instead
//!
//! See what ends the recursion, or carry the result along, so that the call stands in tail position:
//!
//! ```impala
//! fn count(n: i32, sum: i32) -> i32 { if n == 0 { sum } else { count(n - 1, sum + 1) } }
//! fn main() -> i32 { count(1000000, 0) - 1000000 }
//! ```

use nyala_base::{Diagnostic, Span};

/// Sizes of stacks in MiB.
pub fn error(span: Span, about: String, program: usize, thread: usize) -> Diagnostic {
    Diagnostic::error("stack-overflow", span, about)
        .hint(format!("recursion goes too deep: the stack has {program} MiB, in threads {thread} MiB"))
}
