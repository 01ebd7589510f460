//! A type argument lacks an impl of a trait that the type parameter's bound asks for.
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

/// `is_param`: the type is a type parameter itself.
pub fn error(span: Span, ty: &str, bound: &str, is_param: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error("unmet-bound", span, format!("`{ty}` does not meet the bound `{bound}`"));
    match (is_param, bound) {
        (true, _) => diagnostic.hint(format!("give the type parameter that bound: `{ty}: {bound}`")),
        (_, "Num" | "Int" | "Float" | "Ord") => diagnostic.hint(format!("`{bound}` is met by primitive types only")),
        _ => diagnostic.hint(format!("write `impl {bound} for {ty} {{ … }}`")),
    }
}

pub fn of_super(span: Span, ty: &str, bound: &str, of: &str) -> Diagnostic {
    let message = format!("`{ty}` does not meet the bound `{bound}`, which `{of}` asks for");
    Diagnostic::error("unmet-bound", span, message).hint(format!("write `impl {bound} for {ty} {{ … }}` too"))
}

pub fn endless(span: Span, ty: &str, bound: &str) -> Diagnostic {
    let message = format!("whether `{ty}` meets the bound `{bound}` needs an endless chain of impls");
    Diagnostic::error("unmet-bound", span, message).hint("an impl asks for a bound on a type larger than its own")
}
