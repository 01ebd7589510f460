//! A compiled program divides an integer by zero, or the least number by -1.
//!
//! Neither has a result. Some processors stop the program, others continue with an arbitrary number. The interpreter
//! reports it as `division-by-zero` or `signed-overflow` and shows the calls that led there.
//!
//! ```text
//! static mut n = 0;
//! fn main() -> i32 { 10 / n }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! static mut n = 0;
//! fn main() -> i32 { if n == 0 { 0 } else { 10 / n } }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, about: String) -> Diagnostic {
    Diagnostic::error("division-fault", span, about)
        .hint("test the divisor first; `--check` and `--engine interp` stop there and show the calls that lead there")
}
