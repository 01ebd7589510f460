//! A compiled program came to something that is no instruction of this processor.
//!
//! Either the program did something undefined before, such as calling what is no function, or code was made for another
//! CPU by `--cpu`.
//!
//! ```sh
//! nyala run --cpu sapphirerapids program.impala
//! ```
//!
//! ## Instead
//!
//! Leave out `--cpu`, and let the interpreter find what is undefined:
//!
//! ```sh
//! nyala run --engine interp program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, about: String) -> Diagnostic {
    Diagnostic::error("illegal-instruction", span, about).hint("`--engine interp` stops where it goes wrong first")
}
