//! Constants: the lengths of arrays, `const` parameters and their arguments. They are read from the syntax tree, as
//! types are, so that lengths are known before the bodies of functions are checked.

use super::collect::primitive;
use super::*;
use crate::types::Const;
use nyala_syntax::ast::{BinaryOp, ExprKind, Path, TypeId, TypeKind, UnaryOp};

/// Limit on the nesting of an expression, statics included.
const MAX_DEPTH: u32 = 500;
/// Limit on the parts of an expression, those of statics included.
const MAX_PARTS: u32 = 10_000;

impl<'a> Checker<'a, '_> {
    /// The type of a `const` parameter's values, as declared.
    pub(super) fn const_ty(&mut self, id: TypeId) -> Prim {
        let node = &self.ast()[id];
        if let TypeKind::Path(Path { root: false, names, type_args: None, .. }) = &node.kind
            && let [name] = &names[..]
            && let Some(prim) = primitive(&name.text)
            && !prim.is_float()
        {
            return prim;
        }
        if !matches!(node.kind, TypeKind::Error) {
            self.report(bad_constant::parameter(node.span));
        }
        Prim::I32
    }

    /// The type of the values of a `const` parameter; `None` for other types.
    pub(super) fn const_param(&mut self, ty: Ty) -> Option<Prim> {
        match self.p.types.kind(ty) {
            Kind::Param(param) => self.p.type_params[param.0 as usize].constant,
            _ => None,
        }
    }

    /// An argument in brackets: a constant if `param` is a `const` parameter, else a type.
    pub(super) fn generic_arg(&mut self, arg: TypeId, param: Option<ParamId>) -> Ty {
        let Some(param) = param.filter(|p| self.p.type_params[p.0 as usize].constant.is_some()) else {
            return self.value_ty(arg);
        };
        let (node, name) = (&self.ast()[arg], self.p.type_params[param.0 as usize].name.clone());
        match &node.kind {
            TypeKind::Error => TypeTable::ERROR,
            TypeKind::Const(e) => match self.const_expr(*e) {
                Some(value) => value,
                None => {
                    self.report(not_constant::argument(node.span));
                    TypeTable::ERROR
                }
            },
            TypeKind::Path(path) if path.type_args.is_none() => self.const_name(path, &name),
            _ => {
                self.report(argument_kind::type_argument(node.span, "this type", &short(&name)));
                TypeTable::ERROR
            }
        }
    }

    /// A name as the argument of the `const` parameter `param`.
    fn const_name(&mut self, path: &'a Path, param: &str) -> Ty {
        let name = &path.names[path.names.len() - 1];
        let is_type = primitive(&name.text).is_some() && self.lookup(&name.text).is_none();
        let entity = match is_type {
            true => Entity::Type(TypeTable::UNIT),
            false => match self.find(path, false) {
                Found::Entity(entity) => entity,
                Found::Of(..) | Found::OfTrait(..) => Entity::Fn(FnId(0)),
            },
        };
        match entity {
            Entity::Error => return TypeTable::ERROR,
            Entity::Type(ty) if self.const_param(ty).is_some() => return ty,
            Entity::Type(_) | Entity::Struct(_) | Entity::Enum(_) | Entity::Alias(_) => {
                let shown = format!("`{}`", short(&name.text));
                self.report(argument_kind::type_argument(path.span, &shown, &short(param)));
                return TypeTable::ERROR;
            }
            Entity::Static(id) => {
                if let Some(value) = self.const_static(id, 0, &mut 0) {
                    return value;
                }
            }
            _ => {}
        }
        self.report(not_constant::argument(path.span));
        TypeTable::ERROR
    }

    /// The arguments of a trait, in source order, as far as they are given.
    pub(super) fn trait_arguments(&mut self, id: TraitId, given: &[TypeId], span: Span) -> Vec<Ty> {
        let info = &self.p.traits[id.0 as usize];
        let params = info.generics[info.n_outer + 1..].to_vec();
        let args: Vec<Ty> =
            given.iter().enumerate().map(|(i, arg)| self.generic_arg(*arg, params.get(i).copied())).collect();
        self.check_const_args(&params, &args, span);
        args
    }

    /// Requires that the arguments of `const` parameters are among their values.
    pub(super) fn check_const_args(&mut self, params: &[ParamId], args: &[Ty], span: Span) {
        for (&param, &value) in params.iter().zip(args) {
            if self.p.type_params[param.0 as usize].constant.is_some() {
                self.unit.check_later(Final::ConstArg { value, param, span });
            }
        }
    }

    pub(super) fn final_const_arg(&mut self, value: Ty, param: ParamId, span: Span) {
        let value = self.p.types.resolve(value);
        let info = &self.p.type_params[param.0 as usize];
        let (Some(prim), name) = (info.constant, short(&info.name)) else { return };
        if self.p.types.has_open_var(value) {
            self.report(ambiguous_type::constant(span, &name));
            self.p.types.poison(value);
            return;
        }
        let fits = match self.p.types.as_const(value) {
            Some(value) => value.fits(prim),
            // The values of parameters are checked where these have arguments.
            None => self.p.types.is_error(value) || self.is_bool(value) == (prim == Prim::Bool),
        };
        if !fits {
            let shown = self.show(value);
            self.report(bad_constant::argument(span, &shown, &name, prim.name()));
        }
    }

    /// Compares constants whose parts were open.
    pub(super) fn final_equal(&mut self, a: Ty, b: Ty, span: Span) {
        let (a, b) = (self.p.types.resolve(a), self.p.types.resolve(b));
        self.check_depth(span);
        if !self.p.types.has_open_var(a) && !self.p.types.has_open_var(b) && !self.p.types.unify(a, b) {
            let (found, expected) = (self.show(a), self.show(b));
            self.report(bad_constant::different(span, &found, &expected));
        }
    }

    /// Whether a constant is a `bool`, and not an integer.
    fn is_bool(&mut self, value: Ty) -> bool {
        use BinaryOp::*;
        let mut value = value;
        loop {
            return match self.p.types.kind(value) {
                Kind::Const(value) => matches!(value, Const::Bool(_)),
                Kind::Param(_) => self.const_param(value) == Some(Prim::Bool),
                Kind::Operation(op, a, _) => match op {
                    Or | And | Eq | Ne | Lt | Le | Gt | Ge => true,
                    _ => {
                        value = a;
                        continue;
                    }
                },
                _ => false,
            };
        }
    }

    /// The length of an array or the number of lanes.
    pub(super) fn length(&mut self, e: ExprId) -> Option<Ty> {
        let span = self.ast()[e].span;
        let found = self.const_expr(e);
        let is_length = found.is_some_and(|n| match self.p.types.as_const(n) {
            Some(Const::Int(n)) => (0..1 << 40).contains(&n),
            Some(Const::Bool(_)) => false,
            None => !self.is_bool(n),
        });
        match found {
            Some(TypeTable::ERROR) => None,
            Some(n) if is_length => Some(n),
            None if matches!(self.ast()[e].kind, ExprKind::Error) => None,
            _ => {
                let value = found.and_then(|n| self.p.types.as_const(n));
                self.report(match value {
                    Some(value) => bad_array_length::value(span, &value.show()),
                    None => bad_array_length::error(span),
                });
                None
            }
        }
    }

    /// The value of a constant expression. `None` if it is not constant.
    fn const_expr(&mut self, e: ExprId) -> Option<Ty> {
        let span = self.ast()[e].span;
        let value = self.const_value(e, 0, &mut 0);
        self.check_depth(span);
        value
    }

    fn const_value(&mut self, e: ExprId, depth: u32, parts: &mut u32) -> Option<Ty> {
        *parts += 1;
        if depth > MAX_DEPTH || *parts > MAX_PARTS {
            return None;
        }
        let (depth, int) = (depth + 1, |n: i128| Kind::Const(Const::Int(n)));
        match &self.ast()[e].kind {
            ExprKind::Int { value, .. } => i128::try_from(*value).ok().map(|n| self.p.types.mk(int(n))),
            ExprKind::Char(c) => Some(self.p.types.mk(int((*c).into()))),
            ExprKind::Bool(b) => Some(self.p.types.mk(Kind::Const(Const::Bool(*b)))),
            ExprKind::Unary(UnaryOp::Plus, e) => self.const_value(*e, depth, parts),
            ExprKind::Unary(UnaryOp::Neg, e) => {
                let (zero, n) = (self.p.types.mk(int(0)), self.const_value(*e, depth, parts)?);
                self.const_operation(BinaryOp::Sub, zero, n)
            }
            ExprKind::Unary(UnaryOp::Not, e) => {
                let value = self.const_value(*e, depth, parts)?;
                if value == TypeTable::ERROR {
                    return Some(value);
                }
                if self.is_bool(value) {
                    let no = self.p.types.mk(Kind::Const(Const::Bool(false)));
                    return self.const_operation(BinaryOp::Eq, value, no);
                }
                // All bits set: the greatest number of an unsigned type, else -1.
                let unsigned = self.const_prim(*e, depth, parts).filter(|p| !p.is_signed());
                let ones = unsigned.map_or(-1, |p| i128::from(u64::MAX >> (64 - p.bits())));
                let ones = self.p.types.mk(int(ones));
                self.const_operation(BinaryOp::Sub, ones, value)
            }
            ExprKind::Cast(e, _) => self.const_value(*e, depth, parts),
            ExprKind::Block(block) if block.stmts.is_empty() => self.const_value(block.result?, depth, parts),
            ExprKind::Binary { op, lhs, rhs, .. } => {
                let a = self.const_value(*lhs, depth, parts)?;
                let b = self.const_value(*rhs, depth, parts)?;
                self.const_operation(*op, a, b)
            }
            ExprKind::Path(path) => {
                let entity = match &path.names[..] {
                    [name] if !path.root => self.lookup(&name.text)?,
                    _ => match self.find(path, false) {
                        Found::Entity(entity) => entity,
                        Found::Of(..) | Found::OfTrait(..) => return None,
                    },
                };
                match entity {
                    Entity::Static(id) => self.const_static(id, depth, parts),
                    Entity::Type(ty) if self.const_param(ty).is_some() => Some(ty),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The integer type that a constant expression says: by a literal's suffix, a conversion, a static, a parameter.
    fn const_prim(&mut self, e: ExprId, depth: u32, parts: &mut u32) -> Option<Prim> {
        *parts += 1;
        if depth > MAX_DEPTH || *parts > MAX_PARTS {
            return None;
        }
        let depth = depth + 1;
        let named = |ty: &TypeKind| match ty {
            TypeKind::Path(Path { root: false, names, type_args: None, .. }) if names.len() == 1 => {
                primitive(&names[0].text)
            }
            _ => None,
        };
        let prim = match &self.ast()[e].kind {
            ExprKind::Int { suffix, .. } => Prim::from_name((*suffix)?.text()),
            ExprKind::Char(_) => Some(Prim::U8),
            ExprKind::Unary(_, e) => self.const_prim(*e, depth, parts),
            ExprKind::Cast(_, ty) => named(&self.ast()[*ty].kind),
            ExprKind::Block(block) if block.stmts.is_empty() => self.const_prim(block.result?, depth, parts),
            ExprKind::Binary { lhs, rhs, .. } => {
                self.const_prim(*lhs, depth, parts).or_else(|| self.const_prim(*rhs, depth, parts))
            }
            ExprKind::Path(path) => {
                let Found::Entity(entity) = self.find(path, false) else { return None };
                match entity {
                    Entity::Type(ty) => self.const_param(ty),
                    Entity::Static(id) => {
                        let info = &self.p.statics[id.0 as usize];
                        let (ast, module, ns) = (info.ast, info.module, info.ns);
                        let old = std::mem::replace(&mut self.at, At { module, ns });
                        let prim = match (ast.ty, ast.init) {
                            (Some(ty), _) => named(&self.ast()[ty].kind),
                            (None, Some(init)) => self.const_prim(init, depth, parts),
                            (None, None) => None,
                        };
                        self.at = old;
                        prim
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        prim.filter(|p| p.is_int())
    }

    fn const_operation(&mut self, op: BinaryOp, a: Ty, b: Ty) -> Option<Ty> {
        if a == TypeTable::ERROR || b == TypeTable::ERROR {
            return Some(TypeTable::ERROR);
        }
        let wants_bool = matches!(op, BinaryOp::And | BinaryOp::Or);
        if self.is_bool(a) != self.is_bool(b) || wants_bool && !self.is_bool(a) {
            return None;
        }
        Some(self.p.types.mk(Kind::Operation(op, a, b)))
    }

    fn const_static(&mut self, id: StaticId, depth: u32, parts: &mut u32) -> Option<Ty> {
        let info = &self.p.statics[id.0 as usize];
        let (ast, module, ns) = (info.ast, info.module, info.ns);
        if ast.mutable {
            return None;
        }
        self.p.in_types.insert(id);
        let old = std::mem::replace(&mut self.at, At { module, ns });
        let value = ast.init.and_then(|init| self.const_value(init, depth + 1, parts));
        self.at = old;
        value
    }
}
