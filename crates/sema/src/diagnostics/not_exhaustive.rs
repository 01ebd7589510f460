//! The arms of a `match` leave out values, or a pattern of a `let`, a parameter or a loop does not fit every value.
//!
//! An arm with a guard, `p if c => …`, may be skipped for any value, so it does not count.
//!
//! ```impala
//! enum Color { Red, Green }
//! fn f(c: Color) -> i32 { match c { Color::Red => 1 } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! enum Color { Red, Green }
//! fn f(c: Color) -> i32 { match c { Color::Red => 1, Color::Green => 2 } }
//! ```

use nyala_base::{Diagnostic, Span};

/// `missing` is a pattern of values that no arm matches.
pub fn of_match(span: Span, missing: &str) -> Diagnostic {
    Diagnostic::error("not-exhaustive", span, format!("no arm matches `{missing}`"))
        .hint("add an arm for it, or one for everything else: `_ => …`")
}

pub fn of_pattern(span: Span, missing: &str) -> Diagnostic {
    Diagnostic::error("not-exhaustive", span, format!("this pattern does not match `{missing}`"))
        .hint("here a pattern must fit every value; `match` has arms for the others")
}
