//! A value does not have the type that is expected at its place, in a program in DeepCPS or Staged-C.
//!
//! Types of DeepCPS are `bool`, `int`, `float`, `double`, `stage`, and `fn[…]` with the types of parameters. Where a parameter has none, its uses determine it. Any value may
//! be passed as a `stage`: only whether it is known counts. An integer literal becomes a `float` where one is known to be expected.
//!
//! ```text
//! let f (int n, fn[float] cont) {
//!   n*n (m)
//!   cont m
//! }
//! ```
//!
//! ## Instead
//!
//! ```text
//! let f (int n, fn[float] cont) {
//!   to_float n (x)
//!   x*x (m)
//!   cont m
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn mismatch(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found `{found}`, expected `{expected}`"))
        .label(format!("has type `{found}`"))
}

pub fn not_a_function(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found `{found}`, expected a function")).label("is called")
}

pub fn arguments(span: Span, found: usize, expected: usize) -> Diagnostic {
    let plural = if found == 1 { "" } else { "s" };
    Diagnostic::error("staging-type", span, format!("found {found} argument{plural}, expected {expected}"))
        .hint("arguments go on in the next line; the function that follows a call is the last one")
}

pub fn undetermined(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found no type for `{name}`"))
        .hint(format!("write it: `int {name}`"))
}

pub fn operand(span: Span, operator: &str, found: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("`{operator}` takes no `{found}`"))
}

/// Types as the graph has them.
pub fn foreign(span: Span, name: &str, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("`{name}` is `{found}` there, expected `{expected}`"))
        .hint("declare it with the types that it has in Impala: `int` is `i32`, `float*` and `[float]` are `&[f32]`")
}

/// In Staged-C.
pub fn needs_cast(span: Span, found: &str) -> Diagnostic {
    mismatch(span, found, "int").hint("convert it, toward zero: `int(…)`")
}

pub fn no_array(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found `{found}`, expected an array")).label("has an index")
}

/// Of an array's elements, in DeepCPS.
pub fn no_number_of_field(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(
        "staging-type",
        span,
        format!("found `{found}`, expected an aggregate with a field of that number"),
    )
    .hint("the number is a literal; declare the array's type before: `[[float, int]] points`")
}

pub fn no_field(span: Span, found: &str, name: &str, is_pointer: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error("staging-type", span, format!("`{found}` has no field `{name}`"));
    if is_pointer { diagnostic.hint(format!("a field of what it points to is `p->{name}`")) } else { diagnostic }
}

/// Where a number is expected.
pub fn whole_struct(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found `{found}`, expected a number"))
        .hint("name one of its fields")
}

pub fn arguments_in_c(span: Span, found: usize, expected: usize) -> Diagnostic {
    let plural = if found == 1 { "" } else { "s" };
    Diagnostic::error("staging-type", span, format!("found {found} argument{plural}, expected {expected}"))
}

pub fn no_result(span: Span, expected: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found no result, expected `{expected}`"))
        .hint("write `return` with a value on all ways through the function")
}

pub fn a_result(span: Span) -> Diagnostic {
    Diagnostic::error("staging-type", span, "found a result in a function that has none, of type `void`")
}

pub fn no_variable(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("staging-type", span, format!("found `{found}`, expected the type of a value"))
}

pub fn stage_assigned(span: Span) -> Diagnostic {
    Diagnostic::error("staging-type", span, "a stage can't be assigned").hint("declare another one: `stage t = …;`")
}
