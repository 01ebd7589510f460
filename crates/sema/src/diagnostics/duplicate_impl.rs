//! There are two impls of one trait for the same type and arguments, so that a call could mean either.
//!
//! The prelude's traits `Ord`, `Num`, `Int` and `Float` are for primitive types. Programs cannot implement them for
//! other types. Primitive types have the prelude's traits of operators (`Add`, `Eq`, …) for operands of their own type.
//!
//! ```impala
//! trait Show { fn show(self: &Self) -> i32; }
//! impl Show for i32 { fn show(self: &i32) -> i32 { *self } }
//! impl Show for i32 { fn show(self: &i32) -> i32 { -*self } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait Show { fn show(self: &Self) -> i32; }
//! impl Show for i32 { fn show(self: &i32) -> i32 { *self } }
//! impl Show for bool { fn show(self: &bool) -> i32 { if *self { 1 } else { 0 } } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, bound: &str, ty: &str, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-impl", span, format!("there is an impl of `{bound}` for `{ty}` already"))
        .other(first, "first here")
        .hint("keep one of the two, or make them for different types")
}

/// An impl of the prelude's trait `name`.
pub fn of_prelude(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("duplicate-impl", span, format!("only primitive types implement `{name}`"))
        .hint("traits that a program may implement for other types give these operators: `Add`, `Mul`, `Less`, …")
}

/// An impl of the trait of an operator that the type has anyway.
pub fn of_primitive(span: Span, name: &str, ty: &str) -> Diagnostic {
    Diagnostic::error("duplicate-impl", span, format!("`{ty}` has the operator of `{name}` already"))
        .hint("an impl may give a primitive type operators with other types on the right")
}
