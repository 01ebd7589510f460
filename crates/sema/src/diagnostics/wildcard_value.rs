//! `_` is used as a value.
//!
//! `_` stands for a parameter, a variable or a part of a pattern that is not needed. It binds nothing, so it has no
//! value.
//!
//! ```impala
//! fn f(_: i32) -> i32 { _ }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> i32 { x }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("wildcard-value", span, "`_` has no value: it binds nothing").hint("give it a name")
}
