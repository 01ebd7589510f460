//! Statements of Staged-C: when each is executed, and the functions that loops and branches are.
//!
//! Separate, since only here control is split and joined; the header of [`stagedc`](super) has the rules.

use super::places::Place;
use super::values::is_computed;
use super::*;
use nyala_base::Span;
use rustc_hash::FxHashSet;

impl<'s> Translator<'s> {
    // --- Statements.

    pub(super) fn block(&mut self, statements: &[Statement<'s>]) -> Done<()> {
        let mark = self.scope.len();
        for statement in statements {
            if self.flow.end.is_some() {
                break;
            }
            self.statement(statement)?;
        }
        self.leave_scope(mark);
        Ok(())
    }

    /// A part of another statement, which has a scope of its own.
    pub(super) fn part(&mut self, statement: &Statement<'s>) -> Done<()> {
        let mark = self.scope.len();
        self.statement(statement)?;
        self.leave_scope(mark);
        Ok(())
    }

    pub(super) fn statement(&mut self, statement: &Statement<'s>) -> Done<()> {
        let (before, control) = (self.flow.last, self.flow.control);
        let mut stage = before;
        let mut key = None;
        for (i, label) in statement.labels.iter().enumerate() {
            let label = self.stage(label)?;
            stage = if i == 0 { label } else { self.both(stage, label) };
            self.check_label(stage, statement.span)?;
        }
        if !statement.labels.is_empty() {
            self.has_labels = true;
            self.flow.has_labels = true;
            key = self.label_key(&statement.labels, stage);
            if let Some(&earlier) = key.as_ref().and_then(|key| self.flow.labels.get(key)) {
                stage = earlier;
            }
            stage = self.shorten(stage, statement.span);
        }
        self.at = stage;
        if let (StatementKind::Block(statements), true) = (&statement.kind, statement.labels.is_empty()) {
            return self.block(statements);
        }
        self.flow.last = stage;
        let compound = self.statement_at(statement)?;
        if self.flow.end.is_some() {
            return Ok(());
        }
        // Nothing was executed: what follows is executed as it would be without the statement.
        if self.flow.last == stage {
            self.flow.last = before;
            return Ok(());
        }
        if let Some(key) = key {
            self.flow.labels.insert(key, self.flow.last);
        }
        // Where control comes out of an `if` or a loop is said by `compound`.
        let through = compound.unwrap_or(self.flow.last);
        self.flow.control = if self.flow.has_labels {
            match statement.kind {
                StatementKind::If(..) => self.both(control, through),
                _ => control,
            }
        } else if before == control {
            through
        } else {
            self.both(control, through)
        };
        self.flow.control = self.shorten(self.flow.control, statement.span);
        Ok(())
    }

    /// A statement at the stage `self.at`. Gives where control leaves it, if that is not where its last part has been executed.
    pub(super) fn statement_at(&mut self, statement: &Statement<'s>) -> Done<Option<Stage>> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Empty => (),
            StatementKind::Block(statements) => {
                self.flow.control = self.at;
                self.block(statements)?;
                return Ok(Some(self.flow.control));
            }
            StatementKind::Declare(ty, name, value) => {
                self.check_ty(*ty, name.span)?;
                let value = match value {
                    None => None,
                    Some(expr) if *ty == STAGE => {
                        Some(vec![self.declared_stage(expr, name.text, !statement.labels.is_empty())?])
                    }
                    Some(expr) => {
                        let operands = self.values(expr, *ty, name.text)?;
                        let leaves = self.named_leaves(*ty, name.text).into_iter().zip(operands);
                        Some(leaves.map(|((leaf, _), o)| self.named(o, &leaf, name.span)).collect())
                    }
                };
                self.declare_local(*name, *ty, value);
            }
            StatementKind::DeclareArray(element, name, n, value) => {
                let ty = Type { pointers: element.pointers + 1, ..*element };
                self.check_ty(ty, name.span)?;
                let n = self.value(n, INT, "n")?;
                let array = self.op(Prim::Local, &[n.value], ty, name.text, name.span);
                if let Some(value) = value {
                    self.fill(array, *element, value)?;
                }
                self.declare_local(*name, ty, Some(vec![array.value]));
            }
            StatementKind::Function(function) => self.local_function(function)?,
            StatementKind::Assign(target, op, value) => self.assign(target, *op, value, span)?,
            StatementKind::Value(expr) => _ = self.parts(expr, "t")?,
            StatementKind::Return(value) => {
                let Some((ret, ty)) = self.ret else { unreachable!("statements are in functions") };
                let args = match value {
                    None if ty == VOID => Vec::new(),
                    None => {
                        let shown = self.show(ty);
                        return self.fault(staging_type::no_result(span, &shown));
                    }
                    Some(expr) if ty == VOID => return self.fault(staging_type::a_result(expr.span)),
                    Some(expr) => self.values(expr, ty, "result")?.into_iter().map(|o| o.value).collect(),
                };
                // A label may be true before the function is called, when there is nothing to return to.
                let stage = if self.has_labels { self.with_value(self.at, Value::Var(ret)) } else { self.at };
                self.end(stage, Value::Var(ret), args, span);
            }
            StatementKind::Break | StatementKind::Continue => {
                let is_break = matches!(statement.kind, StatementKind::Break);
                let Some(around) = self.loops.last().cloned() else {
                    return self.fault(staging_syntax::no_loop(span));
                };
                let callee = if is_break { around.exit } else { around.next.unwrap_or(around.exit) };
                // As for `return`.
                let stage = if self.has_labels { self.with_value(self.at, Value::Var(callee)) } else { self.at };
                self.go_on(&around, callee, stage, span);
            }
            StatementKind::If(condition, then, otherwise) => {
                return self.if_statement(condition, then, otherwise.as_deref(), span);
            }
            StatementKind::For { first, condition, step, body } => {
                let mark = self.scope.len();
                let control = self.for_statement(first.as_deref(), condition.as_ref(), step.as_deref(), body, span)?;
                self.leave_scope(mark);
                return Ok(Some(control));
            }
        }
        Ok(None)
    }

