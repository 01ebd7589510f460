//! The values to try for a static cannot be read.
//!
//! A line `//! tune NAME: VALUES`, or `-D NAME=VALUES` of `nyala tune`, lists values, separated by commas. They are
//! expressions, or ranges of integers, which include both ends: `1..4`, `64..1024*2`, `0..64+16`. A static has one
//! list, of up to 1,000 values.
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
        .hint("separate values by commas: `8, 16, 32`, ranges such as `64..1024*2`, or names of functions")
}
