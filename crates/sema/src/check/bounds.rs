//! Bounds: whether a type meets one. A type parameter meets its own bounds, super-traits included; other types need an
//! impl. A bound that mentions open types waits until only one impl is left, which then determines them.

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
    /// A primitive type and a trait of the prelude. The arguments of a trait of an operator are that type.
    Builtin,
}

/// The search for impls that bounds need, and answers that were found.
#[derive(Default)]
pub(super) struct Bounds {
    /// Items are being declared, so that not all impls are known.
    pub collecting: bool,
    /// Bounds that types in declarations must meet, checked once all impls are known.
    deferred: Vec<(Span, Ty, TraitRef)>,
    /// The nesting of searches for impls.
    depth: u32,
    /// The number of impls tried for the current bound.
    steps: u32,
    /// Memoized answers about types without variables, valid until an impl is added; and the bounds required so far.
    met: FxHashMap<(Ty, TraitRef), Meets>,
    required: FxHashSet<(Ty, TraitRef)>,
}

impl Bounds {
    /// Clears the memoized answers, which a new impl may change.
    pub fn forget(&mut self) {
        self.met.clear();
        self.required.clear();
    }

    /// Whether the search for impls has taken too long.
    fn is_endless(&mut self) -> bool {
        if self.depth == 0 {
            self.steps = 0;
        }
        self.depth > MAX_BOUNDS || self.steps > MAX_STEPS
    }
}

