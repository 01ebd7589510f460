//! A type nests too deep.
//!
//! Types may nest some hundred levels, and up to ten thousand aliases may depend on each other.
//!
//! ```text
//! fn f() -> () { let x0 = (1, 1); let x1 = (x0, x0); … let x999 = (x998, x998); }
//! ```
//!
//! ## Instead
//!
//! Use an array, or a struct with a pointer:
//!
//! ```impala
//! struct Node { value: i32, next: &Node }
//! fn f() -> () { let x = [0, .. 1000]; }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("type-too-deep", span, "this type nests too deep")
        .hint("use an array, or a struct with a pointer to the rest")
}

pub fn aliases(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("type-too-deep", span, format!("more than {limit} type aliases depend on each other"))
        .hint("name the type itself")
}
