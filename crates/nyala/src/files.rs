//! Which files form a program: those given, those of `mod m;`, and the libraries that `use` names.
//!
//! `mod m;` stands for `m.impala` beside the file that says so; inside of `mod a { … }` for `a/m.impala`. A `use` whose
//! first name is nothing of the program asks for a library: `use a::b::f;` for `a/b/f.impala`, `a/b.impala` or
//! `a.impala`, the first that there is.

use crate::diagnostics::{cannot_write, module_twice, no_such_library, no_such_module};
use crate::{Reported, Session, libraries};
use nyala_base::Span;
use nyala_syntax::ast::{ExprKind, Item, ItemKind, Module, Name, Stmt, Use};
use std::collections::{HashMap, HashSet};
use std::fs::File as OpenFile;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A file before it is parsed.
struct File {
    name: String,
    text: String,
    path: Vec<Box<str>>,
    library: bool,
}

/// The trees of a program's files, then from `n_program` on those of libraries.
pub struct Loaded {
    /// Trees of files, the program's first.
    pub modules: Vec<Module>,
    /// How many of them are the program's.
    pub n_program: usize,
}

impl Session {
    /// Parses the given files and all that they ask for.
    pub(crate) fn read_files(&mut self) -> Loaded {
        let given = self.files.iter().map(|(name, text)| File {
            name: name.clone(),
            text: text.clone(),
            path: Vec::new(),
            library: false,
        });
        let mut loader = Loader { queue: given.collect(), ..Loader::default() };
        for file in &loader.queue {
            loader.places.insert((false, identity(Path::new(&file.name))), None);
        }
        loader.read_queue(self);
        let n_program = loader.modules.len();
        let mut n_seen = 0;
        while n_seen < loader.modules.len() {
            let new = n_seen..loader.modules.len();
            new.clone().for_each(|m| loader.note_names(m));
            new.clone().for_each(|m| loader.find_libraries(self, m));
            n_seen = new.end;
            loader.read_queue(self);
        }
        Loaded { modules: loader.modules, n_program }
    }

    /// Nothing that was read is overwritten.
    pub fn check_output(&mut self, out: &Path) -> Result<(), Reported> {
        let Ok(place) = out.canonicalize() else { return Ok(()) };
        if self.sources.names().any(|name| Path::new(name).canonicalize().is_ok_and(|source| source == place)) {
            return Err(self.report(cannot_write::source(out)));
        }
        Ok(())
    }
}

type Names = HashSet<Box<str>>;

#[derive(Default)]
struct Loader {
    queue: Vec<File>,
    modules: Vec<Module>,
    /// Names of the files, parallel to the modules.
    file_names: Vec<String>,
    /// Files that are read, apart for the program and for libraries, with the `mod` that asked for each.
    places: HashMap<(bool, PathBuf), Option<Span>>,
    /// Names of items, by whether they are a library's and the path of their module.
    names: HashMap<(bool, Vec<Box<str>>), Names>,
    /// All names of items, wherever they stand.
    all_names: Names,
    libraries: HashSet<String>,
}

impl Loader {
    fn read_queue(&mut self, s: &mut Session) {
        let mut next = 0;
        while next < self.queue.len() {
            let File { name, text, path, library } = &mut self.queue[next];
            let (name, text) = (std::mem::take(name), std::mem::take(text));
            let file = s.sources.add(name.clone(), text);
            let mut module = nyala_syntax::parse(file, s.sources.text(file), &mut s.sink);
            (module.path, module.library) = (std::mem::take(path), *library);
            next += 1;
            if !self.find_modules(s, &module, &name) {
                // Names that they would have given are not unknown.
                module.open_names = true;
            }
            self.modules.push(module);
            self.file_names.push(name);
        }
        self.queue.clear();
    }

    /// Puts the files of the module's `mod m;` in the queue; whether there are all.
    fn find_modules(&mut self, s: &mut Session, module: &Module, file_name: &str) -> bool {
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
                    s.sink.push(module_twice::error(m.name.span, &m.name.text, &place, *first));
                    continue;
                }
                let text = match read(&place) {
                    Ok(text) => text,
                    Err(e) => {
                        s.sink.push(no_such_module::error(m.name.span, &m.name.text, &place, &e));
                        lost = true;
                        continue;
                    }
                };
                self.places.insert(known, Some(m.name.span));
                let mut path = module.path.clone();
                path.extend(inside.iter().chain([&&m.name]).map(|n| n.text.clone()));
                self.queue.push(File { name: place.display().to_string(), text, path, library: module.library });
            }
        });
        !lost
    }

    /// What the items of a module are called.
    fn note_names(&mut self, m: usize) {
        let module = &self.modules[m];
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

    fn find_libraries(&mut self, s: &mut Session, m: usize) {
        let module = &self.modules[m];
        let mut wanted: Vec<(Use, Vec<Box<str>>)> = Vec::new();
        each_module(&module.items, &mut |items, inside| {
            let path = module.path.iter().chain(inside.iter().map(|n| &n.text));
            let path: Vec<Box<str>> = path.cloned().collect();
            wanted.extend(items.iter().filter_map(used).map(|u| (u.clone(), path.clone())));
        });
        // Those inside of functions see more names; which, the checker knows.
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
            if !own && !self.find_library(s, m, &u) {
                // Names that it would have given are not unknown.
                self.modules[m].open_names = true;
            }
        }
    }

    /// Puts the files of a library in the queue; whether there is one, or nobody knows yet.
    fn find_library(&mut self, s: &mut Session, m: usize, u: &Use) -> bool {
        let names: Vec<&str> = u.names.iter().map(|n| &*n.text).collect();
        let mut searched = Vec::new();
        for n in (1..=names.len()).rev() {
            let library = names[..n].join("::");
            if self.libraries.contains(&library) {
                return true;
            }
            match libraries::find(&library, &self.file_names[m], &s.options.library_folders) {
                Ok(files) => {
                    let path: Vec<Box<str>> = names[..n].iter().map(|n| (*n).into()).collect();
                    for (name, text) in files {
                        self.places.insert((true, identity(Path::new(&name))), None);
                        self.queue.push(File { name, text, path: path.clone(), library: true });
                    }
                    self.libraries.insert(library);
                    return true;
                }
                Err(tried) => searched.extend(tried),
            }
        }
        // A name that comes by another `use` is the checker's to find.
        if self.all_names.contains(names[0]) {
            return true;
        }
        let span = u.names.iter().map(|n| n.span).reduce(Span::to).unwrap_or_default();
        s.sink.push(no_such_library::error(span, &names.join("::"), &searched));
        // Once is enough.
        self.libraries.insert(names.join("::"));
        false
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

/// The name that an item gives to other items' paths.
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

/// Bytes of a source file; a device may give any number.
const MAX_BYTES: u64 = 256 << 20;

/// The text of a file.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = OpenFile::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|e| match e.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        _ => e.to_string(),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it has more than {} MiB", MAX_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|e| format!("not UTF-8: byte {} is no character", e.utf8_error().valid_up_to()))
}

/// The same for all names of a file.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
