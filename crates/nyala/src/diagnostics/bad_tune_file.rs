//! A file with tuned values is broken, or does not fit the program any more.
//!
//! `nyala tune` writes it, with the ending `.tune`, beside the program. What in it cannot be used is left out, and the program
//! is compiled as written.
//!
//! ```sh
//! echo 'TILE: 64' > program.tune
//! nyala run program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala tune program.impala
//! nyala run program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn warning(span: Span, message: String) -> Diagnostic {
    Diagnostic::warning("bad-tune-file", span, message).hint("`nyala tune` makes it anew; `--no-tune` does not read it")
}