    /// The value as one of the statement: a copy is a call, which binds the variable.
    pub(super) fn named(&mut self, operand: Operand, name: &str, span: Span) -> Value {
        if operand.is_new {
            return operand.value;
        }
        let ty = self.ty(operand.ty);
        let var = self.var(name, ty, span);
        self.push(self.at, Callee::Rest, vec![operand.value], vec![var], span);
        Value::Var(var)
    }

    /// A stage is what it is called for, without waiting, but for its label.
    pub(super) fn declared_stage(&mut self, expr: &Expr<'s>, name: &str, has_label: bool) -> Done<Value> {
        if is_computed(expr) {
            return Ok(self.value(expr, STAGE, name)?.value);
        }
        let mut stage = self.stage(expr)?;
        if has_label {
            stage = self.both(stage, self.at);
        }
        Ok(self.stage_value(stage, expr.span))
    }

    pub(super) fn assign(&mut self, target: &Expr<'s>, op: Option<Binary>, value: &Expr<'s>, span: Span) -> Done<()> {
        match self.place(target)? {
            Place::Local { ty, first } => {
                if ty == STAGE {
                    return self.fault(staging_type::stage_assigned(span));
                }
                let name = match &target.kind {
                    ExprKind::Name(name) => name.to_string(),
                    _ => self.locals[first]
                        .value
                        .and_then(|v| if let Value::Var(x) = v { self.terms.name(x) } else { None })
                        .map_or("t".to_string(), |n| n.to_string()),
                };
                let operands = match op {
                    None => self.values(value, ty, &name)?,
                    Some(op) => vec![self.updated(Place::Local { ty, first }, op, value, &name, target)?],
                };
                let leaves = self.named_leaves(ty, &name);
                for (i, ((leaf, _), operand)) in leaves.into_iter().zip(operands).enumerate() {
                    self.locals[first + i].value = Some(self.named(operand, &leaf, target.span));
                }
            }
            Place::Element { array, idx, ty, leaf } => {
                let operands = match op {
                    None => self.values(value, ty, "t")?,
                    Some(op) => {
                        vec![self.updated(Place::Element { array, idx, ty, leaf }, op, value, "t", target)?]
                    }
                };
                self.store(array, idx.value, leaf, &operands, span);
            }
            Place::Value(..) => return self.fault(staging_syntax::no_target(target.span)),
        }
        Ok(())
    }

