//! The initializer of a static is not constant.
//!
//! Statics have their values before the program runs. Initializers may use literals, operators, struct, tuple and array
//! values, casts, functions, addresses of statics, and immutable statics. They may call functions, and have control flow:
//! such an initializer is run when the program is compiled. What it gives must consist of numbers then, not of addresses
//! or functions, and it may use neither `static mut` nor local variables of the function around.
//!
//! ```impala
//! static mut t = 1;
//! static s = t + 1;
//! fn main() -> i32 { s }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn square(x: i32) -> i32 { x * x }
//! static s = square(3);
//! static mut t: i32;
//! fn main() -> i32 { t = s; t - 9 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `why` says what about the place is not.
pub fn error(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("not-constant", span, "initializer of a static is not constant")
        .label(why)
        .hint("leave it out and assign a `static mut` when the program runs")
}
