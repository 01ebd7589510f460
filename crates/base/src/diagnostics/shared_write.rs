//! Iterations that run at the same time write to one variable, or to one element of an array.
//!
//! The iterations of `parallel` (and `par`) run on several threads, those of `vectorize` (and `vec`) in the lanes of vectors. If
//! all of them store to the same address, one overwrites what another has stored. A sum that is added up this way lacks
//! numbers, and differs from run to run. In lanes, the last lane's value stays. The result is as wrong as the program is fast.
//!
//! ```impala
//! fn sum(a: &[i32], n: i32) -> i32 {
//!     let mut sum = 0;
//!     for i in vec(8, 0, n) { sum += a(i); }
//!     sum
//! }
//! fn main() -> i32 { sum([1, 2, 3], 3) - 6 }
//! ```
//!
//! ## Instead
//!
//! Give each thread or lane a result of its own, and combine these after the loop:
//!
//! ```impala
//! fn sum(a: &[i32], n: i32) -> i32 {
//!     let mut partial = [0, 0, 0, 0];
//!     for k in par(0, 4) {
//!         let mut own = 0;
//!         for i in range(n * k / 4, n * (k + 1) / 4) { own += a(i); }
//!         partial(k) = own;
//!     }
//!     partial(0) + partial(1) + partial(2) + partial(3)
//! }
//! fn main() -> i32 { sum([1, 2, 3], 3) - 6 }
//! ```
//!
//! Where threads count something, an atomic operation adds to the variable as a whole. If it does not matter which iteration's
//! value stays, as for a flag, say so: `@racy { found = true }` makes the accesses inside relaxed atomic operations.

use crate::{Diagnostic, Span};

/// `launch` is the call that runs the body, in lanes or on other threads.
pub fn warning(span: Span, launch: Span, in_lanes: bool) -> Diagnostic {
    let (who, where_) = match in_lanes {
        true => ("lanes of vectors", "the body runs in lanes of vectors here"),
        false => ("iterations on several threads", "several threads run the body here"),
    };
    let label = if in_lanes { "the last lane's value stays" } else { "they overwrite each other's values" };
    Diagnostic::warning("shared-write", span, format!("{who} write to the same place"))
        .label(label)
        .other(launch, where_)
        .hint("give each a result of its own and combine these after the loop, or use an atomic operation")
        .hint("if any of the values will do, write `@racy { … }` around it")
}
