//! A compiled program reached an instruction that this processor does not have.
//!
//! Either the program did something undefined before, such as calling a value that is not a function, or `--cpu` made
//! code for another CPU.
//!
//! ```sh
//! nyala run --cpu sapphirerapids program.impala
//! ```
//!
//! ## Instead
//!
//! Leave out `--cpu`, and let the interpreter find the undefined operation:
//!
//! ```sh
//! nyala run --engine interp program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, about: String) -> Diagnostic {
    Diagnostic::error("illegal-instruction", span, about)
        .hint("`--check` and `--engine interp` stop where it goes wrong first")
}
