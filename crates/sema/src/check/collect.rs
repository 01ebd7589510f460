//! Declarations: the items of a program, and their types.

use super::*;
use crate::intrinsics;
use nyala_ir::lanes::{DEVICE_FUNCTION, device_function};
use nyala_syntax::ast::{ItemKind, Ret, TypeParam};

impl<'a> Checker<'a, '_> {
    /// Declares the items of all files, then determines their types.
    pub(super) fn collect_all(&mut self) {
        self.bounds.collecting = true;
        for module in 0..self.p.modules.len() {
            self.at = At { module, ns: self.namespaces.of_file(module) };
            self.declare_items(self.p.modules[module].items.iter(), true);
        }
        self.check_uses();
        for module in 0..self.p.modules.len() {
            self.at = At { module, ns: self.namespaces.of_file(module) };
            self.define_items(self.p.modules[module].items.iter(), true);
        }
        self.bounds.collecting = false;
        self.finish_impls(0, 0);
        self.check_recursive_types(0, 0);
        self.check_deferred();
    }

    pub(super) fn declare(&mut self, name: &'a Name, entity: Entity, private: bool, top_level: bool) {
        if name.is_wildcard() {
            return;
        }
        self.p.declared.insert((name.span.file, name.span.lo), entity);
        let old = self.give_meaning(name, entity, private, top_level);
        // A variable may hide another name of its block.
        let is_free = |old: &Entity| !top_level && matches!(old, Entity::Local(_));
        if let Some(old) = old.filter(|old| !is_free(old)) {
            // Uses refer to the first declaration.
            self.give_meaning(name, old, private, top_level);
            let old_span = self.entity_span(old);
            self.report(duplicate_name::item(name.span, &short(&name.text), old_span));
        }
    }

    /// Declares a name in the innermost scope, or in the module. Returns its meaning there so far.
    fn give_meaning(&mut self, name: &'a Name, entity: Entity, private: bool, top_level: bool) -> Option<Entity> {
        if !top_level && !self.scopes.is_empty() {
            return self.scopes.insert(&name.text, entity);
        }
        let names = &mut self.namespaces[self.at.ns].names;
        names.insert(&name.text, namespaces::Named { entity, private }).map(|n| n.entity)
    }

    fn entity_span(&mut self, entity: Entity) -> Option<Span> {
        Some(match entity {
            Entity::Error | Entity::Module(_) => return None,
            Entity::Type(ty) => match self.p.types.kind(ty) {
                Kind::Param(id) => self.p.type_params[id.0 as usize].span,
                _ => return None,
            },
            Entity::Local(id) => self.p.local(id).span,
            Entity::Fn(id) => self.p.fns[id.0 as usize].ast.name.span,
            Entity::Static(id) => self.p.statics[id.0 as usize].ast.name.span,
            Entity::Struct(id) => self.p.structs[id.0 as usize].ast.name.span,
            Entity::Enum(id) => self.p.enums[id.0 as usize].ast.name.span,
            Entity::Option(id, i) => self.p.enums[id.0 as usize].ast.options[i as usize].name.span,
            Entity::Alias(id) => self.aliases.all[id.0 as usize].ast.name.span,
            Entity::Trait(id) => self.p.traits[id.0 as usize].ast.name.span,
        })
    }

    /// First round: names.
    pub(super) fn declare_items(&mut self, items: impl Iterator<Item = &'a ast::Item>, top_level: bool) {
        for item in items {
            let private = item.private;
            match &item.kind {
                ItemKind::Fn(f) => {
                    let id = self.declare_fn(f, FnKind::Defined, FnOwner::None, top_level);
                    self.declare(&f.name, Entity::Fn(id), private, top_level);
                }
                ItemKind::Extern(block) => self.declare_extern(block, private, top_level),
                ItemKind::Static(s) => {
                    let id = StaticId(self.p.statics.len() as u32);
                    let (module, ns, generic) = (self.at.module, self.at.ns, !self.signature.generics.is_empty());
                    self.p.statics.push(StaticInfo {
                        ast: s,
                        module,
                        ns,
                        ty: TypeTable::ERROR,
                        generic,
                        computed: false,
                    });
                    self.declare(&s.name, Entity::Static(id), private, top_level);
                }
                ItemKind::Struct(s) => {
                    let id = StructId(self.p.structs.len() as u32);
                    let generics = self.declare_generics(&s.type_params, None);
                    self.p.structs.push(StructInfo {
                        ast: s,
                        ns: self.at.ns,
                        n_outer: self.signature.generics.len(),
                        generics,
                        fields: Vec::new(),
                        index: FxHashMap::default(),
                    });
                    self.declare(&s.name, Entity::Struct(id), private, top_level);
                }
                ItemKind::Enum(e) => {
                    let id = EnumId(self.p.enums.len() as u32);
                    let generics = self.declare_generics(&e.type_params, None);
                    let mut index: FxHashMap<&'a str, u32> = FxHashMap::default();
                    for (i, option) in e.options.iter().enumerate() {
                        if let Some(old) = index.insert(&option.name.text, i as u32) {
                            let (name, first) = (&option.name, e.options[old as usize].name.span);
                            self.report(duplicate_name::option(name.span, &short(&name.text), first));
                        }
                    }
                    let n_outer = self.signature.generics.len();
                    self.p.enums.push(EnumInfo { ast: e, generics, n_outer, options: Vec::new(), index });
                    self.declare(&e.name, Entity::Enum(id), private, top_level);
                }
                ItemKind::Alias(a) => {
                    let id = AliasId(self.aliases.all.len() as u32);
                    let generics = self.declare_generics(&a.type_params, None);
                    self.aliases.all.push(Alias {
                        ast: a,
                        module: self.at.module,
                        ns: self.at.ns,
                        top_level,
                        n_outer: self.signature.generics.len(),
                        generics,
                        state: AliasState::Fresh,
                    });
                    self.declare(&a.name, Entity::Alias(id), private, top_level);
                }
                ItemKind::Trait(t) => self.declare_trait(t, private, top_level),
                ItemKind::Impl(i) => self.declare_impl(i, top_level),
                ItemKind::Mod(m) => self.declare_mod(m, private, top_level),
                ItemKind::Use(u) => {
                    if top_level {
                        self.declare_use(u);
                    }
                }
            }
        }
    }

    fn declare_mod(&mut self, m: &'a ast::Mod, private: bool, top_level: bool) {
        let known = self.namespaces.file(self.at.ns, &m.name.text).filter(|_| top_level);
        let Some(items) = &m.items else {
            // Its file's items are entered with the file.
            return self.declare(&m.name, known.map_or(Entity::Error, Entity::Module), private, top_level);
        };
        // Modules inside of it may be files.
        let inner = known.unwrap_or_else(|| self.namespaces.add(Some(self.at.ns)));
        self.declare(&m.name, Entity::Module(inner), private, top_level);
        let old = std::mem::replace(&mut self.at.ns, inner);
        self.declare_items(items.iter(), true);
        self.at.ns = old;
    }

    fn declare_extern(&mut self, block: &'a ast::ExternBlock, private: bool, top_level: bool) {
        let convention = block.convention.as_ref().map_or("C", |c| &c.0);
        for f in &block.fns {
            let symbol = f.symbol.as_ref().map_or(&*f.name.text, |s| &s.0);
            let kind = match convention {
                "thorin" | "device" if intrinsics::is_gpu_only(symbol) => FnKind::Foreign(symbol.to_string()),
                // CUDA's compiler has functions that are in no table.
                "device" if f.type_params.is_empty() && intrinsics::is_unknown_function(symbol) => {
                    FnKind::Foreign(format!("{DEVICE_FUNCTION}{symbol}"))
                }
                "thorin" | "device" => FnKind::Intrinsic(intrinsics::find(symbol)),
                _ if symbol.starts_with("rv_") => FnKind::Intrinsic(intrinsics::find(symbol)),
                _ => FnKind::Foreign(symbol.to_string()),
            };
            let id = self.declare_fn(f, kind, FnOwner::None, top_level);
            self.declare(&f.name, Entity::Fn(id), private, top_level);
        }
        if let Some((name, span)) = &block.convention
            && !matches!(&name[..], "C" | "thorin" | "device")
        {
            let message = format!("`extern {name:?}` blocks are not supported yet");
            let hint = "there are `extern \"C\"`, `extern \"thorin\"` and `extern \"device\"`";
            self.report(limitation::error(*span, message, hint));
        }
    }

    // Type parameters.

    pub(super) fn new_type_param(&mut self, name: &str, span: Span) -> ParamId {
        self.p.type_params.push(TypeParamInfo {
            name: name.into(),
            span,
            bounds: Vec::new(),
            broken: false,
            constant: None,
        });
        ParamId(self.p.type_params.len() as u32 - 1)
    }

    /// The type parameters that an item's types may mention: those of enclosing items, `Self` of a trait, and its own.
    pub(super) fn declare_generics(&mut self, own: &'a [TypeParam], receiver: Option<Span>) -> Arc<[ParamId]> {
        if own.is_empty() && receiver.is_none() {
            return self.signature.generics.clone();
        }
        let mut all = self.signature.generics.to_vec();
        if let Some(span) = receiver {
            let id = self.new_type_param("Self", span);
            self.signature.names.insert(id, "Self");
            all.push(id);
        }
        let mut names: FxHashMap<&str, Span> = FxHashMap::default();
        for param in own {
            let (name, span): (&'a str, Span) = (&param.name.text, param.name.span);
            if let Some(first) = names.insert(name, span) {
                self.report(duplicate_name::parameter(span, &short(name), first));
            }
            let id = self.new_type_param(name, span);
            self.p.type_params[id.0 as usize].constant = param.constant.map(|ty| self.const_ty(ty));
            self.signature.names.insert(id, name);
            all.push(id);
        }
        all.into()
    }

    /// Opens a scope with these type parameters. Items declared in it have them as enclosing ones.
    pub(super) fn enter_generics(&mut self, generics: &Arc<[ParamId]>, from: usize) -> Arc<[ParamId]> {
        self.scopes.open();
        for &id in &generics[from..] {
            let ty = self.p.types.mk(Kind::Param(id));
            if let Some(name) = self.signature.names.get(&id) {
                self.scopes.insert(name, Entity::Type(ty));
            }
        }
        std::mem::replace(&mut self.signature.generics, generics.clone())
    }

    pub(super) fn leave_generics(&mut self, old: Arc<[ParamId]>) {
        self.scopes.close();
        self.signature.generics = old;
    }

    /// Sets the bounds of an item's own type parameters, which begin at index `first` of `generics`.
    pub(super) fn define_bounds(&mut self, own: &'a [TypeParam], generics: &[ParamId], first: usize) {
        for (param, id) in own.iter().zip(&generics[first..]) {
            let bounds: Vec<TraitRef> = param.bounds.iter().filter_map(|b| self.trait_ref(*b)).collect();
            let info = &mut self.p.type_params[id.0 as usize];
            info.broken = bounds.len() < param.bounds.len();
            info.bounds = bounds;
        }
    }

    pub(super) fn declare_fn(&mut self, f: &'a ast::Fn, kind: FnKind, owner: FnOwner, top_level: bool) -> FnId {
        let id = FnId(self.p.fns.len() as u32);
        let intrinsic = match &kind {
            FnKind::Foreign(symbol) => intrinsics::is_gpu_only(symbol) || device_function(symbol).is_some(),
            kind => matches!(kind, FnKind::Intrinsic(_)),
        };
        let symbol = match &f.symbol {
            Some((symbol, span)) => Some((&**symbol, *span)),
            None => f.exported.then_some((&*f.name.text, f.name.span)),
        };
        let fault = symbol.and_then(|(s, span)| bad_symbol::check(s, span, kind == FnKind::Defined));
        if let Some(fault) = fault.filter(|_| !intrinsic) {
            self.sink.push(fault);
        }
        let n_outer = self.signature.generics.len();
        let generics = self.declare_generics(&f.type_params, None);
        if let (Some(first), false) = (f.type_params.first(), intrinsic)
            && (symbol.is_some() || matches!(kind, FnKind::Foreign(_)))
        {
            let what = "functions with type parameters and a symbol";
            self.limitation(first.name.span, what, "give the symbol to a function for one type, which calls it");
        }
        self.p.fns.push(FnInfo {
            ast: f,
            module: self.at.module,
            kind,
            ty: TypeTable::ERROR,
            param_tys: Vec::new(),
            result: TypeTable::ERROR,
            never: false,
            return_local: None,
            top_level,
            ns: self.at.ns,
            generics,
            n_outer,
            owner,
        });
        self.p.declared.insert((f.name.span.file, f.name.span.lo), Entity::Fn(id));
        id
    }

    /// Second round: types.
    pub(super) fn define_items(&mut self, items: impl Iterator<Item = &'a ast::Item>, top_level: bool) {
        let (first_struct, first_enum) = (self.p.structs.len(), self.p.enums.len());
        for item in items {
            match &item.kind {
                ItemKind::Fn(f) => self.define_fn(f),
                ItemKind::Extern(block) => block.fns.iter().for_each(|f| self.define_fn(f)),
                ItemKind::Static(s) => {
                    let ty = match s.ty {
                        Some(ty) => self.value_ty(ty),
                        None => self.var(),
                    };
                    if let Some(Entity::Static(id)) = self.p.declared_at(s.name.span) {
                        self.p.statics[id.0 as usize].ty = ty;
                    }
                    if s.ty.is_none() && s.init.is_none() {
                        self.report(ambiguous_type::static_item(s.name.span, &short(&s.name.text)));
                        self.p.types.unify(ty, TypeTable::ERROR);
                    }
                }
                ItemKind::Struct(s) => self.define_struct(s),
                ItemKind::Enum(e) => self.define_enum(e),
                ItemKind::Alias(a) => {
                    if let Some(Entity::Alias(id)) = self.p.declared_at(a.name.span) {
                        self.alias(id);
                    }
                }
                ItemKind::Trait(t) => self.define_trait(t),
                ItemKind::Impl(i) => self.define_impl(i),
                ItemKind::Mod(m) => {
                    if let (Some(items), Some(Entity::Module(ns))) = (&m.items, self.p.declared_at(m.name.span)) {
                        let old = std::mem::replace(&mut self.at.ns, ns);
                        self.define_items(items.iter(), true);
                        self.at.ns = old;
                    }
                }
                ItemKind::Use(_) => {}
            }
        }
        if !top_level {
            self.check_recursive_types(first_struct, first_enum);
        }
    }

    fn define_struct(&mut self, s: &'a ast::Struct) {
        let Some(Entity::Struct(id)) = self.p.declared_at(s.name.span) else { return };
        let info = &self.p.structs[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&s.type_params, &generics, n_outer);
        for field in &s.fields {
            let ty = self.value_ty(field.ty);
            let info = &mut self.p.structs[id.0 as usize];
            let name = &field.name;
            let old = info.index.insert(&name.text, info.fields.len() as u32);
            info.fields.push((&name.text, ty));
            if let (Some(old), false) = (old, name.is_wildcard()) {
                let first = s.fields.get(old as usize).map(|f| f.name.span);
                self.report(duplicate_name::field(name.span, &short(&name.text), first));
            }
        }
        self.leave_generics(old);
    }

    fn define_enum(&mut self, e: &'a ast::Enum) {
        let Some(Entity::Enum(id)) = self.p.declared_at(e.name.span) else { return };
        let info = &self.p.enums[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&e.type_params, &generics, n_outer);
        for option in &e.options {
            let parts = option.parts.iter().map(|ty| self.value_ty(*ty)).collect();
            self.p.enums[id.0 as usize].options.push(parts);
        }
        self.leave_generics(old);
    }

    /// Reports structs and enums that contain themselves by value.
    fn check_recursive_types(&mut self, first_struct: usize, first_enum: usize) {
        /// Limit on the nesting of types by value, where type arguments change on the way.
        const MAX_DEPTH: usize = 10_000;
        let mut starts = Vec::new();
        let params = |c: &mut Self, generics: &[ParamId]| -> Arc<[Ty]> {
            generics.iter().map(|p| c.p.types.mk(Kind::Param(*p))).collect()
        };
        for id in first_struct..self.p.structs.len() {
            let args = params(self, &self.p.structs[id].generics.clone());
            starts.push(self.p.types.mk(Kind::Struct(StructId(id as u32), args)));
        }
        for id in first_enum..self.p.enums.len() {
            let args = params(self, &self.p.enums[id].generics.clone());
            starts.push(self.p.types.mk(Kind::Enum(EnumId(id as u32), args)));
        }
        // 1: on the path, 2: done.
        let mut state: FxHashMap<Ty, u8> = FxHashMap::default();
        for start in starts {
            let mut stack = vec![(start, false)];
            let mut n_open = 0;
            while let Some((ty, done)) = stack.pop() {
                if done {
                    n_open -= 1;
                    state.insert(ty, 2);
                    continue;
                }
                if state.contains_key(&ty) {
                    continue;
                }
                state.insert(ty, 1);
                n_open += 1;
                stack.push((ty, true));
                for (span, part) in self.parts_of(ty) {
                    for inner in self.named_inside(part) {
                        let on_path = state.get(&inner) == Some(&1);
                        if on_path || n_open > MAX_DEPTH {
                            let name = self.show(inner);
                            let is_enum = matches!(self.p.types.kind(inner), Kind::Enum(..));
                            let what = if is_enum { "enum" } else { "struct" };
                            self.report(recursive_type::of_value(span, what, &short(&name)));
                            self.cut(ty, part);
                        } else if !state.contains_key(&inner) {
                            stack.push((inner, false));
                        }
                    }
                }
                if n_open > MAX_DEPTH {
                    break;
                }
            }
        }
    }

    /// The types of the parts of a struct or enum, and the places of their declarations.
    fn parts_of(&mut self, ty: Ty) -> Vec<(Span, Ty)> {
        match self.p.types.kind(ty) {
            Kind::Struct(id, args) => {
                let info = &self.p.structs[id.0 as usize];
                let (generics, ast) = (info.generics.clone(), info.ast);
                let tys: Vec<Ty> = info.fields.iter().map(|f| f.1).collect();
                let tys = tys.into_iter().map(|t| self.p.types.instantiate(t, &generics, &args));
                ast.fields.iter().map(|f| f.name.span).zip(tys).collect()
            }
            Kind::Enum(id, args) => {
                let info = &self.p.enums[id.0 as usize];
                let (generics, ast, options) = (info.generics.clone(), info.ast, info.options.clone());
                let mut out = Vec::new();
                for (option, parts) in ast.options.iter().zip(options) {
                    for part in parts {
                        out.push((option.name.span, self.p.types.instantiate(part, &generics, &args)));
                    }
                }
                out
            }
            _ => Vec::new(),
        }
    }

    /// Replaces the part that makes a type infinite by an error type.
    fn cut(&mut self, ty: Ty, part: Ty) {
        let generics = match self.p.types.kind(ty) {
            Kind::Struct(id, _) => self.p.structs[id.0 as usize].generics.clone(),
            Kind::Enum(id, _) => self.p.enums[id.0 as usize].generics.clone(),
            _ => return,
        };
        let fits = |c: &mut Self, declared: Ty, args: &[Ty]| c.p.types.instantiate(declared, &generics, args) == part;
        match self.p.types.kind(ty) {
            Kind::Struct(id, args) => {
                for i in 0..self.p.structs[id.0 as usize].fields.len() {
                    if fits(self, self.p.structs[id.0 as usize].fields[i].1, &args) {
                        self.p.structs[id.0 as usize].fields[i].1 = TypeTable::ERROR;
                    }
                }
            }
            Kind::Enum(id, args) => {
                for i in 0..self.p.enums[id.0 as usize].options.len() {
                    for j in 0..self.p.enums[id.0 as usize].options[i].len() {
                        if fits(self, self.p.enums[id.0 as usize].options[i][j], &args) {
                            self.p.enums[id.0 as usize].options[i][j] = TypeTable::ERROR;
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// The structs and enums that a value of this type contains.
    fn named_inside(&mut self, ty: Ty) -> Vec<Ty> {
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            if !seen.insert(ty) {
                continue;
            }
            match self.p.types.kind(ty) {
                Kind::Struct(..) | Kind::Enum(..) => out.push(ty),
                Kind::Tuple(parts) => work.extend(parts.iter()),
                Kind::Array(t, _) => work.push(t),
                _ => {}
            }
        }
        out
    }

    pub(super) fn define_fn(&mut self, f: &'a ast::Fn) {
        let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span) else { return };
        let info = &self.p.fns[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&f.type_params, &generics, n_outer);
        let mut params = Vec::with_capacity(f.params.len());
        let outer_params = std::mem::take(&mut self.signature.params);
        for param in &f.params {
            let ty = match param.pattern.ty {
                Some(_) if f.body.is_some() && self.lacks_type(param, id) => TypeTable::ERROR,
                Some(ty) => self.value_ty(ty),
                None => TypeTable::ERROR,
            };
            self.signature.params.push((&param.pattern, ty));
            params.push(ty);
        }
        let (result, never) = match f.result {
            Ret::Never(_) => (TypeTable::NEVER, true),
            Ret::Type(ty) => (self.value_ty(ty), false),
            Ret::Absent if f.body.is_some() => (self.var(), false),
            Ret::Absent => (TypeTable::UNIT, false),
        };
        self.signature.params = outer_params;
        self.leave_generics(old);
        if let FnKind::Intrinsic(intrinsic) = &self.p.fns[id.0 as usize].kind
            && let intrinsic = intrinsic.clone()
            && let Some(expected) = intrinsics::expected_type(&intrinsic)
            && !self.fits_intrinsic(&intrinsic, &params, result)
        {
            let ty = self.p.types.func(&params, result);
            let found = self.show(ty);
            self.report(intrinsic_type::error(f.name.span, &found, &expected));
            self.p.fns[id.0 as usize].ty = TypeTable::ERROR;
            return;
        }
        let ty = self.p.types.func(&params, result);
        let info = &mut self.p.fns[id.0 as usize];
        (info.ty, info.param_tys, info.result, info.never) = (ty, params, result, never);
    }

    /// Whether an intrinsic that has its own code generation may be declared with these types.
    fn fits_intrinsic(&mut self, intrinsic: &intrinsics::Intrinsic, params: &[Ty], result: Ty) -> bool {
        use crate::intrinsics::Intrinsic::*;
        // Errors in the types have been reported already.
        if result == TypeTable::ERROR || params.contains(&TypeTable::ERROR) {
            return true;
        }
        let is_text = |types: &mut TypeTable, ty: Ty| match types.kind(ty) {
            Kind::Ptr { to, .. } => matches!(types.kind(to), Kind::Indef(e) if types.as_prim(e) == Some(Prim::U8)),
            _ => false,
        };
        let takes = |types: &mut TypeTable, body: Ty, own: &[Ty]| match types.kind(body) {
            Kind::Fn(p, r) => *p == *own && r == TypeTable::UNIT,
            _ => false,
        };
        let is_int = |c: &mut Self, ty: Ty| match c.p.types.kind(ty) {
            Kind::Prim(prim) => prim.is_int(),
            Kind::Param(param) => c.has_lang(param, &[Lang::Int]),
            _ => false,
        };
        if let (Parallel, [n, lo, hi, body]) = (intrinsic, params) {
            return takes(&mut self.p.types, *body, &[*lo])
                && is_int(self, *n)
                && is_int(self, *lo)
                && lo == hi
                && result == TypeTable::UNIT;
        }
        let types = &mut self.p.types;
        match (intrinsic, params) {
            (Spawn, [body]) => takes(types, *body, &[]) && types.as_prim(result) == Some(Prim::I32),
            (Assert, [cond]) => types.as_prim(*cond) == Some(Prim::Bool) && result == TypeTable::UNIT,
            (EnsureResidual, [text]) => is_text(types, *text) && result == TypeTable::UNIT,
            (Panic, [text]) => is_text(types, *text) && result == TypeTable::NEVER,
            (StaticAssert, [cond, text]) => {
                is_text(types, *text) && types.as_prim(*cond) == Some(Prim::Bool) && result == TypeTable::UNIT
            }
            (Machine(instruction), _) => {
                let shown: Vec<String> = params.iter().map(|&t| self.show(t)).collect();
                instruction.fits(&shown, &self.show(result))
            }
            (Expect, [value, others @ ..]) => *value == result && others.first() == Some(value),
            (MulAdd, [a, b, c]) => {
                let lane = if let Kind::Simd(lane, _) = types.kind(*a) { lane } else { *a };
                types.as_prim(lane).is_some_and(Prim::is_float) && [b, c].iter().all(|t| *t == a) && result == *a
            }
            (Sync, [handle]) => types.as_prim(*handle) == Some(Prim::I32) && result == TypeTable::UNIT,
            _ => false,
        }
    }

    /// Reports a parameter without a type: in `fn f(x)`, the name stands where a type is expected. It is reported once,
    /// together with its uses.
    fn lacks_type(&mut self, param: &'a ast::Param, function: FnId) -> bool {
        let (ast::PatternKind::Unnamed, Some(ty)) = (&param.pattern.kind, param.pattern.ty) else { return false };
        let ast::TypeKind::Path(ast::Path { names, type_args: None, root: false, .. }) = &self.ast()[ty].kind else {
            return false;
        };
        let [name] = &names[..] else { return false };
        let begins_small = name.text.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_small
            || self.names_open(name.span)
            || self.lookup(&name.text).is_some()
            || primitive(&name.text).is_some()
        {
            return false;
        }
        self.report(unknown_name::parameter(name.span, &short(&name.text)));
        self.unknown.reported.insert((Some(function), &name.text));
        true
    }
}

/// The primitive type of this name.
pub(super) fn primitive(name: &str) -> Option<Prim> {
    match name {
        "int" => Some(Prim::I32),
        "uint" => Some(Prim::U32),
        "half" => Prim::from_name("f16"),
        "float" => Some(Prim::F32),
        "double" => Some(Prim::F64),
        _ => Prim::from_name(name),
    }
}
