//! Expressions, types or blocks nest too deep.
//!
//! The compiler accepts a few hundred levels of brackets and blocks, and some thousand operations in one expression.
//! People write less, but generated programs may exceed these limits.
//!
//! ```text
//! let sum = (((((…((a + b) + c) + …) + z;
//! ```
//!
//! ## Instead
//!
//! Give inner parts names, or move them into functions; put long tables into arrays:
//!
//! ```impala
//! fn f(a: i32, b: i32, c: i32) -> i32 {
//!     let ab = a + b;
//!     ab + c
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn brackets(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("nesting-too-deep", span, format!("nested deeper than {limit} levels"))
        .hint("give the inner parts names with `let`, or move them into functions")
}

pub fn operations(span: Span, limit: u16) -> Diagnostic {
    Diagnostic::error("nesting-too-deep", span, format!("expression is deeper than {limit} operations"))
        .hint("give the inner parts names with `let`")
}
