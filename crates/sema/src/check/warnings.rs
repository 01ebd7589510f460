//! Warnings about code that is legal but suspicious: unused names, names hidden by others, filters without effect. Also
//! here, because it needs the same data: which functions outlive a variable that they share.

use super::bodies::Shared;
use super::*;
use nyala_base::FileId;
use nyala_syntax::ast::{BinaryOp, Block, ExprKind, Stmt, UnaryOp};

impl<'a> Checker<'a, '_> {
    /// Reports warnings for the program's own files, in source order.
    pub(super) fn warn(&mut self) {
        let first = self.p.n_libraries;
        let mut found = Vec::new();
        self.unused_locals(&mut found);
        self.unused_functions(self.p.modules.len() == first + 1, &mut found);
        self.namespaces.unused_uses(&mut found);
        let used = self.merely_used();
        found.retain(|d: &Diagnostic| !used.contains(&d.primary.span.file));
        self.escapes();
        let Some(files) = self.p.modules.get(first..) else { return };
        let own: FxHashSet<_> = files.iter().filter_map(|m| m.file).collect();
        found.retain(|d: &Diagnostic| own.contains(&d.primary.span.file));
        found.sort_by_key(|d| (d.primary.span.file, d.primary.span.lo));
        self.sink.diagnostics.extend(found);
    }

    /// If several files are given, those that the program merely uses: all but the one with `main`. Without `main`,
    /// those without an exported function.
    fn merely_used(&self) -> FxHashSet<FileId> {
        let given = |i: &usize| self.p.modules[*i].path.is_empty();
        let given: Vec<usize> = (self.p.n_libraries..self.p.modules.len()).filter(given).collect();
        if given.len() < 2 {
            return FxHashSet::default();
        }
        let with = |test: &dyn Fn(&FnInfo) -> bool| -> FxHashSet<usize> {
            self.p.fns.iter().filter(|f| test(f)).map(|f| f.module).collect()
        };
        let mut roots = with(&|f| self.p.is_main(f));
        if roots.is_empty() {
            roots = with(&|f| f.ast.exported && f.top_level && f.module >= self.p.n_libraries);
        }
        if roots.is_empty() {
            return FxHashSet::default();
        }
        let used = (self.p.n_libraries..self.p.modules.len()).filter(|i| !roots.contains(i));
        used.filter_map(|i| self.p.modules[i].file).collect()
    }

    fn unused_locals(&mut self, found: &mut Vec<Diagnostic>) {
        for local in &self.p.locals {
            if local.declared == Declared::Implicit || local.name.starts_with('_') {
                continue;
            }
            let name = short(&local.name);
            if !local.used && local.declared == Declared::Let {
                found.push(unused_name::variable(local.span, &name));
            } else if local.mutable && !local.changed && local.used {
                found.push(unused_mut::warning(local.span, &name));
            }
        }
    }

    /// Finds unused functions: nested and private ones, and all functions of a single-file program with `main`. Other
    /// functions may be used by other files.
    fn unused_functions(&mut self, one_file: bool, found: &mut Vec<Diagnostic>) {
        let has_main = one_file && self.p.fns.iter().any(|f| self.p.is_main(f));
        for (i, f) in self.p.fns.iter().enumerate() {
            let name = &*f.ast.name.text;
            let exempt = f.owner != FnOwner::None
                || f.ast.exported
                || f.kind != FnKind::Defined
                || name.starts_with('_')
                || f.top_level && (self.p.is_main(f) || name.starts_with("test") || name.starts_with("bench"));
            let named = self.namespaces[f.ns].names.get(name);
            let private = named.is_some_and(|n| n.private && n.entity == Entity::Fn(FnId(i as u32)));
            if !exempt && !self.uses.fns.contains(&FnId(i as u32)) && (!f.top_level || private || has_main) {
                found.push(unused_name::function(f.ast.name.span, &short(name)));
            }
        }
    }

    /// Finds function values that leave the function whose variables they use. They get copies of those variables that
    /// are not `mut` and whose address is taken.
    fn escapes(&mut self) {
        let Shared { by_body, around } = self.bodies.outer_variables(&self.p.locals);
        if around.is_empty() {
            return;
        }
        let mut bodies: Vec<(u32, usize, ExprId)> = Vec::new();
        for (i, f) in self.p.fns.iter().enumerate() {
            if let (Some(body), Some(owner)) = (f.ast.body, self.bodies.of_fn(FnId(i as u32))) {
                bodies.push((owner, f.module, body));
            }
        }
        for (g, owner) in self.bodies.lambdas() {
            let (module, e) = self.locate(g);
            if let ExprKind::Lambda(lambda) = &self.p.modules[module][e].kind {
                bodies.push((owner, module, lambda.body));
            }
        }
        let body_of: FxHashMap<u32, GlobalExpr> = bodies.iter().map(|b| (b.0, self.p.global(b.1, b.2))).collect();
        bodies.retain(|b| around.contains(&b.0));
        bodies.sort_unstable();
        let mut copies: FxHashMap<GlobalExpr, Vec<LocalId>> = FxHashMap::default();
        for (owner, module, body) in bodies {
            for escape in self.escaping(module, body, owner) {
                for &id in by_body.get(&escape).into_iter().flatten() {
                    let local = self.p.local(id);
                    if !local.mutable
                        && local.addressed
                        && let Some(body) = body_of.get(&escape)
                    {
                        copies.entry(*body).or_default().push(id);
                    }
                }
            }
        }
        for locals in copies.values_mut() {
            locals.sort_unstable();
            locals.dedup();
        }
        self.p.copies = copies;
    }

    /// Function values in what the body of `owner` gives back or returns early.
    fn escaping(&self, module: usize, body: ExprId, owner: u32) -> Vec<u32> {
        let ast = self.p.modules[module];
        let mut out = Vec::new();
        let mut seen: FxHashSet<ExprId> = FxHashSet::default();
        let mut inits: FxHashMap<LocalId, ExprId> = FxHashMap::default();
        // All of the body, for early returns and for what variables begin with.
        let mut values = vec![body];
        let mut work = vec![body];
        while let Some(e) = work.pop() {
            match &ast[e].kind {
                ExprKind::Lambda(_) => continue,
                ExprKind::Call { callee, args } => {
                    let returns = match self.p.resolved.get(&self.p.global(module, *callee)) {
                        Some(Entity::Local(id)) => {
                            let local = self.p.local(*id);
                            local.owner == owner && &*local.name == "return"
                        }
                        _ => false,
                    };
                    if returns {
                        values.extend(args);
                    }
                }
                ExprKind::Assign { place, value, .. } => {
                    if let Some(Entity::Static(_)) = self.p.resolved.get(&self.p.global(module, *place)) {
                        values.push(*value);
                    }
                }
                ExprKind::Block(Block { stmts, .. }) => {
                    for stmt in stmts {
                        if let Stmt::Let { pattern, init: Some(init), .. } = stmt
                            && let ast::PatternKind::Name { mutable: false, name } = &pattern.kind
                            && let Some(id) = self.p.local_at(name.span)
                        {
                            inits.insert(id, *init);
                        }
                    }
                }
                _ => {}
            }
            ast[e].kind.each_child(|c| work.push(c));
        }
        while let Some(e) = values.pop() {
            if !seen.insert(e) {
                continue;
            }
            let node = &ast[e];
            match &node.kind {
                ExprKind::Block(Block { result, .. }) => values.extend(*result),
                ExprKind::If { arms, otherwise } => values.extend(arms.iter().map(|a| a.1).chain(*otherwise)),
                ExprKind::Match { arms, .. } => values.extend(arms.iter().map(|a| a.body)),
                ExprKind::Tuple(parts) | ExprKind::Array(parts) => values.extend(parts),
                ExprKind::Struct { fields, base, .. } => values.extend(fields.iter().map(|f| f.1).chain(*base)),
                ExprKind::Repeat(e, _) | ExprKind::Cast(e, _) | ExprKind::Unary(UnaryOp::Own, e) => values.push(*e),
                ExprKind::Lambda(_) => {
                    if let Some(owner) = self.bodies.of_lambda(self.p.global(module, e)) {
                        out.push(owner);
                    }
                }
                ExprKind::Path(_) => match self.p.resolved.get(&self.p.global(module, e)) {
                    Some(Entity::Local(id)) => values.extend(inits.get(id)),
                    Some(Entity::Fn(id)) if !self.p.fns[id.0 as usize].top_level => {
                        if let Some(owner) = self.bodies.of_fn(*id) {
                            out.push(owner);
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        out
    }

    /// Warns about a name that hides another one of the same function, unless a body rebinds its own parameter.
    pub(super) fn warn_shadowed(&mut self, name: &'a Name) {
        if self.at.module < self.p.n_libraries || name.is_wildcard() {
            return;
        }
        let owner = self.ctx.owner;
        let hidden = self.scopes.find_outside(&name.text).find_map(|(between, entity)| match entity {
            Entity::Local(id) if self.p.local(id).owner == owner => Some((between, id)),
            _ => None,
        });
        if let Some((between, id)) = hidden
            && self.p.local(id).declared != Declared::Implicit
            // A body may rebind its own parameter.
            && !(between == 0 && self.p.local(id).declared == Declared::Parameter)
        {
            let first = self.p.local(id).span;
            self.report(shadowed_name::warning(name.span, &short(&name.text), first));
        }
    }

    /// Warns about a filter without any name, or with a `?` that is always false.
    pub(super) fn warn_filter(&mut self, filter: ExprId) {
        if self.at.module < self.p.n_libraries {
            return;
        }
        let ast = self.ast();
        let (mut has_name, mut work) = (false, vec![filter]);
        while let Some(e) = work.pop() {
            has_name |= matches!(ast[e].kind, ExprKind::Path(_) | ExprKind::Error);
            ast[e].kind.each_child(|c| work.push(c));
        }
        if !has_name {
            let span = ast[filter].span;
            self.report(constant_filter::warning(span));
        }
    }

    /// `?e` of something that partial evaluation never knows.
    pub(super) fn warn_known(&mut self, e: ExprId, span: Span) {
        if self.at.module < self.p.n_libraries {
            return;
        }
        let ast = self.ast();
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            let why = self.never_known_because(e);
            if let Some(why) = why {
                self.report(never_known::warning(span, why));
                return;
            }
            // Values computed from it are unknown as well, unless the operand does not matter, as in `0 * $x`.
            match &ast[e].kind {
                ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, lhs, rhs, .. } => work.extend([*rhs, *lhs]),
                ExprKind::Unary(UnaryOp::Plus | UnaryOp::Neg | UnaryOp::Not, inner) => work.push(*inner),
                ExprKind::Cast(inner, _) => work.push(*inner),
                _ => {}
            }
        }
    }

    fn never_known_because(&self, e: ExprId) -> Option<&'static str> {
        match &self.ast()[e].kind {
            ExprKind::Unary(UnaryOp::Halt, _) => Some("`$` makes it unknown"),
            ExprKind::Path(_) => match self.p.resolved.get(&self.g(e)) {
                Some(Entity::Static(id)) if self.p.statics[id.0 as usize].ast.mutable => {
                    Some("a `static mut` may change while the program runs")
                }
                _ => None,
            },
            ExprKind::Call { callee, .. } => match self.p.resolved.get(&self.g(*callee)) {
                Some(Entity::Fn(id)) if matches!(self.p.fns[id.0 as usize].kind, FnKind::Foreign(_)) => {
                    Some("what C gives back is known when the program runs")
                }
                _ => None,
            },
            _ => None,
        }
    }
}
