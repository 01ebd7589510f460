//! The faults that end a checked execution early.

use crate::diagnostics;
use nyala_base::{Diagnostic, Span};

/// Undefined behavior or an exceeded limit, and where it happened.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The error, with its place if that is known.
    what: Diagnostic,
    /// The functions called and the places of their calls, innermost first; at most some dozens.
    pub chain: Vec<(String, Span)>,
}

impl From<Diagnostic> for Box<Fault> {
    fn from(what: Diagnostic) -> Box<Fault> {
        Box::new(Fault { what, chain: Vec::new() })
    }
}

impl Fault {
    pub fn code(&self) -> &'static str {
        self.what.code
    }

    /// Whether the program's execution is at fault, as opposed to a construct that the compiler cannot run.
    pub fn is_of_execution(&self) -> bool {
        crate::diagnostics::CODES.iter().any(|c| c.name() == self.code())
    }

    /// Sets the place of the fault, unless it has one already.
    pub(crate) fn set_span(&mut self, span: Span) {
        if self.what.primary.span.is_none() {
            self.what.primary.span = span;
        }
    }

    /// Notes that the fault happened at compile time, so that advice to use another engine is removed.
    pub(crate) fn confine(&mut self) {
        let hints = &mut self.what.hints;
        let n = hints.len();
        hints.retain(|hint| hint != NATIVE);
        if hints.is_empty() && n > 0 {
            hints.push("compute it when the program runs, into a `static mut`".into());
        }
    }

    /// The fault as an error message; the innermost calls are labels.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = self.what.clone();
        diagnostic.add_calls(self.chain.iter().map(|(name, span)| (&**name, *span)));
        diagnostic
    }
}

pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Fault> {
    diagnostics::bug::error(Span::NONE, format!("in the interpreter: {message}")).into()
}

/// The advice for something that only the interpreter does not support.
pub(crate) const NATIVE: &str = "run it with `--engine jit`, which compiles it";

/// The fault for something that only the interpreter does not support.
pub(crate) fn limitation(message: impl Into<String>) -> Box<Fault> {
    diagnostics::limitation::error(Span::NONE, message, NATIVE).into()
}
