//! A generic function needs itself for ever larger types, or a generic type contains itself with ever larger arguments.
//!
//! The compiler makes an instance for each type that is used. If each instance needs another one, there would be
//! infinitely many. Up to 64 nested instances of one function or type are allowed.
//!
//! ```impala
//! fn f[T](x: T, n: i32) -> i32 { if n == 0 { 0 } else { f((x, x), n - 1) } }
//! fn main() -> i32 { f(1, 3) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f[T](x: T, n: i32) -> i32 { if n == 0 { 0 } else { f(x, n - 1) } }
//! fn main() -> i32 { f(1, 3) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `ty` is the type of the instance that is needed.
pub fn of_function(span: Span, name: &str, ty: &str) -> Diagnostic {
    Diagnostic::error("polymorphic-recursion", span, format!("`{name}` needs itself for ever larger types"))
        .label(format!("one of them is `{}`", cut(ty)))
        .hint("pass what grows as a value: in a list of known type, or behind a pointer")
}

/// `instance` is the one that is needed.
pub fn of_constants(span: Span, name: &str, instance: &str) -> Diagnostic {
    Diagnostic::error("polymorphic-recursion", span, format!("`{name}` needs itself for ever more constants"))
        .label(format!("one of them is `{}`", cut(instance)))
        .hint("end it by an `if` whose condition compares constants only, `if N == 0 { … } else { … }`")
}

pub fn of_type(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("polymorphic-recursion", span, format!("`{ty}` contains itself with ever larger types"))
        .hint("let it contain itself with the same type arguments")
}

/// Generic functions as values needed instances for more types in each of `rounds` rounds.
pub fn of_values(rounds: usize) -> Diagnostic {
    let message = format!("generic functions as values are used with ever more types, after {rounds} rounds");
    Diagnostic::error("polymorphic-recursion", Span::NONE, message)
        .hint("a generic function value that receives itself as an argument needs instances without end")
}

/// The beginning of a type without end.
fn cut(ty: &str) -> String {
    match ty.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &ty[..at]),
        None => ty.into(),
    }
}
