//! A type stands where a value is needed.
//!
//! The name of a struct or type alone is not a value. A struct value names its fields.
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

/// `what` the name means instead. If it is a struct, `fields` are its fields.
pub fn error(span: Span, name: &str, what: &str, fields: Option<&[&str]>) -> Diagnostic {
    let hint = match fields {
        Some([]) => format!("values of structs are `{name} {{ }}`"),
        Some(fields) if fields.len() <= 6 => {
            let fields: Vec<String> = fields.iter().map(|f| format!("{}: …", super::short(f))).collect();
            format!("values of structs are `{name} {{ {} }}`", fields.join(", "))
        }
        Some(_) => format!("values of structs are `{name} {{ field: …, … }}`"),
        None if what == "a type" => format!("`x as {name}` converts a value; types are not functions"),
        None => format!("name something of it: `{name}::…`"),
    };
    let what = what.strip_prefix("a ").unwrap_or(what);
    Diagnostic::error("not-a-value", span, format!("found {what} `{name}`, expected a value")).hint(hint)
}
