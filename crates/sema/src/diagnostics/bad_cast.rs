//! `as` cannot convert between these types.
//!
//! `as` converts numbers to numbers, `bool` to numbers and back, pointers to pointers, pointers to integers and back,
//! and any value to a type that it fits anyway. Structs, tuples and arrays are converted part by part.
//!
//! ```impala
//! fn f() -> i32 { (1, 2) as i32 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i64 { let t = (1, 2); t(0) as i64 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, from: &str, to: &str) -> Diagnostic {
    let message = format!("found `{from}`, which `as` cannot convert to `{to}`");
    Diagnostic::error("bad-cast", span, message)
        .hint("`as` converts numbers, bools and pointers; take the part that is meant, or build the value anew")
}