    /// What is at a place, changed by an operator.
    fn updated(&mut self, place: Place, op: Binary, value: &Expr<'s>, name: &str, target: &Expr<'s>) -> Done<Operand> {
        let (ty, operands) = self.load(place, "t", target)?;
        let left = self.one(ty, operands, target.span)?;
        let right = self.expr(value, "t")?;
        let result = self.binary(op, left, right, name)?;
        self.convert(result, ty, false, name)
    }

    /// Stores the elements of an array in braces.
    fn fill(&mut self, array: Operand, element: Type, value: &Expr<'s>) -> Done<()> {
        let ExprKind::List(elements) = &value.kind else { return self.fault(staging_syntax::no_array(value.span)) };
        for (i, expr) in elements.iter().enumerate() {
            let operands = self.values(expr, element, "t")?;
            self.store(array, Value::Const(Const::Int(i as i32)), 0, &operands, expr.span);
        }
        Ok(())
    }

    /// Locals, by their numbers, as arguments, with the stage of the last statement if `is_staged`.
    pub(super) fn carry(&mut self, carried: &[usize], is_staged: bool, span: Span) -> Vec<Value> {
        let unknown = Value::Const(Const::Stage(false));
        let mut args: Vec<Value> = carried.iter().map(|&local| self.locals[local].value.unwrap_or(unknown)).collect();
        if is_staged {
            args.push(self.stage_value(self.flow.last, span));
        }
        args
    }

    /// Goes on with a function that takes the locals that a loop changes.
    pub(super) fn go_on(&mut self, around: &Loop, callee: Var, stage: Stage, span: Span) {
        let args = self.carry(&around.carried, around.is_staged, span);
        self.end(stage, Value::Var(callee), args, span);
    }

    /// The leaves of variables that are in scope under these names, in the order of their declarations.
    fn leaves_named(&self, names: FxHashSet<&'s str>) -> Vec<usize> {
        let mut leaves: Vec<usize> = Vec::new();
        for name in names {
            if let Some(Entity::Local(ty, first)) = self.entity(name) {
                leaves.extend(first..first + self.leaves(ty).len());
            }
        }
        leaves.sort_unstable();
        leaves
    }

    fn values_of(&self, leaves: &[usize]) -> Vec<Option<Value>> {
        leaves.iter().map(|&leaf| self.locals[leaf].value).collect()
    }

    fn set_values(&mut self, leaves: &[usize], values: &[Option<Value>]) {
        for (&leaf, &value) in leaves.iter().zip(values) {
            self.locals[leaf].value = value;
        }
    }

    /// Parameters for locals, which have these as values from here on, and one for a stage.
    pub(super) fn take(&mut self, carried: &[usize], is_staged: bool, span: Span) -> Vec<Var> {
        let mut params = Vec::new();
        for &local in carried {
            let name = match self.locals[local].value {
                Some(Value::Var(x)) => self.terms.name(x).map_or("x".to_string(), |n| n.to_string()),
                _ => "x".to_string(),
            };
            let ty = self.ty(self.locals[local].ty);
            let var = self.var(&name, ty, span);
            self.locals[local].value = Some(Value::Var(var));
            params.push(var);
        }
        if is_staged {
            let ty = self.ty(STAGE);
            params.push(self.var("last", ty, span));
        }
        params
    }

    pub(super) fn carried_ty(&mut self, carried: &[usize], is_staged: bool) -> Ty {
        let mut types: Vec<Type> = carried.iter().map(|&local| self.locals[local].ty).collect();
        types.extend(is_staged.then_some(STAGE));
        self.fn_ty(&types)
    }

