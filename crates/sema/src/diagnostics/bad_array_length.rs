//! The length of an array is no constant.
//!
//! The length is a part of an array's type, so it must be known when the program is compiled: an integer literal, a `static`
//! with such a value, or sums and products of these. An array whose length is known at run time only lies on the heap, behind a
//! pointer `&mut [T]`.
//!
//! ```impala
//! fn f(n: i32) -> () { let a = [0, .. n]; }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! static n = 16;
//! fn f() -> () { let a = [0, .. n]; }
//! fn g(n: i32) -> () { let a = alloc_i32(n as i64); }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("bad-array-length", span, "found no constant length for the array").hint(
        "lengths are integer literals or statics; arrays of a length known at run time lie on the heap, as of `alloc_i32(n)`",
    )
}
