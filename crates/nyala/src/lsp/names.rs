//! Renaming. An edit is made only if no program that it changes has an error that it did not have, and its names mean what they
//! meant: the programs are checked with the edit before it is given away.
//!
//! In a package these are all its programs: those of other files may use the name, too.

use super::Failed;
use super::analysis::View;
use super::positions::path_of;
use lsp_server::ErrorCode;
use lsp_types::{PrepareRenameResponse, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit};
use nyala_base::{FileId, Severity, Span};
use nyala_driver::front::FrontEnd;
use nyala_sema::Symbol;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// An edit, and what must hold after it.
pub struct Plan {
    pub edit: WorkspaceEdit,
    /// The texts of the files that it changes.
    pub texts: HashMap<PathBuf, String>,
    /// What must hold for each program afterwards.
    after: Vec<After>,
}

/// What must hold for a program after an edit.
struct After {
    /// The number of its view.
    view: usize,
    /// Where the name is: files, bytes.
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

/// The name at a place, if it can be renamed: its span and its text. Names are renamed that the program declares itself, or the
/// `package` in this folder.
fn renamable(
    view: &View,
    package: Option<&Path>,
    p: &TextDocumentPositionParams,
) -> Result<Option<(Span, Symbol, String)>, Failed> {
    let Some((span, symbol)) = view.name_at(&p.text_document.uri, p.position) else { return Ok(None) };
    if let Symbol::Module(_) = symbol {
        return Err(refuse("a module is renamed by renaming its file"));
    }
    let Some(declared) = view.checked.declaration(symbol) else { return Ok(None) };
    let is_of_package = package.is_some_and(|folder| Path::new(view.sources.name(declared.file)).starts_with(folder));
    if !view.is_own(declared.file) && !is_of_package {
        return Err(refuse("it is declared in a library"));
    }
    let text = |span: Span| view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
    if text(span) != text(declared) {
        return Err(refuse(format!("`{}` stands for `{}` here", text(span), text(declared))));
    }
    Ok(Some((span, symbol, text(span).into())))
}

pub fn prepare(
    view: &View,
    package: Option<&Path>,
    p: &TextDocumentPositionParams,
) -> Result<Option<PrepareRenameResponse>, Failed> {
    let found = renamable(view, package, p)?;
    Ok(found.map(|(span, _, placeholder)| PrepareRenameResponse::RangeWithPlaceholder {
        range: view.range(span),
        placeholder,
    }))
}

fn n_errors(view: &View) -> usize {
    view.findings.iter().filter(|d| d.severity == Severity::Error).count()
}

/// Plans an edit of all `views`, of which the first has the place.
pub fn plan(views: &[View], package: Option<&Path>, p: &TextDocumentPositionParams, new: &str) -> Result<Plan, Failed> {
    let no_name = || refuse("there is no name here");
    let view = views.first().ok_or_else(no_name)?;
    let (_, symbol, old) = renamable(view, package, p)?.ok_or_else(no_name)?;
    let declared = view.checked.declaration(symbol).ok_or_else(no_name)?;
    let declared_in = view.location(declared).ok_or_else(no_name)?.uri;
    // For each program that has the name, its view and the places of the name.
    let mut found: Vec<(usize, Vec<Span>)> = Vec::new();
    for (i, view) in views.iter().enumerate() {
        let Some(file) = view.file(&declared_in) else { continue };
        let Some((_, symbol)) = view.checked.name_at(file, declared.lo) else { continue };
        let text = |span: &Span| view.sources.text(span.file).get(span.lo as usize..span.hi as usize);
        let mut spans = view.checked.places(symbol);
        // `Self`, and names that `use … as` gives, stay.
        spans.retain(|span| text(span) == Some(&old));
        found.push((i, spans));
    }
    #[expect(clippy::mutable_key_type, reason = "the protocol's type")]
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    let mut spans_of: HashMap<PathBuf, BTreeSet<(u32, u32)>> = HashMap::new();
    let mut places_of: HashMap<PathBuf, (Uri, &View, FileId)> = HashMap::new();
    for (i, spans) in &found {
        let view = &views[*i];
        for span in spans {
            let location = view.location(*span).ok_or_else(|| refuse("one of its files cannot be edited"))?;
            let path = path_of(&location.uri).unwrap_or_default();
            spans_of.entry(path.clone()).or_default().insert((span.lo, span.hi));
            places_of.entry(path).or_insert((location.uri, view, span.file));
        }
    }
    let (mut texts, mut moved) = (HashMap::new(), HashMap::new());
    for (path, spans) in &spans_of {
        let (uri, view, file) = &places_of[path];
        let source = view.sources.text(*file);
        let (mut renamed, mut from) = (String::new(), 0);
        for &(lo, hi) in spans {
            renamed += &source[from..lo as usize];
            moved.insert((path.clone(), lo), renamed.len() as u32);
            renamed += new;
            from = hi as usize;
        }
        renamed += &source[from..];
        texts.insert(path.clone(), renamed);
        let edit = |&(lo, hi): &(u32, u32)| TextEdit {
            range: view.range(Span::new(*file, lo as usize, hi as usize)),
            new_text: new.into(),
        };
        changes.insert(uri.clone(), spans.iter().map(edit).collect());
    }
    let after = found.iter().map(|(i, spans)| {
        let view = &views[*i];
        let mut places: Vec<(String, u32)> = Vec::new();
        for span in spans {
            let path = view.location(*span).and_then(|l| path_of(&l.uri)).unwrap_or_default();
            places.extend(moved.get(&(path, span.lo)).map(|at| (view.sources.name(span.file).to_string(), *at)));
        }
        places.sort();
        After { view: *i, places, n_errors: n_errors(view) }
    });
    let after = after.collect();
    let edit = WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    Ok(Plan { edit, texts, after })
}

impl Plan {
    /// Refuses the edit if a program with it means something else. `renamed` gives the program of a view with the edit.
    pub fn check(&self, renamed: impl Fn(usize) -> FrontEnd) -> Result<(), Failed> {
        self.after.iter().try_for_each(|after| after.check(&View::new(&renamed(after.view))))
    }
}

impl After {
    fn check(&self, view: &View) -> Result<(), Failed> {
        if n_errors(view) > self.n_errors {
            let error = view.findings.iter().find(|d| d.severity == Severity::Error);
            let message = error.map_or("", |d| &d.message);
            return Err(refuse(format!("the program would have an error: {message}")));
        }
        let place = |span: &Span| (view.sources.name(span.file).to_string(), span.lo);
        let (name, at) = self.places.first().ok_or_else(|| refuse("there is no name here"))?;
        let file = view.sources.names().position(|n| n == name).unwrap_or_default();
        let symbol = view.checked.name_at(FileId(file as u32), *at).map(|(_, symbol)| symbol);
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
            view.checked.name_at(FileId(file as u32), *at).map(|(span, _)| {
                view.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default().to_string()
            })
        };
        self.places.first().is_some_and(|first| text_at(place) != text_at(first))
    }
}
