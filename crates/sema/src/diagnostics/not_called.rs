//! A function is named in a statement, but not called.
//!
//! A statement drops its value. If the value is a function or continuation, nothing happens. `return`, `break` and
//! `continue` are such values in Impala, so they are called like other functions. This is a warning.
//!
//! ```impala
//! fn f(n: i32) -> i32 {
//!     let mut i = 0;
//!     while i < n {
//!         if i == 5 { break; }
//!         i++;
//!     }
//!     i
//! }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(n: i32) -> i32 {
//!     let mut i = 0;
//!     while i < n {
//!         if i == 5 { break() }
//!         i++;
//!     }
//!     i
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, name: &str) -> Diagnostic {
    let call = if name == "return" {
        "`return(x)`, or `return()` if there is no result".into()
    } else {
        format!("`{name}()`")
    };
    Diagnostic::warning("not-called", span, format!("`{name}` is not called, so this does nothing"))
        .hint(format!("call it: {call}"))
}
