//! A thread uses a mutable variable of the function that started it.
//!
//! The body of `spawn` runs on a thread of its own, perhaps after the function that started it has returned. Mutable
//! variables are shared, not copied, and may no longer exist then. Values that never change are copied.
//!
//! ```impala
//! fn main() -> i32 {
//!     let mut x = 1;
//!     let h = spawn(|| x = 2);
//!     sync(h);
//!     x - 2
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main() -> i32 {
//!     let x = alloc[i32](1);
//!     let h = spawn(|| x(0) = 2);
//!     sync(h);
//!     x(0) - 2
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str, declared: Span) -> Diagnostic {
    let message = format!("the variable `{name}` is shared with a thread that may outlive it");
    Diagnostic::error("spawn-captures-mut", span, message)
        .label("used in the thread")
        .other(declared, "declared `mut` here")
        .hint("copy it before (`let copy = …`), or put shared data on the heap, with `alloc`")
}
