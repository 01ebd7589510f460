//! A kernel uses memory of the host.
//!
//! A device has memory of its own. A kernel gets copies of the numbers and structs that it captures, made when it is launched. What it
//! writes to them is lost, and an address of the host's memory means nothing to the device. The host's memory is that of local
//! variables, of `static mut`, and of `~` and `alloc`.
//!
//! ```impala
//! extern "device" { fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern fn count() -> i32 {
//!     let mut n = 0;
//!     for cuda(0, (1, 1, 1), (1, 1, 1)) { n += 1 }
//!     n
//! }
//! ```
//!
//! ## Instead
//!
//! Let the kernel write to memory of the device, and copy it back. `std::device` has buffers of a device:
//!
//! ```impala
//! use std::device::*;
//! extern fn count() -> i32 {
//!     let dev = cuda(0);
//!     let counter = dev.buffer[i32](1);
//!     counter.fill(0);
//!     let at = counter.data;
//!     for i in dev.range(0, 1) { at(i) = at(i) + 1 }
//!     let n = counter.get(0i64);
//!     counter.free();
//!     n
//! }
//! ```

use nyala_base::{Diagnostic, Span};

const HINT: &str = "allocate device memory, copy the contents there, and pass its address";

/// A kernel writes a variable of the host at `span`.
pub(crate) fn written(span: Span) -> Diagnostic {
    Diagnostic::error(
        "host-memory-in-kernel",
        span,
        "a kernel writes a variable of the host, and has a copy of it only",
    )
    .hint("write to device memory instead, and copy it back after the kernel")
}

/// A launch at `span` passes an address. `what` it is the address of.
pub(crate) fn passed(span: Span, what: &str) -> Diagnostic {
    let message = format!("a kernel gets {what}, which lies in the host's memory");
    Diagnostic::error("host-memory-in-kernel", span, message).hint(HINT)
}

/// A kernel for a platform uses a `static mut` of this name; who reports it knows the place.
pub(crate) fn used(platform: &str, name: &str) -> Diagnostic {
    let message = format!("a kernel for `{platform}` uses `static mut {name}`, which lies in the host's memory");
    Diagnostic::error("host-memory-in-kernel", Span::NONE, message).hint(HINT)
}
