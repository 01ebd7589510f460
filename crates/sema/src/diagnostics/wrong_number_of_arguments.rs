//! A call passes more or fewer arguments than the function takes.
//!
//! Besides its parameters a function takes one more: where to go on, a continuation. So a call of `fn(i32) -> i32` passes
//! one number, or a number and an `fn(i32) -> !`. There are no default arguments and no overloading. The variables of a
//! `for` loop are the arguments that the generator passes to the body.
//!
//! ```impala
//! fn add(x: i32, y: i32) -> i32 { x + y }
//! fn f() -> i32 { add(1) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn add(x: i32, y: i32) -> i32 { x + y }
//! fn f() -> i32 { add(1, 2) }
//! ```

use nyala_base::{Diagnostic, Span};

/// What is called is of type `callee`.
pub fn of_call(span: Span, found: usize, expected: &str, callee: &str) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    Diagnostic::error("wrong-number-of-arguments", span, format!("found {found} argument{s}, expected {expected}"))
        .hint(format!("what is applied here is a `{callee}`"))
}

pub fn loop_variables(span: Span, found: usize, expected: usize) -> Diagnostic {
    let message = format!("found {found} loop variables, the generator gives {expected}");
    let hint = match expected {
        0 => "write `for g() { … }`, without variables",
        _ => "write a name, or `_`, for each: `for x, y in g() { … }`",
    };
    Diagnostic::error("wrong-number-of-arguments", span, message).hint(hint)
}

/// `all`: none may be left out.
pub fn type_arguments(span: Span, found: usize, expected: usize, all: bool) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    let message = format!("found {found} type argument{s}, expected {expected}");
    Diagnostic::error("wrong-number-of-arguments", span, message).hint(match all {
        true => "in a type all of them are written: `Name[A, B]`",
        false => "those that are left out are inferred",
    })
}
