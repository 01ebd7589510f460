//! `sync` waits for something that is not a thread.
//!
//! `spawn` returns a handle, which is a number, and `sync` may wait for it once. In compiled code, a number that is not
//! a handle, or one that was waited for before, may be the handle of another thread.
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
    let message = format!("`sync` of {handle}, which is not the handle of a thread, or was waited for before");
    Diagnostic::error("invalid-handle", Span::NONE, message)
        .hint("call `sync` once for each handle that `spawn` returns")
}
