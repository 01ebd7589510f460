//! A struct value lacks a field.
//!
//! A struct value gives all fields of its struct; there are no defaults. `..p` as its last part takes the others from `p`, a value of
//! the same struct.
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f() -> Point { Point { x: 1 } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f() -> Point { Point { x: 1, y: 0 } }
//! fn g(p: Point) -> Point { Point { x: 1, ..p } }
//! ```

use nyala_base::{Diagnostic, Span};

/// `names` are some of the missing fields of the struct that is `declared` there.
pub fn error(span: Span, names: &[String], declared: Span) -> Diagnostic {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let given: Vec<String> = names.iter().map(|n| format!("{n}: …")).collect();
    Diagnostic::error("missing-field", span, format!("found no value for field {}", quoted.join(", ")))
        .other(declared, "declared here")
        .hint(format!("add `{}`", given.join(", ")))
}

pub fn in_pattern(span: Span, names: &[String]) -> Diagnostic {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    Diagnostic::error("missing-field", span, format!("found no pattern for field {}", quoted.join(", ")))
        .hint("name them, or leave them out by `..` at the end")
}
