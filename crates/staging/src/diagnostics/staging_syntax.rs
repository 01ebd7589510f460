//! A program in DeepCPS does not follow its grammar.
//!
//! A body is one call. What follows it belongs to the function that is its last argument, so there has to be something: that function may stand in
//! braces instead, or be a name. Ends of lines mean nothing: arguments go on behind them. Braces and staging expressions nest up to a limit; the functions that are last arguments do not count.
//!
//! ```text
//! let f (fn[int, fn[]] cont, fn[] end) {
//!   cont 1 ()
//! }
//! ```
//!
//! ## Instead
//!
//! ```text
//! let f (fn[int, fn[]] cont, fn[] end) {
//!   cont 1 ()
//!   end
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `found` is the token there.
pub fn unexpected(span: Span, found: &str, expected: &str) -> Diagnostic {
    let found = if found.is_empty() { "the end of the file".to_string() } else { format!("`{found}`") };
    Diagnostic::error("staging-syntax", span, format!("found {found}, expected {expected}"))
}

pub fn number(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, format!("`{text}` is no number of 32 bits"))
}

pub fn not_constant(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "elements of an array in braces are literals")
}

pub fn too_deep(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, format!("nested deeper than {limit} levels"))
        .hint("give inner parts names with `let`")
}
