//! The runtime library that the program needs is not found.
//!
//! Programs that print, allocate or run threads are linked with `libnyala_runtime.a`. The compiler searches for it
//! beside the command and in `../lib/nyala`; the environment variable `NYALA_RUNTIME` names another file.
//!
//! ```sh
//! NYALA_RUNTIME=/nowhere nyala build program.impala -o program
//! ```
//!
//! ## Instead
//!
//! ```sh
//! cargo build --release
//! target/release/nyala build program.impala -o program
//! ```

use nyala_base::{Diagnostic, Span};

/// `tried` are the files looked for.
pub fn error(tried: &[String]) -> Diagnostic {
    let message = "cannot find the runtime library, which the program needs";
    Diagnostic::error("runtime-not-found", Span::NONE, message).hint(format!(
        "looked for {}; `cargo build -p nyala-runtime` makes it beside the command, or `NYALA_RUNTIME` names it",
        tried.join(", ")
    ))
}
