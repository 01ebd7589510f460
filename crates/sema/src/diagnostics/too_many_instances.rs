//! A program needs too many instances of generic functions and types.
//!
//! The compiler makes an instance for each type that is used. If each instance needs two more, for new types, their
//! number doubles with each function: thirty such functions need a billion instances. The limit is 100,000 in total.
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

/// `what` is an instance beyond the limit, of a function or a type.
pub fn error(span: Span, what: &str, limit: usize) -> Diagnostic {
    Diagnostic::error("too-many-instances", span, format!("more than {limit} instances of generics are needed"))
        .label(format!("one more is `{what}`"))
        .hint("pass what differs as a value, so that fewer types are needed")
}
