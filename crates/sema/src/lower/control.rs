//! Blocks, branches, loops, and expressions in tail position.

use super::*;
use nyala_syntax::ast::{BinaryOp, Block, ExprKind, ItemKind, Stmt, UnaryOp};

/// The number of statements after which a new block begins. Values that they accumulate from the results of many calls
/// become parameters of the block. Otherwise, each continuation would capture all of these results.
const STRETCH: usize = 64;

/// The open end of a branch: the current continuation, and the values there.
pub(super) struct End {
    cur: Cur,
    value: Val,
    changed: Vec<(LocalId, Val)>,
}

impl<'a> Lowerer<'_, 'a, '_> {
    /// Lowers `e` in tail position: its value goes to `ret`.
    pub(super) fn tail(&mut self, e: ExprId, ret: Option<Val>) {
        if !self.alive() {
            return;
        }
        let ast = self.ast();
        if let Some(ret) = ret
            && !self.p.adjust.contains_key(&self.g(e))
        {
            match &ast[e].kind {
                ExprKind::Block(block) => {
                    let old = self.set_marks(block.marks);
                    let outer = std::mem::replace(&mut self.scope, ast[e].span);
                    if defers(block) {
                        let ty = self.adjusted_ty(e);
                        self.tail_of_deferring(block, ty, ret);
                    } else {
                        self.tail_block(block, ret);
                    }
                    self.scope = outer;
                    self.set_marks(old);
                    return;
                }
                ExprKind::If { arms, otherwise }
                    if let (arms, otherwise) = self.live_arms(arms, *otherwise)
                        && (otherwise.is_some() || takes_unit(&self.w, ret))
                        && self.arms_fit(&arms, otherwise, ret) =>
                {
                    let mark = self.log.len();
                    for (cond, then) in arms {
                        let cond = self.value(cond);
                        if !self.alive() {
                            return;
                        }
                        let (k_then, k_else) = (self.block("then"), self.block("else"));
                        self.branch(cond, k_then, k_else);
                        self.go_on_in(k_then);
                        let inner = self.log.len();
                        self.tail(then, Some(ret));
                        self.rollback(inner);
                        self.go_on_in(k_else);
                    }
                    match otherwise {
                        Some(e) => self.tail(e, Some(ret)),
                        None => self.give_unit(ret),
                    }
                    self.rollback(mark);
                    return;
                }
                ExprKind::Call { .. } if self.p.call_kind.get(&self.g(e)) == Some(&CallKind::Call) => {
                    let val = self.call(e, Some(ret), None);
                    return self.give(e, val, ret);
                }
                ExprKind::Unary(op @ (UnaryOp::Unfold | UnaryOp::Run | UnaryOp::Halt), inner)
                    if !self.p.adjust.contains_key(&self.g(*inner)) =>
                {
                    let val = self.marked(*op, *inner, Some(ret));
                    return self.give(e, val, ret);
                }
                ExprKind::For(looped) => {
                    let val = self.for_loop(e, looped, Some(ret));
                    return self.give(e, val, ret);
                }
                ExprKind::Match { scrutinee, arms } if self.mode == Mode::Code => {
                    let bodies: Vec<ExprId> = arms.iter().map(|a| a.body).collect();
                    if self.bodies_fit(&bodies, ret) {
                        self.match_arms(e, *scrutinee, arms, &mut |l, body, _| l.tail(body, Some(ret)));
                        return;
                    }
                }
                _ => {}
            }
        }
        let val = self.value(e);
        match ret {
            Some(ret) => self.give(e, val, ret),
            None => self.end_unreachable(),
        }
    }

    /// Whether `ret` takes the values of all branches. In a statement it may not.
    fn arms_fit(&mut self, arms: &[(ExprId, ExprId)], otherwise: Option<ExprId>, ret: Val) -> bool {
        let bodies: Vec<ExprId> = arms.iter().map(|a| a.1).chain(otherwise).collect();
        self.bodies_fit(&bodies, ret)
    }

    fn bodies_fit(&mut self, bodies: &[ExprId], ret: Val) -> bool {
        let n = self.w.types.cn_params(self.w.ty(ret)).map_or(0, <[_]>::len);
        bodies.iter().all(|&e| {
            let ty = self.adjusted_ty(e);
            ty == TypeTable::NEVER || self.parts(ty).len() + 1 == n
        })
    }

    /// Ends with a call of `ret` with `()`.
    fn give_unit(&mut self, ret: Val) {
        if takes_unit(&self.w, ret) {
            self.end(ret, &[]);
        } else {
            let unit = self.w.unit();
            self.end(ret, &[unit]);
        }
    }

