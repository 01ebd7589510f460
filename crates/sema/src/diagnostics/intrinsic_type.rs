//! An intrinsic is declared with a type that it cannot have.
//!
//! The declarations in `extern "thorin"` and `extern "device"` blocks give intrinsics their types. Some intrinsics
//! accept several types, such as any integer type for a size. Others have exactly one type.
//!
//! ```impala
//! extern "thorin" {
//!     fn sync(fn() -> ()) -> ();
//! }
//! ```
//!
//! ## Instead
//!
//! The prelude declares the common ones, so that most programs need no declaration:
//!
//! ```impala
//! extern "thorin" {
//!     fn sync(i32) -> ();
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("intrinsic-type", span, format!("found `{found}`, expected `{expected}`"))
        .label("declared here")
        .hint("declare it with that type, or leave it out if the prelude has it")
}

/// An intrinsic is used with types that it does not have; `hint` says which ones it has.
pub fn operands(span: Span, what: &str, hint: &str) -> Diagnostic {
    Diagnostic::error("intrinsic-type", span, format!("{what} is declared with types that it does not have")).hint(hint)
}
