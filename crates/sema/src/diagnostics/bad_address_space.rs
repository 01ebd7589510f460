//! An address space is neither a number below 256 nor `global`, `texture`, `shared`, `constant` or `private`.
//!
//! The type of a pointer to device memory names the address space that it points to: `&[1]T` or `&mut shared [i32]`.
//! Pointers to memory of the host name none.
//!
//! ```impala
//! fn f(p: &[300]i32) -> () {}
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(p: &[1]i32) -> () {}
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("bad-address-space", span, format!("there is no address space `{text}`"))
        .hint("global memory is 1, textures 2, shared memory 3, constants 4, private memory 5")
}
