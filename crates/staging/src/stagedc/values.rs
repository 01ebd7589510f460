//! Stages and expressions of Staged-C: calls of built-in and other functions.
//!
//! Separate from statements, of which each has a stage for all its calls.

use super::places::{is_struct, written};
use super::*;
use crate::c::{NO_BITS, STATEMENTS};
use nyala_base::Span;
use nyala_c_syntax::diagnostics::c_syntax;
use nyala_c_syntax::lexer::{integer, unquoted};
use nyala_c_syntax::syntax::{Init, TypeName};

/// A label nests at most this deep.
const MAX_LABEL: u32 = 100;

/// A branch that computes a value, by its leaves; its body has no end yet.
struct Side {
    own: Var,
    flow: Flow,
    at: Stage,
    ty: Type,
    values: Vec<Operand>,
}

impl<'s> Translator<'s> {
    // --- Stages as they are written.

    pub(super) fn stage(&mut self, expr: &Expr<'s>) -> Done<Stage> {
        let node = match &expr.kind {
            ExprKind::Name("*") => return Ok(self.flow.last),
            ExprKind::Name("always") => return Ok(self.always()),
            ExprKind::Name("never") => return Ok(self.terms.stage(StageNode::Const(false))),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => return Ok(self.always()),
            ExprKind::Name(name) => {
                return match self.used(name, expr.span) {
                    Some(Entity::Function(f)) if self.functions[f].is_foreign => Ok(self.always()),
                    Some(Entity::Function(f)) => Ok(self.of_var(self.functions[f].go.unwrap_or(self.functions[f].var))),
                    _ => self.stage_of_variable(expr),
                };
            }
            ExprKind::Postfix(..) => return self.stage_of_variable(expr),
            ExprKind::Unary(Unary::Not, inner) => StageNode::Not(self.stage(inner)?),
            ExprKind::Chain(first, rest) => {
                let mut stage = self.stage(first)?;
                for (op, operand) in rest {
                    let right = self.stage(operand)?;
                    stage = match op {
                        Binary::And => self.both(stage, right),
                        Binary::Or => self.terms.stage(StageNode::Or(stage, right)),
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

    /// True as soon as all leaves of the variable are known.
    fn stage_of_variable(&mut self, expr: &Expr<'s>) -> Done<Stage> {
        let Some((ty, first)) = self.variable(expr)? else { return self.fault(staging_syntax::no_stage(expr.span)) };
        let mut stage = self.always();
        for local in first..first + self.leaves(ty).len() {
            let Some(value) = self.locals[local].value else {
                return self.fault(staging_name::unassigned(expr.span, &written(expr)));
            };
            let of_leaf = self.of_value(value);
            stage = if local == first { of_leaf } else { self.both(stage, of_leaf) };
            self.check_label(stage, expr.span)?;
        }
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
                ExprKind::Name("*") => true,
                ExprKind::Chain(first, rest) => stars(first) || rest.iter().any(|(_, e)| stars(e)),
                ExprKind::Unary(_, inner) => stars(inner),
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
        let (found, expected) = (self.show(found), self.show(expected));
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
            (FLOAT | DOUBLE, INT) => {
                let shown = self.show(operand.ty);
                return self.fault(staging_type::needs_cast(span, &shown));
            }
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

    pub(super) fn binary(&mut self, op: Binary, a: Operand, b: Operand, name: &str) -> Done<Operand> {
        let span = a.span.to(b.span);
        if a.ty.pointers > 0 && matches!(op, Binary::Add | Binary::Sub) {
            if b.ty != INT {
                return self.mismatch(b.span, b.ty, INT);
            }
            let by = match (op, b.value) {
                (Binary::Add, _) => b,
                (_, Value::Const(Const::Int(i))) => self.literal(Const::Int(i.wrapping_neg()), INT, None, b.span),
                _ => self.op(Prim::Neg, &[b.value], INT, "t", b.span),
            };
            return Ok(self.op(Prim::Shift, &[a.value, by.value], a.ty, name, span));
        }
        let prim = match op {
            Binary::Add => Prim::Add,
            Binary::Sub => Prim::Sub,
            Binary::Mul => Prim::Mul,
            Binary::Div => Prim::Div,
            Binary::Rem => Prim::Mod,
            Binary::Eq => Prim::Eq,
            Binary::Ne => Prim::Ne,
            Binary::Lt => Prim::Lt,
            Binary::Le => Prim::Le,
            Binary::Gt => Prim::Gt,
            Binary::Ge => Prim::Ge,
            Binary::And | Binary::Or => return self.fault(staging_syntax::stage_operator(span, op.word())),
            Binary::Xor | Binary::Shl | Binary::Shr => {
                return self.fault(limitation::not_supported(span, "operators on bits", NO_BITS));
            }
        };
        if a.ty == BOOL && b.ty == BOOL && matches!(prim, Prim::Eq | Prim::Ne) {
            return Ok(self.op(prim, &[a.value, b.value], BOOL, name, span));
        }
        let [a, b] = self.balance(a, b)?;
        if prim == Prim::Mod && a.ty != INT {
            return self.mismatch(span, a.ty, INT);
        }
        Ok(self.op(prim, &[a.value, b.value], if is_comparison(op) { BOOL } else { a.ty }, name, span))
    }

    /// Whether the right operand of `&&` may be computed although the left one decides.
    pub(super) fn is_simple(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
            ExprKind::Unary(_, inner) | ExprKind::Cast(_, inner) => Self::is_simple(inner),
            ExprKind::Chain(first, rest) => {
                Self::is_simple(first) && rest.iter().all(|(op, e)| Self::is_simple(e) && is_comparison(*op))
            }
            ExprKind::Logic(_, values) => values.iter().all(Self::is_simple),
            _ => false,
        }
    }

    /// The leaves of a value for a variable, parameter or result of that type. `name` is that of the variable, if new ones are
    /// made.
    pub(super) fn values(&mut self, expr: &Expr<'s>, expected: Type, name: &str) -> Done<Vec<Operand>> {
        if !is_struct(expected) {
            return Ok(vec![self.value(expr, expected, name)?]);
        }
        if let ExprKind::List(elements) = &expr.kind {
            return self.in_braces(elements, expected, name, expr.span);
        }
        let (ty, operands) = match &expr.kind {
            ExprKind::Choose(parts) => self.choose(parts, Some(expected), name, expr.span)?,
            _ => self.parts(expr, name)?,
        };
        if ty != expected {
            return self.mismatch(expr.span, ty, expected);
        }
        Ok(operands)
    }

    /// A value of a type that is no struct.
    pub(super) fn value(&mut self, expr: &Expr<'s>, expected: Type, name: &str) -> Done<Operand> {
        let span = expr.span;
        if expected == STAGE && !is_computed(expr) {
            let stage = self.stage(expr)?;
            let value = self.stage_value(stage, span);
            return Ok(Operand { value, ty: STAGE, span, exact: None, is_new: true });
        }
        if let ExprKind::List(elements) = &expr.kind {
            return self.array(elements, expected, span);
        }
        if let ExprKind::Choose(parts) = &expr.kind {
            let (ty, operands) = self.choose(parts, Some(expected), name, span)?;
            return self.one(ty, operands, span);
        }
        if let (Base::Function(_), ExprKind::Name(name)) = (expected.base, &expr.kind)
            && let Some(Entity::Function(f)) = self.used(name, span)
        {
            return self.function_value(f, expected, span);
        }
        if let (Base::Function(_), ExprKind::Name(name)) = (expected.base, &expr.kind)
            && self.entity(name).is_none()
            && Self::builtin(name).is_some()
        {
            let hint = "pass a function that calls it";
            return self.fault(limitation::not_supported(
                span,
                &format!("built-in functions as values: `{name}`"),
                hint,
            ));
        }
        let operand = self.expr(expr, name)?;
        if expected == STAGE && operand.ty != STAGE {
            return self.mismatch(operand.span, operand.ty, STAGE);
        }
        self.convert(operand, expected, false, name)
    }

    /// A function of the file as a value.
    fn function_value(&mut self, function: usize, expected: Type, span: Span) -> Done<Operand> {
        let unit = self.unit;
        let signature = match expected.base {
            Base::Function(i) if expected.pointers == 0 => &unit.signatures[i as usize],
            _ => unreachable!("asked for by its type"),
        };
        self.functions[function].is_used = true;
        let Known { name, ret, ref params, var, is_foreign, .. } = self.functions[function];
        if signature.ret != ret || signature.params != *params {
            let params: Vec<String> = params.iter().map(|&p| self.show(p)).collect();
            let found = format!("{} {name}({})", self.show(ret), params.join(", "));
            let expected = self.show(expected);
            return self.fault(staging_type::mismatch(span, &found, &expected));
        }
        let mut value = Value::Var(var);
        if is_foreign {
            // With the stage of the call, which other code does not take.
            let mut params = vec![self.stage_var()];
            for &ty in &signature.params {
                params.extend(self.leaf_vars(ty, "x", span));
            }
            let ret = self.fn_ty(&[ret]);
            params.push(self.var("return", ret, span));
            let stage_ty = self.ty(STAGE);
            self.of_vars.insert(params[0], stage_ty);
            let own = self.stage_var();
            let stage = self.of_var(own);
            let args: Vec<Value> = params[1..].iter().map(|&x| Value::Var(x)).collect();
            let body = self.terms.apply(stage, Value::Const(Const::Foreign(var)), args, span);
            value = Value::Lam(self.terms.lam(own, params, body));
        }
        Ok(Operand { value, ty: expected, span, exact: None, is_new: false })
    }

    pub(super) fn array(&mut self, elements: &[Expr<'s>], expected: Type, span: Span) -> Done<Operand> {
        if expected.pointers != 1 || elements.is_empty() {
            return self.mismatch(span, Type { base: Base::Int, pointers: 1 }, expected);
        }
        let array = self.constants(elements, &vec![Type { pointers: 0, ..expected }; elements.len()])?;
        Ok(self.literal(array, expected, None, span))
    }

    /// Literals of these types; those in braces are structs.
    fn constants(&mut self, elements: &[Expr<'s>], types: &[Type]) -> Done<Const> {
        let mut consts = Vec::new();
        for (expr, &ty) in elements.iter().zip(types) {
            let is_literal = match &expr.kind {
                ExprKind::Unary(Unary::Negate, inner) => matches!(inner.kind, ExprKind::Int(_) | ExprKind::Float(_)),
                ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
                ExprKind::List(fields) if is_struct(ty) => {
                    let types = self.fields(ty);
                    self.arguments(expr.span, fields.len(), types.len())?;
                    consts.push(self.constants(fields, &types)?);
                    continue;
                }
                _ => false,
            };
            if !is_literal {
                return self.fault(staging_syntax::not_constant(expr.span));
            }
            let operand = self.expr(expr, "t")?;
            match self.convert(operand, ty, false, "t")?.value {
                Value::Const(c) => consts.push(c),
                _ => return self.fault(staging_syntax::not_constant(expr.span)),
            }
        }
        Ok(Const::Array(self.terms.array(consts), 0))
    }

    /// The leaves of a value, of whatever type.
    pub(super) fn parts(&mut self, expr: &Expr<'s>, name: &str) -> Done<(Type, Vec<Operand>)> {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Postfix(..) => match expr.behind() {
                Some((callee, PostfixKind::Call(args))) => self.call(callee, args, name, expr.span),
                Some((_, PostfixKind::Increment | PostfixKind::Decrement)) => {
                    self.fault(limitation::not_supported(expr.span, "assignments as values", STATEMENTS))
                }
                _ => {
                    let place = self.place(expr)?;
                    self.load(place, name, expr)
                }
            },
            ExprKind::Choose(parts) => self.choose(parts, None, name, expr.span),
            ExprKind::Literal(ty, init) => {
                let Init::Value(list) = &**init else { unreachable!("Staged-C has lists as values") };
                let ty = self.written_ty(ty)?;
                self.check_ty(ty, expr.span)?;
                Ok((ty, self.values(list, ty, name)?))
            }
            _ => {
                let operand = self.expr(expr, name)?;
                Ok((operand.ty, vec![operand]))
            }
        }
    }

    /// A value that is no struct.
    pub(super) fn one(&mut self, ty: Type, operands: Vec<Operand>, span: Span) -> Done<Operand> {
        match operands[..] {
            [only] if !is_struct(ty) => Ok(only),
            _ => {
                let shown = self.show(ty);
                self.fault(staging_type::whole_struct(span, &shown))
            }
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr<'s>, name: &str) -> Done<Operand> {
        let span = expr.span;
        Ok(match &expr.kind {
            ExprKind::Int(text) => {
                let (digits, radix, suffix) = integer(text);
                match i32::from_str_radix(digits, radix) {
                    Ok(i) if suffix.is_empty() => self.literal(Const::Int(i), INT, Some(i.into()), span),
                    _ => return self.fault(staging_syntax::number(span, text)),
                }
            }
            ExprKind::Float(text) => match text.strip_suffix('f').unwrap_or(text).parse::<f64>() {
                Ok(f) if (f as f32).is_finite() => self.literal(Const::Float(f as f32), FLOAT, Some(f), span),
                _ => return self.fault(staging_syntax::number(span, text)),
            },
            ExprKind::Bool(b) => self.literal(Const::Bool(*b), BOOL, None, span),
            ExprKind::Name("*") => return self.fault(staging_syntax::star(span)),
            ExprKind::Text(_) => return self.fault(staging_syntax::text(span)),
            ExprKind::List(_) => return self.fault(staging_syntax::array(span)),
            ExprKind::Unary(Unary::Plus, inner) => self.expr(inner, name)?,
            ExprKind::Unary(Unary::Negate, inner) => {
                let operand = self.expr(inner, "t")?;
                if !is_number(operand.ty) {
                    let shown = self.show(operand.ty);
                    return self.fault(staging_type::operand(span, "-", &shown));
                }
                match (operand.exact, operand.value) {
                    (Some(exact), Value::Const(Const::Int(i))) => self.literal(Const::Int(-i), INT, Some(-exact), span),
                    (Some(exact), _) => self.literal(Const::Float(-exact as f32), FLOAT, Some(-exact), span),
                    _ => self.op(Prim::Neg, &[operand.value], operand.ty, name, span),
                }
            }
            ExprKind::Unary(Unary::Not, inner) => {
                let operand = self.expr(inner, "t")?;
                if operand.ty != BOOL {
                    return self.mismatch(operand.span, operand.ty, BOOL);
                }
                self.op(Prim::Not, &[operand.value], BOOL, name, span)
            }
            ExprKind::Cast(ty, inner) => {
                let ty = self.written_ty(ty)?;
                let operand = self.expr(inner, name)?;
                Operand { exact: None, ..self.convert(operand, ty, true, name)? }
            }
            ExprKind::Chain(first, rest) => {
                let mut left = self.expr(first, "t")?;
                for (i, (op, operand)) in rest.iter().enumerate() {
                    let name = if i + 1 == rest.len() { name } else { "t" };
                    let right = self.expr(operand, "t")?;
                    left = self.binary(*op, left, right, name)?;
                }
                left
            }
            ExprKind::Logic(is_or, values) => self.logic(*is_or, values, name)?,
            ExprKind::Name(_) | ExprKind::Postfix(..) | ExprKind::Choose(_) | ExprKind::Literal(..) => {
                let (ty, operands) = self.parts(expr, name)?;
                self.one(ty, operands, span)?
            }
            kind => {
                let (what, hint) = match kind {
                    ExprKind::Unary(Unary::AddressOf, _) => {
                        ("addresses of variables", "declare an array of one element")
                    }
                    ExprKind::Unary(Unary::Complement, _) => ("operators on bits", NO_BITS),
                    ExprKind::Unary(..) | ExprKind::Assign(..) => ("assignments as values", STATEMENTS),
                    ExprKind::Comma(_) => ("values in a row", STATEMENTS),
                    ExprKind::Char(_) => ("characters", "write their numbers"),
                    ExprKind::SizeOfType(_) | ExprKind::SizeOf(_) => ("sizes in bytes", "count elements"),
                    _ => ("such values", "declare a variable or a function"),
                };
                return self.fault(limitation::not_supported(span, what, hint));
            }
        })
    }

    /// A value that may have an index.
    pub(super) fn pointer(&mut self, array: &Expr<'s>) -> Done<Operand> {
        let array = self.expr(array, "t")?;
        if array.ty.pointers == 0 {
            let shown = self.show(array.ty);
            return self.fault(staging_type::no_array(array.span, &shown));
        }
        Ok(array)
    }

    /// The type of a conversion.
    fn written_ty(&mut self, ty: &TypeName) -> Done<Type> {
        let unit = self.unit;
        unit.written(ty).or_else(|fault| self.fault(*fault))
    }

    pub(super) fn condition(&mut self, expr: &Expr<'s>) -> Done<Operand> {
        let operand = self.expr(expr, "c")?;
        if operand.ty != BOOL {
            return self.mismatch(operand.span, operand.ty, BOOL);
        }
        Ok(operand)
    }

    /// `||` in a row, or `&&`.
    fn logic(&mut self, is_or: bool, values: &[Expr<'s>], name: &str) -> Done<Operand> {
        let mut left = self.expr(&values[0], "t")?;
        for (i, value) in values.iter().enumerate().skip(1) {
            let name = if i + 1 == values.len() { name } else { "t" };
            if !Self::is_simple(value) {
                left = self.decide(!is_or, left, value, name)?;
                continue;
            }
            let right = self.expr(value, "t")?;
            for operand in [left, right] {
                if operand.ty != BOOL {
                    return self.mismatch(operand.span, operand.ty, BOOL);
                }
            }
            let prim = if is_or { Prim::Or } else { Prim::And };
            left = self.op(prim, &[left.value, right.value], BOOL, name, left.span.to(right.span));
        }
        Ok(left)
    }

    /// `a && b` and `a || b` where `b` is computed only if `a` does not decide.
    pub(super) fn decide(&mut self, is_and: bool, left: Operand, right: &Expr<'s>, name: &str) -> Done<Operand> {
        if left.ty != BOOL {
            return self.mismatch(left.span, left.ty, BOOL);
        }
        let span = left.span.to(right.span);
        let decided = self.literal(Const::Bool(!is_and), BOOL, None, span);
        let other = |t: &mut Self| Ok((BOOL, vec![t.value(right, BOOL, "t")?]));
        let decided = |_: &mut Self| Ok((BOOL, vec![decided]));
        let (ty, operands) = if is_and {
            self.branch(left, span, name, Some(BOOL), other, decided)?
        } else {
            self.branch(left, span, name, Some(BOOL), decided, other)?
        };
        self.one(ty, operands, span)
    }

    pub(super) fn choose(
        &mut self,
        parts: &[Expr<'s>; 3],
        expected: Option<Type>,
        name: &str,
        span: Span,
    ) -> Done<(Type, Vec<Operand>)> {
        let [condition, then, otherwise] = parts;
        let condition = self.condition(condition)?;
        let of = |expr| {
            move |t: &mut Self| match expected {
                Some(ty) => Ok((ty, t.values(expr, ty, "t")?)),
                None => t.parts(expr, "t"),
            }
        };
        self.branch(condition, span, name, expected, of(then), of(otherwise))
    }

    fn side(&mut self, stage: Stage, make: impl FnOnce(&mut Self) -> Done<(Type, Vec<Operand>)>) -> Done<Side> {
        let own = self.stage_var();
        self.bound_at(stage, &[own]);
        let stage = self.of_var(own);
        let (flow, before) = self.enter(stage);
        let made = make(self);
        let at = self.at;
        let flow = self.leave(flow, before);
        let (ty, values) = made?;
        Ok(Side { own, flow, at, ty, values })
    }

    /// A value of one of two branches.
    pub(super) fn branch(
        &mut self,
        condition: Operand,
        span: Span,
        name: &str,
        expected: Option<Type>,
        then: impl FnOnce(&mut Self) -> Done<(Type, Vec<Operand>)>,
        otherwise: impl FnOnce(&mut Self) -> Done<(Type, Vec<Operand>)>,
    ) -> Done<(Type, Vec<Operand>)> {
        let stage = self.with_value(self.at, condition.value);
        // A literal's type is that of the other branch, which is known behind both.
        let join_ty = self.types.open();
        let join = self.var("join", join_ty, span);
        let (outer, own) = (self.stage_var(), self.stage_var());
        let at = self.of_var(outer);
        let sides = [self.side(stage, then)?, self.side(stage, otherwise)?];
        let ty = match (expected, sides[0].ty, sides[1].ty) {
            (Some(ty), ..) => ty,
            (None, a, b) if a == b => a,
            (None, a, b) if is_number(a) && is_number(b) => {
                let is_literal = sides[0].values.iter().any(|o| o.exact.is_some());
                let of = if is_literal { b } else { a };
                if of == INT { return self.mismatch(span, a, b) } else { of }
            }
            (None, a, b) => return self.mismatch(span, b, a),
        };
        if ty == VOID {
            return self.mismatch(span, VOID, INT);
        }
        let of_join = self.fn_ty(&[ty]);
        self.types.unify(join_ty, of_join);
        let mut branches = Vec::new();
        for Side { own, flow, at, mut values, .. } in sides {
            let outer = (std::mem::replace(&mut self.flow, flow), std::mem::replace(&mut self.at, at));
            let mut converted = Ok(());
            if !is_struct(ty) {
                converted = values.iter_mut().try_for_each(|value| {
                    *value = self.convert(*value, ty, false, "t")?;
                    Ok(())
                });
            }
            if converted.is_ok() {
                self.end(self.at, Value::Var(join), values.iter().map(|v| v.value).collect(), span);
            }
            let inner = self.leave(outer.0, outer.1);
            converted?;
            let body = self.close(inner);
            branches.push(Value::Lam(self.terms.lam(own, [], body)));
        }
        let branch = Value::Const(Const::Prim(Prim::If));
        let body = self.terms.apply(at, branch, [condition.value, branches[0], branches[1]], span);
        let callee = Value::Lam(self.terms.lam(outer, [join], body));
        let results = self.leaf_vars(ty, name, span);
        self.bound_at(stage, &results);
        self.bound_at(stage, &[own]);
        self.flow.pending.push(Pending {
            stage,
            callee: Callee::Value(callee),
            args: Vec::new(),
            after: Vec::new(),
            params: results.clone(),
            own,
            span,
        });
        self.flow.last = self.of_var(own);
        self.at = self.flow.last;
        Ok((ty, self.new_operands(&results, ty, span)))
    }

    /// Variables that the statement binds to leaves of that type.
    fn new_operands(&self, vars: &[Var], ty: Type, span: Span) -> Vec<Operand> {
        let leaves = vars.iter().zip(self.leaves(ty));
        leaves.map(|(&x, ty)| Operand { value: Value::Var(x), ty, span, exact: None, is_new: true }).collect()
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

    pub(super) fn call(
        &mut self,
        callee: &Expr<'s>,
        args: &[Expr<'s>],
        name: &str,
        span: Span,
    ) -> Done<(Type, Vec<Operand>)> {
        let ExprKind::Name(text) = callee.kind else { return self.call_value(callee, args, name, span) };
        let entity = self.used(text, callee.span);
        if let (None, Some(prim)) = (entity, Self::builtin(text)) {
            self.arguments(span, args.len(), prim.n_operands())?;
            let mut operands = Vec::new();
            for arg in args {
                let mut operand = self.expr(arg, "t")?;
                if operand.ty == INT && prim.is_of_floats() {
                    operand = self.convert(operand, FLOAT, false, "t")?;
                }
                if !is_number(operand.ty) {
                    let shown = self.show(operand.ty);
                    return self.fault(staging_type::operand(operand.span, prim.name(), &shown));
                }
                operands.push(operand);
            }
            if let [a, b] = operands[..] {
                operands = self.balance(a, b)?.to_vec();
            }
            let values: Vec<Value> = operands.iter().map(|o| o.value).collect();
            let ty = operands[0].ty;
            return Ok((ty, vec![self.op(prim, &values, ty, name, span)]));
        }
        if let (None, "compile") = (entity, text) {
            return self.fault(staging_name::compile(span));
        }
        if let (None, "print") = (entity, text) {
            return Ok((VOID, vec![self.print(args, span)?]));
        }
        if let Some(Entity::Local(..)) = entity {
            return self.call_value(callee, args, name, span);
        }
        let function = self.callee(Name { text, span: callee.span })?;
        self.functions[function].is_used = true;
        let Known { ret, ref params, var, is_foreign, is_bound_above, .. } = self.functions[function];
        let params = params.clone();
        let callee = if is_foreign { Value::Const(Const::Foreign(var)) } else { Value::Var(var) };
        let waits = !(is_foreign || is_bound_above && !self.is_early(self.at));
        self.call_of((callee, waits), (ret, &params, is_foreign), args, name, span)
    }

    /// Calls what a pointer to a function points to.
    fn call_value(
        &mut self,
        callee: &Expr<'s>,
        args: &[Expr<'s>],
        name: &str,
        span: Span,
    ) -> Done<(Type, Vec<Operand>)> {
        let operand = self.expr(callee, "t")?;
        let unit = self.unit;
        match operand.ty.base {
            Base::Function(i) if operand.ty.pointers == 0 => {
                let Signature { ret, params } = &unit.signatures[i as usize];
                self.call_of((operand.value, true), (*ret, params, false), args, name, span)
            }
            _ => {
                let shown = self.show(operand.ty);
                self.fault(staging_type::not_a_function(callee.span, &shown))
            }
        }
    }

    /// A call which may wait for the callee.
    fn call_of(
        &mut self,
        (callee, waits): (Value, bool),
        (ret, params, is_foreign): (Type, &[Type], bool),
        args: &[Expr<'s>],
        name: &str,
        span: Span,
    ) -> Done<(Type, Vec<Operand>)> {
        let known = Value::Const(Const::Stage(true));
        let mut values = if is_foreign { Vec::new() } else { vec![known] };
        values.extend(self.pass(params, args, span)?);
        let stage = if waits { self.with_value(self.at, callee) } else { self.at };
        let results = self.leaf_vars(ret, name, span);
        self.push(stage, Callee::Value(callee), values, results.clone(), span);
        self.at = self.flow.last;
        if ret == VOID {
            return Ok((VOID, vec![Operand { value: known, ty: VOID, span, exact: None, is_new: true }]));
        }
        Ok((ret, self.new_operands(&results, ret, span)))
    }

    /// Prints the arguments, numbers, `bool`s and texts.
    fn print(&mut self, args: &[Expr<'s>], span: Span) -> Done<Operand> {
        for arg in args {
            let value = if let ExprKind::Text(texts) = &arg.kind {
                let Some(bytes) = texts.iter().map(|t| unquoted(t)).collect::<Option<Vec<_>>>() else {
                    return self.fault(c_syntax::literal(arg.span, &texts.concat(), "text"));
                };
                let bytes = bytes.concat().into_iter().map(|b| Const::Int(b.into())).collect::<Vec<_>>();
                Value::Const(Const::Text(self.terms.array(bytes)))
            } else {
                let operand = self.expr(arg, "t")?;
                if !is_number(operand.ty) && operand.ty != BOOL {
                    let shown = self.show(operand.ty);
                    return self.fault(staging_type::operand(operand.span, "print", &shown));
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
    pub(super) fn pass(&mut self, params: &[Type], args: &[Expr<'s>], span: Span) -> Done<Vec<Value>> {
        self.arguments(span, args.len(), params.len())?;
        let mut values = Vec::new();
        for (arg, &ty) in args.iter().zip(params) {
            values.extend(self.values(arg, ty, "t")?.into_iter().map(|o| o.value));
        }
        Ok(values)
    }
}

/// A stage that is one of two, or what a function returns.
pub(super) fn is_computed(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Choose(_)) || matches!(expr.behind(), Some((_, PostfixKind::Call(_))))
}

fn is_comparison(op: Binary) -> bool {
    matches!(op, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge)
}
