//! The condition of a `static_assert` is not known during compilation.
//!
//! `static_assert(condition, "text")` requires that partial evaluation knows the condition. Here it depends on a value
//! that is only known at run time, or the function is not specialized as intended.
//!
//! ```impala
//! fn @scaled(x: i32, by: i32) -> i32 {
//!     static_assert(by > 0, "the factor is positive");
//!     x * by
//! }
//! extern fn times(x: i32, y: i32) -> i32 { scaled(x, y) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn @scaled(x: i32, by: i32) -> i32 {
//!     static_assert(by > 0, "the factor is positive");
//!     x * by
//! }
//! extern fn twice(x: i32) -> i32 { scaled(x, 2) }
//! ```
//!
//! or let the program test it when it runs:
//!
//! ```impala
//! extern fn times(x: i32, by: i32) -> i32 {
//!     assert(by > 0);
//!     x * by
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("static-assert-unknown", span, format!("static assertion is not decided: {text}"))
        .label("depends on a value that partial evaluation does not know")
        .hint("let the function be specialized by a filter, `fn @f(…)`, or use `assert`")
}
