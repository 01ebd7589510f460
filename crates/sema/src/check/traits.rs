//! Traits, impls, bounds.
//!
//! A bound is met by the type parameter's own bounds, super-traits included, or by an impl. A bound that mentions open
//! types waits until only one impl is left, which then determines them. Lowering selects the impl of a call again, for
//! the types of each instance.

use super::*;
use nyala_syntax::ast::{TypeId, TypeKind};

/// Limit on the nesting of impls that need each other's bounds.
const MAX_BOUNDS: u32 = 64;

/// Limit on the impls that are tried for one bound.
const MAX_STEPS: u32 = 50_000;

/// Whether a type meets a bound.
#[derive(Clone, PartialEq)]
pub(super) enum Meets {
    No,
    /// It depends on open types, or several impls apply.
    Open,
    /// A bound of the type parameter.
    Given(TraitRef),
    By(ImplId),
    /// A primitive type and a trait of the prelude.
    Builtin,
}

impl<'a> Checker<'a, '_> {
    // Declarations.

    pub(super) fn declare_trait(&mut self, t: &'a ast::Trait, private: bool, top_level: bool) {
        let id = TraitId(self.p.traits.len() as u32);
        let n_outer = self.generics.len();
        let generics = self.declare_generics(&t.type_params, Some(t.name.span));
        let lang = match (self.module < self.p.n_prelude, &*t.name.text) {
            (true, "Ord") => Some(Lang::Ord),
            (true, "Num") => Some(Lang::Num),
            (true, "Int") => Some(Lang::Int),
            (true, "Float") => Some(Lang::Float),
            _ => None,
        };
        self.p.traits.push(TraitInfo {
            ast: t,
            generics: generics.clone(),
            n_outer,
            supers: Vec::new(),
            methods: FxHashMap::default(),
            lang,
        });
        self.declare(&t.name, Entity::Trait(id), private, top_level);
        let old = std::mem::replace(&mut self.generics, generics);
        for f in &t.fns {
            let method = self.declare_fn(f, FnKind::Defined, FnOwner::Trait(id), top_level);
            if let Some(first) = self.p.traits[id.0 as usize].methods.insert(&f.name.text, method) {
                let first = self.p.fns[first.0 as usize].ast.name.span;
                self.report(duplicate_name::item(f.name.span, &short(&f.name.text), Some(first)));
            }
            self.trait_methods.entry(&f.name.text).or_default().push((id, method));
        }
        self.generics = old;
    }

    pub(super) fn declare_impl(&mut self, i: &'a ast::Impl, top_level: bool) {
        let id = ImplId(self.p.impls.len() as u32);
        let n_outer = self.generics.len();
        let generics = self.declare_generics(&i.type_params, None);
        self.forget_bounds();
        self.p.impls.push(ImplInfo {
            ast: i,
            module: self.module,
            ns: self.ns,
            generics: generics.clone(),
            n_outer,
            of: None,
            ty: TypeTable::ERROR,
            methods: FxHashMap::default(),
        });
        self.impl_at.insert((i.span.file, i.span.lo), id);
        let old = std::mem::replace(&mut self.generics, generics);
        for f in &i.fns {
            let method = self.declare_fn(f, FnKind::Defined, FnOwner::Impl(id), top_level);
            if f.body.is_none() {
                self.report(missing_method::no_body(f.name.span, &short(&f.name.text)));
            }
            if let Some(first) = self.p.impls[id.0 as usize].methods.insert(&f.name.text, method) {
                let first = self.p.fns[first.0 as usize].ast.name.span;
                self.report(duplicate_name::item(f.name.span, &short(&f.name.text), Some(first)));
            }
        }
        self.generics = old;
    }

    pub(super) fn define_trait(&mut self, t: &'a ast::Trait) {
        let Some(Entity::Trait(id)) = self.p.declared_at(t.name.span) else { return };
        let info = &self.p.traits[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&t.type_params, &generics, n_outer + 1);
        let args = generics[n_outer + 1..].iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        self.p.type_params[generics[n_outer].0 as usize].bounds = vec![TraitRef { id, args }];
        let supers: Vec<TraitRef> = t.supers.iter().filter_map(|s| self.trait_ref(*s)).collect();
        self.p.traits[id.0 as usize].supers = supers;
        t.fns.iter().for_each(|f| self.define_fn(f));
        self.leave_generics(old);
    }

    pub(super) fn define_impl(&mut self, i: &'a ast::Impl) {
        let Some(&id) = self.impl_at.get(&(i.span.file, i.span.lo)) else { return };
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&i.type_params, &generics, n_outer);
        let ty = self.ty(i.ty);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert("Self", Entity::Type(ty));
        }
        let of = i.of.map(|of| self.trait_ref(of));
        self.p.impls[id.0 as usize].ty = ty;
        if let Some(of) = &of {
            self.p.impls[id.0 as usize].of = of.clone();
        }
        i.fns.iter().for_each(|f| self.define_fn(f));
        self.leave_generics(old);
        self.check_impl_params(id);
        match of {
            Some(Some(of)) => {
                let info = &self.p.traits[of.id.0 as usize];
                if info.lang.is_some() && self.module >= self.p.n_prelude {
                    let name = short(&info.ast.name.text);
                    self.report(duplicate_impl::of_prelude(i.span, &name));
                } else {
                    let head = self.p.types.head(ty);
                    self.p.impls_of.entry(of.id).or_default().entry(head).or_default().push(id);
                }
            }
            // Its trait is an error: nothing is known of its methods.
            Some(None) => {}
            None => {
                for f in &i.fns {
                    if let Some(Entity::Fn(method)) = self.p.declared_at(f.name.span) {
                        let head = self.p.types.head(ty);
                        let named = self.inherent_methods.entry(&f.name.text).or_default();
                        named.entry(head).or_default().push((id, method));
                    }
                }
            }
        }
    }

    /// Checks that the type that an impl is for determines the impl's type parameters.
    fn check_impl_params(&mut self, id: ImplId) {
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer, ty, of) = (info.generics.clone(), info.n_outer, info.ty, info.of.clone());
        if self.p.types.is_error(ty) {
            return;
        }
        let mut known = self.params_in(ty);
        for arg in of.iter().flat_map(|of| of.args.iter()) {
            known.extend(self.params_in(*arg));
        }
        // A bound determines the arguments of its trait.
        for &param in &generics[n_outer..] {
            for bound in self.p.type_params[param.0 as usize].bounds.clone() {
                for arg in bound.args.iter() {
                    known.extend(self.params_in(*arg));
                }
            }
        }
        for &param in &generics[n_outer..] {
            if !known.contains(&param) {
                let info = &self.p.type_params[param.0 as usize];
                let (name, span) = (short(&info.name), info.span);
                self.report(undetermined_parameter::error(span, &name));
            }
        }
    }

    fn params_in(&mut self, ty: Ty) -> FxHashSet<ParamId> {
        let mut out = FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            match self.p.types.kind(ty) {
                Kind::Param(id) => {
                    out.insert(id);
                }
                kind if self.p.types.has_param(ty) => TypeTable::children(&kind, &mut |t| work.push(t)),
                _ => {}
            }
        }
        out
    }

    /// Checks traits and impls from these numbers on, all of which are known now: the methods that impls define and
    /// lack, overlapping impls, and super-traits.
    pub(super) fn finish_impls(&mut self, first_trait: usize, first: usize) {
        let n = self.p.impls.len();
        for id in first..n {
            self.give_supers(ImplId(id as u32));
        }
        for id in first..self.p.impls.len() {
            self.check_impl(ImplId(id as u32));
        }
        for id in first..self.p.impls.len() {
            self.check_overlap(ImplId(id as u32));
        }
        for id in first_trait..self.p.traits.len() {
            self.check_supers(TraitId(id as u32));
        }
    }

    /// The bound `of` and those of all its super-traits, for a value of type `ty`.
    pub(super) fn with_supers(&mut self, ty: Ty, of: &TraitRef) -> Vec<TraitRef> {
        let mut out = vec![of.clone()];
        let mut next = 0;
        while next < out.len() && out.len() < 1000 {
            let of = out[next].clone();
            next += 1;
            let info = &self.p.traits[of.id.0 as usize];
            let (generics, supers) = (info.generics.clone(), info.supers.clone());
            if supers.is_empty() {
                continue;
            }
            let args = self.trait_args(ty, &of);
            for up in supers {
                let up = self.instantiate_bound(&up, &generics, &args);
                if !out.contains(&up) {
                    out.push(up);
                }
            }
        }
        out
    }

    /// Arguments for all type parameters of a trait.
    pub(super) fn trait_args(&mut self, ty: Ty, of: &TraitRef) -> Vec<Ty> {
        let info = &self.p.traits[of.id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let mut args: Vec<Ty> = generics[..n_outer].iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        args.push(ty);
        args.extend(of.args.iter());
        args
    }

    fn check_supers(&mut self, id: TraitId) {
        let info = &self.p.traits[id.0 as usize];
        if info.supers.is_empty() {
            return;
        }
        let ast = info.ast;
        let this = self.p.types.mk(Kind::Param(info.self_param()));
        let own = self.p.type_params[self.p.traits[id.0 as usize].self_param().0 as usize].bounds[0].clone();
        let all = self.with_supers(this, &own);
        let itself = self.p.traits[id.0 as usize].supers.iter().any(|s| {
            let mut seen = vec![s.id];
            let mut next = 0;
            while next < seen.len() {
                for up in &self.p.traits[seen[next].0 as usize].supers {
                    if !seen.contains(&up.id) {
                        seen.push(up.id);
                    }
                }
                next += 1;
            }
            seen.contains(&id)
        });
        if itself {
            self.report(recursive_type::of_trait(ast.name.span, &short(&ast.name.text)));
            self.p.traits[id.0 as usize].supers.clear();
            return;
        }
        for up in all.iter().skip(1) {
            for f in &ast.fns {
                if let Some(first) = self.p.traits[up.id.0 as usize].methods.get(&*f.name.text) {
                    let first = self.p.fns[first.0 as usize].ast.name.span;
                    self.report(duplicate_name::item(f.name.span, &short(&f.name.text), Some(first)));
                }
            }
        }
    }

    /// Makes an impl that also has the methods of super-traits an impl of these, where no other impl exists.
    fn give_supers(&mut self, id: ImplId) {
        let info = &self.p.impls[id.0 as usize];
        let (ty, Some(of)) = (info.ty, info.of.clone()) else { return };
        if self.p.types.is_error(ty) {
            return;
        }
        for up in self.with_supers(ty, &of).into_iter().skip(1) {
            if self.p.traits[up.id.0 as usize].lang.is_some() || self.has_impl(ty, &up) {
                continue;
            }
            let names: Vec<&'a str> = self.p.traits[up.id.0 as usize].methods.keys().copied().collect();
            let info = &mut self.p.impls[id.0 as usize];
            let methods: FxHashMap<&'a str, FnId> =
                names.iter().filter_map(|n| info.methods.remove(n).map(|f| (*n, f))).collect();
            let copy = ImplInfo {
                ast: info.ast,
                module: info.module,
                ns: info.ns,
                generics: info.generics.clone(),
                n_outer: info.n_outer,
                of: Some(up.clone()),
                ty,
                methods,
            };
            let new = ImplId(self.p.impls.len() as u32);
            self.forget_bounds();
            self.p.impls.push(copy);
            let head = self.p.types.head(ty);
            self.p.impls_of.entry(up.id).or_default().entry(head).or_default().push(new);
        }
    }

    fn has_impl(&mut self, ty: Ty, of: &TraitRef) -> bool {
        let impls = self.p.impls_for(of.id, self.p.types.head(ty));
        impls.into_iter().any(|id| self.fits(id, ty, Some(of)))
    }

    /// Whether the impl may apply to `ty`.
    pub(super) fn fits(&mut self, id: ImplId, ty: Ty, of: Option<&TraitRef>) -> bool {
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer, own_ty, own_of) = (info.generics.clone(), info.n_outer, info.ty, info.of.clone());
        let mut holes: FxHashMap<ParamId, Ty> = generics[n_outer..].iter().map(|p| (*p, TypeTable::ERROR)).collect();
        if !self.p.types.may_match(own_ty, ty, &mut holes) {
            return false;
        }
        if let (Some(a), Some(b)) = (&own_of, of)
            && (a.id != b.id
                || !a.args.iter().zip(b.args.iter()).all(|(x, y)| self.p.types.may_match(*x, *y, &mut holes)))
        {
            return false;
        }
        // The arguments of the impl's parameters that are known must meet their bounds.
        if self.bound_is_endless() {
            return true;
        }
        self.bound_depth += 1;
        self.bound_steps += 1;
        let args: Vec<Ty> = generics
            .iter()
            .map(|p| match holes.get(p) {
                Some(&ty) if ty != TypeTable::ERROR => ty,
                Some(_) => self.var(),
                None => self.p.types.mk(Kind::Param(*p)),
            })
            .collect();
        let mut ok = true;
        for (i, param) in generics.iter().enumerate().skip(n_outer) {
            // An open type is skipped: searching the impls that it might have would produce ever larger types.
            if matches!(self.p.types.kind(args[i]), Kind::Var(v) if matches!(self.p.types.class(v), Class::Any)) {
                continue;
            }
            for bound in self.p.type_params[param.0 as usize].bounds.clone() {
                let bound = self.instantiate_bound(&bound, &generics, &args);
                ok = ok && self.meets(args[i], &bound) != Meets::No;
            }
        }
        self.bound_depth -= 1;
        ok
    }

    /// Whether the impl has all methods of its trait, no others, and with their types.
    fn check_impl(&mut self, id: ImplId) {
        let info = &self.p.impls[id.0 as usize];
        let (Some(of), ty, ast) = (info.of.clone(), info.ty, info.ast) else { return };
        let methods: Vec<(&'a str, FnId)> = info.methods.iter().map(|(n, f)| (*n, *f)).collect();
        let generics = self.p.traits[of.id.0 as usize].generics.clone();
        let trait_name = short(&self.p.traits[of.id.0 as usize].ast.name.text);
        let mut methods = methods;
        methods.sort_unstable_by_key(|m| m.1);
        for (name, method) in methods {
            let span = self.p.fns[method.0 as usize].ast.name.span;
            let Some(&wanted) = self.p.traits[of.id.0 as usize].methods.get(name) else {
                let all: Vec<&str> = self.p.traits[of.id.0 as usize].methods.keys().copied().collect();
                let similar = closest(name, all.iter().copied());
                self.report(no_such_method::of_trait(span, &trait_name, &short(name), similar));
                continue;
            };
            let (own, asked) = (&self.p.fns[method.0 as usize], &self.p.fns[wanted.0 as usize]);
            let (own_generics, own_first, own_ty) = (own.generics.clone(), own.n_outer, own.ty);
            let (asked_generics, asked_first, asked_ty, asked_span) =
                (asked.generics.clone(), asked.n_outer, asked.ty, asked.ast.name.span);
            let mut args = self.trait_args(ty, &of);
            args.truncate(generics.len());
            if own_generics.len() - own_first != asked_generics.len() - asked_first {
                let (found, expected) = (own_generics.len() - own_first, asked_generics.len() - asked_first);
                self.report(method_type::parameters(span, &short(name), found, expected, asked_span));
                continue;
            }
            args.extend(own_generics[own_first..].iter().map(|p| self.p.types.mk(Kind::Param(*p))));
            let expected = self.p.types.instantiate(asked_ty, &asked_generics, &args);
            if !self.p.types.unify(own_ty, expected) {
                let (found, expected) = (self.show(own_ty), self.show(expected));
                self.report(method_type::error(span, &short(name), &found, &expected, asked_span));
                continue;
            }
            for (mine, theirs) in own_generics[own_first..].iter().zip(&asked_generics[asked_first..]) {
                let given: Vec<TraitRef> = self.p.type_params[theirs.0 as usize].bounds.clone();
                let given: Vec<TraitRef> =
                    given.iter().map(|b| self.instantiate_bound(b, &asked_generics, &args)).collect();
                let needed = self.p.type_params[mine.0 as usize].bounds.clone();
                if let Some(extra) = needed.iter().find(|b| !given.contains(b)) {
                    let (extra, param) = (self.show_bound(extra), self.p.type_params[mine.0 as usize].span);
                    self.report(method_type::bound(param, &short(name), &extra, asked_span));
                }
            }
        }
        let mut missing: Vec<(u32, String)> = Vec::new();
        for (name, wanted) in &self.p.traits[of.id.0 as usize].methods {
            let has_default = self.p.fns[wanted.0 as usize].ast.body.is_some();
            if !has_default && !self.p.impls[id.0 as usize].methods.contains_key(name) {
                missing.push((wanted.0, short(name)));
            }
        }
        missing.sort_unstable();
        if !missing.is_empty() {
            let names: Vec<String> = missing.into_iter().map(|m| m.1).collect();
            self.report(missing_method::error(ast.span, &trait_name, &names));
        }
        // The super-traits of the trait must be there too.
        for up in self.with_supers(ty, &of).into_iter().skip(1) {
            if self.meets(ty, &up) == Meets::No {
                let (shown, bound) = (self.show(ty), self.show_bound(&up));
                self.report(unmet_bound::of_super(ast.span, &shown, &bound, &trait_name));
            }
        }
    }

    /// Reports two impls for the same types, and two methods of one name for one type.
    fn check_overlap(&mut self, id: ImplId) {
        let info = &self.p.impls[id.0 as usize];
        let (ty, of, span) = (info.ty, info.of.clone(), info.ast.span);
        if self.p.types.is_error(ty) {
            return;
        }
        let Some(of) = of else {
            let mut names: Vec<(&'a str, FnId)> = info.methods.iter().map(|(n, f)| (*n, *f)).collect();
            names.sort_unstable_by_key(|n| n.1);
            for (name, f) in names {
                for (other, g) in self.inherent_of(name, self.p.types.head(ty)) {
                    if other < id && self.may_overlap(id, other) {
                        let span = self.p.fns[f.0 as usize].ast.name.span;
                        let first = self.p.fns[g.0 as usize].ast.name.span;
                        self.report(duplicate_name::item(span, &short(name), Some(first)));
                        break;
                    }
                }
            }
            return;
        };
        let others = self.p.impls_for(of.id, self.p.types.head(ty));
        for other in others.into_iter().filter(|o| *o < id) {
            if self.may_overlap(id, other) {
                let first = self.p.impls[other.0 as usize].ast.span;
                let (shown, bound) = (self.show(ty), self.show_bound(&of));
                self.report(duplicate_impl::error(span, &bound, &shown, first));
                return;
            }
        }
    }

    /// Whether both impls apply to some type.
    fn may_overlap(&mut self, a: ImplId, b: ImplId) -> bool {
        let info = &self.p.impls[a.0 as usize];
        let (generics, n_outer, ty, of) = (info.generics.clone(), info.n_outer, info.ty, info.of.clone());
        // Open types in place of one's parameters, against the other.
        let args: Vec<Ty> = generics
            .iter()
            .enumerate()
            .map(|(i, p)| if i < n_outer { self.p.types.mk(Kind::Param(*p)) } else { self.var() })
            .collect();
        let ty = self.p.types.instantiate(ty, &generics, &args);
        let of = of.map(|of| self.instantiate_bound(&of, &generics, &args));
        self.fits(b, ty, of.as_ref())
    }

    // Bounds.

    /// A trait with its arguments, as a bound names it.
    pub(super) fn trait_ref(&mut self, id: TypeId) -> Option<TraitRef> {
        let node = &self.ast()[id];
        let TypeKind::Path(path) = &node.kind else {
            if !matches!(node.kind, TypeKind::Error) {
                self.report(not_a_trait::error(node.span, "this type"));
            }
            return None;
        };
        let name = &path.names[path.names.len() - 1];
        let entity = match (&path.names[..], path.root) {
            ([name], false) => self.resolve(name, true),
            _ => match self.find(path, true) {
                Found::Entity(entity) => entity,
                Found::Of(..) | Found::OfTrait(..) => Entity::Fn(FnId(0)),
            },
        };
        let Entity::Trait(id) = entity else {
            if entity != Entity::Error {
                self.report(not_a_trait::error(node.span, &format!("`{}`", short(&name.text))));
            }
            return None;
        };
        let n = {
            let info = &self.p.traits[id.0 as usize];
            info.generics.len() - info.n_outer - 1
        };
        let given = path.type_args.as_deref().unwrap_or(&[]);
        let mut args: Vec<Ty> = given.iter().map(|arg| self.value_ty(*arg)).collect();
        if args.len() != n {
            self.report(wrong_number_of_arguments::type_arguments(path.span, args.len(), n, true));
            args.resize(n, TypeTable::ERROR);
        }
        Some(TraitRef { id, args: args.into() })
    }

    /// Checks the bounds that declarations require.
    pub(super) fn check_deferred(&mut self) {
        for (span, ty, of) in std::mem::take(&mut self.deferred) {
            self.require(span, ty, of);
        }
    }

    /// Requires that `ty` meets the bound, which is checked once all impls are known.
    pub(super) fn require_later(&mut self, span: Span, ty: Ty, of: TraitRef) {
        if self.collecting {
            self.deferred.push((span, ty, of));
        } else {
            self.require(span, ty, of);
        }
    }

    /// Requires that `ty` meets the bound, which may determine open types in it.
    pub(super) fn require(&mut self, span: Span, ty: Ty, of: TraitRef) {
        let ty = self.p.types.shallow(ty);
        if self.bound_is_endless() {
            let (shown, bound) = (self.show(ty), self.show_bound(&of));
            self.report(unmet_bound::endless(span, &shown, &bound));
            return;
        }
        // Nothing is known of it yet: no need to look through all impls.
        let is_open = self.p.types.as_var(ty).is_some_and(|v| self.p.types.class(v) == Class::Any);
        let met = if is_open { Meets::Open } else { self.meets(ty, &of) };
        match met {
            Meets::Builtin => {}
            Meets::Given(given) => self.equal_args(&given, &of),
            Meets::By(_) if self.is_closed(ty, &of) && !self.required.insert((ty, of.clone())) => {}
            Meets::By(id) if self.p.types.as_var(ty).is_none() => self.take_impl(span, id, ty, &of),
            Meets::No => {
                let (shown, bound) = (self.show(ty), self.show_bound(&of));
                let param = matches!(self.p.types.kind(ty), Kind::Param(_));
                self.report(unmet_bound::error(span, &shown, &bound, param));
                for arg in of.args.iter() {
                    self.p.types.poison(*arg);
                }
            }
            _ => {
                let mut open = self.p.types.open_vars(ty);
                for arg in of.args.iter() {
                    open.extend(self.p.types.open_vars(*arg));
                }
                self.pending.push(Some(Pending::Bound { span, ty, of }));
                let who = self.pending_base + self.pending.len() as u32 - 1;
                for var in open {
                    self.p.types.wait(var, who);
                }
            }
        }
    }

    fn equal_args(&mut self, a: &TraitRef, b: &TraitRef) {
        for (x, y) in a.args.iter().zip(b.args.iter()) {
            self.p.types.unify(*x, *y);
        }
    }

    /// Unifies the types of the impl that meets the bound.
    fn take_impl(&mut self, span: Span, id: ImplId, ty: Ty, of: &TraitRef) {
        let info = &self.p.impls[id.0 as usize];
        let (generics, own_ty, own_of) = (info.generics.clone(), info.ty, info.of.clone());
        let args = self.fresh_impl_args(id);
        let own_ty = self.p.types.instantiate(own_ty, &generics, &args);
        self.p.types.unify(own_ty, ty);
        if let Some(own_of) = own_of {
            let own_of = self.instantiate_bound(&own_of, &generics, &args);
            self.equal_args(&own_of, of);
        }
        self.bound_depth += 1;
        self.require_bounds(span, &generics, &args);
        self.bound_depth -= 1;
    }

    pub(super) fn fresh_impl_args(&mut self, id: ImplId) -> Vec<Ty> {
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let arg = |c: &mut Self, i: usize, p: ParamId| {
            if i < n_outer { c.p.types.mk(Kind::Param(p)) } else { c.var() }
        };
        generics.iter().enumerate().map(|(i, p)| arg(self, i, *p)).collect()
    }

    /// Requires that the arguments meet the bounds of their parameters. A parameter that is its own argument does.
    pub(super) fn require_bounds(&mut self, span: Span, generics: &[ParamId], args: &[Ty]) {
        for (param, &arg) in generics.iter().zip(args) {
            if self.p.types.kind(arg) == Kind::Param(*param) {
                continue;
            }
            for bound in self.p.type_params[param.0 as usize].bounds.clone() {
                let bound = self.instantiate_bound(&bound, generics, args);
                self.require(span, arg, bound);
            }
        }
    }

    /// The bounds of a type parameter, those of super-traits included.
    pub(super) fn bounds_of(&mut self, param: ParamId) -> Vec<TraitRef> {
        let ty = self.p.types.mk(Kind::Param(param));
        let mut out = Vec::new();
        for bound in self.p.type_params[param.0 as usize].bounds.clone() {
            for up in self.with_supers(ty, &bound) {
                if !out.contains(&up) {
                    out.push(up);
                }
            }
        }
        out
    }

    /// Whether it is a type parameter with an erroneous bound.
    pub(super) fn is_broken(&mut self, ty: Ty) -> bool {
        matches!(self.p.types.kind(ty), Kind::Param(p) if self.p.type_params[p.0 as usize].broken)
    }

    /// Whether the type parameter has operators of this kind.
    pub(super) fn has_lang(&mut self, param: ParamId, wanted: &[Lang]) -> bool {
        if self.p.type_params[param.0 as usize].broken {
            return true;
        }
        let bounds = self.bounds_of(param);
        bounds.iter().any(|b| self.p.traits[b.id.0 as usize].lang.is_some_and(|l| wanted.contains(&l)))
    }

    /// Whether `ty` meets the bound, as far as known. Does not bind any variable.
    pub(super) fn meets(&mut self, ty: Ty, of: &TraitRef) -> Meets {
        let ty = self.p.types.shallow(ty);
        let kind = self.p.types.kind(ty);
        if let Kind::Error | Kind::Never = kind {
            return Meets::Builtin;
        }
        if self.bound_is_endless() {
            return Meets::Open;
        }
        if let Kind::Param(param) = kind {
            let mut given: Vec<TraitRef> = self.bounds_of(param).into_iter().filter(|b| b.id == of.id).collect();
            given.retain(|g| {
                let mut none = FxHashMap::default();
                g.args.iter().zip(of.args.iter()).all(|(x, y)| self.p.types.may_match(*x, *y, &mut none))
            });
            match given.len() {
                0 if self.p.type_params[param.0 as usize].broken => return Meets::Builtin,
                0 => {}
                1 => return Meets::Given(given.remove(0)),
                _ => return Meets::Open,
            }
        }
        if let Some(lang) = self.p.traits[of.id.0 as usize].lang {
            return match (kind, lang) {
                (Kind::Prim(p), Lang::Ord | Lang::Num) if p != Prim::Bool => Meets::Builtin,
                (Kind::Prim(p), Lang::Int) if p.is_int() => Meets::Builtin,
                (Kind::Prim(p), Lang::Float) if p.is_float() => Meets::Builtin,
                (Kind::Prim(Prim::Bool), Lang::Ord) => Meets::Builtin,
                (Kind::Var(v), _) => match (self.p.types.class(v), lang) {
                    (Class::Any, _) | (Class::Num, Lang::Int | Lang::Float) => Meets::Open,
                    (Class::Int, Lang::Float) | (Class::Float, Lang::Int) => Meets::No,
                    _ => Meets::Builtin,
                },
                _ => Meets::No,
            };
        }
        let closed = !self.collecting && self.is_closed(ty, of);
        if closed && let Some(met) = self.met.get(&(ty, of.clone())) {
            return met.clone();
        }
        let met = self.search(ty, of);
        if closed && !self.bound_is_endless() {
            self.met.insert((ty, of.clone()), met.clone());
        }
        met
    }

    /// Clears the memoized answers, which a new impl may change.
    fn forget_bounds(&mut self) {
        self.met.clear();
        self.required.clear();
    }

    fn is_closed(&mut self, ty: Ty, of: &TraitRef) -> bool {
        !self.p.types.has_open_var(ty) && !of.args.iter().any(|a| self.p.types.has_open_var(*a))
    }

    /// Whether the search for impls has taken too long.
    fn bound_is_endless(&mut self) -> bool {
        if self.bound_depth == 0 {
            self.bound_steps = 0;
        }
        self.bound_depth > MAX_BOUNDS || self.bound_steps > MAX_STEPS
    }

    fn search(&mut self, ty: Ty, of: &TraitRef) -> Meets {
        let impls = self.p.impls_for(of.id, self.p.types.head(ty));
        let mut fitting = Vec::new();
        for id in impls {
            if self.fits(id, ty, Some(of)) {
                fitting.push(id);
            }
        }
        match fitting[..] {
            [] => Meets::No,
            [one] => Meets::By(one),
            [first, ..] => {
                let mut open = self.p.types.has_open_var(ty);
                for arg in of.args.iter() {
                    open |= self.p.types.has_open_var(*arg);
                }
                if open { Meets::Open } else { Meets::By(first) }
            }
        }
    }

    /// At the end of a unit: if only one impl can meet the bound, it determines the open types.
    pub(super) fn settle_bound(&mut self, span: Span, ty: Ty, of: TraitRef) {
        match self.meets(ty, &of) {
            Meets::By(id) => self.take_impl(span, id, ty, &of),
            _ => self.require(span, ty, of),
        }
    }
}
