//! A value has no field of this name.
//!
//! `x.f` is a field of the struct that `x` is or points to. Parts of tuples are `t(0)`, elements of arrays `a(i)`;
//! arrays and pointers do not have their length.
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f(p: Point) -> i32 { p.z }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! struct Point { x: i32, y: i32 }
//! fn f(p: Point) -> i32 { p.y }
//! ```

use nyala_base::{Diagnostic, Span};

/// `fields` are those of the struct, and `similar` is one that may be meant.
pub fn of_struct(span: Span, of: &str, name: &str, fields: &[&str], similar: Option<&str>) -> Diagnostic {
    let message = format!("struct `{of}` has no field `{name}`");
    let diagnostic = Diagnostic::error("no-such-field", span, message);
    if similar.is_some() {
        return diagnostic.hint_similar(similar);
    }
    let shown: Vec<String> = fields.iter().take(8).map(|f| format!("`{}`", super::short(f))).collect();
    match shown.len() {
        0 => diagnostic.hint("it has no fields"),
        n if n < fields.len() => diagnostic.hint(format!("some of its fields are {}", shown.join(", "))),
        _ => diagnostic.hint(format!("its fields are {}", shown.join(", "))),
    }
}

pub fn of_other(span: Span, of: &str, name: &str) -> Diagnostic {
    let hint = match name {
        "len" | "length" | "size" | "count" => length(None),
        _ => "only structs have fields; functions are called as `f(x)`, parts of tuples are `t(0)`, elements `a(i)`"
            .into(),
    };
    Diagnostic::error("no-such-field", span, format!("`{of}` has no field `{name}`")).hint(hint)
}

/// Where the length is: in this field, if the struct has it.
pub(super) fn length(field: Option<&str>) -> String {
    match field {
        Some(field) => format!("its field `{field}` says it"),
        None => "pointers and arrays do not have their length: pass it along".into(),
    }
}
