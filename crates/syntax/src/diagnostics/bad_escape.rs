//! A backslash in a string or character does not begin a known escape.
//!
//! The escapes are `\0` (zero), `\n` (line end), `\t` (tab), `\r` (carriage return), `\\`, `\'`, `\"`, and `\x` with
//! two hexadecimal digits for any byte.
//!
//! ```impala
//! fn f() -> u8 { '\q' }
//! ```
//!
//! ## Instead
//!
//! A backslash itself is `\\`:
//!
//! ```impala
//! fn f() -> u8 { '\\' }
//! fn g() -> u8 { '\x7f' }
//! ```

use nyala_base::{Diagnostic, Span};

const ESCAPES: &str = r#"escapes are `\0 \n \t \r \\ \' \"` and `\x` with two hexadecimal digits"#;

/// `found` follows the backslash and is not an escape.
pub fn unknown(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error("bad-escape", span, format!("found unknown escape `\\{found}`")).hint(ESCAPES)
}

pub fn hexadecimal(span: Span) -> Diagnostic {
    Diagnostic::error("bad-escape", span, r"found `\x` without two hexadecimal digits").hint(ESCAPES)
}
