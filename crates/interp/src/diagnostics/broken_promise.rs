//! What a program promises about its numbers or addresses is not true.
//!
//! `vectorize(L, a, b, align, body)` promises that `align` divides `a` and `b`, and `L` their difference, so that compiled
//! code needs no code for what is left over (`001` 5.2). The interpreter looks whether it is true.
//!
//! `restrict` before a parameter promises that no byte that is modified while the function runs is accessed through this
//! and another parameter. `assume_aligned(p, n)` promises that `n` divides the address `p`, so that vectors can be read and
//! written as a whole.
//!
//! ```impala
//! extern "thorin" { fn vectorize(i32, i32, i32, i32, fn(i32) -> ()) -> (); }
//! fn main() -> i32 {
//!     for i in vectorize(4, 0, 10, 4) { print_i32(i) }
//!     0
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "thorin" { fn vectorize(i32, i32, i32, fn(i32) -> ()) -> (); }
//! fn main() -> i32 {
//!     for i in vectorize(4, 0, 10) { print_i32(i) }
//!     0
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `align` does not divide both `lo` and `hi`, or `length` not their difference.
pub fn error(length: i64, align: i64, lo: i64, hi: i64) -> Diagnostic {
    let message = format!("vectors of {length} lanes do not fill {lo} .. {hi}, or {align} does not divide the bounds");
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("call `vectorize` without the alignment, which is a promise about the bounds")
}

/// The address of `assume_aligned` is not divisible.
pub fn unaligned(at: u64, n: u64) -> Diagnostic {
    let message = match at.checked_rem(n) {
        Some(rest) => format!("the address lies {rest} bytes behind a multiple of {n}"),
        None => "an address aligned to 0 bytes".into(),
    };
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("`alloc_f32` and the like give memory that is aligned to 64 bytes; its parts are where they are")
}

/// A byte is accessed through a restricted parameter and another one, and modified.
pub fn shared() -> Diagnostic {
    let message = "memory that is modified is accessed through a `restrict` parameter and another one";
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("leave out `restrict`, or call the function with memory that does not overlap")
}
