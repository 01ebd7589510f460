//! Methods: resolves `x.m`, `T::m` and `Trait::m`, and makes the receiver the first argument. Inherent methods have
//! precedence over those of traits. Pointers are followed one by one until a method is found.

use super::*;
use nyala_syntax::ast::{ExprKind, TypeId};

/// The inherent methods with one name, by the head of their type.
pub(super) type MethodsByHead = FxHashMap<Head, Vec<(ImplId, FnId)>>;

/// A function that `x.m` may mean.
#[derive(Clone, Copy)]
pub(super) enum Method {
    Inherent(ImplId, FnId),
    Trait(TraitId, FnId),
}

/// Methods by their names, and impls by their places.
#[derive(Default)]
pub(super) struct Impls<'a> {
    pub of_traits: FxHashMap<&'a str, Vec<(TraitId, FnId)>>,
    /// Methods of impls without a trait.
    pub inherent: FxHashMap<&'a str, MethodsByHead>,
    pub at: FxHashMap<(nyala_base::FileId, u32), ImplId>,
}

impl<'a> Impls<'a> {
    /// Inherent methods of this name that types with this head may have.
    pub fn inherent(&self, name: &str, head: Head) -> Vec<(ImplId, FnId)> {
        let Some(all) = self.inherent.get(name) else { return Vec::new() };
        let mut out: Vec<(ImplId, FnId)> = match head {
            Head::Any => all.values().flatten().copied().collect(),
            _ => [head, Head::Any].iter().filter_map(|h| all.get(h)).flatten().copied().collect(),
        };
        out.sort_unstable();
        out
    }

    /// The names of all methods, in alphabetical order. A name may be there twice.
    fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&'a str> = self.inherent.keys().chain(self.of_traits.keys()).copied().collect();
        names.sort_unstable();
        names
    }
}

