//! A function has the name of a benchmark, but cannot be one.
//!
//! `nyala bench` measures functions whose name begins with `bench`. It calls them without arguments. Their result is `()`, or a
//! `bool` or number, which the compiler then has to compute.
//!
//! ```sh
//! # squares.impala: fn bench_squares(n: i32) -> i32 { … }
//! nyala bench squares.impala
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn squares(n: i32) -> i32 {
//!     let mut sum = 0;
//!     for i in range(0, n) { sum += i * i; }
//!     sum
//! }
//! fn bench_squares() -> i32 { squares($100) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `why` says what the function has.
pub fn error(span: Span, name: &str, why: &str) -> Diagnostic {
    let message = format!("`{name}` has the name of a benchmark, but cannot be one");
    Diagnostic::error("not-a-benchmark", span, message)
        .label(why)
        .hint("write `fn bench_…() -> ()`, or with a result of type `bool`, `i32`, `f64` or another number")
}
