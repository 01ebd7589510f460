//! Functions of Staged-C as terms: those with bodies, special ones, groups that call each other, exports, and the program that they
//! are.
//!
//! Separate from how bodies are made, which knows of functions no more than their types.

use super::*;

impl<'s> Translator<'s> {
    pub(super) fn known(&mut self, function: &Function<'s>, is_bound_above: bool) -> Done<usize> {
        for &(ty, name) in &function.params {
            self.check_ty(ty, name.span)?;
        }
        if function.ty != VOID {
            self.check_ty(function.ty, function.name.span)?;
        }
        let params: Vec<Type> = function.params.iter().map(|p| p.0).collect();
        let is_foreign = matches!(function.body, FunctionBody::Foreign);
        let node = self.function_node(function.ty, &params, is_foreign);
        let ty = self.types.add(node);
        let var = self.var(function.name.text, ty, function.name.span);
        self.functions.push(Known {
            name: function.name.text,
            ret: function.ty,
            params,
            var,
            go: None,
            is_foreign,
            is_used: false,
            is_recursive: false,
            is_bound_above,
        });
        Ok(self.functions.len() - 1)
    }

    /// Parameters, the stage of the call first and what the function returns to last. They are in scope from here on.
    pub(super) fn params(&mut self, function: &Function<'s>) -> (Vec<Var>, Var) {
        let stage = self.ty(STAGE);
        let go = self.var("go", stage, function.name.span);
        let mut params = vec![go];
        for &(ty, name) in &function.params {
            let vars = self.leaf_vars(ty, name.text, name.span);
            self.declare_local(name, ty, Some(vars.iter().map(|&x| Value::Var(x)).collect()));
            params.extend(vars);
        }
        let ty = self.fn_ty(&[function.ty]);
        let ret = self.var("return", ty, function.name.span);
        params.push(ret);
        self.late.extend(&params);
        (params, ret)
    }

