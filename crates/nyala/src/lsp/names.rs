//! Renaming. An edit is made only if no program that it changes has an error that it did not have, and its names mean what they
//! meant: the programs are checked with the edit before it is given away.
//!
//! In a package these are all its programs: those of other files may use the name, too. With a module that is a file, the file is
//! renamed.

use super::Failed;
use super::analysis::View;
use super::positions::{path_of, uri_of};
use lsp_server::ErrorCode;
use lsp_types::{
    DocumentChangeOperation, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, PrepareRenameResponse,
    RenameFile, ResourceOp, TextDocumentEdit, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit,
};
use nyala_base::{FileId, Severity, Span};
use nyala_driver::front::FrontEnd;
use nyala_sema::Symbol;
use nyala_syntax::ast::{Item, ItemKind};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// An edit, and what must hold after it.
pub struct Plan {
    pub edit: WorkspaceEdit,
    /// The texts of the files that it changes, under their new names.
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
    let Some(declared) = view.checked.declaration(symbol) else {
        return match symbol {
            Symbol::Module(_) => Err(refuse("a module without a `mod` is renamed by renaming its file")),
            _ => Ok(None),
        };
    };
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

/// Whether the module that is declared at a place has modules that are files: they lie in a folder of its name.
fn has_files(view: &View, declared: Span) -> bool {
    let Some(tree) = view.checked.tree(declared.file) else { return false };
    let mut work: Vec<(&Item, bool)> = tree.items.iter().map(|item| (item, false)).collect();
    while let Some((item, is_inside)) = work.pop() {
        let ItemKind::Mod(m) = &item.kind else { continue };
        match &m.items {
            Some(items) => work.extend(items.iter().map(|i| (i, is_inside || m.name.span == declared))),
            None if is_inside => return true,
            None => {}
        }
    }
    false
}

/// The path of the file that a module is, and the new one. `None` for a module inside of a file.
fn file_of_module(
    views: &[View],
    has_name: &[usize],
    symbol: Symbol,
    declared: Span,
    new: &str,
) -> Result<Option<(PathBuf, PathBuf)>, Failed> {
    let (Some(view), Symbol::Module(_)) = (views.first(), symbol) else { return Ok(None) };
    let Some(file) = view.checked.file_of_module(symbol) else {
        return match has_files(view, declared) {
            true => Err(refuse("modules in it are files, which lie in a folder of its name")),
            false => Ok(None),
        };
    };
    let location = view.location(Span::new(file, 0, 0)).ok_or_else(|| refuse("its file cannot be renamed"))?;
    let other = (0..views.len()).filter(|i| !has_name.contains(i)).find(|i| views[*i].file(&location.uri).is_some());
    if let Some(root) = other.and_then(|i| views[i].own_files().next()) {
        return Err(refuse(format!("the program of `{}` has a `mod` of its own for the file", root.display())));
    }
    let old = path_of(&location.uri).ok_or_else(|| refuse("its file cannot be renamed"))?;
    let renamed = old.with_file_name(format!("{new}.impala"));
    if renamed.exists() {
        return Err(refuse(format!("the file `{}` exists", renamed.display())));
    }
    Ok(Some((old, renamed)))
}

/// Plans an edit of all `views`, of which the first has the place. `renames_files`: the editor can do so.
pub fn plan(
    views: &[View],
    package: Option<&Path>,
    p: &TextDocumentPositionParams,
    new: &str,
    renames_files: bool,
) -> Result<Plan, Failed> {
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
    let has_name: Vec<usize> = found.iter().map(|(i, _)| *i).collect();
    let renamed_file = file_of_module(views, &has_name, symbol, declared, new)?;
    if renamed_file.is_some() && !renames_files {
        return Err(refuse("the module is a file, which this editor cannot rename"));
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
            let mut name = view.sources.name(span.file).to_string();
            if let Some((_, renamed)) = renamed_file.as_ref().filter(|(old, _)| *old == path) {
                name = Path::new(&name).with_file_name(renamed.file_name().unwrap_or_default()).display().to_string();
            }
            places.extend(moved.get(&(path, span.lo)).map(|at| (name, *at)));
        }
        places.sort();
        After { view: *i, places, n_errors: n_errors(view) }
    });
    let after = after.collect();
    let edit = match renamed_file {
        None => WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() },
        Some((old, renamed)) => {
            let (Some(old_uri), Some(new_uri)) = (uri_of(&old), uri_of(&renamed)) else {
                return Err(refuse("its file cannot be renamed"));
            };
            let same = view.file(&old_uri).map(|file| view.sources.text(file).to_string());
            let text = texts.remove(&old).or(same).unwrap_or_default();
            texts.insert(renamed, text);
            with_renamed_file(changes, old_uri, new_uri)
        }
    };
    Ok(Plan { edit, texts, after })
}

/// Edits of texts, then a file gets another name.
#[expect(clippy::mutable_key_type, reason = "the protocol's type")]
fn with_renamed_file(changes: HashMap<Uri, Vec<TextEdit>>, old_uri: Uri, new_uri: Uri) -> WorkspaceEdit {
    let edits = changes.into_iter().map(|(uri, edits)| {
        DocumentChangeOperation::Edit(TextDocumentEdit {
            text_document: OptionalVersionedTextDocumentIdentifier { uri, version: None },
            edits: edits.into_iter().map(OneOf::Left).collect(),
        })
    });
    let rename = RenameFile { old_uri, new_uri, options: None, annotation_id: None };
    let rename = DocumentChangeOperation::Op(ResourceOp::Rename(rename));
    let operations = edits.chain([rename]).collect();
    WorkspaceEdit { document_changes: Some(DocumentChanges::Operations(operations)), ..WorkspaceEdit::default() }
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
