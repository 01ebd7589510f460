//! A value does not have the type that is expected at its place.
//!
//! There are two implicit conversions: a pointer converts to one that allows less (`&mut T` to `&T`, `&[T * n]` to
//! `&[T]`), and a `T` to its address where a `&T` is expected. Numbers are converted with `as`. The value of a block is
//! its last expression; if a `;` follows it, the block has the value `()`.
//!
//! ```impala
//! fn f(x: i64) -> i32 { x }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i64) -> i32 { x as i32 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `why` is another place, which determines the expected type, and its label.
pub fn error(span: Span, found: &str, expected: &str, why: Option<(Span, &str)>) -> Diagnostic {
    let diagnostic = Diagnostic::error("type-mismatch", span, format!("found `{found}`, expected `{expected}`"))
        .label(format!("has type `{found}`"));
    match why {
        Some((span, text)) => diagnostic.other(span, text),
        None => diagnostic,
    }
}

// Hints, by the kinds of types.

pub const NO_VALUE: &str = "a block's value is its last expression, without `;`";
pub const DROP: &str = "end it with `;` to drop the value";
pub const ADDRESS_MUT: &str = "nothing can be changed through a `&` pointer; take the address with `&mut`";
pub const WRITE_MUT: &str = "`&mut` is always written: `&mut x`";
pub const TEXTS: &str = "the length of a text belongs to its type: give it the type `&[u8]`, or make it a `Str` by `str(…)` of `std::slice`";
pub const OWNED: &str = "`~x` is new memory with `x`; `!x` inverts the bits of `x`";
pub const POINTEE: &str = "`*p` is the value that the pointer `p` points to";
pub const FLOAT_LITERAL: &str = "an integer literal never becomes a float: write a point, as in `1.0`";
pub const INTEGER: &str = "an integer because of this literal";
pub const INT_LITERAL: &str = "a literal with a point is a float: leave out the point, or convert it with `as`";
pub const CALL: &str = "functions are called with `()`, `return`, `break` and `continue` too";
pub const COMPARISONS: &str =
    "comparisons do not chain, and bind looser than `|`, `^` and `&`: join them by `&&` and `||`";

pub fn convert(expected: &str) -> String {
    format!("convert it with `as {expected}`")
}
