//! Names: `use`, paths, and what a name means at some place.
//!
//! A single name is looked up in the blocks around it, in its module, among the module's `use` items, in the enclosing
//! modules, and in the prelude. A module's own definition silently wins over a used one, and a program's over the
//! prelude's. In front of `::`, a library wins over a function, a static or a variable of its name, which have no members.

use super::collect::primitive;
use super::namespaces::{Named, UseState, Used};
use super::*;
use crate::exports::Exports;
use nyala_syntax::ast::{Path, TypeId, Use};

/// The meaning of a path.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Entity(Entity),
    /// A member of a type: a method by its name.
    Of(Ty, &'a Name),
    OfTrait(TraitId, &'a Name),
}

impl<'a> Checker<'a, '_> {
    pub(super) fn declare_use(&mut self, used: &'a Use) {
        let at = self.namespaces.uses.len();
        self.namespaces.uses.push(Used { ast: used, ns: self.at.ns, state: UseState::Fresh, needed: used.all });
        let ns = &mut self.namespaces[self.at.ns];
        if used.all {
            ns.globs.push(at);
            return;
        }
        let Some(name) = used.name() else { return };
        if let Some(old) = ns.uses.insert(&name.text, at) {
            self.namespaces.uses[old].needed = true;
            let first = self.namespaces.uses[old].ast.name().map(|n| n.span);
            self.report(duplicate_name::item(name.span, &short(&name.text), first));
        }
    }

    /// Resolves all `use` items of modules, so that errors in unused ones are reported too.
    pub(super) fn check_uses(&mut self) {
        for at in 0..self.namespaces.uses.len() {
            self.used(at);
        }
    }

    /// The item that a `use` brings. For `use …::*`, the module or enum whose names it brings.
    fn used(&mut self, at: usize) -> Option<Entity> {
        let Used { ast, ns, state, .. } = self.namespaces.uses[at];
        match state {
            UseState::Done(entity) => Some(entity),
            UseState::Busy => None,
            UseState::Fresh => {
                self.namespaces.uses[at].state = UseState::Busy;
                let mut entity = self.use_path(ns, ast);
                if let Some(alias) = &ast.alias {
                    self.note(alias.span, Symbol::of(entity));
                }
                if ast.all && !matches!(entity, Entity::Module(_) | Entity::Enum(_) | Entity::Error) {
                    let name = &ast.names[ast.names.len() - 1];
                    self.report(no_such_member::not_a_module(name.span, &short(&name.text)));
                    entity = Entity::Error;
                }
                self.namespaces.uses[at].state = UseState::Done(entity);
                Some(entity)
            }
        }
    }

    fn use_path(&mut self, ns: NsId, used: &'a Use) -> Entity {
        let old = std::mem::replace(&mut self.at.ns, ns);
        let scopes = std::mem::take(&mut self.scopes);
        let entity = self.use_path_here(used);
        (self.at.ns, self.scopes) = (old, scopes);
        entity
    }

    fn use_path_here(&mut self, used: &'a Use) -> Entity {
        match self.walk(&used.names, used.root, Some(used)) {
            Some((entity, rest)) if rest == used.names.len() => entity,
            Some((entity, rest)) => {
                if entity != Entity::Error {
                    let name = &used.names[rest];
                    self.report(no_such_member::not_a_module(name.span, &short(&used.names[rest - 1].text)));
                }
                Entity::Error
            }
            None => Entity::Error,
        }
    }

    /// Declares the names of a `use` in a block.
    pub(super) fn local_use(&mut self, used: &'a Use) {
        let entity = self.use_path_here(used);
        if !used.all {
            if let Some(name) = used.name() {
                self.declare(name, entity, false, false);
            }
            return;
        }
        let names: Vec<(&'a str, Entity)> = match entity {
            Entity::Module(of) => {
                let names = &self.namespaces[of].names;
                let visible = names.iter().filter(|(_, n)| !n.private || self.namespaces.is_inside(self.at.ns, of));
                visible.map(|(name, named)| (*name, named.entity)).collect()
            }
            Entity::Enum(id) => {
                self.p.enums[id.0 as usize].index.iter().map(|(n, i)| (*n, Entity::Option(id, *i))).collect()
            }
            Entity::Error => return,
            _ => {
                let name = &used.names[used.names.len() - 1];
                return self.report(no_such_member::not_a_module(name.span, &short(&name.text)));
            }
        };
        self.scopes.insert_new(names);
    }

    /// The item with this name in a module, defined there or brought by `use`.
    pub(super) fn member(&mut self, ns: NsId, name: &'a str) -> Option<Named> {
        if let Some(&named) = self.namespaces[ns].names.get(name) {
            return Some(named);
        }
        if let Some(&at) = self.namespaces[ns].uses.get(name)
            && let Some(entity) = self.used(at)
        {
            self.namespaces.uses[at].needed = true;
            return Some(Named { entity, private: false });
        }
        for i in 0..self.namespaces[ns].globs.len() {
            let found = match self.used(self.namespaces[ns].globs[i]) {
                Some(Entity::Module(from)) if from != ns && !self.namespaces.searching.contains(&from) => {
                    self.namespaces.searching.push(ns);
                    let found = self.member(from, name).filter(|n| !n.private || self.namespaces.is_inside(ns, from));
                    self.namespaces.searching.pop();
                    found
                }
                Some(Entity::Enum(id)) => {
                    let option = self.p.enums[id.0 as usize].index.get(name);
                    option.map(|&i| Named { entity: Entity::Option(id, i), private: false })
                }
                _ => None,
            };
            if let Some(found) = found {
                return Some(Named { private: false, ..found });
            }
        }
        None
    }

    pub(super) fn lookup(&mut self, name: &'a str) -> Option<Entity> {
        self.scopes.find(name).or_else(|| self.meaning_in(self.at.ns, name))
    }

    /// What a name means in a module, outside of all bodies.
    pub(super) fn meaning_in(&mut self, ns: NsId, name: &'a str) -> Option<Entity> {
        let mut at = Some(ns);
        while let Some(ns) = at {
            if let Some(named) = self.member(ns, name) {
                return Some(named.entity);
            }
            at = self.namespaces[ns].parent;
        }
        self.namespaces[PRELUDE].names.get(name).map(|n| n.entity)
    }

    /// Whether names used at `span` may be missing because of other errors.
    pub(super) fn names_open(&self, span: Span) -> bool {
        let is_inside = |body: &Span| body.file == span.file && body.lo <= span.lo && span.hi <= body.hi;
        self.unknown.is_any_open || self.p.modules.iter().any(|m| m.broken_bodies.iter().any(is_inside))
    }

    /// Resolves `name` to a type if `as_type`, else to a value. An error is reported once per function and name.
    pub(super) fn resolve(&mut self, name: &'a Name, as_type: bool) -> Entity {
        if let Some(entity) = self.lookup(&name.text) {
            self.note(name.span, Symbol::of(entity));
            return entity;
        }
        if name.is_wildcard() {
            self.report(wildcard_value::error(name.span));
            return Entity::Error;
        }
        if self.names_open(name.span) || !self.unknown.reported.insert((self.ctx.function, &name.text)) {
            return Entity::Error;
        }
        let with_option = |e: &&EnumInfo<'a>| !as_type && e.index.contains_key(&*name.text);
        let mut enums: Vec<&'a str> = self.p.enums.iter().filter(with_option).map(|e| &*e.ast.name.text).collect();
        enums.retain(|e| self.lookup(e).is_some());
        let similar = self.similar_name(&name.text, as_type);
        let libraries = self.unknown.libraries(|l| l.has_item(&name.text));
        let modules = self.unknown.modules(&self.p, |m| m.has_item(&name.text));
        let elsewhere = (&modules[..], &libraries[..]);
        let diagnostic = unknown_name::error(name.span, &short(&name.text), similar, elsewhere, &enums);
        self.report(diagnostic);
        Entity::Error
    }

    /// Reports that the first of these names of a path is unknown.
    fn unknown_module(&mut self, names: &'a [Name]) {
        let first = &names[0];
        let path: Vec<&str> = names.iter().map(|n| &*n.text).collect();
        let is_prefix = |l: &Exports| l.path.split("::").eq(path.iter().copied().take(l.path.split("::").count()));
        let mut found = self.unknown.libraries(is_prefix);
        // The longest is the library that `use` would find.
        found.drain(..found.len().saturating_sub(1));
        if found.is_empty() {
            found = self.unknown.libraries(|l| l.is_called(&first.text));
        }
        let own = self.unknown.modules(&self.p, |m| m.is_called(&first.text));
        if own.is_empty() && found.is_empty() || self.names_open(first.span) {
            self.resolve(first, false);
        } else {
            let diagnostic = unknown_name::module(first.span, &short(&first.text), &own, &found);
            if self.unknown.reported.insert((self.ctx.function, &first.text)) {
                self.report(diagnostic);
            }
        }
    }

    fn similar_name(&mut self, name: &str, as_type: bool) -> Option<&'a str> {
        self.unknown.n_suggestions += 1;
        if self.unknown.n_suggestions > 20 {
            return None;
        }
        let mut modules = vec![PRELUDE];
        for ns in self.namespaces.outward(self.at.ns) {
            modules.push(ns);
            modules.extend(self.namespaces.glob_modules(ns));
        }
        let is_type =
            |e: &Entity| matches!(e, Entity::Struct(_) | Entity::Enum(_) | Entity::Alias(_) | Entity::Type(_));
        let of_modules = modules.iter().flat_map(|&ns| self.namespaces[ns].names.iter().map(|(n, e)| (*n, e.entity)));
        let fitting =
            self.scopes.names().chain(of_modules).filter(|(_, e)| !as_type || is_type(e)).map(|(name, _)| name);
        let primitive = Prim::ALL.iter().filter(|_| as_type).map(|p| p.name());
        closest(name, fitting.chain(primitive))
    }

    // Paths.

    /// Resolves a path.
    pub(super) fn find(&mut self, path: &'a Path, as_type: bool) -> Found<'a> {
        if path.names.len() == 1 && !path.root {
            return Found::Entity(self.resolve(&path.names[0], as_type));
        }
        let Some((entity, rest)) = self.walk(&path.names, path.root, None) else {
            return Found::Entity(Entity::Error);
        };
        if rest == path.names.len() {
            return Found::Entity(entity);
        }
        if let Entity::Trait(id) = entity
            && rest + 1 == path.names.len()
        {
            return Found::OfTrait(id, &path.names[rest]);
        }
        let args = path.inner_args.iter().find(|(i, _)| *i as usize + 1 == rest).map(|(_, args)| &args[..]);
        let is_type = matches!(entity, Entity::Struct(_) | Entity::Enum(_) | Entity::Alias(_) | Entity::Type(_));
        if !is_type || rest + 1 != path.names.len() {
            if entity != Entity::Error {
                let before = &path.names[rest - 1];
                self.report(no_such_member::not_a_module(before.span, &short(&before.text)));
            }
            return Found::Entity(Entity::Error);
        }
        let ty = self.named_ty(entity, args, &path.names[rest - 1], Arity::Open);
        Found::Of(ty, &path.names[rest])
    }

    /// The type arguments that the path gives to the enum whose option it names.
    pub(super) fn option_args(&self, path: &'a Path) -> Option<&'a [TypeId]> {
        let before = path
            .names
            .len()
            .checked_sub(2)
            .and_then(|i| path.inner_args.iter().find(|(at, _)| *at as usize == i).map(|(_, args)| &args[..]));
        before.or(path.type_args.as_deref())
    }

    /// Follows names through modules, enums and their options. Returns the item reached, and the number of names used.
    fn walk(&mut self, names: &'a [Name], root: bool, used: Option<&Use>) -> Option<(Entity, usize)> {
        let first = &names[0];
        let has_members = names.len() > 1 || used.is_some_and(|u| u.all);
        let mut at = 1;
        let mut entity = if root {
            at = 0;
            Entity::Module(self.namespaces[self.at.ns].root)
        } else {
            let found = self.lookup(&first.text);
            match (found, self.namespaces.library(self.at.ns, names)) {
                (Some(Entity::Fn(_) | Entity::Static(_) | Entity::Local(_)), Some((ns, n))) if has_members => {
                    at = n;
                    Entity::Module(ns)
                }
                (Some(entity), _) => entity,
                (None, library) => match &*first.text {
                    "super" => self.around(self.at.ns, first)?,
                    "self" => Entity::Module(self.at.ns),
                    text if used.is_none() && primitive(text).is_some() => {
                        let prim = primitive(text).unwrap_or(Prim::I32);
                        Entity::Type(self.prim(prim))
                    }
                    _ => match library {
                        Some((ns, n)) => {
                            at = n;
                            Entity::Module(ns)
                        }
                        None => {
                            self.unknown_module(names);
                            return None;
                        }
                    },
                },
            }
        };
        if let Some(last) = at.checked_sub(1) {
            self.note(names[last].span, Symbol::of(entity));
        }
        while at < names.len() {
            let name = &names[at];
            entity = match entity {
                Entity::Module(ns) if &*name.text == "super" => self.around(ns, name)?,
                Entity::Module(ns) => match self.member(ns, &name.text) {
                    Some(named) => {
                        if named.private && !self.namespaces.is_inside(self.at.ns, ns) {
                            self.report(private_name::error(name.span, &short(&name.text)));
                        }
                        named.entity
                    }
                    None => {
                        if let Some(file) = self.namespaces.file(ns, &name.text) {
                            entity = Entity::Module(file);
                            self.note(name.span, Symbol::of(entity));
                            at += 1;
                            continue;
                        }
                        if !self.names_open(name.span) {
                            let of = names.get(at.wrapping_sub(1)).map_or("", |n| &n.text);
                            let all = self.namespaces[ns].names.keys().copied();
                            let similar = closest(&name.text, all);
                            let libraries = self.unknown.libraries(|l| l.has_item(&name.text));
                            let (of, short) = (short(of), short(&name.text));
                            let diagnostic = no_such_member::error(name.span, &of, &short, similar, &libraries);
                            self.report(diagnostic);
                        }
                        return None;
                    }
                },
                Entity::Enum(id) => match self.p.enums[id.0 as usize].index.get(&*name.text) {
                    Some(&i) => Entity::Option(id, i),
                    None => return Some((entity, at)),
                },
                _ => return Some((entity, at)),
            };
            self.note(name.span, Symbol::of(entity));
            at += 1;
        }
        Some((entity, at))
    }

    fn around(&mut self, ns: NsId, name: &Name) -> Option<Entity> {
        match self.namespaces[ns].parent {
            Some(parent) => Some(Entity::Module(parent)),
            None => {
                self.report(no_such_member::no_super(name.span));
                None
            }
        }
    }
}
