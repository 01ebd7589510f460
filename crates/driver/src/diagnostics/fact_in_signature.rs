//! What a library exports depends on a fact about the CPU, and it is built for several.
//!
//! With `--cpu a,b` and facts of `std::target` each CPU has a version of its own of the program. The one that suits the machine is chosen
//! when the library is loaded, and callers do not know which. So all versions have the same functions, with the same types.
//!
//! ```text
//! use std::target::*;
//! struct Row { cells: [f32 * VECTOR_BYTES] }
//! extern fn first(row: &Row) -> f32 { row.cells(0) }
//! // nyala build row.impala -o librow.so --cpu x86-64-v2,x86-64-v3
//! ```
//!
//! ## Instead
//!
//! Let the caller say how long it is, or take the longest; or build for one CPU:
//!
//! ```impala
//! struct Row { cells: [f32 * 64] }
//! extern fn first(row: &Row) -> f32 { row.cells(0) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` differs by these facts.
pub fn error(span: Span, what: &str, facts: &str) -> Diagnostic {
    let message = format!("{what} depends on {facts} of `std::target`, and the program is built for several CPUs");
    Diagnostic::error("fact-in-signature", span, message)
        .hint("callers know one type for all CPUs: let it have a fixed length, or build for one CPU")
}
