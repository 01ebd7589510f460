//! Scopes and modules, as data: which names they have. Separate from the code that resolves paths and reports what it
//! does not find. Functions here know no types.

use crate::diagnostics::{short, unused_name};
use crate::exports::Exports;
use crate::program::{Entity, FnId, NsId, PRELUDE, PROGRAM, Program};
use crate::types::EnumId;
use nyala_base::Diagnostic;
use nyala_syntax::ast::{Name, Use};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::ops::{Index, IndexMut};

/// A module: its own names, and the `use` items that bring more.
#[derive(Debug)]
pub(crate) struct Namespace<'a> {
    pub parent: Option<NsId>,
    /// The program, library or prelude that it belongs to.
    pub root: NsId,
    pub names: FxHashMap<&'a str, Named>,
    /// `use a::b;` by the name it brings, as an index into [`Namespaces::uses`].
    pub uses: FxHashMap<&'a str, usize>,
    /// `use a::*;`
    pub globs: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub entity: Entity,
    pub private: bool,
}

/// A `use` item of a module, which is resolved on demand.
#[derive(Debug)]
pub(crate) struct Used<'a> {
    pub ast: &'a Use,
    pub ns: NsId,
    pub state: UseState,
    /// Some name resolves to the item that it brings.
    pub needed: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum UseState {
    Fresh,
    Busy,
    Done(Entity),
}

/// All modules, and their `use` items.
#[derive(Debug, Default)]
pub(crate) struct Namespaces<'a> {
    /// The prelude's is the first, the program's the second.
    all: Vec<Namespace<'a>>,
    pub uses: Vec<Used<'a>>,
    /// Libraries by their paths.
    libraries: Vec<(&'a [Box<str>], NsId)>,
    /// What each file's program or library does not see, by its root.
    hidden: FxHashMap<NsId, &'a [Box<str>]>,
    /// Modules that are files, by the module around them and their names.
    files: FxHashMap<(NsId, &'a str), NsId>,
    /// The module that each file's items are in.
    of_files: Vec<NsId>,
    /// Modules whose names are being searched for, through `use …::*`.
    pub searching: Vec<NsId>,
}

impl<'a> Index<NsId> for Namespaces<'a> {
    type Output = Namespace<'a>;

    fn index(&self, ns: NsId) -> &Namespace<'a> {
        &self.all[ns.0 as usize]
    }
}

impl<'a> IndexMut<NsId> for Namespaces<'a> {
    fn index_mut(&mut self, ns: NsId) -> &mut Namespace<'a> {
        &mut self.all[ns.0 as usize]
    }
}

impl<'a> Namespaces<'a> {
    /// The modules of the prelude, the libraries and the program, as far as they are files.
    pub fn of_files(p: &Program<'a>) -> Self {
        let mut this = Namespaces::default();
        let (prelude, program) = (this.add(None), this.add(None));
        debug_assert!(prelude == PRELUDE && program == PROGRAM);
        for (module, ast) in p.modules.iter().enumerate() {
            let root = if module < p.n_prelude {
                prelude
            } else if module >= p.n_libraries {
                program
            } else {
                match this.libraries.iter().find(|(path, _)| ast.path.starts_with(path)) {
                    Some((_, root)) => *root,
                    None => {
                        let root = this.add(None);
                        this.libraries.push((&ast.path, root));
                        root
                    }
                }
            };
            if !ast.hidden.is_empty() {
                this.hidden.insert(root, &ast.hidden);
            }
            let known = this.libraries.iter().find(|(_, r)| *r == root).map_or(0, |(path, _)| path.len());
            let mut ns = root;
            for name in ast.path.iter().skip(known) {
                ns = match this.file(ns, name) {
                    Some(inner) => inner,
                    None => {
                        let inner = this.add(Some(ns));
                        this.files.insert((ns, name), inner);
                        inner
                    }
                };
            }
            this.of_files.push(ns);
        }
        this
    }

