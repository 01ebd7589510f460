//! The diagnostics of code generation, one file per code.

pub(crate) mod invalid_asm;
pub(crate) mod not_on_processor;
pub(crate) mod unknown_target;

pub(crate) use nyala_base::diagnostics::{
    bad_shared_memory, bug, device_code_on_host, intrinsic_type, limitation, not_in_c,
};

use nyala_base::{Diagnostic, Span};

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(bug::error(Span::NONE, format!("in code generation: {message}")))
}

/// A type that is larger than code generation can describe; `what` names it, or what has it.
pub(crate) fn too_large(what: &str) -> Box<Diagnostic> {
    let message = format!("{what} is larger than machine code can address");
    Box::new(limitation::error(Span::NONE, message, "make its arrays shorter, or allocate them"))
}

nyala_base::codes![invalid_asm, not_on_processor, unknown_target];