    /// The function that `f<args>` is, where `stage` is true as soon as it may be made.
    fn special(&mut self, function: &Function<'s>, of: Name<'s>, args: &[Expr<'s>], stage: Stage) -> Done<Lam> {
        let mark = self.scope.len();
        let made = self.special_in_scope(function, of, args, stage);
        self.leave_scope(mark);
        made
    }

    fn special_in_scope(
        &mut self,
        function: &Function<'s>,
        of: Name<'s>,
        args: &[Expr<'s>],
        stage: Stage,
    ) -> Done<Lam> {
        let generic = self.callee(of)?;
        let (params, ret) = self.params(function);
        let own = self.stage_var();
        let Known { var, ret: result, is_foreign, .. } = self.functions[generic];
        if is_foreign {
            return self.fault(limitation::not_supported(
                of.span,
                "specialized functions of other code",
                "call it: what it does is executed when the program runs",
            ));
        }
        if result != function.ty {
            return self.mismatch(of.span, result, function.ty);
        }
        let stage = self.with_value(stage, Value::Var(var));
        let go = Value::Var(params[0]);
        self.special_of((var, result, of.span), stage, (params, own, ret), |t| {
            let mut values = vec![go];
            t.functions[generic].is_used = true;
            let types = t.functions[generic].params.clone();
            values.extend(t.pass(&types, args, of.span)?);
            Ok(values)
        })
    }

    /// A function that calls another one, as soon as `stage` is true, and returns what that returns.
    pub(super) fn special_of(
        &mut self,
        (of, result, span): (Var, Type, Span),
        stage: Stage,
        (params, own, ret): (Vec<Var>, Var, Var),
        values: impl FnOnce(&mut Self) -> Done<Vec<Value>>,
    ) -> Done<Lam> {
        let of_call = self.of_var(params[0]);
        self.lambda(params, own, stage, |t| {
            let values = values(t)?;
            let results = t.leaf_vars(result, "result", span);
            let returned: Vec<Value> = results.iter().map(|&r| Value::Var(r)).collect();
            t.push(t.at, Callee::Value(Value::Var(of)), values, results, span);
            let stage = t.both(t.flow.last, of_call);
            t.end(stage, Value::Var(ret), returned, span);
            Ok(())
        })
    }

    pub(super) fn local_function(&mut self, function: &Function<'s>) -> Done<()> {
        if let FunctionBody::Compiled(of, args) = &function.body {
            return self.compiled(function, *of, args);
        }
        let FunctionBody::Special(of, args) = &function.body else {
            return self.fault(limitation::not_supported(
                function.name.span,
                "functions with bodies in functions",
                "declare it before the function around it",
            ));
        };
        let lam = self.special(function, *of, args, self.at)?;
        let known = self.known(function, false)?;
        let var = self.functions[known].var;
        // Bound before `of` is, it would be made at each of its uses.
        let generic = self.callee(*of)?;
        let stage = self.with_value(self.at, Value::Var(self.functions[generic].var));
        self.push(stage, Callee::Rest, vec![Value::Lam(lam)], vec![var], function.name.span);
        self.declare(function.name, Entity::Function(known));
        Ok(())
    }

    /// A function of the file. Its name is in scope then, even if something is wrong within it.
    fn function(&mut self, function: &Function<'s>) -> Done<()> {
        let stage = self.flow.last;
        let span = function.name.span;
        match &function.body {
            FunctionBody::Foreign => {
                let known = self.known(function, true)?;
                let Known { ret, params, .. } = &self.functions[known];
                if *ret == STAGE || params.contains(&STAGE) {
                    return self.mismatch(span, STAGE, INT);
                }
                let has_other = |ty: &Type| ty.pointers == 0 && matches!(ty.base, Base::Struct(_) | Base::Function(_));
                if has_other(ret) || params.iter().any(has_other) {
                    let hint = "pass pointers to structs; functions of other code know nothing of stages";
                    return self.fault(limitation::not_supported(
                        span,
                        "structs and functions as values of other code",
                        hint,
                    ));
                }
                self.declare(function.name, Entity::Function(known));
            }
            FunctionBody::Special(of, args) => {
                let made = self.special(function, *of, args, stage);
                let known = self.known(function, true)?;
                self.declare(function.name, Entity::Function(known));
                let var = self.functions[known].var;
                self.push(stage, Callee::Rest, vec![Value::Lam(made?)], vec![var], span);
            }
            FunctionBody::Compiled(..) => {
                let hint = "leave out `compile`: the function is compiled with the program";
                return self.fault(limitation::not_supported(span, "functions of a file by `compile`", hint));
            }
            FunctionBody::Block(statements) => {
                let inner = self.known(function, false)?;
                let outer = self.known(function, true)?;
                let mark = self.scope.len();
                self.declare(function.name, Entity::Function(inner));
                let (params, ret) = self.params(function);
                self.functions[inner].go = Some(params[0]);
                let own = self.stage_var();
                let start = self.of_var(params[0]);
                let made = self.function_body(function, statements, ret, (params, own, start));
                self.leave_scope(mark);
                self.declare(function.name, Entity::Function(outer));
                let lam = made?;
                let (fixed, var) = (self.functions[inner].var, self.functions[outer].var);
                self.functions[outer].is_recursive = self.functions[inner].is_used;
                let (callee, args) = if self.functions[inner].is_used {
                    (Callee::Fix(fixed, lam), Vec::new())
                } else {
                    (Callee::Rest, vec![Value::Lam(lam)])
                };
                self.push(stage, callee, args, vec![var], span);
            }
        }
        Ok(())
    }

    /// Functions that call each other.
    fn group(&mut self, functions: &[&Function<'s>]) -> Done<()> {
        let (stage, span) = (self.flow.last, functions[0].name.span);
        let outer = functions.iter().map(|f| self.known(f, true)).collect::<Done<Vec<usize>>>()?;
        let vars: Vec<Var> = outer.iter().map(|&f| self.functions[f].var).collect();
        let types: Vec<Ty> = vars.iter().map(|x| self.of_vars[x]).collect();
        let with = self.types.add(TyNode::Fn(types.into()));
        let all_ty = self.types.add(TyNode::Fn([with].into()));
        let all = self.var("all", all_ty, span);
        let of_all = self.of_var(all);
        let mut lams = Vec::new();
        for i in 0..functions.len() {
            let mark = self.scope.len();
            let made = self.in_group(functions, i, (all, of_all));
            self.leave_scope(mark);
            self.locals.clear();
            lams.push(made);
        }
        for (function, &known) in functions.iter().zip(&outer) {
            self.functions[known].is_recursive = true;
            self.declare(function.name, Entity::Function(known));
        }
        let lams = lams.into_iter().map(|l| l.map(Value::Lam)).collect::<Done<Vec<Value>>>()?;
        let (k, own) = (self.var("k", with, span), self.stage_var());
        let natural = self.of_var(own);
        let body = self.terms.apply(natural, Value::Var(k), lams, span);
        let lam = self.terms.lam(own, [k], body);
        self.push(stage, Callee::Group(all, lam), Vec::new(), vars, span);
        Ok(())
    }

    /// One of them: its body is executed when `all` has told which the functions are.
    fn in_group(&mut self, functions: &[&Function<'s>], idx: usize, (all, of_all): (Var, Stage)) -> Done<Lam> {
        let function = functions[idx];
        let span = function.name.span;
        let FunctionBody::Block(statements) = &function.body else {
            let hint = "give it a body that calls the general function";
            return self.fault(limitation::not_supported(
                span,
                "specialized functions that their general ones call",
                hint,
            ));
        };
        let mut vars = Vec::new();
        for other in functions {
            let inner = self.known(other, false)?;
            self.declare(other.name, Entity::Function(inner));
            vars.push(self.functions[inner].var);
        }
        let inner = self.functions.len() - functions.len() + idx;
        let (params, ret) = self.params(function);
        self.functions[inner].go = Some(params[0]);
        self.functions[inner].is_used = true;
        let start = self.of_var(params[0]);
        let within = self.stage_var();
        let with = self.function_body(function, statements, ret, (vars, within, start))?;
        let own = self.stage_var();
        let natural = self.of_var(own);
        let stage = self.both(natural, of_all);
        let body = self.terms.apply(stage, Value::Var(all), [Value::Lam(with)], span);
        Ok(self.terms.lam(own, params, body))
    }

    /// A lambda with the body of a function, which begins at `start`.
    fn function_body(
        &mut self,
        function: &Function<'s>,
        statements: &[Statement<'s>],
        ret: Var,
        (params, own, start): (Vec<Var>, Var, Stage),
    ) -> Done<Lam> {
        let span = function.name.span;
        self.ret = Some((ret, function.ty));
        self.has_labels = false;
        self.lambda(params, own, start, |t| {
            t.block(statements)?;
            if t.flow.end.is_none() {
                if function.ty != VOID {
                    let shown = t.show(function.ty);
                    return t.fault(staging_type::no_result(span, &shown));
                }
                let control = t.flow.control;
                let stage = if t.has_labels { t.with_value(control, Value::Var(ret)) } else { control };
                t.end(stage, Value::Var(ret), Vec::new(), span);
            }
            Ok(())
        })
    }

    /// What other code calls, if it can: with what it is called as.
    fn export(&mut self, function: &Function<'s>) -> Option<(Export, usize)> {
        let Some(Entity::Function(known)) = self.entity(function.name.text) else { return None };
        let Known { ret, var, is_foreign, is_recursive, .. } = self.functions[known];
        let span = function.name.span;
        let is_plain = |ty: Type| match ty.base {
            Base::Stage | Base::Function(_) => false,
            Base::Struct(_) => ty.pointers > 0,
            _ => true,
        };
        if is_foreign || ret.pointers > 0 || !is_plain(ret) || !function.params.iter().all(|p| is_plain(p.0)) {
            return None;
        }
        let mark = self.scope.len();
        let (params, _) = self.params(function);
        self.leave_scope(mark);
        let call = self.terms.var(Some("call".into()));
        let args: Vec<Value> = std::iter::once(call).chain(params[1..].iter().copied()).map(Value::Var).collect();
        // What calls itself would be here once more.
        let stage = self.of_var(if is_recursive { call } else { var });
        let stage = self.with_value(stage, Value::Var(var));
        let body = self.terms.apply(stage, Value::Var(var), args, span);
        let lam = Value::Lam(self.terms.lam(call, &params[1..], body));
        let types: Vec<Ty> = params[1..].iter().map(|p| self.of_vars[p]).collect();
        let ty = self.types.add(TyNode::Fn(types.into()));
        let exported = self.var(function.name.text, ty, span);
        let (k, own) = (self.terms.var(Some("k".into())), self.stage_var());
        let natural = self.of_var(own);
        let body = self.terms.apply(natural, Value::Var(k), [self.exported, lam], span);
        let bundle = Value::Lam(self.terms.lam(own, [k], body));
        let all = self.terms.var(Some("exports".into()));
        self.push(self.flow.last, Callee::Rest, vec![bundle], vec![all], span);
        self.exported = Value::Var(all);
        self.n_exported += 1;
        let export = Export { name: function.name.text.into(), var: exported, at: self.n_exported - 1, is_used: false };
        Some((export, known))
    }

    /// Each function once: a definition, or else its first declaration.
    fn declared_once(&mut self, functions: &'s [Function<'s>]) -> Vec<&'s Function<'s>> {
        let is_foreign = |f: &Function| matches!(f.body, FunctionBody::Foreign);
        let mut kept: FxHashMap<&str, &Function> = FxHashMap::default();
        for function in functions.iter().filter(|f| !is_foreign(f)) {
            let name = function.name;
            if let Some(before) = kept.insert(name.text, function) {
                self.faults.push(staging_name::twice(name.span, name.text, before.name.span));
            }
        }
        for function in functions.iter().filter(|f| is_foreign(f)) {
            let of = *kept.entry(function.name.text).or_insert(function);
            let types = |f: &Function| (f.ty, f.params.iter().map(|p| p.0).collect::<Vec<Type>>());
            if types(of) != types(function) {
                let [found, expected] = [function, of].map(|f| self.head(f));
                let fault = staging_type::mismatch(function.name.span, &found, &expected);
                self.faults.push(fault.other(of.name.span, "declared here"));
            }
        }
        functions.iter().filter(|f| std::ptr::eq(kept[f.name.text], *f)).collect()
    }

    fn head(&self, function: &Function) -> String {
        let params: Vec<String> = function.params.iter().map(|p| self.show(p.0)).collect();
        format!("{} {}({})", self.show(function.ty), function.name.text, params.join(", "))
    }

    pub(super) fn program(&mut self, functions: &'s [Function<'s>], end: Span) -> (Body, Vec<Export>) {
        self.declare_structs();
        let functions = self.declared_once(functions);
        let mut exports = Vec::new();
        for group in order::groups(&functions) {
            let group: Vec<&Function> = group.into_iter().map(|i| functions[i]).collect();
            let (pending, at) = (self.flow.pending.len(), self.at);
            let made = if let [function] = group[..] { self.function(function) } else { self.group(&group) };
            if made.is_ok() && !self.faults.has_errors() {
                exports.extend(group.iter().filter_map(|f| self.export(f)));
            }
            if made.is_err() {
                self.flow.pending.truncate(pending);
                self.at = at;
                self.loops.clear();
            }
            self.locals.clear();
        }
        // In the order of the files.
        exports.sort_by_key(|(export, _)| {
            let place = self.places[&export.var];
            (place.file.0, place.lo)
        });
        for (export, known) in &mut exports {
            export.is_used = self.functions[*known].is_used;
        }
        self.end(self.flow.last, Value::Const(Const::Prim(Prim::Exit)), vec![self.exported], end);
        let always = self.always();
        let flow = std::mem::replace(&mut self.flow, Flow::new(always));
        (self.close(flow), exports.into_iter().map(|(e, _)| e).collect())
    }
}
