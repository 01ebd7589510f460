//! Functions of Staged-C that are made while the program runs.
//!
//! Separate from other special functions, whose arguments need not be values when they are made.

use super::*;

/// An argument of `f<…>`.
enum Arg {
    /// The parameter of that number.
    Param(usize),
    /// The leaves of a value.
    Values(Vec<Value>),
}

impl<'s> Translator<'s> {
    /// `T g(params) = compile f<args>;`, where an argument is a parameter of `g`, or what has a value then.
    pub(super) fn compiled(&mut self, function: &Function<'s>, of: Name<'s>, args: &[Expr<'s>]) -> Done<()> {
        let span = function.name.span;
        let generic = self.callee(of)?;
        let Known { var, ret: result, ref params, is_foreign, .. } = self.functions[generic];
        let types = params.clone();
        let is_plain = |ty: Type| match ty.base {
            Base::Stage | Base::Function(_) | Base::Void => false,
            Base::Struct(_) => ty.pointers > 0,
            _ => true,
        };
        let has_other = function.params.iter().any(|p| !is_plain(p.0));
        if is_foreign || has_other || function.ty != VOID && (!is_plain(function.ty) || function.ty.pointers > 0) {
            let hint = "it takes numbers and pointers, and returns a number at most";
            return self.fault(limitation::not_supported(span, "functions of such types by `compile`", hint));
        }
        if result != function.ty {
            return self.mismatch(of.span, result, function.ty);
        }
        self.arguments(of.span, args.len(), types.len())?;
        let mut given = Vec::new();
        let mut stage = self.at;
        for (arg, &ty) in args.iter().zip(&types) {
            let param = match arg.kind {
                ExprKind::Name(name) => function.params.iter().position(|p| p.1.text == name),
                _ => None,
            };
            if let Some(i) = param {
                if function.params[i].0 != ty {
                    return self.mismatch(arg.span, function.params[i].0, ty);
                }
                given.push(Arg::Param(i));
                continue;
            }
            let values = self.pass(&[ty], std::slice::from_ref(arg), arg.span)?;
            stage = values.iter().fold(self.both(stage, self.at), |stage, &value| self.with_value(stage, value));
            given.push(Arg::Values(values));
        }
        self.functions[generic].is_used = true;
        let stage = self.with_value(stage, Value::Var(var));
        let mark = self.scope.len();
        let (own, (params, ret)) = (self.stage_var(), self.params(function));
        let mut values = vec![Value::Var(params[0])];
        for arg in given {
            match arg {
                Arg::Param(i) => values.push(Value::Var(params[i + 1])),
                Arg::Values(leaves) => values.extend(leaves),
            }
        }
        let made = self.special_of((var, result, of.span), stage, (params, own, ret), |_| Ok(values));
        self.leave_scope(mark);
        let lam = Value::Lam(made?);
        let known = self.known(function, false)?;
        let made = self.functions[known].var;
        self.push(stage, Callee::Value(Value::Const(Const::Prim(Prim::Compile))), vec![lam], vec![made], span);
        self.at = self.flow.last;
        self.declare(function.name, Entity::Function(known));
        Ok(())
    }
}
