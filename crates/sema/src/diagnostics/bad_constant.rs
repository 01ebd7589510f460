//! A constant has a value that it must not have.
//!
//! The argument of a `const` parameter must be a value of the parameter's type. Lengths of arrays must not be negative,
//! and there is no division by zero. In between, constants are integers without limit. Where a constant depends on
//! parameters, its value is checked for each instance.
//!
//! ```impala
//! fn first[const N: u8](a: [i32 * N]) -> i32 { a(0) }
//! fn f(a: [i32 * 256]) -> i32 { first(a) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn first[const N: i32](a: [i32 * N]) -> i32 { a(0) }
//! fn f(a: [i32 * 256]) -> i32 { first(a) }
//! ```

use crate::types::Fault;
use nyala_base::{Diagnostic, Span};

fn error(span: Span, message: String) -> Diagnostic {
    Diagnostic::error("bad-constant", span, message)
}

/// `value` is the argument of a parameter with values of type `ty`.
pub fn argument(span: Span, value: &str, param: &str, ty: &str) -> Diagnostic {
    error(span, format!("the constant `{value}` is no `{ty}`"))
        .label(format!("the argument of `const {param}: {ty}`"))
        .hint("declare the parameter with a type that has this value")
}

/// The type of a `const` parameter.
pub fn parameter(span: Span) -> Diagnostic {
    error(span, "constants of this type are not possible".into()).hint("write an integer type by its name, or `bool`")
}

/// Two constants are not equal, or not known to be.
pub fn different(span: Span, found: &str, expected: &str) -> Diagnostic {
    error(span, format!("found the constant `{found}`, expected `{expected}`"))
        .hint("expressions over parameters are compared as they are written: write both alike")
}

pub fn fault(span: Span, fault: Fault) -> Diagnostic {
    match fault {
        Fault::Length(n) => error(span, format!("an array in this type has the length `{}`", n.show()))
            .hint("lengths are integers from 0 to 2^40 - 1"),
        Fault::Lanes(n) => {
            error(span, format!("a vector in this type has `{}` lanes", n.show())).hint("vectors have 1 to 64 lanes")
        }
        Fault::Operation(op, a, b) => error(span, format!("`{} {} {}` has no value", a.show(), op.text(), b.show()))
            .hint("it is computed when the program is compiled"),
    }
}
