//! Memory of a block is reserved where there is no block, or in a size that is none.
//!
//! `reserve_shared` gives the work items of a block memory that they have in common, as long as the block runs. Outside of a kernel there
//! is no block. Its size is in bytes, and not negative.
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

use nyala_base::{Diagnostic, Span};

/// There is no kernel around it.
pub(crate) fn outside(span: Span) -> Diagnostic {
    Diagnostic::error("bad-shared-memory", span, "`reserve_shared` stands outside of a kernel")
        .hint("call it in the body of a launch, or use `alloc`")
}

/// The size is negative.
pub(crate) fn negative(span: Span, bytes: i64) -> Diagnostic {
    Diagnostic::error("bad-shared-memory", span, format!("`reserve_shared` reserves {bytes} bytes"))
        .hint("reserve as much as the work items of a block use together")
}
