//! A program needs more instances of generic functions and types than anybody writes.
//!
//! An instance is made for each type that is used; equal ones are shared. Where each asks for two others of new types, their number
//! doubles with each function: thirty such functions ask for a billion. The limit is 100,000 in all.
//!
//! ```text
//! fn f0[T](x: T) -> i32 { 0 }
//! fn f1[T](x: T) -> i32 { f0((x, 1)) + f0((1, x)) }
//! …
//! fn f30[T](x: T) -> i32 { f29((x, 1)) + f29((1, x)) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f0[T](x: T, y: (T, i32)) -> i32 { y(1) }
//! fn f1[T](x: T) -> i32 { f0(x, (x, 1)) + f0(x, (x, 2)) }
//! fn main() -> i32 { f1(1) - 3 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` is one more: a function or a type.
pub fn error(span: Span, what: &str, limit: usize) -> Diagnostic {
    Diagnostic::error("too-many-instances", span, format!("more than {limit} instances of generics are needed"))
        .label(format!("one more is `{what}`"))
        .hint("pass what differs as a value, so that fewer types are needed")
}
