//! A type argument does not implement a trait that the bound of the type parameter requires.
//!
//! ```impala
//! trait Area { fn area(self: &Self) -> i32; }
//! struct Square { a: i32 }
//! fn double[T: Area](x: T) -> i32 { 2 * x.area() }
//! fn f() -> i32 { double(Square { a: 3 }) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! trait Area { fn area(self: &Self) -> i32; }
//! struct Square { a: i32 }
//! impl Area for Square { fn area(self: &Square) -> i32 { self.a * self.a } }
//! fn double[T: Area](x: T) -> i32 { 2 * x.area() }
//! fn f() -> i32 { double(Square { a: 3 }) }
//! ```

use nyala_base::{Diagnostic, Span};

/// If `is_param`, the type is a type parameter itself.
pub fn error(span: Span, ty: &str, bound: &str, is_param: bool) -> Diagnostic {
    Diagnostic::error("unmet-bound", span, format!("`{ty}` does not meet the bound `{bound}`"))
        .hint(remedy(ty, bound, is_param))
}

/// How a type, or a type parameter, can meet a bound.
pub fn remedy(ty: &str, bound: &str, is_param: bool) -> String {
    match (is_param, bound) {
        (true, _) => format!("give the type parameter that bound: `{ty}: {bound}`"),
        (_, "Ord") => "only primitive types meet `Ord`".into(),
        (_, "Num") => "only types of numbers meet `Num`".into(),
        (_, "Int") => "only types of integers meet `Int`".into(),
        (_, "Float") => "only types of floats meet `Float`".into(),
        _ => format!("write `impl {bound} for {ty} {{ … }}`"),
    }
}

pub fn of_super(span: Span, ty: &str, bound: &str, of: &str) -> Diagnostic {
    let message = format!("`{ty}` does not meet the bound `{bound}`, which `{of}` requires");
    Diagnostic::error("unmet-bound", span, message).hint(format!("write `impl {bound} for {ty} {{ … }}` too"))
}

pub fn endless(span: Span, ty: &str, bound: &str) -> Diagnostic {
    let message = format!("whether `{ty}` meets the bound `{bound}` needs an endless chain of impls");
    Diagnostic::error("unmet-bound", span, message)
        .hint("an impl requires a bound on a type that is larger than its own")
}
