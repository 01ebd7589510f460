//! What is assigned or changed is a value without a place.
//!
//! Only variables, statics, `*p`, fields and elements can stand left of `=` or have `++`: they lie somewhere. The result of a
//! call or of an operator does not.
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
