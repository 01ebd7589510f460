//! A body that runs several times at once goes on at a place outside of it.
//!
//! The iterations of `parallel` (and `par`) and the body of `spawn` run on several threads at once, those of `vectorize` (and
//! `vec`) in the lanes of vectors. `break`, `return` and other continuations of the function around them belong to what waits
//! there; another thread, or one lane of many, cannot go on in its place. `continue` is fine: it ends one iteration. In a
//! `vectorize` within the body of another that is the inner iteration; the outer body's `continue` leaves the inner body, too.
//!
//! ```impala
//! fn find(a: &[i32], n: i32) -> i32 {
//!     for i in par(0, n) {
//!         if a(i) == 7 { return(i) }
//!     }
//!     -1
//! }
//! fn main() -> i32 { find([1, 7], 2) - 1 }
//! ```
//!
//! ## Instead
//!
//! Note what was found where all iterations can see it:
//!
//! ```impala
//! fn find(a: &[i32], n: i32) -> i32 {
//!     let mut found = -1;
//!     for i in par(0, n) {
//!         if a(i) == 7 { found = i; }
//!     }
//!     found
//! }
//! fn main() -> i32 { find([1, 7], 2) - 1 }
//! ```

use crate::{Diagnostic, Span};

const HINT: &str = "`continue` ends one iteration; to stop early, test a flag that the iterations share";

/// `launch` is the call that runs the body: in lanes, or by other threads.
fn error(span: Span, message: String, launch: Span, in_lanes: bool) -> Diagnostic {
    let who = if in_lanes { "the body runs in lanes of vectors here" } else { "the body is run by other threads here" };
    Diagnostic::error("jump-out-of-parallel", span, message)
        .label("goes on outside the body")
        .other(launch, who)
        .hint(HINT)
}

/// The continuation `name` is used in a body that other threads run.
pub fn by_name(span: Span, name: &str, launch: Span) -> Diagnostic {
    error(span, format!("`{name}` is used in a body that other threads run"), launch, false)
}

/// Found after specialization.
pub fn by_call(span: Span, launch: Span, in_lanes: bool) -> Diagnostic {
    let what = if in_lanes { "a body that runs in lanes" } else { "a parallel body" };
    error(span, format!("{what} is left by this call"), launch, in_lanes)
}

/// Found when the program had come to its end, where that is seen.
pub fn left(launch: Span) -> Diagnostic {
    Diagnostic::error(
        "jump-out-of-parallel",
        Span::NONE,
        "a body that runs in lanes was left before its lanes had ended",
    )
    .label("executed last")
    .other(launch, "the body runs in lanes of vectors here")
    .hint(HINT)
}
