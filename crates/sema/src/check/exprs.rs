//! Expressions, statements, patterns.

use super::*;
use nyala_syntax::ast::{BinaryOp, Block, ExprKind, Filter, Param, Pattern, PatternKind, Stmt, Suffix, UnaryOp};

impl<'a> Checker<'a, '_> {
    /// The type of `e`, which is recorded. What is expected is a hint, and the caller makes sure of it.
    pub(super) fn expr(&mut self, e: ExprId, expected: Option<Ty>) -> Ty {
        let ty = self.expr_inner(e, expected);
        let g = self.g(e);
        self.p.expr_ty[g as usize] = ty;
        self.check_depth(self.ast()[e].span);
        ty
    }

    /// `e`, whose value goes where `to` is expected.
    pub(super) fn expr_to(&mut self, e: ExprId, to: Ty, why: Why) -> Ty {
        let ty = self.expr(e, Some(to));
        let (g, span) = (self.g(e), self.value_span(e));
        self.coerce(g, span, ty, to, why);
        ty
    }

    /// Where a value comes from: of a block the place of its result.
    pub(super) fn value_span(&self, mut e: ExprId) -> Span {
        while let ExprKind::Block(Block { result: Some(result), .. }) = &self.ast()[e].kind {
            e = *result;
        }
        self.ast()[e].span
    }

    /// `e` as an operand: it must have a value.
    fn operand(&mut self, e: ExprId, expected: Option<Ty>) -> Ty {
        let ty = self.expr(e, expected);
        if self.p.types.is_never(ty) {
            self.never_value(e);
            return TypeTable::ERROR;
        }
        ty
    }

    pub(super) fn never_value(&mut self, e: ExprId) {
        let span = self.ast()[e].span;
        self.report(unreachable_code::no_value(span));
    }

    fn expr_inner(&mut self, e: ExprId, expected: Option<Ty>) -> Ty {
        let ast = self.ast();
        let node = &ast[e];
        let span = node.span;
        match &node.kind {
            ExprKind::Error => TypeTable::ERROR,
            ExprKind::Int { value, suffix } => self.int_literal(*value, *suffix, false, expected, span),
            ExprKind::Float { suffix, .. } => self.float_literal(*suffix, expected, span),
            ExprKind::Bool(_) => self.prim(Prim::Bool),
            ExprKind::Char(_) => self.prim(Prim::U8),
            ExprKind::Str(bytes) => {
                let elem = self.prim(Prim::U8);
                self.p.types.mk(Kind::Array(elem, bytes.len() as u64))
            }
            ExprKind::Path(path) => self.path_expr(e, path, false),
            ExprKind::Struct { path, fields } => self.struct_expr(path, fields, span),
            ExprKind::Tuple(parts) => {
                let hints = match expected.map(|t| self.p.types.kind(t)) {
                    Some(Kind::Tuple(hints)) if hints.len() == parts.len() => Some(hints),
                    _ => None,
                };
                let mut tys = Vec::with_capacity(parts.len());
                for (i, part) in parts.iter().enumerate() {
                    let hint = hints.as_ref().map(|h| h[i]);
                    let ty = self.operand(*part, hint);
                    // Parts adjust on their own, so that addresses can be taken.
                    tys.push(match hint {
                        Some(hint) if self.p.types.as_var(hint).is_none() => {
                            let (g, span) = (self.g(*part), self.ast()[*part].span);
                            self.coerce(g, span, ty, hint, NO_WHY);
                            hint
                        }
                        _ => ty,
                    });
                }
                self.p.types.tuple(&tys)
            }
            ExprKind::Array(parts) => self.array_expr(parts, expected, span),
            ExprKind::Repeat(elem, n) => {
                let hint = self.elem_hint(expected);
                let ty = match hint {
                    Some(hint) => {
                        self.operand_to(*elem, hint, NO_WHY);
                        hint
                    }
                    None => self.operand(*elem, None),
                };
                match self.length(*n) {
                    Some(n) => self.p.types.mk(Kind::Array(ty, n)),
                    None => TypeTable::ERROR,
                }
            }
            ExprKind::DynArray(..) => {
                self.limitation(span, "arrays of run-time length", "allocate with `alloc_i32(n)` or the like");
                TypeTable::ERROR
            }
            ExprKind::Simd(_) => {
                self.limitation(span, "`simd` values", "compute with arrays, element by element");
                TypeTable::ERROR
            }
            ExprKind::Match { .. } => {
                self.limitation(span, "`match` expressions", "write `if … { … } else if … { … } else { … }`");
                TypeTable::ERROR
            }
            ExprKind::Asm(_) => {
                self.limitation(span, "`asm` expressions", "write a C function and import it by `extern \"C\"`");
                TypeTable::ERROR
            }
            ExprKind::Block(block) => self.block(block, expected),
            ExprKind::Unary(op, inner) => self.unary(*op, *inner, expected, span),
            ExprKind::AddrOf { mutable, place } => {
                let hint = match expected.map(|t| self.p.types.kind(t)) {
                    Some(Kind::Ptr { to, .. }) => match self.p.types.kind(to) {
                        Kind::Indef(_) | Kind::Var(_) => None,
                        _ => Some(to),
                    },
                    _ => None,
                };
                let ty = self.operand(*place, hint);
                if self.is_place(*place) {
                    let need = if *mutable { Need::MutAddress } else { Need::Address };
                    self.need_place(*place, need, span);
                }
                self.p.types.ptr(*mutable, ty)
            }
            ExprKind::IncDec { place, .. } => {
                let ty = self.operand(*place, None);
                self.p.types.make_number(ty);
                self.finals.push(Final::Operand { op: "++", want: Want::Number, ty, span });
                self.assignable(*place, span);
                // Where nobody wants its value it has none: `if c { i++ }`.
                if expected == Some(TypeTable::UNIT) { TypeTable::UNIT } else { ty }
            }
            ExprKind::Binary { op, op_span, lhs, rhs } => self.binary(*op, *op_span, *lhs, *rhs, expected),
            ExprKind::Assign { op, op_span, place, value } => {
                let ty = self.operand(*place, None);
                match op {
                    None => {
                        self.operand_to(*value, ty, Why(Some((ast[*place].span, "the place that is assigned"))));
                    }
                    Some(op) => {
                        let rhs = self.operand(*value, Some(ty));
                        let why = Why(Some((ast[*place].span, "the place that is assigned")));
                        if self.unify(ast[*value].span, rhs, ty, why) {
                            self.arithmetic(*op, ty, *op_span);
                        }
                    }
                }
                self.assignable(*place, span);
                TypeTable::UNIT
            }
            ExprKind::Cast(inner, to) => {
                let to = self.value_ty(*to);
                // A literal too large for `i32` takes the type of the cast; others wrap.
                let literal = matches!(ast[*inner].kind, ExprKind::Int { value, .. } if value > i32::MAX as u128);
                let int = self.p.types.as_prim(to).is_some_and(Prim::is_int);
                let from = self.operand(*inner, (literal && int).then_some(to));
                let g = self.g(e);
                self.p.cast_to.insert(g, to);
                self.finals.push(Final::Cast { from, to, span });
                to
            }
            ExprKind::Call { callee, args } => self.call(e, *callee, args),
            ExprKind::Field { base, name, type_args } => {
                let base_ty = self.operand(*base, None);
                if type_args.is_some() {
                    self.limitation(name.span, "type arguments", "write a function for each type");
                    return TypeTable::ERROR;
                }
                let result = self.var();
                let g = self.g(e);
                self.field_of(g, name.span, base_ty, name.clone(), result);
                self.p.types.shallow(result)
            }
            ExprKind::Lambda(lambda) => self.lambda(e, lambda, expected),
            ExprKind::If { arms, otherwise } => self.if_expr(arms, *otherwise, expected, span),
            ExprKind::While { cond, body } => self.while_expr(e, *cond, *body),
            ExprKind::For(looped) => self.for_expr(e, looped),
        }
    }

    fn operand_to(&mut self, e: ExprId, to: Ty, why: Why) {
        let ty = self.expr_to(e, to, why);
        if self.p.types.is_never(ty) {
            self.never_value(e);
        }
    }

    fn int_literal(&mut self, value: u128, suffix: Option<Suffix>, negative: bool, hint: Option<Ty>, span: Span) -> Ty {
        let hinted = hint.filter(|t| self.p.types.as_prim(*t).is_some_and(Prim::is_int));
        let ty = match suffix {
            Some(suffix) => self.suffix_ty(suffix, span),
            None => hinted.unwrap_or_else(|| self.p.types.var(Class::Int)),
        };
        self.finals.push(Final::Literal { value, negative, ty, span });
        ty
    }

    fn float_literal(&mut self, suffix: Option<Suffix>, hint: Option<Ty>, span: Span) -> Ty {
        let hinted = hint.filter(|t| self.p.types.as_prim(*t).is_some_and(Prim::is_float));
        match suffix {
            Some(suffix) => self.suffix_ty(suffix, span),
            None => hinted.unwrap_or_else(|| self.p.types.var(Class::Float)),
        }
    }

    fn suffix_ty(&mut self, suffix: Suffix, span: Span) -> Ty {
        match Prim::from_name(suffix.text()) {
            Some(prim) => self.prim(prim),
            None => {
                self.report(limitation::error(span, "`f16` is not supported yet", "use `f32`"));
                TypeTable::ERROR
            }
        }
    }

    /// What a name is worth. `called`: it is applied at once.
    pub(super) fn path_expr(&mut self, e: ExprId, path: &'a ast::Path, called: bool) -> Ty {
        let name = &path.names[0];
        let entity = self.resolve_name(name);
        if path.names.len() > 1 {
            if entity != Entity::Error {
                self.limitation(path.span, "paths with `::`", "name the thing itself: all files share one scope");
            }
            return TypeTable::ERROR;
        }
        let g = self.g(e);
        self.p.resolved.insert(g, entity);
        let generic = matches!(entity, Entity::Fn(id) if self.p.fns[id.0 as usize].n_type_params > 0);
        let what = match entity {
            Entity::Local(_) => Some("a variable"),
            Entity::Static(_) => Some("a static"),
            Entity::Fn(_) if !generic => Some("a function without type parameters"),
            _ => None,
        };
        if let (Some(_), Some(what)) = (&path.type_args, what) {
            self.report(not_generic::error(path.span, &short(&name.text), what));
            return TypeTable::ERROR;
        }
        if path.type_args.is_some() && !generic && entity != Entity::Error {
            self.limitation(path.span, "type arguments", "write a function or struct for each type");
            return TypeTable::ERROR;
        }
        match entity {
            Entity::Error => TypeTable::ERROR,
            Entity::Local(id) => self.use_local(id, name.span, called),
            Entity::Static(id) => self.p.statics[id.0 as usize].ty,
            Entity::Fn(id) => self.use_fn(g, id, path, called),
            Entity::Struct(_) | Entity::Alias(_) | Entity::TypeParam(_) => {
                let fields: Option<Vec<&str>> = match entity {
                    Entity::Struct(id) => Some(self.p.structs[id.0 as usize].fields.iter().map(|f| f.0).collect()),
                    _ => None,
                };
                self.report(not_a_value::error(name.span, &short(&name.text), fields.as_deref()));
                TypeTable::ERROR
            }
        }
    }

    fn not_constant(&mut self, span: Span) {
        self.report(not_constant::error(span, "belongs to the function around the static"));
    }

    fn use_local(&mut self, id: LocalId, span: Span, called: bool) -> Ty {
        let owner = self.ctx.owner;
        let local = &mut self.p.locals[id.0 as usize];
        local.used = true;
        let outside = local.owner != owner;
        local.captured |= outside;
        if let Some((looped, _)) = local.loop_cont
            && (outside || !called)
        {
            self.p.loops[looped.0 as usize].first_class = true;
        }
        let ty = local.ty;
        if self.static_floor.is_some_and(|floor| self.p.local(id).owner < floor) {
            self.not_constant(span);
            return TypeTable::ERROR;
        }
        if outside && let Some(function) = self.ctx.function {
            self.captures.push((function, id));
        }
        ty
    }

    fn use_fn(&mut self, g: GlobalExpr, id: FnId, path: &'a ast::Path, called: bool) -> Ty {
        let info = &self.p.fns[id.0 as usize];
        let (ty, n, top_level) = (info.ty, info.n_type_params, info.top_level);
        if !top_level && self.static_floor.is_some() && self.p.fns[id.0 as usize].ast.body.is_some() {
            self.limitation(path.span, "nested functions in statics", "put the function outside of the other one");
            return TypeTable::ERROR;
        }
        if !top_level {
            self.nested_uses.push((self.ctx.function, id, self.p.locals.len() as u32, path.span));
        }
        if n == 0 {
            return ty;
        }
        if !called {
            self.limitation(path.span, "intrinsics with type parameters as values", "pass a lambda that calls it");
            return TypeTable::ERROR;
        }
        let mut args = Vec::with_capacity(n);
        for arg in path.type_args.iter().flatten().take(n) {
            args.push(self.value_ty(*arg));
        }
        if path.type_args.as_ref().is_some_and(|a| a.len() > n) {
            let found = path.type_args.as_ref().map_or(0, Vec::len);
            self.report(wrong_number_of_arguments::type_arguments(path.span, found, n));
        }
        while args.len() < n {
            let ty = self.var();
            args.push(ty);
        }
        for &ty in &args {
            self.finals.push(Final::Known { ty, span: path.span, what: "this type argument" });
        }
        let ty = self.p.types.instantiate(ty, &args);
        self.p.type_args.insert(g, args);
        ty
    }

    fn struct_expr(&mut self, path: &'a ast::Path, fields: &'a [(Name, ExprId)], span: Span) -> Ty {
        let name = &path.names[0];
        let mut entity = self.resolve(name, true);
        if let Entity::Alias(id) = entity {
            let ty = self.alias(id);
            entity = match self.p.types.kind(ty) {
                Kind::Struct(id) => Entity::Struct(id),
                Kind::Error => Entity::Error,
                _ => entity,
            };
        }
        let reject = match entity {
            Entity::Struct(_) if path.names.len() > 1 => Some(("paths with `::`", "name the struct itself")),
            Entity::Struct(_) if path.type_args.is_some() => Some(("type arguments", "write a struct for each type")),
            _ => None,
        };
        let id = match entity {
            Entity::Struct(id) if reject.is_none() => id,
            _ => {
                if let Some((what, hint)) = reject {
                    self.limitation(path.span, what, hint);
                } else if entity != Entity::Error {
                    self.report(not_a_struct::error(name.span, &short(&name.text)));
                }
                for (_, e) in fields {
                    self.operand(*e, None);
                }
                return TypeTable::ERROR;
            }
        };
        let mut given: FxHashMap<u32, Span> = FxHashMap::default();
        for (name, e) in fields {
            let Some(&idx) = self.p.structs[id.0 as usize].index.get(&*name.text) else {
                self.no_such_field(id, name);
                self.operand(*e, None);
                continue;
            };
            let (ty, declared) = {
                let info = &self.p.structs[id.0 as usize];
                (info.fields[idx as usize].1, info.ast.fields[idx as usize].name.span)
            };
            self.operand_to(*e, ty, Why(Some((declared, "the field's type"))));
            if let Some(first) = given.insert(idx, name.span) {
                self.report(duplicate_field::error(name.span, &short(&name.text), first));
            }
        }
        let info = &self.p.structs[id.0 as usize];
        let missing: Vec<String> = (0..info.fields.len())
            .filter(|i| !given.contains_key(&(*i as u32)))
            .map(|i| short(info.fields[i].0))
            .take(5)
            .collect();
        if !missing.is_empty() && given.len() == fields.len() {
            self.report(missing_field::error(path.span, &missing));
        }
        let _ = span;
        self.p.types.mk(Kind::Struct(id))
    }

    pub(super) fn no_such_field(&mut self, id: StructId, name: &Name) {
        let info = &self.p.structs[id.0 as usize];
        let fields: Vec<&str> = info.fields.iter().map(|f| f.0).collect();
        let similar = closest(&name.text, fields.iter().copied());
        let of = short(&info.ast.name.text);
        self.report(no_such_field::of_struct(name.span, &of, &short(&name.text), &fields, similar));
    }

    fn elem_hint(&mut self, expected: Option<Ty>) -> Option<Ty> {
        let mut ty = expected?;
        if let Kind::Ptr { to, .. } = self.p.types.kind(ty) {
            ty = to;
        }
        match self.p.types.kind(ty) {
            Kind::Array(elem, _) | Kind::Indef(elem) if self.p.types.as_var(elem).is_none() => Some(elem),
            _ => None,
        }
    }

    fn array_expr(&mut self, parts: &'a [ExprId], expected: Option<Ty>, span: Span) -> Ty {
        let mut elem = self.elem_hint(expected);
        for part in parts {
            match elem {
                Some(ty) => self.operand_to(*part, ty, NO_WHY),
                None => elem = Some(self.operand(*part, None)),
            }
        }
        let elem = elem.unwrap_or_else(|| self.var());
        if parts.is_empty() {
            self.finals.push(Final::Known { ty: elem, span, what: "the elements of this array" });
        }
        self.p.types.mk(Kind::Array(elem, parts.len() as u64))
    }

    fn unary(&mut self, op: UnaryOp, inner: ExprId, expected: Option<Ty>, span: Span) -> Ty {
        let ast = self.ast();
        match op {
            UnaryOp::Neg | UnaryOp::Plus => {
                let ty = match &ast[inner].kind {
                    ExprKind::Int { value, suffix } => {
                        let negative = op == UnaryOp::Neg;
                        let ty = self.int_literal(*value, *suffix, negative, expected, ast[inner].span);
                        let g = self.g(inner);
                        self.p.expr_ty[g as usize] = ty;
                        ty
                    }
                    _ => self.operand(inner, expected),
                };
                self.p.types.make_number(ty);
                self.finals.push(Final::Operand { op: op.text(), want: Want::Number, ty, span });
                ty
            }
            UnaryOp::Not => {
                let ty = self.operand(inner, expected);
                self.finals.push(Final::Operand { op: "!", want: Want::IntegerOrBool, ty, span });
                ty
            }
            UnaryOp::Deref => {
                let base = self.operand(inner, None);
                let result = self.var();
                self.deref(span, base, result);
                self.p.types.shallow(result)
            }
            UnaryOp::Own => {
                self.operand(inner, None);
                if !matches!(ast[inner].kind, ExprKind::DynArray(..)) {
                    self.limitation(
                        span,
                        "owned pointers",
                        "take memory of `alloc_bytes` and the like, a `&mut` pointer",
                    );
                }
                TypeTable::ERROR
            }
            UnaryOp::Known => {
                self.operand(inner, None);
                self.prim(Prim::Bool)
            }
            UnaryOp::Halt => {
                let ty = self.operand(inner, expected);
                let g = self.g(inner);
                let is_call = matches!(ast[inner].kind, ExprKind::Call { .. });
                if is_call && self.p.call_kind.get(&g) == Some(&CallKind::Call) {
                    self.limitation(span, "calls with `$`", "give its value a name first: `let x = f(); $x`");
                }
                ty
            }
            UnaryOp::Unfold => self.expr(inner, expected),
            UnaryOp::Run => {
                self.limitation(
                    span,
                    "calls with `@`",
                    "write the filter before the function's name, `fn @f(…)`, or call with `@@`",
                );
                self.expr(inner, expected)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, op_span: Span, lhs: ExprId, rhs: ExprId, expected: Option<Ty>) -> Ty {
        let ast = self.ast();
        let bool = self.prim(Prim::Bool);
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            self.operand_to(lhs, bool, Why(Some((op_span, "operands of this are `bool`"))));
            // What comes second may never come.
            self.expr_to(rhs, bool, Why(Some((op_span, "operands of this are `bool`"))));
            return bool;
        }
        let hint = if op.is_comparison() { None } else { expected };
        let left = self.operand(lhs, hint);
        let right = self.operand(rhs, Some(left));
        let why = Why(Some((ast[lhs].span, "the other operand")));
        if op.is_comparison() && matches!(self.p.types.kind(left), Kind::Ptr { .. }) {
            let fit = self.subtype(right, left);
            let fit = if fit == Fit::No { self.subtype(left, right) } else { fit };
            if fit == Fit::No || fit == Fit::Address {
                self.mismatch(ast[rhs].span, right, left, why);
            }
            return bool;
        }
        if !self.unify(ast[rhs].span, right, left, why) {
            let compares = |e: ExprId| matches!(&ast[e].kind, ExprKind::Binary { op, .. } if op.is_comparison());
            if op.is_comparison()
                && (compares(lhs) || compares(rhs))
                && let Some(diagnostic) = self.sink.diagnostics.last_mut()
            {
                diagnostic.hints = vec![type_mismatch::COMPARISONS.into()];
            }
            return if op.is_comparison() { bool } else { TypeTable::ERROR };
        }
        if op.is_comparison() {
            self.finals.push(Final::Operand { op: op.text(), want: Want::Comparable, ty: left, span: op_span });
            return bool;
        }
        self.arithmetic(op, left, op_span);
        left
    }

    /// The operands of `op` have type `ty`.
    fn arithmetic(&mut self, op: BinaryOp, ty: Ty, span: Span) {
        use BinaryOp::*;
        let want = match op {
            Add | Sub | Mul | Div | Rem => {
                self.p.types.make_number(ty);
                Want::Number
            }
            Shl | Shr => {
                self.p.types.make_number(ty);
                Want::Integer
            }
            _ => Want::IntegerOrBool,
        };
        self.finals.push(Final::Operand { op: op.text(), want, ty, span });
    }

    // Statements.

    fn block(&mut self, block: &'a Block, expected: Option<Ty>) -> Ty {
        self.scopes.push(FxHashMap::default());
        fn items(block: &Block) -> impl Iterator<Item = &ast::Item> {
            block.stmts.iter().filter_map(|s| if let Stmt::Item(item) = s { Some(&**item) } else { None })
        }
        self.declare_items(items(block), false);
        self.define_items(items(block), false);
        // The place of what never ends.
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
        self.scopes.pop();
        ty
    }

    /// `e` as a statement: the values of its branches are dropped, whatever types they have.
    fn dropped(&mut self, e: ExprId) -> Ty {
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
            Stmt::Expr(e) => self.ast()[*e].span,
            Stmt::Item(item) => item.span,
        }
    }

    fn local_item(&mut self, item: &'a ast::Item) {
        match &item.kind {
            ast::ItemKind::Fn(f) => {
                if let Some(Entity::Fn(id)) = self.p.declared_at(f.name.span) {
                    self.check_fn(id);
                }
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
            self.finals.push(Final::Value { ty, span });
        }
        self.bind_pattern(pattern, ty);
    }

    /// The type that a pattern states, open where it states none.
    pub(super) fn pattern_ty(&mut self, pattern: &'a Pattern) -> Ty {
        let stated = pattern.ty.map(|ty| self.value_ty(ty));
        match &pattern.kind {
            PatternKind::Tuple(parts) => {
                let parts: Vec<Ty> = parts.iter().map(|p| self.pattern_ty(p)).collect();
                let ty = self.p.types.tuple(&parts);
                if let Some(stated) = stated {
                    self.unify(pattern.span, ty, stated, NO_WHY);
                }
                ty
            }
            PatternKind::Unnamed | PatternKind::Name { .. } => stated.unwrap_or_else(|| self.var()),
            _ => {
                self.limitation(pattern.span, "such patterns", "compare in an `if`");
                TypeTable::ERROR
            }
        }
    }

    /// Enters the names of a pattern, which is given a value of type `ty`.
    pub(super) fn bind_pattern(&mut self, pattern: &'a Pattern, ty: Ty) {
        match &pattern.kind {
            PatternKind::Unnamed
            | PatternKind::Literal(_)
            | PatternKind::Option { .. }
            | PatternKind::Struct { .. } => {}
            PatternKind::Name { mutable, name } => {
                let id = self.new_local(&name.text, name.span, ty, *mutable);
                // Even `_` is looked up by the lowering.
                self.p.declared.insert((name.span.file, name.span.lo), Entity::Local(id));
                self.bind(name, Entity::Local(id));
            }
            PatternKind::Tuple(parts) => match self.p.types.kind(ty) {
                Kind::Tuple(tys) if tys.len() == parts.len() => {
                    for (part, ty) in parts.iter().zip(tys.iter()) {
                        self.bind_pattern(part, *ty);
                    }
                }
                Kind::Error => parts.iter().for_each(|p| self.bind_pattern(p, TypeTable::ERROR)),
                _ => {
                    let found = self.show(ty);
                    self.report(bad_pattern::no_tuple(pattern.span, &found, parts.len()));
                    parts.iter().for_each(|p| self.bind_pattern(p, TypeTable::ERROR));
                }
            },
        }
    }

    /// Enters parameters; two of one name are an error.
    pub(super) fn bind_params(&mut self, params: &'a [Param], tys: &[Ty]) {
        let mut names: FxHashMap<&'a str, Span> = FxHashMap::default();
        for (param, ty) in params.iter().zip(tys) {
            self.bind_pattern(&param.pattern, *ty);
            if let PatternKind::Name { name, .. } = &param.pattern.kind
                && !name.is_wildcard()
                && let Some(first) = names.insert(&name.text, name.span)
            {
                self.report(duplicate_name::parameter(name.span, &short(&name.text), first));
            }
        }
    }

    pub(super) fn filter(&mut self, filter: &Filter) {
        let Filter::When(e) = filter else { return };
        let bool = self.prim(Prim::Bool);
        let old = std::mem::replace(&mut self.in_filter, true);
        let ty = self.expr(*e, Some(bool));
        self.in_filter = old;
        if !self.p.types.unify(ty, bool) {
            let (span, found) = (self.ast()[*e].span, self.show(ty));
            let name = match &self.ast()[*e].kind {
                ExprKind::Path(path) => Some(short(&path.names[0].text)),
                _ => None,
            };
            self.report(filter_not_bool::error(span, &found, name.as_deref()));
        }
    }

    /// Whether `()` is no value of this type.
    fn needs_value(&mut self, ty: Ty) -> bool {
        let ty = self.p.types.shallow(ty);
        match self.p.types.kind(ty) {
            Kind::Var(_) | Kind::Error | Kind::Never | Kind::Ptr { .. } => false,
            _ => ty != TypeTable::UNIT,
        }
    }

    fn if_expr(
        &mut self,
        arms: &'a [(ExprId, ExprId)],
        otherwise: Option<ExprId>,
        expected: Option<Ty>,
        span: Span,
    ) -> Ty {
        let bool = self.prim(Prim::Bool);
        if let (None, Some(expected)) = (otherwise, expected)
            && self.needs_value(expected)
        {
            for (cond, then) in arms {
                self.operand_to(*cond, bool, NO_WHY);
                self.expr(*then, Some(expected));
            }
            let shown = self.show(expected);
            self.report(missing_else::error(span, &shown));
            return TypeTable::ERROR;
        }
        let fixed = match otherwise {
            None => Some(TypeTable::UNIT),
            Some(_) => expected.filter(|t| self.p.types.as_var(*t).is_none()),
        };
        let mut common = Common { ty: fixed, fixed: fixed.is_some(), all_never: true, arms: Vec::new() };
        for (cond, then) in arms {
            self.operand_to(*cond, bool, NO_WHY);
            self.arm(*then, &mut common);
        }
        if let Some(e) = otherwise {
            self.arm(e, &mut common);
        }
        if common.all_never && otherwise.is_some() {
            return TypeTable::NEVER;
        }
        common.ty.unwrap_or(TypeTable::NEVER)
    }

    fn arm(&mut self, e: ExprId, common: &mut Common) {
        let Some(to) = common.ty else {
            let ty = self.expr(e, None);
            if !self.p.types.is_never(ty) {
                *common = Common { ty: Some(ty), all_never: false, arms: vec![(e, ty)], ..*common };
            }
            return;
        };
        if common.fixed {
            let ty = self.expr_to(e, to, NO_WHY);
            common.all_never &= self.p.types.is_never(ty);
            return;
        }
        let ty = self.expr(e, Some(to));
        if self.p.types.is_never(ty) {
            return;
        }
        let (g, span) = (self.g(e), self.value_span(e));
        let pointers = |c: &mut Self| {
            let ptr = |c: &mut Self, t| matches!(c.p.types.kind(t), Kind::Ptr { .. });
            ptr(c, ty) && ptr(c, to)
        };
        // Of two pointers the one that can do less is the type of both.
        if pointers(self)
            && self.subtype(ty, to) == Fit::No
            && matches!(self.subtype(to, ty), Fit::Same | Fit::Adjusted)
        {
            for (arm, from) in std::mem::take(&mut common.arms) {
                let (g, span) = (self.g(arm), self.value_span(arm));
                self.coerce(g, span, from, ty, NO_WHY);
                common.arms.push((arm, from));
            }
            common.ty = Some(ty);
        } else {
            let first = common.arms.first().map(|a| (self.value_span(a.0), "because of this branch"));
            self.coerce(g, span, ty, to, Why(first));
        }
        common.arms.push((e, ty));
    }

    fn while_expr(&mut self, e: ExprId, cond: ExprId, body: ExprId) -> Ty {
        let id = LoopId(self.p.loops.len() as u32);
        self.p.loops.push(Loop { parent: self.ctx.current_loop, ..Loop::default() });
        let g = self.g(e);
        self.p.loop_of.insert(g, id);
        let old = self.ctx.current_loop.replace(id);
        let bool = self.prim(Prim::Bool);
        self.operand_to(cond, bool, NO_WHY);
        self.scopes.push(FxHashMap::default());
        let span = self.ast()[e].span;
        let cont = self.p.types.cont(TypeTable::UNIT);
        for (name, is_break) in [("break", true), ("continue", false)] {
            let local = self.implicit(name, span, cont);
            self.p.locals[local.0 as usize].loop_cont = Some((id, is_break));
            let looped = &mut self.p.loops[id.0 as usize];
            *(if is_break { &mut looped.break_local } else { &mut looped.continue_local }) = Some(local);
        }
        self.expr_to(body, TypeTable::UNIT, NO_WHY);
        self.scopes.pop();
        self.ctx.current_loop = old;
        TypeTable::UNIT
    }
}

/// The common type of branches.
struct Common {
    ty: Option<Ty>,
    /// The context says which.
    fixed: bool,
    all_never: bool,
    /// Branches with a value so far, and their types.
    arms: Vec<(ExprId, Ty)>,
}
