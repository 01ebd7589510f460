//! A bound, a super-trait or the trait of an `impl` is not a trait.
//!
//! ```impala
//! struct S { x: i32 }
//! fn f[T: S](x: T) -> () {}
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait S { fn x(self: &Self) -> i32; }
//! fn f[T: S](x: T) -> () {}
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("not-a-trait", span, format!("{what} is not a trait"))
        .hint("traits are declared by `trait T { fn m(self: &Self) -> …; }`")
}
