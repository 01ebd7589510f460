//! The diagnostics of code generation, one file per code.

pub(crate) mod invalid_asm;
pub(crate) mod unknown_target;

pub(crate) use nyala_base::diagnostics::{bug, limitation};

use nyala_base::{Diagnostic, Span};

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(bug::error(Span::NONE, format!("in code generation: {message}")))
}

/// A feature that code generation does not support yet.
pub(crate) fn limitation(message: impl Into<String>) -> Box<Diagnostic> {
    let hint = "use a smaller type, or pass it by a pointer";
    Box::new(limitation::error(Span::NONE, message, hint))
}

nyala_base::codes![invalid_asm, unknown_target];
