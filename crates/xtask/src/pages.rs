//! Makes the pages of `docs/` that come from the sources: `docs/errors/`, with a page for each diagnostic. They are in
//! the repository, where they can be read, so a test compares them.

use crate::{Tally, root};
use std::fmt::Write as _;
use std::path::PathBuf;

const FOLDER: &str = "docs/errors";

/// The paths of all pages, from the root, and their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let made = |from: &str| format!("<!-- Made by `./x bless docs` from {from}; edit that instead. -->\n\n");
    let mut index = made("the explanations of all diagnostics");
    index += "# Diagnostics\n\n";
    index += "The output of `nyala explain-error`, a page for each code. The format of diagnostics, also as data for programs:\n\
              [diagnostics](../diagnostics.md).\n\n| code | |\n|---|---|\n";
    let mut pages = Vec::new();
    for code in nyala_driver::diagnostics::all() {
        let name = code.name();
        let _ = writeln!(index, "| [{name}]({name}.md) | {} |", code.summary());
        let text = format!("{}# {name}\n\n{}", made(&format!("`diagnostics/{}.rs`", code.module)), code.explanation());
        pages.push((PathBuf::from(FOLDER).join(format!("{name}.md")), text));
    }
    pages.push((PathBuf::from(FOLDER).join("README.md"), index));
    pages
}

/// Compares the pages whose path contains `filter`, or writes them if `bless`. An additional page is a fault too.
pub fn run(filter: Option<&str>, bless: bool) -> Tally {
    let is_meant = |path: &PathBuf| filter.is_none_or(|f| path.display().to_string().contains(f));
    let pages: Vec<_> = pages().into_iter().filter(|(path, _)| is_meant(path)).collect();
    let mut faults = Vec::new();
    for (path, text) in &pages {
        let full = root().join(path);
        if std::fs::read_to_string(&full).is_ok_and(|found| found == *text) {
            continue;
        }
        if !bless {
            faults.push(format!("{} is out of date (`./x bless docs` makes it anew)", path.display()));
            continue;
        }
        let folder = full.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(e) = folder.and_then(|()| std::fs::write(&full, text)) {
            faults.push(format!("{}: cannot write: {e}", path.display()));
        }
    }
    for entry in std::fs::read_dir(root().join(FOLDER)).into_iter().flatten().flatten() {
        let path = PathBuf::from(FOLDER).join(entry.file_name());
        if !is_meant(&path) || pages.iter().any(|p| p.0 == path) {
            continue;
        }
        if !(bless && std::fs::remove_file(entry.path()).is_ok()) {
            faults.push(format!("{} explains no diagnostic (`./x bless docs` removes it)", path.display()));
        }
    }
    for fault in &faults {
        println!("FAILED {fault}");
    }
    Tally { passed: pages.len().saturating_sub(faults.len()), failed: faults.len(), skipped: 0 }
}
