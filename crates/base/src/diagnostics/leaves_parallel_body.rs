//! A body that other threads run goes on at a place outside of it.
//!
//! The iterations of `parallel` (and `par`) and the body of `spawn` run on several threads at once. `break`, `return` and
//! other continuations of the function around them belong to the thread that waits there; another thread cannot go on in
//! its place. `continue` is fine: it ends one iteration.
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

/// `launch` is the call that hands the body to other threads.
fn error(span: Span, message: String, launch: Span) -> Diagnostic {
    Diagnostic::error("leaves-parallel-body", span, message)
        .label("goes on outside the body")
        .other(launch, "the body is run by other threads here")
        .hint("`continue` ends one iteration; to stop early, test a flag that the iterations share")
}

/// The continuation `name` is used.
pub fn by_name(span: Span, name: &str, launch: Span) -> Diagnostic {
    error(span, format!("`{name}` is used in a body that other threads run"), launch)
}

pub fn by_call(span: Span, launch: Span) -> Diagnostic {
    error(span, "a parallel body is left by this call".into(), launch)
}