impl<'a> Checker<'a, '_> {
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
        let info = &self.p.traits[id.0 as usize];
        let params = info.generics[info.n_outer + 1..].to_vec();
        let n = params.len();
        let given = path.type_args.as_deref().unwrap_or(&[]);
        let mut args = self.trait_arguments(id, given, path.span);
        if args.len() != n {
            self.wrong_type_arguments(path.span, args.len(), &params, true);
            args.resize(n, TypeTable::ERROR);
        }
        Some(TraitRef { id, args: args.into() })
    }

    /// Checks the bounds that declarations require.
    pub(super) fn check_deferred(&mut self) {
        for (span, ty, of) in std::mem::take(&mut self.bounds.deferred) {
            self.require(span, ty, of);
        }
    }

    /// Requires that `ty` meets the bound, which is checked once all impls are known.
    pub(super) fn require_later(&mut self, span: Span, ty: Ty, of: TraitRef) {
        if self.bounds.collecting {
            self.bounds.deferred.push((span, ty, of));
        } else {
            self.require(span, ty, of);
        }
    }

    /// Requires that `ty` meets the bound, which may determine open types in it.
    pub(super) fn require(&mut self, span: Span, ty: Ty, of: TraitRef) {
        let ty = self.p.types.shallow(ty);
        if self.bounds.is_endless() {
            let (shown, bound) = (self.show(ty), self.show_bound(&of));
            self.report(unmet_bound::endless(span, &shown, &bound));
            return;
        }
        // Nothing is known of it yet: no need to look through all impls.
        let is_open = self.p.types.as_var(ty).is_some_and(|v| self.p.types.class(v) == Class::Any);
        let met = if is_open { Meets::Open } else { self.meets(ty, &of) };
        match met {
            Meets::Builtin => {
                if self.p.traits[of.id.0 as usize].operator.is_some() {
                    of.args.iter().for_each(|arg| {
                        self.p.types.unify(*arg, ty);
                    });
                }
            }
            Meets::Given(given) => self.equal_args(&given, &of),
            Meets::By(_) if self.is_closed(ty, &of) && !self.bounds.required.insert((ty, of.clone())) => {}
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
                let number = self.unit.add(Pending::Bound { span, ty, of });
                for var in open {
                    self.p.types.wait(var, number);
                }
            }
        }
    }

    pub(super) fn equal_args(&mut self, a: &TraitRef, b: &TraitRef) {
        for (x, y) in a.args.iter().zip(b.args.iter()) {
            self.p.types.unify(*x, *y);
        }
    }

    /// Unifies the types of the impl that meets the bound.
    pub(super) fn take_impl(&mut self, span: Span, id: ImplId, ty: Ty, of: &TraitRef) {
        let info = &self.p.impls[id.0 as usize];
        let (generics, own_ty, own_of) = (info.generics.clone(), info.ty, info.of.clone());
        let args = self.fresh_impl_args(id);
        let own_ty = self.p.types.instantiate(own_ty, &generics, &args);
        self.p.types.unify(own_ty, ty);
        if let Some(own_of) = own_of {
            let own_of = self.instantiate_bound(&own_of, &generics, &args);
            self.equal_args(&own_of, of);
        }
        self.bounds.depth += 1;
        self.require_bounds(span, &generics, &args);
        self.bounds.depth -= 1;
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
        if self.bounds.is_endless() {
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
                (Kind::Prim(p), _) if lang.has(p) => Meets::Builtin,
                (Kind::Var(v), _) => match (self.p.types.class(v), lang) {
                    (Class::Any | Class::Integral, _) | (Class::Num, Lang::Int | Lang::Float) => Meets::Open,
                    (Class::Int, Lang::Float) | (Class::Float, Lang::Int) => Meets::No,
                    _ => Meets::Builtin,
                },
                _ => Meets::No,
            };
        }
        let closed = !self.bounds.collecting && self.is_closed(ty, of);
        if let Some(operator) = self.p.traits[of.id.0 as usize].operator
            && self.has_operator(ty, operator)
            && of.args.iter().all(|arg| self.may_be(*arg, ty))
        {
            let is_only = closed || self.search(ty, of) == Meets::No;
            return if is_only { Meets::Builtin } else { Meets::Open };
        }
        if closed && let Some(met) = self.bounds.met.get(&(ty, of.clone())) {
            return met.clone();
        }
        let met = self.search(ty, of);
        if closed && !self.bounds.is_endless() {
            self.bounds.met.insert((ty, of.clone()), met.clone());
        }
        met
    }

    fn is_closed(&mut self, ty: Ty, of: &TraitRef) -> bool {
        !self.p.types.has_open_var(ty) && !of.args.iter().any(|a| self.p.types.has_open_var(*a))
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

    /// Whether the impl may apply to `ty`.
    pub(super) fn fits(&mut self, id: ImplId, ty: Ty, of: Option<&TraitRef>) -> bool {
        self.unmet_bounds(id, ty, of, 1).is_some_and(|unmet| unmet.is_empty())
    }

    /// At most `limit` bounds of the impl's parameters that keep it from applying to `ty`. `None` if its type is another.
    pub(super) fn unmet_bounds(
        &mut self,
        id: ImplId,
        ty: Ty,
        of: Option<&TraitRef>,
        limit: usize,
    ) -> Option<Vec<(Ty, TraitRef)>> {
        let info = &self.p.impls[id.0 as usize];
        let (generics, n_outer, own_ty, own_of) = (info.generics.clone(), info.n_outer, info.ty, info.of.clone());
        let mut holes: FxHashMap<ParamId, Ty> = generics[n_outer..].iter().map(|p| (*p, TypeTable::ERROR)).collect();
        if !self.p.types.may_match(own_ty, ty, &mut holes) {
            return None;
        }
        if let (Some(a), Some(b)) = (&own_of, of)
            && (a.id != b.id
                || !a.args.iter().zip(b.args.iter()).all(|(x, y)| self.p.types.may_match(*x, *y, &mut holes)))
        {
            return None;
        }
        // The arguments of the impl's parameters that are known must meet their bounds.
        if self.bounds.is_endless() {
            return Some(Vec::new());
        }
        self.bounds.depth += 1;
        self.bounds.steps += 1;
        let args: Vec<Ty> = generics
            .iter()
            .map(|p| match holes.get(p) {
                Some(&ty) if ty != TypeTable::ERROR => ty,
                Some(_) => self.var(),
                None => self.p.types.mk(Kind::Param(*p)),
            })
            .collect();
        let mut unmet = Vec::new();
        for (i, param) in generics.iter().enumerate().skip(n_outer) {
            // An open type is skipped: searching the impls that it might have would produce ever larger types.
            if matches!(self.p.types.kind(args[i]), Kind::Var(v) if matches!(self.p.types.class(v), Class::Any)) {
                continue;
            }
            for bound in self.p.type_params[param.0 as usize].bounds.clone() {
                let bound = self.instantiate_bound(&bound, &generics, &args);
                if unmet.len() < limit && self.meets(args[i], &bound) == Meets::No {
                    unmet.push((args[i], bound));
                }
            }
        }
        self.bounds.depth -= 1;
        Some(unmet)
    }
}
