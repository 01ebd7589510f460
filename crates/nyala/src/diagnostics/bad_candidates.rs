//! The values to try for a static cannot be read.
//!
//! A line `//! tune NAME: VALUES`, or `-D NAME=VALUES` of `nyala tune`, has values between commas: expressions, or ranges of
//! integers with both ends: `1..4`, `64..1024*2`, `0..64+16`. There may be 1,000, and one list for each static.
//!
//! ```sh
//! nyala tune program.impala -D TILE=64..1024*1
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala tune program.impala -D TILE=64..1024*2
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("bad-candidates", span, format!("bad candidates for `nyala tune`: {why}"))
        .hint("write values between commas, such as `8, 16, 32`, `64..1024*2` or names of functions")
}
