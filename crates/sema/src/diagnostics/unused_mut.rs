//! A variable is `mut`, but never changes. This is a warning.
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     let mut y = x + 1;
//!     y * y
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> i32 {
//!     let y = x + 1;
//!     y * y
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning("unused-mut", span, format!("`{name}` is `mut`, but never changes")).hint("leave out the `mut`")
}