    /// Adds a module without names in `parent`, or a program, library or prelude.
    pub fn add(&mut self, parent: Option<NsId>) -> NsId {
        let id = NsId(self.all.len() as u32);
        let root = parent.map_or(id, |parent| self[parent].root);
        let (names, uses) = (FxHashMap::default(), FxHashMap::default());
        self.all.push(Namespace { parent, root, names, uses, globs: Vec::new() });
        id
    }

    /// The module that the items of the file with this number are in.
    pub fn of_file(&self, module: usize) -> NsId {
        self.of_files[module]
    }

    /// The module `name` in `ns`, if it is a file.
    pub fn file(&self, ns: NsId, name: &str) -> Option<NsId> {
        self.files.get(&(ns, name)).copied()
    }

    /// The module itself, the one around it, and so on.
    pub fn outward(&self, ns: NsId) -> impl Iterator<Item = NsId> {
        std::iter::successors(Some(ns), |&ns| self[ns].parent)
    }

    /// Whether module `ns` is `outer` or in it.
    pub fn is_inside(&self, ns: NsId, outer: NsId) -> bool {
        self.outward(ns).any(|ns| ns == outer)
    }

    /// The library that a path in module `from` begins with, and the number of names in the library's own path.
    pub fn library(&self, from: NsId, names: &[Name]) -> Option<(NsId, usize)> {
        let hidden = self.hidden.get(&self[from].root).copied().unwrap_or_default();
        if hidden.iter().any(|name| **name == *names[0].text) {
            return None;
        }
        let fits = |path: &[Box<str>]| path.len() <= names.len() && path.iter().zip(names).all(|(a, b)| **a == *b.text);
        let fitting = self.libraries.iter().filter(|(path, _)| fits(path));
        fitting.max_by_key(|(path, _)| path.len()).map(|(path, ns)| (*ns, path.len()))
    }

    /// The name of a module, or the path of a library.
    pub fn name(&self, ns: NsId) -> String {
        let parent = self[ns].parent.map(|parent| &self[parent]);
        let is_it = |named: &Named| named.entity == Entity::Module(ns);
        let declared = parent.and_then(|p| p.names.iter().find(|(_, named)| is_it(named)).map(|(name, _)| *name));
        let library = self.libraries.iter().find(|(_, root)| *root == ns);
        match (declared, library) {
            (Some(name), _) => name.into(),
            (None, Some((path, _))) => path.join("::"),
            (None, None) => String::new(),
        }
    }

    /// The names of a module for code in module `from`: its own, then those that `use` brings.
    pub fn visible(&self, ns: NsId, from: NsId) -> Vec<(&'a str, Entity)> {
        let is_inside = self.is_inside(from, ns);
        let own = self[ns].names.iter().filter(|(_, named)| is_inside || !named.private);
        let mut all: Vec<(&'a str, Entity)> = own.map(|(name, named)| (*name, named.entity)).collect();
        all.extend(self[ns].uses.iter().filter_map(|(name, at)| match self.uses[*at].state {
            UseState::Done(entity) => Some((*name, entity)),
            _ => None,
        }));
        all.sort_by_key(|(name, _)| *name);
        all
    }

    /// The enums whose options the module has through `use …::*`.
    pub fn glob_enums(&self, ns: NsId) -> impl Iterator<Item = EnumId> {
        self[ns].globs.iter().filter_map(|g| match self.uses[*g].state {
            UseState::Done(Entity::Enum(id)) => Some(id),
            _ => None,
        })
    }

    /// Whether the program's files, or the libraries that they use, use the library `path`.
    pub fn is_used(&self, path: &str) -> bool {
        self.libraries.iter().any(|(names, _)| names.iter().map(|n| &**n).eq(path.split("::")))
    }

    /// The modules and enums whose names the module has through `use …::*`, as far as they are resolved.
    pub fn glob_modules(&self, ns: NsId) -> impl Iterator<Item = NsId> {
        self[ns].globs.iter().filter_map(|g| match self.uses[*g].state {
            UseState::Done(Entity::Module(ns)) => Some(ns),
            _ => None,
        })
    }

    /// Finds `use a::b;` items whose name is not used.
    pub fn unused_uses(&self, found: &mut Vec<Diagnostic>) {
        for name in self.uses.iter().filter(|u| !u.needed).filter_map(|u| u.ast.name()) {
            found.push(unused_name::import(name.span, &short(&name.text)));
        }
    }
}

/// The scopes around the code that is being checked: of blocks, bodies and type parameters; the innermost is the last.
#[derive(Default)]
pub(super) struct Scopes<'a>(Vec<FxHashMap<&'a str, Entity>>);

