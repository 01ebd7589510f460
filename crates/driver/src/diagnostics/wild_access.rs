//! A compiled program reads or writes an address where there is no memory.
//!
//! Common causes are an index far beyond the end of an array, a null pointer, and a number that is used as an address.
//! Compiled code does not notice an access that is only a little off, because it hits other data. The interpreter
//! notices all of them, and stops at the first.
//!
//! ```text
//! fn main() -> i32 { let p = alloc[i32](10); p(1000000000) }
//! ```
//!
//! ## Instead
//!
//! Let the interpreter find the place:
//!
//! ```sh
//! nyala run --engine interp program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, about: String) -> Diagnostic {
    Diagnostic::error("wild-access", span, about).hint("`--check` and `--engine interp` stop where it goes wrong first")
}
