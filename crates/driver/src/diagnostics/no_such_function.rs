//! The function named by `--fn` does not exist at this stage.
//!
//! `nyala emit --fn NAME` shows one function only. Functions that nothing exported uses are not compiled; after
//! specialization, functions that were inlined are gone, and those specialized for several arguments have a name each. The hint says which functions have the code of one that was inlined.
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

/// Limit on the names that a hint lists.
const MAX_NAMES: usize = 8;

/// `left` are the functions that are there.
pub fn error<'a>(name: &str, left: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let similar = nyala_sema::closest(name, left.clone());
    let some: Vec<String> = left.clone().take(MAX_NAMES).map(|n| format!("`{n}`")).collect();
    let more = if left.count() > MAX_NAMES { ", …" } else { "" };
    let diagnostic =
        Diagnostic::error("no-such-function", Span::NONE, format!("no function `{name}` is left at this stage"))
            .hint_similar(similar)
            .hint("it may have been inlined, or nothing exported uses it; leave out `--fn` to see everything");
    if some.is_empty() { diagnostic } else { diagnostic.hint(format!("left are {}{more}", some.join(", "))) }
}

/// `by` put the function's code into `holders`.
pub fn inlined(name: &str, by: &str, holders: &[String]) -> Diagnostic {
    let some: Vec<String> = holders.iter().take(MAX_NAMES).map(|n| format!("`{n}`")).collect();
    let more = if holders.len() > MAX_NAMES { ", …" } else { "" };
    let message = format!("no function `{name}` is left at this stage");
    let diagnostic = Diagnostic::error("no-such-function", Span::NONE, message);
    match holders {
        [] => diagnostic.hint(format!("{by} removed it: what is left does not need it")),
        _ => diagnostic.hint(format!("{by} inlined it into {}{more}", some.join(", "))),
    }
}

/// The program as partial evaluation gets it has no function `name`.
pub fn unknown(name: &str, similar: Option<&str>) -> Diagnostic {
    let hint = match similar {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "functions that nothing exported uses are not compiled; leave out `--fn` to see everything".into(),
    };
    Diagnostic::error("no-such-function", Span::NONE, format!("partial evaluation met no function `{name}`")).hint(hint)
}
