//! Two iterations of `parallel` access the same place, at least one of them writes, and nothing orders them.
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

use nyala_base::{Diagnostic, Span};

/// `iterations` are the earlier one, if there is only one, and the current one, which `writes` or reads.
pub fn error(
    iterations: (Option<i64>, i64),
    (earlier, was_write): (Span, bool),
    writes: bool,
    launch: Span,
) -> Diagnostic {
    let (first, second) = iterations;
    let who = first.map_or("other iterations".into(), |i| format!("iteration {i}"));
    let did = if was_write { "wrote" } else { "read" };
    let does = if writes { "writes" } else { "reads" };
    Diagnostic::error("data-race", Span::NONE, "iterations on several threads access the same place")
        .label(format!("iteration {second} {does} here"))
        .other(earlier, format!("{who} {did} here"))
        .other(launch, "several threads run the iterations")
        .hint("give each iteration a place of its own, or use atomic operations")
}
