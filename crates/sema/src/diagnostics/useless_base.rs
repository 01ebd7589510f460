//! A struct value takes its missing fields from another one, but none is missing.
//!
//! `..p` gives the fields that are not written. Where all are, nothing of `p` is used; often a field was added by mistake, or
//! `..p` was left after the last one was.
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f(p: Point) -> Point { Point { x: 1, y: 2, ..p } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f(p: Point) -> Point { Point { x: 1, ..p } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span) -> Diagnostic {
    Diagnostic::warning("useless-base", span, "no field is taken from this value")
        .hint("all fields are given: remove it, or one of them")
}
