//! Stages and expressions of Staged-C: calls of built-in and other functions.
//!
//! Separate from statements, of which each has a stage for all its calls.

use super::*;
use crate::lexer::text as text_bytes;
use nyala_base::Span;

/// A label nests at most this deep.
const MAX_LABEL: u32 = 100;

/// A branch that computes a value; its body has no end yet.
struct Side {
    own: Var,
    flow: Flow,
    at: Stage,
    value: Operand,
}

impl<'s> Translator<'s> {
    // --- Stages as they are written.

    pub(super) fn stage(&mut self, expr: &Expr<'s>) -> Done<Stage> {
        let node = match &expr.kind {
            ExprKind::Star => return Ok(self.flow.last),
            ExprKind::Name("always") => return Ok(self.always()),
            ExprKind::Name("never") => return Ok(self.terms.stage(StageNode::Const(false))),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => return Ok(self.always()),
            ExprKind::Name(name) => {
                let value = match self.entity(name) {
                    Some(Entity::Function(f)) if self.functions[f].is_foreign => return Ok(self.always()),
                    Some(Entity::Function(f)) => {
                        Some(Value::Var(self.functions[f].go.unwrap_or(self.functions[f].var)))
                    }
                    Some(Entity::Local(local)) => self.locals[local].value,
                    None => return self.fault(staging_name::in_c(expr.span, name)),
                };
                return match value {
                    Some(value) => Ok(self.of_value(value)),
                    None => self.fault(staging_name::unassigned(expr.span, name)),
                };
            }
            ExprKind::Not(inner) => StageNode::Not(self.stage(inner)?),
            ExprKind::Chain(first, rest) => {
                let mut stage = self.stage(first)?;
                for (op, operand) in rest {
                    let right = self.stage(operand)?;
                    stage = match op {
                        Op::And => self.both(stage, right),
                        Op::Or => self.terms.stage(StageNode::Or(stage, right)),
                        _ => return self.fault(staging_syntax::no_stage(expr.span)),
                    };
                    self.check_label(stage, operand.span)?;
                }
                return Ok(stage);
            }
            _ => return self.fault(staging_syntax::no_stage(expr.span)),
        };
        let stage = self.terms.stage(node);
        self.check_label(stage, expr.span)?;
        Ok(stage)
    }

    pub(super) fn check_label(&mut self, stage: Stage, span: Span) -> Done<()> {
        if self.terms.stage_depth(stage) > MAX_LABEL {
            return self.fault(staging_syntax::too_deep_in_c(span, MAX_LABEL));
        }
        Ok(())
    }

