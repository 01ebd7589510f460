//! An arm of a `match` can never be taken, because the arms before it match all of its values.
//!
//! ```impala
//! fn f(x: i32) -> i32 { match x { _ => 1, 2 => 3 } }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> i32 { match x { 2 => 3, _ => 1 } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span) -> Diagnostic {
    Diagnostic::warning("useless-arm", span, "this arm can never be taken")
        .hint("the arms before it match all of its values: remove it, or put it first")
}
