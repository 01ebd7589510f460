//! A type stands where a constant is expected, or a constant where a type is.
//!
//! In brackets, each argument is of the kind of its parameter: `T` takes a type, `const N: i32` takes a constant. That
//! is a literal, a `static`, a `const` parameter, or an expression over these in braces.
//!
//! ```impala
//! struct Row[T, const N: i32] { cells: [T * N] }
//! fn f(row: &Row[4, 4]) -> i32 { row.cells(0) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Row[T, const N: i32] { cells: [T * N] }
//! fn f(row: &Row[i32, 4]) -> i32 { row.cells(0) }
//! ```

use nyala_base::{Diagnostic, Span};

/// A constant stands for a type.
pub fn constant(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("argument-kind", span, format!("found {what}, expected a type"))
        .label("no type, but a value")
        .hint("elements of arrays are `a(i)`; parameters that take constants are declared as `const N: i32`")
}

/// A type stands for a constant.
pub fn type_argument(span: Span, what: &str, param: &str) -> Diagnostic {
    Diagnostic::error("argument-kind", span, format!("found {what}, expected a constant"))
        .label(format!("the argument of the parameter `const {param}`"))
        .hint("constants are literals, statics, `const` parameters, or expressions in braces: `{n + 1}`")
}
