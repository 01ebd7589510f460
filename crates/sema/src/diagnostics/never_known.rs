//! A `?` asks about something that partial evaluation never knows, so it is always `false`.
//!
//! That holds for `$e`, for a `static mut`, and for what a C function gives back. It is a warning.
//!
//! ```impala
//! fn f(x: i32) -> bool { ?($x) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> bool { ?x }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, why: &'static str) -> Diagnostic {
    Diagnostic::warning("never-known", span, "this `?` is always `false`").label(why).hint("leave it out")
}
