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

pub fn no_element(span: Span, found: i64, length: u64) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found the number {found}, of {length} elements"))
}

/// Overloads of a function, none of which takes the arguments, or several as well.
pub fn overloads(span: Span, name: &str, found: &[String], fitting: &[Span]) -> Diagnostic {
    let found = if found.is_empty() { "nothing".into() } else { format!("`{}`", found.join("`, `")) };
    let error = if fitting.is_empty() {
        Diagnostic::error("sierra-type", span, format!("no `{name}` takes {found}"))
    } else {
        let hint = "convert an argument: `(int) x`";
        Diagnostic::error("sierra-type", span, format!("several `{name}` take {found} equally well")).hint(hint)
    };
    fitting.iter().take(3).fold(error, |error, place| error.other(*place, "this one"))
}

pub fn several(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("there are several functions `{name}`"))
        .hint("its type decides where it becomes a pointer to a function: `int (*f)(int) = g;`")
}

pub fn template_args(span: Span, found: usize, expected: usize, declared: Span) -> Diagnostic {
    let message = format!("found {found} arguments of a template, expected {expected}");
    Diagnostic::error("sierra-type", span, message).other(declared, "declared here")
}

pub fn endless_template(span: Span, depth: usize, number: usize) -> Diagnostic {
    let message = format!("templates need each other more than {depth} deep, or more than {number} times");
    Diagnostic::error("sierra-type", span, message).hint("`if constexpr (n > 0) …` ends a recursion")
}

pub fn no_operator(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{name}` needs a parameter that is a struct"))
}

pub fn operator_arity(span: Span, name: &str, found: usize) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("`{name}` cannot have {found} parameters"))
}

pub fn no_return(span: Span, expected: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("found no value, expected a `{expected}`"))
}

pub fn too_deep(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("a type of more than {limit} pointers and arrays within each other"))
        .hint("put one of them into a `struct`")
}

/// A field with which a struct becomes too large to be looked through.
pub fn too_large(span: Span, nested: u32, leaves: u64) -> Diagnostic {
    let message = format!("structs and arrays more than {nested} deep in each other, or of more than {leaves} values");
    Diagnostic::error("sierra-type", span, message).hint("put a part behind a pointer, or equal fields into an array")
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

/// A specialization fits no template.
pub fn no_template(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-type", span, format!("no template `{name}` has these parameters and this result"))
        .hint("a specialization has the template's, with types in the places of its parameters")
}