    /// The variables of a label that is only a conjunction of names, without `*`.
    pub(super) fn label_key(&self, labels: &[Expr<'s>], stage: Stage) -> Option<Vec<Var>> {
        fn stars(expr: &Expr) -> bool {
            match &expr.kind {
                ExprKind::Star => true,
                ExprKind::Chain(first, rest) => stars(first) || rest.iter().any(|(_, e)| stars(e)),
                ExprKind::Not(inner) => stars(inner),
                _ => false,
            }
        }
        let mut vars = Vec::new();
        let mut work = vec![stage];
        while let Some(stage) = work.pop() {
            match self.terms.stage_node(stage) {
                StageNode::Var(x) => vars.push(x),
                StageNode::And(a, b) => work.extend([a, b]),
                _ => return None,
            }
        }
        vars.sort();
        vars.dedup();
        (!labels.iter().any(stars)).then_some(vars)
    }

    // --- Expressions.

    /// A call of a built-in function with one result.
    pub(super) fn op(&mut self, prim: Prim, args: &[Value], result: Type, name: &str, span: Span) -> Operand {
        let mut stage = self.at;
        for &arg in args {
            stage = self.with_value(stage, arg);
        }
        let ty = self.ty(result);
        let var = self.var(name, ty, span);
        self.push(stage, Callee::Value(Value::Const(Const::Prim(prim))), args.to_vec(), vec![var], span);
        Operand { value: Value::Var(var), ty: result, span, exact: None, is_new: true }
    }

    pub(super) fn literal(&self, value: Const, ty: Type, exact: Option<f64>, span: Span) -> Operand {
        Operand { value: Value::Const(value), ty, span, exact, is_new: false }
    }

    pub(super) fn mismatch<T>(&mut self, span: Span, found: Type, expected: Type) -> Done<T> {
        let (found, expected) = (show(found), show(expected));
        self.fault(staging_type::mismatch(span, &found, &expected))
    }

    /// The value as another type, by an operation if that has to be computed. `name` is that of its result.
    pub(super) fn convert(&mut self, operand: Operand, to: Type, is_cast: bool, name: &str) -> Done<Operand> {
        if operand.ty == to {
            return Ok(operand);
        }
        let span = operand.span;
        if let Some(exact) = operand.exact {
            match to {
                FLOAT => return Ok(self.literal(Const::Float(exact as f32), to, Some(exact), span)),
                DOUBLE => return Ok(self.literal(Const::Double(exact), to, Some(exact), span)),
                _ => (),
            }
        }
        let prim = match (operand.ty, to) {
            (INT | DOUBLE, FLOAT) => Prim::ToFloat,
            (INT | FLOAT, DOUBLE) => Prim::ToDouble,
            (FLOAT | DOUBLE, INT) if is_cast => Prim::ToInt,
            (FLOAT | DOUBLE, INT) => return self.fault(staging_type::needs_cast(span, &show(operand.ty))),
            _ => return self.mismatch(span, operand.ty, to),
        };
        Ok(self.op(prim, &[operand.value], to, name, span))
    }

    /// Both of the type that the greater has.
    pub(super) fn balance(&mut self, a: Operand, b: Operand) -> Done<[Operand; 2]> {
        for operand in [a, b] {
            if !is_number(operand.ty) {
                return self.mismatch(operand.span, operand.ty, if is_number(a.ty) { a.ty } else { b.ty });
            }
        }
        let rank = |o: Operand| match (o.exact.is_some(), o.ty.base) {
            (_, Base::Int) => 0,
            // A literal with a point fits a `double`, too.
            (true, _) => 1,
            (false, Base::Float) => 2,
            _ => 3,
        };
        let greater = if rank(a) >= rank(b) { a.ty } else { b.ty };
        Ok([self.convert(a, greater, false, "t")?, self.convert(b, greater, false, "t")?])
    }

    pub(super) fn binary(&mut self, op: Op, a: Operand, b: Operand, name: &str) -> Done<Operand> {
        let span = a.span.to(b.span);
        if a.ty.pointers > 0 && matches!(op, Op::Add | Op::Sub) {
            if b.ty != INT {
                return self.mismatch(b.span, b.ty, INT);
            }
            let by = match (op, b.value) {
                (Op::Add, _) => b,
                (_, Value::Const(Const::Int(i))) => self.literal(Const::Int(i.wrapping_neg()), INT, None, b.span),
                _ => self.op(Prim::Neg, &[b.value], INT, "t", b.span),
            };
            return Ok(self.op(Prim::Shift, &[a.value, by.value], a.ty, name, span));
        }
        let prim = match op {
            Op::Add => Prim::Add,
            Op::Sub => Prim::Sub,
            Op::Mul => Prim::Mul,
            Op::Div => Prim::Div,
            Op::Mod => Prim::Mod,
            Op::Eq => Prim::Eq,
            Op::Ne => Prim::Ne,
            Op::Lt => Prim::Lt,
            Op::Le => Prim::Le,
            Op::Gt => Prim::Gt,
            Op::Ge => Prim::Ge,
            Op::AndThen => Prim::And,
            Op::OrElse => Prim::Or,
            Op::And | Op::Or => return self.fault(staging_syntax::stage_operator(span, op.name())),
        };
        let is_logic = matches!(prim, Prim::And | Prim::Or);
        if is_logic || a.ty == BOOL && b.ty == BOOL && matches!(prim, Prim::Eq | Prim::Ne) {
            for operand in [a, b] {
                if operand.ty != BOOL {
                    return self.mismatch(operand.span, operand.ty, BOOL);
                }
            }
            return Ok(self.op(prim, &[a.value, b.value], BOOL, name, span));
        }
        let [a, b] = self.balance(a, b)?;
        if prim == Prim::Mod && a.ty != INT {
            return self.mismatch(span, a.ty, INT);
        }
        let is_arithmetic = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Mod);
        Ok(self.op(prim, &[a.value, b.value], if is_arithmetic { a.ty } else { BOOL }, name, span))
    }

