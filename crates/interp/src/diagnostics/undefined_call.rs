//! What is called as a function is none, or one of another type.
//!
//! Types see to it that a function gets the arguments it takes. Casts of pointers and `bitcast` get around them: then
//! what lies at an address may be called that is no function, or that takes something else.
//!
//! ```impala
//! fn add(x: i32, y: i32) -> i32 { x + y }
//! fn main() -> i32 {
//!     let mut f = add;
//!     let g = &mut f as &mut fn(i32) -> i32;
//!     (*g)(1)
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn add(x: i32, y: i32) -> i32 { x + y }
//! fn main() -> i32 {
//!     let mut f = add;
//!     let g = &mut f;
//!     (*g)(1, -1)
//! }
//! ```

use nyala_base::{Diagnostic, Span};

fn error(message: String) -> Diagnostic {
    Diagnostic::error("undefined-call", Span::NONE, message)
        .hint("look for a cast of a pointer or a `bitcast` that says otherwise than what is there")
}

pub fn other_type(function: &str) -> Diagnostic {
    error(format!("`{function}` is called as another type"))
}

pub fn no_function() -> Diagnostic {
    error("what is called is no function".into())
}

/// A word of memory is read as a function.
pub fn no_function_in_memory() -> Diagnostic {
    error("what is read as a function is none".into())
}
