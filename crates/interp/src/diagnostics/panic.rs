//! The program calls `panic`, or the condition of an `assert` is false.
//!
//! The program itself decided that it cannot go on, and gave the message. The exit code is 134, as after `abort`.
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { assert(n > 0); 10 / n }
//! ```
//!
//! ## Instead
//!
//! Make sure that the condition holds:
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { n = 5; assert(n > 0); 10 / n - 2 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(text: String) -> Diagnostic {
    Diagnostic::error("panic", Span::NONE, text)
        .hint("the program checks this itself, with `assert` or `panic`; find out what leads here")
}
