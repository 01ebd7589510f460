//! A number is malformed.
//!
//! Integers are decimal, or binary `0b`, octal `0o`, hexadecimal `0x`. `_` may stand between digits. A suffix gives the
//! type: `1u8`, `2i64`, `3u`; `1f` or `1.5f64` for floats. Without a suffix the context decides.
//!
//! ```impala
//! fn f() -> i32 { 0b102 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 { 0b101 }
//! fn g() -> i64 { 1_000_000i64 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn digit(span: Span, digit: &str, base: u32) -> Diagnostic {
    Diagnostic::error("bad-number", span, format!("found digit `{digit}` in a number of base {base}"))
        .hint("bases are 2 (`0b`), 8 (`0o`), 10 and 16 (`0x`)")
}

pub fn suffix(span: Span, suffix: &str) -> Diagnostic {
    let hint = match suffix {
        "usize" | "isize" => "indices may be integers of any type, for instance `u64`",
        "u128" | "i128" => "the largest types are `u64` and `i64`",
        _ => "a suffix is a type of numbers, or `i`, `u`, `h` or `f`",
    };
    Diagnostic::error("bad-number", span, format!("found unknown number suffix `{suffix}`")).hint(hint)
}

pub fn no_digits(span: Span) -> Diagnostic {
    Diagnostic::error("bad-number", span, "found a number without digits").hint("write at least one digit")
}

pub fn too_large(span: Span) -> Diagnostic {
    Diagnostic::error("bad-number", span, "number does not fit any integer type").hint("the largest type is `u64`")
}
