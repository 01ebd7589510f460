//! The value of a static depends on itself.
//!
//! The initializer of a static may use other immutable statics, in any order, but not in a cycle. It may use the
//! address of any static.
//!
//! ```impala
//! static a = b + 1;
//! static b = a + 1;
//! extern fn f() -> i32 { a }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! static a = b + 1;
//! static b = 1;
//! extern fn f() -> i32 { a }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("recursive-static", span, format!("static `{name}` depends on itself"))
        .hint("give one of the statics in this cycle a value of its own")
}
