//! A character begins no word, number or operator.
//!
//! Names consist of ASCII letters, digits and `_`. Other characters belong in strings and comments. Texts copied from
//! web pages and documents often have quotes and dashes that only look like the ones of programs.
//!
//! ```impala
//! fn f() -> i32 { 1 # 2 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 { 1 + 2 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, first: char) -> Diagnostic {
    let hint = match first {
        '“' | '”' | '„' => "strings stand in straight quotes, `\"`",
        '‘' | '’' => "characters stand in straight quotes, `'`",
        '–' | '—' | '−' => "minus is `-`",
        '\u{a0}' => "this is a space that does not break lines; write an ordinary one",
        '×' | '⋅' => "multiplication is `*`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '→' => "write `->`",
        '#' => "comments are `// …` or `/* … */`; there are no attributes",
        '`' => "strings stand in `\"`, characters in `'`",
        c if c.is_alphabetic() => "names consist of the letters `a` to `z`, `A` to `Z`, digits and `_`",
        _ => "remove it",
    };
    let message = format!("found {first:?}, which begins no word or operator");
    Diagnostic::error("unknown-character", span, message).hint(hint)
}
