//! The index of a tuple is not a literal, or is too large.
//!
//! The parts of a tuple may have different types, so the index must be known to the compiler: it is a literal from 0 to
//! the number of parts minus one.
//!
//! ```impala
//! fn f(t: (i32, i32)) -> i32 { t(2) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(t: (i32, i32)) -> i32 { t(1) }
//! fn g(a: [i32 * 2], i: i32) -> i32 { a(i) }
//! ```

use nyala_base::{Diagnostic, Span};

/// `index` is the value of the index, if it is a literal.
pub fn error(span: Span, index: Option<u128>, n_parts: usize) -> Diagnostic {
    let message = match index {
        Some(i) => format!("found part {i} of a tuple of {n_parts}"),
        None => "found an index of a tuple that is not a literal".into(),
    };
    let hint = match index {
        Some(_) => "parts are chosen by literals, counted from 0",
        None => "parts are chosen by literals, `t(0)`; use an array, `[T * n]`, if all have one type",
    };
    Diagnostic::error("tuple-index", span, message).hint(hint)
}
