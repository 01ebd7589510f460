//! The order in which bodies are checked, and the checks that are made when all types are known.

use super::*;
use nyala_syntax::ast::{ExprKind, Ret, UnaryOp};

impl<'a> Checker<'a, '_> {
    /// Checks all bodies. Statics and functions with inferred types come first, as one unit, because other bodies use
    /// their types.
    pub(super) fn check_all(&mut self) {
        let n_fns = self.p.fns.len();
        let n_statics = self.p.statics.len();
        for id in 0..n_statics {
            self.at = At { module: self.p.statics[id].module, ns: self.p.statics[id].ns };
            self.check_static(StaticId(id as u32));
        }
        let inferred = |f: &FnInfo| matches!(f.ast.result, Ret::Absent) && f.ast.body.is_some();
        for id in 0..n_fns {
            if inferred(&self.p.fns[id]) {
                self.at.module = self.p.fns[id].module;
                self.check_fn(FnId(id as u32));
            }
        }
        self.finalize();
        for id in 0..n_fns {
            if !inferred(&self.p.fns[id]) {
                self.at.module = self.p.fns[id].module;
                self.check_fn(FnId(id as u32));
                self.finalize();
            }
        }
        self.check_order();
        self.check_static_cycles();
    }

    pub(super) fn check_static(&mut self, id: StaticId) {
        let info = &self.p.statics[id.0 as usize];
        let (ast, ty) = (info.ast, info.ty);
        let Some(init) = ast.init else { return };
        let old = self.ctx;
        let body = self.bodies.add_initializer();
        self.ctx = Context { owner: body, current_loop: None, function: None, static_floor: Some(body), ..old };
        let why = match ast.ty {
            Some(ty) => Why(Some((self.ast()[ty].span, "because of this type"))),
            None => NO_WHY,
        };
        let ty = self.expr_to(init, ty, why);
        if self.p.types.is_never(ty) {
            self.never_value(init);
        }
        self.check_initializer(id, init);
        self.ctx = old;
        self.solve();
    }

    /// Checks that an initializer is a constant, or computed from constants.
    fn check_initializer(&mut self, of: StaticId, root: ExprId) {
        let ast = self.ast();
        let mut computed = false;
        let mut work = vec![root];
        while let Some(e) = work.pop() {
            let node = &ast[e];
            let fault = match &node.kind {
                ExprKind::Error
                | ExprKind::Int { .. }
                | ExprKind::Float { .. }
                | ExprKind::Bool(_)
                | ExprKind::Char(_)
                | ExprKind::Str(_)
                | ExprKind::DynArray(..) => None,
                // The bodies of lambdas run later. Names that they may not use are reported where they are resolved.
                ExprKind::Lambda(_) => None,
                ExprKind::Path(path) => match self.p.resolved.get(&self.g(e)) {
                    // A local has been reported where the name was resolved.
                    Some(Entity::Local(_)) => None,
                    Some(Entity::Static(id)) if self.p.statics[id.0 as usize].ast.mutable => {
                        Some((path.span, "a `static mut` is no constant"))
                    }
                    Some(Entity::Static(id)) => {
                        self.uses.statics.push((of, *id, path.span));
                        None
                    }
                    _ => None,
                },
                ExprKind::AddrOf { place, .. } => {
                    // The address of a static, or of a part of it, is constant whatever the contents are.
                    let (base, indices) = self.part_of_variable(*place);
                    work.extend(indices);
                    let is_static = matches!(self.p.resolved.get(&self.g(base)), Some(Entity::Static(_)));
                    if !is_static {
                        work.push(base);
                    }
                    None
                }
                ExprKind::Call { callee, args } => match self.p.call_kind.get(&self.g(e)) {
                    Some(CallKind::Index) => {
                        work.push(*callee);
                        work.extend(args);
                        None
                    }
                    _ if self.is_constant_function(*callee) => {
                        work.extend(args);
                        None
                    }
                    _ => {
                        computed = true;
                        node.kind.each_child(|c| work.push(c));
                        None
                    }
                },
                ExprKind::Block(block) if block.stmts.is_empty() => {
                    work.extend(block.result);
                    None
                }
                kind => {
                    computed |= self.is_overloaded(e);
                    computed |= matches!(
                        kind,
                        ExprKind::Unary(UnaryOp::Unfold | UnaryOp::Run, _)
                            | ExprKind::Block(_)
                            | ExprKind::If { .. }
                            | ExprKind::While { .. }
                            | ExprKind::For(_)
                            | ExprKind::Match { .. }
                            | ExprKind::Assign { .. }
                            | ExprKind::IncDec { .. }
                    );
                    kind.each_child(|c| work.push(c));
                    None
                }
            };
            if let Some((span, text)) = fault {
                self.report(not_constant::error(span, text));
                return;
            }
        }
        self.p.statics[of.0 as usize].computed = computed;
    }

    /// The variable that the place `e` is a part of, without pointers in between, and the indices on the way.
    fn part_of_variable(&mut self, mut e: ExprId) -> (ExprId, Vec<ExprId>) {
        let mut indices = Vec::new();
        loop {
            let base = match &self.ast()[e].kind {
                ExprKind::Field { base, .. } => *base,
                ExprKind::Call { callee, args } if self.p.call_kind.get(&self.g(e)) == Some(&CallKind::Index) => {
                    indices.extend(args);
                    *callee
                }
                _ => return (e, indices),
            };
            if matches!(self.p.types.kind(self.p.expr_ty[self.g(base) as usize]), Kind::Ptr { .. }) {
                return (e, indices);
            }
            e = base;
        }
    }

    fn is_constant_function(&self, callee: ExprId) -> bool {
        match self.p.resolved.get(&self.g(callee)) {
            Some(Entity::Error | Entity::Option(..)) | None => true,
            Some(Entity::Fn(id)) => matches!(self.p.fns[id.0 as usize].kind, FnKind::Intrinsic(_)),
            _ => false,
        }
    }

    /// Ends a unit of inference: applies defaults, then reports types that are still open.
    pub(super) fn finalize(&mut self) {
        self.solve();
        // Constraints that still wait get the simplest assumption, one after the other.
        let mut round = 0;
        while self.unit.is_waiting() && round < 3 {
            for number in self.unit.numbers() {
                let Some(pending) = self.unit.waiting(number) else { continue };
                match (round, pending) {
                    (0, Pending::Deref { base, result, .. }) => {
                        let (base, result) = (*base, *result);
                        if self.open_result(base).is_some() {
                            continue;
                        }
                        let ptr = self.p.types.ptr(Access::Shared, result);
                        self.p.types.unify(base, ptr);
                    }
                    (1, Pending::Coerce { from, to, .. }) => {
                        let (from, to) = (*from, *to);
                        self.p.types.unify(from, to);
                    }
                    (1, Pending::Bound { span, ty, of }) => {
                        let (span, ty, of) = (*span, *ty, of.clone());
                        if matches!(self.meets(ty, &of), Meets::By(_)) {
                            self.unit.take(number);
                            self.settle_bound(span, ty, of);
                        }
                    }
                    (2, Pending::Compare { result, .. }) => {
                        let (result, bool) = (*result, self.prim(Prim::Bool));
                        self.p.types.unify(result, bool);
                    }
                    (2, _) => {}
                    _ => continue,
                }
                self.solve();
            }
            if round == 1 {
                self.default_literals();
            }
            round += 1;
        }
        self.default_literals();
        self.solve();
        self.report_open_locals();
        for number in self.unit.numbers() {
            match self.unit.take(number) {
                None => {}
                Some(Pending::Coerce { e, span, from, to, why }) => {
                    self.p.types.unify(from, to);
                    self.coerce(e, span, from, to, why);
                }
                Some(Pending::Field { span, base, result, .. } | Pending::Deref { span, base, result }) => {
                    self.ambiguous(span, base, "this");
                    self.p.types.unify(result, TypeTable::ERROR);
                }
                // The pointer on the way has been reported.
                Some(Pending::Address { result, .. }) => self.p.types.poison(result),
                Some(Pending::Method { base, name, result, .. }) => {
                    self.ambiguous(name.span, base, "the value of this method");
                    self.p.types.unify(result, TypeTable::ERROR);
                }
                Some(Pending::Bound { span, ty, of }) => self.last_bound(span, ty, of),
                Some(Pending::Compare { span, ty, result, .. }) => {
                    self.ambiguous(span, ty, "this operand");
                    self.p.types.unify(result, TypeTable::ERROR);
                }
                Some(Pending::Operator { e, left, right, result }) => {
                    let (module, local) = self.locate(e);
                    let span = self.p.modules[module][local].span;
                    let open = right.filter(|_| !self.p.types.has_open_var(left)).unwrap_or(left);
                    self.ambiguous(span, open, "this operand");
                    self.p.types.unify(result, TypeTable::ERROR);
                }
                Some(Pending::Call { span, callee, result, .. }) => {
                    self.ambiguous(span, callee, "what is called");
                    self.p.types.unify(result, TypeTable::ERROR);
                }
            }
        }
        self.solve();
        self.unit.end_constraints();
        self.p.types.ready.clear();
        let module = self.at.module;
        let mut checks = self.unit.take_checks();
        for check in checks.drain(..) {
            self.final_check(check);
        }
        self.at.module = module;
        self.unit.begin_next(checks, self.p.locals.len(), self.p.types.n_vars());
    }

    fn default_literals(&mut self) {
        for check in 0..self.unit.n_checks() {
            if let Some(ty) = self.unit.defaulted(check) {
                self.default_class(ty);
            }
        }
        for i in self.unit.first_local..self.p.locals.len() {
            self.default_class(self.p.locals[i].ty);
        }
        // All other open variables that must be numbers get default types.
        self.default_vars();
        self.solve();
    }

    fn default_class(&mut self, ty: Ty) {
        let Some(var) = self.p.types.as_var(ty) else { return };
        let prim = match self.p.types.class(var) {
            Class::Any => return,
            Class::Num | Class::Int | Class::Integral => Prim::I32,
            Class::Float => Prim::F64,
        };
        let prim = self.prim(prim);
        self.p.types.unify(ty, prim);
    }

    fn default_vars(&mut self) {
        for var in self.unit.first_var..self.p.types.n_vars() {
            if let Some(ty) = self.p.types.open_var(var) {
                self.default_class(ty);
            }
        }
    }

    fn ambiguous(&mut self, span: Span, ty: Ty, what: &str) {
        if !self.p.types.has_open_var(ty) {
            return;
        }
        let found = self.show(ty);
        self.report(ambiguous_type::error(span, what, &found));
        self.p.types.poison(ty);
    }

    fn report_open_locals(&mut self) {
        for i in self.unit.first_local..self.p.locals.len() {
            let (ty, span) = (self.p.locals[i].ty, self.p.locals[i].span);
            if self.p.types.has_open_var(ty) {
                let local = &self.p.locals[i];
                let what = match &*local.name {
                    "break" | "continue" | "return" => {
                        self.p.types.poison(ty);
                        continue;
                    }
                    name => format!("`{}`", short(name)),
                };
                self.ambiguous(span, ty, &what);
            }
        }
    }

    /// Settles a bound that is still undecided.
    fn last_bound(&mut self, span: Span, ty: Ty, of: TraitRef) {
        if self.p.types.has_open_var(ty) {
            return self.ambiguous(span, ty, "the type argument of this call");
        }
        let open = of.args.iter().copied().find(|a| self.p.types.has_open_var(*a));
        match open {
            Some(arg) => {
                let bound = self.show_bound(&of);
                self.ambiguous(span, arg, &format!("`{bound}` here"));
            }
            None => self.require(span, ty, of),
        }
    }

    fn final_check(&mut self, check: Final<'a>) {
        match check {
            Final::Literal { value, negative, ty, span } => self.final_literal(value, negative, ty, span),
            Final::Cast { from, to, span } => self.final_cast(from, to, span),
            Final::Operand { op, want, ty, span } => self.final_operand(op, want, ty, span, None),
            Final::Index { ty, span, of } => self.final_operand("an index", Want::Integer, ty, span, of),
            Final::Value { ty, span } => self.final_sized(ty, span),
            Final::Known { ty, span, what } => {
                self.ambiguous(span, ty, what);
                self.final_sized(ty, span);
            }
            Final::Equal { a, b, span } => self.final_equal(a, b, span),
            Final::ConstArg { value, param, span } => self.final_const_arg(value, param, span),
            Final::Place { module, e, need, loops, span } => self.final_place(module, e, need, loops, span),
            Final::AutoAddress { module, e } => self.final_address(module, e),
            Final::Match { module, e, ty } => self.final_match(module, e, ty),
            Final::Irrefutable { module, pattern, ty } => self.final_irrefutable(module, pattern, ty),
            Final::IndexAddress { module, e } => {
                let ty = self.p.expr_ty[self.p.global(module, e) as usize];
                if !matches!(self.p.types.kind(ty), Kind::Ptr { .. }) {
                    self.final_address(module, e);
                }
            }
        }
    }

    fn final_sized(&mut self, ty: Ty, span: Span) {
        if let Kind::Indef(_) = self.p.types.kind(ty) {
            let found = self.show(ty);
            self.report(indefinite_array::error(span, &found));
        }
    }

    fn final_literal(&mut self, value: u128, negative: bool, ty: Ty, span: Span) {
        let Some(prim) = self.p.types.as_prim(ty) else { return };
        if !prim.is_int() {
            return;
        }
        let bits = prim.bits();
        let max = if negative && !prim.is_signed() {
            0
        } else if prim.is_signed() {
            (1u128 << (bits - 1)) - u128::from(!negative)
        } else {
            (1u128 << bits) - 1
        };
        if value > max {
            let literal = format!("{}{value}", if negative { "-" } else { "" });
            let wider = match value {
                0..=0x7fff => Some("i16"),
                0x8000..=0x7fff_ffff => Some("i32"),
                0x8000_0000..=0x7fff_ffff_ffff_ffff => Some("i64"),
                _ if value < 1 << 64 && !negative => Some("u64"),
                _ => None,
            };
            self.report(literal_out_of_range::error(span, &literal, prim.name(), wider));
        }
    }

    fn final_cast(&mut self, from: Ty, to: Ty, span: Span) {
        let number = |c: &mut Self, t: Ty| match c.p.types.kind(t) {
            Kind::Prim(_) => true,
            Kind::Param(p) => c.has_lang(p, &[Lang::Num, Lang::Int, Lang::Float]),
            _ => false,
        };
        let int = |c: &Self, t: Ty| c.p.types.as_prim(t).is_some_and(Prim::is_int);
        let (a, b) = (self.p.types.kind(from), self.p.types.kind(to));
        let ok = match (&a, &b) {
            (Kind::Simd(x, n), Kind::Simd(y, m)) if self.p.types.unify(*n, *m) => number(self, *x) && number(self, *y),
            (Kind::Error, _) | (_, Kind::Error) => true,
            _ if number(self, from) && number(self, to) => true,
            (Kind::Ptr { .. }, Kind::Ptr { .. }) => true,
            (Kind::Ptr { .. }, _) if int(self, to) => true,
            (_, Kind::Ptr { .. }) if int(self, from) => true,
            _ => matches!(self.subtype(from, to), Fit::Same | Fit::Adjusted),
        };
        if !ok {
            let (from, to) = (self.show(from), self.show(to));
            self.report(bad_cast::error(span, &from, &to));
        }
    }

    /// `of`: the array, of an index.
    fn final_operand(&mut self, op: &'static str, want: Want, ty: Ty, span: Span, of: Option<GlobalExpr>) {
        let mut kind = self.p.types.kind(ty);
        if let Kind::Simd(elem, _) = kind
            && !matches!(op, "an index" | "a length" | "`simd`")
        {
            kind = self.p.types.kind(elem);
        }
        let prim = if let Kind::Prim(p) = kind { Some(p) } else { None };
        use Lang::*;
        let ok = match want {
            _ if kind == Kind::Error => true,
            Want::Lane => prim.is_some() || matches!(kind, Kind::Param(_)),
            Want::Register => prim.is_some() || matches!(kind, Kind::Ptr { .. }),
            _ if let Kind::Param(p) = kind => {
                let langs: &[Lang] = match want {
                    Want::Number => &[Num, Int, Float],
                    Want::Comparable => &[Ord, Num, Int, Float],
                    _ => &[Int],
                };
                self.has_lang(p, langs)
            }
            Want::Number => prim.is_some_and(|p| p != Prim::Bool),
            Want::Integer => prim.is_some_and(Prim::is_int),
            Want::IntegerOrBool => prim.is_some_and(|p| !p.is_float()),
            Want::Comparable => prim.is_some() || matches!(kind, Kind::Ptr { .. }),
        };
        if ok {
            return;
        }
        if let Kind::Var(_) = kind {
            self.ambiguous(span, ty, "this operand");
            return;
        }
        let expected = match want {
            Want::Number => "a number",
            Want::Integer => "an integer",
            Want::IntegerOrBool => "an integer or `bool`",
            Want::Comparable => "a number, `bool` or pointer",
            Want::Lane => "a number or `bool`",
            Want::Register => "a number, `bool` or pointer",
        };
        let found = self.show(ty);
        let bound;
        let hint = match kind {
            Kind::Param(_) => {
                let name = match want {
                    Want::Number => "Num",
                    Want::Comparable => "Ord",
                    _ => "Int",
                };
                bound = format!("operators on a type parameter need a bound: `{}: {name}`", self.show(ty));
                &bound
            }
            _ if prim == Some(Prim::Bool) => "convert it with `as i32`; `&&`, `||` and `!` are for `bool`",
            _ if op == "^" && prim.is_some_and(Prim::is_float) => {
                "`^` is exclusive or; powers are `powf(x, y)`, `pow(x, y)` for `f64`, or `x * x`"
            }
            _ if prim.is_some() => "convert it with `as i32`",
            Kind::Enum(..) => "look at it with `match`",
            Kind::Ptr { .. } => "`*p` is what the pointer points to",
            Kind::Fn(..) => "call it: `f(…)`",
            Kind::Array(..) => "arrays have no operators: compute with their elements",
            _ => "compute with its parts",
        };
        let error = match op {
            "an index" => bad_index::error(span, &found),
            _ => bad_operand::error(span, op, &found, expected, hint),
        };
        let error = self.note_hidden(of, error);
        self.report(error);
    }

    /// Replaces the variables in all recorded types.
    pub(super) fn finish(mut self) -> Program<'a> {
        let p = &mut self.p;
        for ty in &mut p.expr_ty {
            *ty = p.types.resolve(*ty);
        }
        for local in &mut p.locals {
            local.ty = p.types.resolve(local.ty);
        }
        for adjust in p.adjust.values_mut() {
            adjust.to = p.types.resolve(adjust.to);
        }
        for ty in p.type_args.values_mut().flatten().chain(p.cast_to.values_mut()) {
            *ty = p.types.resolve(*ty);
        }
        for lambda in p.lambdas.values_mut() {
            lambda.ty = p.types.resolve(lambda.ty);
            lambda.param_tys.iter_mut().for_each(|t| *t = p.types.resolve(*t));
        }
        for f in &mut p.fns {
            f.ty = p.types.resolve(f.ty);
            f.result = p.types.resolve(f.result);
            f.param_tys.iter_mut().for_each(|t| *t = p.types.resolve(*t));
        }
        for s in &mut p.statics {
            s.ty = p.types.resolve(s.ty);
        }
        for args in p.instantiated.values_mut() {
            args.iter_mut().for_each(|t| *t = p.types.resolve(*t));
        }
        for i in &mut p.impls {
            i.ty = p.types.resolve(i.ty);
        }
        for e in &mut p.enums {
            e.options.iter_mut().flatten().for_each(|t| *t = p.types.resolve(*t));
        }
        for s in &mut p.structs {
            s.fields.iter_mut().for_each(|f| f.1 = p.types.resolve(f.1));
        }
        self.p
    }
}
