//! Names that could be written at a place: those in scope, members of values, modules and types; the function that is
//! called there; types that the source leaves out.

use super::impls::Impls;
use super::*;
use crate::check::Namespaces;
use nyala_syntax::ast::{ExprKind, Fn, Item, Name, Param, Pattern, PatternKind, Stmt, TypeParam};

/// The call around a place.
pub struct Call {
    /// `pow(x: i32, n: i32) -> i32`
    pub label: String,
    /// The parameters that take the arguments, as they stand in the label.
    pub params: Vec<String>,
    /// The number of the argument at the place.
    pub active: usize,
    /// What is called, if it has a name.
    pub callee: Option<Symbol>,
}

/// A type that the source leaves out.
pub struct Hint {
    /// The byte before which it could be written.
    pub at: u32,
    /// `: i32`
    pub text: String,
}

/// Limit on the pointers that are followed to find members.
const MAX_POINTERS: usize = 8;

/// Limit on the length of types in hints, in characters.
const MAX_HINT: usize = 40;

/// Collects names, the innermost meaning of each.
#[derive(Default)]
struct Names {
    seen: rustc_hash::FxHashSet<String>,
    all: Vec<(String, Symbol)>,
}

impl Names {
    fn add(&mut self, name: &str, symbol: Symbol) {
        if symbol != Symbol::Error && !name.is_empty() && name != "_" && self.seen.insert(name.into()) {
            self.all.push((name.into(), symbol));
        }
    }
}

fn holds(span: Span, at: u32) -> bool {
    span.lo <= at && at <= span.hi
}

