//! The compiler itself is at fault.
//!
//! A check inside the compiler failed. Your program may be right or wrong; in either case this is not the answer to it.
//! The exit code is 70.
//!
//! Please report it with the program, the command line and what this prints:
//!
//! ```sh
//! nyala --version
//! ```
//!
//! ## Instead
//!
//! Until it is fixed, `-O0` or `--no-pe` may help, because they leave out large parts of the compiler:
//!
//! ```sh
//! nyala run -O0 program.impala
//! nyala run --no-pe program.impala
//! ```

use crate::{Diagnostic, Span};

pub fn error(span: Span, message: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("bug", span, format!("bug: {message}"))
        .hint("please report this with the program; `-O0` or `--no-pe` may get around it")
}
