//! Lanes wait for each other at different places.
//!
//! At a barrier, and where values are exchanged, all lanes of a `vectorize` or all work items of a block must meet,
//! except those that have ended. Here some of them wait at another place, or came to the same place by another call. A
//! device would hang or exchange undefined values. (Native code of a `vectorize` continues with the lanes that are
//! there, as ISPC does. The interpreter runs one lane after the other, so it does not know which lanes these would be.)
//!
//! ```impala
//! extern "thorin" { fn cuda((i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern "device" {
//!     fn "threadIdx.x" tid() -> i32;
//!     fn "__syncthreads" sync_threads() -> ();
//! }
//! fn main() -> i32 {
//!     for cuda((4, 1, 1), (4, 1, 1)) {
//!         if tid() < 2 { sync_threads(); }
//!         sync_threads();
//!     }
//!     0
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "thorin" { fn cuda((i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern "device" { fn "__syncthreads" sync_threads() -> (); }
//! fn launch() -> () {
//!     for cuda((4, 1, 1), (4, 1, 1)) { sync_threads(); }
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `lane` waits at `at`, and `other` at `elsewhere`.
pub fn error(lane: usize, at: Span, other: usize, elsewhere: Span) -> Diagnostic {
    let message = format!("lanes have diverged: {lane} and {other} wait at different places");
    Diagnostic::error("diverged-lanes", at, message)
        .label(format!("lane {lane} waits here"))
        .other(elsewhere, format!("lane {other} waits here"))
        .hint("let all lanes reach the same barriers: move barriers out of conditions that differ from lane to lane")
}
