//! Applications, lambdas, loops over generators, function bodies.

use super::collect::primitive;
use super::declarations::Declaration;
use super::*;
use crate::intrinsics::Intrinsic;
use nyala_syntax::ast::{ExprKind, For, Lambda, Param, Ret, TypeKind, UnaryOp};

impl<'a> Checker<'a, '_> {
    pub(super) fn call(&mut self, e: ExprId, callee: ExprId, args: &'a [ExprId], expected: Option<Ty>) -> Ty {
        let ast = self.ast();
        let callee_ty = self.callee(callee);
        self.note_leaving(e, callee);
        if self.p.types.is_never(callee_ty) {
            self.never_value(callee);
        }
        // A generic function argument stays generic only where one is expected: `Option::Some(id)`.
        if let Some(expected) = expected.filter(|t| self.p.types.has_generic(*t))
            && let Kind::Fn(params, result) = self.p.types.kind(callee_ty)
            && params.len() == args.len()
            && self.p.types.head(result) == self.p.types.head(expected)
        {
            self.p.types.unify(result, expected);
        }
        let hints = self.param_hints(callee_ty, args.len());
        let checked = self.args(args, &hints);
        let result = self.var();
        let g = self.g(e);
        let span = ast[e].span;
        self.apply(g, span, callee_ty, checked, result);
        if let ([arg], Some(Entity::Fn(id))) = (args, self.p.resolved.get(&self.g(callee)))
            && self.p.fns[id.0 as usize].kind == FnKind::Intrinsic(Intrinsic::PeKnown)
        {
            self.warn_known(*arg, span);
        }
        if self.ctx.in_filter && self.p.call_kind.get(&g) == Some(&CallKind::Call) && !self.is_allowed_in_filter(callee)
        {
            self.limitation(
                span,
                "calls of such functions in filters",
                "call only functions of the program that compute with numbers",
            );
            self.p.types.unify(result, TypeTable::ERROR);
            return TypeTable::ERROR;
        }
        self.p.types.shallow(result)
    }

    /// Whether a filter may call the function: functions of the program, whose bodies are substituted, and intrinsics
    /// without effects.
    fn is_allowed_in_filter(&self, callee: ExprId) -> bool {
        use crate::intrinsics::Intrinsic::*;
        match self.p.resolved.get(&self.g(callee)) {
            Some(Entity::Fn(id)) => match self.p.fns[id.0 as usize].kind {
                FnKind::Intrinsic(Math(_) | PeKnown | ChecksBounds | Sizeof | Alignof | IsFloat | Bitcast | Select) => {
                    true
                }
                FnKind::Intrinsic(_) => false,
                _ => self.p.fns[id.0 as usize].ast.body.is_some(),
            },
            _ => false,
        }
    }

    fn callee(&mut self, callee: ExprId) -> Ty {
        match &self.ast()[callee].kind {
            ExprKind::Path(path) => {
                let ty = self.path_expr(callee, path, true, None);
                let g = self.g(callee);
                self.p.expr_ty[g as usize] = ty;
                ty
            }
            ExprKind::Field { base, name, .. } => {
                let base_ty = self.operand(*base, None);
                let result = self.var();
                let (g, from) = (self.g(callee), self.asker());
                self.method(g, base_ty, name.clone(), result, from);
                self.p.expr_ty[g as usize] = result;
                self.p.types.shallow(result)
            }
            _ => self.expr(callee, None),
        }
    }

    /// Checks arguments, whose expected types are `hints`. A lambda without types for its parameters has those that the arguments
    /// before it determine: in `f(S { n: 0 }, |a, b| a + b)`, `a` is an `S`.
    fn args(&mut self, args: &'a [ExprId], hints: &[Ty]) -> Vec<Arg> {
        let mut checked: Vec<Arg> = Vec::with_capacity(args.len() + 1);
        for (i, &arg) in args.iter().enumerate() {
            if let ExprKind::Lambda(lambda) = &self.ast()[arg].kind
                && lambda.params.iter().any(|p| p.pattern.ty.is_none())
            {
                for (arg, &hint) in checked.iter().zip(hints) {
                    let hint = self.p.types.shallow(hint);
                    let is_open = self.p.types.as_var(hint).is_some_and(|var| self.p.types.class(var) == Class::Any);
                    if is_open && matches!(self.p.types.kind(arg.ty), Kind::Struct(..) | Kind::Enum(..)) {
                        self.p.types.unify(hint, arg.ty);
                    }
                }
            }
            let mut ty = self.expr(arg, hints.get(i).copied());
            if self.p.types.is_never(ty) {
                self.never_value(arg);
                ty = TypeTable::ERROR;
            }
            checked.push(self.arg(arg, ty));
        }
        checked
    }

    fn arg(&self, e: ExprId, ty: Ty) -> Arg {
        let lit = match &self.ast()[e].kind {
            ExprKind::Int { value, .. } => Some(*value),
            _ => None,
        };
        Arg { e: self.g(e), ty, span: self.value_span(e), lit }
    }

    /// The type that remains after all pointers are followed.
    pub(super) fn through_pointers(&mut self, mut ty: Ty) -> Ty {
        while let Kind::Ptr { to, .. } = self.p.types.kind(ty) {
            ty = to;
        }
        self.p.types.shallow(ty)
    }

    /// The expected types of `n` arguments of a value of type `callee`, as far as they are known.
    fn param_hints(&mut self, callee: Ty, n: usize) -> Vec<Ty> {
        let callee = self.through_pointers(callee);
        let Kind::Fn(params, result) = self.p.types.kind(callee) else { return Vec::new() };
        let never = self.p.types.is_never(result);
        let mut hints = params.to_vec();
        if n == params.len() + 1 && !never {
            hints.push(self.p.types.cont(result));
        } else if never && n == 1 && params.len() != 1 {
            hints = vec![self.p.types.tuple(&params)];
        }
        hints
    }

    /// Checks that `callee(args)` has type `result`.
    pub(super) fn apply(&mut self, e: GlobalExpr, span: Span, callee: Ty, args: Vec<Arg>, result: Ty) {
        let target = self.through_pointers(callee);
        let ty = match self.p.types.kind(target) {
            Kind::Var(var) => {
                self.wait(var, Pending::Call { e, span, callee, args, result });
                return;
            }
            Kind::Error => TypeTable::ERROR,
            Kind::Fn(params, r) => {
                self.p.call_kind.insert(e, CallKind::Call);
                self.apply_fn(e, span, target, &params, r, &args)
            }
            Kind::Array(elem, _) | Kind::Indef(elem) | Kind::Simd(elem, _) => {
                self.p.call_kind.insert(e, CallKind::Index);
                match args[..] {
                    [index] => {
                        self.p.types.make_number(index.ty);
                        let (ty, span) = (index.ty, index.span);
                        if index.lit.is_none() {
                            self.indexed(e);
                        }
                        let of = self.callee_expr(e);
                        self.unit.check_later(Final::Index { ty, span, of });
                        elem
                    }
                    _ => self.wrong_count(e, span, args.len(), "one index", target, 0),
                }
            }
            Kind::Tuple(parts) => {
                self.p.call_kind.insert(e, CallKind::Index);
                match args[..] {
                    [index] => {
                        let i32 = self.prim(Prim::I32);
                        if self.p.types.as_var(index.ty).is_some() {
                            self.p.types.unify(index.ty, i32);
                        }
                        match index.lit.and_then(|i| parts.get(usize::try_from(i).ok()?)) {
                            Some(&part) => part,
                            None => {
                                self.report(tuple_index::error(index.span, index.lit, parts.len()));
                                TypeTable::ERROR
                            }
                        }
                    }
                    _ => self.wrong_count(e, span, args.len(), "one index", target, 0),
                }
            }
            Kind::Generic(..) => {
                let Some(callee) = self.callee_expr(e) else { return };
                let (module, local) = self.locate(callee);
                let span_of_callee = self.p.modules[module][local].span;
                let ty = self.instantiate_value(callee, target, None, span_of_callee);
                return self.apply(e, span, ty, args, result);
            }
            Kind::Never => TypeTable::ERROR,
            Kind::Struct(..) | Kind::Enum(..) | Kind::Param(_)
                if let Some(ty) = self.index_by_trait(e, span, callee, target, &args) =>
            {
                ty
            }
            Kind::Const(_)
            | Kind::Operation(..)
            | Kind::Prim(_)
            | Kind::Struct(..)
            | Kind::Enum(..)
            | Kind::Ptr { .. }
            | Kind::Param(_)
            | Kind::Bound(..) => {
                let found = self.show(target);
                let callee = self.callee_span(e);
                let error = not_a_function::error(span, &found, callee);
                let error = self.note_hidden(self.callee_expr(e), error);
                self.report(error);
                TypeTable::ERROR
            }
        };
        // At the end of a body `!` fits any type, even if the type turns out to be `!` only now.
        if self.p.types.is_never(ty) && self.p.types.as_var(result).is_none() && self.unit.ends.contains(&e) {
            return;
        }
        self.unify(span, ty, result, NO_WHY);
    }

    /// Notes that the application `e` indexes an array with something other than a literal, which needs the array's
    /// address.
    fn indexed(&mut self, e: GlobalExpr) {
        let (module, local) = self.locate(e);
        if let ExprKind::Call { callee, .. } = &self.p.modules[module][local].kind {
            self.unit.check_later(Final::IndexAddress { module, e: *callee });
        }
    }

    /// The callee, or indexed array, of the application `e`.
    pub(super) fn callee_expr(&self, e: GlobalExpr) -> Option<GlobalExpr> {
        let (module, local) = self.locate(e);
        match &self.p.modules[module][local].kind {
            ExprKind::Call { callee, .. } => Some(self.p.global(module, *callee)),
            _ => None,
        }
    }

    /// The place of the callee of the application `e`.
    fn callee_span(&self, e: GlobalExpr) -> Option<Span> {
        let (module, local) = self.locate(e);
        match &self.p.modules[module][local].kind {
            ExprKind::Call { callee, .. } => Some(self.p.modules[module][*callee].span),
            _ => None,
        }
    }

    /// If the applied value is a local with the name of a function that is declared elsewhere: says so.
    pub(super) fn note_hidden(&mut self, callee: Option<GlobalExpr>, error: Diagnostic) -> Diagnostic {
        let hidden = callee.and_then(|callee| self.hidden(callee));
        match hidden {
            Some((local, name, function, of_prelude)) => {
                not_a_function::hides(error, local, name, (!of_prelude).then_some(function))
            }
            None => error,
        }
    }

    /// The place of the local that an expression is, its name, and the function that it hides; whether that is the prelude's.
    fn hidden(&mut self, e: GlobalExpr) -> Option<(Span, &'a str, Span, bool)> {
        let Some(&Entity::Local(id)) = self.p.resolved.get(&e) else { return None };
        let (module, local) = self.locate(e);
        let tree: &'a ast::Module = self.p.modules[module];
        let ExprKind::Path(path) = &tree[local].kind else { return None };
        let [name] = &path.names[..] else { return None };
        // Some errors are found after the body.
        let ns = self.namespaces.of_file(module);
        let Some(Entity::Fn(function)) = self.meaning_in(ns, &name.text) else { return None };
        let function = &self.p.fns[function.0 as usize];
        let of_prelude = function.module < self.p.n_prelude;
        Some((self.p.local(id).span, &name.text, function.ast.name.span, of_prelude))
    }

    /// The last `n_given` arguments are given otherwise: as the body of a loop.
    fn wrong_count(
        &mut self,
        e: GlobalExpr,
        span: Span,
        found: usize,
        expected: &str,
        callee: Ty,
        n_given: usize,
    ) -> Ty {
        let callee = self.show(callee);
        let declaration = self.declaration(e);
        let missing = |d: &Declaration| d.params.iter().rev().skip(n_given).rev().skip(found).cloned().collect();
        let missing = declaration.as_ref().map_or(Vec::new(), missing);
        let mut error = wrong_number_of_arguments::of_call(span, found, expected, missing);
        error = match declaration {
            Some(d) => wrong_number_of_arguments::declared(error, &d.signature, (!d.of_prelude).then_some(d.span)),
            None => error.hint(format!("the applied value has type `{callee}`")),
        };
        error = self.note_hidden(self.callee_expr(e), error);
        self.report(error);
        // Arguments that are missing determine no type arguments.
        let open = self.callee_expr(e).and_then(|callee| self.p.type_args.get(&callee)).cloned().unwrap_or_default();
        open.into_iter().for_each(|ty| self.p.types.poison(ty));
        TypeTable::ERROR
    }

    fn apply_fn(&mut self, e: GlobalExpr, span: Span, callee: Ty, params: &[Ty], result: Ty, args: &[Arg]) -> Ty {
        let never = self.p.types.is_never(result);
        if args.len() == params.len() {
            let reasons = self.param_reasons(e);
            for ((arg, to), why) in args.iter().zip(params).zip(reasons) {
                let n_found = self.sink.diagnostics.len();
                self.coerce(arg.e, arg.span, arg.ty, *to, why);
                if self.sink.diagnostics.len() > n_found {
                    if let Some(hint) = self.other_float(e, arg.ty)
                        && let Some(diagnostic) = self.sink.diagnostics.last_mut()
                    {
                        diagnostic.hints.insert(0, hint);
                    }
                    if let Some(error) = self.sink.diagnostics.pop() {
                        let error = self.note_hidden(self.callee_expr(e), error);
                        self.sink.diagnostics.push(error);
                    }
                }
            }
            return result;
        }
        let last = args.last().map_or(TypeTable::ERROR, |a| a.ty);
        let may_be_cont = match self.p.types.kind(last) {
            Kind::Var(var) => self.p.types.class(var) == Class::Any,
            kind => matches!(kind, Kind::Fn(..) | Kind::Error),
        };
        if !never && args.len() == params.len() + 1 && may_be_cont {
            let cont = self.p.types.cont(result);
            let reasons = self.param_reasons(e);
            for ((arg, to), why) in args.iter().zip(params.iter().chain([&cont])).zip(reasons) {
                self.coerce(arg.e, arg.span, arg.ty, *to, why);
            }
            return TypeTable::NEVER;
        }
        if let (true, [arg]) = (never, args) {
            // A continuation that takes several arguments also accepts them as one tuple.
            let to = self.p.types.tuple(params);
            let is_tuple = match self.p.types.kind(arg.ty) {
                Kind::Var(var) => self.p.types.class(var) == Class::Any,
                kind => matches!(kind, Kind::Tuple(_) | Kind::Error),
            };
            if is_tuple {
                self.coerce(arg.e, arg.span, arg.ty, to, NO_WHY);
                return TypeTable::NEVER;
            }
        }
        if let (true, [param]) = (never, params)
            && self.p.types.as_var(*param).is_some()
        {
            let tys: Vec<Ty> = args.iter().map(|a| a.ty).collect();
            let tuple = self.p.types.tuple(&tys);
            self.unify(span, tuple, *param, NO_WHY);
            return TypeTable::NEVER;
        }
        let expected = params.len().to_string();
        self.wrong_count(e, span, args.len(), &expected, callee, 0);
        if never { TypeTable::NEVER } else { result }
    }

    /// Mathematical functions of the prelude are for `f64`, and with an `f` at the end for `f32`: names the one for this type.
    fn other_float(&self, call: GlobalExpr, ty: Ty) -> Option<String> {
        let Some(Entity::Fn(id)) = self.p.resolved.get(&self.callee_expr(call)?) else { return None };
        let info = &self.p.fns[id.0 as usize];
        let name = &*info.ast.name.text;
        let (other, prim) = match self.p.types.as_prim(ty)? {
            Prim::F32 => (format!("{name}f"), "f32"),
            Prim::F64 => (name.strip_suffix('f')?.to_string(), "f64"),
            _ => return None,
        };
        let is_there = info.module < self.p.n_prelude && self.namespaces[PRELUDE].names.contains_key(&*other);
        is_there.then(|| format!("`{other}` is the function for `{prim}`"))
    }

    // Fields and pointers.

    pub(super) fn field_of(&mut self, e: GlobalExpr, span: Span, base: Ty, name: Name, result: Ty, from: Asker) {
        let target = self.through_pointers(base);
        let ty = match self.p.types.kind(target) {
            Kind::Var(var) => {
                self.wait(var, Pending::Field { e, span, base, name, result, from });
                return;
            }
            Kind::Struct(id, args) => match self.p.structs[id.0 as usize].index.get(&*name.text) {
                Some(&idx) => {
                    self.check_field_access(id, idx, span, from.ns);
                    let info = &self.p.structs[id.0 as usize];
                    let (ty, generics) = (info.fields[idx as usize].1, info.generics.clone());
                    self.p.field_idx.insert(e, idx);
                    self.p.types.instantiate(ty, &generics, &args)
                }
                None => {
                    if !self.names_open(span) {
                        self.no_such_field(id, &name);
                    }
                    TypeTable::ERROR
                }
            },
            Kind::Error | Kind::Never => TypeTable::ERROR,
            _ => {
                if !self.names_open(span) {
                    let shown = self.show(target);
                    self.report(no_such_field::of_other(span, &shown, &short(&name.text)));
                }
                TypeTable::ERROR
            }
        };
        self.unify(span, ty, result, NO_WHY);
    }

    pub(super) fn deref(&mut self, span: Span, base: Ty, result: Ty) {
        let ty = match self.p.types.kind(base) {
            Kind::Var(var) => {
                self.wait(var, Pending::Deref { span, base, result });
                return;
            }
            Kind::Ptr { to, .. } => to,
            Kind::Error | Kind::Never => TypeTable::ERROR,
            _ => {
                let found = self.show(base);
                self.report(not_a_pointer::error(span, &found));
                TypeTable::ERROR
            }
        };
        self.unify(span, ty, result, NO_WHY);
    }

    // Functions.

    /// Starts the body of a function. Returns the context to restore.
    fn enter(&mut self, function: Option<FnId>) -> Context {
        let function = function.or(self.ctx.function);
        let owner = self.bodies.add(function, self.ctx.owner);
        let new = Context { owner, current_loop: None, function, ..self.ctx };
        self.scopes.open();
        std::mem::replace(&mut self.ctx, new)
    }

    fn leave(&mut self, old: Context) {
        self.scopes.close();
        self.ctx = old;
    }

    pub(super) fn check_fn(&mut self, id: FnId) {
        let info = &self.p.fns[id.0 as usize];
        let (f, tys, result, never) = (info.ast, info.param_tys.clone(), info.result, info.never);
        let (generics, n_outer, owner, ns, top_level) =
            (info.generics.clone(), info.n_outer, info.owner, info.ns, info.top_level);
        let Some(body) = f.body else { return };
        let old_ns = std::mem::replace(&mut self.at.ns, ns);
        let is_method = owner != FnOwner::None;
        let old_generics = self.enter_generics(&generics, if top_level || is_method { 0 } else { n_outer });
        if let FnOwner::Impl(id) = owner {
            self.scopes.insert("Self", Entity::Type(self.p.impls[id.0 as usize].ty));
        }
        let old = self.enter(Some(id));
        if is_method {
            self.ctx.method_floor = Some(self.ctx.owner);
        }
        self.bodies.note_fn(id, self.ctx.owner);
        self.bind_params(&f.params, &tys);
        if !never {
            let cont = self.p.types.cont(result);
            let local = self.implicit("return", f.name.span, cont);
            self.p.fns[id.0 as usize].return_local = Some(local);
        }
        self.filter(&f.filter);
        f.params.iter().for_each(|p| self.filter(&p.filter));
        let why = match f.result {
            Ret::Type(ty) => Why(Some((self.ast()[ty].span, "because of the result type"))),
            Ret::Never(span) => Why(Some((span, "because of the result type"))),
            Ret::Absent => NO_WHY,
        };
        let return_local = self.p.fns[id.0 as usize].return_local;
        self.body(body, result, never, tys.last().copied(), return_local, why);
        self.leave(old);
        self.leave_generics(old_generics);
        self.at.ns = old_ns;
        self.solve();
    }

    /// Checks a body with this result type. If there is no result, the value goes to the last parameter, a
    /// continuation.
    fn body(&mut self, e: ExprId, result: Ty, never: bool, last: Option<Ty>, return_local: Option<LocalId>, why: Why) {
        if !never {
            let ty = self.expr(e, Some(result));
            if self.p.types.is_never(ty) {
                let used = return_local.is_some_and(|r| self.p.local(r).used);
                if self.p.types.as_var(result).is_some() && !used {
                    self.p.types.unify(result, TypeTable::NEVER);
                }
                return;
            }
            if self.p.types.as_var(ty).is_some() {
                self.note_ends(e);
            }
            let (g, span) = (self.g(e), self.value_span(e));
            self.coerce(g, span, ty, result, why);
            return;
        }
        let to = match last.map(|t| self.p.types.kind(t)) {
            Some(Kind::Fn(params, r)) if self.p.types.is_never(r) => Some(self.p.types.tuple(&params)),
            _ => None,
        };
        let ty = self.expr(e, to);
        if self.p.types.is_never(ty) {
            return;
        }
        let (g, span) = (self.g(e), self.value_span(e));
        match to {
            Some(to) => self.coerce(g, span, ty, to, why),
            None => self.coerce(g, span, ty, TypeTable::NEVER, why),
        }
    }

    /// Notes the calls whose value is the value of the body `e`.
    fn note_ends(&mut self, e: ExprId) {
        let ast = self.ast();
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            match &ast[e].kind {
                ExprKind::Block(ast::Block { result, .. }) => work.extend(*result),
                ExprKind::If { arms, otherwise } => work.extend(arms.iter().map(|a| a.1).chain(*otherwise)),
                ExprKind::Match { arms, .. } => work.extend(arms.iter().map(|a| a.body)),
                ExprKind::Call { .. } => {
                    self.unit.ends.insert(self.g(e));
                }
                _ => {}
            }
        }
    }

    pub(super) fn lambda(&mut self, e: ExprId, lambda: &'a Lambda, expected: Option<Ty>) -> Ty {
        if self.ctx.in_filter {
            self.limitation(self.ast()[e].span, "lambdas in filters", "write the condition itself");
            return TypeTable::ERROR;
        }
        if let Some(ty) = expected
            && let Kind::Generic(bounds, _) = self.p.types.kind(ty)
        {
            let generics = self.skolems(bounds.len());
            let args: Vec<Ty> = generics.iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
            let (bounds, body) = self.p.types.open(ty, &args);
            for (param, bounds) in generics.iter().zip(bounds) {
                self.p.type_params[param.0 as usize].bounds = bounds;
            }
            let before = self.sink.diagnostics.len();
            let own = self.lambda(e, lambda, Some(body));
            let fits = self.subtype_inside(own, body);
            let (g, span) = (self.g(e), self.ast()[e].span);
            if fits == Fit::No && self.sink.diagnostics.len() == before {
                self.mismatch(span, own, body, NO_WHY);
            }
            if let Some(info) = self.p.lambdas.get_mut(&g) {
                info.generics = generics;
            }
            return ty;
        }
        let n = lambda.params.len();
        let mut never = matches!(lambda.result, Ret::Never(_));
        let absent = matches!(lambda.result, Ret::Absent);
        // The types of parameters and result, as far as the context determines them.
        let mut hints: Vec<Ty> = Vec::new();
        let mut result_hint = None;
        let mut expected = expected;
        while let Some(Kind::Ptr { to, .. }) = expected.map(|t| self.p.types.kind(t)) {
            expected = Some(to);
        }
        if let Some(Kind::Fn(params, r)) = expected.map(|t| self.p.types.kind(t)) {
            let r_never = self.p.types.is_never(r);
            // The last parameter may be the return continuation, unless it is plainly something else.
            let last = lambda.params.last().and_then(|p| p.pattern.ty).map(|ty| &self.ast()[ty].kind);
            let may_return = match last {
                None | Some(TypeKind::Fn { .. } | TypeKind::Typeof(_)) => true,
                Some(TypeKind::Path(path)) => primitive(&path.names[0].text).is_none(),
                Some(_) => false,
            };
            if n == params.len() + 1 && may_return && !r_never && (never || absent) {
                hints = params.to_vec();
                hints.push(self.p.types.cont(r));
                never = true;
            } else if n == params.len() {
                hints = params.to_vec();
                if absent {
                    never = r_never;
                    result_hint = (!r_never).then_some(r);
                }
            } else if r_never && n == 1 {
                hints = vec![self.p.types.tuple(&params)];
                never |= absent;
            }
        }
        let mut tys = Vec::with_capacity(n);
        let outer_params = std::mem::take(&mut self.signature.params);
        for (i, param) in lambda.params.iter().enumerate() {
            let stated = self.pattern_ty(&param.pattern);
            self.signature.params.push((&param.pattern, stated));
            if let Some(&hint) = hints.get(i)
                && !self.p.types.unify(stated, hint)
            {
                // A subtype suffices, which the check of the whole type decides.
                self.p.types.shallow(stated);
            }
            self.unit.check_later(Final::Value { ty: stated, span: param.span });
            tys.push(stated);
        }
        let result = match lambda.result {
            Ret::Type(ty) => self.value_ty(ty),
            _ if never => TypeTable::NEVER,
            _ => result_hint.unwrap_or_else(|| self.var()),
        };
        self.signature.params = outer_params;
        let why = match lambda.result {
            Ret::Type(ty) => Why(Some((self.ast()[ty].span, "because of the result type"))),
            Ret::Never(span) => Why(Some((span, "because of the result type"))),
            Ret::Absent => NO_WHY,
        };
        let old = self.enter(None);
        let g = self.g(e);
        self.bodies.note_lambda(g, self.ctx.owner);
        self.bind_params(&lambda.params, &tys);
        let span = self.ast()[e].span;
        let return_local = (!never).then(|| {
            let cont = self.p.types.cont(result);
            self.implicit("return", span, cont)
        });
        self.filters_of(&lambda.filter, &lambda.params);
        self.body(lambda.body, result, never, tys.last().copied(), return_local, why);
        self.leave(old);
        let ty = self.p.types.func(&tys, result);
        let g = self.g(e);
        let info = LambdaInfo { ty, param_tys: tys, return_local, break_local: None, generics: Vec::new() };
        self.p.lambdas.insert(g, info);
        ty
    }

    fn filters_of(&mut self, filter: &ast::Filter, params: &[Param]) {
        self.filter(filter);
        params.iter().for_each(|p| self.filter(&p.filter));
    }

    pub(super) fn for_expr(&mut self, e: ExprId, looped: &'a For) -> Ty {
        let ast = self.ast();
        let span = ast[e].span;
        let mut call = looped.call;
        while let ExprKind::Unary(UnaryOp::Unfold | UnaryOp::Run | UnaryOp::Halt, inner) = &ast[call].kind {
            call = *inner;
        }
        let ExprKind::Call { callee, args } = &ast[call].kind else {
            let broken = matches!(ast[call].kind, ExprKind::Error);
            if !broken {
                self.report(not_a_generator::error(ast[call].span));
            }
            self.expr(call, None);
            return TypeTable::ERROR;
        };
        let callee_ty = self.callee(*callee);
        let hints = self.param_hints(callee_ty, args.len() + 1);
        let mut checked = self.args(args, &hints);
        // The expected type of the body, and the generator's result type.
        let target = self.through_pointers(callee_ty);
        let mut mismatched = false;
        let (hint, result) = match self.p.types.kind(target) {
            Kind::Fn(params, r) if params.len() == args.len() + 1 => (params.last().copied(), r),
            Kind::Fn(params, _) => {
                let expected = format!("{} and the body", params.len().saturating_sub(1));
                self.wrong_count(self.g(call), ast[call].span, args.len(), &expected, target, 1);
                (None, TypeTable::ERROR)
            }
            Kind::Error => (None, TypeTable::ERROR),
            Kind::Var(_) => (None, self.var()),
            _ => {
                let found = self.show(target);
                let error = not_a_generator::no_function(ast[*callee].span, &found);
                let error = self.note_hidden(Some(self.g(*callee)), error);
                self.report(error);
                (None, TypeTable::ERROR)
            }
        };
        let mut tys = Vec::with_capacity(looped.params.len());
        let mut body_result = self.var();
        let mut never = false;
        let hint_kind = hint.map(|t| self.p.types.kind(t));
        let known = match hint_kind {
            Some(Kind::Fn(params, r)) => {
                if params.len() != looped.params.len() && !(looped.params.len() == 1 && self.p.types.is_never(r)) {
                    let (found, expected) = (looped.params.len(), params.len());
                    let span = looped.params.first().map_or(ast[call].span, |p| p.span);
                    let mut error = wrong_number_of_arguments::loop_variables(span, found, expected);
                    if let Some(d) = self.declaration(self.g(call)) {
                        let declared = (!d.of_prelude).then_some(d.span);
                        error = wrong_number_of_arguments::declared(error, &d.signature, declared);
                    }
                    self.report(error);
                    mismatched = true;
                    None
                } else {
                    body_result = r;
                    never = self.p.types.is_never(r);
                    Some(params)
                }
            }
            Some(Kind::Prim(_) | Kind::Tuple(_) | Kind::Array(..) | Kind::Struct(..) | Kind::Enum(..)) => {
                let found = hint.map(|t| self.show(t)).unwrap_or_default();
                self.report(not_a_generator::no_body(ast[call].span, &found));
                mismatched = true;
                None
            }
            _ => None,
        };
        let poisoned = mismatched || known.is_none() && self.p.types.is_error(result);
        for (i, param) in looped.params.iter().enumerate() {
            let ty = self.pattern_ty(&param.pattern);
            match known.as_ref().and_then(|k| k.get(i)) {
                Some(&hint) => {
                    self.unify(param.span, ty, hint, NO_WHY);
                }
                None if poisoned => self.p.types.poison(ty),
                None => {}
            }
            tys.push(ty);
        }
        if poisoned {
            self.p.types.unify(body_result, TypeTable::ERROR);
        }
        let break_ty = self.p.types.cont(result);
        let old = self.enter(None);
        self.bind_params(&looped.params, &tys);
        let cont = if never { TypeTable::NEVER } else { self.p.types.cont(body_result) };
        let mut info = LambdaInfo {
            ty: TypeTable::ERROR,
            param_tys: tys.clone(),
            return_local: None,
            break_local: None,
            generics: Vec::new(),
        };
        if looped.with {
            info.return_local = (!never).then(|| self.implicit("break", span, cont));
        } else {
            let id = self.implicit("break", span, break_ty);
            // The `break` belongs to the function around the loop.
            self.p.locals[id.0 as usize].owner = old.owner;
            info.break_local = Some(id);
            info.return_local = (!never).then(|| self.implicit("continue", span, cont));
        }
        self.filters_of(&looped.filter, &looped.params);
        self.body(looped.body, body_result, never, tys.last().copied(), info.return_local, NO_WHY);
        self.leave(old);
        let ty = self.p.types.func(&tys, body_result);
        info.ty = ty;
        let g = self.g(e);
        self.p.lambdas.insert(g, info);
        if poisoned {
            return TypeTable::ERROR;
        }
        // The call itself has no value, so that the adjustment of the body as an argument is kept with it.
        let (call_g, call_span) = (self.g(call), ast[call].span);
        checked.push(Arg { e: call_g, ty, span, lit: None });
        let call_result = self.var();
        self.apply(call_g, call_span, callee_ty, checked, call_result);
        self.p.types.unify(call_result, result);
        self.p.types.shallow(result)
    }
}
