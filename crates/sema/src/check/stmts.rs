//! Blocks, statements, items in blocks, and filters.

use super::*;
use nyala_syntax::ast::{Block, ExprKind, Filter, Pattern, PatternKind, Stmt};

impl<'a> Checker<'a, '_> {
    pub(super) fn block(&mut self, block: &'a Block, expected: Option<Ty>) -> Ty {
        self.scopes.open();
        self.ctx.blocks += 1;
        let n_deferred = self.deferred.len();
        fn items(block: &Block) -> impl Iterator<Item = &ast::Item> {
            block.stmts.iter().filter_map(|s| if let Stmt::Item(item) = s { Some(&**item) } else { None })
        }
        let (first_trait, first_impl) = (self.p.traits.len(), self.p.impls.len());
        let old = std::mem::replace(&mut self.bounds.collecting, true);
        self.declare_items(items(block), false);
        for item in items(block) {
            if let ast::ItemKind::Use(used) = &item.kind {
                self.local_use(used);
            }
        }
        self.define_items(items(block), false);
        self.bounds.collecting = old;
        self.finish_impls(first_trait, first_impl);
        self.check_deferred();
        // The place of a statement that never ends.
        let mut ended: Option<Span> = None;
        let mut reported = false;
        for stmt in &block.stmts {
            if let Some(before) = ended
                && !reported
                && !matches!(stmt, Stmt::Item(_))
            {
                reported = true;
                self.unreachable(self.stmt_span(stmt), before);
            }
            match stmt {
                Stmt::Let { pattern, init, .. } => self.let_stmt(pattern, *init),
                Stmt::Expr(e) => {
                    let ty = self.dropped(*e);
                    if let (ExprKind::Path(path), Kind::Fn(..)) = (&self.ast()[*e].kind, self.p.types.kind(ty)) {
                        self.report(not_called::warning(path.span, &short(&path.names[0].text)));
                    }
                    if self.p.types.is_never(ty) {
                        ended = ended.or(Some(self.ast()[*e].span));
                    }
                }
                Stmt::Item(item) => self.local_item(item),
                Stmt::Defer(e) => self.defer_stmt(*e),
            }
            self.solve();
        }
        let ty = match block.result {
            Some(e) => {
                if let (Some(before), false) = (ended, reported) {
                    self.unreachable(self.ast()[e].span, before);
                }
                self.expr(e, expected)
            }
            None if ended.is_some() => TypeTable::NEVER,
            None => TypeTable::UNIT,
        };
        self.deferred.truncate(n_deferred);
        self.ctx.blocks -= 1;
        self.scopes.close();
        ty
    }

    /// `e` as a statement: the values of its branches are dropped, whatever types they have.
    fn dropped(&mut self, e: ExprId) -> Ty {
        if let ExprKind::Match { scrutinee, arms } = &self.ast()[e].kind {
            let ty = self.match_dropped(e, *scrutinee, arms);
            let g = self.g(e);
            self.p.expr_ty[g as usize] = ty;
            return ty;
        }
        let ExprKind::If { arms, otherwise: Some(otherwise) } = &self.ast()[e].kind else { return self.expr(e, None) };
        let bool = self.prim(Prim::Bool);
        let mut all_never = true;
        for (cond, then) in arms {
            self.operand_to(*cond, bool, NO_WHY);
            let ty = self.expr(*then, None);
            all_never &= self.p.types.is_never(ty);
        }
        let ty = self.expr(*otherwise, None);
        all_never &= self.p.types.is_never(ty);
        let ty = if all_never { TypeTable::NEVER } else { TypeTable::UNIT };
        let g = self.g(e);
        self.p.expr_ty[g as usize] = ty;
        ty
    }

    fn unreachable(&mut self, span: Span, before: Span) {
        self.report(unreachable_code::after(span, before));
    }

    fn stmt_span(&self, stmt: &Stmt) -> Span {
        match stmt {
            Stmt::Let { span, .. } => *span,
            Stmt::Expr(e) | Stmt::Defer(e) => self.ast()[*e].span,
            Stmt::Item(item) => item.span,
        }
    }

    /// `defer { … }`, which is the lambda `e`. From here on it runs where the block is left.
    fn defer_stmt(&mut self, e: ExprId) {
        let outer = self.ctx.deferred_in.replace(self.ctx.blocks);
        self.expr(e, None);
        self.ctx.deferred_in = outer;
        let e = self.g(e);
        if let Some(&(_, around)) = self.deferred.last() {
            self.p.defer_around.insert(e, around);
        }
        self.deferred.push((self.ctx.blocks, e));
    }

    /// Notes what runs before the call `e` if that is of a continuation: the `defer { … }` of the blocks around the call that
    /// are in the scope of the continuation.
    pub(super) fn note_leaving(&mut self, e: ExprId, mut callee: ExprId) {
        if self.deferred.is_empty() {
            return;
        }
        while let ExprKind::Field { base, .. } = &self.ast()[callee].kind {
            callee = *base;
        }
        let Some(Entity::Local(id)) = self.p.resolved.get(&self.g(callee)) else { return };
        let declared = self.p.local(*id).blocks;
        // Inner blocks have higher numbers.
        let n = self.deferred.iter().rev().take_while(|d| d.0 > declared).count() as u32;
        if let Some(&(_, first)) = self.deferred.last().filter(|_| n > 0) {
            self.p.leaves.insert(self.g(e), Leaving { first, n });
        }
    }

    fn local_item(&mut self, item: &'a ast::Item) {
        match &item.kind {
            ast::ItemKind::Fn(f) => {
                if let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span) {
                    self.check_fn(id);
                }
            }
            ast::ItemKind::Trait(ast::Trait { fns, .. }) | ast::ItemKind::Impl(ast::Impl { fns, .. }) => {
                for f in fns {
                    if let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span) {
                        self.check_fn(id);
                    }
                }
            }
            ast::ItemKind::Mod(ast::Mod { items: Some(items), .. }) => {
                items.iter().for_each(|item| self.local_item(item));
            }
            ast::ItemKind::Static(s) => {
                if let Some(Entity::Static(id)) = self.p.declared_at(s.name.span) {
                    self.check_static(id);
                }
            }
            _ => {}
        }
    }

    fn let_stmt(&mut self, pattern: &'a Pattern, init: Option<ExprId>) {
        let ty = self.pattern_ty(pattern);
        if let Some(init) = init {
            let actual = self.operand(init, Some(ty));
            let (g, span) = (self.g(init), self.value_span(init));
            let why = match pattern.ty {
                Some(id) => Why(Some((self.ast()[id].span, "because of this type"))),
                None => NO_WHY,
            };
            if pattern.ty.is_none()
                && let (PatternKind::Tuple(parts), Kind::Tuple(found)) = (&pattern.kind, self.p.types.kind(actual))
                && parts.len() != found.len()
            {
                let shown = self.show(actual);
                self.report(bad_pattern::parts(pattern.span, &shown, found.len(), parts.len(), span));
                self.p.types.poison(ty);
            } else {
                self.coerce(g, span, actual, ty, why);
            }
            self.unit.check_later(Final::Value { ty, span });
        }
        let first = self.p.locals.len();
        self.bind_pattern(pattern, ty);
        match init {
            // The value is assigned later.
            None => self.p.locals[first..].iter_mut().for_each(|l| l.changed = true),
            Some(init) if matches!(self.ast()[init].kind, ExprKind::Lambda(_)) => {
                let lambda = Some(self.g(init));
                self.p.locals[first..].iter_mut().for_each(|l| l.lambda = lambda);
            }
            Some(_) => {}
        }
        self.irrefutable(pattern, ty);
        self.check_names(std::iter::once(pattern));
    }

    pub(super) fn filter(&mut self, filter: &Filter) {
        let Filter::When(e) = filter else { return };
        let bool = self.prim(Prim::Bool);
        let old = std::mem::replace(&mut self.ctx.in_filter, true);
        let ty = self.expr(*e, Some(bool));
        self.ctx.in_filter = old;
        if !self.p.types.unify(ty, bool) {
            let (span, found) = (self.ast()[*e].span, self.show(ty));
            let name = match &self.ast()[*e].kind {
                ExprKind::Path(path) => Some(short(&path.names[0].text)),
                _ => None,
            };
            self.report(filter_not_bool::error(span, &found, name.as_deref()));
        } else if !self.ctx.in_filter {
            self.warn_filter(*e);
        }
    }
}
