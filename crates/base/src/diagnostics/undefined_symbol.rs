//! A function that the program imports does not exist.
//!
//! Functions in `extern "C"` blocks come from the C library, from the runtime, or from a library named on the command
//! line: `nyala run --load LIB.so …`, `nyala build program.impala object.o library.a …`. This function is in none of
//! them. Either the library is missing, or the symbol is misspelled: a function's symbol is its name, or the string
//! before it, as in `fn "print_i32" print(i32) -> ();`.
//!
//! ```impala
//! extern "C" {
//!     fn no_such_function(i32) -> i32;
//! }
//! fn main() -> i32 { no_such_function(1) }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern "C" {
//!     fn abs(i32) -> i32;
//! }
//! fn main() -> i32 { abs(0) }
//! ```

use crate::{Diagnostic, Span};

/// `what` names the symbol, and the code that needs it.
pub fn error(span: Span, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error("undefined-symbol", span, what)
        .hint(
        "functions in `extern` blocks come from the C library, the runtime, a library given by `--load` (run), or objects \
         and libraries named beside the program's files (build)",
    )
}
