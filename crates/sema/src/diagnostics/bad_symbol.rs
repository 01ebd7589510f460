//! A function has a name for C and the linker that cannot be one.
//!
//! The string before a function's name is its symbol. It must not be empty and must not have a control character, such as a line's
//! end. It must not begin with `.`, as sections do, nor with `llvm.`, nor with `nyala_`, as the runtime's functions do, if the program
//! exports it. In a header only letters, digits and `_`, `.`, `$` may be in it, and no digit or `$` comes first: C's assemblers take no
//! other.
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

const RENAME: &str = "name it otherwise: `fn \"name\" f() …` or `extern fn name() …`";

/// `exported`: the program itself has the function.
pub fn check(symbol: &str, span: Span, exported: bool) -> Option<Diagnostic> {
    let reserved = [".", "llvm.", "nyala_"].into_iter().find(|p| symbol.starts_with(p) && (exported || *p != "nyala_"));
    let what = if exported { "an exported symbol" } else { "an imported symbol" };
    let fault = match reserved {
        _ if symbol.is_empty() => "a symbol is empty".into(),
        _ if symbol.contains('\0') => "a symbol has a zero byte".into(),
        _ if symbol.contains(char::is_control) => "a symbol has a control character".into(),
        Some(prefix) => format!("{what} begins with `{prefix}`"),
        None => return None,
    };
    // Intrinsics of LLVM are no functions of C.
    let of_llvm = !exported && reserved == Some("llvm.");
    Some(error(span, fault, if of_llvm { "declare it in an `extern \"device\"` block" } else { RENAME }))
}

/// Of what stands in a C header.
pub fn check_in_c(symbol: &str, span: Span) -> Option<Diagnostic> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c) || !c.is_ascii();
    let is_named = symbol.chars().all(is_part) && !symbol.starts_with(|c: char| c.is_ascii_digit() || c == '$');
    (!is_named).then(|| error(span, format!("C has no name for the symbol `{symbol}`"), RENAME))
}

fn error(span: Span, fault: String, hint: &str) -> Diagnostic {
    Diagnostic::error("bad-symbol", span, fault).hint(hint)
}
