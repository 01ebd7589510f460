//! A character literal is not exactly one byte.
//!
//! Characters are single bytes of type `u8`. Letters beyond ASCII take several bytes in UTF-8, so they fit into strings
//! only.
//!
//! ```impala
//! fn f() -> u8 { 'ab' }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> u8 { 'a' }
//! fn g() -> [u8 * 3] { "ab" }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, n_bytes: usize) -> Diagnostic {
    let hint = match n_bytes {
        0 => "write the character between the quotes; a quote is `'\\''`",
        _ => "characters are single bytes of type `u8`; longer texts are strings, \"…\"",
    };
    let message = format!("character literal has {n_bytes} bytes, expected one");
    Diagnostic::error("bad-char", span, message).hint(hint)
}
