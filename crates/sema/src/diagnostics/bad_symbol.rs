//! A function has a name for C and the linker that cannot be one.
//!
//! The string before a function's name is its symbol. It must not be empty and must not have a zero byte. What a program
//! exports must not begin with `nyala_`, as the runtime's functions do, nor with `llvm.`.
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
        Some(prefix) => format!("an exported symbol begins with `{prefix}`"),
        None => return None,
    };
    Some(
        Diagnostic::error("bad-symbol", span, fault)
            .hint("name it otherwise: `fn \"name\" f() …` or `extern fn name() …`"),
    )
}
