//! A compiled program reads or writes an address where there is no memory.
//!
//! An index far beyond the end of an array, a null pointer, a number taken for an address. Accesses that go wrong by little
//! only are not noticed in compiled code: they meet other data. The interpreter notices all, and stops at the first.
//!
//! ```text
//! fn main() -> i32 { let p = alloc_i32(10); p(1000000000) }
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
    Diagnostic::error("wild-access", span, about).hint("`--engine interp` stops where it goes wrong first")
}
