//! Types that meet: unification, subtyping, and the conversions that a value gets where another type is expected.

use super::*;

/// How a value fits the expected type.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fit {
    Same,
    /// Its representation changes.
    Adjusted,
    Address,
    No,
}

impl Fit {
    fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::No, _) | (_, Fit::No) => Fit::No,
            (Fit::Same, Fit::Same) => Fit::Same,
            _ => Fit::Adjusted,
        }
    }
}

impl Checker<'_, '_> {
    pub(super) fn mismatch(&mut self, span: Span, from: Ty, to: Ty, why: Why) {
        if self.p.types.is_error(from) || self.p.types.is_error(to) {
            return;
        }
        let (found, expected) = (self.show(from), self.show(to));
        let mut diagnostic = type_mismatch::error(span, &found, &expected, why.0);
        let unit = TypeTable::UNIT;
        let (f, t) = (self.p.types.shallow(from), self.p.types.shallow(to));
        let is_literal = |c: &Self, t: Ty, class| c.p.types.as_var(t).is_some_and(|v| c.p.types.class(v) == class);
        let is_like = |c: &Self, t: Ty, class, like: fn(Prim) -> bool| {
            is_literal(c, t, class) || c.p.types.as_prim(t).is_some_and(like)
        };
        let is_number = |c: &Self, t: Ty| c.p.types.as_prim(t).is_some_and(|p| p != Prim::Bool);
        if matches!(self.p.types.kind(f), Kind::Fn(..))
            && !matches!(self.p.types.kind(t), Kind::Fn(..) | Kind::Generic(..))
        {
            diagnostic = diagnostic.hint(type_mismatch::CALL);
        } else if f == unit && t != unit {
            diagnostic = diagnostic.hint(type_mismatch::NO_VALUE);
        } else if t == unit {
            diagnostic = diagnostic.hint(type_mismatch::DROP);
        } else if is_number(self, f) && is_number(self, t) {
            diagnostic = diagnostic.hint(type_mismatch::convert(&expected));
        } else if let (Kind::Ptr { access: Access::Shared, to: a, .. }, Kind::Ptr { access: Access::Mut, to: b, .. }) =
            (self.p.types.kind(f), self.p.types.kind(t))
            && (self.p.types.shallow(a) == self.p.types.shallow(b) || self.p.types.as_var(a).is_some())
        {
            diagnostic = diagnostic.hint(type_mismatch::ADDRESS_MUT);
        } else if let (Kind::Array(a, _), Kind::Array(b, _)) = (self.p.types.kind(f), self.p.types.kind(t))
            && [a, b].iter().all(|elem| self.p.types.as_prim(*elem) == Some(Prim::U8))
        {
            diagnostic = diagnostic.hint(type_mismatch::TEXTS);
        } else if let Kind::Ptr { access: Access::Owned, to: pointee, .. } = self.p.types.kind(t)
            && self.p.types.shallow(pointee) == f
        {
            diagnostic = diagnostic.hint(type_mismatch::OWNED);
        } else if let Kind::Ptr { access: Access::Mut, .. } = self.p.types.kind(t)
            && !matches!(self.p.types.kind(f), Kind::Ptr { .. })
        {
            diagnostic = diagnostic.hint(type_mismatch::WRITE_MUT);
        } else if let Kind::Ptr { to: pointee, .. } = self.p.types.kind(f)
            && self.p.types.shallow(pointee) == t
        {
            diagnostic = diagnostic.hint(type_mismatch::POINTEE);
        } else if let [Some(int), _] | [_, Some(int)] = [(f, t), (t, f)].map(|(int, float)| {
            let wrong = is_literal(self, int, Class::Int) && is_like(self, float, Class::Float, Prim::is_float);
            wrong.then_some(int)
        }) {
            diagnostic = diagnostic.hint(type_mismatch::FLOAT_LITERAL);
            // The literal may be far away. Point at it, as the other code is not to blame.
            let mut literals = self.unit.literals();
            let literal = literals.find(|literal| self.p.types.shallow(literal.0) == int).map(|literal| literal.1);
            if let Some(literal) = literal.filter(|&l| l != span) {
                diagnostic = diagnostic.other(literal, type_mismatch::INTEGER);
            }
            self.p.types.unify(int, TypeTable::ERROR);
        } else if is_literal(self, f, Class::Float) && is_like(self, t, Class::Int, Prim::is_int) {
            diagnostic = diagnostic.hint(type_mismatch::INT_LITERAL);
        }
        self.report(diagnostic);
        // Types that stay open because of this error are not reported as well.
        for var in self.p.types.open_vars(from).into_iter().chain(self.p.types.open_vars(to)) {
            if self.p.types.class(var) == Class::Any {
                let var = self.p.types.mk(Kind::Var(var));
                self.p.types.poison(var);
            }
        }
    }

