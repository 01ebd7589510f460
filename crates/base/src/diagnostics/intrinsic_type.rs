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

use crate::{Diagnostic, Span};

pub fn error(span: Span, found: &str, expected: &str) -> Diagnostic {
    Diagnostic::error("intrinsic-type", span, format!("found `{found}`, expected `{expected}`"))
        .label("declared here")
        .hint("declare it with that type, or leave it out if the prelude has it")
}

/// An intrinsic is used with types that it does not have; `hint` says which ones it has.
pub fn operands(span: Span, what: &str, hint: &str) -> Diagnostic {
    Diagnostic::error("intrinsic-type", span, format!("{what} is declared with types that it does not have")).hint(hint)
}

/// An operation of a GPU is declared in another way than LLVM has it; `said` is LLVM's message.
pub fn of_gpu(said: &str) -> Diagnostic {
    let message = format!("an operation of the GPU is declared in another way than LLVM has it: {said}");
    Diagnostic::error("intrinsic-type", Span::NONE, message)
        .hint("compare its name, its types and its literal arguments with LLVM's guide to the target")
}