    /// Ends with a call of `ret` with the value of `e`.
    fn give(&mut self, e: ExprId, val: Val, ret: Val) {
        if !self.alive() {
            return;
        }
        let ty = self.adjusted_ty(e);
        let args = self.split_parts(val, ty);
        self.end(ret, &args);
    }

    fn tail_block(&mut self, block: &'a Block, ret: Val) {
        if let Some(e) = block.result {
            self.stmts(&block.stmts);
            return self.tail(e, Some(ret));
        }
        // A last statement of type `()` is in tail position, too.
        if takes_unit(&self.w, ret)
            && let Some((Stmt::Expr(last), before)) = block.stmts.split_last()
            && self.adjusted_ty(*last) == TypeTable::UNIT
        {
            self.stmts(before);
            return self.tail(*last, Some(ret));
        }
        self.stmts(&block.stmts);
        self.give_unit(ret);
    }

    pub(super) fn block_value(&mut self, block: &'a Block) -> Val {
        let old = self.set_marks(block.marks);
        let mark = self.log.len();
        let value = self.statements_and_value(block);
        let value = self.run_deferred(block, mark, value);
        self.set_marks(old);
        value
    }

    /// The value of a block, before what is deferred in it has run.
    pub(super) fn statements_and_value(&mut self, block: &'a Block) -> Val {
        self.stmts(&block.stmts);
        match block.result {
            Some(e) => self.value(e),
            None => self.w.unit(),
        }
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        let mut mark = self.log.len();
        for (i, stmt) in stmts.iter().enumerate() {
            if i % STRETCH == 0 && i > 0 && self.alive() && self.mode == Mode::Code {
                let vars: Vec<LocalId> = self.changes(mark).iter().map(|c| c.0).collect();
                self.new_block(&vars);
                mark = self.log.len();
            }
            match stmt {
                Stmt::Let { pattern, init, .. } => {
                    if !self.alive() {
                        continue;
                    }
                    self.let_stmt(pattern, *init);
                }
                Stmt::Expr(e) => {
                    if self.alive() {
                        self.value(*e);
                    }
                }
                Stmt::Defer(e) => {
                    if self.alive() {
                        self.defer(*e);
                    }
                }
                Stmt::Item(item) => {
                    if let ItemKind::Fn(f) = &item.kind
                        && let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span)
                    {
                        self.w.set_origin(f.span);
                        self.reach(id);
                    }
                }
            }
        }
    }

    fn let_stmt(&mut self, pattern: &Pattern, init: Option<ExprId>) {
        match init {
            Some(init) => {
                let val = self.value(init);
                if self.alive() {
                    let ty = self.adjusted_ty(init);
                    self.bind_pattern(pattern, ty, val, false);
                }
            }
            None => self.bind_undefined(pattern),
        }
    }

    fn bind_undefined(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Unnamed | PatternKind::Literal(_) => {}
            PatternKind::Name { name, .. } => {
                if let Some(id) = self.p.local_at(name.span) {
                    let val = self.undef_local(id);
                    self.bind(id, val);
                }
            }
            PatternKind::Tuple(parts) => parts.iter().for_each(|p| self.bind_undefined(p)),
            PatternKind::Option { parts, .. } => parts.iter().flatten().for_each(|p| self.bind_undefined(p)),
            PatternKind::Struct { fields, .. } => fields.iter().for_each(|f| self.bind_undefined(&f.1)),
        }
    }

    /// The variables assigned since `mark` that existed before, with their current values.
    pub(super) fn changes(&self, mark: usize) -> Vec<(LocalId, Val)> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut out = Vec::new();
        for (id, old) in &self.log[mark..] {
            if seen.insert(*id)
                && old.val.is_some()
                && let Some(new) = self.vars[id.0 as usize].val
            {
                out.push((*id, new));
            }
        }
        out
    }

    pub(super) fn close_end(&mut self, mark: usize, value: Val, ends: &mut Vec<End>) {
        if let Some(cur) = self.cur.take() {
            ends.push(End { cur, value, changed: self.changes(mark) });
        }
    }

    /// Goes on after branches with the open ends `ends`. The current variables are those from before the branches.
    pub(super) fn join(&mut self, mut ends: Vec<End>, ty: Ty) -> Val {
        if ends.len() == 1
            && let Some(end) = ends.pop()
        {
            self.cur = Some(end.cur);
            for (id, val) in end.changed {
                self.set_var(id, Var { val: Some(val), ptr: None });
            }
            return end.value;
        }
        if ends.is_empty() {
            self.cur = None;
            return self.undef(ty);
        }
        let mut vars: Vec<LocalId> = ends.iter().flat_map(|e| e.changed.iter().map(|c| c.0)).collect();
        vars.sort_unstable();
        vars.dedup();
        let value_ty = self.ir_ty(ty);
        let has_value = value_ty != self.w.types.unit();
        let mut tys = vec![self.w.types.mem()];
        let mut names = vec!["m"];
        let p = self.p;
        if has_value {
            tys.push(value_ty);
            names.push("r");
        }
        for id in &vars {
            tys.push(self.local_ty(*id));
            names.push(&p.local(*id).name);
        }
        let cn = self.w.types.cn(&tys);
        let join = self.w.declare("join", cn, &names);
        for end in ends {
            self.cur = Some(end.cur);
            let changed: rustc_hash::FxHashMap<LocalId, Val> = end.changed.into_iter().collect();
            let mut args = Vec::with_capacity(vars.len() + 1);
            if has_value {
                args.push(end.value);
            }
            for id in &vars {
                let val = changed.get(id).copied().or(self.vars[id.0 as usize].val);
                let val = val.unwrap_or_else(|| self.undef_local(*id));
                args.push(val);
            }
            self.jump(join, &args);
        }
        self.go_on_in(join);
        let first = if has_value { 2 } else { 1 };
        for (i, id) in vars.iter().enumerate() {
            let val = self.w.param(join, first + i);
            self.assign(*id, val);
        }
        if has_value { self.w.param(join, 1) } else { self.w.unit() }
    }

    pub(super) fn if_value(&mut self, arms: &[(ExprId, ExprId)], otherwise: Option<ExprId>, e: ExprId) -> Val {
        let ty = self.ty_of(e);
        let (arms, otherwise) = self.live_arms(arms, otherwise);
        if arms.is_empty() {
            let val = match otherwise {
                Some(e) => self.value(e),
                None => self.w.unit(),
            };
            return if self.alive() { val } else { self.undef(ty) };
        }
        if self.mode == Mode::Filter {
            let mut val = match otherwise {
                Some(e) => self.value(e),
                None => self.w.unit(),
            };
            for (cond, then) in arms.iter().rev() {
                let (cond, then) = (self.value(*cond), self.value(*then));
                val = self.w.op(Op::Select, &[cond, then, val]);
            }
            return val;
        }
        if self.mode != Mode::Code {
            self.mem(self.ast()[e].span);
            return self.undef(ty);
        }
        let mark = self.log.len();
        let mut ends = Vec::new();
        for (cond, then) in arms {
            let cond = self.value(cond);
            if !self.alive() {
                break;
            }
            let (k_then, k_else) = (self.block("then"), self.block("else"));
            self.branch(cond, k_then, k_else);
            self.go_on_in(k_then);
            let inner = self.log.len();
            let val = self.value(then);
            self.close_end(mark, val, &mut ends);
            self.rollback(inner);
            self.go_on_in(k_else);
        }
        let val = match otherwise {
            Some(e) => self.value(e),
            None => self.w.unit(),
        };
        self.close_end(mark, val, &mut ends);
        self.rollback(mark);
        self.join(ends, ty)
    }

    /// Lowers `a && b` or `a || b`. The second operand is computed only if it matters, unless it is cheap and cannot
    /// fail.
    pub(super) fn short_circuit(&mut self, op: BinaryOp, lhs: ExprId, rhs: ExprId) -> Val {
        let a = self.value(lhs);
        if !self.alive() || self.mode != Mode::Code || self.is_total(rhs) {
            let b = self.value(rhs);
            let ir_op = if op == BinaryOp::And { Op::And } else { Op::Or };
            return self.w.op(ir_op, &[a, b]);
        }
        let (k_more, k_done) = (self.block("more"), self.block("done"));
        let (then, otherwise) = if op == BinaryOp::And { (k_more, k_done) } else { (k_done, k_more) };
        self.branch(a, then, otherwise);
        let mark = self.log.len();
        let mut ends = Vec::new();
        self.go_on_in(k_more);
        let b = self.value(rhs);
        self.close_end(mark, b, &mut ends);
        self.rollback(mark);
        self.go_on_in(k_done);
        let short = self.w.lit_bool(op == BinaryOp::Or);
        self.close_end(mark, short, &mut ends);
        let ty = self.types.prim(nyala_ir::Prim::Bool);
        self.join(ends, ty)
    }

    pub(super) fn while_loop(&mut self, e: ExprId, cond: ExprId, body: ExprId) -> Val {
        let p = self.p;
        let Some(&id) = p.loop_of.get(&self.g(e)) else { return self.w.unit() };
        if self.mode != Mode::Code {
            self.mem(self.ast()[e].span);
            return self.w.unit();
        }
        let looped = &p.loops[id.0 as usize];
        let mut vars: Vec<LocalId> = looped.assigned.clone();
        vars.retain(|v| self.vars[v.0 as usize].val.is_some() && self.vars[v.0 as usize].ptr.is_none());
        vars.sort_unstable();
        let mut tys = vec![self.w.types.mem()];
        let mut names = vec!["m"];
        for v in &vars {
            tys.push(self.local_ty(*v));
            names.push(&p.local(*v).name);
        }
        let cn = self.w.types.cn(&tys);
        let header = self.w.declare("while", cn, &names);
        let is_used = |l: Option<LocalId>| l.is_some_and(|l| p.local(l).used);
        let exit = is_used(looped.break_local).then(|| self.w.declare("break", cn, &names));
        self.jump_with(header, &vars);
        // An instance of a nested function may be lowered in between.
        let state = LoopState { header: Some(header), exit, vars: vars.clone() };
        let outer = std::mem::replace(&mut self.loops[id.0 as usize], state);
        if looped.first_class {
            for (local, k) in [(looped.break_local, exit), (looped.continue_local, Some(header))] {
                if let (Some(local), Some(k)) = (local, k) {
                    let val = self.w.cont_val(k);
                    self.set_var(local, Var { val: Some(val), ptr: None });
                }
            }
        }
        self.enter_with(header, &vars);
        let cond = self.value(cond);
        if !self.alive() {
            self.loops[id.0 as usize] = outer;
            return self.w.unit();
        }
        let (k_body, k_done) = (self.block("loop"), self.block("done"));
        self.branch(cond, k_body, k_done);
        self.go_on_in(k_body);
        let mark = self.log.len();
        self.value(body);
        self.jump_with(header, &vars);
        self.rollback(mark);
        self.go_on_in(k_done);
        if let Some(exit) = exit {
            self.jump_with(exit, &vars);
            self.enter_with(exit, &vars);
        }
        self.loops[id.0 as usize] = outer;
        self.w.unit()
    }

    fn local_ty(&mut self, id: LocalId) -> ir::Ty {
        let ty = self.mono(self.p.local(id).ty);
        self.ir_ty(ty)
    }

    fn undef_local(&mut self, id: LocalId) -> Val {
        let ty = self.local_ty(id);
        self.w.undef(ty)
    }

    /// Goes on in a new block, with these variables as parameters.
    fn new_block(&mut self, vars: &[LocalId]) {
        let p = self.p;
        let mut tys = vec![self.w.types.mem()];
        let mut names = vec!["m"];
        for id in vars {
            tys.push(self.local_ty(*id));
            names.push(&p.local(*id).name);
        }
        let cn = self.w.types.cn(&tys);
        let next = self.w.declare("next", cn, &names);
        self.jump_with(next, vars);
        self.enter_with(next, vars);
    }

    fn jump_with(&mut self, k: Cont, vars: &[LocalId]) {
        let args = self.current(vars);
        self.jump(k, &args);
    }

    /// The current values of variables.
    fn current(&mut self, vars: &[LocalId]) -> Vec<Val> {
        let value = |&v: &LocalId| self.vars[v.0 as usize].val.unwrap_or_else(|| self.undef_local(v));
        vars.iter().map(value).collect()
    }

    fn enter_with(&mut self, k: Cont, vars: &[LocalId]) {
        self.go_on_in(k);
        for (i, v) in vars.iter().enumerate() {
            let val = self.w.param(k, i + 1);
            self.assign(*v, val);
        }
    }

    /// `break` or `continue` of a `while`, by the expression `e`.
    pub(super) fn leave_loop(&mut self, e: ExprId, id: LoopId, is_break: bool, span: Span) {
        let state = self.loops[id.0 as usize].clone();
        if let Some(k) = if is_break { state.exit } else { state.header } {
            let (target, args) = (self.w.cont_val(k), self.current(&state.vars));
            self.leave(e, target, args, span);
        }
    }
}

/// Whether code runs at the end of the block, so that nothing in it is in tail position.
fn defers(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| matches!(stmt, Stmt::Defer(_)))
}

/// Whether the continuation `ret` takes no value.
fn takes_unit(w: &World, ret: Val) -> bool {
    w.types.cn_params(w.ty(ret)).is_some_and(|p| p.len() == 1)
}
