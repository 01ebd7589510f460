//! A function runs before a variable that it uses exists.
//!
//! A function nested in another one sees the variables declared before it. If it is called further up, where such a variable
//! has no value yet, the program would read nothing.
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
