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
use std::collections::HashSet;

/// Limit on the names that a hint lists.
const MAX_NAMES: usize = 8;

/// `left` are the functions that are there.
pub fn error<'a>(name: &str, left: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let similar = nyala_sema::closest(name, left.clone());
    let (some, more) = list(left);
    let diagnostic =
        Diagnostic::error("no-such-function", Span::NONE, format!("no function `{name}` is left at this stage"))
            .hint_similar(similar)
            .hint("it may have been inlined, or nothing exported uses it; leave out `--fn` to see everything");
    if some.is_empty() { diagnostic } else { diagnostic.hint(format!("left are {some}{more}")) }
}

/// Some names, each once, and what stands for the others. Copies of a function have one name.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> (String, &'static str) {
    let mut seen = HashSet::new();
    let mut names = names.filter(|name| seen.insert(*name));
    let some: Vec<String> = names.by_ref().take(MAX_NAMES).map(|n| format!("`{n}`")).collect();
    (some.join(", "), if names.next().is_some() { ", …" } else { "" })
}

/// `by` put the function's code into `holders`.
pub fn inlined(name: &str, by: &str, holders: &[String]) -> Diagnostic {
    let (some, more) = list(holders.iter().map(String::as_str));
    let message = format!("no function `{name}` is left at this stage");
    let diagnostic = Diagnostic::error("no-such-function", Span::NONE, message);
    match holders {
        [] => diagnostic.hint(format!("{by} removed it: what is left does not need it")),
        _ => diagnostic.hint(format!("{by} inlined it into {some}{more}")),
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
