//! On this target, calls in tail position may use stack.
//!
//! A call whose result is the function's own is a jump, so that recursion of any length takes constant stack. LLVM
//! guarantees this on x86-64 and AArch64 only; on other targets it does so where it can. This is a warning.
//!
//! ```sh
//! nyala build program.impala -o program.o --target riscv64-unknown-linux-gnu
//! ```
//!
//! ## Instead
//!
//! Write a `while` loop where a recursion may be long:
//!
//! ```impala
//! extern fn sum(n: i32) -> i32 {
//!     let mut i = 0;
//!     let mut s = 0;
//!     while i < n {
//!         s += i;
//!         i++;
//!     }
//!     s
//! }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, function: &str, target: &str) -> Diagnostic {
    let message = format!("a call in tail position may use stack on `{target}`");
    Diagnostic::warning("tail-call-not-guaranteed", span, message)
        .label(format!("`{function}` ends with one"))
        .hint("write a `while` loop where the recursion may be long")
}
