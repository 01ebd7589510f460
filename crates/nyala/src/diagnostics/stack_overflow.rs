//! The program's recursion goes too deep for its stack.
//!
//! Each call that is not in tail position takes some of the stack until it returns. There is much of it, but recursion
//! that never ends uses up any. Reported by `nyala run` for compiled code, with the function whose frame did not fit; the
//! exit code is 139.
//!
//! ```text
//! fn @(false) count(n: i32) -> i32 { 1 + count(n + 1) }
//! fn main() -> i32 { count(0) }
//! ```
//!
//! ## Instead
//!
//! See to it that the recursion ends, or make the call the last thing that the function does, which takes no stack:
//!
//! ```impala
//! fn @(false) count(n: i32, sum: i32) -> i32 { if n == 0 { sum } else { count(n - 1, sum + 1) } }
//! fn main() -> i32 { count(10, 0) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `place` says where, as ` in f`.
pub fn error(span: Span, what: &str, place: &str) -> Diagnostic {
    let (program, thread) = (nyala_runtime::STACK >> 20, nyala_runtime::THREAD_STACK >> 20);
    Diagnostic::error("stack-overflow", span, format!("{what}{place}"))
        .hint(format!("recursion goes too deep: the stack has {program} MiB, in threads {thread} MiB"))
}
