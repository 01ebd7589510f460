//! A module or type has nothing of this name, or a path goes on after something that is neither.
//!
//! `a::b` is `b` of module `a`, an option of enum `a`, or a function of type `a`. `super::b` is `b` of the module
//! around this one, and `::b` is `b` of the whole program.
//!
//! ```impala
//! mod shapes { fn area(r: i32) -> i32 { 3 * r * r } }
//! fn f() -> i32 { shapes::aera(2) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! mod shapes { fn area(r: i32) -> i32 { 3 * r * r } }
//! fn f() -> i32 { shapes::area(2) }
//! ```

use super::unknown_name;
use crate::exports::Exports;
use nyala_base::{Diagnostic, Span};

/// `libraries` have an item of this name.
pub fn error(span: Span, of: &str, name: &str, similar: Option<&str>, libraries: &[&Exports]) -> Diagnostic {
    let message = match of {
        "" => format!("the program has no `{name}`"),
        _ => format!("module `{of}` has no `{name}`"),
    };
    let diagnostic = Diagnostic::error("no-such-member", span, message);
    match similar {
        _ if !libraries.is_empty() => diagnostic.hint(unknown_name::in_libraries(libraries)).hint_similar(similar),
        Some(_) => diagnostic.hint_similar(similar),
        None => diagnostic.hint("define it there, or name the module that has it"),
    }
}

/// `name` stands before `::`, but means something else.
pub fn not_a_module(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("no-such-member", span, format!("`{name}` is not a module, enum or type"))
        .hint("a module, an enum or a type stands before `::`")
}

pub fn no_super(span: Span) -> Diagnostic {
    Diagnostic::error("no-such-member", span, "there is no module around this one")
        .hint("files of the program share one module; `mod m { … }` makes others")
}