    /// Behind a function's head: the stage that it takes last is that of the last statement, with its own.
    pub(super) fn arrive(&mut self, params: &[Var], is_staged: bool, own: Var) -> Stage {
        let own = self.of_var(own);
        if is_staged {
            let last = self.of_var(params[params.len() - 1]);
            return self.both(last, own);
        }
        own
    }

    pub(super) fn if_statement(
        &mut self,
        condition: &Expr<'s>,
        then: &Statement<'s>,
        otherwise: Option<&Statement<'s>>,
        span: Span,
    ) -> Done<Option<Stage>> {
        let condition = self.condition(condition)?;
        let stage = self.with_value(self.at, condition.value);
        // What the branches assign, with its values before them, behind the first, behind the second.
        let mut names = FxHashSet::default();
        assigned(then, &mut names);
        otherwise.iter().for_each(|s| assigned(s, &mut names));
        let changed = self.leaves_named(names);
        let before = self.values_of(&changed);
        let mut branches = Vec::new();
        for branch in [Some(then), otherwise] {
            let own = self.stage_var();
            self.bound_at(stage, &[own]);
            let start = self.of_var(own);
            let (flow, at) = self.enter(start);
            let made = branch.map_or(Ok(()), |b| self.part(b));
            let inner = self.leave(flow, at);
            made?;
            let after = self.values_of(&changed);
            self.set_values(&changed, &before);
            branches.push((own, inner, after));
        }
        let if_value = Value::Const(Const::Prim(Prim::If));
        let (else_own, else_flow, else_after) = branches.remove(1);
        let (then_own, then_flow, then_after) = branches.remove(0);
        match (then_flow.end.is_some(), else_flow.end.is_some()) {
            (true, true) => {
                let bodies = [(then_own, then_flow), (else_own, else_flow)].map(|(own, flow)| {
                    let body = self.close(flow);
                    Value::Lam(self.terms.lam(own, [], body))
                });
                self.end(stage, if_value, vec![condition.value, bodies[0], bodies[1]], span);
                Ok(None)
            }
            (false, false) => {
                let mut carried = Vec::new();
                let (mut then_carried, mut else_carried) = (Vec::new(), Vec::new());
                for (i, &local) in changed.iter().enumerate() {
                    match (then_after[i], else_after[i]) {
                        (a, b) if a == b => self.locals[local].value = a,
                        (Some(_), Some(_)) => {
                            carried.push(local);
                            then_carried.push(then_after[i]);
                            else_carried.push(else_after[i]);
                        }
                        _ => self.locals[local].value = None,
                    }
                }
                let is_staged = has_labels(then) || otherwise.is_some_and(has_labels);
                let ty = self.carried_ty(&carried, is_staged);
                let join = self.var("join", ty, span);
                let mut bodies = Vec::new();
                for (own, flow, after) in [(then_own, then_flow, then_carried), (else_own, else_flow, else_carried)] {
                    let kept = self.values_of(&carried);
                    self.set_values(&carried, &after);
                    let outer = (std::mem::replace(&mut self.flow, flow), self.at);
                    let args = self.carry(&carried, is_staged, span);
                    self.end(self.flow.control, Value::Var(join), args, span);
                    let flow = self.leave(outer.0, outer.1);
                    self.set_values(&carried, &kept);
                    let body = self.close(flow);
                    bodies.push(Value::Lam(self.terms.lam(own, [], body)));
                }
                let outer = self.stage_var();
                let natural = self.of_var(outer);
                let body = self.terms.apply(natural, if_value, [condition.value, bodies[0], bodies[1]], span);
                let callee = Value::Lam(self.terms.lam(outer, [join], body));
                for &local in &carried {
                    self.locals[local].value = self.locals[local].value.or(Some(Value::Const(Const::Int(0))));
                }
                let params = self.take(&carried, is_staged, span);
                let own = self.push(stage, Callee::Value(callee), Vec::new(), params.clone(), span);
                self.flow.last = self.arrive(&params, is_staged, own);
                Ok(Some(self.of_var(own)))
            }
            (then_ends, _) => {
                // What follows is in the branch that does not end.
                let (open_own, mut open, after, closed_own, closed) = if then_ends {
                    (else_own, else_flow, else_after, then_own, then_flow)
                } else {
                    (then_own, then_flow, then_after, else_own, else_flow)
                };
                let closed = self.close(closed);
                let closed = Value::Lam(self.terms.lam(closed_own, [], closed));
                let (args, behind) = if then_ends {
                    (vec![condition.value, closed], vec![])
                } else {
                    (vec![condition.value], vec![closed])
                };
                self.flow.pending.push(Pending {
                    stage,
                    callee: Callee::Value(if_value),
                    args,
                    after: behind,
                    params: Vec::new(),
                    own: open_own,
                    span,
                });
                self.flow.pending.append(&mut open.pending);
                self.flow.last = open.last;
                self.set_values(&changed, &after);
                Ok(Some(open.control))
            }
        }
    }

