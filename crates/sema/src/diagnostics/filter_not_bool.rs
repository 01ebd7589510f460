//! A filter has a type other than `bool`.
//!
//! The expression in `@(…)` before a function's name decides at each call, during compilation, whether the call is
//! specialized. It must be a `bool`. `?n` asks whether `n` is known at that time; `n` by itself is its value.
//!
//! ```impala
//! fn @(n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn @(?n) pow(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * pow(x, n - 1) } }
//! ```

use nyala_base::{Diagnostic, Span};

/// `name` is what the filter consists of, if it is a name.
pub fn error(span: Span, found: &str, name: Option<&str>) -> Diagnostic {
    let message = format!("filter has type `{found}`, expected `bool`");
    let hint = match name {
        Some(name) => format!("write `@(?{name})` to specialize when `{name}` is known"),
        None => "filters ask what is known, `@(?n)`, or compare, `@(n < 8)`".into(),
    };
    Diagnostic::error("filter-not-bool", span, message).label("used as the filter").hint(hint)
}
