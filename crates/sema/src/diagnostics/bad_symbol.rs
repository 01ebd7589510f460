//! A function has a name for C and the linker that cannot be one.
//!
//! The string before a function's name is its symbol. It must not be empty and must not have a control character, such as a line's
//! end. What a program exports must not begin with `nyala_`, as the runtime's functions do, nor with `llvm.`. In a header only
//! letters, digits and `_`, `.`, `$` may be in it, and no digit or `$` comes first: C's assemblers take no other.
//!
//! ```impala
//! fn "nyala_flush" mine() -> () { }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn "my_flush" mine() -> () { }
//! ```

use nyala_base::{Diagnostic, Span};

/// `exported`: the program itself has the function.
pub fn check(symbol: &str, span: Span, exported: bool) -> Option<Diagnostic> {
    let reserved = ["nyala_", "llvm."].into_iter().find(|p| exported && symbol.starts_with(p));
    let fault = match reserved {
        _ if symbol.is_empty() => "a symbol is empty".into(),
        _ if symbol.contains('\0') => "a symbol has a zero byte".into(),
        _ if symbol.contains(char::is_control) => "a symbol has a control character".into(),
        Some(prefix) => format!("an exported symbol begins with `{prefix}`"),
        None => return None,
    };
    Some(error(span, fault))
}

/// Of what stands in a C header.
pub fn check_in_c(symbol: &str, span: Span) -> Option<Diagnostic> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c) || !c.is_ascii();
    let is_named = symbol.chars().all(is_part) && !symbol.starts_with(|c: char| c.is_ascii_digit() || c == '$');
    (!is_named).then(|| error(span, format!("C has no name for the symbol `{symbol}`")))
}

fn error(span: Span, fault: String) -> Diagnostic {
    Diagnostic::error("bad-symbol", span, fault).hint("name it otherwise: `fn \"name\" f() …` or `extern fn name() …`")
}
