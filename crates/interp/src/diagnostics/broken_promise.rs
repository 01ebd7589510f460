//! The bounds of a `vectorize` are not what its caller promised.
//!
//! `vectorize(L, a, b, align, body)` promises that `align` divides `a` and `b`, and `L` their difference, so that compiled
//! code needs no code for what is left over (`001` 5.2). The interpreter looks whether it is true.
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
