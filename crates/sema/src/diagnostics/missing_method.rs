//! An `impl` of a trait lacks methods that the trait has no default for.
//!
//! ```impala
//! trait Shape { fn area(self: &Self) -> i32; fn name(self: &Self) -> u8; }
//! impl Shape for i32 { fn area(self: &i32) -> i32 { *self } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait Shape { fn area(self: &Self) -> i32; fn name(self: &Self) -> u8 { '?' } }
//! impl Shape for i32 { fn area(self: &i32) -> i32 { *self } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, of: &str, names: &[String]) -> Diagnostic {
    let quoted: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
    Diagnostic::error("missing-method", span, format!("this impl of `{of}` lacks {}", quoted.join(", ")))
        .hint("write them, or give them a body in the trait")
}

/// A method of an `impl` has no body.
pub fn no_body(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("missing-method", span, format!("`{name}` has no body"))
        .hint("only methods of a trait may leave out the body; write it here: `{ … }`")
}
