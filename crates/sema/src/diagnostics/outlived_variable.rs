//! A function that is given back uses a `mut` variable of the function that makes it.
//!
//! Such a variable is shared, not copied: it ends with its function, and what uses it afterwards reads and writes memory that
//! belongs to somebody else. Only what the compiler can see is reported. It is a warning.
//!
//! ```impala
//! fn counter() -> fn() -> i32 {
//!     let mut n = 0;
//!     || { n++; n }
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn counter() -> fn() -> i32 {
//!     let n = ~0;
//!     || { (*n)++; *n }
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `variable` is where it is declared.
pub fn warning(span: Span, name: &str, variable: Span) -> Diagnostic {
    Diagnostic::warning("outlived-variable", span, format!("this function outlives `{name}`, which it uses"))
        .other(variable, "ends with the function around it")
        .hint("give the function a copy, `let x = …;`, or put the variable on the heap: `~e`")
}