    /// Whether the right operand of `&&` may be computed although the left one decides.
    pub(super) fn is_simple(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Cast(_, inner) => Self::is_simple(inner),
            ExprKind::Chain(first, rest) => {
                Self::is_simple(first)
                    && rest.iter().all(|(op, e)| {
                        Self::is_simple(e) && (op.is_comparison() || matches!(op, Op::AndThen | Op::OrElse))
                    })
            }
            _ => false,
        }
    }

    /// A value for a variable, parameter or result of that type. `name` is that of the variable, if a new one is made.
    pub(super) fn value(&mut self, expr: &Expr<'s>, expected: Type, name: &str) -> Done<Operand> {
        if expected == STAGE && !matches!(expr.kind, ExprKind::Choose(_) | ExprKind::Call(..)) {
            let stage = self.stage(expr)?;
            let value = self.stage_value(stage, expr.span);
            return Ok(Operand { value, ty: STAGE, span: expr.span, exact: None, is_new: true });
        }
        if let ExprKind::Array(elements) = &expr.kind {
            return self.array(elements, expected, expr.span);
        }
        if let ExprKind::Choose(parts) = &expr.kind {
            return self.choose(parts, Some(expected), name, expr.span);
        }
        let operand = self.expr(expr, name)?;
        if expected == STAGE && operand.ty != STAGE {
            return self.mismatch(operand.span, operand.ty, STAGE);
        }
        self.convert(operand, expected, false, name)
    }

    pub(super) fn array(&mut self, elements: &[Expr<'s>], expected: Type, span: Span) -> Done<Operand> {
        if expected.pointers != 1 || elements.is_empty() {
            return self.mismatch(span, Type { base: Base::Int, pointers: 1 }, expected);
        }
        let element = Type { pointers: 0, ..expected };
        let mut consts = Vec::new();
        for expr in elements {
            let is_literal = match &expr.kind {
                ExprKind::Negate(inner) => matches!(inner.kind, ExprKind::Int(_) | ExprKind::Float(_)),
                ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
                _ => false,
            };
            if !is_literal {
                return self.fault(staging_syntax::not_constant(expr.span));
            }
            let operand = self.expr(expr, "t")?;
            match self.convert(operand, element, false, "t")?.value {
                Value::Const(c) => consts.push(c),
                _ => return self.fault(staging_syntax::not_constant(expr.span)),
            }
        }
        let array = self.terms.array(consts);
        Ok(self.literal(Const::Array(array, 0), expected, None, span))
    }

    pub(super) fn expr(&mut self, expr: &Expr<'s>, name: &str) -> Done<Operand> {
        let span = expr.span;
        Ok(match &expr.kind {
            ExprKind::Int(text) => match text.parse::<i32>() {
                Ok(i) => self.literal(Const::Int(i), INT, Some(i.into()), span),
                Err(_) => return self.fault(staging_syntax::number(span, text)),
            },
            ExprKind::Float(text) => match text.parse::<f64>() {
                Ok(f) if (f as f32).is_finite() => self.literal(Const::Float(f as f32), FLOAT, Some(f), span),
                _ => return self.fault(staging_syntax::number(span, text)),
            },
            ExprKind::Bool(b) => self.literal(Const::Bool(*b), BOOL, None, span),
            ExprKind::Name(name) => {
                let local = self.local(name, span)?;
                match self.locals[local] {
                    Local { ty, value: Some(value) } => Operand { value, ty, span, exact: None, is_new: false },
                    Local { value: None, .. } => return self.fault(staging_name::unassigned(span, name)),
                }
            }
            ExprKind::Star => return self.fault(staging_syntax::star(span)),
            ExprKind::Text(_) => return self.fault(staging_syntax::text(span)),
            ExprKind::Array(_) => return self.fault(staging_syntax::array(span)),
            ExprKind::Negate(inner) => {
                let operand = self.expr(inner, "t")?;
                if !is_number(operand.ty) {
                    return self.fault(staging_type::operand(span, "-", &show(operand.ty)));
                }
                match (operand.exact, operand.value) {
                    (Some(exact), Value::Const(Const::Int(i))) => self.literal(Const::Int(-i), INT, Some(-exact), span),
                    (Some(exact), _) => self.literal(Const::Float(-exact as f32), FLOAT, Some(-exact), span),
                    _ => self.op(Prim::Neg, &[operand.value], operand.ty, name, span),
                }
            }
            ExprKind::Not(inner) => {
                let operand = self.expr(inner, "t")?;
                if operand.ty != BOOL {
                    return self.mismatch(operand.span, operand.ty, BOOL);
                }
                self.op(Prim::Not, &[operand.value], BOOL, name, span)
            }
            ExprKind::Cast(ty, inner) => {
                let operand = self.expr(inner, name)?;
                Operand { exact: None, ..self.convert(operand, *ty, true, name)? }
            }
            ExprKind::Chain(first, rest) => {
                let mut left = self.expr(first, "t")?;
                for (i, (op, operand)) in rest.iter().enumerate() {
                    let name = if i + 1 == rest.len() { name } else { "t" };
                    left = match op {
                        Op::AndThen | Op::OrElse if !Self::is_simple(operand) => {
                            self.decide(*op == Op::AndThen, left, operand, name)?
                        }
                        _ => {
                            let right = self.expr(operand, "t")?;
                            self.binary(*op, left, right, name)?
                        }
                    };
                }
                left
            }
            ExprKind::Choose(parts) => return self.choose(parts, None, name, span),
            ExprKind::Index(array, idx) => {
                let (array, idx) = self.element(array, idx)?;
                let element = Type { pointers: 0, ..array.ty };
                self.op(Prim::At, &[array.value, idx.value], element, name, span)
            }
            ExprKind::Call(callee, args) => return self.call(*callee, args, name, span),
        })
    }

    pub(super) fn element(&mut self, array: &Expr<'s>, idx: &Expr<'s>) -> Done<(Operand, Operand)> {
        let array = self.expr(array, "t")?;
        if array.ty.pointers == 0 {
            return self.fault(staging_type::no_array(array.span, &show(array.ty)));
        }
        let idx = self.value(idx, INT, "t")?;
        Ok((array, idx))
    }

    pub(super) fn condition(&mut self, expr: &Expr<'s>) -> Done<Operand> {
        let operand = self.expr(expr, "c")?;
        if operand.ty != BOOL {
            return self.mismatch(operand.span, operand.ty, BOOL);
        }
        Ok(operand)
    }

    /// `a && b` and `a || b` where `b` is computed only if `a` does not decide.
    pub(super) fn decide(&mut self, is_and: bool, left: Operand, right: &Expr<'s>, name: &str) -> Done<Operand> {
        if left.ty != BOOL {
            return self.mismatch(left.span, left.ty, BOOL);
        }
        let span = left.span.to(right.span);
        let decided = self.literal(Const::Bool(!is_and), BOOL, None, span);
        let other = |t: &mut Self| t.value(right, BOOL, "t");
        if is_and {
            self.branch(left, span, name, Some(BOOL), other, |_| Ok(decided))
        } else {
            self.branch(left, span, name, Some(BOOL), |_| Ok(decided), other)
        }
    }

    pub(super) fn choose(
        &mut self,
        parts: &[Expr<'s>; 3],
        expected: Option<Type>,
        name: &str,
        span: Span,
    ) -> Done<Operand> {
        let [condition, then, otherwise] = parts;
        let condition = self.condition(condition)?;
        let of = |expr| {
            move |t: &mut Self| match expected {
                Some(ty) => t.value(expr, ty, "t"),
                None => t.expr(expr, "t"),
            }
        };
        self.branch(condition, span, name, expected, of(then), of(otherwise))
    }

    fn side(&mut self, make: impl FnOnce(&mut Self) -> Done<Operand>) -> Done<Side> {
        let own = self.stage_var();
        let stage = self.of_var(own);
        let (flow, before) = self.enter(stage);
        let value = make(self);
        let at = self.at;
        Ok(Side { own, flow: self.leave(flow, before), at, value: value? })
    }

    /// A value of one of two branches.
    pub(super) fn branch(
        &mut self,
        condition: Operand,
        span: Span,
        name: &str,
        expected: Option<Type>,
        then: impl FnOnce(&mut Self) -> Done<Operand>,
        otherwise: impl FnOnce(&mut Self) -> Done<Operand>,
    ) -> Done<Operand> {
        let stage = self.with_value(self.at, condition.value);
        // A literal's type is that of the other branch, which is known behind both.
        let joined = self.types.open();
        let join_ty = self.types.add(TyNode::Fn([joined].into()));
        let join = self.var("join", join_ty, span);
        let (outer, own) = (self.stage_var(), self.stage_var());
        let at = self.of_var(outer);
        let sides = [self.side(then)?, self.side(otherwise)?];
        let ty = match (expected, sides[0].value, sides[1].value) {
            (Some(ty), ..) => ty,
            (None, a, b) if a.ty == b.ty => a.ty,
            (None, a, b) if is_number(a.ty) && is_number(b.ty) => {
                let of = if a.exact.is_some() { b } else { a };
                if of.ty == INT { return self.mismatch(span, a.ty, b.ty) } else { of.ty }
            }
            (None, a, b) => return self.mismatch(b.span, b.ty, a.ty),
        };
        let of_joined = self.ty(ty);
        self.types.unify(joined, of_joined);
        let mut branches = Vec::new();
        for Side { own, flow, at, value } in sides {
            let outer = (std::mem::replace(&mut self.flow, flow), std::mem::replace(&mut self.at, at));
            let value = self.convert(value, ty, false, "t");
            if let Ok(value) = value {
                self.end(self.at, Value::Var(join), vec![value.value], span);
            }
            let inner = self.leave(outer.0, outer.1);
            value?;
            let body = self.close(inner);
            branches.push(Value::Lam(self.terms.lam(own, [], body)));
        }
        let branch = Value::Const(Const::Prim(Prim::If));
        let body = self.terms.apply(at, branch, [condition.value, branches[0], branches[1]], span);
        let callee = Value::Lam(self.terms.lam(outer, [join], body));
        let result = self.var(name, of_joined, span);
        self.flow.pending.push(Pending {
            stage,
            callee: Callee::Value(callee),
            args: Vec::new(),
            after: Vec::new(),
            params: vec![result],
            own,
            span,
        });
        self.flow.last = self.of_var(own);
        self.at = self.flow.last;
        Ok(Operand { value: Value::Var(result), ty, span, exact: None, is_new: true })
    }

    pub(super) fn builtin(name: &str) -> Option<Prim> {
        let prims = [
            Prim::Abs,
            Prim::Min,
            Prim::Max,
            Prim::Sqrt,
            Prim::Floor,
            Prim::Ceil,
            Prim::Sin,
            Prim::Cos,
            Prim::Tan,
            Prim::Exp,
            Prim::Log,
            Prim::Pow,
        ];
        prims.into_iter().find(|p| p.name() == name)
    }

    pub(super) fn arguments(&mut self, span: Span, found: usize, expected: usize) -> Done<()> {
        if found != expected {
            return self.fault(staging_type::arguments_in_c(span, found, expected));
        }
        Ok(())
    }

    pub(super) fn call(&mut self, callee: Name<'s>, args: &[Expr<'s>], name: &str, span: Span) -> Done<Operand> {
        if let (None, Some(prim)) = (self.entity(callee.text), Self::builtin(callee.text)) {
            self.arguments(span, args.len(), prim.n_operands())?;
            let mut operands = Vec::new();
            for arg in args {
                let mut operand = self.expr(arg, "t")?;
                if operand.ty == INT && prim.is_of_floats() {
                    operand = self.convert(operand, FLOAT, false, "t")?;
                }
                if !is_number(operand.ty) {
                    return self.fault(staging_type::operand(operand.span, callee.text, &show(operand.ty)));
                }
                operands.push(operand);
            }
            if let [a, b] = operands[..] {
                operands = self.balance(a, b)?.to_vec();
            }
            let values: Vec<Value> = operands.iter().map(|o| o.value).collect();
            return Ok(self.op(prim, &values, operands[0].ty, name, span));
        }
        if let (None, "print") = (self.entity(callee.text), callee.text) {
            return self.print(args, span);
        }
        let function = self.callee(callee)?;
        let known = Value::Const(Const::Stage(true));
        let Known { ret, var, is_foreign, .. } = self.functions[function];
        let mut values = if is_foreign { Vec::new() } else { vec![known] };
        values.extend(self.pass(function, args, span)?);
        let (stage, callee) = if is_foreign {
            (self.at, Value::Const(Const::Foreign(var)))
        } else {
            (self.with_value(self.at, Value::Var(var)), Value::Var(var))
        };
        let mut params = Vec::new();
        if ret != VOID {
            let ty = self.ty(ret);
            params.push(self.var(name, ty, span));
        }
        let value = params.first().map_or(known, |&x| Value::Var(x));
        self.push(stage, Callee::Value(callee), values, params, span);
        self.at = self.flow.last;
        Ok(Operand { value, ty: ret, span, exact: None, is_new: true })
    }

    /// Prints the arguments, numbers, `bool`s and texts.
    fn print(&mut self, args: &[Expr<'s>], span: Span) -> Done<Operand> {
        for arg in args {
            let value = if let ExprKind::Text(text) = arg.kind {
                Value::Const(Const::Text(self.terms.array(text_bytes(text))))
            } else {
                let operand = self.expr(arg, "t")?;
                if operand.ty.pointers > 0 || matches!(operand.ty.base, Base::Void | Base::Stage) {
                    return self.fault(staging_type::operand(operand.span, "print", &show(operand.ty)));
                }
                operand.value
            };
            let stage = self.with_value(self.at, value);
            self.push(stage, Callee::Value(Value::Const(Const::Prim(Prim::Print))), vec![value], Vec::new(), arg.span);
            self.at = self.flow.last;
        }
        let value = Value::Const(Const::Stage(true));
        Ok(Operand { value, ty: VOID, span, exact: None, is_new: true })
    }

    /// The arguments of a call.
    pub(super) fn pass(&mut self, function: usize, args: &[Expr<'s>], span: Span) -> Done<Vec<Value>> {
        self.functions[function].is_used = true;
        let params = self.functions[function].params.clone();
        self.arguments(span, args.len(), params.len())?;
        args.iter().zip(params).map(|(arg, ty)| self.value(arg, ty, "t").map(|o| o.value)).collect()
    }
}

impl Op {
    fn is_comparison(self) -> bool {
        matches!(self, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
    }
}
