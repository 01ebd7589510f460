//! A `?` asks about something that partial evaluation never knows, so it is always `false`.
//!
//! These are `$e`, a `static mut`, and the result of a C function. This is a warning.
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
