//! A struct value gives a field twice.
//!
//! ```impala
//! struct S { a: i32 }
//! fn f() -> S { S { a: 1, a: 2 } }
//! ```
//!
//! Each field is given exactly once, in any order.
//!
//! ## Instead
//!
//! ```impala
//! struct S { a: i32 }
//! fn f() -> S { S { a: 2 } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-field", span, format!("field `{name}` is given twice"))
        .other(first, "first here")
        .hint("give each field once")
}
