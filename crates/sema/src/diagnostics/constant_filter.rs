//! A filter mentions no name, so it is the same for every call.
//!
//! `@(true)` means `@`, and `@(false)` means no annotation. This is a warning.
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
        .hint("`@` specializes always, and no annotation never; `@(?x)` does where `x` is known")
}
