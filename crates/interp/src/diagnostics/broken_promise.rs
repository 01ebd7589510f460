//! A promise that the program makes about numbers or addresses does not hold.
//!
//! `vectorize(L, a, b, align, body)` promises that `align` divides `a` and `b`, and that `L` divides their difference,
//! so that the compiled loop needs no remainder (`001` 5.2). The interpreter checks it.
//!
//! `restrict` before a parameter promises that no byte that is modified while the function runs is accessed both
//! through this parameter and through another one. `assume_aligned(p, n)` promises that `n` divides the address `p`, so
//! that whole vectors can be read and written.
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

/// `align` does not divide both `lo` and `hi`, or `length` does not divide their difference.
pub fn error(length: i64, align: i64, lo: i64, hi: i64) -> Diagnostic {
    let message = format!("vectors of {length} lanes do not fill {lo} .. {hi}, or {align} does not divide the bounds");
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("call `vectorize` without the alignment, which is a promise about the bounds")
}

/// The address `at` in `assume_aligned` is not divisible by `n`.
pub fn unaligned(at: u64, n: u64) -> Diagnostic {
    let message = match at.checked_rem(n) {
        Some(rest) => format!("the address is {rest} bytes past a multiple of {n}"),
        None => "no address is aligned to 0 bytes".into(),
    };
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("`alloc` gives memory that is aligned to 64 bytes; the elements in it need not be")
}

/// A byte is modified, and accessed both through a `restrict` parameter and through another one.
pub fn shared() -> Diagnostic {
    let message = "memory that is modified is accessed through a `restrict` parameter and another one";
    Diagnostic::error("broken-promise", Span::NONE, message)
        .hint("leave out `restrict`, or call the function with memory that does not overlap")
}
