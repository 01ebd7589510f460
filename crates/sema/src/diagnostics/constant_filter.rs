//! A filter mentions no name, so it is the same for every call.
//!
//! `@(true)` is a bare `@`, `@(false)` no annotation at all. It is a warning.
//!
//! ```impala
//! fn @(true) f(x: i32) -> i32 { x + 1 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn @f(x: i32) -> i32 { x + 1 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span) -> Diagnostic {
    Diagnostic::warning("constant-filter", span, "this filter is the same for every call")
        .hint("`@` alone is always, no annotation never; `@(?x)` specializes where `x` is known")
}
