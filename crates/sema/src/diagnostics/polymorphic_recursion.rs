//! A generic function needs itself for ever larger types, or a generic type contains itself with ever larger arguments.
//!
//! The compiler makes an instance for each type that is used. If each instance needs another one, there would be
//! infinitely many. Up to 64 nested instances of one function or type are allowed, up to 1,000 of a
//! function if only constants differ; so a recursion that ends, but not sooner, is refused as well.
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

/// `instance` is one that is needed, beyond the limit on instances of a function that need each other.
pub fn of_function(span: Span, name: &str, instance: &str, limit: usize, has_constants: bool) -> Diagnostic {
    let (what, hint) = match has_constants {
        false => ("ever larger types", "pass what grows as a value: in a list of known type, or behind a pointer"),
        true => (
            "ever more constants",
            "if it does not end: end it by an `if` whose condition compares constants only, `if N == 0 { … } else { … }`; if it \
             does: let each call halve what is left, or count by a value, which has no limit",
        ),
    };
    let message = format!("`{name}` needs itself for {what}, more than {limit} in a row");
    Diagnostic::error("polymorphic-recursion", span, message)
        .label(format!("one of them is `{}`", cut(instance)))
        .hint(hint)
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
