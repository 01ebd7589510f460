//! The function named by `--fn` does not exist at this stage.
//!
//! `nyala emit --fn NAME` shows one function only. Functions that nothing exported uses are not compiled; after
//! specialization, functions that were inlined are gone, and those specialized for several arguments have a name each.
//!
//! ```sh
//! nyala emit --stage residual --fn helper program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala emit --stage graph --fn helper program.impala
//! nyala emit --stage residual program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error(name: &str) -> Diagnostic {
    Diagnostic::error("no-such-function", Span::NONE, format!("no function `{name}` is left at this stage"))
        .hint("it may have been inlined, or nothing exported uses it; leave out `--fn` to see everything")
}

/// The program as partial evaluation gets it has no function `name`.
pub fn unknown(name: &str, similar: Option<&str>) -> Diagnostic {
    let hint = match similar {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "functions that nothing exported uses are not compiled; leave out `--fn` to see everything".into(),
    };
    Diagnostic::error("no-such-function", Span::NONE, format!("partial evaluation met no function `{name}`")).hint(hint)
}
