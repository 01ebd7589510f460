//! The runtime library that the program needs is not found.
//!
//! Programs that print, allocate or run threads are linked with `libnyala_runtime.a`. The compiler searches for it
//! beside the command and in `../lib/nyala`; the environment variable `NYALA_RUNTIME` names another file. If there is none, it
//! makes the library once, with Cargo, of the source that the command was made of.
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

/// `tried` are the files looked for; `why` says why the library cannot be made.
pub fn error(tried: &[String], why: &str) -> Diagnostic {
    let message = "cannot find the runtime library, which the program needs";
    Diagnostic::error("runtime-not-found", Span::NONE, message).hint(format!(
        "looked for {}; {why}; `cargo build -p nyala-runtime` makes it beside the command, or `NYALA_RUNTIME` names it",
        tried.join(", ")
    ))
}
