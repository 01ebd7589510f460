//! There are two impls of one trait for the same type and arguments, so that a call could mean either.
//!
//! The traits `Ord`, `Num`, `Int` and `Float` of the prelude are those of the primitive types; programs give no impls of them.
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

pub fn of_prelude(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("duplicate-impl", span, format!("`{name}` is there for the primitive types, and for no others"))
        .hint("operators work on numbers only; declare a trait of your own, with methods")
}
