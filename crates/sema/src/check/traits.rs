//! Declarations of traits and impls: their methods, super-traits, and impls that overlap. Lowering selects the impl of a
//! call again, for the types of each instance.

use super::*;

impl<'a> Checker<'a, '_> {
    pub(super) fn declare_trait(&mut self, t: &'a ast::Trait, private: bool, top_level: bool) {
        let id = TraitId(self.p.traits.len() as u32);
        let n_outer = self.signature.generics.len();
        let generics = self.declare_generics(&t.type_params, Some(t.name.span));
        let lang = match (self.at.module < self.p.n_prelude, &*t.name.text) {
            (true, "Ord") => Some(Lang::Ord),
            (true, "Num") => Some(Lang::Num),
            (true, "Int") => Some(Lang::Int),
            (true, "Float") => Some(Lang::Float),
            _ => None,
        };
        let in_prelude = self.at.module < self.p.n_prelude;
        let operator = Operator::from_name(&t.name.text).filter(|_| in_prelude);
        if let Some(operator) = operator {
            self.p.operators.insert(operator, id);
        }
        self.p.traits.push(TraitInfo {
            ast: t,
            generics: generics.clone(),
            n_outer,
            supers: Vec::new(),
            methods: FxHashMap::default(),
            lang,
            operator,
        });
        self.declare(&t.name, Entity::Trait(id), private, top_level);
        let old = std::mem::replace(&mut self.signature.generics, generics);
        for f in &t.fns {
            let method = self.declare_fn(f, FnKind::Defined, FnOwner::Trait(id), top_level);
            if let Some(first) = self.p.traits[id.0 as usize].methods.insert(&f.name.text, method) {
                let first = self.p.fns[first.0 as usize].ast.name.span;
                self.report(duplicate_name::item(f.name.span, &short(&f.name.text), Some(first)));
            }
            self.impls.of_traits.entry(&f.name.text).or_default().push((id, method));
        }
        self.signature.generics = old;
    }

    pub(super) fn declare_impl(&mut self, i: &'a ast::Impl, top_level: bool) {
        let id = ImplId(self.p.impls.len() as u32);
        let n_outer = self.signature.generics.len();
        let generics = self.declare_generics(&i.type_params, None);
        self.bounds.forget();
        self.p.impls.push(ImplInfo {
            ast: i,
            module: self.at.module,
            ns: self.at.ns,
            generics: generics.clone(),
            n_outer,
            of: None,
            ty: TypeTable::ERROR,
            methods: FxHashMap::default(),
        });
        self.impls.at.insert((i.span.file, i.span.lo), id);
        let old = std::mem::replace(&mut self.signature.generics, generics);
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
        self.signature.generics = old;
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
        let Some(&id) = self.impls.at.get(&(i.span.file, i.span.lo)) else { return };
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer) = (info.generics.clone(), info.n_outer);
        let old = self.enter_generics(&generics, n_outer);
        self.define_bounds(&i.type_params, &generics, n_outer);
        let ty = self.ty(i.ty);
        self.scopes.insert("Self", Entity::Type(ty));
        let of = i.of.map(|of| self.trait_ref(of));
        let mut head = vec![ty];
        head.extend(of.iter().flatten().flat_map(|of| of.args.iter()));
        let computed = head.iter().any(|ty| self.p.types.has_operation(*ty));
        if computed {
            let hint = "give the impl a `const` parameter of its own in place of the computed constant";
            self.limitation(i.span, "computed constants in the head of an `impl`", hint);
        }
        self.p.impls[id.0 as usize].ty = ty;
        if let Some(of) = &of {
            self.p.impls[id.0 as usize].of = of.clone();
        }
        i.fns.iter().for_each(|f| self.define_fn(f));
        self.leave_generics(old);
        if !computed {
            self.check_impl_params(id);
        }
        match of {
            Some(Some(of)) => {
                let info = &self.p.traits[of.id.0 as usize];
                if info.lang.is_some() && self.at.module >= self.p.n_prelude {
                    let name = short(&info.ast.name.text);
                    self.report(duplicate_impl::of_prelude(i.span, &name));
                } else {
                    let head = self.p.types.head(ty);
                    self.p.impls_of.entry(of.id).or_default().entry(head).or_default().push(id);
                }
            }
            // Its trait is an error: nothing is known of its methods.
            Some(None) => {}
            // A type that is an error is every type, and no other type gets the methods.
            None if self.p.types.is_error(ty) => {}
            None => {
                for f in &i.fns {
                    if let Some(Entity::Fn(method)) = self.p.declared_at(f.name.span) {
                        let head = self.p.types.head(ty);
                        let named = self.impls.inherent.entry(&f.name.text).or_default();
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
                // An operation does not determine its operands.
                Kind::Operation(..) => {}
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
            self.bounds.forget();
            self.p.impls.push(copy);
            let head = self.p.types.head(ty);
            self.p.impls_of.entry(up.id).or_default().entry(head).or_default().push(new);
        }
    }

    fn has_impl(&mut self, ty: Ty, of: &TraitRef) -> bool {
        let impls = self.p.impls_for(of.id, self.p.types.head(ty));
        impls.into_iter().any(|id| self.fits(id, ty, Some(of)))
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
            let constants = |c: &Self, params: &[ParamId]| -> Vec<Option<Prim>> {
                params.iter().map(|p| c.p.type_params[p.0 as usize].constant).collect()
            };
            if constants(self, &own_generics[own_first..]) != constants(self, &asked_generics[asked_first..]) {
                self.report(method_type::constants(span, &short(name), asked_span));
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
            // The bodies in the prelude's traits of operators are for primitive types only.
            let is_operator = self.p.traits[of.id.0 as usize].operator.is_some();
            let has_default = self.p.fns[wanted.0 as usize].ast.body.is_some() && !is_operator;
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
                for (other, g) in self.impls.inherent(name, self.p.types.head(ty)) {
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
        if let Some(prim) = self.operates_on_primitive(id, &of) {
            let (shown, bound) = (self.show(prim), short(&self.p.traits[of.id.0 as usize].ast.name.text));
            self.report(duplicate_impl::of_primitive(span, &bound, &shown));
            return;
        }
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
}
