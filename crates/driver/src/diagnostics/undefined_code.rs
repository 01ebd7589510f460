//! A compiled program reached code that only something undefined leads to.
//!
//! LLVM removes what a program does only after something undefined: an access behind the end of memory whose size is known, a signed
//! overflow, an access through null. Where nothing is left, compiled code stops; so does a loop that would never end without it. The
//! place is that of the code that was removed, or near it.
//!
//! ```sh
//! nyala run program.impala
//! ```
//!
//! ## Instead
//!
//! Let the interpreter or checked code find the undefined operation:
//!
//! ```sh
//! nyala run --engine interp program.impala
//! nyala run --check program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, about: String) -> Diagnostic {
    Diagnostic::error("undefined-code", span, about)
        .hint("`--engine interp` and `--check` stop where it goes wrong first")
}
