//! A function is a value at run time and captures variables, so its environment lies on the heap.
//!
//! Partial evaluation usually removes functions that are passed as values. A function that remains keeps its captured
//! values in an environment, which is allocated each time the lambda is evaluated, and its calls are indirect. This is
//! right where a program chooses functions at run time, and slow where that is not intended. It is reported only with
//! `--deny heap-closure`, as an error. `nyala explain` lists these functions with the reasons, and says which
//! environments are freed.
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

/// `captures` lists the captured values, and `why` says why the function becomes a value at `used`.
pub fn warning(span: Span, captures: &str, why: &str, used: Span) -> Diagnostic {
    let message = "this function is a value at run time, with an environment on the heap";
    Diagnostic::warning("heap-closure", span, message)
        .label(format!("captures {captures}"))
        .other(used, format!("becomes a value here: {why}"))
        .hint("specialize the function that takes it, with `@` at its declaration or at the call; `nyala explain` says why it is not")
}
