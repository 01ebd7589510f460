//! Typed ids and side tables, graph algorithms over successor lists, file texts and spans, diagnostics; knows nothing of compilers.
#![forbid(unsafe_code)]

pub mod codes;
pub mod diagnostics;
pub mod graph;
pub mod ids;
pub mod locality;
pub mod source;

pub use codes::Code;
pub use diagnostics::{Diagnostic, Label, Severity, Sink};
pub use ids::{Id, Lists, SideTable};
pub use locality::LocalityHasher;
pub use source::{CallId, Callee, Calls, FileId, Sources, Span};
