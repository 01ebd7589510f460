//! An inline assembly has an option or a constraint that does not exist.
//!
//! The options are `"volatile"`, `"alignstack"` and `"intel"`. The constraints are LLVM's: those of outputs begin with
//! `=`, those of inputs do not.
//!
//! ```impala
//! fn f(x: i32) -> () { asm("nop" : : "r"(x) : : "fast"); }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f(x: i32) -> () { asm("nop" : : "r"(x) : : "volatile"); }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn option(span: Span, option: &str) -> Diagnostic {
    Diagnostic::error("bad-asm", span, format!("found option `{option}`"))
        .hint("options are `\"volatile\"`, `\"alignstack\"` and `\"intel\"`")
}

pub fn constraint(span: Span, constraint: &str, hint: &'static str) -> Diagnostic {
    Diagnostic::error("bad-asm", span, format!("found constraint `{constraint}`")).hint(hint)
}