    pub(super) fn for_statement(
        &mut self,
        first: Option<&Statement<'s>>,
        condition: Option<&Expr<'s>>,
        step: Option<&Statement<'s>>,
        body: &Statement<'s>,
        span: Span,
    ) -> Done<Stage> {
        if let Some(first) = first {
            self.statement_at(first)?;
            self.at = self.flow.last;
        }
        let stage = self.at;
        let mut names = FxHashSet::default();
        assigned(body, &mut names);
        if let Some(step) = step {
            assigned(step, &mut names);
        }
        let changed = self.leaves_named(names);
        let carried: Vec<usize> = changed.iter().copied().filter(|&l| self.locals[l].value.is_some()).collect();
        let is_staged = has_labels(body);
        let ty = self.carried_ty(&carried, is_staged);
        let (exit, fixed) = (self.var("exit", ty, span), self.var("loop", ty, span));
        // Locals that have no value yet have none behind the loop.
        let before = self.values_of(&changed);
        let initial = self.carry(&carried, is_staged, span);
        let params = self.take(&carried, is_staged, span);
        let own = self.stage_var();
        // The next turn is called by this one.
        self.bound_at(stage, &params);
        self.bound_at(stage, &[own]);
        let start = self.of_var(own);
        let around = Loop { exit, next: None, carried: carried.clone(), is_staged };
        let made = self.lambda(params.clone(), own, start, |t| {
            let Some(condition) = condition else { return t.turn(&around, fixed, step, body, span) };
            let condition = t.condition(condition)?;
            let at = t.with_value(t.at, condition.value);
            let (then_own, else_own) = (t.stage_var(), t.stage_var());
            t.bound_at(at, &[then_own, else_own]);
            let then_stage = t.of_var(then_own);
            let else_stage = t.of_var(else_own);
            let heads = t.values_of(&changed);
            let then = t.lambda(Vec::new(), then_own, then_stage, |t| t.turn(&around, fixed, step, body, span))?;
            t.set_values(&changed, &heads);
            let otherwise = t.lambda(Vec::new(), else_own, else_stage, |t| {
                if is_staged {
                    t.flow.last = t.of_var(params[params.len() - 1]);
                }
                t.go_on(&around, exit, else_stage, span);
                Ok(())
            })?;
            let branch = Value::Const(Const::Prim(Prim::If));
            t.end(at, branch, vec![condition.value, Value::Lam(then), Value::Lam(otherwise)], span);
            Ok(())
        });
        let lam = made?;
        self.set_values(&changed, &before);
        let outer = self.stage_var();
        let natural = self.of_var(outer);
        let of_fixed = self.of_var(fixed);
        let enter = self.both(natural, of_fixed);
        let enter = self.terms.apply(enter, Value::Var(fixed), initial, span);
        let whole = self.terms.fix(natural, fixed, lam, enter, span);
        let callee = Value::Lam(self.terms.lam(outer, [exit], whole));
        let params = self.take(&carried, is_staged, span);
        let own = self.push(stage, Callee::Value(callee), Vec::new(), params.clone(), span);
        self.flow.last = self.arrive(&params, is_staged, own);
        Ok(self.of_var(own))
    }

