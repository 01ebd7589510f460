//! An address space is a number below 256, or one of the words `global`, `texture`, `shared`, `constant`, `private`.
//!
//! Pointers of device memory say where they point to: `&[1]T` and `&mut shared [i32]`. Pointers of the host have none.
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
