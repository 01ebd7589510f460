//! Functions of Staged-C that are made while the program runs.
//!
//! Separate from functions that are specialized when it is compiled: those are terms, these are text that is compiled then.

use super::*;

impl<'s> Translator<'s> {
    /// `T g(params) = compile f<args>;`, where an argument is a parameter of `g`, or a number that is known then.
    pub(super) fn compiled(&mut self, function: &Function<'s>, of: Name<'s>, args: &[Expr<'s>]) -> Done<()> {
        let span = function.name.span;
        let generic = self.callee(of)?;
        let Known { ret, ref params, is_foreign, .. } = self.functions[generic];
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
        if ret != function.ty {
            return self.mismatch(of.span, ret, function.ty);
        }
        self.arguments(of.span, args.len(), types.len())?;
        self.functions[generic].is_used = true;
        let (mut written, mut values, mut value_types) = (Vec::new(), Vec::new(), Vec::new());
        for (arg, &ty) in args.iter().zip(&types) {
            let param = match arg.kind {
                ExprKind::Name(name) => function.params.iter().position(|p| p.1.text == name),
                _ => None,
            };
            if let Some(i) = param {
                if function.params[i].0 != ty {
                    return self.mismatch(arg.span, function.params[i].0, ty);
                }
                written.push(Some(format!("p{i}")));
                continue;
            }
            if !is_number(ty) && ty != BOOL {
                let what = format!("arguments of type `{}` for `compile`", self.show(ty));
                let hint = "make it a parameter of the function";
                return self.fault(limitation::not_supported(arg.span, &what, hint));
            }
            values.push(self.value(arg, ty, "t")?.value);
            value_types.push(ty);
            written.push(None);
        }
        let known = self.known(function, false)?;
        let made = self.functions[known].var;
        let then = self.types.add(TyNode::Fn([self.of_vars[&made]].into()));
        let mut site: Vec<Ty> = value_types.into_iter().map(|ty| self.ty(ty)).collect();
        site.push(then);
        let site = self.types.add(TyNode::Fn(site.into()));
        let var = self.var("compile", site, span);
        let params: Vec<String> = function.params.iter().map(|p| self.show(p.0)).collect();
        let ret = self.show(function.ty);
        self.sites.push(Site::new(var, &ret, &params, of.text, written));
        let mut stage = self.at;
        for &value in &values {
            stage = self.with_value(stage, value);
        }
        self.push(stage, Callee::Value(Value::Const(Const::Foreign(var))), values, vec![made], span);
        self.at = self.flow.last;
        self.declare(function.name, Entity::Function(known));
        Ok(())
    }
}
