//! Code can never run, because the code before it never ends, or because it needs a value that never exists.
//!
//! A call of `return`, `break`, `continue` or another continuation never returns; its type is `!`. Code after it in a
//! block can never run. Nor can code that needs its value: a `let`, an operator, a call.
//!
//! ```impala
//! fn f() -> i32 {
//!     return(1);
//!     2
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(early: bool) -> i32 {
//!     if early { return(1) }
//!     2
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// The code at `before` never returns.
pub fn after(span: Span, before: Span) -> Diagnostic {
    Diagnostic::error("unreachable-code", span, "this can never run")
        .other(before, "never returns")
        .hint("remove it, or make the code before it conditional")
}

pub fn no_value(span: Span) -> Diagnostic {
    Diagnostic::error("unreachable-code", span, "this never has a value")
        .label("has type `!`, so code that needs its value can never run")
        .hint("let it stand alone as the last statement")
}
