//! Programs as an editor has them: which file is the root of a program, and a view of the checked program. Separate from the
//! loop, which decides when a program is checked.

use super::positions::{Lines, path_of, uri_of};
use lsp_types::{Location, Position, Uri};
use nyala_base::{Diagnostic, FileId, Sources, Span};
use nyala_driver::files::identity;
use nyala_driver::front::{Files, FrontEnd, Trees};
use nyala_driver::{Options, libraries, packages, staged};
use nyala_sema::{Symbol, Symbols};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The files that are given to the compiler for a program.
#[derive(Clone, Debug)]
pub struct Root {
    pub files: Vec<PathBuf>,
    /// It is the prelude, which is compiled without itself.
    pub is_prelude: bool,
}

/// A checked program and its texts.
pub struct View<'a> {
    pub sources: &'a Sources,
    pub checked: Symbols<'a>,
    /// Errors and warnings of the parser and of the checker.
    pub findings: &'a [Diagnostic],
    /// The program's own files.
    own: Vec<FileId>,
    lines: RefCell<HashMap<FileId, Rc<Lines>>>,
    /// Names in DeepCPS and Staged-C, once they are asked for.
    staged: OnceCell<staged::Names>,
}

/// Limit on the files of a folder that are searched for a `mod`.
const MAX_FILES: usize = 256;
/// Limit on the chain of `mod` from a file to its root.
const MAX_CHAIN: usize = 16;

/// The program that a file belongs to, as far as files beside and above it tell: the file with its `mod`, and so on.
pub fn find_root(path: &Path) -> Root {
    if let Some((is_prelude, files)) = libraries::siblings(path) {
        return Root { files: files.iter().map(|f| identity(f)).collect(), is_prelude };
    }
    let mut at = path.to_path_buf();
    let mut seen = vec![at.clone()];
    while seen.len() < MAX_CHAIN
        && let Some(parent) = parent_of(&at).filter(|p| !seen.contains(p))
    {
        seen.push(parent.clone());
        at = parent;
    }
    Root { files: vec![at], is_prelude: false }
}

/// The programs in the folder of a package that have other files than this one.
pub fn other_programs(folder: &Path, view: &View) -> Vec<Root> {
    let mut seen: HashSet<PathBuf> = view.own_files().collect();
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(at) = folders.pop() {
        for path in std::fs::read_dir(at).into_iter().flatten().flatten().map(|e| e.path()) {
            let is_hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
            // A package in this one is another one.
            if path.is_dir() && !path.is_symlink() && !is_hidden && !path.join(packages::MANIFEST).is_file() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "impala") {
                files.push(identity(&path));
            }
        }
    }
    files.sort();
    files.truncate(MAX_FILES);
    let mut roots = Vec::new();
    for file in files {
        if seen.contains(&file) {
            continue;
        }
        let root = find_root(&file);
        if root.files.first().is_some_and(|first| seen.insert(first.clone())) {
            roots.push(root);
        }
    }
    roots
}

/// A file with a `mod` that means this one: `mod m;` beside it, or `mod a { mod m; }` above its folder `a`.
fn parent_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_stem()?.to_str()?;
    let folder = path.parent()?;
    let above = folder.parent().filter(|_| folder.file_name().is_some());
    [Some(folder), above].into_iter().flatten().find_map(|folder| {
        let entries = std::fs::read_dir(folder).ok()?.flatten().map(|e| e.path());
        let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "impala")).collect();
        files.sort();
        files.truncate(MAX_FILES);
        files.into_iter().filter(|f| f != path).find(|f| {
            let text = nyala_driver::files::read(f).unwrap_or_default();
            has_mod(&text, name) && files_of(f).contains(&identity(path))
        })
    })
}

/// Whether a text may have `mod name;`.
fn has_mod(text: &str, name: &str) -> bool {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.ends_with("mod") && words.clone().next().is_some_and(|n| n.trim_end_matches(';') == name) {
            return true;
        }
    }
    false
}

/// The files that a file and its modules are in.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let Ok(text) = nyala_driver::files::read(path) else { return Vec::new() };
    let trees = Trees::new(Options::default(), Files::of(path.display().to_string(), text));
    let files = trees.program().iter().filter_map(|tree| tree.file);
    files.map(|file| identity(Path::new(trees.report.sources.name(file)))).collect()
}

