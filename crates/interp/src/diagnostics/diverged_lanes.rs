//! Lanes wait for each other at different places.
//!
//! At a barrier, or to exchange a value, all lanes of a `vectorize` and all work items of a block must come together: all
//! that have not ended yet. Some of them wait elsewhere here, or came to the same place by another call, so that a device
//! would hang or exchange nonsense. (Native code of a `vectorize` goes on with the lanes that are there, as ISPC does; the
//! interpreter runs lanes one after the other, and does not know which would be.)
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

/// The `lane` waits here, `other` elsewhere.
pub fn error(lane: usize, at: Span, other: usize, elsewhere: Span) -> Diagnostic {
    let message = format!("lanes have diverged: {lane} and {other} wait at different places");
    Diagnostic::error("diverged-lanes", at, message)
        .label(format!("lane {lane} waits here"))
        .other(elsewhere, format!("lane {other} waits here"))
        .hint("let all lanes come to the same barriers: take them out of conditions that differ from lane to lane")
}
