//! Statements.

use super::*;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn statements(&mut self, statements: &[Statement<'s>]) {
        for statement in statements {
            let done = self.statement(statement);
            self.report(done);
        }
    }

    fn scoped(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<()> {
        self.scopes.push(FxHashMap::default());
        let done = lower(self);
        self.scopes.pop();
        done
    }

    fn statement(&mut self, statement: &Statement<'s>) -> Lowered<()> {
        self.w.set_origin(statement.span);
        match &statement.kind {
            StatementKind::Empty => Ok(()),
            StatementKind::Block(inner) => self.scoped(|l| {
                l.statements(inner);
                Ok(())
            }),
            StatementKind::Declare(declaration) => self.local_declaration(declaration),
            StatementKind::Value(e) => self.effect(e),
            StatementKind::If(arms, otherwise) => self.if_statement(arms, otherwise.as_deref()),
            StatementKind::For { first, condition, step, body } => self.scoped(|l| {
                if let Some(first) = first {
                    l.statement(first)?;
                }
                l.loop_statement(condition.as_ref(), step.as_ref(), body, true)
            }),
            StatementKind::DoWhile(body, condition) => self.loop_statement(Some(condition), None, body, false),
            StatementKind::Switch(value, body) => self.switch(value, body),
            StatementKind::Case(_) => Err(Box::new(sierra_syntax::misplaced(statement.span, "case", "`switch`"))),
            StatementKind::Default => Err(Box::new(sierra_syntax::misplaced(statement.span, "default", "`switch`"))),
            StatementKind::Return(value) => self.return_statement(value.as_ref(), statement.span),
            StatementKind::Break => match self.targets.last() {
                Some(&Targets { after, .. }) => {
                    self.jump(after, &[]);
                    Ok(())
                }
                None => Err(Box::new(sierra_syntax::misplaced(statement.span, "break", "loop or `switch`"))),
            },
            StatementKind::Continue => match self.targets.last().and_then(|t| t.next) {
                Some(next) => {
                    self.jump(next, &[]);
                    Ok(())
                }
                None => Err(Box::new(sierra_syntax::misplaced(statement.span, "continue", "loop"))),
            },
        }
    }

    fn local_declaration(&mut self, declaration: &Declaration<'s>) -> Lowered<()> {
        let base = self.specified(&declaration.specifier)?;
        for (declarator, init) in &declaration.declared {
            let Some(name) = declarator.name else { continue };
            if declarator.params.is_some() {
                let hint = "declare it outside of functions";
                return Err(Box::new(limitation::not_supported(declarator.span, "functions declared in others", hint)));
            }
            match declaration.storage {
                Storage::Typedef => {
                    let ty = self.declared_type(base, declaration.specifier.is_const, declarator)?;
                    self.declare(name, Entity::Type(ty))?;
                    continue;
                }
                Storage::Static | Storage::Extern => {
                    self.static_variable(declaration, base, declarator, init.as_ref())?;
                    continue;
                }
                Storage::Automatic => {}
            }
            let is_const = Self::is_const(&declaration.specifier, declarator);
            let ty = self.initialized_type(base, declaration.specifier.is_const, declarator, init.as_ref())?;
            self.complete(ty, declarator.span)?;
            self.w.set_origin(name.span);
            let val = match init {
                Some(init) => self.initial_value(ty, init),
                None => {
                    let ir = self.types.ir(ty, self.w);
                    Ok(self.w.undef(ir))
                }
            };
            self.w.set_origin(name.span);
            // A faulty value is no reason to call the variable unknown.
            let (val, fault) = match val {
                Ok(val) => (val, None),
                Err(fault) => (self.zero(ty), Some(fault)),
            };
            // The value of a constant may be needed where the compiler computes.
            let address = match self.w.as_lit(val).filter(|_| is_const && init.is_some()) {
                Some(_) => {
                    let ir = self.w.ty(val);
                    let global = self.w.declare_global(name.text, ir, false);
                    self.w.set_init(global, val);
                    self.w.global_val(global)
                }
                None => self.slot(val),
            };
            self.declare(name, Entity::Variable(Variable { address, ty, is_const }))?;
            fault.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn if_statement(
        &mut self,
        arms: &[(Expr<'s>, Statement<'s>)],
        otherwise: Option<&Statement<'s>>,
    ) -> Lowered<()> {
        let after = self.block("after");
        for (condition, then) in arms {
            let holds = self.condition(condition);
            let (k_then, k_else) = (self.block("then"), self.block("else"));
            self.branch(holds, k_then, k_else);
            self.go_on_in(k_then);
            let done = self.scoped(|l| l.statement(then));
            self.report(done);
            self.jump(after, &[]);
            self.go_on_in(k_else);
        }
        if let Some(otherwise) = otherwise {
            let done = self.scoped(|l| l.statement(otherwise));
            self.report(done);
        }
        self.jump(after, &[]);
        self.go_on_in(after);
        Ok(())
    }

    /// The value of a condition. What is wrong with it is reported.
    fn condition(&mut self, e: &Expr<'s>) -> Val {
        let found = self.value(e).and_then(|value| {
            self.w.set_origin(e.span);
            self.truth(value, e.span)
        });
        match found {
            Ok(val) => val,
            Err(fault) => {
                self.sink.push(*fault);
                // Both ways are lowered.
                self.w.lit_bool(true)
            }
        }
    }

    fn loop_statement(
        &mut self,
        condition: Option<&Expr<'s>>,
        step: Option<&Expr<'s>>,
        body: &Statement<'s>,
        tests_first: bool,
    ) -> Lowered<()> {
        let (test, k_body) = (self.block("test"), self.block("body"));
        let (next, after) = (self.block("next"), self.block("after"));
        self.jump(if tests_first { test } else { k_body }, &[]);
        // Each block is lowered behind one that leads to it.
        if tests_first {
            self.test(test, condition, k_body, after);
        }
        self.go_on_in(k_body);
        self.targets.push(Targets { after, next: Some(next) });
        let done = self.scoped(|l| l.statement(body));
        self.targets.pop();
        self.report(done);
        self.jump(next, &[]);
        self.go_on_in(next);
        let done = step.map_or(Ok(()), |step| self.effect(step));
        self.report(done);
        self.jump(test, &[]);
        if !tests_first {
            self.test(test, condition, k_body, after);
        }
        self.go_on_in(after);
        Ok(())
    }

    fn test(&mut self, test: Cont, condition: Option<&Expr<'s>>, body: Cont, after: Cont) {
        self.go_on_in(test);
        match condition {
            Some(condition) => {
                let holds = self.condition(condition);
                self.branch(holds, body, after);
            }
            None => self.jump(body, &[]),
        }
    }

    fn switch(&mut self, value: &Expr<'s>, body: &[Statement<'s>]) -> Lowered<()> {
        let found = self.value(value)?;
        let Some(prim) = self.types.as_prim(found.1).filter(|p| !p.is_float()) else {
            return Err(Box::new(sierra_type::mismatch(value.span, &self.types.show(found.1), "an integer")));
        };
        let prim = self.promoted(prim);
        let ty = self.types.prim(prim);
        let val = self.convert(found, ty, value.span)?;
        let after = self.block("after");
        // Where each label leads to, in their order.
        let mut labels = Vec::new();
        let mut default = after;
        let mut seen = FxHashMap::default();
        for statement in body {
            match &statement.kind {
                StatementKind::Case(e) => {
                    let n = self.constant_int(e)?;
                    if seen.insert(n, ()).is_some() {
                        return Err(Box::new(sierra_constant::twice(e.span, n)));
                    }
                    let k = self.block("case");
                    labels.push((statement.span, k));
                    let expected = self.w.lit_prim(prim, prim.normalize(n as u64));
                    self.w.set_origin(e.span);
                    let is_equal = self.w.op(Op::Eq, &[val, expected]);
                    let rest = self.block("else");
                    self.branch(is_equal, k, rest);
                    self.go_on_in(rest);
                }
                StatementKind::Default if default == after => {
                    default = self.block("default");
                    labels.push((statement.span, default));
                }
                StatementKind::Default => {
                    return Err(Box::new(sierra_syntax::misplaced(statement.span, "default", "`switch` without one")));
                }
                _ => {}
            }
        }
        self.jump(default, &[]);
        let next = self.targets.last().and_then(|t| t.next);
        self.targets.push(Targets { after, next });
        let mut labels = labels.into_iter();
        let done = self.scoped(|l| {
            for statement in body {
                if matches!(statement.kind, StatementKind::Case(_) | StatementKind::Default) {
                    let Some((_, k)) = labels.next() else { break };
                    l.jump(k, &[]);
                    l.go_on_in(k);
                } else {
                    let done = l.statement(statement);
                    l.report(done);
                }
            }
            Ok(())
        });
        self.targets.pop();
        self.jump(after, &[]);
        self.go_on_in(after);
        done
    }

    fn return_statement(&mut self, value: Option<&Expr<'s>>, span: Span) -> Lowered<()> {
        let Some((ret, ty)) = self.result else { return Ok(()) };
        match value {
            None if ty == Types::VOID => self.end(ret, &[]),
            None => return Err(Box::new(sierra_type::no_return(span, &self.types.show(ty)))),
            Some(e) if ty == Types::VOID => {
                self.effect(e)?;
                self.end(ret, &[]);
            }
            Some(e) => {
                let found = self.value(e)?;
                self.w.set_origin(e.span);
                let val = self.convert(found, ty, e.span)?;
                self.w.set_origin(span);
                self.end(ret, &[val]);
            }
        }
        Ok(())
    }
}
