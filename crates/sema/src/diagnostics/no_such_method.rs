//! A value has no method of this name.
//!
//! The methods of a type are the functions of its `impl` blocks, and those of traits that it implements. A type
//! parameter has the methods of its bounds.
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! impl Point { fn sum(self: &Point) -> i32 { self.x + self.y } }
//! fn f(p: Point) -> i32 { p.total() }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! impl Point { fn sum(self: &Point) -> i32 { self.x + self.y } }
//! fn f(p: Point) -> i32 { p.sum() }
//! ```

use super::{no_such_field, unknown_name, unmet_bound};
use crate::exports::Exports;
use nyala_base::{Diagnostic, Span};

/// If `is_function`, there is a function of this name. `with_method` are libraries that are not used and have a method of this
/// name, `with_function` those that have a function. `length` is the field that may be the length.
pub fn error(
    span: Span,
    of: &str,
    name: &str,
    (similar, length): (Option<&str>, Option<&str>),
    is_function: bool,
    (with_method, with_function): (&[&Exports], &[&Exports]),
) -> Diagnostic {
    let diagnostic = Diagnostic::error("no-such-method", span, format!("`{of}` has no method or field `{name}`"));
    match (name, similar) {
        _ if !with_method.is_empty() => diagnostic.hint(unknown_name::in_libraries(with_method)).hint_similar(similar),
        (_, Some(_)) => diagnostic.hint_similar(similar),
        ("len" | "length" | "size" | "count", _) => diagnostic.hint(no_such_field::length(length)),
        _ if is_function => diagnostic.hint(format!("`{name}` is a function: `{name}(…)`")),
        _ if !with_function.is_empty() => {
            diagnostic.hint(format!("`{name}(…)` is a function: {}", unknown_name::in_libraries(with_function)))
        }
        _ => diagnostic.hint(format!("write `impl {of} {{ fn {name}(self: &{of}) … }}`, or a bound that has it")),
    }
}

/// An impl with the method has these bounds, which types do not meet.
pub fn unmet(span: Span, of: &str, name: &str, bounds: &[(String, String)]) -> Diagnostic {
    let message = format!("`{of}` has no method `{name}`, whose impl has bounds that are not met");
    bounds.iter().fold(Diagnostic::error("no-such-method", span, message), |diagnostic, (ty, bound)| {
        diagnostic.hint(format!("`{ty}` does not meet `{bound}`: {}", unmet_bound::remedy(ty, bound, false)))
    })
}

pub fn of_trait(span: Span, of: &str, name: &str, similar: Option<&str>) -> Diagnostic {
    let diagnostic = Diagnostic::error("no-such-method", span, format!("trait `{of}` has no method `{name}`"));
    match similar {
        Some(_) => diagnostic.hint_similar(similar),
        None => diagnostic.hint("an `impl` of a trait has its methods only; others go into `impl Type { … }`"),
    }
}

pub fn no_receiver(span: Span, of: &str, name: &str) -> Diagnostic {
    Diagnostic::error("no-such-method", span, format!("`{name}` takes no receiver"))
        .hint(format!("call it as `{of}::{name}()`"))
}
