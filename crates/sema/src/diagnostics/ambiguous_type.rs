//! Nothing says which type a variable, parameter or type argument has.
//!
//! Types inside of functions are inferred from all uses, in any order. Where no use determines a type, the program must
//! state it. An integer literal whose type nothing else determines is an `i32`, and a float literal an `f64`.
//!
//! ```impala
//! fn f() -> () { let x; }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> () { let mut x: i32; x = 1; }
//! ```

use nyala_base::{Diagnostic, Span};

/// `what` has the type, of which `found` is known.
pub fn error(span: Span, what: &str, found: &str) -> Diagnostic {
    let message = format!("nothing says which type {what} has");
    Diagnostic::error("ambiguous-type", span, message)
        .label(format!("has type `{found}`"))
        .hint("state the type: `x: T`")
}

/// The argument of the parameter `const name`.
pub fn constant(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("ambiguous-type", span, format!("nothing says which value the constant `{name}` has"))
        .hint("state it in brackets: `f[4](…)`; it is inferred from lengths and constants, but not from expressions")
}

pub fn static_item(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("ambiguous-type", span, "nothing says which type this static has")
        .hint(format!("state the type, `static {name}: i32;`, or give it a value"))
}