impl Symbols<'_> {
    /// The module that code at a place is in.
    fn ns_at(&self, module: usize, at: u32) -> NsId {
        let mut ns = self.modules.namespaces.of_file(module);
        let mut items: &[Item] = &self.program.modules[module].items;
        'inner: loop {
            for item in items.iter().filter(|i| holds(i.span, at)) {
                if let ItemKind::Mod(m) = &item.kind
                    && let Some(inner) = &m.items
                    && let Some(Entity::Module(of)) = self.program.declared_at(m.name.span)
                {
                    (ns, items) = (of, inner);
                    continue 'inner;
                }
            }
            return ns;
        }
    }

    /// The names that are in scope at a place, inner ones first.
    pub fn scope(&self, file: FileId, at: u32) -> Vec<(String, Symbol)> {
        let mut names = Names::default();
        let Some(module) = self.module(file) else { return names.all };
        let tree = self.program.modules[module];
        // What is around the place, the innermost first.
        let mut around: Vec<&nyala_syntax::ast::Expr> = tree.exprs.iter().filter(|e| holds(e.span, at)).collect();
        around.sort_by_key(|e| e.span.hi - e.span.lo);
        for e in around {
            match &e.kind {
                ExprKind::Block(block) => {
                    for stmt in block.stmts.iter().rev() {
                        match stmt {
                            Stmt::Let { pattern, span, .. } if span.hi <= at => self.add_pattern(&mut names, pattern),
                            Stmt::Item(item) => {
                                if let Some(name) = name_of(&item.kind) {
                                    self.add_declared(&mut names, name);
                                }
                                self.add_item(&mut names, item, at);
                            }
                            _ => {}
                        }
                    }
                }
                ExprKind::Lambda(lambda) => self.add_params(&mut names, &lambda.params),
                ExprKind::For(looped) if holds(tree[looped.body].span, at) => {
                    self.add_params(&mut names, &looped.params);
                }
                ExprKind::Match { arms, .. } => {
                    let is_in = |e: ExprId| holds(tree[e].span, at);
                    for arm in arms.iter().filter(|a| is_in(a.body) || a.guard.is_some_and(is_in)) {
                        self.add_pattern(&mut names, &arm.pattern);
                    }
                }
                _ => {}
            }
        }
        let mut work: Vec<&Item> = tree.items.iter().collect();
        while let Some(item) = work.pop() {
            if !holds(item.span, at) {
                continue;
            }
            match &item.kind {
                ItemKind::Mod(m) => work.extend(m.items.iter().flatten()),
                _ => self.add_item(&mut names, item, at),
            }
        }
        let spaces = &self.modules.namespaces;
        let own = self.ns_at(module, at);
        for ns in spaces.outward(own) {
            self.add_module(&mut names, spaces, ns, own);
            for from in spaces.glob_modules(ns) {
                self.add_module(&mut names, spaces, from, own);
            }
            for id in spaces.glob_enums(ns) {
                self.options(id).into_iter().for_each(|(name, symbol)| names.add(&name, symbol));
            }
        }
        self.add_module(&mut names, spaces, PRELUDE, own);
        names.all
    }

    fn add_module(&self, names: &mut Names, spaces: &Namespaces, ns: NsId, from: NsId) {
        spaces.visible(ns, from).into_iter().for_each(|(name, entity)| names.add(name, Symbol::of(entity)));
    }

    /// Adds the parameters of the function, or of the method, at a place in an item.
    fn add_item(&self, names: &mut Names, item: &Item, at: u32) {
        if !holds(item.span, at) {
            return;
        }
        let is_in = |f: &&Fn| f.body.is_some() && f.span.lo <= at;
        let last = |fns: &[Fn]| fns.iter().rfind(is_in).map(|f| f.span);
        match &item.kind {
            ItemKind::Fn(f) => self.add_fn(names, f),
            ItemKind::Impl(i) => {
                let f = last(&i.fns);
                i.fns.iter().filter(|g| Some(g.span) == f).for_each(|f| self.add_fn(names, f));
                self.add_type_params(names, &i.type_params);
            }
            ItemKind::Trait(t) => {
                let f = last(&t.fns);
                t.fns.iter().filter(|g| Some(g.span) == f).for_each(|f| self.add_fn(names, f));
                self.add_type_params(names, &t.type_params);
            }
            ItemKind::Struct(s) => self.add_type_params(names, &s.type_params),
            ItemKind::Enum(e) => self.add_type_params(names, &e.type_params),
            ItemKind::Alias(a) => self.add_type_params(names, &a.type_params),
            ItemKind::Extern(_) | ItemKind::Static(_) | ItemKind::Mod(_) | ItemKind::Use(_) => {}
        }
    }

    fn add_fn(&self, names: &mut Names, f: &Fn) {
        self.add_params(names, &f.params);
        self.add_type_params(names, &f.type_params);
    }

    fn add_params(&self, names: &mut Names, params: &[Param]) {
        params.iter().for_each(|p| self.add_pattern(names, &p.pattern));
    }

    fn add_type_params(&self, names: &mut Names, params: &[TypeParam]) {
        for param in params {
            if let Some((_, symbol)) = self.name_at(param.name.span.file, param.name.span.lo) {
                names.add(&param.name.text, symbol);
            }
        }
    }

    fn add_declared(&self, names: &mut Names, name: &Name) {
        if let Some(entity) = self.program.declared_at(name.span) {
            names.add(&name.text, Symbol::of(entity));
        }
    }

    fn add_pattern(&self, names: &mut Names, pattern: &Pattern) {
        each_name(pattern, &mut |name, _| self.add_declared(names, name));
    }

    fn options(&self, id: EnumId) -> Vec<(String, Symbol)> {
        let options = self.program.enums[id.0 as usize].ast.options.iter().enumerate();
        options.map(|(i, o)| (o.name.text.to_string(), Symbol::Option(id, i as u32))).collect()
    }

    /// The names that may follow `symbol::` at a place of a file.
    pub fn members_of(&self, symbol: Symbol, file: FileId, at: u32) -> Vec<(String, Symbol)> {
        let mut names = Names::default();
        let Some(from) = self.module(file).map(|m| self.ns_at(m, at)) else { return names.all };
        match symbol {
            Symbol::Module(ns) => {
                let spaces = &self.modules.namespaces;
                self.add_module(&mut names, spaces, ns, from);
                for of in spaces.glob_modules(ns) {
                    self.add_module(&mut names, spaces, of, from);
                }
            }
            Symbol::Trait(id) => self.add_trait(&mut names, id, false),
            Symbol::Enum(id) => {
                self.options(id).into_iter().for_each(|(name, symbol)| names.add(&name, symbol));
                self.add_methods(&mut names, Head::Enum(id), None, false, from);
            }
            Symbol::Struct(id) => self.add_methods(&mut names, Head::Struct(id), None, false, from),
            Symbol::Type(ty) => {
                if let Kind::Enum(id, _) = self.kind_of(ty) {
                    self.options(*id).into_iter().for_each(|(name, symbol)| names.add(&name, symbol));
                }
                self.add_methods(&mut names, self.program.types.head(ty), Some(ty), false, from);
            }
            _ => {}
        }
        names.all
    }

    /// The fields and methods of the value before the dot, where the name behind the dot is at this place.
    pub fn members(&self, file: FileId, at: u32) -> Vec<(String, Symbol)> {
        let mut names = Names::default();
        let Some(module) = self.module(file) else { return names.all };
        let exprs = &self.program.modules[module].exprs;
        let base = exprs.iter().find_map(|e| match &e.kind {
            ExprKind::Field { base, name, .. } if holds(name.span, at) => Some(*base),
            _ => None,
        });
        let Some(base) = base else { return names.all };
        let from = self.ns_at(module, at);
        let mut ty = self.expr_ty(module, base);
        for _ in 0..MAX_POINTERS {
            if let Kind::Struct(id, _) = self.kind_of(ty) {
                let info = &self.program.structs[id.0 as usize];
                let sees_all = self.modules.namespaces.is_inside(from, info.ns);
                for (i, field) in info.ast.fields.iter().enumerate().filter(|(_, f)| sees_all || !f.private) {
                    names.add(&field.name.text, Symbol::Field(*id, i as u32));
                }
            }
            if !self.program.types.is_error(ty) {
                self.add_methods(&mut names, self.program.types.head(ty), Some(ty), true, from);
            }
            match self.kind_of(ty) {
                Kind::Ptr { to, .. } => ty = *to,
                _ => break,
            }
        }
        names.all
    }

    /// Adds the methods of types with this head that code in the module `from` may name; of a type, those of impls that apply to it.
    fn add_methods(&self, names: &mut Names, head: Head, ty: Option<Ty>, with_receiver: bool, from: NsId) {
        let p = &self.program;
        let fits = |f: &FnId| !with_receiver || !p.fns[f.0 as usize].ast.params.is_empty();
        if let Some(Kind::Param(param)) = ty.map(|ty| self.kind_of(ty)) {
            let mut work: Vec<TraitId> = p.type_params[param.0 as usize].bounds.iter().map(|b| b.id).collect();
            let mut seen = Vec::new();
            while let Some(id) = work.pop() {
                if !seen.contains(&id) {
                    seen.push(id);
                    self.add_trait(names, id, with_receiver);
                    work.extend(p.traits[id.0 as usize].supers.iter().map(|s| s.id));
                }
            }
            return;
        }
        let mut impls = ty.map(|_| Impls::new(p));
        let mut applies = |i: &ImplInfo| {
            let has_head = p.types.head(i.ty) == head || matches!(self.kind_of(i.ty), Kind::Param(_));
            has_head && ty.zip(impls.as_mut()).is_none_or(|(ty, impls)| impls.apply(i, ty))
        };
        for i in p.impls.iter().filter(|i| i.of.is_none() && !p.types.is_error(i.ty)) {
            if !applies(i) {
                continue;
            }
            let sees_all = self.modules.namespaces.is_inside(from, i.ns);
            let is_seen = |f: &FnId| sees_all || !p.fns[f.0 as usize].ast.private;
            let mut methods: Vec<_> = i.methods.iter().filter(|(_, f)| fits(f) && is_seen(f)).collect();
            methods.sort_unstable();
            methods.into_iter().for_each(|(name, f)| names.add(name, Symbol::Fn(*f)));
        }
        for (i, of) in p.traits.iter().enumerate().filter(|(_, t)| t.operator.is_none()) {
            let id = TraitId(i as u32);
            if !of.methods.is_empty() && p.impls_for(id, head).iter().any(|i| applies(&p.impls[i.0 as usize])) {
                self.add_trait(names, id, with_receiver);
            }
        }
    }

    fn add_trait(&self, names: &mut Names, id: TraitId, with_receiver: bool) {
        let p = &self.program;
        let mut methods: Vec<_> = p.traits[id.0 as usize].methods.iter().collect();
        methods.sort_unstable();
        for (name, f) in methods {
            if !with_receiver || !p.fns[f.0 as usize].ast.params.is_empty() {
                names.add(name, Symbol::Fn(*f));
            }
        }
    }

    /// The innermost call whose arguments are around a place.
    pub fn call_at(&self, file: FileId, at: u32) -> Option<Call> {
        let module = self.module(file)?;
        let tree = self.program.modules[module];
        let mut found: Option<(u32, ExprId, &[ExprId])> = None;
        for e in &tree.exprs {
            if let ExprKind::Call { callee, args } = &e.kind
                && tree[*callee].span.hi < at
                && at <= e.span.hi
                && found.is_none_or(|(width, ..)| e.span.hi - e.span.lo < width)
            {
                found = Some((e.span.hi - e.span.lo, *callee, args));
            }
        }
        let (_, callee, args) = found?;
        let active = args.iter().filter(|a| tree[**a].span.hi < at).count();
        let (name, is_method) = match &tree[callee].kind {
            ExprKind::Path(path) => (path.names.last(), false),
            ExprKind::Field { name, .. } => (Some(name), true),
            _ => (None, false),
        };
        let symbol = name.and_then(|n| self.name_at(file, n.span.lo)).map(|(_, symbol)| symbol);
        let (head, params, result) = match symbol {
            Some(Symbol::Fn(id)) => {
                let f = &self.program.fns[id.0 as usize];
                let params: Vec<String> =
                    f.ast.params.iter().zip(&f.param_tys).map(|(p, ty)| self.param(p, *ty)).collect();
                let n = usize::from(is_method).min(params.len());
                (f.ast.name.text.to_string(), params[n..].to_vec(), f.result)
            }
            _ => {
                let Kind::Fn(params, result) = self.kind_of(self.expr_ty(module, callee)) else { return None };
                let params = params.iter().map(|ty| self.show(*ty)).collect();
                (name.map_or("fn".into(), |n| n.text.to_string()), params, *result)
            }
        };
        let label = format!("{head}({}) -> {}", params.join(", "), self.show(result));
        Some(Call { label, params, active, callee: symbol })
    }

    fn param(&self, param: &Param, ty: Ty) -> String {
        match &param.pattern.kind {
            PatternKind::Name { name, .. } => format!("{}: {}", name.text, self.show(ty)),
            _ => self.show(ty),
        }
    }

    /// The types that the source leaves out between two places, in the order of the source.
    pub fn hints(&self, file: FileId, from: u32, to: u32) -> Vec<Hint> {
        let Some(module) = self.module(file) else { return Vec::new() };
        let tree = self.program.modules[module];
        let mut hints = Vec::new();
        let mut add = |pattern: &Pattern| {
            each_name(pattern, &mut |name, typed| {
                if typed || name.is_wildcard() || name.span.hi < from || name.span.hi > to {
                    return;
                }
                if let Some(Entity::Local(id)) = self.program.declared_at(name.span) {
                    let ty = self.show(self.program.local(id).ty);
                    // A type with errors or open parts says little.
                    if !ty.contains('?') && !ty.contains('_') && ty.chars().count() <= MAX_HINT {
                        hints.push(Hint { at: name.span.hi, text: format!(": {ty}") });
                    }
                }
            });
        };
        for e in tree.exprs.iter().filter(|e| e.span.lo <= to && from <= e.span.hi) {
            match &e.kind {
                ExprKind::Block(block) => {
                    for stmt in &block.stmts {
                        if let Stmt::Let { pattern, init, .. } = stmt
                            && !init.is_some_and(|e| matches!(tree[e].kind, ExprKind::Lambda(_)))
                        {
                            add(pattern);
                        }
                    }
                }
                ExprKind::Lambda(lambda) => lambda.params.iter().for_each(|p| add(&p.pattern)),
                ExprKind::For(looped) => looped.params.iter().for_each(|p| add(&p.pattern)),
                ExprKind::Match { arms, .. } => arms.iter().for_each(|a| add(&a.pattern)),
                _ => {}
            }
        }
        for f in self.program.fns.iter().filter(|f| f.module == module && matches!(f.ast.result, Ret::Absent)) {
            let end = f.ast.span.hi;
            let is_shown = f.ast.body.is_some() && f.result != crate::types::TypeTable::UNIT;
            if is_shown && (from..=to).contains(&end) && !self.program.types.is_error(f.result) {
                hints.push(Hint { at: end, text: format!(" -> {}", self.show(f.result)) });
            }
        }
        hints.sort_by_key(|h| h.at);
        hints
    }
}

