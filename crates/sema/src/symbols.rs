//! What editors ask of a checked program: what a name means, where it is declared and used, the type of an expression, the
//! names that are visible at a place. Separate from [`Program`], which has what lowering needs, and from the checker,
//! which only notes occurrences: the answers here are for programs with errors, too.
//!
//! All functions look through trees by place, without recursion: expressions lie in one list for each file.

mod impls;
mod scopes;

use crate::check::Modules;
use crate::program::*;
use crate::types::{Const, EnumId, Head, Kind, Names as _, StructId, TraitId, Ty};
use nyala_base::{FileId, Sources, Span};
use nyala_ir::Prim;
use nyala_syntax::ast::{ExprId, ItemKind, Module, Ret};
pub use scopes::{Call, Hint};

/// What a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    Local(LocalId),
    Fn(FnId),
    Static(StaticId),
    Struct(StructId),
    Enum(EnumId),
    /// An option of an enum.
    Option(EnumId, u32),
    /// A field of a struct.
    Field(StructId, u32),
    Alias(AliasId),
    Trait(TraitId),
    Module(NsId),
    /// A type parameter, `Self`, a primitive type.
    Type(Ty),
    /// An error that has been reported.
    Error,
}

impl Symbol {
    pub(crate) fn of(entity: Entity) -> Symbol {
        match entity {
            Entity::Error => Symbol::Error,
            Entity::Local(id) => Symbol::Local(id),
            Entity::Fn(id) => Symbol::Fn(id),
            Entity::Static(id) => Symbol::Static(id),
            Entity::Struct(id) => Symbol::Struct(id),
            Entity::Enum(id) => Symbol::Enum(id),
            Entity::Option(id, i) => Symbol::Option(id, i),
            Entity::Alias(id) => Symbol::Alias(id),
            Entity::Trait(id) => Symbol::Trait(id),
            Entity::Module(ns) => Symbol::Module(ns),
            Entity::Type(ty) => Symbol::Type(ty),
        }
    }
}

/// The kind of a symbol, as editors show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolKind {
    Function,
    Method,
    Variable,
    Static,
    Struct,
    Enum,
    EnumOption,
    Field,
    Alias,
    Trait,
    Module,
    TypeParameter,
}

/// A name in the source.
#[derive(Debug)]
pub(crate) struct Occurrence {
    span: Span,
    symbol: Symbol,
    declares: bool,
}

/// A checked program, with the places of its names.
#[derive(Clone, Copy)]
pub struct Symbols<'p> {
    program: &'p Program<'p>,
    modules: &'p Modules<'p>,
    /// All names, by place.
    names: &'p [Occurrence],
}

impl Program<'_> {
    /// The names of the program.
    pub fn symbols(&self) -> Symbols<'_> {
        let mut symbols = Symbols { program: self, modules: &self.modules_by_name, names: &[] };
        symbols.names = self.names.get_or_init(|| {
            let used = self.occurrences.iter().filter(|(_, symbol)| *symbol != Symbol::Error);
            let used = used.map(|&(span, symbol)| Occurrence { span, symbol, declares: false });
            let mut names: Vec<Occurrence> = symbols.declarations().chain(used).collect();
            names.sort_by_key(|name| (name.span, !name.declares));
            names.dedup_by_key(|name| name.span);
            names
        });
        symbols
    }
}

impl<'p> Symbols<'p> {
    fn declarations(&self) -> impl Iterator<Item = Occurrence> {
        let p = &self.program;
        let mut all: Vec<(Span, Symbol)> = Vec::new();
        for (i, local) in p.locals.iter().enumerate() {
            if local.declared != Declared::Implicit && &*local.name != "_" {
                all.push((local.span, Symbol::Local(LocalId(i as u32))));
            }
        }
        let fns = p.fns.iter().enumerate();
        all.extend(fns.map(|(i, f)| (f.ast.name.span, Symbol::Fn(FnId(i as u32)))));
        let statics = p.statics.iter().enumerate();
        all.extend(statics.map(|(i, s)| (s.ast.name.span, Symbol::Static(StaticId(i as u32)))));
        for (i, s) in p.structs.iter().enumerate() {
            let id = StructId(i as u32);
            all.push((s.ast.name.span, Symbol::Struct(id)));
            let fields = s.ast.fields.iter().enumerate();
            all.extend(fields.map(|(i, f)| (f.name.span, Symbol::Field(id, i as u32))));
        }
        for (i, e) in p.enums.iter().enumerate() {
            let id = EnumId(i as u32);
            all.push((e.ast.name.span, Symbol::Enum(id)));
            let options = e.ast.options.iter().enumerate();
            all.extend(options.map(|(i, o)| (o.name.span, Symbol::Option(id, i as u32))));
        }
        let traits = p.traits.iter().enumerate();
        all.extend(traits.map(|(i, t)| (t.ast.name.span, Symbol::Trait(TraitId(i as u32)))));
        let aliases = self.modules.aliases.iter().enumerate();
        all.extend(aliases.map(|(i, a)| (a.name.span, Symbol::Alias(AliasId(i as u32)))));
        for (span, ty) in &self.modules.params {
            all.push((*span, Symbol::Type(*ty)));
        }
        for (span, ns) in self.named_modules() {
            all.push((span, Symbol::Module(ns)));
        }
        all.into_iter().map(|(span, symbol)| Occurrence { span, symbol, declares: true })
    }

