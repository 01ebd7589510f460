//! Substitution in types: of variables that have a type, of type parameters, and of the parameters of generic function
//! types. Also decides whether a substitution can make one type equal to another.

use super::*;

impl TypeTable {
    /// The type with all bound variables replaced.
    pub fn resolve(&mut self, ty: Ty) -> Ty {
        let mut memo = FxHashMap::default();
        self.map(ty, &mut memo, &|t, ty| !t.has_var[ty.0 as usize], &|_, _| None)
    }

    /// The type with the type parameters `params` replaced by `args`.
    pub fn instantiate(&mut self, ty: Ty, params: &[ParamId], args: &[Ty]) -> Ty {
        if params.is_empty() || !self.has_param(ty) {
            return ty;
        }
        let mut memo = FxHashMap::default();
        self.map(ty, &mut memo, &|t, ty| !t.has_param[ty.0 as usize] && !t.has_var[ty.0 as usize], &|_, kind| {
            let Kind::Param(p) = kind else { return None };
            let place = params.iter().position(|q| q == p)?;
            Some(args.get(place).copied().unwrap_or(TypeTable::ERROR))
        })
    }

    /// The generic function type over `params`, with these bounds, from a function type that contains the parameters.
    pub fn generic(&mut self, params: &[ParamId], bounds: &[Vec<TraitRef>], ty: Ty) -> Ty {
        let of_bounds = bounds.iter().flatten().flat_map(|b| b.args.iter());
        let level = of_bounds.chain([&ty]).map(|t| self.levels[t.0 as usize]).max().unwrap_or(0).saturating_add(1);
        let args: Vec<Ty> = (0..params.len()).map(|i| self.mk(Kind::Bound(level, i as u32))).collect();
        let ty = self.instantiate(ty, params, &args);
        let bounds = bounds.iter().map(|b| self.instantiate_bounds(b, params, &args).into()).collect();
        self.mk(Kind::Generic(bounds, ty))
    }

    pub fn instantiate_bounds(&mut self, bounds: &[TraitRef], params: &[ParamId], args: &[Ty]) -> Vec<TraitRef> {
        let of = |t: &mut Self, b: &TraitRef| {
            let args = b.args.iter().map(|a| t.instantiate(*a, params, args)).collect();
            TraitRef { id: b.id, args }
        };
        bounds.iter().map(|b| of(self, b)).collect()
    }

    /// The function type that results from applying the generic type `ty` to these arguments, and the bounds of each
    /// argument.
    pub fn open(&mut self, ty: Ty, args: &[Ty]) -> (Vec<Vec<TraitRef>>, Ty) {
        let Kind::Generic(bounds, body) = self.kind(ty) else { return (Vec::new(), ty) };
        let level = self.levels[self.shallow(ty).0 as usize];
        let mut memo = FxHashMap::default();
        let mut of =
            |t: &mut Self, ty: Ty| {
                t.map(ty, &mut memo, &|t, ty| t.levels[ty.0 as usize] == 0 && !t.mentions_bound(ty), &|_, kind| {
                    match kind {
                        Kind::Bound(l, i) if *l == level => {
                            Some(args.get(*i as usize).copied().unwrap_or(TypeTable::ERROR))
                        }
                        _ => None,
                    }
                })
            };
        let body = of(self, body);
        let one = |t: &mut Self, b: &TraitRef, of: &mut dyn FnMut(&mut Self, Ty) -> Ty| TraitRef {
            id: b.id,
            args: b.args.iter().map(|a| of(t, *a)).collect(),
        };
        let bounds = bounds.iter().map(|bs| bs.iter().map(|b| one(self, b, &mut of)).collect()).collect();
        (bounds, body)
    }

