//! A type stands where a value is needed.
//!
//! The name of a struct or type alone is no value. A struct's value names its fields.
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f() -> () { let p = Point; }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f() -> () { let p = Point { x: 1, y: 2 }; }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str, is_struct: bool) -> Diagnostic {
    let hint = match is_struct {
        true => format!("values of structs are `{name} {{ … }}`"),
        false => format!("`x as {name}` converts a value; types are no functions"),
    };
    Diagnostic::error("not-a-value", span, format!("found type `{name}`, expected a value")).hint(hint)
}
