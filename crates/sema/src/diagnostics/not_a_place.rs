//! An expression is assigned or changed that is not a place.
//!
//! Places are variables, statics, `*p`, fields and elements. Only they can stand to the left of `=` or have `++`. The
//! result of a call or of an operator is not a place.
//!
//! ```impala
//! fn f() -> () { 1 = 2; }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> () { let mut x = 1; x = 2; }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span) -> Diagnostic {
    Diagnostic::error("not-a-place", span, "found a value, expected a place")
        .hint("variables, `*p`, fields and elements are places; comparison is `==`")
}
