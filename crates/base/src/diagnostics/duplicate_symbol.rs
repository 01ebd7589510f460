//! Two functions are exported under the same symbol.
//!
//! An `extern fn` is exported by its name, or by the string before the name. Code that is linked with the program finds
//! the function by this symbol, so each symbol can be exported only once.
//!
//! ```impala
//! extern fn f() -> i32 { 1 }
//! extern fn "f" g() -> i32 { 2 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern fn f() -> i32 { 1 }
//! extern fn "g" g() -> i32 { 2 }
//! ```

use crate::{Diagnostic, Span};

pub fn error(span: Span, symbol: &str, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-symbol", span, format!("symbol {symbol:?} is exported twice"))
        .other(first, "first here")
        .hint("give one of the two another symbol, `extern fn \"symbol\" name(…)`")
}
