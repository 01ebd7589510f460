//! A name is not visible here, because it is declared `priv`.
//!
//! Items, fields and methods with `priv` are visible only in their module, and in modules inside of it.
//!
//! ```impala
//! mod counter { priv static start = 5; fn first() -> i32 { start } }
//! fn f() -> i32 { counter::start }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! mod counter { priv static start = 5; fn first() -> i32 { start } }
//! fn f() -> i32 { counter::first() }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("private-name", span, format!("`{name}` is private to its module"))
        .hint("leave out its `priv`, or use what the module offers")
}
