//! Something stands where the program can never come, or needs a value that can never be.
//!
//! A call of `return`, `break`, `continue` or of another continuation never comes back; its type is `!`. What follows it in
//! a block can never run; nor can what needs its value: a `let`, an operator, a call.
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

/// What stands at `before` does not come back.
pub fn after(span: Span, before: Span) -> Diagnostic {
    Diagnostic::error("unreachable-code", span, "this can never run")
        .other(before, "never returns")
        .hint("remove it, or make what stands before it conditional")
}

pub fn no_value(span: Span) -> Diagnostic {
    Diagnostic::error("unreachable-code", span, "this never has a value")
        .label("has type `!`, so what needs it can never run")
        .hint("let it stand alone as the last statement")
}