    /// The modules that `mod` declares, with the places of their names.
    fn named_modules(&self) -> Vec<(Span, NsId)> {
        let mut all = Vec::new();
        let mut work: Vec<_> = self.program.modules.iter().flat_map(|m| &m.items).collect();
        while let Some(item) = work.pop() {
            let ItemKind::Mod(m) = &item.kind else { continue };
            work.extend(m.items.iter().flatten());
            if let Some(Entity::Module(ns)) = self.program.declared_at(m.name.span) {
                all.push((m.name.span, ns));
            }
        }
        all
    }

    /// The number of the tree of a file.
    fn module(&self, file: FileId) -> Option<usize> {
        self.program.modules.iter().position(|m| m.file == Some(file))
    }

    /// The syntax tree of a file.
    pub fn tree(&self, file: FileId) -> Option<&'p Module> {
        self.module(file).map(|m| self.program.modules[m])
    }

    fn show(&self, ty: Ty) -> String {
        self.program.types.show(ty, self.program)
    }

    fn kind_of(&self, ty: Ty) -> &'p Kind {
        self.program.types.view(ty)
    }

    fn expr_ty(&self, module: usize, e: ExprId) -> Ty {
        self.program.expr_ty[self.program.global(module, e) as usize]
    }

    /// The name at a place, or that ends there, and its meaning.
    pub fn name_at(&self, file: FileId, at: u32) -> Option<(Span, Symbol)> {
        let end = self.names.partition_point(|name| (name.span.file, name.span.lo) <= (file, at));
        let name = self.names[..end].last()?;
        (name.span.file == file && at <= name.span.hi).then_some((name.span, name.symbol))
    }

    /// The symbol that stands for all that are renamed together: a method of an impl is its trait's, and variables
    /// declared at one place are one.
    fn canonical(&self, symbol: Symbol) -> Symbol {
        if let Symbol::Fn(id) = symbol {
            let f = &self.program.fns[id.0 as usize];
            if let FnOwner::Impl(owner) = f.owner
                && let Some(of) = &self.program.impls[owner.0 as usize].of
                && let Some(method) = self.program.traits[of.id.0 as usize].methods.get(&*f.ast.name.text)
            {
                return Symbol::Fn(*method);
            }
        }
        symbol
    }

    fn is_same(&self, a: Symbol, b: Symbol) -> bool {
        let (a, b) = (self.canonical(a), self.canonical(b));
        let has_place = !matches!((a, b), (Symbol::Module(_), _) | (_, Symbol::Module(_)));
        a == b || has_place && self.declaration(a).is_some_and(|place| self.declaration(b) == Some(place))
    }

    /// The place of the name in a symbol's declaration. `None` for modules that are files without a `mod`, and for
    /// what the language has.
    pub fn declaration(&self, symbol: Symbol) -> Option<Span> {
        let p = &self.program;
        Some(match symbol {
            Symbol::Local(id) => p.local(id).span,
            Symbol::Fn(id) => p.fns[id.0 as usize].ast.name.span,
            Symbol::Static(id) => p.statics[id.0 as usize].ast.name.span,
            Symbol::Struct(id) => p.structs[id.0 as usize].ast.name.span,
            Symbol::Enum(id) => p.enums[id.0 as usize].ast.name.span,
            Symbol::Option(id, i) => p.enums[id.0 as usize].ast.options.get(i as usize)?.name.span,
            Symbol::Field(id, i) => p.structs[id.0 as usize].ast.fields.get(i as usize)?.name.span,
            Symbol::Alias(id) => self.modules.aliases.get(id.0 as usize)?.name.span,
            Symbol::Trait(id) => p.traits[id.0 as usize].ast.name.span,
            Symbol::Module(ns) => {
                return self.named_modules().into_iter().find(|(_, m)| *m == ns).map(|(span, _)| span);
            }
            Symbol::Type(ty) => match self.kind_of(ty) {
                Kind::Param(id) => p.type_params[id.0 as usize].span,
                Kind::Struct(id, _) => return self.declaration(Symbol::Struct(*id)),
                Kind::Enum(id, _) => return self.declaration(Symbol::Enum(*id)),
                _ => return None,
            },
            Symbol::Error => return None,
        })
    }

    /// The first file of a module that consists of files.
    pub fn file_of_module(&self, symbol: Symbol) -> Option<FileId> {
        let Symbol::Module(ns) = symbol else { return None };
        let module = (0..self.program.modules.len()).find(|m| self.modules.namespaces.of_file(*m) == ns)?;
        self.program.modules[module].file
    }

    /// Where a symbol can be jumped to: the implementations of a trait's method are not among these places.
    pub fn definition(&self, symbol: Symbol) -> Option<Span> {
        if let Some(file) = self.file_of_module(symbol) {
            return Some(Span::new(file, 0, 0));
        }
        self.declaration(symbol)
    }

    /// All places of a symbol, its declarations included, by file and place.
    pub fn places(&self, symbol: Symbol) -> Vec<Span> {
        self.names.iter().filter(|name| self.is_same(name.symbol, symbol)).map(|name| name.span).collect()
    }

    /// The places where a symbol is declared: a trait's method, and the methods of its impls.
    pub fn declarations_of(&self, symbol: Symbol) -> Vec<Span> {
        let declared = self.names.iter().filter(|name| name.declares && self.is_same(name.symbol, symbol));
        declared.map(|name| name.span).collect()
    }

    /// The type of the innermost expression at a place.
    pub fn type_at(&self, file: FileId, at: u32) -> Option<(Span, String)> {
        let module = self.module(file)?;
        let exprs = &self.program.modules[module].exprs;
        let inside = exprs.iter().enumerate().filter(|(_, e)| e.span.file == file && e.span.lo <= at && at < e.span.hi);
        let (i, e) = inside.min_by_key(|(_, e)| e.span.hi - e.span.lo)?;
        let ty = self.expr_ty(module, ExprId(i as u32));
        (!self.program.types.is_error(ty)).then(|| (e.span, self.show(ty)))
    }

    /// The numbers that the value of an expression consists of, each with what selects it: `.x`, `(2)`. `None` if it is not known, has
    /// other parts than numbers that the place may name, or has more than `limit`.
    pub fn numbers_in(&self, file: FileId, e: ExprId, limit: usize) -> Option<Vec<(String, Prim)>> {
        let mut found = Vec::new();
        let mut work = vec![(String::new(), self.expr_ty(self.module(file)?, e))];
        while let Some((path, ty)) = work.pop() {
            let n = work.len();
            match self.kind_of(ty) {
                Kind::Prim(prim) => found.push((path, *prim)),
                Kind::Tuple(parts) if !parts.is_empty() => {
                    work.extend(parts.iter().enumerate().map(|(i, &part)| (format!("{path}({i})"), part)));
                }
                Kind::Array(part, length) => {
                    let Kind::Const(Const::Int(length)) = self.kind_of(*length) else { return None };
                    let length = usize::try_from(*length).ok().filter(|&length| length <= limit)?;
                    work.extend((0..length).map(|i| (format!("{path}({i})"), *part)));
                }
                Kind::Struct(id, args) => {
                    let of = &self.program.structs[id.0 as usize];
                    for (&(name, ty), field) in of.fields.iter().zip(&of.ast.fields) {
                        if field.private {
                            return None;
                        }
                        let own = match self.kind_of(ty) {
                            Kind::Param(param) => *args.get(of.generics.iter().position(|g| g == param)?)?,
                            _ => ty,
                        };
                        work.push((format!("{path}.{name}"), own));
                    }
                }
                _ => return None,
            }
            work[n..].reverse();
            if found.len() + work.len() > limit {
                return None;
            }
        }
        Some(found)
    }

    /// The kind of a symbol.
    pub fn kind(&self, symbol: Symbol) -> SymbolKind {
        match symbol {
            Symbol::Local(_) => SymbolKind::Variable,
            Symbol::Fn(id) if self.program.fns[id.0 as usize].owner != FnOwner::None => SymbolKind::Method,
            Symbol::Fn(_) => SymbolKind::Function,
            Symbol::Static(_) => SymbolKind::Static,
            Symbol::Struct(_) => SymbolKind::Struct,
            Symbol::Enum(_) => SymbolKind::Enum,
            Symbol::Option(..) => SymbolKind::EnumOption,
            Symbol::Field(..) => SymbolKind::Field,
            Symbol::Alias(_) => SymbolKind::Alias,
            Symbol::Trait(_) => SymbolKind::Trait,
            Symbol::Module(_) => SymbolKind::Module,
            Symbol::Type(_) | Symbol::Error => SymbolKind::TypeParameter,
        }
    }

    /// The declaration of a symbol in a line, or a few for structs and enums, with all types.
    pub fn describe(&self, symbol: Symbol, sources: &Sources) -> String {
        let p = &self.program;
        match symbol {
            Symbol::Local(id) => {
                let local = p.local(id);
                let mutable = if local.mutable { "mut " } else { "" };
                let keyword = if local.declared == Declared::Let { "let " } else { "" };
                format!("{keyword}{mutable}{}: {}", local.name, self.show(local.ty))
            }
            Symbol::Fn(id) => {
                let f = &p.fns[id.0 as usize];
                let text = sources.text(f.ast.span.file);
                let head = text.get(f.ast.span.lo as usize..f.ast.span.hi as usize).unwrap_or_default();
                let mut head = head.split_whitespace().collect::<Vec<_>>().join(" ");
                if f.ast.exported && !head.starts_with("extern") {
                    head.insert_str(0, "extern ");
                }
                if matches!(f.ast.result, Ret::Absent) {
                    head += &format!(" -> {}", self.show(f.result));
                }
                head
            }
            Symbol::Static(id) => {
                let s = &p.statics[id.0 as usize];
                let mutable = if s.ast.mutable { "mut " } else { "" };
                format!("static {mutable}{}: {}", s.ast.name.text, self.show(s.ty))
            }
            Symbol::Struct(id) => {
                let s = &p.structs[id.0 as usize];
                let fields: Vec<String> =
                    s.fields.iter().map(|(name, ty)| format!("    {name}: {},\n", self.show(*ty))).collect();
                format!("struct {}{} {{\n{}}}", s.ast.name.text, self.generics(&s.generics, s.n_outer), fields.concat())
            }
            Symbol::Enum(id) => {
                let e = &p.enums[id.0 as usize];
                let options = (0..e.ast.options.len()).map(|i| format!("    {},\n", self.option(id, i as u32)));
                let options: String = options.collect();
                format!("enum {}{} {{\n{options}}}", e.ast.name.text, self.generics(&e.generics, e.n_outer))
            }
            Symbol::Option(id, i) => {
                format!("{}::{}", p.enums[id.0 as usize].ast.name.text, self.option(id, i))
            }
            Symbol::Field(id, i) => match p.structs[id.0 as usize].fields.get(i as usize) {
                Some((name, ty)) => format!("{name}: {}", self.show(*ty)),
                None => String::new(),
            },
            Symbol::Alias(id) => match self.modules.aliases.get(id.0 as usize) {
                Some(alias) => {
                    let file = alias.name.span.file;
                    let ty = self.tree(file).map(|m| m[alias.ty].span).unwrap_or_default();
                    let ty = sources.text(file).get(ty.lo as usize..ty.hi as usize).unwrap_or_default();
                    format!("type {} = {ty}", alias.name.text)
                }
                None => String::new(),
            },
            Symbol::Trait(id) => {
                let t = &p.traits[id.0 as usize];
                format!("trait {}{}", t.ast.name.text, self.generics(&t.generics, t.n_outer + 1))
            }
            Symbol::Module(ns) => format!("mod {}", self.modules.namespaces.name(ns)),
            Symbol::Type(ty) => match self.kind_of(ty) {
                Kind::Param(id) => {
                    let info = &p.type_params[id.0 as usize];
                    match info.constant {
                        Some(prim) => format!("const {}: {}", info.name, prim.name()),
                        None => {
                            let bounds: Vec<String> = info.bounds.iter().map(|b| p.trait_name(b.id)).collect();
                            let bounds =
                                if bounds.is_empty() { String::new() } else { format!(": {}", bounds.join(" + ")) };
                            format!("{}{bounds}", info.name)
                        }
                    }
                }
                _ => format!("type {}", self.show(ty)),
            },
            Symbol::Error => String::new(),
        }
    }

    fn generics(&self, generics: &[crate::types::ParamId], first: usize) -> String {
        let own = generics.get(first..).unwrap_or_default();
        let names: Vec<&str> = own.iter().map(|p| &*self.program.type_params[p.0 as usize].name).collect();
        if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) }
    }

    fn option(&self, id: EnumId, i: u32) -> String {
        let e = &self.program.enums[id.0 as usize];
        let name = e.ast.options.get(i as usize).map_or("", |o| &o.name.text);
        let parts: Vec<String> = e.options.get(i as usize).into_iter().flatten().map(|ty| self.show(*ty)).collect();
        if parts.is_empty() { name.into() } else { format!("{name}({})", parts.join(", ")) }
    }

    /// The name that a symbol is declared with.
    pub fn name(&self, symbol: Symbol, sources: &Sources) -> String {
        match (symbol, self.declaration(symbol)) {
            (Symbol::Module(ns), _) => self.modules.namespaces.name(ns),
            (_, Some(span)) => {
                sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default().into()
            }
            _ => String::new(),
        }
    }
}