impl<'a> Scopes<'a> {
    pub fn open(&mut self) {
        self.0.push(FxHashMap::default());
    }

    pub fn close(&mut self) {
        self.0.pop();
    }

    /// Whether the code is outside of all blocks and generic items.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives a name its meaning in the innermost scope. Returns its meaning there so far.
    pub fn insert(&mut self, name: &'a str, entity: Entity) -> Option<Entity> {
        self.0.last_mut()?.insert(name, entity)
    }

    /// Gives names their meanings in the innermost scope, except those that have one there.
    pub fn insert_new(&mut self, names: impl IntoIterator<Item = (&'a str, Entity)>) {
        let Some(scope) = self.0.last_mut() else { return };
        for (name, entity) in names {
            scope.entry(name).or_insert(entity);
        }
    }

    pub fn find(&self, name: &str) -> Option<Entity> {
        self.0.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    /// The meanings of a name in the scopes around the innermost one, from the inside. Each comes with the number of
    /// scopes between it and the innermost one.
    pub fn find_outside(&self, name: &str) -> impl Iterator<Item = (usize, Entity)> {
        let outer = self.0.iter().rev().skip(1).enumerate();
        outer.filter_map(move |(between, scope)| Some((between, *scope.get(name)?)))
    }

    /// All names and their meanings, those of inner scopes first.
    pub fn names(&self) -> impl Iterator<Item = (&'a str, Entity)> {
        self.0.iter().rev().flat_map(|scope| scope.iter().map(|(name, entity)| (*name, *entity)))
    }
}

/// Names without a meaning: the errors reported so far, and whether they are to be reported at all.
pub(super) struct Unknown<'a> {
    /// Any name may be missing because of errors in the source, so that none is reported.
    pub is_any_open: bool,
    /// The names reported so far, by function.
    pub reported: FxHashSet<(Option<FnId>, &'a str)>,
    /// How often similar names were searched for.
    pub n_suggestions: u32,
    exports: &'a (dyn Fn() -> Vec<Exports> + Sync),
    /// What `exports` gives, once it is needed.
    libraries: OnceCell<Vec<Exports>>,
}

impl<'a> Unknown<'a> {
    pub fn new(p: &Program, exports: &'a (dyn Fn() -> Vec<Exports> + Sync)) -> Self {
        let is_any_open = p.modules.iter().any(|m| m.broken || m.open_names);
        let (reported, libraries) = (FxHashSet::default(), OnceCell::new());
        Unknown { is_any_open, reported, n_suggestions: 0, exports, libraries }
    }

    /// The libraries for which `holds`, by path, each once.
    pub fn libraries(&self, holds: impl Fn(&Exports) -> bool) -> Vec<&Exports> {
        let all = self.libraries.get_or_init(|| (self.exports)());
        let mut found: Vec<&Exports> = all.iter().filter(|l| holds(l)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        found
    }

    /// The paths of the program's own modules for which `holds`.
    pub fn modules(&self, p: &Program, holds: impl Fn(&Exports) -> bool) -> Vec<String> {
        let own = p.modules[p.n_libraries..].iter();
        let all = own.flat_map(|file| Exports::of(&file.path.join("::"), file));
        all.filter(|m| !m.path.is_empty() && holds(m)).map(|m| m.path).collect()
    }
}
