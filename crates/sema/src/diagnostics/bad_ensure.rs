//! The text of `ensure_residual` is no literal, or says something that is not checked.
//!
//! The text is a list of terms with commas between: `no THING`, `THING <= N` (or `<`, `==`, `>=`, `>`), both with `inner`
//! before them to count each innermost loop alone, and `vector N`. Things are `allocation`, `atomic`, `branch`, `call`,
//! `closure`, `division`, `gather`, `instruction`, `load`, `loop`, `scatter` and `store`, also in the plural.
//!
//! ```impala
//! extern fn f(x: i32) -> i32 { ensure_residual("no jumps"); x + 1 }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! extern fn f(x: i32) -> i32 { ensure_residual("no branch, loads <= 1"); x + 1 }
//! ```

use nyala_base::{Diagnostic, Span};
use nyala_ir::ensure::THINGS;

pub fn not_a_literal(span: Span) -> Diagnostic {
    Diagnostic::error("bad-ensure", span, "the text is not a literal")
        .hint("write the text as it is: `ensure_residual(\"no call\")`")
}

pub fn unknown(span: Span, term: &str) -> Diagnostic {
    let names: Vec<String> = THINGS.iter().map(|(_, [name, _])| format!("`{name}`")).collect();
    Diagnostic::error("bad-ensure", span, format!("found `{term}`, which says nothing that is checked")).hint(format!(
        "write `no THING`, `THING <= N`, `inner THING <= N` or `vector N`; things are {}",
        names.join(", ")
    ))
}
