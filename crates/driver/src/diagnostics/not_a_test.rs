//! A function has the name of a test, but cannot be one.
//!
//! `nyala test` runs functions whose name begins with `test` and that take nothing. The type of their result must be
//! written out, because it decides when the test passes: `fn() -> ()` passes if it returns, and `fn() -> bool` if it
//! returns `true`.
//!
//! ```sh
//! # square.impala: fn test_square() { square(3) == 9 }
//! nyala test square.impala
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn square(x: i32) -> i32 { x * x }
//! fn test_square() -> bool { square(3) == 9 }
//! fn test_squares() -> () { for i in range(0, 9) { assert(square(i) == i * i) } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` has the name of a test, but cannot be one");
    Diagnostic::warning("not-a-test", span, message)
        .label("has no result of type `()` or `bool`")
        .hint("write the result: `-> ()` or `-> bool`")
}
