//! A value is called that is not a function, or is a function of another type.
//!
//! Types ensure that a function gets the arguments that it takes. Casts of pointers and `bitcast` bypass types, so that
//! a program may call any value as a function of any type.
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
        .hint("look for a cast of a pointer or a `bitcast` to a type that the value does not have")
}

pub fn other_type(function: &str) -> Diagnostic {
    error(format!("`{function}` is called as another type"))
}

pub fn no_function() -> Diagnostic {
    error("the value that is called is not a function".into())
}

/// A word of memory is read as a function, and is not one.
pub fn no_function_in_memory() -> Diagnostic {
    error("a value that is not a function is read from memory as one".into())
}
