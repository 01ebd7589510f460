//! Operators: those of primitive types, and those that types get by impls of the prelude's traits of operators. A trait is
//! used where an operand is a struct, enum, tuple or array, or a type parameter whose bounds do not allow the operator.
//! All other operands have one type, which must be primitive.

use super::*;
use nyala_syntax::ast::{BinaryOp, ExprKind, UnaryOp};

impl<'a> Checker<'a, '_> {
    pub(super) fn binary(
        &mut self,
        e: ExprId,
        op: BinaryOp,
        op_span: Span,
        lhs: ExprId,
        rhs: ExprId,
        expected: Option<Ty>,
    ) -> Ty {
        let ast = self.ast();
        let bool = self.prim(Prim::Bool);
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            self.operand_to(lhs, bool, Why(Some((op_span, "operands of this are `bool`"))));
            // The right operand may not return.
            self.expr_to(rhs, bool, Why(Some((op_span, "operands of this are `bool`"))));
            return bool;
        }
        let hint = expected.filter(|t| !op.is_comparison() && !self.is_overloadable(*t, op));
        let left = self.operand(lhs, hint);
        let hint = (op.is_comparison() || !self.is_overloadable(left, op)).then_some(left);
        let right = self.operand(rhs, hint);
        let why = Why(Some((ast[lhs].span, "the other operand")));
        if op.is_comparison() && matches!(self.p.types.kind(left), Kind::Ptr { .. }) {
            let fit = self.subtype(right, left);
            let fit = if fit == Fit::No { self.subtype(left, right) } else { fit };
            if fit == Fit::No || fit == Fit::Address {
                self.mismatch(ast[rhs].span, right, left, why);
            }
            return bool;
        }
        if !op.is_comparison() && self.may_be_overloaded(op, left, right) {
            let (g, result) = (self.g(e), self.var());
            self.operate(g, left, Some(right), result);
            return self.p.types.shallow(result);
        }
        if !self.unify(ast[rhs].span, right, left, why) {
            let compares = |e: ExprId| matches!(&ast[e].kind, ExprKind::Binary { op, .. } if op.is_comparison());
            if op.is_comparison()
                && (compares(lhs) || compares(rhs))
                && let Some(diagnostic) = self.sink.diagnostics.last_mut()
            {
                diagnostic.hints = vec![type_mismatch::COMPARISONS.into()];
            }
            return if op.is_comparison() { bool } else { TypeTable::ERROR };
        }
        if op.is_comparison() {
            let (g, result) = (self.g(e), self.var());
            self.compare(g, op_span, op.text(), left, result);
            return self.p.types.shallow(result);
        }
        self.arithmetic(op, left, op_span);
        left
    }

    /// Checks a comparison of two values of type `ty`. Its result is a `bool`, or one for each lane.
    pub(super) fn compare(&mut self, e: GlobalExpr, span: Span, op: &'static str, ty: Ty, result: Ty) {
        let bool = self.prim(Prim::Bool);
        let operator = if matches!(op, "==" | "!=") { Operator::Eq } else { Operator::Less };
        let compared = match self.p.types.kind(ty) {
            Kind::Var(var) if self.p.types.class(var) == Class::Any => {
                return self.wait(var, Pending::Compare { e, span, op, ty, result });
            }
            Kind::Simd(_, n) => self.p.types.mk(Kind::Simd(bool, n)),
            _ => bool,
        };
        if self.has_traits(ty, operator) {
            if !self.by_trait(e, span, operator, ty, &[]) {
                self.no_operator(span, op, operator, ty, None);
            }
        } else {
            self.unit.check_later(Final::Operand { op, want: Want::Comparable, ty, span });
        }
        self.unify(span, compared, result, NO_WHY);
    }

    /// Checks that the operands of `op` may have type `ty`.
    pub(super) fn arithmetic(&mut self, op: BinaryOp, ty: Ty, span: Span) {
        use BinaryOp::*;
        let want = match op {
            Add | Sub | Mul | Div | Rem => {
                self.p.types.make_number(ty);
                Want::Number
            }
            Shl | Shr => {
                self.p.types.make_number(ty);
                Want::Integer
            }
            _ => Want::IntegerOrBool,
        };
        self.unit.check_later(Final::Operand { op: op.text(), want, ty, span });
    }

    // Operators by traits.

    /// Whether only a trait can give values of this type the operator.
    fn has_traits(&mut self, ty: Ty, operator: Operator) -> bool {
        match self.p.types.kind(ty) {
            Kind::Struct(..) | Kind::Enum(..) | Kind::Tuple(_) | Kind::Array(..) => true,
            Kind::Param(p) => !self.has_lang(p, operator.langs()),
            _ => false,
        }
    }

    pub(super) fn is_overloadable(&mut self, ty: Ty, op: BinaryOp) -> bool {
        Operator::of(op).is_some_and(|operator| self.has_traits(ty, operator))
    }

    /// Whether an operator with such operands may need a trait, as far as known.
    pub(super) fn may_be_overloaded(&mut self, op: BinaryOp, left: Ty, right: Ty) -> bool {
        [left, right].into_iter().any(|ty| self.is_overloadable(ty, op) || self.open_result(ty).is_some())
    }

    /// The variable, if `ty` is the result of an operator whose impl is still open.
    pub(super) fn open_result(&mut self, ty: Ty) -> Option<u32> {
        let ty = self.p.types.shallow(ty);
        let var = self.p.types.as_var(ty).filter(|v| self.p.types.class(*v) == Class::Any)?;
        let is_result = (0..self.unit.operated.len()).any(|i| self.p.types.shallow(self.unit.operated[i]) == ty);
        is_result.then_some(var)
    }

    /// `-x` or `!x` of a type that gets the operator by a trait. `None` if it is built in.
    pub(super) fn unary_by_trait(&mut self, e: ExprId, ty: Ty) -> Option<Ty> {
        let ExprKind::Unary(op, _) = self.ast()[e].kind else { return None };
        let operator = if op == UnaryOp::Neg { Operator::Neg } else { Operator::Not };
        if !self.has_traits(ty, operator) && self.open_result(ty).is_none() {
            return None;
        }
        let (g, result) = (self.g(e), self.var());
        self.operate(g, ty, None, result);
        Some(self.p.types.shallow(result))
    }

    /// Checks the operator `e` with operands of these types, some of which may need a trait. Its result has type `result`.
    pub(super) fn operate(&mut self, e: GlobalExpr, left: Ty, right: Option<Ty>, result: Ty) {
        let (module, local) = self.locate(e);
        let ast = self.p.modules[module];
        let (operator, text, span, sides) = match &ast[local].kind {
            ExprKind::Binary { op, op_span, lhs, rhs }
            | ExprKind::Assign { op: Some(op), op_span, place: lhs, value: rhs } => match Operator::of(*op) {
                Some(operator) => (operator, op.text(), *op_span, Some((*op, *lhs, *rhs))),
                None => return,
            },
            ExprKind::Unary(UnaryOp::Neg, _) => (Operator::Neg, "-", ast[local].span, None),
            ExprKind::Unary(op, _) => (Operator::Not, op.text(), ast[local].span, None),
            _ => return,
        };
        let by_trait = self.has_traits(left, operator) || right.is_some_and(|r| self.has_traits(r, operator));
        let any = self.p.types.as_var(left).filter(|v| self.p.types.class(*v) == Class::Any);
        let waits = match (by_trait, right) {
            (true, _) => any,
            (false, None) => self.open_result(left),
            (false, Some(right)) => self.open_result(left).or_else(|| self.open_result(right)),
        };
        if let Some(var) = waits {
            self.unit.operated.push(result);
            return self.wait(var, Pending::Operator { e, left, right, result });
        }
        if by_trait {
            let args: Vec<Ty> = right.into_iter().chain([result]).collect();
            if self.by_trait(e, span, operator, left, &args) {
                self.unit.operated.push(result);
                self.unit.check_later(Final::Known { ty: result, span, what: "the result of this operator" });
                return;
            }
            let is_param = matches!(self.p.types.kind(left), Kind::Param(_));
            if !is_param {
                self.no_operator(span, text, operator, left, right);
                return self.p.types.poison(result);
            }
        }
        match (sides, right) {
            (Some((op, lhs, rhs)), Some(right)) => {
                let why = Why(Some((ast[lhs].span, "the other operand")));
                if !self.unify(ast[rhs].span, right, left, why) {
                    return self.p.types.poison(result);
                }
                self.arithmetic(op, left, span);
            }
            _ => {
                let want = if operator == Operator::Neg { Want::Number } else { Want::IntegerOrBool };
                if operator == Operator::Neg {
                    self.p.types.make_number(left);
                }
                self.unit.check_later(Final::Operand { op: text, want, ty: left, span });
            }
        }
        self.unify(span, left, result, NO_WHY);
    }

    /// Lets the expression `e` be a call of the method of `operator`'s trait, if `ty` may have the trait with these
    /// arguments.
    fn by_trait(&mut self, e: GlobalExpr, span: Span, operator: Operator, ty: Ty, args: &[Ty]) -> bool {
        let Some(&id) = self.p.operators.get(&operator) else { return false };
        let of = TraitRef { id, args: args.into() };
        match self.meets(ty, &of) {
            Meets::No => return false,
            // It determines the type of a literal, too.
            Meets::By(found) => self.take_impl(span, found, ty, &of),
            met => {
                if met == Meets::Open {
                    self.common_result(ty, &of);
                }
                self.require(span, ty, of.clone());
            }
        }
        let Some(&method) = self.p.traits[id.0 as usize].methods.values().next() else { return false };
        let all = self.trait_args(ty, &of);
        self.p.type_args.insert(e, all);
        self.p.resolved.insert(e, Entity::Fn(method));
        self.uses.fns.insert(method);
        true
    }

    /// Determines the result, the last argument of the trait, if all impls that may apply agree on it.
    fn common_result(&mut self, ty: Ty, of: &TraitRef) {
        let Some(&result) = of.args.last() else { return };
        let mut common = None;
        for id in self.p.impls_for(of.id, self.p.types.head(ty)) {
            if !self.fits(id, ty, Some(of)) {
                continue;
            }
            let info = &self.p.impls[id.0 as usize];
            let (generics, n_outer, own_ty, own_of) = (info.generics.clone(), info.n_outer, info.ty, info.of.clone());
            let Some(&own_result) = own_of.as_ref().and_then(|own| own.args.last()) else { return };
            let mut holes: FxHashMap<ParamId, Ty> =
                generics[n_outer..].iter().map(|p| (*p, TypeTable::ERROR)).collect();
            self.p.types.may_match(own_ty, ty, &mut holes);
            let arg =
                |c: &mut Self, p: &ParamId| holes.get(p).copied().unwrap_or_else(|| c.p.types.mk(Kind::Param(*p)));
            let args: Vec<Ty> = generics.iter().map(|p| arg(self, p)).collect();
            if args.contains(&TypeTable::ERROR) {
                return;
            }
            let own_result = self.p.types.instantiate(own_result, &generics, &args);
            let own_result = self.p.types.resolve(own_result);
            if common.is_some_and(|c| c != own_result) {
                return;
            }
            common = Some(own_result);
        }
        // A primitive type has the operator with itself, too.
        let built_in = self.p.types.as_prim(ty).is_some();
        if let (Some(common), false) = (common, built_in) {
            self.p.types.unify(common, result);
        }
    }

    /// Whether the operator `e` is a call of a trait's method.
    pub(super) fn is_overloaded(&self, e: ExprId) -> bool {
        let is_operator = matches!(self.ast()[e].kind, ExprKind::Binary { .. } | ExprKind::Unary(..));
        is_operator && self.p.resolved.contains_key(&self.g(e))
    }

    fn no_operator(&mut self, span: Span, text: &str, operator: Operator, left: Ty, right: Option<Ty>) {
        if self.p.types.is_error(left) || right.is_some_and(|r| self.p.types.is_error(r)) {
            return;
        }
        let (ty, other) = (self.show(left), right.map(|r| self.show(r)));
        self.report(bad_operand::no_impl(span, text, &format!("{operator:?}"), &ty, other.as_deref()));
    }

    /// Whether a type has the operator without an impl.
    pub(super) fn has_operator(&mut self, ty: Ty, operator: Operator) -> bool {
        match self.p.types.kind(ty) {
            Kind::Prim(p) => operator.takes(p),
            Kind::Simd(lane, _) => self.p.types.as_prim(lane).is_some_and(|p| operator.takes_lanes(p)),
            Kind::Param(p) => self.has_lang(p, operator.langs()),
            Kind::Var(var) => match self.p.types.class(var) {
                Class::Any => false,
                Class::Integral | Class::Num | Class::Int => operator.takes(Prim::I32),
                Class::Float => operator.takes(Prim::F64),
            },
            _ => false,
        }
    }

    /// Whether both may be the same type.
    pub(super) fn may_be(&mut self, a: Ty, b: Ty) -> bool {
        let (a, b) = (self.p.types.shallow(a), self.p.types.shallow(b));
        let both_open = self.p.types.as_var(a).is_some() && self.p.types.as_var(b).is_some();
        let mut none = FxHashMap::default();
        a == b || both_open || self.p.types.may_match(a, b, &mut none) && self.p.types.may_match(b, a, &mut none)
    }

    /// The primitive type, if an impl of an operator's trait is for one that has the operator anyway.
    pub(super) fn operates_on_primitive(&mut self, id: ImplId, of: &TraitRef) -> Option<Ty> {
        let operator = self.p.traits[of.id.0 as usize].operator?;
        for prim in Prim::ALL {
            let ty = self.prim(prim);
            let same = TraitRef { id: of.id, args: of.args.iter().map(|_| ty).collect() };
            if operator.takes(prim) && self.fits(id, ty, Some(&same)) {
                return Some(ty);
            }
        }
        None
    }

    // Places by `Index`.

    /// Checks `x(i)` for an `x` of type `target`, behind the pointers of `callee`, which gets a place by an impl of `Index`.
    /// `None` if it has none at all.
    pub(super) fn index_by_trait(
        &mut self,
        e: GlobalExpr,
        span: Span,
        callee: Ty,
        target: Ty,
        args: &[Arg],
    ) -> Option<Ty> {
        let &id = self.p.operators.get(&Operator::Index)?;
        let addresses = [Access::Mut, Access::Shared].map(|access| self.p.types.ptr(access, target));
        let mut candidates = std::iter::once(target).chain(addresses);
        let this = candidates.find(|ty| self.has_index(*ty, id))?;
        let index = match args {
            [one] => one.ty,
            _ => {
                let tys: Vec<Ty> = args.iter().map(|a| a.ty).collect();
                self.p.types.tuple(&tys)
            }
        };
        let pointer = self.var();
        if !self.by_trait(e, span, Operator::Index, this, &[index, pointer]) {
            let (found, ty) = (self.show(index), self.show(target));
            self.report(bad_index::no_impl(span, &found, &ty));
            return Some(TypeTable::ERROR);
        }
        self.p.call_kind.insert(e, CallKind::Place);
        self.unit.operated.push(pointer);
        let (mut at, mut derefs) = (self.p.types.shallow(callee), 0);
        while let Kind::Ptr { to, .. } = self.p.types.kind(at) {
            (at, derefs) = (self.p.types.shallow(to), derefs + 1);
        }
        if let Some(receiver) = self.callee_expr(e) {
            let (module, receiver) = self.locate(receiver);
            let from = Asker { ns: self.at.ns, looped: None };
            self.receive(module, receiver, callee, (target, derefs), this, from);
        }
        let result = self.var();
        self.deref(span, pointer, result);
        Some(self.p.types.shallow(result))
    }

    fn has_index(&mut self, ty: Ty, id: TraitId) -> bool {
        if let Kind::Param(param) = self.p.types.kind(ty)
            && self.bounds_of(param).iter().any(|b| b.id == id)
        {
            return true;
        }
        let impls = self.p.impls_for(id, self.p.types.head(ty));
        impls.into_iter().any(|id| self.fits(id, ty, None))
    }
}
