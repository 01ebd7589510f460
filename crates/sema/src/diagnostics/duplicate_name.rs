//! Two things of one scope have the same name.
//!
//! The functions, types and statics of a program must have different names, as must those of a block, the parameters of
//! a function and the fields of a struct. A `let` may reuse a name: then it hides the older one. Files given to the
//! compiler together form one program. A program may define again what the prelude defines.
//!
//! ```impala
//! fn f() -> i32 { 1 }
//! fn f() -> i32 { 2 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 { 1 }
//! fn g() -> i32 { 2 }
//! ```

use nyala_base::{Diagnostic, Span};

fn error(span: Span, what: &str, first: Option<Span>) -> Diagnostic {
    let diagnostic = Diagnostic::error("duplicate-name", span, format!("{what} is defined twice"));
    let diagnostic = diagnostic.hint("rename or remove one of the two");
    match first {
        Some(first) => diagnostic.other(first, "first here"),
        None => diagnostic,
    }
}

pub fn item(span: Span, name: &str, first: Option<Span>) -> Diagnostic {
    error(span, &format!("`{name}`"), first)
}

pub fn field(span: Span, name: &str, first: Option<Span>) -> Diagnostic {
    error(span, &format!("field `{name}`"), first)
}

pub fn parameter(span: Span, name: &str, first: Span) -> Diagnostic {
    error(span, &format!("parameter `{name}`"), Some(first))
}

pub fn option(span: Span, name: &str, first: Span) -> Diagnostic {
    error(span, &format!("option `{name}`"), Some(first))
}
