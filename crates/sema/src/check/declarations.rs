//! Declarations of functions that are called, for messages: where they are, and how they look.

use super::*;
use nyala_syntax::ast::{ExprKind, Param, PatternKind};

/// The declaration of a function, a method or a lambda that a variable names.
pub(super) struct Declaration {
    pub span: Span,
    /// `fn f(x: i32, g: fn(i32) -> i32) -> i32`
    pub signature: String,
    /// The parameters that take arguments, as the signature has them: a method's receiver is not among them.
    pub params: Vec<String>,
    /// Whether it is the prelude's, whose text says little to users.
    pub of_prelude: bool,
}

/// A callee with parameters that have names.
struct Callee<'a> {
    span: Span,
    head: String,
    module: usize,
    params: &'a [Param],
    tys: Vec<Ty>,
    /// The number of parameters for the receiver of a method.
    n_receivers: usize,
    result: Ty,
    tail: &'static str,
}

impl<'a> Checker<'a, '_> {
    /// The declaration of what the application `e` calls.
    pub(super) fn declaration(&mut self, e: GlobalExpr) -> Option<Declaration> {
        let callee = self.declared_callee(e)?;
        let param = |(param, ty): (&Param, &Ty)| match &param.pattern.kind {
            PatternKind::Name { name, .. } => format!("{}: {}", short(&name.text), self.show(*ty)),
            _ => self.show(*ty),
        };
        let params: Vec<String> = callee.params.iter().zip(&callee.tys).map(param).collect();
        let (open, close) = if callee.tail.is_empty() { ("(", ")") } else { ("", callee.tail) };
        let (head, list, result) = (&callee.head, params.join(", "), self.show(callee.result));
        Some(Declaration {
            span: callee.span,
            signature: format!("{head}{open}{list}{close} -> {result}"),
            params: params.into_iter().skip(callee.n_receivers).collect(),
            of_prelude: callee.module < self.p.n_prelude,
        })
    }

    /// The reason for the type of each parameter that takes an argument of the application `e`.
    pub(super) fn param_reasons(&mut self, e: GlobalExpr) -> impl Iterator<Item = Why> + use<'a> {
        let callee = self.declared_callee(e).filter(|c| c.module >= self.p.n_prelude);
        let (module, params, n) = callee.map_or((0, &[][..], 0), |c| (c.module, c.params, c.n_receivers));
        let ast = self.p.modules.get(module).copied();
        let reason = move |p: &Param| {
            let ty = p.pattern.ty.and_then(|ty| Some(ast?[ty].span));
            Why(Some((ty.unwrap_or(p.span), "the parameter's type")))
        };
        params.iter().skip(n).map(reason).chain(std::iter::repeat(NO_WHY))
    }

    /// Reports a wrong number of arguments for these type parameters.
    pub(super) fn wrong_type_arguments(&mut self, span: Span, found: usize, params: &[ParamId], all: bool) {
        let declared = params.iter().map(|p| self.p.type_params[p.0 as usize].span).reduce(Span::to);
        self.report(wrong_number_of_arguments::type_arguments(span, found, params.len(), all, declared));
    }

    fn declared_callee(&mut self, e: GlobalExpr) -> Option<Callee<'a>> {
        let callee = self.callee_expr(e)?;
        let (module, local) = self.locate(callee);
        let modules = &self.p.modules;
        match self.p.resolved.get(&callee) {
            Some(Entity::Fn(id)) => {
                let info = &self.p.fns[id.0 as usize];
                let generics: Vec<&str> =
                    info.generics[info.n_outer..].iter().map(|p| &*self.p.type_params[p.0 as usize].name).collect();
                let generics = if generics.is_empty() { String::new() } else { format!("[{}]", generics.join(", ")) };
                Some(Callee {
                    span: info.ast.name.span,
                    head: format!("fn {}{generics}", short(&info.ast.name.text)),
                    module: info.module,
                    params: &info.ast.params,
                    tys: info.param_tys.clone(),
                    n_receivers: matches!(modules[module][local].kind, ExprKind::Field { .. }).into(),
                    result: if info.never { TypeTable::NEVER } else { info.result },
                    tail: "",
                })
            }
            Some(Entity::Local(id)) => {
                let variable = self.p.local(*id);
                let (span, name) = (variable.span, format!("{} = |", short(&variable.name)));
                self.lambda_callee(variable.lambda?, span, name)
            }
            Some(_) => None,
            None => self.lambda_callee(callee, modules[module][local].span, "|".into()),
        }
    }

    fn lambda_callee(&mut self, e: GlobalExpr, span: Span, head: String) -> Option<Callee<'a>> {
        let (module, local) = self.locate(e);
        let ExprKind::Lambda(lambda) = &self.p.modules[module][local].kind else { return None };
        let info = self.p.lambdas.get(&e)?;
        let Kind::Fn(_, result) = self.p.types.kind(info.ty) else { return None };
        let (params, tys) = (&lambda.params[..], info.param_tys.clone());
        Some(Callee { span, head, module, params, tys, n_receivers: 0, result, tail: "|" })
    }
}