    pub(super) fn unify(&mut self, span: Span, from: Ty, to: Ty, why: Why) -> bool {
        let same = self.p.types.unify(from, to);
        if !same {
            self.mismatch(span, from, to, why);
        }
        same
    }

    /// Converts the value of `e`, of type `from`, to the expected type `to`.
    pub(super) fn coerce(&mut self, e: GlobalExpr, span: Span, from: Ty, to: Ty, why: Why) {
        let (from, to) = (self.p.types.shallow(from), self.p.types.shallow(to));
        if from == to {
            return;
        }
        if let Some(var) = self.p.types.as_var(from)
            && let Kind::Ptr { access, to: pointee, .. } = self.p.types.kind(to)
            && (access == Access::Shared || self.p.types.class(var) == Class::Any && self.is_address(e))
        {
            if self.p.types.class(var) == Class::Any {
                self.wait(var, Pending::Coerce { e, span, from, to, why });
                return;
            }
            // A literal is no pointer, so its address is taken.
            if self.p.types.unify(from, pointee) {
                self.take_address(e, to);
                return;
            }
            self.mismatch(span, from, to, why);
            return;
        }
        if let Kind::Generic(..) = self.p.types.kind(from)
            && !matches!(self.p.types.kind(to), Kind::Generic(..) | Kind::Ptr { .. } | Kind::Var(_) | Kind::Error)
        {
            let from = self.instantiate_value(e, from, None, span);
            return self.coerce(e, span, from, to, why);
        }
        match self.subtype(from, to) {
            Fit::Same => {}
            Fit::Adjusted => {
                self.p.adjust.insert(e, Adjust { to, derefs: 0, address: false });
            }
            Fit::Address => self.take_address(e, to),
            Fit::No => self.mismatch(span, from, to, why),
        }
    }

    /// Takes the address of `e`, as a pointer is expected.
    pub(super) fn take_address(&mut self, e: GlobalExpr, to: Ty) {
        self.p.adjust.insert(e, Adjust { to, derefs: 0, address: true });
        let (module, local) = self.locate(e);
        self.unit.check_later(Final::AutoAddress { module, e: local });
    }

    pub(super) fn is_address(&self, e: GlobalExpr) -> bool {
        let (module, local) = self.locate(e);
        matches!(self.p.modules[module][local].kind, ast::ExprKind::AddrOf { .. })
    }

    pub(super) fn locate(&self, e: GlobalExpr) -> (usize, ExprId) {
        let module = self.p.bases.partition_point(|&b| b <= e) - 1;
        (module, ExprId(e - self.p.bases[module]))
    }

    /// Whether `from` is a subtype of `to`. Open types are unified.
    pub(super) fn subtype(&mut self, from: Ty, to: Ty) -> Fit {
        let (from, to) = (self.p.types.shallow(from), self.p.types.shallow(to));
        if from == to || self.p.types.is_error(from) || self.p.types.is_error(to) {
            self.p.types.unify(from, to);
            return Fit::Same;
        }
        match (self.p.types.kind(from), self.p.types.kind(to)) {
            (Kind::Never, _) => Fit::Same,
            (Kind::Ptr { access: m, space: s, to: a }, Kind::Ptr { access: n, space: t, to: b }) => {
                let (a, b) = (self.p.types.shallow(a), self.p.types.shallow(b));
                let (ka, kb) = (self.p.types.kind(a), self.p.types.kind(b));
                if n == Access::Shared
                    && s == t
                    && matches!(kb, Kind::Ptr { .. })
                    && !matches!(ka, Kind::Ptr { .. } | Kind::Var(_))
                {
                    // `&&T` from a `&T`.
                    return match self.subtype(from, b) {
                        Fit::No => Fit::No,
                        _ => Fit::Address,
                    };
                }
                if s != t || m < n {
                    return Fit::No;
                }
                match (ka, kb) {
                    (Kind::Array(x, _), Kind::Indef(y)) => {
                        if self.p.types.unify(x, y) {
                            Fit::Adjusted
                        } else {
                            Fit::No
                        }
                    }
                    // If the inner pointer is only read, it may allow less: `&&mut T` is a `&&T`.
                    (Kind::Ptr { .. }, Kind::Ptr { .. }) if n == Access::Shared => match self.subtype_inside(a, b) {
                        Fit::Same => Fit::Same,
                        _ => Fit::No,
                    },
                    _ if self.p.types.unify(a, b) => Fit::Same,
                    _ => Fit::No,
                }
            }
            (Kind::Tuple(xs), Kind::Tuple(ys)) if xs.len() == ys.len() => {
                // Equal pairs of types are compared once. Otherwise types nested in types would take exponential time.
                let mut seen: FxHashSet<(Ty, Ty)> = FxHashSet::default();
                let mut fit = Fit::Same;
                for (&x, &y) in xs.iter().zip(ys.iter()).filter(|&(&x, &y)| seen.insert((x, y))) {
                    fit = fit.and(self.subtype_inside(x, y));
                }
                fit
            }
            (Kind::Array(x, n), Kind::Array(y, m)) => match self.p.types.unify(n, m) {
                true => self.subtype_inside(x, y),
                false => Fit::No,
            },
            (Kind::Fn(p, r), Kind::Fn(q, s)) => {
                if p.len() != q.len() {
                    return match self.p.types.match_arity(&p, r, &q, s) {
                        Some((a, b)) if self.p.types.unify(a, b) => Fit::Same,
                        _ => Fit::No,
                    };
                }
                let mut fit = Fit::Same;
                for (x, y) in p.iter().zip(q.iter()) {
                    fit = fit.and(self.subtype_inside(*y, *x));
                }
                if self.p.types.is_never(r) && !self.p.types.is_never(s) && self.p.types.as_var(s).is_none() {
                    // A function without return continuation never returns.
                    return fit.and(Fit::Adjusted);
                }
                fit.and(self.subtype_inside(r, s))
            }
            (Kind::Generic(b, _), Kind::Generic(c, _)) if b.len() <= c.len() => self.subtype_generic(from, to, c.len()),
            (_, Kind::Ptr { access: Access::Shared, space: 0, to: pointee })
                if !matches!(self.p.types.kind(from), Kind::Var(_)) =>
            {
                match (self.p.types.kind(from), self.p.types.kind(pointee)) {
                    (Kind::Ptr { .. }, _) => Fit::No,
                    (Kind::Array(x, _), Kind::Indef(y)) if self.p.types.unify(x, y) => Fit::Address,
                    _ => match self.subtype_inside(from, pointee) {
                        Fit::No => Fit::No,
                        _ => Fit::Address,
                    },
                }
            }
            _ if self.p.types.unify(from, to) => Fit::Same,
            _ => Fit::No,
        }
    }

