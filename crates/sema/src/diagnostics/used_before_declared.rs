//! A function runs before a variable that it uses exists.
//!
//! A function nested in another one sees the variables declared before it. If it is called before one of these
//! variables has a value, it would read an undefined value.
//!
//! ```impala
//! fn f() -> i32 {
//!     let y = g();
//!     let x = 1;
//!     fn g() -> i32 { x }
//!     y
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 {
//!     let x = 1;
//!     fn g() -> i32 { x }
//!     g()
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, function: &str, variable: &str, declared: Span) -> Diagnostic {
    let message = format!("`{function}` is used before its variable `{variable}` exists");
    Diagnostic::error("used-before-declared", span, message)
        .other(declared, "declared here")
        .hint(format!("declare `{variable}` before this place"))
}
