//! Finds the files that form a program: those given, those of `mod m;`, and the libraries that `use` names.
//!
//! `mod m;` means `m.impala` beside the file that it is in; inside of `mod a { … }` it means `a/m.impala`. A `use`
//! whose first name the program does not define means a library: `use a::b::f;` means the first of `a/b/f.impala`,
//! `a/b.impala` and `a.impala` that exists. [`crate::packages`] says where libraries of packages lie.

use crate::diagnostics::{cannot_write, module_twice, no_such_library, no_such_module, package_twice};
use crate::front::Trees;
use crate::libraries::{self, Shelves};
use crate::packages::{self, PackageId, Packages};
use nyala_base::{Diagnostic, Sources, Span};
use nyala_syntax::ast::{ExprKind, Item, ItemKind, Module, Name, Stmt, Use};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File as OpenFile;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file before it is parsed.
struct File {
    name: String,
    text: String,
    path: Vec<Box<str>>,
    library: bool,
    package: Option<PackageId>,
}

/// An error if no file can be written at `out`: before work is done for it.
pub fn check_place(out: &Path) -> Result<(), Box<Diagnostic>> {
    let is_folder = out.is_dir() || out.as_os_str().is_empty() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
    if is_folder {
        return Err(Box::new(cannot_write::file(out, "it is a folder, not a file")));
    }
    match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let why = format!("there is no folder `{}`", folder.display());
            Err(Box::new(cannot_write::file(out, why)))
        }
        _ => Ok(()),
    }
}

/// An error if `out` is a file that was read, so that no source is overwritten.
pub fn check_output(sources: &Sources, out: &Path) -> Result<(), Box<Diagnostic>> {
    let Ok(place) = out.canonicalize() else { return Ok(()) };
    if sources.names().any(|name| Path::new(name).canonicalize().is_ok_and(|source| source == place)) {
        return Err(Box::new(cannot_write::source(out)));
    }
    Ok(())
}

type Names = HashSet<Box<str>>;

/// Loads the files of a program, then those of libraries.
pub(crate) struct Loader<'a> {
    /// What is loaded.
    trees: &'a mut Trees,
    /// Trees of files that may have stayed as they were.
    before: Option<&'a Trees>,
    queue: Vec<File>,
    /// The names of the files, by module.
    file_names: Vec<String>,
    /// The package that each file belongs to.
    owners: Vec<Option<PackageId>>,
    packages: Packages,
    /// The files that are read, with the `mod` that named each. A flag separates those of libraries.
    places: HashMap<(bool, PathBuf), Option<Span>>,
    /// The names of items, by module: whether it belongs to a library, and its path.
    names: HashMap<(bool, Vec<Box<str>>), Names>,
    /// The names of items of all modules.
    all_names: Names,
    /// The libraries that are read or missing, with the packages they belong to.
    libraries: BTreeMap<String, Option<PackageId>>,
    /// The errors about files of modules, by number, with the modules' names.
    missing: Vec<(usize, Box<str>)>,
}

impl<'a> Loader<'a> {
    /// Parses the given files and all modules and libraries that they name.
    pub(crate) fn load(trees: &'a mut Trees, before: Option<&'a Trees>) {
        let given = trees.files().given.iter().map(|(name, text)| File {
            name: name.clone(),
            text: text.clone(),
            path: Vec::new(),
            library: false,
            package: None,
        });
        let mut loader = Loader {
            queue: given.collect(),
            trees,
            before,
            file_names: Vec::new(),
            owners: Vec::new(),
            packages: Packages::default(),
            places: HashMap::new(),
            names: HashMap::new(),
            all_names: Names::new(),
            libraries: BTreeMap::new(),
            missing: Vec::new(),
        };
        for file in &loader.queue {
            loader.places.insert((false, identity(Path::new(&file.name))), None);
        }
        loader.read_queue();
        // Manifests come after the program's files, whose numbers do not depend on them.
        loader.packages = packages::find(loader.trees);
        loader.trees.set_shelves(loader.shelves(), before);
        loader.owners.fill(loader.packages.root());
        let mut n_seen = 0;
        while n_seen < loader.trees.all().len() {
            let new = n_seen..loader.trees.all().len();
            new.clone().for_each(|m| loader.note_names(m));
            new.clone().for_each(|m| loader.find_libraries(m));
            n_seen = new.end;
            loader.read_queue();
        }
        loader.hide_libraries();
        loader.find_missing();
    }

