//! The code of a `defer { … }` names a continuation of the code around it, such as `return`, `break` or `continue`.
//!
//! That code runs while its block is being left already. It must come to its end, so that the other deferred code runs, and the
//! block is left for where it was left to. Loops and lambdas inside of it have continuations of their own.
//!
//! ```impala
//! fn f(n: i32) -> i32 {
//!     defer { if n > 3 { return(0) } }
//!     n
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(n: i32) -> i32 {
//!     defer { if n > 3 { print_i32(n) } }
//!     if n > 3 { 0 } else { n }
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("leaves-defer", span, format!("`{name}` would leave the `defer` that it is used in"))
        .hint("let the deferred code come to its end, and leave the block before or after it")
}
