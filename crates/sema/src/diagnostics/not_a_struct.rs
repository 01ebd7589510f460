//! A struct value names something that is not a struct.
//!
//! `Name { field: value }` makes a value of the struct `Name`, or of an alias of one.
//!
//! ```impala
//! type Number = i32;
//! fn f() -> i32 { Number { value: 1 } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Number { value: i32 }
//! fn f() -> i32 { let n = Number { value: 1 }; n.value }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("not-a-struct", span, format!("found `{name}`, expected a struct"))
        .hint("`Name { field: value }` makes a struct; in the head of an `if` or loop, put conditions in parentheses")
}
