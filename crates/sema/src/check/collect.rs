//! Declarations: which items there are, what their types are.

use super::*;
use crate::intrinsics;
use nyala_syntax::ast::{ExprKind, ItemKind, Ret, TypeId, TypeKind, TypeParam};

/// So many aliases may follow each other.
const MAX_CHAIN: u32 = 10_000;

impl<'a> Checker<'a, '_> {
    /// Enters the items of all files, then their types.
    pub(super) fn collect_all(&mut self) {
        for module in 0..self.p.modules.len() {
            self.module = module;
            self.declare_items(self.p.modules[module].items.iter(), true);
        }
        for module in 0..self.p.modules.len() {
            self.module = module;
            self.define_items(self.p.modules[module].items.iter(), true);
        }
        self.check_recursive_structs(0);
    }

    fn declare(&mut self, name: &'a Name, entity: Entity, top_level: bool) {
        if name.is_wildcard() {
            return;
        }
        self.p.declared.insert((name.span.file, name.span.lo), entity);
        let level = self.level();
        let scope = match self.scopes.last_mut() {
            Some(scope) if !top_level => scope,
            _ => &mut self.globals[level],
        };
        if let Some(old) = scope.insert(&name.text, entity)
            && (top_level || !matches!(old, Entity::Local(_)))
        {
            let old_span = self.entity_span(old);
            self.report(duplicate_name::item(name.span, &short(&name.text), old_span));
        }
    }

    fn entity_span(&self, entity: Entity) -> Option<Span> {
        Some(match entity {
            Entity::Error | Entity::TypeParam(_) => return None,
            Entity::Local(id) => self.p.local(id).span,
            Entity::Fn(id) => self.p.fns[id.0 as usize].ast.name.span,
            Entity::Static(id) => self.p.statics[id.0 as usize].ast.name.span,
            Entity::Struct(id) => self.p.structs[id.0 as usize].ast.name.span,
            Entity::Alias(id) => self.aliases[id.0 as usize].ast.name.span,
        })
    }

    /// First round: names.
    pub(super) fn declare_items(&mut self, items: impl Iterator<Item = &'a ast::Item>, top_level: bool) {
        for item in items {
            match &item.kind {
                ItemKind::Fn(f) => self.declare_fn(f, FnKind::Defined, top_level),
                ItemKind::Extern(block) => {
                    let convention = block.convention.as_ref().map_or("C", |c| &c.0);
                    for f in &block.fns {
                        let symbol = f.symbol.as_ref().map_or(&*f.name.text, |s| &s.0);
                        let kind = match convention {
                            "thorin" | "device" => FnKind::Intrinsic(intrinsics::find(symbol)),
                            _ => FnKind::Foreign(symbol.to_string()),
                        };
                        self.declare_fn(f, kind, top_level);
                    }
                    if let Some((name, span)) = &block.convention
                        && !matches!(&name[..], "C" | "thorin" | "device")
                    {
                        let message = format!("`extern {name:?}` blocks are not supported yet");
                        let hint = "there are `extern \"C\"`, `extern \"thorin\"` and `extern \"device\"`";
                        self.report(limitation::error(*span, message, hint));
                    }
                }
                ItemKind::Static(s) => {
                    let id = StaticId(self.p.statics.len() as u32);
                    self.p.statics.push(StaticInfo { ast: s, module: self.module, ty: TypeTable::ERROR });
                    self.declare(&s.name, Entity::Static(id), top_level);
                }
                ItemKind::Struct(s) => {
                    let id = StructId(self.p.structs.len() as u32);
                    let rejected = self.reject_type_params(&s.type_params);
                    self.p.structs.push(StructInfo {
                        ast: s,
                        fields: Vec::new(),
                        index: FxHashMap::default(),
                        rejected,
                    });
                    self.declare(&s.name, if rejected { Entity::Error } else { Entity::Struct(id) }, top_level);
                    // Errors or not, its fields are looked at.
                    self.p.declared.insert((s.name.span.file, s.name.span.lo), Entity::Struct(id));
                }
                ItemKind::Alias(a) => {
                    let id = AliasId(self.aliases.len() as u32);
                    let rejected = self.reject_type_params(&a.type_params);
                    let state = if rejected { AliasState::Done(TypeTable::ERROR) } else { AliasState::Fresh };
                    self.aliases.push(Alias { ast: a, module: self.module, top_level, state });
                    self.declare(&a.name, Entity::Alias(id), top_level);
                }
                ItemKind::Use(u) => {
                    if !u.all || u.root {
                        let what = "`use` items other than `use library::*;`";
                        self.limitation(item.span, what, "write `use library::*;`");
                    }
                }
                ItemKind::Enum(e) => {
                    self.limitation(item.span, "enums", "number the options, `static option_a = 0;`, and compare");
                    self.declare(&e.name, Entity::Error, top_level);
                }
                ItemKind::Trait(t) => {
                    self.limitation(item.span, "traits", "pass the functions as parameters, or in a struct");
                    self.declare(&t.name, Entity::Error, top_level);
                }
                ItemKind::Impl(_) => {
                    let hint = "write a function whose first parameter is the receiver";
                    self.limitation(item.span, "impls", hint);
                }
                ItemKind::Mod(m) if m.items.is_none() => {}
                ItemKind::Mod(m) => {
                    let hint = "give several files to the compiler: they form one program";
                    self.limitation(item.span, "modules", hint);
                    self.declare(&m.name, Entity::Error, top_level);
                }
            }
        }
    }

    fn reject_type_params(&mut self, params: &[TypeParam]) -> bool {
        if let Some(first) = params.first() {
            self.limitation(first.name.span, "type parameters", "write it once for each type");
        }
        !params.is_empty()
    }

    fn declare_fn(&mut self, f: &'a ast::Fn, kind: FnKind, top_level: bool) {
        let id = FnId(self.p.fns.len() as u32);
        let generic_ok = matches!(kind, FnKind::Intrinsic(_));
        let rejected = !generic_ok && self.reject_type_params(&f.type_params);
        let symbol = match &f.symbol {
            Some((symbol, span)) => Some((&**symbol, *span)),
            None => f.exported.then_some((&*f.name.text, f.name.span)),
        };
        let fault = symbol.and_then(|(s, span)| bad_symbol::check(s, span, kind == FnKind::Defined));
        if let Some(fault) = fault.filter(|_| !generic_ok) {
            self.sink.push(fault);
        }
        self.p.fns.push(FnInfo {
            ast: f,
            module: self.module,
            kind,
            ty: TypeTable::ERROR,
            param_tys: Vec::new(),
            result: TypeTable::ERROR,
            never: false,
            return_local: None,
            top_level,
            n_type_params: if generic_ok { f.type_params.len() } else { 0 },
            rejected,
        });
        if let (false, Some(parent)) = (top_level, self.ctx.function) {
            self.parents.insert(id, parent);
        }
        self.declare(&f.name, if rejected { Entity::Error } else { Entity::Fn(id) }, top_level);
        self.p.declared.insert((f.name.span.file, f.name.span.lo), Entity::Fn(id));
    }

    /// Second round: types.
    pub(super) fn define_items(&mut self, items: impl Iterator<Item = &'a ast::Item>, top_level: bool) {
        let first_struct = self.p.structs.len();
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
                ItemKind::Alias(a) => {
                    if let Some(Entity::Alias(id)) = self.p.declared_at(a.name.span) {
                        self.alias(id);
                    }
                }
                _ => {}
            }
        }
        if !top_level {
            self.check_recursive_structs(first_struct.min(self.p.structs.len()));
        }
    }

    fn define_struct(&mut self, s: &'a ast::Struct) {
        let Some(Entity::Struct(id)) = self.p.declared_at(s.name.span) else { return };
        if self.p.structs[id.0 as usize].rejected {
            return;
        }
        for ast::Field { name, ty, .. } in &s.fields {
            let ty = self.value_ty(*ty);
            let info = &mut self.p.structs[id.0 as usize];
            let old = info.index.insert(&name.text, info.fields.len() as u32);
            info.fields.push((&name.text, ty));
            if let (Some(old), false) = (old, name.is_wildcard()) {
                let first = s.fields.get(old as usize).map(|f| f.name.span);
                self.report(duplicate_name::field(name.span, &short(&name.text), first));
            }
        }
    }

    /// Structs that contain themselves by value.
    fn check_recursive_structs(&mut self, first: usize) {
        // 0: not seen, 1: on the path, 2: done.
        let n = self.p.structs.len();
        let mut state: FxHashMap<u32, u8> = FxHashMap::default();
        for start in first..n {
            let mut stack = vec![(start as u32, false)];
            while let Some((id, done)) = stack.pop() {
                if done {
                    state.insert(id, 2);
                    continue;
                }
                if state.contains_key(&id) {
                    continue;
                }
                state.insert(id, 1);
                stack.push((id, true));
                let fields = self.p.structs[id as usize].fields.clone();
                for (i, (_, ty)) in fields.iter().enumerate() {
                    for inner in self.structs_inside(*ty) {
                        match state.get(&inner.0) {
                            Some(1) => {
                                let ast = self.p.structs[id as usize].ast;
                                let span = ast.fields.get(i).map_or(ast.name.span, |f| f.name.span);
                                let name = short(&self.p.structs[inner.0 as usize].ast.name.text);
                                self.report(recursive_type::of_struct(span, &name));
                                self.p.structs[id as usize].fields[i].1 = TypeTable::ERROR;
                            }
                            Some(_) => {}
                            None => stack.push((inner.0, false)),
                        }
                    }
                }
            }
        }
    }

    fn structs_inside(&mut self, ty: Ty) -> Vec<StructId> {
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            if !seen.insert(ty) {
                continue;
            }
            match self.p.types.kind(ty) {
                Kind::Struct(id) => out.push(id),
                Kind::Tuple(parts) => work.extend(parts.iter()),
                Kind::Array(t, _) => work.push(t),
                _ => {}
            }
        }
        out
    }

    fn define_fn(&mut self, f: &'a ast::Fn) {
        let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span) else { return };
        let intrinsic = matches!(self.p.fns[id.0 as usize].kind, FnKind::Intrinsic(_));
        if self.p.fns[id.0 as usize].rejected {
            return;
        }
        self.scopes.push(FxHashMap::default());
        if intrinsic && let Some(scope) = self.scopes.last_mut() {
            for (i, param) in f.type_params.iter().enumerate() {
                scope.insert(&param.name.text, Entity::TypeParam(i as u32));
            }
        }
        let mut params = Vec::with_capacity(f.params.len());
        for param in &f.params {
            let ty = match param.pattern.ty {
                Some(_) if f.body.is_some() && self.lacks_type(param, id) => TypeTable::ERROR,
                Some(ty) => self.value_ty(ty),
                None => TypeTable::ERROR,
            };
            params.push(ty);
        }
        let (result, never) = match f.result {
            Ret::Never(_) => (TypeTable::NEVER, true),
            Ret::Type(ty) => (self.value_ty(ty), false),
            Ret::Absent if f.body.is_some() => (self.var(), false),
            Ret::Absent => (TypeTable::UNIT, false),
        };
        self.scopes.pop();
        if let FnKind::Intrinsic(intrinsic) = &self.p.fns[id.0 as usize].kind
            && let Some(expected) = intrinsics::expected_type(intrinsic)
            && !self.fits_intrinsic(&intrinsic.clone(), &params, result)
        {
            let ty = self.p.types.func(&params, result);
            let found = self.show(ty);
            self.report(intrinsic_type::error(f.name.span, &found, expected));
            self.p.fns[id.0 as usize].ty = TypeTable::ERROR;
            return;
        }
        let ty = self.p.types.func(&params, result);
        let info = &mut self.p.fns[id.0 as usize];
        (info.ty, info.param_tys, info.result, info.never) = (ty, params, result, never);
    }

    /// Whether an intrinsic that makes code of its own can be declared so.
    fn fits_intrinsic(&mut self, intrinsic: &intrinsics::Intrinsic, params: &[Ty], result: Ty) -> bool {
        use crate::intrinsics::Intrinsic::*;
        // Errors elsewhere are reported there.
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
        let types = &mut self.p.types;
        match (intrinsic, params) {
            (Parallel, [n, lo, hi, body]) => {
                takes(types, *body, &[*lo])
                    && [n, lo].into_iter().all(|&t| types.as_prim(t).is_some_and(Prim::is_int))
                    && lo == hi
                    && result == TypeTable::UNIT
            }
            (Spawn, [body]) => takes(types, *body, &[]) && types.as_prim(result) == Some(Prim::I32),
            (Assert, [cond]) => types.as_prim(*cond) == Some(Prim::Bool) && result == TypeTable::UNIT,
            (Panic, [text]) => is_text(types, *text) && result == TypeTable::NEVER,
            (StaticAssert, [cond, text]) => {
                is_text(types, *text) && types.as_prim(*cond) == Some(Prim::Bool) && result == TypeTable::UNIT
            }
            (Sync, [handle]) => types.as_prim(*handle) == Some(Prim::I32) && result == TypeTable::UNIT,
            _ => false,
        }
    }

    /// `fn f(x)`: the name of a parameter, where its type stands alone; this is reported once for its uses, too.
    fn lacks_type(&mut self, param: &'a ast::Param, function: FnId) -> bool {
        let (ast::PatternKind::Unnamed, Some(ty)) = (&param.pattern.kind, param.pattern.ty) else { return false };
        let TypeKind::Path(ast::Path { names, type_args: None, .. }) = &self.ast()[ty].kind else { return false };
        let [name] = &names[..] else { return false };
        let begins_small = name.text.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_small || self.open_names || self.lookup(&name.text).is_some() || primitive(&name.text).is_some() {
            return false;
        }
        self.report(unknown_name::parameter(name.span, &short(&name.text)));
        self.reported_names.insert((Some(function), &name.text));
        true
    }

    // Types as written.

    /// A type of values: no indefinite array.
    pub(super) fn value_ty(&mut self, id: TypeId) -> Ty {
        let ty = self.ty(id);
        self.sized(ty, self.ast()[id].span)
    }

    fn sized(&mut self, ty: Ty, span: Span) -> Ty {
        if let Kind::Indef(_) = self.p.types.kind(ty) {
            let found = self.show(ty);
            self.report(indefinite_array::error(span, &found));
            return TypeTable::ERROR;
        }
        ty
    }

    pub(super) fn ty(&mut self, id: TypeId) -> Ty {
        let node = &self.ast()[id];
        let span = node.span;
        let ty = match &node.kind {
            TypeKind::Error => TypeTable::ERROR,
            TypeKind::Path(path) => self.path_ty(path),
            TypeKind::Tuple(parts) => {
                let parts: Vec<Ty> = parts.iter().map(|p| self.value_ty(*p)).collect();
                self.p.types.tuple(&parts)
            }
            TypeKind::Array(elem, n) => {
                let elem = self.value_ty(*elem);
                match self.length(*n) {
                    Some(n) => self.p.types.mk(Kind::Array(elem, n)),
                    None => TypeTable::ERROR,
                }
            }
            TypeKind::Indefinite(elem) => {
                let elem = self.value_ty(*elem);
                self.p.types.mk(Kind::Indef(elem))
            }
            TypeKind::Pointer { mutable, space, to } => {
                let to = self.ty(*to);
                if let Some(space) = space
                    && space.text != "0"
                {
                    self.limitation(space.span, "address spaces", "leave it out: memory of the CPU is in space 0");
                    return TypeTable::ERROR;
                }
                self.p.types.ptr(*mutable, to)
            }
            TypeKind::Owned(_) => {
                self.limitation(span, "owned pointers", "use a `&mut` pointer");
                TypeTable::ERROR
            }
            TypeKind::Simd(..) => {
                self.limitation(span, "`simd` types", "use an array, `[T * n]`");
                TypeTable::ERROR
            }
            TypeKind::Typeof(_) => {
                self.limitation(span, "`typeof` types", "name the type");
                TypeTable::ERROR
            }
            TypeKind::Fn { type_params, params, result } => {
                if let Some(first) = type_params.first() {
                    self.limitation(first.name.span, "generic function types", "write one for each type");
                    return TypeTable::ERROR;
                }
                let params: Vec<Ty> = params.iter().map(|p| self.value_ty(*p)).collect();
                let result = match result {
                    Ret::Absent | Ret::Never(_) => TypeTable::NEVER,
                    Ret::Type(ty) => self.value_ty(*ty),
                };
                self.p.types.func(&params, result)
            }
        };
        self.check_depth(span);
        ty
    }

    pub(super) fn check_depth(&mut self, span: Span) {
        if std::mem::take(&mut self.p.types.too_deep) {
            self.report(type_too_deep::error(span));
        }
    }

    fn path_ty(&mut self, path: &'a ast::Path) -> Ty {
        let name = &path.names[0];
        // Only other types hide the primitive ones.
        let hidden = matches!(
            self.lookup(&name.text),
            Some(Entity::Error | Entity::Struct(_) | Entity::Alias(_) | Entity::TypeParam(_))
        );
        if path.names.len() == 1 && !hidden {
            let prim = match &*name.text {
                "f16" | "half" => {
                    self.report(limitation::error(name.span, "`f16` is not supported yet", "use `f32`"));
                    return TypeTable::ERROR;
                }
                text => primitive(text),
            };
            if let Some(prim) = prim {
                return self.prim(prim);
            }
        }
        let entity = self.resolve(name, true);
        if path.names.len() > 1 {
            if entity != Entity::Error {
                self.limitation(path.span, "paths with `::`", "name the type itself: all files share one scope");
            }
            return TypeTable::ERROR;
        }
        if let (Some(_), false) = (&path.type_args, entity == Entity::Error) {
            self.limitation(path.span, "type arguments", "write a struct for each type");
            return TypeTable::ERROR;
        }
        match entity {
            Entity::Error => TypeTable::ERROR,
            Entity::Struct(id) => self.p.types.mk(Kind::Struct(id)),
            Entity::Alias(id) => self.alias(id),
            Entity::TypeParam(i) => self.p.types.mk(Kind::Param(i)),
            Entity::Local(_) | Entity::Fn(_) | Entity::Static(_) => {
                let what = match entity {
                    Entity::Local(_) => "a variable",
                    Entity::Fn(_) => "a function",
                    _ => "a static",
                };
                self.report(not_a_type::error(name.span, &short(&name.text), what));
                TypeTable::ERROR
            }
        }
    }

    pub(super) fn alias(&mut self, id: AliasId) -> Ty {
        let alias = &mut self.aliases[id.0 as usize];
        match alias.state {
            AliasState::Done(ty) => ty,
            AliasState::Busy => {
                let name = &alias.ast.name;
                alias.state = AliasState::Done(TypeTable::ERROR);
                self.report(recursive_type::alias(name.span, &short(&name.text)));
                TypeTable::ERROR
            }
            AliasState::Fresh if self.alias_depth > MAX_CHAIN => {
                alias.state = AliasState::Done(TypeTable::ERROR);
                let span = alias.ast.name.span;
                self.report(type_too_deep::aliases(span, MAX_CHAIN));
                TypeTable::ERROR
            }
            AliasState::Fresh => {
                alias.state = AliasState::Busy;
                self.alias_depth += 1;
                let (ast, module, top_level) = (alias.ast, alias.module, alias.top_level);
                let old_module = std::mem::replace(&mut self.module, module);
                let scopes = if top_level { std::mem::take(&mut self.scopes) } else { Vec::new() };
                let ty = self.ty(ast.ty);
                if top_level {
                    self.scopes = scopes;
                }
                self.module = old_module;
                self.alias_depth -= 1;
                let alias = &mut self.aliases[id.0 as usize];
                if let AliasState::Done(ty) = alias.state {
                    return ty;
                }
                alias.state = AliasState::Done(ty);
                ty
            }
        }
    }

    // Lengths of arrays.

    /// The value of a length, an integer literal or static.
    pub(super) fn length(&mut self, e: ExprId) -> Option<u64> {
        let span = self.ast()[e].span;
        match self.const_int(e, 0) {
            Some(n) if (0..1 << 40).contains(&n) => {
                let g = self.g(e);
                self.p.array_len.insert(g, n as u64);
                Some(n as u64)
            }
            None if matches!(self.ast()[e].kind, ExprKind::Error) => None,
            _ => {
                self.report(bad_array_length::error(span));
                None
            }
        }
    }

    fn const_int(&mut self, e: ExprId, depth: u32) -> Option<i128> {
        if depth > 500 {
            return None;
        }
        use ast::BinaryOp::*;
        match &self.ast()[e].kind {
            ExprKind::Int { value, .. } => i128::try_from(*value).ok(),
            ExprKind::Unary(ast::UnaryOp::Neg, e) => self.const_int(*e, depth + 1).map(|n| -n),
            ExprKind::Cast(e, _) => self.const_int(*e, depth + 1),
            ExprKind::Binary { op, lhs, rhs, .. } => {
                let (a, b) = (self.const_int(*lhs, depth + 1)?, self.const_int(*rhs, depth + 1)?);
                match op {
                    Add => a.checked_add(b),
                    Sub => a.checked_sub(b),
                    Mul => a.checked_mul(b),
                    Div => a.checked_div(b),
                    Rem => a.checked_rem(b),
                    Shl => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
                    Shr => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
                    _ => None,
                }
            }
            ExprKind::Path(path) if path.names.len() == 1 => match self.lookup(&path.names[0].text)? {
                Entity::Static(id) => {
                    let (ast, module) = (self.p.statics[id.0 as usize].ast, self.p.statics[id.0 as usize].module);
                    if ast.mutable {
                        return None;
                    }
                    let old = std::mem::replace(&mut self.module, module);
                    let value = ast.init.and_then(|init| self.const_int(init, depth + 1));
                    self.module = old;
                    value
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn primitive(name: &str) -> Option<Prim> {
    match name {
        "int" => Some(Prim::I32),
        "uint" => Some(Prim::U32),
        "float" => Some(Prim::F32),
        "double" => Some(Prim::F64),
        _ => Prim::from_name(name),
    }
}
