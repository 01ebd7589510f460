//! `switch`, of a value that is the same in all lanes and of one that has lanes. Separate from other statements, since both have labels in a row.
//!
//! A variable that a case declares is there in those below it, too, as in C: its place is made before the labels, so that all of them know it.

use super::*;

/// What is known of a `switch` that declares variables above a label.
pub(super) struct Variables<'s> {
    /// How many scopes are around the statements of the `switch`, with its own.
    n_scopes: usize,
    /// Where the variables' places are made.
    entry: Option<Cur>,
    /// References since the last label.
    references: Vec<Name<'s>>,
}

fn is_label(statement: &Statement<'_>) -> bool {
    matches!(statement.kind, StatementKind::Case(_) | StatementKind::Default)
}

impl<'s> Lowerer<'s, '_> {
    /// Lowers a `switch` whose variables may be declared by one case and used by another.
    pub(super) fn with_variables_of_cases(
        &mut self,
        body: &[Statement<'s>],
        lower: impl FnOnce(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        let first = body.iter().position(|s| matches!(s.kind, StatementKind::Declare(_)));
        if !first.is_some_and(|first| body[first..].iter().any(is_label)) {
            return lower(self);
        }
        let inner = self.block("switch");
        if self.is_reached() {
            self.reached.insert(inner);
        }
        let n_scopes = self.scopes.len() + 1;
        self.switches.push(Variables { n_scopes, entry: self.cur, references: Vec::new() });
        self.go_on_in(inner);
        let done = lower(self);
        let after = self.cur;
        self.cur = self.switches.pop().and_then(|s| s.entry);
        self.jump(inner, &[]);
        self.cur = after;
        done
    }

    /// The innermost `switch`, if what is declared here is known at its other labels.
    fn switch_around(&mut self) -> Option<&mut Variables<'s>> {
        let n_scopes = self.scopes.len();
        self.switches.last_mut().filter(|s| s.n_scopes == n_scopes)
    }

    pub(super) fn is_of_cases(&mut self) -> bool {
        self.switch_around().is_some()
    }

    /// The place of a variable of a block, with its value.
    pub(super) fn variable(&mut self, val: Val, ty: Ty, has_value: bool, span: Span) -> Lowered<Val> {
        let Some(entry) = self.switch_around().map(|s| s.entry) else { return Ok(self.slot(val)) };
        let first = self.no_value(ty);
        let cur = std::mem::replace(&mut self.cur, entry);
        let address = self.slot(first);
        let entry = std::mem::replace(&mut self.cur, cur);
        if let Some(around) = self.switch_around() {
            around.entry = entry;
        }
        if has_value {
            self.store(address, val, span)?;
        }
        Ok(address)
    }

    /// A reference is declared here, which is none at other labels.
    pub(super) fn note_reference(&mut self, name: Name<'s>) {
        if let Some(around) = self.switch_around() {
            around.references.push(name);
        }
    }

    fn skip_references(&mut self) {
        let names = self.switch_around().map(|s| std::mem::take(&mut s.references)).unwrap_or_default();
        let Some(scope) = self.scopes.last_mut() else { return };
        for name in names {
            if let Some((entity, _)) = scope.get_mut(name.text) {
                *entity = Entity::Skipped(SkippedBy::Case);
            }
        }
    }
}

