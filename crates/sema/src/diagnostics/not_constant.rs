//! The initializer of a static, or the argument of a `const` parameter, is not constant.
//!
//! Statics have their values before the program runs. Initializers may use literals, operators, struct, tuple and array
//! values, casts, functions, addresses of statics, and immutable statics. An initializer that calls functions or has
//! control flow is run when the program is compiled. Its value must then consist of numbers, not of addresses or
//! functions, and it may use neither `static mut` nor local variables of an enclosing function.
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

/// `why` is the label of the part at `span`, which is not constant.
pub fn error(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("not-constant", span, "initializer of a static is not constant")
        .label(why)
        .hint("declare a `static mut` without a value, and assign it when the program runs")
}

/// An argument for a `const` parameter.
pub fn argument(span: Span) -> Diagnostic {
    Diagnostic::error("not-constant", span, "argument of a `const` parameter is not constant")
        .label("not known when the program is compiled")
        .hint("constants are literals, statics, `const` parameters, and sums and products of these in braces")
}