    /// Adds hints to errors about files of modules: where others have that name.
    fn find_missing(&mut self) {
        for (error, name) in std::mem::take(&mut self.missing) {
            let all = self.trees.exports().iter();
            let found =
                all.filter(|l| l.is_called(&name)).map(|l| no_such_module::elsewhere(&l.path, l.file.as_deref()));
            let hints: Vec<String> = found.collect();
            if let Some(error) = self.trees.report.sink.diagnostics.get_mut(error) {
                error.hints.extend(hints);
            }
        }
    }

    fn read_queue(&mut self) {
        let mut next = 0;
        while next < self.queue.len() {
            let File { name, text, path, library, package } = &mut self.queue[next];
            let (name, text, path) = (std::mem::take(name), std::mem::take(text), std::mem::take(path));
            let package = *package;
            let mut tree = self.trees.tree(name.clone(), text, &path, *library, self.before);
            next += 1;
            self.trees.add_headers(&name);
            if !self.find_modules(&tree, &name, package) {
                // Names that these files would declare are not reported as unknown.
                Arc::make_mut(&mut tree).open_names = true;
            }
            self.trees.add(tree);
            self.file_names.push(name);
            self.owners.push(package);
        }
        self.queue.clear();
    }

    /// Queues the files of the module's `mod m;`. Returns whether all exist.
    fn find_modules(&mut self, module: &Module, file_name: &str, package: Option<PackageId>) -> bool {
        let mut lost = false;
        let folder = Path::new(file_name).parent().unwrap_or(Path::new(""));
        each_module(&module.items, &mut |items, inside| {
            for item in items {
                let ItemKind::Mod(m) = &item.kind else { continue };
                if m.items.is_some() {
                    continue;
                }
                let mut place = folder.to_path_buf();
                place.extend(inside.iter().map(|n| &*n.text));
                place.push(format!("{}.impala", m.name.text));
                let known = (module.library, identity(&place));
                if let Some(first) = self.places.get(&known) {
                    let error = module_twice::error(m.name.span, &m.name.text, &place, *first);
                    self.trees.report.sink.push(error);
                    continue;
                }
                let text = match self.trees.files().read(&place) {
                    Ok(text) => text,
                    Err(e) => {
                        // Where libraries lie is known later.
                        self.missing.push((self.trees.report.sink.diagnostics.len(), m.name.text.clone()));
                        let error = no_such_module::error(m.name.span, &m.name.text, &place, &e);
                        self.trees.report.sink.push(error);
                        lost = true;
                        continue;
                    }
                };
                self.places.insert(known, Some(m.name.span));
                let mut path = module.path.clone();
                path.extend(inside.iter().chain([&&m.name]).map(|n| n.text.clone()));
                let (name, library) = (place.display().to_string(), module.library);
                self.queue.push(File { name, text, path, library, package });
            }
        });
        !lost
    }

    /// Notes the names of a module's items.
    fn note_names(&mut self, m: usize) {
        let module = &self.trees.all()[m];
        let (names, all) = (&mut self.names, &mut self.all_names);
        each_module(&module.items, &mut |items, inside| {
            let mut path = module.path.clone();
            path.extend(inside.iter().map(|n| n.text.clone()));
            let here = names.entry((module.library, path)).or_default();
            for name in items.iter().filter_map(name_of) {
                here.insert(name.text.clone());
                all.insert(name.text.clone());
            }
        });
    }

