//! The symbol of a function is not allowed.
//!
//! The symbol is the function's name for C and the linker: the string before its name, if there is one. It must not be
//! empty or contain control characters, such as the end of a line. It must not begin with `.`, as names of sections do,
//! or with `llvm.`. The symbol of a function of the program must not begin with `nyala_`, as those of the runtime do.
//! In a header, a symbol consists of letters, digits, `_`, `.` and `$`, and begins with neither a digit nor `$`:
//! assemblers of C accept no others.
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

const RENAME: &str = "choose another symbol: `fn \"name\" f() …` or `extern fn name() …`";

/// The fault of a symbol, if it has one. If `exported`, the function is one of the program, else it is imported.
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
    // LLVM's intrinsics are not C functions.
    let of_llvm = !exported && reserved == Some("llvm.");
    Some(error(span, fault, if of_llvm { "declare it in an `extern \"device\"` block" } else { RENAME }))
}

/// The fault of a symbol that a C header declares, if it has one.
pub fn check_in_c(symbol: &str, span: Span) -> Option<Diagnostic> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c) || !c.is_ascii();
    let is_named = symbol.chars().all(is_part) && !symbol.starts_with(|c: char| c.is_ascii_digit() || c == '$');
    (!is_named).then(|| error(span, format!("C has no name for the symbol `{symbol}`"), RENAME))
}

fn error(span: Span, fault: String, hint: &str) -> Diagnostic {
    Diagnostic::error("bad-symbol", span, fault).hint(hint)
}
