//! Statics have the values that `nyala tune` has found.
//!
//! A file beside the program, with the extension `.tune`, has values for this machine's CPU. They replace the
//! initializers in the program. `-D NAME=VALUE` takes precedence; `--no-tune` leaves the program as written, as do
//! `--cpu` and `--target` of another machine, and `nyala test`.
//!
//! ```sh
//! nyala build program.impala -o program
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala build --no-tune program.impala -o program
//! ```

use nyala_base::{Diagnostic, Span};

pub fn info(values: &str, file: &str) -> Diagnostic {
    Diagnostic::info("tuned-values", Span::NONE, format!("tuned: {values} (`{file}`)"))
}
