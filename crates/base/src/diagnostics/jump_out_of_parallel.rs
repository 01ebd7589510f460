//! A body that runs several times at once jumps to a place outside of it.
//!
//! The iterations of `parallel` (and `par`) and the body of `spawn` run on several threads at once. Those of
//! `vectorize` (and `vec`) run in the lanes of vectors. `break`, `return` and other continuations of the enclosing
//! function belong to the thread that waits there; another thread, or one lane of many, cannot continue in its place.
//! `continue` is allowed, because it only ends one iteration. If one `vectorize` is inside the body of another, the
//! inner body may end its own iteration, but not call the outer body's `continue`, which would leave the inner body
//! too.
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
//! Store the result in a variable that all iterations share. `@racy` says that any of the values will do:
//!
//! ```impala
//! fn find(a: &[i32], n: i32) -> i32 {
//!     let mut found = -1;
//!     for i in par(0, n) {
//!         if a(i) == 7 { @racy { found = i } }
//!     }
//!     found
//! }
//! fn main() -> i32 { find([1, 7], 2) - 1 }
//! ```

use crate::diagnostics::Label;
use crate::{Diagnostic, Span};

const HINT: &str = "`continue` ends one iteration; to stop early, test a flag that the iterations share";

/// `launch` is the call that runs the body, in lanes or on other threads.
fn error(span: Span, message: String, launch: Span, in_lanes: bool) -> Diagnostic {
    let who = if in_lanes { "the body runs in lanes of vectors here" } else { "other threads run the body here" };
    Diagnostic::error("jump-out-of-parallel", span, message)
        .label("continues outside the body")
        .other(launch, who)
        .hint(HINT)
}

/// The continuation `name` is used in a body that other threads run.
pub fn by_name(span: Span, name: &str, launch: Span) -> Diagnostic {
    error(span, format!("`{name}` is used in a body that other threads run"), launch, false)
}

/// A call in the body jumps out of it, as specialization shows.
pub fn by_call(span: Span, launch: Span, in_lanes: bool) -> Diagnostic {
    let what = if in_lanes { "a body that runs in lanes" } else { "a parallel body" };
    error(span, format!("this call jumps out of {what}"), launch, in_lanes)
}

/// The interpreter reached the end of the program while lanes or iterations of the body were still waiting.
pub fn left(launch: Span, in_lanes: bool) -> Diagnostic {
    let what = match in_lanes {
        true => "a body that runs in lanes before all its lanes had ended",
        false => "a parallel body before all its iterations had ended",
    };
    Diagnostic {
        primary: Label { span: Span::NONE, text: "executed last".into() },
        ..error(Span::NONE, format!("control left {what}"), launch, in_lanes)
    }
}
