//! A value that becomes part of the code is known at run time only.
//!
//! Some operands are not computed by a program, but written into its code: the interval of `pipeline`, the channel that a kernel reads, a
//! text that a kernel prints, a line for tools of circuits. They must be known when the program is compiled, after partial evaluation.
//!
//! ```impala
//! extern "thorin" {
//!     fn hls(i32, fn() -> ()) -> ();
//!     fn pipeline(i32, i32, i32, fn(i32) -> ()) -> ();
//! }
//! extern fn clear(interval: i32, a: &mut [i32]) -> () {
//!     with hls(0) {
//!         for i in pipeline(interval, 0, 64) { a(i) = 0 }
//!     }
//! }
//! ```
//!
//! ## Instead
//!
//! A literal is known, and so is a parameter for which a function is specialized with `@`.
//!
//! ```impala
//! extern "thorin" {
//!     fn hls(i32, fn() -> ()) -> ();
//!     fn pipeline(i32, i32, i32, fn(i32) -> ()) -> ();
//! }
//! fn @cleared(interval: i32, a: &mut [i32]) -> () {
//!     with hls(0) {
//!         for i in pipeline(interval, 0, 64) { a(i) = 0 }
//!     }
//! }
//! extern fn clear(a: &mut [i32]) -> () { cleared(2, a) }
//! ```

use crate::{Diagnostic, Span};

/// `what` is the value, with its article.
pub fn error(span: Span, what: &str) -> Diagnostic {
    let message = format!("{what} becomes part of the code, and is known at run time only");
    Diagnostic::error("must-be-known", span, message).hint("write a literal, or specialize the function with `@`")
}
