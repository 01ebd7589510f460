//! A static that `-D` replaces does not exist.
//!
//! `-D NAME=VALUE` gives a top-level `static` another initializer. The program must have a static of this name.
//!
//! ```sh
//! nyala run -D WIDHT=640 program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala run -D WIDTH=640 program.impala
//! ```

use nyala_base::{Diagnostic, Span};

/// `similar` is a static that may be meant.
pub fn error(span: Span, name: &str, value: &str, similar: Option<&str>) -> Diagnostic {
    let message = format!("the program has no top-level static `{name}` to define");
    let diagnostic = Diagnostic::error("no-such-static", span, message);
    match similar {
        Some(_) => diagnostic.hint_similar(similar),
        None => diagnostic.hint(format!("write `static {name} = {value};` in the program")),
    }
}
