//! The function to run does not have the type of a program's entry.
//!
//! `nyala run` calls `main`, or the function named by `--entry`. It takes nothing or the program's arguments, and
//! returns the exit code or nothing.
//!
//! ```impala
//! fn main(x: i32) -> i32 { x }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn main(argc: i32, argv: &[&[u8]]) -> i32 { argc - argc }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("entry-type", span, format!("`{name}` cannot be run as it is"))
        .hint("its type must be `fn() -> i32`, `fn() -> ()` or `fn(argc: i32, argv: &[&[u8]]) -> i32`")
}
