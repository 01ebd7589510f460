//! Code is active, but needs a value that is not known.
//!
//! A call is executed as soon as its staging expression is true, and nothing within its arguments is active. By then the called function has to be
//! bound, and the operands of a built-in function, too: staging it too early is an error. The label names what is missing. Code that calls a
//! parameter of a function which nobody has called yet, or computes with one, has to be staged on it.
//!
//! ```text
//! let [ready] same (float x, fn[float] cont) {
//!   cont x
//! }
//! let twice (float x, fn[float] cont) {
//!   @ready: x+x (y)
//!   cont y
//! }
//! ```
//!
//! ## Instead
//!
//! ```text
//! let twice (float x, fn[float] cont) {
//!   @x: x+x (y)
//!   cont y
//! }
//! ```
//!
//! A division by zero, and a sum that is no `int`, are faults of the program as they would be at run time.

use crate::prim::{Fault, Prim};
use nyala_base::{Diagnostic, Span};

/// `declared` is the place of the variable.
pub fn unbound(span: Span, name: &str, declared: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error("stuck-body", span, format!("active, but `{name}` is not known"))
        .label(format!("executed before `{name}` is bound"))
        .hint(format!("stage it on the value, `@{name}: …`, or stage it later"));
    match declared.is_none() {
        false => diagnostic.other(declared, "bound by a call of this function"),
        true => diagnostic,
    }
}

pub fn fault(span: Span, prim: Prim, fault: Fault) -> Diagnostic {
    let what = match fault {
        Fault::DivisionByZero => "divides by zero".to_string(),
        Fault::Overflow => "has a result that is no `int`".to_string(),
        Fault::OutOfBounds => "has an index behind the end of the array".to_string(),
        Fault::ConstantArray => "changes a constant array".to_string(),
        Fault::Operands | Fault::Unbound(_) => "has operands of other types".to_string(),
    };
    Diagnostic::error("stuck-body", span, format!("`{}` {what}", prim.name()))
}

/// Nothing binds what the code waits for.
pub fn never(span: Span) -> Diagnostic {
    Diagnostic::error("stuck-body", span, "this never runs: nothing makes its stage active")
        .hint("stage it on what a call of a function around it binds")
}

/// Its stage is ⊥.
pub fn staged_on_never(span: Span) -> Diagnostic {
    Diagnostic::error("stuck-body", span, "this never runs: its stage is `never`, written here or passed by a caller")
        .hint("write or pass what is true at some time: the name of a function, a value or a stage")
}

pub fn not_callable(span: Span) -> Diagnostic {
    Diagnostic::error("stuck-body", span, "what is called is no function of that many arguments")
}
