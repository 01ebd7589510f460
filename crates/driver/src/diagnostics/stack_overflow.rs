//! A recursion goes so deep that the stack is full.
//!
//! Every call that has not returned takes a piece of the stack, which has a fixed size. A call in tail position, whose
//! result is the function's own, takes none. Compiled programs report this; the interpreter reports `budget-spent`
//! instead.
//!
//! ```text
//! fn count(n: i32) -> i32 { 1 + count(n + 1) % 7 }
//! ```
//!
//! ## Instead
//!
//! Check what ends the recursion, or pass the result along, so that the call is in tail position:
//!
//! ```impala
//! fn count(n: i32, sum: i32) -> i32 { if n == 0 { sum } else { count(n - 1, sum + 1) } }
//! fn main() -> i32 { count(1000000, 0) - 1000000 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `program` and `thread` are the sizes in MiB of the stacks of the program and of its other threads.
pub fn error(span: Span, about: String, program: usize, thread: usize) -> Diagnostic {
    Diagnostic::error("stack-overflow", span, about)
        .hint(format!("recursion goes too deep: the stack has {program} MiB, in threads {thread} MiB"))
}