impl<'s> Lowerer<'s, '_> {
    pub(super) fn switch(&mut self, value: &Expr<'s>, body: &[Statement<'s>]) -> Lowered<()> {
        let found = self.value(value)?;
        if let Some((prim, Some(n))) = self.number_type(found.1) {
            return self.switch_of_lanes((found.0, prim, n), body, value.span);
        }
        let Some(prim) = self.types.as_prim(found.1).filter(|p| !p.is_float()) else {
            return Err(Box::new(sierra_type::mismatch(value.span, &self.types.show(found.1), "an integer")));
        };
        if let Some(mode) = self.mode.filter(|_| self.is_ispc && !self.has_jumps && ispc::breaks_in_branches(body)) {
            let all = self.numbers(prim, Some(mode.n));
            let val = self.convert(found, all, value.span)?;
            return self.switch_of_lanes((val, prim, mode.n), body, value.span);
        }
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
                    return Err(Box::new(c_syntax::misplaced(statement.span, "default", "`switch` without one")));
                }
                _ => {}
            }
        }
        self.jump(default, &[]);
        let region = self.mode.map(|m| m.end);
        self.targets.push(Targets {
            after,
            next: None,
            is_switch: true,
            is_of_lanes: false,
            region,
            continued: None,
            is_foreach: false,
            is_turn: false,
        });
        let mut labels = labels.into_iter();
        let done = self.scoped(|l| {
            for statement in body {
                if is_label(statement) {
                    l.skip_references();
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

    /// A `switch` of a value with lanes: from label to label, the lanes run that have come to one so far.
    fn switch_of_lanes(&mut self, (val, prim, n): (Val, Prim, u32), body: &[Statement<'s>], span: Span) -> Lowered<()> {
        if prim.is_float() {
            let ty = self.numbers(prim, Some(n));
            return Err(Box::new(sierra_type::mismatch(span, &self.types.show(ty), "an integer")));
        }
        self.same_mode(n, span)?;
        let found = self.numbers(prim, Some(n));
        let prim = self.promoted(prim);
        let (wide, lane) = (self.numbers(prim, Some(n)), self.types.prim(prim));
        let val = self.convert((val, found), wide, span)?;
        let entry = self.current_mask(n, span)?;
        // The lanes of each label; those of `default` are the rest.
        let mut labels = Vec::new();
        let mut rest = entry;
        let mut seen: FxHashSet<i64> = FxHashSet::default();
        let mut default = None;
        for statement in body {
            match &statement.kind {
                StatementKind::Case(e) => {
                    let number = self.constant_int(e)?;
                    if !seen.insert(number) {
                        return Err(Box::new(sierra_constant::twice(e.span, number)));
                    }
                    let expected = self.w.lit_prim(prim, prim.normalize(number as u64));
                    let expected = self.broadcast(expected, lane, wide);
                    self.w.set_origin(e.span);
                    let is_equal = self.w.op(Op::Eq, &[val, expected]);
                    let is_equal = self.mask_of_bools(is_equal);
                    labels.push(self.w.op(Op::And, &[entry, is_equal]));
                    let others = self.other_lanes(is_equal);
                    rest = self.w.op(Op::And, &[rest, others]);
                }
                StatementKind::Default if default.is_some() => {
                    return Err(Box::new(c_syntax::misplaced(statement.span, "default", "`switch` without one")));
                }
                StatementKind::Default => {
                    default = Some(labels.len());
                    labels.push(entry);
                }
                _ => {}
            }
        }
        if let Some(default) = default {
            labels[default] = rest;
        }
        let none = self.all_lanes(n, false);
        let mask = self.slot(none);
        let after = self.block("after");
        let blocks: Vec<Cont> = labels.iter().map(|_| self.block("case")).chain([after]).collect();
        let outer = self.mode.replace(lanes::Mode { n, mask, end: blocks[0], is_implicit: false, has_left: false });
        let region = Some(after);
        self.targets.push(Targets {
            after,
            next: None,
            is_switch: true,
            is_of_lanes: true,
            region,
            continued: None,
            is_foreach: false,
            is_turn: false,
        });
        // What stands before the first label never runs.
        self.jump(blocks[0], &[]);
        let mut at = 0;
        let done = self.scoped(|l| {
            for statement in body {
                if !is_label(statement) {
                    let done = l.statement(statement);
                    l.report(done);
                    continue;
                }
                l.skip_references();
                l.jump(blocks[at], &[]);
                l.go_on_in(blocks[at]);
                let active = l.load(mask, statement.span)?;
                let active = l.w.op(Op::Or, &[active, labels[at]]);
                l.store(mask, active, statement.span)?;
                at += 1;
                if let Some(mode) = &mut l.mode {
                    mode.end = blocks[at];
                }
                let any = l.any_of(active);
                let inner = l.block("lanes");
                l.branch(any, inner, blocks[at]);
                l.go_on_in(inner);
            }
            Ok(())
        });
        self.targets.pop();
        let has_left = self.mode.is_some_and(|m| m.has_left);
        self.mode = outer;
        self.jump(after, &[]);
        self.go_on_in(after);
        done?;
        if has_left {
            self.without_gone_lanes(span)?;
        }
        self.go_on_with_lanes(span)
    }
}
