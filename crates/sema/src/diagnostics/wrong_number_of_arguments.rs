//! A call passes more or fewer arguments than the function takes.
//!
//! A function accepts one more argument after those for its parameters: the continuation that is called with the
//! result. So a call of `fn(i32) -> i32` passes one number, or a number and an `fn(i32) -> !`. There are no default
//! arguments and no overloading. The variables of a `for` loop are the arguments that the generator passes to the body.
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

/// `expected` describes the arguments that the callee takes, and `missing` are the parameters without an argument.
pub fn of_call(span: Span, found: usize, expected: &str, missing: Vec<String>) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    let message = format!("found {found} argument{s}, expected {expected}");
    let diagnostic = Diagnostic::error("wrong-number-of-arguments", span, message);
    match &missing[..] {
        [] => diagnostic,
        _ => diagnostic.label(format!("nothing for `{}`", missing.join("`, `"))),
    }
}

/// Adds the declaration of the callee; `span` is where it is, if that is to be shown.
pub fn declared(diagnostic: Diagnostic, signature: &str, span: Option<Span>) -> Diagnostic {
    let diagnostic = diagnostic.hint(format!("it is `{signature}`"));
    match span {
        Some(span) => diagnostic.other(span, "declared here"),
        None => diagnostic,
    }
}

pub fn loop_variables(span: Span, found: usize, expected: usize) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    let message = format!("found {found} loop variable{s}, the generator gives {expected}");
    let hint = match expected {
        0 => "write `for g() { … }`, without variables",
        _ => "write a name, or `_`, for each: `for x, y in g() { … }`",
    };
    Diagnostic::error("wrong-number-of-arguments", span, message).hint(hint)
}

/// If `all`, no argument may be left out. The parameters are `declared` there.
pub fn type_arguments(span: Span, found: usize, expected: usize, all: bool, declared: Option<Span>) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    let message = format!("found {found} type argument{s}, expected {expected}");
    let diagnostic = Diagnostic::error("wrong-number-of-arguments", span, message).hint(match all {
        true => "a type needs all of its arguments: `Name[A, B]`",
        false => "arguments that are left out are inferred",
    });
    match declared {
        Some(declared) => diagnostic.other(declared, "declared here"),
        None => diagnostic,
    }
}