impl Root {
    /// The files of the program, with these texts instead of those on disk.
    pub fn files(&self, unsaved: &HashMap<PathBuf, String>) -> Files {
        let mut files = Files { unsaved: unsaved.clone(), ..Files::default() };
        for path in &self.files {
            // A file that has vanished has no text.
            let text = files.read(path).unwrap_or_default();
            files.add(path.display().to_string(), text);
        }
        files
    }
}

impl<'a> View<'a> {
    pub fn new(front: &'a FrontEnd) -> View<'a> {
        View {
            sources: &front.report.sources,
            checked: front.program().symbols(),
            findings: &front.report.sink.diagnostics,
            own: front.trees().program().iter().filter_map(|tree| tree.file).collect(),
            lines: RefCell::default(),
            staged: OnceCell::new(),
        }
    }

    /// The program's own files.
    pub fn own_files(&self) -> impl Iterator<Item = PathBuf> {
        self.own.iter().map(|file| identity(Path::new(self.sources.name(*file))))
    }

    /// Whether a file belongs to the program, and not to a library.
    pub fn is_own(&self, file: FileId) -> bool {
        self.own.contains(&file)
    }

    /// The file of a URI.
    pub fn file(&self, uri: &Uri) -> Option<FileId> {
        let path = identity(&path_of(uri)?);
        let own = self.own.iter().copied().find(|file| identity(Path::new(self.sources.name(*file))) == path);
        own.or_else(|| {
            let i =
                self.sources.names().position(|name| !name.starts_with('<') && identity(Path::new(name)) == path)?;
            Some(FileId(i as u32))
        })
    }

    pub fn lines(&self, file: FileId) -> Rc<Lines> {
        let mut all = self.lines.borrow_mut();
        all.entry(file).or_insert_with(|| Rc::new(Lines::new(self.sources.text(file)))).clone()
    }

    /// The byte of a place.
    pub fn offset(&self, file: FileId, position: Position) -> u32 {
        self.lines(file).offset(self.sources.text(file), position)
    }

    pub fn range(&self, span: Span) -> lsp_types::Range {
        self.lines(span.file).range(self.sources.text(span.file), span.lo, span.hi)
    }

    /// The place of a span. Files of embedded libraries are written to the user's cache, so that editors can open them.
    /// `None` for text that is in no file.
    pub fn location(&self, span: Span) -> Option<Location> {
        Some(Location { uri: uri_of(&path_in(self.sources, span)?)?, range: self.range(span) })
    }

    /// The name at a place of a file in DeepCPS or Staged-C, what is declared by it, and all places of it.
    pub fn staged_name_at(&self, uri: &Uri, position: Position) -> Option<(Span, &str, Vec<Span>)> {
        let file = self.file(uri).filter(|&file| nyala_driver::is_staged(self.sources.name(file)))?;
        let names = self.staged.get_or_init(|| staged::names(self.sources));
        let (span, declaration) = names.at(file, self.offset(file, position))?;
        Some((span, &declaration.text, names.places(declaration)))
    }

    /// The name at a place, and its meaning.
    pub fn name_at(&self, uri: &Uri, position: Position) -> Option<(Span, Symbol)> {
        let file = self.file(uri)?;
        self.checked.name_at(file, self.offset(file, position))
    }
}

/// The file that a span is in.
fn path_in(sources: &Sources, span: Span) -> Option<PathBuf> {
    let name = sources.name(span.file);
    match name.strip_prefix('<') {
        None => Some(identity(Path::new(name))),
        Some(rest) => embedded(rest.split_once(">/")?.0, name),
    }
}

/// The place of a span in a text without a view.
pub fn location(sources: &Sources, span: Span) -> Option<Location> {
    let text = sources.text(span.file);
    Some(Location { uri: uri_of(&path_in(sources, span)?)?, range: Lines::new(text).range(text, span.lo, span.hi) })
}

/// Writes the files of an embedded library to the user's cache. Returns the path of the one with this name.
fn embedded(library: &str, name: &str) -> Option<PathBuf> {
    let cache = nyala_driver::cache::Cache::of_user("sources")?;
    let folder = cache.folder().join(env!("CARGO_PKG_VERSION")).join(library).join("src");
    let mut found = None;
    let prefix = format!("<{library}>/");
    for (_, file, text) in libraries::all() {
        let Some(base) = file.strip_prefix(&prefix) else { continue };
        let path = folder.join(base);
        if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            std::fs::create_dir_all(path.parent()?).ok()?;
            nyala_files::write(&path, text.as_bytes()).ok()?;
        }
        if file == name {
            found = Some(identity(&path));
        }
    }
    found
}
