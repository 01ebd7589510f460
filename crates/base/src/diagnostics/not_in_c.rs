//! A type that C does not have goes to C or comes from there.
//!
//! C calls exported functions, and functions of `extern "C"` are C's. Numbers, bools, pointers, structs, tuples and arrays cross that
//! border, the last two as structs, and functions as arguments of exported functions. Functions that are results, or that take functions
//! themselves, vectors and `()` as a parameter do not: C has no such values.
//!
//! ```text
//! extern fn adder(n: i32) -> fn(i32) -> i32 { |x| x + n }
//! ```
//!
//! ## Instead
//!
//! Export the function itself, with what it captures as parameters, or let C give a function that gets the result:
//!
//! ```impala
//! extern fn add(n: i32, x: i32) -> i32 { x + n }
//! extern fn each_sum(n: i32, f: fn(i32) -> ()) -> () {
//!     for i in range(0, 3) { f(i + n) }
//! }
//! ```

use crate::{Diagnostic, Span};

/// `what` names the value, as in "a parameter of type `T`".
pub fn error(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("not-in-c", span, format!("{what} cannot be passed to C"))
        .hint("numbers, bools, pointers, structs, tuples and arrays can be: pass a pointer, or the parts one by one")
}
