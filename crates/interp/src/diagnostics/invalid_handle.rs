//! `sync` waits for something that is no thread.
//!
//! `spawn` gives a handle, a number, and `sync` takes it once. A number that is no handle, or one that was waited for
//! before, may be the handle of another thread in compiled code.
//!
//! ```impala
//! fn main() -> i32 {
//!     let h = spawn(|| ());
//!     sync(h);
//!     sync(h);
//!     0
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main() -> i32 {
//!     let h = spawn(|| ());
//!     sync(h);
//!     0
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(handle: i32) -> Diagnostic {
    let message = format!("`sync` of {handle}, which is no thread's handle, or was waited for before");
    Diagnostic::error("invalid-handle", Span::NONE, message).hint("call `sync` once for each handle that `spawn` gives")
}
