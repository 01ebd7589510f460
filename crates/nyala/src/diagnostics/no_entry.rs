//! The program has no function of the name that is to be run.
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

pub fn error(name: &str) -> Diagnostic {
    Diagnostic::error("no-entry", Span::NONE, format!("the program has no function `{name}` to run"))
        .hint("write `fn main() -> i32 { … }`, or name an exported function by `--entry`")
}
