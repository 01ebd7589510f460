//! A file with tuned values is broken, or no longer fits the program.
//!
//! `nyala tune` writes this file beside the program, with the extension `.tune`. Values that cannot be used are
//! ignored, and the program is compiled as written.
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
    Diagnostic::warning("bad-tune-file", span, message).hint("`nyala tune` writes it anew; `--no-tune` ignores it")
}
