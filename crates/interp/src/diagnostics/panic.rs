//! The program ends itself by `panic`, or an `assert` does not hold.
//!
//! This is what the program was told to do when it cannot go on. The message is its own. The exit code is 134, as of
//! `abort`.
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { assert(n > 0); 10 / n }
//! ```
//!
//! ## Instead
//!
//! See to it that the condition holds:
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { n = 5; assert(n > 0); 10 / n - 2 }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(text: String) -> Diagnostic {
    Diagnostic::error("panic", Span::NONE, text)
        .hint("the program checks this itself, by `assert` or `panic`; see what leads here")
}
