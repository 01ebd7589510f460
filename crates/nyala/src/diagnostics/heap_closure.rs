//! A function is a value at run time and captures something, which lies on the heap.
//!
//! Partial evaluation dissolves functions that are passed around. One that is left captures its values in an environment,
//! memory that each evaluation of the lambda allocates, and its calls are indirect. That is right where the program chooses
//! functions at run time, and slow where it did not mean to. Nothing is reported unless `--deny heap-closure` asks for it; then
//! it is an error. `nyala explain` lists these functions with the reasons, and says which of the environments are freed.
//!
//! ```impala
//! fn apply(n: i32, f: fn(i32) -> i32) -> i32 {
//!     if n == 0 { f(n) } else { apply(n - 1, |x| f(x) * 2) }
//! }
//! extern fn g() -> i32 { apply(3, |x| x + 1) }
//! extern fn h(n: i32) -> i32 { apply(n, |x| x + 1) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn @(?n) apply(n: i32, f: fn(i32) -> i32) -> i32 {
//!     if n == 0 { f(n) } else { apply(n - 1, |x| f(x) * 2) }
//! }
//! extern fn g() -> i32 { apply(3, |x| x + 1) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `captures` and `why` are in words; `used` is where the function becomes a value.
pub fn warning(span: Span, captures: &str, why: &str, used: Span) -> Diagnostic {
    let message = "this function is a value at run time, with an environment on the heap";
    Diagnostic::warning("heap-closure", span, message)
        .label(format!("captures {captures}"))
        .other(used, format!("becomes a value here: {why}"))
        .hint("let what takes the function be specialized, by `@` at its declaration or at the call; `nyala explain` says why it is not")
}
