//! The initializer of a static is not constant.
//!
//! Statics have their values before the program runs. Initializers may use literals, operators, struct, tuple and array
//! values, casts, functions, addresses of statics, and immutable statics. They may not call functions, assign, or use
//! `static mut` and local variables.
//!
//! ```impala
//! fn g() -> i32 { 1 }
//! static s = g();
//! ```
//!
//! ## Instead
//!
//! ```impala
//! static s = 1;
//! static mut t: i32;
//! fn g() -> i32 { 1 }
//! fn main() -> i32 { t = g(); t - s }
//! ```

use nyala_base::{Diagnostic, Span};

/// `why` says what about the place is not.
pub fn error(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("not-constant", span, "initializer of a static is not constant")
        .label(why)
        .hint("leave it out and assign a `static mut` when the program runs, or write a function")
}
