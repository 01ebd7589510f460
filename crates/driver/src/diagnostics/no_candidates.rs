//! `nyala tune` has no values to choose from.
//!
//! No static of the program has several values to try: it has no line `//! tune NAME: VALUE, VALUE`, and the command line has
//! no `-D NAME=VALUE,VALUE`.
//!
//! ```sh
//! nyala tune program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala tune program.impala -D TILE=64..1024*2
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error() -> Diagnostic {
    Diagnostic::error("no-candidates", Span::NONE, "no static of the program has several values to choose from")
        .hint("write `//! tune NAME: 8, 16, 32` beside a top-level `static NAME`, or give `-D NAME=8,16,32`")
}
