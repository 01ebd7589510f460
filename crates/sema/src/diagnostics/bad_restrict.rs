//! `restrict` stands before a parameter that is not a pointer.
//!
//! It promises that memory which is modified through this pointer is not accessed in other ways while the function
//! runs.
//!
//! ```impala
//! fn set(restrict n: i32, p: &mut i32) -> () { *p = n }
//! fn main() -> () { let mut x = 1; set(2, &mut x) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn set(n: i32, restrict p: &mut i32) -> () { *p = n }
//! fn main() -> () { let mut x = 1; set(2, &mut x) }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("bad-restrict", span, format!("found `{ty}`, expected a pointer after `restrict`"))
        .hint("leave out `restrict`, which is a promise about the memory that a pointer leads to")
}
