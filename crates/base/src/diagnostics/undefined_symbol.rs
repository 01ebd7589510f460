//! A function that the program imports exists nowhere.
//!
//! Functions in `extern "C"` blocks come from the C library, from the runtime, or from a library named on the command
//! line: `nyala run --load LIB.so …`, `nyala build program.impala object.o library.a …`. This one is in none of them. Either its name is misspelled (a string before the name,
//! `fn "print_i32" print(i32) -> ();`, gives the symbol), or the library is missing.
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

/// `what` says which symbol, and what it is missing for.
pub fn error(span: Span, what: impl Into<String>) -> Diagnostic {
    Diagnostic::error("undefined-symbol", span, what)
        .hint(
        "functions in `extern` blocks come from the C library, the runtime, a library given by `--load` (run), or objects \
         and libraries named beside the program's files (build)",
    )
}
