//! An intrinsic is declared with a type that it cannot have.
//!
//! The declarations in `extern "thorin"` and `extern "device"` blocks give intrinsics their types. Some have freedom, such
//! as the integer type of a size; others must be declared as they are.
//!
//! ```impala
//! extern "thorin" {
//!     fn sync(fn() -> ()) -> ();
//! }
//! ```
//!
//! ## Instead
//!
//! The prelude declares all of them, so a declaration of one's own may not be needed at all:
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
        .hint("declare it so, or leave it out: the prelude has it")
}
