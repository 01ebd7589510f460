//! Two threads of `parallel`, or lanes of `vectorize`, access the same place, one of them writes, and nothing orders them.
//!
//! The iterations of `parallel` (and `par`) run on several threads at once, so that the result depends on chance. The
//! interpreter runs them one after another, and reports the second access. Writes that leave the memory as it is are not
//! reported, and neither are two atomic operations. Atomic operations that acquire what others have released order the accesses
//! around them, as with a lock. Compiled code does not look for races, but some are warnings when the program is compiled:
//! `shared-write`.
//!
//! ```impala
//! fn main() -> i32 {
//!     let a = alloc[i32](11);
//!     for i in range(0, 11) { a(i) = i }
//!     for i in par(0, 10) { a(i) += a(i + 1) }
//!     a(0) - 1
//! }
//! ```
//!
//! The lanes of one vector (`vectorize`, `vec`) do each step together: they read before any of them writes what it has computed. The
//! interpreter runs them one after another, up to the next operation across lanes, and reports where that is another order: a
//! lane reads what another has written, or writes what another has read, and has not been at that access itself; or two write
//! different values. `a(i) = a(i + 1)` is in the same order both ways, `a(i) = a(i - 1)` is not. Counting, `count(table(i)) += 1`, is
//! not, either: lanes with the same index read the same number, and one of the two counts is lost.
//!
//! ## Instead
//!
//! Let each iteration write to places of its own, which no other reads:
//!
//! ```impala
//! fn main() -> i32 {
//!     let (a, sums) = (alloc[i32](11), alloc[i32](10));
//!     for i in range(0, 11) { a(i) = i }
//!     for i in par(0, 10) { sums(i) = a(i) + a(i + 1) }
//!     sums(0) - 1
//! }
//! ```
//!
//! `std::reduce::histogram` counts in order, `par_histogram` on all processors, in memory of each thread:
//!
//! ```impala
//! use std::reduce::*;
//! fn main() -> i32 {
//!     let (table, count) = (alloc[i32](8), alloc[i32](2));
//!     for i in range(0, 8) { table(i) = i % 2 }
//!     for i in range(0, 2) { count(i) = 0 }
//!     for i in par_histogram(0, 8, 2, count) { table(i) }
//!     count(0) - 4
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `iterations` are the earlier one, if there is only one, and the current one, which `writes` or reads.
pub fn error(
    iterations: (Option<i64>, i64),
    (earlier, was_write): (Span, bool),
    writes: bool,
    launch: Span,
    in_lanes: bool,
) -> Diagnostic {
    let (first, second) = iterations;
    let who = first.map_or("other iterations".into(), |i| format!("iteration {i}"));
    let did = if was_write { "wrote" } else { "read" };
    let does = if writes { "writes" } else { "reads" };
    let (message, runs, each) = match in_lanes {
        true => ("lanes of one vector access the same place", "lanes of vectors run the iterations", "lane"),
        false => {
            ("iterations on several threads access the same place", "several threads run the iterations", "iteration")
        }
    };
    Diagnostic::error("data-race", Span::NONE, message)
        .label(format!("iteration {second} {does} here"))
        .other(earlier, format!("{who} {did} here"))
        .other(launch, runs)
        .hint(format!("give each {each} a place of its own, or use atomic operations"))
}