    fn find_libraries(&mut self, m: usize) {
        let module = &self.trees.all()[m];
        let mut wanted: Vec<(Use, Vec<Box<str>>)> = Vec::new();
        each_module(&module.items, &mut |items, inside| {
            let path = module.path.iter().chain(inside.iter().map(|n| &n.text));
            let path: Vec<Box<str>> = path.cloned().collect();
            wanted.extend(items.iter().filter_map(used).map(|u| (u.clone(), path.clone())));
        });
        // Items inside of functions see more names, which only the checker knows.
        let mut local_names = Names::default();
        for expr in &module.exprs {
            let ExprKind::Block(block) = &expr.kind else { continue };
            for stmt in &block.stmts {
                let Stmt::Item(item) = stmt else { continue };
                local_names.extend(name_of(item).map(|n| n.text.clone()));
                wanted.extend(used(item).map(|u| (u.clone(), module.path.clone())));
            }
        }
        let library = module.library;
        for (u, path) in wanted {
            let Some(first) = u.names.first() else { continue };
            let is_own = |names: &Names| names.contains(&first.text);
            let outermost = if u.root { 0 } else { path.len() };
            let own = matches!(&*first.text, "self" | "super" | "Self")
                || is_own(&local_names)
                || (0..=outermost).any(|n| self.names.get(&(library, path[..n].to_vec())).is_some_and(is_own));
            if !own && !self.find_library(m, &u) {
                // Names that the library would declare are not reported as unknown.
                Arc::make_mut(&mut self.trees.modules_mut()[m]).open_names = true;
            }
        }
    }

    /// Queues the files of a library. Returns `false` if there is no such library.
    fn find_library(&mut self, m: usize, u: &Use) -> bool {
        let names: Vec<&str> = u.names.iter().map(|n| &*n.text).collect();
        let span = u.names.iter().map(|n| n.span).reduce(Span::to).unwrap_or_default();
        let owner = self.owners[m];
        let own = (!self.trees.all()[m].library).then(|| PathBuf::from(&self.file_names[m]));
        let mut searched = Vec::new();
        let mut hidden = None;
        for n in (1..=names.len()).rev() {
            let library = names[..n].join("::");
            let known = self.libraries.get(&library).copied();
            if known.is_some_and(|origin| self.packages.sees(owner, names[0], origin)) {
                return true;
            }
            let places = self.places_of_libraries(m, names[0]);
            match libraries::find(&library, &places, self.trees.files(), own.as_deref()) {
                Ok((_, origin)) if known.is_some_and(|known| known != origin) => {
                    let shown = |origin: Option<PackageId>| match origin {
                        Some(package) => format!("the package `{}`", self.packages.name(package)),
                        None => "no package".into(),
                    };
                    let there = shown(known.flatten());
                    let found = package_twice::library(span, &library, &shown(origin), &there);
                    self.trees.report.sink.push(found);
                    return false;
                }
                Ok((files, origin)) => {
                    let path: Vec<Box<str>> = names[..n].iter().map(|n| (*n).into()).collect();
                    for (name, text) in files {
                        self.places.insert((true, identity(Path::new(&name))), None);
                        self.queue.push(File { name, text, path: path.clone(), library: true, package: origin });
                    }
                    self.libraries.insert(library, origin);
                    return true;
                }
                Err(tried) => searched.extend(tried),
            }
            hidden = hidden.or(known.flatten());
        }
        if let Some(package) = hidden {
            let found = no_such_library::hidden(span, &names.join("::"), self.packages.name(package));
            self.trees.report.sink.push(found);
            return false;
        }
        if self.packages.is_lost(names[0]) {
            return false;
        }
        // The checker resolves a name that another `use` brings.
        if self.all_names.contains(names[0]) {
            return true;
        }
        let all = self.trees.exports().iter().map(|l| (&*l.path, l.file.as_deref()));
        let found = no_such_library::error(span, &names.join("::"), &searched, all);
        self.trees.report.sink.push(found);
        // A library is only searched once.
        self.libraries.insert(names.join("::"), owner);
        false
    }

