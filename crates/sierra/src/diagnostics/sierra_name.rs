//! Nothing of this name is in scope, or something else has it, in a program in Sierra.
//!
//! A name is a variable or a parameter, which is in scope from its declaration to the end of the block, or a function, a type or a constant of the
//! file. A function may be called above its definition.
//!
//! ```text
//! int f(int n) { { int m = n; } return m; }
//! ```
//!
//! ## Instead
//!
//! ```text
//! int f(int n) { int m = n; return m; }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("found no `{name}` in scope"))
}

pub fn label(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("the function has no label `{name}`"))
}

pub fn field(span: Span, name: &str, of: &str) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("`{of}` has no field `{name}`"))
}

pub fn twice(span: Span, name: &str, before: Span) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("`{name}` is declared twice"))
        .other(before, "the first time")
        .hint("rename one of them")
}

/// Another function has the name, so that it is none of other code.
pub fn no_body(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("`{name}` has no body for parameters of these types"))
        .hint("declare the function of other code `extern \"C\"`")
}

/// Impala's code exports it.
pub fn exported(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("sierra-name", span, format!("the program has another function `{name}`"))
        .hint("rename one of them, or declare it `static`")
}
