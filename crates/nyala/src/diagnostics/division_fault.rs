//! An integer is divided by zero, or the least one by -1, in compiled code.
//!
//! Such quotients and remainders are undefined: compiled code may do anything, and on some processors it ends with this
//! fault. Reported by `nyala run`; the exit code is 136.
//!
//! ```text
//! fn main(argc: i32, argv: &[&[u8]]) -> i32 { 10 / (argc - 1) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main(argc: i32, argv: &[&[u8]]) -> i32 { if argc == 1 { 0 } else { 10 / (argc - 1) } }
//! ```

use nyala_base::{Diagnostic, Span};

/// `place` says where, as ` in f`.
pub fn error(span: Span, what: &str, place: &str) -> Diagnostic {
    Diagnostic::error("division-fault", span, format!("{what}{place}"))
        .hint("`--engine interp` stops there and says by which calls")
}
