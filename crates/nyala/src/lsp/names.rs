//! Renaming. An edit is made only if the renamed program has no error that it did not have, and its names mean what they
//! meant: the program is checked with the edit before it is given away.

use super::Failed;
use super::analysis::View;
use super::positions::path_of;
use lsp_server::ErrorCode;
use lsp_types::{PrepareRenameResponse, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit};
use nyala_base::{Severity, Span};
use nyala_sema::Symbol;
use std::collections::HashMap;
use std::path::PathBuf;

/// An edit, and what must hold after it.
pub struct Plan {
    pub edit: WorkspaceEdit,
    /// The texts of the files that it changes.
    pub texts: HashMap<PathBuf, String>,
    /// Where the name is afterwards: files, bytes.
    places: Vec<(String, u32)>,
    n_errors: usize,
}

fn refuse(message: impl Into<String>) -> Failed {
    Failed(ErrorCode::RequestFailed, message.into())
}

/// Refuses what is no name.
pub fn check_name(name: &str) -> Result<(), Failed> {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_name = begins && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') && name != "_";
    if !is_name || super::completion::KEYWORDS.contains(&name) {
        return Err(refuse(format!("`{name}` is no name")));
    }
    Ok(())
}

/// The name at a place, if it can be renamed: its span and its text.
fn renamable(view: &View, p: &TextDocumentPositionParams) -> Result<Option<(Span, Symbol, String)>, Failed> {
    let Some((span, symbol)) = view.name_at(&p.text_document.uri, p.position) else { return Ok(None) };
    if let Symbol::Module(_) = symbol {
        return Err(refuse("a module is renamed by renaming its file"));
    }
    let Some(declared) = view.checked.declaration(symbol) else { return Ok(None) };
    if !view.is_own(declared.file) {
        return Err(refuse("it is declared in a library"));
    }
    let text = |span: Span| view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
    if text(span) != text(declared) {
        return Err(refuse(format!("`{}` stands for `{}` here", text(span), text(declared))));
    }
    Ok(Some((span, symbol, text(span).into())))
}

pub fn prepare(view: &View, p: &TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>, Failed> {
    let found = renamable(view, p)?;
    Ok(found.map(|(span, _, placeholder)| PrepareRenameResponse::RangeWithPlaceholder {
        range: view.range(span),
        placeholder,
    }))
}

fn n_errors(view: &View) -> usize {
    view.findings.iter().filter(|d| d.severity == Severity::Error).count()
}

pub fn plan(view: &View, p: &TextDocumentPositionParams, new: &str) -> Result<Plan, Failed> {
    let Some((_, symbol, old)) = renamable(view, p)? else { return Err(refuse("there is no name here")) };
    let text = |span: Span| view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
    let mut spans = view.checked.places(symbol);
    // `Self`, and names that `use … as` gives, stay.
    spans.retain(|span| text(*span) == old);
    #[expect(clippy::mutable_key_type, reason = "the protocol's type")]
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    let (mut texts, mut places) = (HashMap::new(), Vec::new());
    for of_file in spans.chunk_by(|a, b| a.file == b.file) {
        let (file, source) = (of_file[0].file, view.sources.text(of_file[0].file));
        let location = view.location(of_file[0]).ok_or_else(|| refuse("one of its files cannot be edited"))?;
        let path = path_of(&location.uri).unwrap_or_default();
        let (mut renamed, mut from) = (String::new(), 0);
        for span in of_file {
            renamed += &source[from..span.lo as usize];
            places.push((view.sources.name(file).to_string(), renamed.len() as u32));
            renamed += new;
            from = span.hi as usize;
        }
        renamed += &source[from..];
        texts.insert(path, renamed);
        let edits = of_file.iter().map(|span| TextEdit { range: view.range(*span), new_text: new.into() });
        changes.insert(location.uri, edits.collect());
    }
    places.sort();
    let edit = WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    Ok(Plan { edit, texts, places, n_errors: n_errors(view) })
}

impl Plan {
    /// Refuses the edit if the program with it means something else.
    pub fn check(&self, view: &View) -> Result<(), Failed> {
        if n_errors(view) > self.n_errors {
            let error = view.findings.iter().find(|d| d.severity == Severity::Error);
            let message = error.map_or("", |d| &d.message);
            return Err(refuse(format!("the program would have an error: {message}")));
        }
        let place = |span: &Span| (view.sources.name(span.file).to_string(), span.lo);
        let (name, at) = self.places.first().ok_or_else(|| refuse("there is no name here"))?;
        let file = view.sources.names().position(|n| n == name).unwrap_or_default();
        let symbol = view.checked.name_at(nyala_base::FileId(file as u32), *at).map(|(_, symbol)| symbol);
        let mut places: Vec<(String, u32)> =
            symbol.map(|s| view.checked.places(s)).unwrap_or_default().iter().map(place).collect();
        places.retain(|place| self.places.contains(place) || !self.is_old_text(view, place));
        places.sort();
        if places != self.places {
            return Err(refuse("another name would be hidden, or hide this one"));
        }
        Ok(())
    }

    /// Whether a place has another text than the new name: `Self`, or a name of `use … as`.
    fn is_old_text(&self, view: &View, place: &(String, u32)) -> bool {
        let text_at = |(name, at): &(String, u32)| {
            let file = view.sources.names().position(|n| n == name)?;
            view.checked.name_at(nyala_base::FileId(file as u32), *at).map(|(span, _)| {
                view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default().to_string()
            })
        };
        self.places.first().is_some_and(|first| text_at(place) != text_at(first))
    }
}
