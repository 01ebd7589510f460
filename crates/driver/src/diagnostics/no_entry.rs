//! The program has no function of the name that should be run.
//!
//! `nyala run` calls `main`; with `--entry NAME` another exported function.
//!
//! ```impala
//! extern fn start() -> i32 { 0 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main() -> i32 { 0 }
//! ```
//!
//! or, for the first program:
//!
//! ```sh
//! nyala run --entry start program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn of_executable() -> Diagnostic {
    let message = "the program has no function `main`, so it cannot be an executable";
    Diagnostic::error("no-entry", Span::NONE, message)
        .hint("write `fn main() -> i32 { … }`, or make a library: `-o NAME.so`")
}

pub fn error(name: &str) -> Diagnostic {
    Diagnostic::error("no-entry", Span::NONE, format!("the program has no function `{name}` to run"))
        .hint("write `fn main() -> i32 { … }`, or name an exported function by `--entry`")
}
