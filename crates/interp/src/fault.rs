//! What ends a checked execution early.

use nyala_base::{Diagnostic, Span};

/// The sort of a [`Fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    SignedOverflow,
    DivisionByZero,
    /// A wrong address; the text says in which way.
    Memory,
    Uninitialized,
    /// A continuation whose function has returned was called.
    DeadContinuation,
    /// Control came where the program said it never would, or a function without a value was called.
    Undefined,
    /// The program says that it cannot go on.
    Panic,
    /// The budget of steps is spent.
    Budget,
    /// A foreign function that nobody has.
    Symbol,
    /// Something the interpreter cannot do as yet.
    Limitation,
}

impl FaultKind {
    /// Its name in diagnostics.
    pub fn code(self) -> &'static str {
        match self {
            FaultKind::SignedOverflow => "signed-overflow",
            FaultKind::DivisionByZero => "division-by-zero",
            FaultKind::Memory => "invalid-access",
            FaultKind::Uninitialized => "uninitialized-read",
            FaultKind::DeadContinuation => "dead-continuation",
            FaultKind::Undefined => "undefined-call",
            FaultKind::Panic => "panic",
            FaultKind::Budget => "budget-spent",
            FaultKind::Symbol => "undefined-symbol",
            FaultKind::Limitation => "limitation",
        }
    }
}

/// Undefined behavior or a limit, with where it happened.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub span: Span,
    /// Function and place of the call, innermost first; at most some dozens.
    pub chain: Vec<(String, Span)>,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind, message: message.into(), span: Span::NONE, chain: Vec::new() })
    }

    /// The fault as an error message; the innermost calls are labels.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.kind.code(), self.span, self.message.clone());
        for (name, span) in self.chain.iter().take(8) {
            if !span.is_none() {
                diagnostic = diagnostic.other(*span, format!("`{name}` called here"));
            }
        }
        diagnostic
    }
}
