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
//! extern fn sum_of_three() -> i32 { sum([1, 2, 3], 3) }
//! ```
//!
//! ## Instead
//!
//! `std::reduce` has loops with a result: each thread or lane has a result of its own, and these are combined after the loop.
//!
//! ```impala
//! use std::reduce::*;
//! fn sum(a: &[i32], n: i32) -> i32 { for i in vec_reduce(8, 0, n, 0, |x, y| x + y) { a(i) } }
//! fn main() -> i32 { sum([1, 2, 3], 3) - 6 }
//! ```
//!
//! `par_reduce(0, n, …)` does so on all processors, `par_vec_reduce(8, 0, n, …)` on these in lanes.
//!
//! A stencil that is computed in place is as wrong: in `a(i) = a(i - 1) + 1`, iteration `i + 1` reads what iteration `i` writes. It
//! is reported where two accesses of one array are a fixed number of iterations apart. Let it read from one array and write to
//! another.
//!
//! Counting at indices out of memory, `count(table(i)) += 1`, is reported, too: two iterations with the same index read the same
//! number, and one of the two is lost. Indices that are computed may be equal as well, as `i % 4` and `i / 2` are. A body that only
//! writes at such indices is not reported: they may be a permutation. `std::reduce::histogram` counts in order, and
//! `par_histogram` on all processors, each thread in memory of its own:
//!
//! ```impala
//! use std::reduce::*;
//! fn count(table: &[i32], n: i32, bins: &mut [i32]) -> () { for i in par_histogram(0, n, 16, bins) { table(i) } }
//! fn main() -> i32 {
//!     let mut bins = [0, .. 16];
//!     count([1, 2, 1], 3, &mut bins);
//!     bins(1) - 2
//! }
//! ```
//!
//! Where the indices are all different, as in a permutation, a `restrict` parameter promises that nothing else accesses the place
//! meanwhile:
//!
//! ```impala
//! fn add(restrict to: &mut i32, x: i32) -> () { *to += x }
//! fn main() -> i32 {
//!     let (order, a) = (alloc[i32](8), alloc[i32](8));
//!     for i in range(0, 8) { order(i) = 7 - i; a(i) = 0 }
//!     for i in vec(4, 0, 8) { add(&mut a(order(i)), i) }
//!     a(0) - 7
//! }
//! ```
//!
//! Where threads count something, an atomic operation adds to the variable as a whole: `n.fetch_add[RELAXED](1)` by `std::atomic`.
//! If it does not matter which iteration's value stays, as for a flag, say so: `@racy { found = true }` makes the accesses inside
//! relaxed atomic operations.

use crate::{Diagnostic, Span};

/// The store at `span` and the access at `other` are to one place in iterations that have this distance.
pub fn in_place(span: Span, (other, reads): (Span, bool), distance: u64, launch: Span, in_lanes: bool) -> Diagnostic {
    let (who, where_) = runs(in_lanes);
    let does = if reads { "read" } else { "write" };
    let far = if distance == 1 { "the next one".into() } else { format!("one {distance} further") };
    Diagnostic::warning("shared-write", span, format!("{who} {does} what others write"))
        .label(format!("an iteration, and {far}, access the same place"))
        .other(other, if reads { "one of them reads here" } else { "one of them writes here" })
        .other(launch, where_)
        .hint("read from one array and write to another, or run the loop in order")
}

/// The store at `span` is at an index that may be the same in several iterations, and the access at `read` reads there.
pub fn scattered(span: Span, read: Span, launch: Span, in_lanes: bool) -> Diagnostic {
    let (who, where_) = runs(in_lanes);
    Diagnostic::warning("shared-write", span, format!("{who} may read and write the same place"))
        .label("of two that have the same index, what one writes is lost")
        .other(read, "they read here")
        .other(launch, where_)
        .hint("`std::reduce::histogram` and `par_histogram` count at indices; else use an atomic operation, or memory of its own for each")
        .hint("if the indices are all different, access the place by a `restrict` parameter; if any value will do, in `@racy { … }`")
}

/// What runs a body several times, and a label of that place.
fn runs(in_lanes: bool) -> (&'static str, &'static str) {
    match in_lanes {
        true => ("lanes of vectors", "the body runs in lanes of vectors here"),
        false => ("iterations on several threads", "several threads run the body here"),
    }
}

/// `launch` is the call that runs the body, in lanes or on other threads.
pub fn warning(span: Span, launch: Span, in_lanes: bool) -> Diagnostic {
    let (who, where_) = runs(in_lanes);
    let label = if in_lanes { "the last lane's value stays" } else { "they overwrite each other's values" };
    Diagnostic::warning("shared-write", span, format!("{who} write to the same place"))
        .label(label)
        .other(launch, where_)
        .hint("give each a result of its own and combine these after the loop, or use an atomic operation")
        .hint("if any of the values will do, write `@racy { … }` around it")
}