/// Calls `f` with each name of a pattern, and whether its type is written.
fn each_name<'p>(pattern: &'p Pattern, f: &mut dyn FnMut(&'p Name, bool)) {
    let mut work = vec![(pattern, false)];
    while let Some((pattern, typed)) = work.pop() {
        let typed = typed || pattern.ty.is_some();
        match &pattern.kind {
            PatternKind::Unnamed | PatternKind::Literal(_) => {}
            PatternKind::Name { name, .. } => f(name, typed),
            PatternKind::Tuple(parts) => work.extend(parts.iter().map(|p| (p, typed))),
            PatternKind::Option { parts, .. } => work.extend(parts.iter().flatten().map(|p| (p, typed))),
            PatternKind::Struct { fields, .. } => work.extend(fields.iter().map(|(_, p)| (p, typed))),
        }
    }
}

/// The name that an item declares in its block.
fn name_of(item: &ItemKind) -> Option<&Name> {
    Some(match item {
        ItemKind::Fn(f) => &f.name,
        ItemKind::Static(s) => &s.name,
        ItemKind::Struct(s) => &s.name,
        ItemKind::Enum(e) => &e.name,
        ItemKind::Alias(a) => &a.name,
        ItemKind::Trait(t) => &t.name,
        ItemKind::Mod(m) => &m.name,
        ItemKind::Use(u) => u.alias.as_ref().or(u.names.last()).filter(|_| !u.all)?,
        ItemKind::Extern(_) | ItemKind::Impl(_) => return None,
    })
}