    /// Whether a generic function type is a subtype of another one with `n` parameters.
    pub(super) fn subtype_generic(&mut self, from: Ty, to: Ty, n: usize) -> Fit {
        let generics = self.skolems(n);
        let skolems: Vec<Ty> = generics.iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        let (bounds, to) = self.p.types.open(to, &skolems);
        for (param, bounds) in generics.iter().zip(bounds) {
            self.p.type_params[param.0 as usize].bounds = bounds;
        }
        let args: Vec<Ty> = skolems.iter().map(|_| self.var()).collect();
        let (bounds, from) = self.p.types.open(from, &args);
        let fit = self.subtype_inside(from, to);
        let holds = |c: &mut Self, ty: &Ty, b: TraitRef| !matches!(c.meets(*ty, &b), Meets::No);
        if !args.iter().zip(bounds).all(|(ty, bounds)| bounds.into_iter().all(|b| holds(self, ty, b))) {
            return Fit::No;
        }
        if fit == Fit::Same { Fit::Adjusted } else { Fit::No }
    }

    /// New type parameters, to stand for any types.
    pub(super) fn skolems(&mut self, n: usize) -> Vec<ParamId> {
        let name = |i: usize| ((b'A' + (i % 26) as u8) as char).to_string();
        (0..n).map(|i| self.new_type_param(&name(i), Span::NONE)).collect()
    }

    /// Whether `from` is a subtype of `to` inside of a tuple, array or function, where no address is taken.
    pub(super) fn subtype_inside(&mut self, from: Ty, to: Ty) -> Fit {
        if self.p.types.as_var(from).is_some() || self.p.types.as_var(to).is_some() {
            return if self.p.types.unify(from, to) { Fit::Same } else { Fit::No };
        }
        match self.subtype(from, to) {
            Fit::Address => Fit::No,
            fit => fit,
        }
    }

    pub(super) fn wait(&mut self, var: u32, pending: Pending) {
        let number = self.unit.add(pending);
        self.p.types.wait(var, number);
    }

    /// Retries the constraints whose types are known now.
    pub(super) fn solve(&mut self) {
        while let Some(number) = self.p.types.ready.pop() {
            if let Some(pending) = self.unit.take(number) {
                self.retry(pending);
            }
        }
    }

    pub(super) fn retry(&mut self, pending: Pending) {
        match pending {
            Pending::Coerce { e, span, from, to, why } => self.coerce(e, span, from, to, why),
            Pending::Field { e, span, base, name, result, from } => self.field_of(e, span, base, name, result, from),
            Pending::Call { e, span, callee, args, result } => self.apply(e, span, callee, args, result),
            Pending::Deref { span, base, result } => self.deref(span, base, result),
            Pending::Address { e, place, access, to, result } => self.address(e, place, access, to, result),
            Pending::Method { e, base, name, result, from } => self.method(e, base, name, result, from),
            Pending::Bound { span, ty, of } => self.require(span, ty, of),
            Pending::Compare { e, span, op, ty, result } => self.compare(e, span, op, ty, result),
            Pending::Operator { e, left, right, result } => self.operate(e, left, right, result),
        }
    }
}
