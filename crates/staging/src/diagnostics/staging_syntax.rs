//! A program in DeepCPS or Staged-C does not follow its grammar.
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

pub fn too_deep_in_c(span: Span, limit: u32) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, format!("nested deeper than {limit} levels"))
        .hint("move inner parts into functions of their own")
}

/// In a label of Staged-C, or where a `stage` is expected.
pub fn no_stage(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "this is no stage")
        .hint("a stage is made of names, `*`, `always`, `never`, `&`, `|` and `!`")
}

pub fn stage_operator(span: Span, operator: &str) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, format!("`{operator}` joins stages, not numbers"))
        .hint(format!("between conditions, write `{operator}{operator}`"))
}

pub fn star(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "`*` is a stage, no number")
        .hint("what a pointer `p` points to is `p[0]`")
}

pub fn text(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "a text is no value").hint("it may be an argument of `print`")
}

pub fn array(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "found an array in braces, expected a number")
        .hint("it may be an argument, or the value of a variable that is declared: `float* a = {1.0, 2.0};`")
}

pub fn no_array(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "found a value, expected the elements of an array in braces")
        .hint("store others one by one: `a[0] = …;`")
}

pub fn no_loop(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "no loop is around this")
}

pub fn no_target(span: Span) -> Diagnostic {
    Diagnostic::error("staging-syntax", span, "this can't be assigned").hint("assign a variable, or an element `a[i]`")
}
