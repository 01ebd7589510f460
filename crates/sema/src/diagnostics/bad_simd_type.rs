//! The lanes of a `simd` type are neither numbers nor `bool`, or there are not 1 to 64 of them.
//!
//! ```impala
//! fn f(x: simd[(i32, i32) * 4]) -> () {}
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: simd[i32 * 4], y: simd[i32 * 4]) -> () {}
//! ```

use nyala_base::{Diagnostic, Span};

/// If `elem_fits`, the number of lanes is wrong, else their type `elem`.
pub fn error(span: Span, elem: &str, lanes: u64, max: u64, elem_fits: bool) -> Diagnostic {
    let message = match elem_fits {
        true => format!("found {lanes} lanes, expected 1 to {max}"),
        false => format!("found lanes of `{elem}`, expected a number or `bool`"),
    };
    Diagnostic::error("bad-simd-type", span, message).hint("for other types or lengths use an array, `[T * n]`")
}
