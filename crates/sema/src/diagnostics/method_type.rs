//! A method of an `impl` has another type than in the trait.
//!
//! Both types must be equal once the type of the `impl` stands for `Self`, and its trait arguments for the parameters
//! of the trait.
//!
//! ```impala
//! trait Area { fn area(self: &Self) -> i32; }
//! impl Area for i32 { fn area(self: &i32) -> f32 { 1.0 } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait Area { fn area(self: &Self) -> i32; }
//! impl Area for i32 { fn area(self: &i32) -> i32 { *self } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str, found: &str, expected: &str, asked: Span) -> Diagnostic {
    let message = format!("`{name}` has type `{found}`, expected `{expected}`");
    Diagnostic::error("method-type", span, message).other(asked, "the trait's method").hint("give both the same type")
}

pub fn parameters(span: Span, name: &str, found: usize, expected: usize, asked: Span) -> Diagnostic {
    let message = format!("`{name}` has {found} type parameters, expected {expected}");
    Diagnostic::error("method-type", span, message)
        .other(asked, "the trait's method")
        .hint("type parameters of the trait do not count as those of its methods")
}

pub fn constants(span: Span, name: &str, asked: Span) -> Diagnostic {
    let message = format!("`{name}` has other `const` parameters than the trait's method");
    Diagnostic::error("method-type", span, message)
        .other(asked, "the trait's method")
        .hint("give both the same parameters, with the same types of constants")
}

pub fn bound(span: Span, name: &str, bound: &str, asked: Span) -> Diagnostic {
    let message = format!("`{name}` asks for the bound `{bound}`, which the trait does not");
    Diagnostic::error("method-type", span, message)
        .other(asked, "the trait's method")
        .hint("give the trait's method that bound, or do without it")
}