impl<'a> Checker<'a, '_> {
    /// The methods with this name that a type has, without following pointers.
    fn methods_of(&mut self, ty: Ty, name: &str) -> Vec<Method> {
        let head = self.p.types.head(ty);
        let mut inherent = self.impls.inherent(name, head);
        inherent.retain(|(id, _)| self.fits(*id, ty, None));
        if !inherent.is_empty() {
            return inherent.into_iter().map(|(id, f)| Method::Inherent(id, f)).collect();
        }
        let mut of_traits = self.impls.of_traits.get(name).cloned().unwrap_or_default();
        of_traits.retain(|(id, _)| self.implements(ty, *id));
        // A trait of the program may name a method like the prelude's of an operator.
        let is_operator = |c: &Self, id: TraitId| c.p.traits[id.0 as usize].operator.is_some();
        if of_traits.iter().any(|(id, _)| !is_operator(self, *id)) {
            of_traits.retain(|(id, _)| !is_operator(self, *id));
        }
        of_traits.into_iter().map(|(id, f)| Method::Trait(id, f)).collect()
    }

    /// The access that a method needs to its receiver, if it takes the receiver's address.
    fn by_address(&mut self, method: Method) -> Option<Access> {
        let (this, f) = match method {
            Method::Inherent(id, f) => (self.p.impls[id.0 as usize].ty, f),
            Method::Trait(id, f) => {
                let this = self.p.traits[id.0 as usize].self_param();
                (self.p.types.mk(Kind::Param(this)), f)
            }
        };
        let Kind::Fn(params, _) = self.p.types.kind(self.p.fns[f.0 as usize].ty) else { return None };
        let first = *params.first()?;
        match self.p.types.kind(first) {
            Kind::Ptr { access, to, .. } if to == this => Some(access),
            _ => None,
        }
    }

    fn implements(&mut self, ty: Ty, id: TraitId) -> bool {
        if let Kind::Param(param) = self.p.types.kind(ty)
            && self.bounds_of(param).iter().any(|b| b.id == id)
        {
            return true;
        }
        if let Some(operator) = self.p.traits[id.0 as usize].operator
            && self.has_operator(ty, operator)
        {
            return true;
        }
        let impls = self.p.impls_for(id, self.p.types.head(ty));
        impls.into_iter().any(|id| self.fits(id, ty, None))
    }

    /// Resolves `x.m` at the field expression `e`, with `x` of type `base`. `result` is the type of the function that
    /// takes the arguments after the receiver.
    pub(super) fn method(&mut self, e: GlobalExpr, base: Ty, name: Name, result: Ty, from: Asker) {
        let target = self.through_pointers(base);
        if let Kind::Struct(id, _) = self.p.types.kind(target)
            && self.p.structs[id.0 as usize].index.contains_key(&*name.text)
        {
            return self.field_of(e, name.span, base, name, result, from);
        }
        let mut ty = self.p.types.shallow(base);
        let mut derefs = 0;
        let found = loop {
            let kind = self.p.types.kind(ty);
            match kind {
                Kind::Var(var) if self.p.types.class(var) == Class::Any => {
                    return self.wait(var, Pending::Method { e, base, name, result, from });
                }
                Kind::Error | Kind::Never => {
                    self.p.types.unify(result, TypeTable::ERROR);
                    return;
                }
                _ => {}
            }
            let found = self.methods_of(ty, &name.text);
            if let (Kind::Var(var), true) = (&kind, found.len() > 1) {
                return self.wait(*var, Pending::Method { e, base, name, result, from });
            }
            if let (Kind::Array(elem, _), true) = (&kind, found.is_empty()) {
                // Methods of `[T]` that take an address have that of the array.
                let indefinite = self.p.types.mk(Kind::Indef(*elem));
                let mut found = self.methods_of(indefinite, &name.text);
                found.retain(|m| self.by_address(*m).is_some());
                if !found.is_empty() {
                    ty = indefinite;
                }
                break found;
            }
            let Kind::Ptr { access, to, .. } = kind else { break found };
            if found.iter().any(|m| self.by_address(*m).is_none()) {
                break found;
            }
            // A pointer itself is tried as the receiver before its address: its pointee has the method.
            let mut inner = match self.p.types.kind(to) {
                Kind::Var(var) if self.p.types.class(var) == Class::Any => Vec::new(),
                _ => self.methods_of(to, &name.text),
            };
            inner.retain(|m| self.by_address(*m).is_some_and(|needed| access >= needed));
            if inner.is_empty() && !found.is_empty() {
                break found;
            }
            ty = self.p.types.shallow(to);
            derefs += 1;
            if !inner.is_empty() {
                break inner;
            }
        };
        let method = match found[..] {
            [method] => method,
            [] => {
                if !self.names_open(name.span) && !self.is_broken(target) {
                    self.no_method(target, &name);
                }
                self.p.types.unify(result, TypeTable::ERROR);
                return;
            }
            _ => {
                self.ambiguous_method(&found, &name);
                self.p.types.unify(result, TypeTable::ERROR);
                return;
            }
        };
        let (module, local) = self.locate(e);
        let ExprKind::Field { base: receiver, type_args, .. } = &self.p.modules[module][local].kind else { return };
        let (receiver, type_args) = (*receiver, type_args.as_deref());
        let old = std::mem::replace(&mut self.at, At { module, ns: from.ns });
        let fn_ty = self.method_instance(e, method, ty, type_args, name.span);
        self.at = old;
        let Kind::Fn(params, fn_result) = self.p.types.kind(fn_ty) else {
            self.p.types.unify(result, TypeTable::ERROR);
            return;
        };
        let Some((&first, rest)) = params.split_first() else {
            let of = self.show(ty);
            self.report(no_such_method::no_receiver(name.span, &of, &short(&name.text)));
            self.p.types.unify(result, TypeTable::ERROR);
            return;
        };
        self.receive(module, receiver, base, (ty, derefs), first, from);
        let bound = self.p.types.func(rest, fn_result);
        self.p.types.unify(result, bound);
    }

    /// Makes the receiver the first argument: pointers are followed and its address is taken as needed.
    pub(super) fn receive(
        &mut self,
        module: usize,
        receiver: ExprId,
        base: Ty,
        (ty, derefs): (Ty, u32),
        to: Ty,
        from: Asker,
    ) {
        let g = self.p.global(module, receiver);
        let span = self.p.modules[module][receiver].span;
        if self.p.types.unify_if_equal(to, ty) {
            if derefs > 0 {
                self.p.adjust.insert(g, Adjust { to, derefs, address: false });
            }
            return;
        }
        if let Kind::Ptr { access, to: pointee, .. } = self.p.types.kind(to) {
            let pointee_kind = self.p.types.kind(pointee);
            let fits = match (self.p.types.kind(ty), pointee_kind) {
                (Kind::Array(x, _), Kind::Indef(y)) => self.p.types.unify(x, y),
                _ => self.p.types.unify_if_equal(pointee, ty),
            };
            if fits {
                if derefs == 0 {
                    let need = if access.is_mut() { Need::MutAddress } else { Need::Address };
                    self.p.adjust.insert(g, Adjust { to, derefs: 0, address: true });
                    if access.is_mut() || self.is_place_of(module, receiver) {
                        self.unit.check_later(Final::Place { module, e: receiver, need, loops: from.looped, span });
                    }
                    return;
                }
                // The last of the followed pointers is the address.
                let mut pointer = self.p.types.shallow(base);
                for _ in 1..derefs {
                    if let Kind::Ptr { to, .. } = self.p.types.kind(pointer) {
                        pointer = self.p.types.shallow(to);
                    }
                }
                if matches!(self.subtype(pointer, to), Fit::Same | Fit::Adjusted) {
                    self.p.adjust.insert(g, Adjust { to, derefs: derefs - 1, address: false });
                    return;
                }
                self.mismatch(span, pointer, to, NO_WHY);
                return;
            }
        }
        let shown = self.p.types.shallow(ty);
        self.coerce(g, span, shown, to, NO_WHY);
    }

    fn is_place_of(&mut self, module: usize, e: ExprId) -> bool {
        let old = std::mem::replace(&mut self.at.module, module);
        let place = self.is_place(e);
        self.at.module = old;
        place
    }

    /// The type of a method of `ty`. Its type arguments are recorded for `g`.
    fn method_instance(
        &mut self,
        g: GlobalExpr,
        method: Method,
        ty: Ty,
        explicit: Option<&'a [TypeId]>,
        span: Span,
    ) -> Ty {
        let (f, args) = match method {
            Method::Inherent(id, f) => {
                let info = &self.p.impls[id.0 as usize];
                let (generics, own_ty) = (info.generics.clone(), info.ty);
                let args = self.fresh_impl_args(id);
                let own_ty = self.p.types.instantiate(own_ty, &generics, &args);
                self.p.types.unify(own_ty, ty);
                self.require_bounds(span, &generics, &args);
                (f, args)
            }
            Method::Trait(id, f) => {
                let info = &self.p.traits[id.0 as usize];
                let n = info.generics.len() - info.n_outer - 1;
                let args = (0..n).map(|_| self.var()).collect();
                let of = TraitRef { id, args };
                self.require(span, ty, of.clone());
                (f, self.trait_args(ty, &of))
            }
        };
        let info = &self.p.fns[f.0 as usize];
        if info.ast.symbol.is_none() && self.is_private(f) {
            let name = short(&info.ast.name.text);
            self.report(private_name::error(span, &name));
        }
        self.p.resolved.insert(g, Entity::Fn(f));
        self.note(span, Symbol::Fn(f));
        self.uses.fns.insert(f);
        self.fn_instance(g, f, args, explicit, span)
    }

    /// Whether a method of an impl is hidden here.
    fn is_private(&self, f: FnId) -> bool {
        let info = &self.p.fns[f.0 as usize];
        info.ast.private && !self.namespaces.is_inside(self.at.ns, info.ns)
    }

    /// The type of a function, for these type arguments of enclosing items, and for its own, which are given or open.
    pub(super) fn fn_instance(
        &mut self,
        g: GlobalExpr,
        f: FnId,
        mut args: Vec<Ty>,
        explicit: Option<&'a [TypeId]>,
        span: Span,
    ) -> Ty {
        let info = &self.p.fns[f.0 as usize];
        let (generics, n_outer, ty) = (info.generics.clone(), info.n_outer, info.ty);
        args.truncate(n_outer);
        let n = generics.len() - n_outer;
        let given = explicit.unwrap_or(&[]);
        if given.len() > n {
            if n == 0 {
                let name = short(&self.p.fns[f.0 as usize].ast.name.text);
                self.report(not_generic::error(span, &name, "a function without type parameters"));
            } else {
                self.wrong_type_arguments(span, given.len(), &generics[n_outer..], false);
            }
        }
        for (i, arg) in given.iter().enumerate() {
            let ty = self.generic_arg(*arg, generics.get(n_outer + i).copied());
            if args.len() < generics.len() {
                args.push(ty);
            }
        }
        while args.len() < generics.len() {
            let class = if self.has_lang(generics[args.len()], &[Lang::Int]) { Class::Integral } else { Class::Any };
            let ty = self.p.types.var(class);
            args.push(ty);
        }
        if generics.is_empty() {
            return ty;
        }
        for (&ty, &param) in args[n_outer..].iter().zip(&generics[n_outer..]) {
            if self.p.type_params[param.0 as usize].constant.is_none() {
                self.unit.check_later(Final::Known { ty, span, what: "this type argument" });
            }
        }
        self.check_const_args(&generics[n_outer..], &args[n_outer..], span);
        self.p.type_args.insert(g, args.clone());
        self.require_bounds(span, &generics[n_outer..], &args[n_outer..]);
        self.p.types.instantiate(ty, &generics, &args)
    }

    /// `T::name`.
    pub(super) fn of_type(&mut self, g: GlobalExpr, ty: Ty, name: &'a Name, path: &'a ast::Path) -> Ty {
        if self.p.types.is_error(ty) {
            return TypeTable::ERROR;
        }
        if let Kind::Enum(id, args) = self.p.types.kind(ty)
            && let Some(&i) = self.p.enums[id.0 as usize].index.get(&*name.text)
        {
            self.note(name.span, Symbol::Option(id, i));
            return self.option_value(g, id, i, args);
        }
        let found = self.methods_of(ty, &name.text);
        match found[..] {
            [method] => self.method_instance(g, method, ty, path.type_args.as_deref(), name.span),
            [] => {
                if !self.names_open(name.span) && !self.is_broken(ty) {
                    self.no_method(ty, name);
                }
                TypeTable::ERROR
            }
            _ => {
                self.ambiguous_method(&found, name);
                TypeTable::ERROR
            }
        }
    }

    /// Resolves `Trait::name`, for a type that the arguments determine.
    pub(super) fn of_trait(&mut self, g: GlobalExpr, id: TraitId, name: &'a Name, path: &'a ast::Path) -> Ty {
        let this = self.var();
        let inner = path.inner_args.iter().find(|(i, _)| *i as usize + 2 == path.names.len());
        let info = &self.p.traits[id.0 as usize];
        let params = info.generics[info.n_outer + 1..].to_vec();
        let n = params.len();
        let given: Vec<TypeId> = inner.iter().flat_map(|(_, args)| args).copied().collect();
        let given = self.trait_arguments(id, &given, path.span);
        if given.len() > n {
            self.wrong_type_arguments(path.span, given.len(), &params, false);
        }
        let mut args: Vec<Ty> = given.into_iter().take(n).collect();
        while args.len() < n {
            let ty = self.var();
            args.push(ty);
        }
        let of = TraitRef { id, args: args.into() };
        let found = self.with_supers(this, &of).into_iter().find_map(|up| {
            let f = self.p.traits[up.id.0 as usize].methods.get(&*name.text)?;
            Some((up, *f))
        });
        let Some((up, f)) = found else {
            let of = short(&self.p.traits[id.0 as usize].ast.name.text);
            let all: Vec<&str> = self.p.traits[id.0 as usize].methods.keys().copied().collect();
            let similar = closest(&name.text, all.iter().copied());
            self.report(no_such_method::of_trait(name.span, &of, &short(&name.text), similar));
            return TypeTable::ERROR;
        };
        self.require(name.span, this, up.clone());
        let args = self.trait_args(this, &up);
        self.p.resolved.insert(g, Entity::Fn(f));
        self.note(name.span, Symbol::Fn(f));
        self.fn_instance(g, f, args, path.type_args.as_deref(), name.span)
    }

    fn no_method(&mut self, ty: Ty, name: &Name) {
        let shown = self.show(ty);
        // Impls for types like this one have it, but not for this one.
        let head = self.p.types.head(ty);
        for (id, _) in self.impls.inherent(&name.text, head) {
            let unmet = self.unmet_bounds(id, ty, None, usize::MAX).unwrap_or_default();
            if !unmet.is_empty() {
                let unmet: Vec<(String, String)> =
                    unmet.iter().map(|(ty, bound)| (self.show(*ty), self.show_bound(bound))).collect();
                self.report(no_such_method::unmet(name.span, &shown, &short(&name.text), &unmet));
                return;
            }
        }
        let fields: Vec<&str> = match self.p.types.kind(ty) {
            Kind::Struct(id, _) => self.p.structs[id.0 as usize].fields.iter().map(|f| f.0).collect(),
            _ => Vec::new(),
        };
        let mut names = self.impls.names();
        names.retain(|n| closest(&name.text, std::iter::once(*n)).is_some());
        names.retain(|n| !self.methods_of(ty, n).is_empty());
        let similar = closest(&name.text, names.iter().copied().chain(fields.iter().copied()));
        let is_used = |path: &str| self.namespaces.is_used(path);
        let in_used = self.unknown.libraries(|l| l.has_item(&name.text) && is_used(&l.path));
        let is_function = !in_used.is_empty()
            || matches!(self.namespaces[PRELUDE].names.get(&*name.text).map(|n| n.entity), Some(Entity::Fn(_)));
        // `Slice` of `&Slice[T]`
        let of = shown.trim_start_matches('&').split('[').next().unwrap_or_default();
        let with_method = self.unknown.libraries(|l| l.has_method(&name.text, of) && !is_used(&l.path));
        let with_function = self.unknown.libraries(|l| l.has_item(&name.text));
        let libraries = (&with_method[..], &with_function[..]);
        let short = short(&name.text);
        let length = fields.iter().copied().find(|f| matches!(*f, "length" | "size" | "count"));
        let diagnostic = no_such_method::error(name.span, &shown, &short, (similar, length), is_function, libraries);
        self.report(diagnostic);
    }

    fn ambiguous_method(&mut self, found: &[Method], name: &Name) {
        let owner = |m: &Method| match m {
            Method::Trait(id, f) => (self.p.traits[id.0 as usize].ast.name.text.to_string(), *f),
            Method::Inherent(id, f) => (self.show(self.p.impls[id.0 as usize].ty), *f),
        };
        let owners: Vec<(String, Span)> = found
            .iter()
            .map(|m| {
                let (name, f) = owner(m);
                (short(&name), self.p.fns[f.0 as usize].ast.name.span)
            })
            .collect();
        self.report(ambiguous_method::error(name.span, &short(&name.text), &owners));
    }
}
