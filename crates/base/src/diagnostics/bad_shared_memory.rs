//! Memory of a block is reserved where there is no block, or in a size that a block cannot have.
//!
//! `reserve_shared` gives the work items of a block memory that they have in common, as long as the block runs. Outside of a kernel there
//! is no block. Its size is in bytes, not negative, at most what the device has (227 KiB on NVIDIA's GPUs, 64 KiB on AMD's), and known when the
//! kernel is compiled.
//!
//! ```impala
//! extern "thorin" { fn reserve_shared[T](i32) -> &mut[3][T]; }
//! extern fn f(n: i32) -> i32 {
//!     let p = reserve_shared[i32](4);
//!     p(0) = n;
//!     p(0)
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "device" { fn cuda(i32, (i32, i32, i32), (i32, i32, i32), fn() -> ()) -> (); }
//! extern "thorin" { fn reserve_shared[T](i32) -> &mut[3][T]; }
//! extern fn f(n: i32, out: &mut [i32]) -> () {
//!     for cuda(0, (1, 1, 1), (1, 1, 1)) {
//!         let p = reserve_shared[i32](4);
//!         p(0) = n;
//!         out(0) = p(0)
//!     }
//! }
//! ```

use crate::{Diagnostic, Span};

/// There is no kernel around it.
pub fn outside(span: Span) -> Diagnostic {
    Diagnostic::error("bad-shared-memory", span, "`reserve_shared` stands outside of a kernel")
        .hint("call it in the body of a launch, or use `alloc`")
}

/// The size is negative.
pub fn negative(span: Span, bytes: i64) -> Diagnostic {
    Diagnostic::error("bad-shared-memory", span, format!("`reserve_shared` reserves {bytes} bytes"))
        .hint("reserve as much as the work items of a block use together")
}

/// The size is known at run time only.
pub fn unknown(span: Span) -> Diagnostic {
    let message = "`reserve_shared` reserves memory in a size that is known at run time only";
    Diagnostic::error("bad-shared-memory", span, message)
        .hint("write a literal, the most that is needed, or specialize the function with `@`")
}

/// A kernel reserves more than the `most` bytes that `which`, as in "a block", has.
pub fn too_much(span: Span, bytes: u64, most: u64, which: &str) -> Diagnostic {
    let message = format!("a kernel reserves {bytes} bytes of memory of the block, and {which} has at most {most}");
    Diagnostic::error("bad-shared-memory", span, message)
        .hint("let a block work on a smaller tile, or keep what is large in memory of the device")
}