    fn mentions_bound(&self, ty: Ty) -> bool {
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            if let Kind::Bound(..) = self.kinds[ty.0 as usize] {
                return true;
            }
            Self::children(&self.kinds[ty.0 as usize], &mut |t| work.push(t));
        }
        false
    }

    /// The type with parts replaced. `done` says in which types nothing is to be replaced; `f` returns the replacement
    /// of a kind, if it has one.
    fn map(
        &mut self,
        ty: Ty,
        memo: &mut FxHashMap<Ty, Ty>,
        done: &dyn Fn(&Self, Ty) -> bool,
        f: &dyn Fn(&Self, &Kind) -> Option<Ty>,
    ) -> Ty {
        let ty = self.shallow(ty);
        if done(self, ty) {
            return ty;
        }
        if let Some(&new) = memo.get(&ty) {
            return new;
        }
        let kind = self.kind(ty);
        let new = match f(self, &kind) {
            Some(new) => new,
            None => {
                let mut each =
                    |t: &mut Self, ts: &[Ty]| -> Arc<[Ty]> { ts.iter().map(|ty| t.map(*ty, memo, done, f)).collect() };
                match kind {
                    Kind::Error | Kind::Never | Kind::Var(_) | Kind::Param(_) | Kind::Bound(..) | Kind::Prim(_) => ty,
                    Kind::Const(_) => ty,
                    Kind::Operation(op, a, b) => {
                        let (a, b) = (self.map(a, memo, done, f), self.map(b, memo, done, f));
                        match a == TypeTable::ERROR || b == TypeTable::ERROR {
                            true => TypeTable::ERROR,
                            false => self.mk(Kind::Operation(op, a, b)),
                        }
                    }
                    Kind::Tuple(parts) => {
                        let parts = each(self, &parts);
                        self.mk(Kind::Tuple(parts))
                    }
                    Kind::Struct(id, args) => {
                        let args = each(self, &args);
                        self.mk(Kind::Struct(id, args))
                    }
                    Kind::Enum(id, args) => {
                        let args = each(self, &args);
                        self.mk(Kind::Enum(id, args))
                    }
                    Kind::Array(t, n) => {
                        let (t, n) = (self.map(t, memo, done, f), self.map(n, memo, done, f));
                        self.mk(Kind::Array(t, n))
                    }
                    Kind::Simd(t, n) => {
                        let (t, n) = (self.map(t, memo, done, f), self.map(n, memo, done, f));
                        self.mk(Kind::Simd(t, n))
                    }
                    Kind::Indef(t) => {
                        let t = self.map(t, memo, done, f);
                        self.mk(Kind::Indef(t))
                    }
                    Kind::Ptr { access, space, to } => {
                        let to = self.map(to, memo, done, f);
                        self.mk(Kind::Ptr { access, space, to })
                    }
                    Kind::Fn(params, result) => {
                        let params = each(self, &params);
                        let result = self.map(result, memo, done, f);
                        self.func(&params, result)
                    }
                    Kind::Generic(bounds, body) => {
                        let level = self.levels[ty.0 as usize];
                        let new_body = self.map(body, memo, done, f);
                        let mut new_bounds = Vec::with_capacity(bounds.len());
                        for bs in bounds.iter() {
                            let one = |t: &mut Self, b: &TraitRef, memo: &mut FxHashMap<Ty, Ty>| TraitRef {
                                id: b.id,
                                args: b.args.iter().map(|a| t.map(*a, memo, done, f)).collect(),
                            };
                            new_bounds.push(bs.iter().map(|b| one(self, b, memo)).collect::<Arc<[TraitRef]>>());
                        }
                        self.relevel(level, new_bounds, new_body)
                    }
                }
            }
        };
        memo.insert(ty, new);
        new
    }

    /// The generic type made of parts in which its parameters have the level `old`, which may no longer be the right
    /// one.
    fn relevel(&mut self, old: u8, bounds: Vec<Arc<[TraitRef]>>, body: Ty) -> Ty {
        let args = bounds.iter().flat_map(|b| b.iter()).flat_map(|b| b.args.iter());
        let new = args.chain([&body]).map(|t| self.levels[t.0 as usize]).max().unwrap_or(0).saturating_add(1);
        if new == old {
            return self.mk(Kind::Generic(bounds.into(), body));
        }
        let rename: Vec<Ty> = (0..bounds.len()).map(|i| self.mk(Kind::Bound(new, i as u32))).collect();
        let mut memo = FxHashMap::default();
        let mut of = |t: &mut Self, ty: Ty| {
            t.map(ty, &mut memo, &|t, ty| !t.mentions_bound(ty), &|_, kind| match kind {
                Kind::Bound(l, i) if *l == old => rename.get(*i as usize).copied(),
                _ => None,
            })
        };
        let body = of(self, body);
        let mut new_bounds = Vec::with_capacity(bounds.len());
        for bs in &bounds {
            let mut renamed = Vec::with_capacity(bs.len());
            for b in bs.iter() {
                renamed.push(TraitRef { id: b.id, args: b.args.iter().map(|a| of(self, *a)).collect() });
            }
            new_bounds.push(Arc::from(renamed));
        }
        self.mk(Kind::Generic(new_bounds.into(), body))
    }

    /// The variables that are open in `ty`.
    pub fn open_vars(&self, ty: Ty) -> Vec<u32> {
        let mut out = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            let ty = self.shallow(ty);
            if !self.has_var[ty.0 as usize] || !seen.insert(ty) {
                continue;
            }
            match self.kinds[ty.0 as usize] {
                Kind::Var(v) => out.push(v),
                _ => Self::children(&self.kinds[ty.0 as usize], &mut |t| work.push(t)),
            }
        }
        out
    }

    /// Whether `ty` may be an instance of `pattern`, in which `holes` stand for any types. Variables in `ty` may stand
    /// for any types that fit, but are not bound.
    pub fn may_match(&mut self, pattern: Ty, ty: Ty, holes: &mut FxHashMap<ParamId, Ty>) -> bool {
        let (pattern, ty) = (self.shallow(pattern), self.shallow(ty));
        if ty == TypeTable::ERROR || pattern == TypeTable::ERROR {
            return true;
        }
        let all = |t: &mut Self, xs: &[Ty], ys: &[Ty], holes: &mut FxHashMap<ParamId, Ty>| {
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| t.may_match(*x, *y, holes))
        };
        match (self.kind(pattern), self.kind(ty)) {
            (Kind::Param(p), _) if holes.contains_key(&p) => {
                let old = holes[&p];
                if old == TypeTable::ERROR {
                    holes.insert(p, ty);
                    return true;
                }
                let open = self.has_var[old.0 as usize] || self.has_var[ty.0 as usize];
                open || self.resolve(old) == self.resolve(ty)
            }
            (kind, Kind::Var(v)) => match (self.class(v), kind) {
                (Class::Any, _) => true,
                (Class::Num, Kind::Prim(p)) => p != Prim::Bool,
                (Class::Integral, Kind::Prim(_) | Kind::Param(_)) => true,
                (Class::Int, Kind::Prim(p)) => p.is_int(),
                (Class::Float, Kind::Prim(p)) => p.is_float(),
                _ => false,
            },
            (Kind::Var(_), _) => true,
            (Kind::Tuple(x), Kind::Tuple(y)) => all(self, &x, &y, holes),
            (Kind::Struct(i, x), Kind::Struct(j, y)) => i == j && all(self, &x, &y, holes),
            (Kind::Enum(i, x), Kind::Enum(j, y)) => i == j && all(self, &x, &y, holes),
            (Kind::Array(x, n), Kind::Array(y, m)) | (Kind::Simd(x, n), Kind::Simd(y, m)) => {
                self.may_match(n, m, holes) && self.may_match(x, y, holes)
            }
            (Kind::Operation(..), _) | (_, Kind::Operation(..)) => {
                let (pattern, ty) = (self.resolve(pattern), self.resolve(ty));
                pattern == ty || self.has_var[pattern.0 as usize] || self.has_var[ty.0 as usize]
            }
            (Kind::Indef(x), Kind::Indef(y)) => self.may_match(x, y, holes),
            (Kind::Ptr { access: m, space: s, to: x }, Kind::Ptr { access: n, space: t, to: y }) => {
                m == n && s == t && self.may_match(x, y, holes)
            }
            (Kind::Fn(p, r), Kind::Fn(q, s)) => all(self, &p, &q, holes) && self.may_match(r, s, holes),
            (x, y) => x == y,
        }
    }
}
