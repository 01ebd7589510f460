//! Statements.

use super::*;

impl<'s> Lowerer<'s, '_> {
    pub(super) fn statements(&mut self, statements: &[Statement<'s>]) {
        let outer = self.rest_is_cheap;
        for (i, statement) in statements.iter().enumerate() {
            self.rest_is_cheap = outer && self.mode.is_some() && self.are_cheap(&statements[i + 1..]);
            let done = self.statement(statement);
            self.report(done);
        }
        self.rest_is_cheap = outer;
    }

    pub(super) fn scoped(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<()> {
        self.scopes.push(FxHashMap::default());
        let done = lower(self);
        self.scopes.pop();
        done
    }

    pub(super) fn statement(&mut self, statement: &Statement<'s>) -> Lowered<()> {
        self.w.set_origin(statement.span);
        match &statement.kind {
            StatementKind::Empty => Ok(()),
            StatementKind::Block(inner) => self.scoped(|l| {
                l.statements(inner);
                Ok(())
            }),
            StatementKind::Declare(declaration) => self.local_declaration(declaration),
            StatementKind::Value(e) => self.effect(e),
            StatementKind::Decide(parts) => {
                let (condition, then, otherwise) = &**parts;
                match (self.constant_int(condition)? != 0, otherwise) {
                    (true, _) => self.scoped(|l| l.statement(then)),
                    (false, Some(otherwise)) => self.scoped(|l| l.statement(otherwise)),
                    (false, None) => Ok(()),
                }
            }
            StatementKind::If(arms, otherwise) => self.if_statement(arms, otherwise.as_deref(), 0),
            StatementKind::For { first, condition, step, body } => self.scoped(|l| {
                if let Some(first) = first {
                    l.statement(first)?;
                }
                l.loop_statement(condition.as_ref(), step.as_ref(), body, true)
            }),
            StatementKind::DoWhile(body, condition) => self.loop_statement(Some(condition), None, body, false),
            StatementKind::Switch(value, body) => {
                self.within_switch(statement, |l| l.with_variables_of_cases(body, |l| l.switch(value, body)))
            }
            StatementKind::Case(_) => Err(Box::new(c_syntax::misplaced(statement.span, "case", "`switch`"))),
            StatementKind::Default => Err(Box::new(c_syntax::misplaced(statement.span, "default", "`switch`"))),
            StatementKind::Return(value) => self.return_statement(value.as_ref(), statement.span),
            StatementKind::Break | StatementKind::Continue => {
                let is_break = matches!(statement.kind, StatementKind::Break);
                self.leave_loop(is_break, statement.span)
            }
            StatementKind::Scalar(name, body) => self.scoped(|l| {
                let Some(mode) = l.mode else {
                    return Err(Box::new(sierra_lanes::no_mode(statement.span, "scalar")));
                };
                if let Some(name) = name {
                    l.declare_mask(*name, mode, statement.span)?;
                }
                l.in_scalar_mode(|l| l.statement(body))
            }),
            StatementKind::ForEachActive(mask, lane, body) => {
                self.scoped(|l| l.for_each_active(*mask, *lane, body, statement.span))
            }
            StatementKind::ForEach(dimensions, body) => self.scoped(|l| l.foreach(dimensions, body, statement.span)),
            StatementKind::ForEachLane(name, body) => self.scoped(|l| l.foreach_lane(*name, body, statement.span)),
            StatementKind::Unmasked(body) => self.scoped(|l| l.unmasked(body, statement.span)),
            StatementKind::Delete(pointer) => self.delete(pointer, statement.span),
            StatementKind::Sync => self.sync(statement.span),
            StatementKind::Goto(name) => self.goto(*name),
            StatementKind::Label(name) => self.label(*name),
            StatementKind::ForEachUnique(name, values, body) => {
                self.scoped(|l| l.for_each_unique(*name, values, body, statement.span))
            }
        }
    }

    fn local_declaration(&mut self, declaration: &Declaration<'s>) -> Lowered<()> {
        if matches!(declaration.specifier.kind, SpecifierKind::Auto) {
            return self.deduced_declaration(declaration);
        }
        let base = self.specified(&declaration.specifier)?;
        for (declarator, init) in &declaration.declared {
            let Some(name) = declarator.name else { continue };
            if declarator.params.is_some() && self.is_ispc {
                self.signature_of(declaration.storage, base, &declaration.specifier, declarator)?;
                continue;
            }
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
                Storage::Static | Storage::Extern | Storage::ExternC => {
                    self.static_variable(declaration, base, declarator, init.as_ref())?;
                    continue;
                }
                Storage::Automatic | Storage::Export => {}
            }
            let is_const = Self::is_const(&declaration.specifier, declarator);
            if declarator.is_reference {
                let ty = self.referred_type(base, declaration.specifier.is_const, declarator)?;
                let Some(Init::Value(e)) = init else {
                    return Err(Box::new(sierra_type::no_place(declarator.span, "a reference")));
                };
                if let Some(n) = &declarator.reference_lanes {
                    let n = self.length(n)?;
                    let lanes = self.referred_lanes(e, ty, is_const, n)?;
                    self.lane_references.push(lanes);
                    self.note_reference(name);
                    self.declare(name, Entity::Lanes(self.lane_references.len() - 1))?;
                    continue;
                }
                let address = self.referred(e, ty, is_const)?;
                self.note_reference(name);
                let zero = self.w.lit_i64(0);
                let address = self.w.op(Op::Lea, &[address, zero]);
                self.declare(name, Entity::Variable(Variable { address, ty, is_const }))?;
                continue;
            }
            let ty = self.initialized_type(base, declaration.specifier.is_const, declarator, init.as_ref())?;
            self.complete(ty, declarator.span)?;
            self.w.set_origin(name.span);
            let val = match init {
                Some(init) => self.initial_value(ty, init),
                None => Ok(self.no_value(ty)),
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
                None => self.variable(val, ty, init.is_some(), name.span)?,
            };
            if self.types.is_varying(ty) {
                self.note_local(name.text, address);
                if init.is_some() && self.is_unchanged(name.text) && !self.is_of_cases() {
                    self.values.insert(address, val);
                }
            }
            self.declare(name, Entity::Variable(Variable { address, ty, is_const }))?;
            fault.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// What a variable has that is declared without a value.
    pub(super) fn no_value(&mut self, ty: Ty) -> Val {
        // Lanes that are not active at the first assignment are computed with, too.
        if (self.is_ispc || self.mode.is_some()) && self.is_anywhere_varying(ty) {
            return self.zero(ty);
        }
        let ir = self.types.ir(ty, self.w);
        self.w.undef(ir)
    }

    /// Variables with the types of their values.
    fn deduced_declaration(&mut self, declaration: &Declaration<'s>) -> Lowered<()> {
        for (declarator, init) in &declaration.declared {
            let (Some(name), Some(Init::Value(e)), [], [], None, None, Storage::Automatic, None, false) = (
                declarator.name,
                init,
                &declarator.pointers[..],
                &declarator.lengths[..],
                &declarator.params,
                &declarator.function,
                declaration.storage,
                &declaration.specifier.varying,
                declarator.is_reference,
            ) else {
                return Err(Box::new(sierra_type::not_deduced(declarator.span)));
            };
            let (val, ty) = self.value(e)?;
            self.complete(ty, e.span)?;
            self.w.set_origin(name.span);
            let address = self.variable(val, ty, true, name.span)?;
            let is_const = declaration.specifier.is_const;
            self.declare(name, Entity::Variable(Variable { address, ty, is_const }))?;
        }
        Ok(())
    }

    fn if_statement(
        &mut self,
        arms: &[(Expr<'s>, Statement<'s>)],
        otherwise: Option<&Statement<'s>>,
        depth: u32,
    ) -> Lowered<()> {
        let after = self.block("after");
        for (i, (condition, then)) in arms.iter().enumerate() {
            let (holds, lanes) = self.condition(condition);
            if let Some(n) = lanes {
                if depth > MAX_ARMS {
                    return Err(Box::new(c_syntax::too_deep(condition.span, MAX_ARMS)));
                }
                // What follows is the other branch.
                let rest = &arms[i + 1..];
                let cheap = |s: &Statement<'s>| self.are_cheap(std::slice::from_ref(s));
                let are_cheap = [cheap(then), rest.is_empty() && otherwise.is_none_or(cheap)];
                let done = self.if_lanes(
                    holds,
                    n,
                    condition.span,
                    are_cheap,
                    |l| l.within(then, false, true, |l| l.reported(then)),
                    |l| match (rest, otherwise) {
                        ([], None) => Ok(()),
                        ([], Some(otherwise)) => l.within(otherwise, false, true, |l| l.reported(otherwise)),
                        // All that follows is around it.
                        ([.., (_, last)], otherwise) => l.within(otherwise.unwrap_or(last), false, true, |l| {
                            l.if_statement(rest, otherwise, depth + 1)
                        }),
                    },
                );
                self.jump(after, &[]);
                self.go_on_in(after);
                done?;
                return if i > 0 { self.go_on_with_lanes(condition.span) } else { Ok(()) };
            }
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
        let span = arms.first().map_or(Span::NONE, |a| a.0.span);
        self.go_on_with_lanes(span)
    }

    /// A statement in a scope of its own. What is wrong with it is reported.
    pub(super) fn reported(&mut self, statement: &Statement<'s>) -> Lowered<()> {
        let done = self.scoped(|l| l.statement(statement));
        self.report(done);
        Ok(())
    }

    /// The value of a condition, and the number of its lanes. What is wrong with it is reported.
    fn condition(&mut self, e: &Expr<'s>) -> (Val, Option<u32>) {
        let found = self.value(e).and_then(|value| {
            self.w.set_origin(e.span);
            Ok((self.truth(value, e.span)?, self.types.lanes(value.1)))
        });
        match found {
            Ok(found) => found,
            Err(fault) => {
                self.sink.push(*fault);
                // Both ways are lowered.
                (self.w.lit_bool(true), None)
            }
        }
    }

    // SIMD mode.

    fn leave_loop(&mut self, is_break: bool, span: Span) -> Lowered<()> {
        let what = if is_break { "break" } else { "continue" };
        let around = if is_break { "loop or `switch`" } else { "loop" };
        let target = self.targets.iter().rev().find(|t| is_break || !t.is_switch);
        let Some(&target) = target else {
            return Err(Box::new(c_syntax::misplaced(span, what, around)));
        };
        if is_break && (target.is_foreach || target.is_turn) {
            return Err(Box::new(c_syntax::misplaced(span, what, "loop that lanes may leave")));
        }
        let region = self.mode.map(|m| m.end);
        match (self.mode, target.continued) {
            (Some(mode), Some(continued)) if !target.is_switch => {
                if !is_break {
                    self.note(continued, mode, span)?;
                }
                self.leave(mode, span)
            }
            (Some(mode), _) if target.is_of_lanes => self.leave(mode, span),
            _ if region == target.region && !target.is_of_lanes => {
                let next = if is_break { Some(target.after) } else { target.next };
                if let Some(next) = next {
                    self.jump(next, &[]);
                }
                Ok(())
            }
            (Some(mode), None) if target.region.is_none() && !target.is_switch => {
                self.leaving = Some(mode.n);
                Ok(())
            }
            _ => {
                let what = format!("lanes that leave a `switch` without lanes by `{what}`");
                let hint = "write `if … else if …`";
                Err(Box::new(limitation::not_supported(span, &what, hint)))
            }
        }
    }

    fn in_scalar_mode(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<()> {
        let mode = self.mode.take();
        let targets = std::mem::take(&mut self.targets);
        let was_scalar = std::mem::replace(&mut self.is_scalar, true);
        let done = lower(self);
        (self.mode, self.targets, self.is_scalar) = (mode, targets, was_scalar);
        done
    }

    /// A variable with the current mask.
    fn declare_mask(&mut self, name: Name<'s>, mode: lanes::Mode, span: Span) -> Lowered<Val> {
        let mask = self.load(mode.mask, span)?;
        let active = self.bools(mask);
        let address = self.slot(active);
        let ty = self.numbers(Prim::Bool, Some(mode.n));
        self.declare(name, Entity::Variable(Variable { address, ty, is_const: false }))?;
        Ok(address)
    }

    fn for_each_active(&mut self, mask: Name<'s>, lane: Name<'s>, body: &Statement<'s>, span: Span) -> Lowered<()> {
        let Some(mode) = self.mode else {
            return Err(Box::new(sierra_lanes::no_mode(span, "for_each_active")));
        };
        let mask = self.declare_mask(mask, mode, span)?;
        let first = self.w.lit_i32(0);
        let number = self.slot(first);
        let ty = self.types.prim(Prim::I32);
        self.declare(lane, Entity::Variable(Variable { address: number, ty, is_const: false }))?;
        let (test, inner, next, after) =
            (self.block("test"), self.block("lane"), self.block("next"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let (found, from) = (self.load(mask, span)?, self.load(number, span)?);
        let i = self.next_true(found, mode.n, from);
        self.store(number, i, span)?;
        let zero = self.w.lit_i32(0);
        let is_lane = self.w.op(Op::Ge, &[i, zero]);
        self.branch(is_lane, inner, after);
        self.go_on_in(inner);
        let targets = Targets {
            after,
            next: Some(next),
            is_switch: false,
            is_of_lanes: false,
            region: None,
            continued: None,
            is_foreach: false,
            is_turn: false,
        };
        let done = self.in_scalar_mode(|l| {
            l.targets.push(targets);
            l.reported(body)
        });
        self.jump(next, &[]);
        self.go_on_in(next);
        let (i, one) = (self.load(number, span)?, self.w.lit_i32(1));
        let i = self.w.op(Op::Add, &[i, one]);
        self.store(number, i, span)?;
        self.jump(test, &[]);
        self.go_on_in(after);
        done
    }

    fn for_each_unique(&mut self, name: Name<'s>, values: &Expr<'s>, body: &Statement<'s>, span: Span) -> Lowered<()> {
        let (val, ty) = self.value(values)?;
        let Some(n) = self.types.lanes(ty).filter(|_| !matches!(self.types.kind(ty), Kind::Struct(_))) else {
            return Err(Box::new(sierra_lanes::no_lanes(values.span, &self.types.show(ty))));
        };
        self.same_mode(n, span)?;
        let lane = self.types.lane(ty);
        let zero = self.zero(lane);
        let found = self.slot(zero);
        self.declare(name, Entity::Variable(Variable { address: found, ty: lane, is_const: true }))?;
        let lanes::Turns { open, mask, lane: i, test, after } = self.turns(n, "value", span)?;
        let one = self.lane_of(val, ty, i);
        self.store(found, one, span)?;
        let all = self.broadcast(one, lane, ty);
        let is_equal = self.w.op(Op::Eq, &[val, all]);
        // A NaN is not even equal to itself: each lane is taken once all the same.
        let is_equal = self.mask_of_bools(is_equal);
        let lanes = self.w.op(Op::And, &[mask, is_equal]);
        let lanes = self.with_lane(lanes, i, true);
        let others = self.other_lanes(lanes);
        let rest = self.w.op(Op::And, &[mask, others]);
        self.store(open, rest, span)?;
        let left = self.turn(n, lanes, body, span)?;
        if let Some(mode) = self.mode {
            // Lanes that have left the body are active no more.
            let (outer, left) = (self.load(mode.mask, span)?, self.load(left, span)?);
            let stays = self.w.op(Op::Or, &[left, others]);
            let mask = self.w.op(Op::And, &[outer, stays]);
            self.store(mode.mask, mask, span)?;
        }
        self.jump(test, &[]);
        self.go_on_in(after);
        self.go_on_with_lanes(span)
    }

    /// The body of a loop that takes lanes in turns. In ISPC's dialect, `continue` ends it.
    pub(super) fn turn(&mut self, n: u32, lanes: Val, body: &Statement<'s>, span: Span) -> Lowered<Val> {
        if !self.is_ispc {
            return self.region(n, lanes, |l| l.within(body, true, true, |l| l.reported(body)));
        }
        let none = self.all_lanes(n, false);
        let continued = self.slot(none);
        let left = self.region(n, lanes, |l| {
            let Some(mode) = l.mode else { return Ok(()) };
            l.targets.push(Targets {
                after: mode.end,
                next: Some(mode.end),
                is_switch: false,
                is_of_lanes: false,
                region: Some(mode.end),
                continued: Some(continued),
                is_foreach: false,
                is_turn: true,
            });
            let done = l.within(body, true, true, |l| l.reported(body));
            l.targets.pop();
            done
        })?;
        let (stay, back) = (self.load(left, span)?, self.load(continued, span)?);
        let all = self.w.op(Op::Or, &[stay, back]);
        self.store(left, all, span)?;
        Ok(left)
    }

    /// The number of lanes if some may leave a loop one by one, in whose condition there are none: it is lowered twice then, and only the second
    /// time counts.
    fn lanes_that_leave(
        &mut self,
        condition: Option<&Expr<'s>>,
        step: Option<&Expr<'s>>,
        body: &Statement<'s>,
        tests_first: bool,
    ) -> Option<u32> {
        let key = std::ptr::from_ref(body) as usize;
        if let Some(&known) = self.loops.get(&key) {
            return known;
        }
        // Loops within it are tried here only.
        self.loops.insert(key, None);
        let labels = std::mem::take(&mut self.labels);
        let n_faults = self.sink.diagnostics.len();
        let cur = self.cur;
        let unused = self.block("unreached");
        self.go_on_in(unused);
        let around = self.leaving.take();
        let done = self.loop_statement(condition, step, body, tests_first);
        let mut found = std::mem::replace(&mut self.leaving, around);
        self.labels = labels;
        if let (Some(mode), true) = (self.mode, self.sink.diagnostics.len() > n_faults) {
            // Lanes leave it that are those of a region.
            found = Some(mode.n);
        }
        // All of it is reported the second time.
        drop(done);
        self.sink.diagnostics.truncate(n_faults);
        self.cur = cur;
        self.loops.insert(key, found);
        found
    }

    /// A loop in SIMD mode, or one whose condition opens it.
    fn loop_of_lanes(
        &mut self,
        n: u32,
        condition: Option<&Expr<'s>>,
        step: Option<&Expr<'s>>,
        body: &Statement<'s>,
        tests_first: bool,
    ) -> Lowered<()> {
        let span = condition.map_or(body.span, |c| c.span);
        self.same_mode(n, span)?;
        let has_left = self.within(body, true, true, |l| l.rounds_of_lanes(n, condition, step, body, tests_first))?;
        if let (Some(mode), Some(returned), true) = (self.mode, self.returned, has_left) {
            let (active, gone) = (self.load(mode.mask, span)?, self.load(returned.mask, span)?);
            let stays = self.other_lanes(gone);
            let active = self.w.op(Op::And, &[active, stays]);
            self.store(mode.mask, active, span)?;
            if let Some(mode) = &mut self.mode {
                mode.has_left = true;
            }
        }
        self.go_on_with_lanes(span)
    }

    /// The loop itself. Returns whether lanes have left it.
    fn rounds_of_lanes(
        &mut self,
        n: u32,
        condition: Option<&Expr<'s>>,
        step: Option<&Expr<'s>>,
        body: &Statement<'s>,
        tests_first: bool,
    ) -> Lowered<bool> {
        let span = condition.map_or(body.span, |c| c.span);
        let mask = self.current_mask(n, span)?;
        let none = self.all_lanes(n, false);
        let (mask, continued) = (self.slot(mask), self.slot(none));
        let (test, k_body) = (self.block("test"), self.block("body"));
        let (next, after) = (self.block("next"), self.block("after"));
        let outer = self.mode.replace(lanes::Mode { n, mask, end: next, is_implicit: false, has_left: false });
        self.jump(if tests_first { test } else { k_body }, &[]);
        if tests_first {
            self.test_of_lanes(test, condition, mask, k_body, after, span)?;
        }
        self.go_on_in(k_body);
        let region = Some(next);
        let continued_at = Some(continued);
        self.targets.push(Targets {
            after,
            next: Some(next),
            is_switch: false,
            is_of_lanes: false,
            region,
            continued: continued_at,
            is_foreach: false,
            is_turn: false,
        });
        let done = self.reported(body);
        self.targets.pop();
        done?;
        self.jump(next, &[]);
        self.go_on_in(next);
        let (left, back) = (self.load(mask, span)?, self.load(continued, span)?);
        let active = self.w.op(Op::Or, &[left, back]);
        self.store(mask, active, span)?;
        self.store(continued, none, span)?;
        // A step or condition without lanes runs only if some lane is active.
        if self.mode.is_some_and(|m| m.has_left) && !self.are_of_lanes(condition, step) {
            let (any, more) = (self.any_of(active), self.block("more"));
            self.branch(any, more, after);
            self.go_on_in(more);
        }
        let done = step.map_or(Ok(()), |step| self.effect(step));
        self.report(done);
        self.jump(test, &[]);
        if !tests_first {
            self.test_of_lanes(test, condition, mask, k_body, after, span)?;
        }
        let has_left = self.mode.is_some_and(|m| m.has_left);
        self.mode = outer;
        self.go_on_in(after);
        Ok(has_left)
    }

    fn test_of_lanes(
        &mut self,
        test: Cont,
        condition: Option<&Expr<'s>>,
        mask: Val,
        body: Cont,
        after: Cont,
        span: Span,
    ) -> Lowered<()> {
        self.go_on_in(test);
        match condition.map(|c| self.condition(c)) {
            Some((holds, Some(_))) => {
                let (active, holds) = (self.load(mask, span)?, self.mask_of_bools(holds));
                let active = self.w.op(Op::And, &[active, holds]);
                self.store(mask, active, span)?;
            }
            Some((holds, None)) => {
                let more = self.block("more");
                self.branch(holds, more, after);
                self.go_on_in(more);
            }
            None => {}
        }
        let active = self.load(mask, span)?;
        let any = self.any_of(active);
        self.branch(any, body, after);
        Ok(())
    }

    fn loop_statement(
        &mut self,
        condition: Option<&Expr<'s>>,
        step: Option<&Expr<'s>>,
        body: &Statement<'s>,
        tests_first: bool,
    ) -> Lowered<()> {
        let of_condition = match condition {
            Some(condition) => {
                let ty = self.type_of(condition)?;
                self.types.lanes(ty)
            }
            None => None,
        };
        let is_plain = self.is_ispc && of_condition.is_none() && ispc::stays(body);
        let n = match of_condition.or(self.mode.map(|m| m.n)) {
            _ if is_plain => None,
            // `goto` leads out of a loop that lanes don't leave one by one.
            Some(_) if self.has_jumps && of_condition.is_none() => {
                self.lanes_that_leave(condition, step, body, tests_first)
            }
            Some(n) => Some(n),
            None => self.lanes_that_leave(condition, step, body, tests_first),
        };
        if let Some(n) = n {
            return self.loop_of_lanes(n, condition, step, body, tests_first);
        }
        let (test, k_body) = (self.block("test"), self.block("body"));
        let (next, after) = (self.block("next"), self.block("after"));
        self.jump(if tests_first { test } else { k_body }, &[]);
        // Each block is lowered behind one that leads to it.
        if tests_first {
            self.test(test, condition, k_body, after);
        }
        self.go_on_in(k_body);
        self.targets.push(Targets {
            after,
            next: Some(next),
            is_switch: false,
            is_of_lanes: false,
            region: self.mode.map(|m| m.end),
            continued: None,
            is_foreach: false,
            is_turn: false,
        });
        let done = self.within(body, true, false, |l| l.scoped(|l| l.statement(body)));
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
                let (holds, _) = self.condition(condition);
                self.branch(holds, body, after);
            }
            None => self.jump(body, &[]),
        }
    }

    /// Takes the lanes out of the current mask that have returned, or gone on with the next round of the loop around.
    pub(super) fn without_gone_lanes(&mut self, span: Span) -> Lowered<()> {
        let Some(mode) = self.mode else { return Ok(()) };
        let continued = self.targets.iter().rev().find(|t| !t.is_switch).and_then(|t| t.continued);
        for gone in [self.returned.map(|r| r.mask), continued].into_iter().flatten() {
            let (active, gone) = (self.load(mode.mask, span)?, self.load(gone, span)?);
            let stays = self.other_lanes(gone);
            let active = self.w.op(Op::And, &[active, stays]);
            self.store(mode.mask, active, span)?;
        }
        if let Some(mode) = &mut self.mode {
            mode.has_left = true;
        }
        Ok(())
    }

    fn return_statement(&mut self, value: Option<&Expr<'s>>, span: Span) -> Lowered<()> {
        let Some((ret, ty)) = self.result else { return Ok(()) };
        if self.targets.iter().any(|t| t.is_foreach) {
            let hint = "assign a variable, and return behind the loop";
            return Err(Box::new(limitation::not_supported(span, "`return`s in `foreach` loops", hint)));
        }
        if self.is_scalar {
            let hint = "assign a variable, and return behind the statement";
            return Err(Box::new(limitation::not_supported(
                span,
                "`return`s in statements that leave SIMD mode",
                hint,
            )));
        }
        if let Some(mode) = self.mode {
            let Some(returned) = self.returned else {
                let hint = format!("declare the function `simd({})`", mode.n);
                let what = "`return`s of some lanes of functions without lanes";
                return Err(Box::new(limitation::not_supported(span, what, &hint)));
            };
            match (value, returned.value) {
                (None, None) => {}
                (None, Some(_)) => return Err(Box::new(sierra_type::no_return(span, &self.types.show(ty)))),
                (Some(e), None) => self.effect(e)?,
                (Some(e), Some(at)) if let Kind::Reference { to, is_const } = *self.types.kind(ty) => {
                    let address = self.referred(e, to, is_const)?;
                    self.store(at, address, span)?;
                }
                (Some(e), Some(at)) => {
                    let found = self.value(e)?;
                    self.w.set_origin(e.span);
                    let val = self.convert(found, ty, e.span)?;
                    self.store_lanes(at, val, ty, span)?;
                }
            }
            self.note(returned.mask, mode, span)?;
            return self.leave(mode, span);
        }
        match value {
            None if ty == Types::VOID => self.end(ret, &[]),
            None => return Err(Box::new(sierra_type::no_return(span, &self.types.show(ty)))),
            Some(e) if ty == Types::VOID => {
                self.effect(e)?;
                self.end(ret, &[]);
            }
            Some(e) => {
                let val = if let Kind::Reference { to, is_const } = *self.types.kind(ty) {
                    self.referred(e, to, is_const)?
                } else {
                    let found = self.value_for(e, ty)?;
                    self.w.set_origin(e.span);
                    self.convert(found, ty, e.span)?
                };
                self.w.set_origin(span);
                self.end(ret, &[val]);
            }
        }
        Ok(())
    }
}

/// Limit on `else if`s whose conditions have lanes.
const MAX_ARMS: u32 = 100;
