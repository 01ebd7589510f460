//! An operator does not take operands of this type.
//!
//! Arithmetic takes numbers. `&`, `|` and `^` take integers and `bool`, shifts take integers, and comparisons take
//! numbers, `bool` and pointers. Structs, enums, tuples and arrays have those operators that an impl of the prelude's trait
//! gives them: `Add`, `Sub`, `Mul`, `Div`, `Rem`, `Neg`, `Not`, `BitAnd`, `BitOr`, `BitXor`, `Shl`, `Shr`, `Eq` for `==` and
//! `!=`, `Less` for the other comparisons. Functions have none.
//!
//! ```impala
//! fn f(a: bool, b: bool) -> bool { a + b }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(a: bool, b: bool) -> bool { a | b }
//! fn g(a: bool, b: bool) -> i32 { a as i32 + b as i32 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `expected` describes the types that `op` takes; `hint` says what to do with a value of type `found`.
pub fn error(span: Span, op: &str, found: &str, expected: &str, hint: &str) -> Diagnostic {
    let message = format!("found operand of type `{found}` for `{op}`, expected {expected}");
    Diagnostic::error("bad-operand", span, message).hint(hint)
}

/// No impl of `name`, the trait of `op`, is for operands of type `ty` and `other`.
pub fn no_impl(span: Span, op: &str, name: &str, ty: &str, other: Option<&str>) -> Diagnostic {
    let message = match other {
        Some(other) if other != ty => {
            format!("found operands of types `{ty}` and `{other}` for `{op}`, which no impl takes")
        }
        _ => format!("found operand of type `{ty}` for `{op}`, which no impl takes"),
    };
    // An impl is for a type that has a name; a literal's is this one, if nothing else is known.
    let named = |ty: &str| match ty {
        "float" => "f64".into(),
        "integer" => "i32".into(),
        _ => ty.to_string(),
    };
    let ty = named(ty);
    let args = match (name, other) {
        ("Eq" | "Less", _) => String::new(),
        (_, Some(other)) => format!("[{}, R]", named(other)),
        (_, None) => "[R]".into(),
    };
    if name == "Add" && (ty.starts_with("[u8 * ") || ty == "Slice[u8]" || ty == "&[u8]") {
        return Diagnostic::error("bad-operand", span, message)
            .hint("texts are joined by `append` of a `Text` of `std::text`, or printed one after the other");
    }
    let result = if args.is_empty() { "" } else { ", where `R` is the type of the result" };
    Diagnostic::error("bad-operand", span, message)
        .hint(format!("write `impl {name}{args} for {ty} {{ … }}`{result}; or compute with its parts"))
}
