//! Constants of instances: whether their values are possible, and the branches that they rule out. An `if` whose
//! condition is computed from `const` parameters has only one branch in each instance, so that a function may need
//! itself for ever smaller constants. Separate from instances, which treat constants as types.

use super::*;
use crate::types::Const;
use nyala_syntax::ast::{BinaryOp, ExprKind, UnaryOp};

impl Lowerer<'_, '_, '_> {
    /// Reports a constant in a type of the current instance that has a value that it must not have.
    pub(super) fn report_fault(&mut self, span: Span) {
        if let Some(fault) = self.types.fault.take() {
            self.report_once(bad_constant::fault(span, fault));
        }
    }

    /// Reports an error unless a part of its place, or the whole around it, has it.
    fn report_once(&mut self, diagnostic: Diagnostic) {
        let at = diagnostic.primary.span;
        let is_reported = |d: &Diagnostic| {
            let old = d.primary.span;
            d.message == diagnostic.message && old.file == at.file && old.lo < at.hi && at.lo < old.hi
        };
        if !self.sink.diagnostics.iter().any(is_reported) {
            self.sink.push(diagnostic);
        }
    }

    /// Reports constants among the arguments of an instance that are no values of their parameters' types, and those
    /// in its type that are not possible.
    pub(super) fn has_bad_constant(&mut self, params: &[ParamId], args: &[Ty], span: Span) -> bool {
        let mut bad = self.types.fault.is_some();
        self.report_fault(span);
        for (param, &arg) in params.iter().zip(args) {
            let info = &self.p.type_params[param.0 as usize];
            let Some(prim) = info.constant else { continue };
            match self.types.as_const(arg) {
                Some(value) if value.fits(prim) => {}
                Some(value) => {
                    let name = short(&info.name);
                    self.report_once(bad_constant::argument(span, &value.show(), &name, prim.name()));
                    bad = true;
                }
                None => bad = true,
            }
        }
        bad
    }

    /// An instance as a user writes it.
    pub(super) fn show_instance(&self, name: &str, args: &[Ty]) -> String {
        let args: Vec<String> = args.iter().map(|a| self.types.show(*a, self.p)).collect();
        format!("{}[{}]", short(name), args.join(", "))
    }

    /// The name of an instance in the graph: with its arguments, if there are constants among them.
    pub(super) fn instance_name(&self, name: &str, params: &[ParamId], args: &[Ty]) -> String {
        if !params.iter().any(|p| self.p.type_params[p.0 as usize].constant.is_some()) {
            return name.to_string();
        }
        let mut out = name.to_string();
        for &arg in args {
            let shown = short(&self.types.show(arg, self.p)).replace('-', "minus");
            for part in shown.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty()) {
                out.push('_');
                out.push_str(part);
            }
        }
        out
    }

    /// The arms of an `if` that constants do not rule out. One that is taken for certain is the last.
    pub(super) fn live_arms(
        &mut self,
        arms: &[(ExprId, ExprId)],
        otherwise: Option<ExprId>,
    ) -> (Vec<(ExprId, ExprId)>, Option<ExprId>) {
        let mut live = Vec::with_capacity(arms.len());
        for &(cond, then) in arms {
            match self.fixed(cond) {
                Some((Const::Bool(true), true)) => return (live, Some(then)),
                Some((Const::Bool(false), true)) => {}
                _ => live.push((cond, then)),
            }
        }
        (live, otherwise)
    }

    /// The value of an expression over literals and `const` parameters, and whether there are any of the latter.
    fn fixed(&mut self, e: ExprId) -> Option<(Const, bool)> {
        let pair = |l: &mut Self, op: BinaryOp, a: Const, b: Const| {
            let (a, b) = (l.types.mk(Kind::Const(a)), l.types.mk(Kind::Const(b)));
            let value = l.types.operation(op, a, b)?;
            l.types.as_const(value)
        };
        let (value, has_param) = match &self.ast()[e].kind {
            ExprKind::Int { value, .. } => (Const::Int(i128::try_from(*value).ok()?), false),
            ExprKind::Char(c) => (Const::Int((*c).into()), false),
            ExprKind::Bool(b) => (Const::Bool(*b), false),
            ExprKind::Path(_) => {
                let Some(Entity::Type(param)) = self.p.resolved.get(&self.g(e)) else { return None };
                let value = self.mono(*param);
                (self.types.as_const(value)?, true)
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let (value, has_param) = self.fixed(*inner)?;
                (pair(self, BinaryOp::Sub, Const::Int(0), value)?, has_param)
            }
            ExprKind::Unary(UnaryOp::Not, inner) => match self.fixed(*inner)? {
                (Const::Bool(b), has_param) => (Const::Bool(!b), has_param),
                _ => return None,
            },
            // The second operand does not matter if the first one decides.
            ExprKind::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), lhs, rhs, .. } => match self.fixed(*lhs)? {
                (Const::Bool(a), x) if a == (*op == BinaryOp::Or) => (Const::Bool(a), x),
                (Const::Bool(_), a) => {
                    let (b, has_param) = self.fixed(*rhs)?;
                    (b, a || has_param)
                }
                _ => return None,
            },
            ExprKind::Binary { op, lhs, rhs, .. } => {
                let ((a, x), (b, y)) = (self.fixed(*lhs)?, self.fixed(*rhs)?);
                (pair(self, *op, a, b)?, x || y)
            }
            _ => return None,
        };
        // What does not fit wraps when the program runs.
        let ty = self.p.expr_ty[self.g(e) as usize];
        self.types.as_prim(ty).is_some_and(|prim| value.fits(prim)).then_some((value, has_param))
    }
}