    /// Where libraries lie that the program could use.
    fn shelves(&self) -> Shelves {
        let folder = |name: &String| Path::new(name).parent().map(Path::to_path_buf);
        let mut beside: Vec<PathBuf> = self.file_names.iter().filter_map(folder).collect();
        beside.dedup();
        Shelves {
            beside,
            packages: self.packages.seen_by_root(),
            folders: self.trees.options.library_folders.clone(),
            own: self.file_names.iter().map(|name| identity(Path::new(name))).collect(),
        }
    }

    /// The folders in which file `m` finds libraries whose first name is `name`, with the packages they belong to.
    fn places_of_libraries(&self, m: usize, name: &str) -> Vec<(PathBuf, Option<PackageId>)> {
        let owner = self.owners[m];
        let beside = Path::new(&self.file_names[m]).parent().map(|folder| (folder.to_path_buf(), owner));
        let package = self.packages.find(owner, name).map(|p| (self.packages.sources(p), Some(p)));
        // Dependencies see nothing that their manifests do not name.
        let is_program = owner == self.packages.root();
        let folders = self.trees.options.library_folders.iter().filter(|_| is_program);
        beside.into_iter().chain(package).chain(folders.map(|folder| (folder.clone(), None))).collect()
    }

    /// Hides from each file what belongs to packages that its own does not depend on.
    fn hide_libraries(&mut self) {
        if self.packages.root().is_none() {
            return;
        }
        for (module, owner) in self.trees.modules_mut().iter_mut().zip(&self.owners) {
            let mut hidden: Vec<Box<str>> = Vec::new();
            for (library, origin) in &self.libraries {
                let first = library.split("::").next().unwrap_or(library);
                if !self.packages.sees(*owner, first, *origin) && hidden.iter().all(|h| **h != *first) {
                    hidden.push(first.into());
                }
            }
            if !hidden.is_empty() {
                Arc::make_mut(module).hidden = hidden;
            }
        }
    }
}

/// Calls `f` with the items of a file and of each `mod m { … }` in it, and the names of the modules around them.
fn each_module<'a>(items: &'a [Item], f: &mut dyn FnMut(&'a [Item], &[&'a Name])) {
    let mut work: Vec<(&'a [Item], Vec<&'a Name>)> = vec![(items, Vec::new())];
    while let Some((items, inside)) = work.pop() {
        f(items, &inside);
        for item in items.iter().rev() {
            if let ItemKind::Mod(m) = &item.kind
                && let Some(items) = &m.items
            {
                work.push((items, inside.iter().copied().chain([&m.name]).collect()));
            }
        }
    }
}

fn used(item: &Item) -> Option<&Use> {
    if let ItemKind::Use(u) = &item.kind { Some(u) } else { None }
}

/// The name of an item in paths of other items.
fn name_of(item: &Item) -> Option<&Name> {
    match &item.kind {
        ItemKind::Mod(m) => Some(&m.name),
        ItemKind::Enum(e) => Some(&e.name),
        ItemKind::Struct(s) => Some(&s.name),
        ItemKind::Trait(t) => Some(&t.name),
        ItemKind::Alias(a) => Some(&a.name),
        ItemKind::Use(u) if u.names.len() > 1 || u.alias.is_some() => u.alias.as_ref().or(u.names.last()),
        _ => None,
    }
}

/// Limit on the bytes of a source file. A device may give any number.
const MAX_BYTES: u64 = 256 << 20;

/// The text of a file.
///
/// # Errors
/// The reason why the file cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    let file = OpenFile::open(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        _ => e.to_string(),
    })?;
    read_text(file)
}

/// The text of standard input.
///
/// # Errors
/// The reason why it cannot be read.
pub fn read_standard_input() -> Result<String, String> {
    read_text(std::io::stdin().lock())
}

fn read_text(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it has more than {} MiB", MAX_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|e| format!("not UTF-8: byte {} is no character", e.utf8_error().valid_up_to()))
}

/// A path that is equal for all paths of a file.
pub fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