    /// A turn of a loop, and the call of the next one.
    pub(super) fn turn(
        &mut self,
        around: &Loop,
        fixed: Var,
        step: Option<&Statement<'s>>,
        body: &Statement<'s>,
        span: Span,
    ) -> Done<()> {
        let next_turn = |t: &mut Self| -> Done<()> {
            let last = t.flow.last;
            t.flow.last = t.flow.control;
            t.at = t.flow.control;
            if let Some(step) = step {
                t.statement_at(step)?;
            }
            let stage = t.flow.last;
            t.flow.last = last;
            let of_fixed = t.of_var(fixed);
            let stage = t.both(stage, of_fixed);
            t.go_on(around, fixed, stage, span);
            Ok(())
        };
        if !continues(body) {
            self.loops.push(around.clone());
            let made = self.part(body);
            self.loops.pop();
            made?;
            return if self.flow.end.is_some() { Ok(()) } else { next_turn(self) };
        }
        // `continue` calls what the body goes on with.
        let ty = self.carried_ty(&around.carried, around.is_staged);
        let next = self.var("next", ty, span);
        let inner_own = self.stage_var();
        let inner_stage = self.of_var(inner_own);
        let stage = self.flow.last;
        self.bound_at(stage, &[next, inner_own]);
        let mut names = FxHashSet::default();
        assigned(body, &mut names);
        let changed = self.leaves_named(names);
        let before = self.values_of(&changed);
        let of_body = Loop { next: Some(next), ..around.clone() };
        let callee = self.lambda(vec![next], inner_own, inner_stage, |t| {
            t.loops.push(of_body.clone());
            let made = t.part(body);
            t.loops.pop();
            made?;
            if t.flow.end.is_none() {
                t.go_on(&of_body, next, t.flow.control, span);
            }
            Ok(())
        })?;
        self.set_values(&changed, &before);
        let params = self.take(&around.carried, around.is_staged, span);
        let own = self.push(stage, Callee::Value(Value::Lam(callee)), Vec::new(), params.clone(), span);
        self.flow.last = self.arrive(&params, around.is_staged, own);
        self.flow.control = self.of_var(own);
        next_turn(self)
    }
}

/// The parts of a statement that are statements.
fn parts<'a, 's>(statement: &'a Statement<'s>) -> Vec<&'a Statement<'s>> {
    match &statement.kind {
        StatementKind::Block(statements) => statements.iter().collect(),
        StatementKind::If(_, then, otherwise) => std::iter::once(&**then).chain(otherwise.as_deref()).collect(),
        StatementKind::For { first, step, body, .. } => {
            first.as_deref().into_iter().chain(step.as_deref()).chain([&**body]).collect()
        }
        _ => Vec::new(),
    }
}

/// Names that a statement assigns. One of them may be a variable of its own.
fn assigned<'s>(statement: &Statement<'s>, names: &mut FxHashSet<&'s str>) {
    let mut work = vec![statement];
    while let Some(statement) = work.pop() {
        if let StatementKind::Assign(target, ..) = &statement.kind {
            let mut of = target;
            while let Some((inner, PostfixKind::Field(_))) = of.behind() {
                of = inner;
            }
            if let ExprKind::Name(name) = of.kind {
                names.insert(name);
            }
        }
        work.extend(parts(statement));
    }
}

fn has_labels(statement: &Statement) -> bool {
    let mut work = vec![statement];
    while let Some(statement) = work.pop() {
        if !statement.labels.is_empty() {
            return true;
        }
        work.extend(parts(statement));
    }
    false
}

/// Whether a `continue` in the statement belongs to the loop around it.
fn continues(statement: &Statement) -> bool {
    let mut work = vec![statement];
    while let Some(statement) = work.pop() {
        match statement.kind {
            StatementKind::Continue => return true,
            StatementKind::For { .. } => (),
            _ => work.extend(parts(statement)),
        }
    }
    false
}
