//! Operators that types get by impls of the prelude's traits: calls of their methods, and places by `Index`. In an
//! instance whose types are primitive, they are the built-in operators.

use super::*;
use nyala_syntax::ast::BinaryOp;

/// The method of an operator, selected for the types of the instance.
pub(super) struct Method {
    f: FnId,
    args: Arc<[Ty]>,
    /// The type of the left operand.
    this: Ty,
}

/// The operands of a binary operator.
pub(super) enum Operands {
    Read(ExprId, ExprId),
    Values(Val, Val),
}

impl Lowerer<'_, '_, '_> {
    /// The method that the operator `e` calls, if a trait gives its operands the operator.
    pub(super) fn operator_method(&mut self, e: ExprId) -> Option<Method> {
        let g = self.g(e);
        let Some(Entity::Fn(f)) = self.p.resolved.get(&g) else { return None };
        let FnOwner::Trait(of) = self.p.fns[f.0 as usize].owner else { return None };
        self.p.traits[of.0 as usize].operator?;
        let args = self.args_of(g);
        let this = args[0];
        Some(Method { f: *f, args, this })
    }

    /// Whether values of this type have the operator without an impl.
    pub(super) fn has_operator(&self, ty: Ty, operator: Operator) -> bool {
        match self.kind(ty) {
            Kind::Prim(p) => operator.takes(p),
            Kind::Simd(lane, _) => self.types.as_prim(lane).is_some_and(|p| operator.takes_lanes(p)),
            _ => false,
        }
    }

    /// Whether the method is that of a primitive type: no impl is selected.
    fn is_built_in(&mut self, method: &Method) -> bool {
        self.implementation(method.f, method.args.clone()).0 == method.f
    }

    pub(super) fn by_method(&mut self, method: Method, op: BinaryOp, operands: Operands, span: Span) -> Val {
        let built_in = self.is_built_in(&method);
        let swapped = matches!(op, BinaryOp::Gt | BinaryOp::Le);
        if let (Operands::Read(lhs, rhs), false, Mode::Filter) = (&operands, built_in, self.mode) {
            let sides = if swapped { [*rhs, *lhs] } else { [*lhs, *rhs] };
            let val = self.call_in_filter(method.f, method.args, &sides, span);
            return self.maybe_not(op, val);
        }
        let (a, b) = match operands {
            Operands::Read(lhs, rhs) => (self.value(lhs), self.value(rhs)),
            Operands::Values(a, b) => (a, b),
        };
        self.w.set_origin(span);
        if built_in {
            return self.binary(op, a, b, method.this, span);
        }
        let vals = if swapped { vec![b, a] } else { vec![a, b] };
        let val = self.call_method(method, vals, span);
        self.maybe_not(op, val)
    }

    /// `!=`, `<=` and `>=` are the opposites of what the methods say.
    fn maybe_not(&mut self, op: BinaryOp, val: Val) -> Val {
        if matches!(op, BinaryOp::Ne | BinaryOp::Le | BinaryOp::Ge) { self.w.not(val) } else { val }
    }

    pub(super) fn unary_method(&mut self, method: Method, inner: ExprId, span: Span) -> Val {
        let built_in = self.is_built_in(&method);
        if !built_in && self.mode == Mode::Filter {
            return self.call_in_filter(method.f, method.args, &[inner], span);
        }
        let val = self.value(inner);
        self.w.set_origin(span);
        let FnOwner::Trait(of) = self.p.fns[method.f.0 as usize].owner else { return val };
        match self.p.traits[of.0 as usize].operator {
            Some(Operator::Neg) if built_in => self.negate(val),
            _ if built_in => self.w.not(val),
            _ => self.call_method(method, vec![val], span),
        }
    }

    /// The address that the method of `Index` gives for `callee(args)`.
    pub(super) fn place_by_method(&mut self, e: ExprId, callee: ExprId, args: &[ExprId], span: Span) -> Val {
        let method = self.operator_method(e);
        let receiver = self.value(callee);
        let mut vals: Vec<Val> = args.iter().map(|a| self.value(*a)).collect();
        self.w.set_origin(span);
        let index = if let [one] = vals[..] { one } else { self.w.op(Op::Tuple, &vals) };
        vals = vec![receiver, index];
        match method {
            Some(method) if self.alive() && (self.mode == Mode::Code || self.mem(span).is_some()) => {
                self.call_method(method, vals, span)
            }
            _ => {
                let ty = self.ty_of(e);
                let ty = self.ir_ty(ty);
                let ty = self.w.types.ptr(ty);
                self.w.undef(ty)
            }
        }
    }

    fn call_method(&mut self, method: Method, vals: Vec<Val>, span: Span) -> Val {
        let info = &self.p.fns[method.f.0 as usize];
        let ty = self.types.instantiate(info.ty, &info.generics, &method.args);
        let Kind::Fn(_, result) = self.kind(ty) else { return self.w.unit() };
        if !self.alive() {
            return self.undef(result);
        }
        if self.mode != Mode::Code {
            self.mem(span);
            return self.undef(result);
        }
        let f = self.fn_val(method.f, method.args, span);
        self.call_with(f, vals, result, None)
    }
}
