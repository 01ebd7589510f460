//! An intrinsic is given a number that it does not take.
//!
//! `vectorize` takes 1 to 64 lanes. An `atomic` names its operation by a number from 0 to 16, of which some are only for integers or only
//! for floats. The memory order of an atomic operation or a `fence` is 0, 1, 2, 4, 5, 6 or 7.
//!
//! ```impala
//! extern fn clear(a: &mut [i32]) -> () {
//!     for i in vec(100, 0, 6400) { a(i) = 0 }
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern fn clear(a: &mut [i32]) -> () {
//!     for i in vec(64, 0, 6400) { a(i) = 0 }
//! }
//! ```

use crate::{Diagnostic, Span};

fn error(span: Span, message: String, hint: &str) -> Diagnostic {
    Diagnostic::error("intrinsic-value", span, message).hint(hint)
}

pub fn of_lanes(span: Span, n: i32) -> Diagnostic {
    error(span, format!("a `vectorize` has {n} lanes, which no vector code has"), "write 1 to 64")
}

/// `name`: that of the operation, if there is one of this number. `ty`: that of the values.
pub fn of_atomic(span: Span, number: u64, name: Option<&&str>, ty: &str) -> Diagnostic {
    match name {
        Some(name) => {
            let message = format!("the operation {number} of an `atomic`, `{name}`, does not work on `{ty}`");
            error(span, message, "name one for this type, or exchange values until it has worked (`cmpxchg`)")
        }
        None => error(span, format!("an `atomic` has no operation {number}"), "write 0 to 16"),
    }
}

/// `intrinsic`: that which has the memory order.
pub fn of_order(span: Span, order: u64, intrinsic: &str) -> Diagnostic {
    error(span, format!("there is no memory order {order}, as of this `{intrinsic}`"), "write 0 to 2, or 4 to 7")
}
