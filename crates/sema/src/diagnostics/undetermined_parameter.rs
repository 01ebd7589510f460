//! Nothing determines a type parameter of an `impl`: neither its type nor the arguments of its trait mention it.
//!
//! ```impala
//! struct S { x: i32 }
//! impl[T] S { fn get(self: &S) -> i32 { self.x } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct S { x: i32 }
//! impl S { fn get(self: &S) -> i32 { self.x } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("undetermined-parameter", span, format!("nothing determines `{name}`"))
        .hint("leave it out, or make it a type parameter of the method")
}
