//! A value does not have the type that is expected at its place, in a program in Sierra.
//!
//! Numbers, and `bool`, become each other as in C. A pointer becomes one to `void`, or to constants; any other conversion of pointers is written
//! as a cast.
//!
//! ```text
//! void* malloc(size_t n);
//! int* make(long n) { return malloc(4 * n); }
//! ```
//!
//! ## Instead
//!
//! ```text
//! void* malloc(size_t n);
//! int* make(long n) { return (int*) malloc(4 * n); }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn mismatch(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found `{found}`, expected {expected}"))
}

pub fn cast(span: Span, found: &str, to: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("a `{found}` cannot become a `{to}`"))
}

/// It becomes the other only if that is written.
pub fn needs_cast(span: Span, found: &str, to: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found `{found}`, expected `{to}`"))
        .hint(format!("write the conversion: `({to})`"))
}

pub fn operands(span: Span, operator: &str, left: &str, right: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{operator}` takes no `{left}` and `{right}`"))
}

pub fn operand(span: Span, operator: &str, found: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{operator}` takes no `{found}`"))
}

pub fn arguments(span: Span, found: usize, expected: usize, declared: Span) -> Diagnostic {
    let s = if found == 1 { "" } else { "s" };
    let error = Diagnostic::error("sierra-type", span, format!("found {found} argument{s}, expected {expected}"));
    if declared == Span::NONE { error } else { error.other(declared, "declared here") }
}

pub fn no_place(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found a value, {what} needs a variable or memory"))
}

pub fn constant(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-type", span, "this is constant, and cannot be changed")
        .hint("leave out `const` where it is declared")
}

pub fn incomplete(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{ty}` has no size here"))
        .hint("only pointers to it can be declared")
}

pub fn no_function(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-type", span, "only functions can be called, by their names")
}

pub fn function_as_value(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{name}` is a function, expected a value"))
        .hint(format!("call it: `{name}(…)`"))
}

pub fn type_as_value(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{name}` is a type, expected a value"))
}

pub fn differs(span: Span, name: &str, before: Span) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{name}` is declared with another type"))
        .other(before, "the first time")
}

pub fn too_many(span: Span, found: usize, expected: usize) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found {found} values, expected at most {expected}"))
}

pub fn no_return(span: Span, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found no value, expected a `{expected}`"))
}

pub fn too_deep(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("a type of more than {limit} pointers and arrays within each other"))
        .hint("put one of them into a `struct`")
}

pub fn foreign(span: Span, name: &str, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("other code has `{name}` as `{found}`, here it is `{expected}`"))
}

pub fn print(span: Span, found: usize, expected: usize) -> Diagnostic {
    let message = format!("the text has {expected} places `%`, and there are {found} values");
    Diagnostic::error("sierra-type", span, message)
}

pub fn not_deduced(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-type", span, "nothing says which type `auto` is")
        .hint("it is that of the value of a variable in a function: `auto n = f();`")
}

/// In VecImp: behind it nothing would know which lanes have returned.
pub fn inner_return(span: Span) -> Diagnostic {
    Diagnostic::error("sierra-type", span, "`return` ends a function, and neither a branch nor the body of a loop")
        .hint("assign the value to a variable, and return that at the end")
}
