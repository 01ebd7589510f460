//! An integer literal does not fit its type.
//!
//! The type of a literal is that of its suffix, else the type that is expected at its place, else `i32`. A minus sign
//! before the literal counts as a part of it.
//!
//! ```impala
//! fn f() -> u8 { 256 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> u8 { 255 }
//! fn g() -> i64 { 5_000_000_000 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `wider` is a type that the literal fits, if there is one.
pub fn error(span: Span, literal: &str, ty: &str, wider: Option<&str>) -> Diagnostic {
    let message = format!("literal {literal} does not fit `{ty}`");
    let hint = match wider {
        Some(wider) => format!("`{wider}` has room for it: `{literal}{wider}`"),
        None => "no integer type has room for it".into(),
    };
    Diagnostic::error("literal-out-of-range", span, message).hint(hint)
}
