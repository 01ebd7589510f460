//! Types as written.

use super::collect::primitive;
use super::*;
use crate::types::{Const, MAX_LANES};
use nyala_syntax::ast::{Path, PatternKind, Ret, TypeId, TypeKind};

/// Limit on the length of chains of aliases.
const MAX_CHAIN: u32 = 10_000;

/// Address spaces by their words (`docs/reference/memory.md`, Address spaces).
const SPACES: [(&str, u8); 5] = [("global", 1), ("texture", 2), ("shared", 3), ("constant", 4), ("private", 5)];

/// All type aliases, which are expanded on demand.
#[derive(Default)]
pub(super) struct Aliases<'a> {
    pub all: Vec<Alias<'a>>,
    /// The number of aliases that are being expanded.
    depth: u32,
}

pub(super) struct Alias<'a> {
    pub ast: &'a ast::Alias,
    pub module: usize,
    pub ns: NsId,
    pub top_level: bool,
    pub generics: Arc<[ParamId]>,
    pub n_outer: usize,
    pub state: AliasState,
}

#[derive(Clone, Copy)]
pub(super) enum AliasState {
    Fresh,
    Busy,
    Done(Ty),
}

/// The names that types of the current item may refer to, beside other items.
#[derive(Default)]
pub(super) struct Signature<'a> {
    /// Its type parameters, and those of the items around it.
    pub generics: Arc<[ParamId]>,
    /// The names of all type parameters in the source.
    pub names: FxHashMap<ParamId, &'a str>,
    /// For `typeof`, the parameters before the one whose type is being read.
    pub params: Vec<(&'a ast::Pattern, Ty)>,
}

impl<'a> Checker<'a, '_> {
    /// A type of values: no indefinite array.
    pub(super) fn value_ty(&mut self, id: TypeId) -> Ty {
        let ty = self.ty(id);
        self.sized(ty, self.ast()[id].span)
    }

    fn sized(&mut self, ty: Ty, span: Span) -> Ty {
        if let Kind::Indef(_) = self.p.types.kind(ty) {
            let found = self.show(ty);
            self.report(indefinite_array::error(span, &found));
            return TypeTable::ERROR;
        }
        ty
    }

    pub(super) fn ty(&mut self, id: TypeId) -> Ty {
        let node = &self.ast()[id];
        let span = node.span;
        let ty = match &node.kind {
            TypeKind::Error => TypeTable::ERROR,
            TypeKind::Path(path) => self.path_ty(path),
            TypeKind::Tuple(parts) => {
                let parts: Vec<Ty> = parts.iter().map(|p| self.value_ty(*p)).collect();
                self.p.types.tuple(&parts)
            }
            TypeKind::Array(elem, n) => {
                let elem = self.value_ty(*elem);
                match self.length(*n) {
                    Some(n) => self.p.types.mk(Kind::Array(elem, n)),
                    None => TypeTable::ERROR,
                }
            }
            TypeKind::Const(e) => {
                let e = self.ast()[*e].span;
                self.report(argument_kind::constant(e, "a constant"));
                TypeTable::ERROR
            }
            TypeKind::Indefinite(elem) => {
                let elem = self.value_ty(*elem);
                self.p.types.mk(Kind::Indef(elem))
            }
            TypeKind::Pointer { mutable, space, to } => {
                let to = self.ty(*to);
                let space = match space {
                    None => 0,
                    Some(space) => match SPACES.iter().find(|s| s.0 == space.text) {
                        Some((_, number)) => *number,
                        None => match space.text.replace('_', "").parse() {
                            Ok(number) => number,
                            Err(_) => {
                                self.report(bad_address_space::error(space.span, &space.text));
                                return TypeTable::ERROR;
                            }
                        },
                    },
                };
                self.p.types.mk(Kind::Ptr { access: Access::of(*mutable), space, to })
            }
            TypeKind::Owned(to) => {
                let to = self.ty(*to);
                self.p.types.ptr(Access::Owned, to)
            }
            TypeKind::Simd(elem, n) => {
                let elem_span = self.ast()[*elem].span;
                let elem = self.value_ty(*elem);
                match self.length(*n) {
                    Some(n) => self.simd_ty(elem, n, elem_span),
                    None => TypeTable::ERROR,
                }
            }
            TypeKind::Typeof(e) => {
                // Earlier parameters are known by their types only.
                self.scopes.open();
                for (pattern, ty) in self.signature.params.clone() {
                    if let PatternKind::Name { name, .. } = &pattern.kind {
                        let id = self.new_local("_", name.span, ty, true);
                        self.scopes.insert(&name.text, Entity::Local(id));
                    }
                }
                let ty = self.expr(*e, None);
                self.scopes.close();
                if self.p.types.is_never(ty) { TypeTable::ERROR } else { self.p.types.shallow(ty) }
            }
            TypeKind::Fn { type_params, params, result } => {
                if let Some(param) = type_params.iter().find(|p| p.constant.is_some()) {
                    let hint = "declare the function with it, and pass a function for one value";
                    self.limitation(param.name.span, "`const` parameters of function types", hint);
                    return TypeTable::ERROR;
                }
                let old_generics = self.signature.generics.clone();
                let n_outer = old_generics.len();
                let generics = self.declare_generics(type_params, None);
                let old = self.enter_generics(&generics, n_outer);
                self.define_bounds(type_params, &generics, n_outer);
                let params: Vec<Ty> = params.iter().map(|p| self.value_ty(*p)).collect();
                let result = match result {
                    Ret::Absent | Ret::Never(_) => TypeTable::NEVER,
                    Ret::Type(ty) => self.value_ty(*ty),
                };
                self.leave_generics(old);
                let ty = self.p.types.func(&params, result);
                if type_params.is_empty() { ty } else { self.generic_ty(&generics[n_outer..], ty) }
            }
        };
        self.check_depth(span);
        ty
    }

    /// `fn[A: Bound](A) -> A` from a function type over type parameters.
    pub(super) fn generic_ty(&mut self, params: &[ParamId], ty: Ty) -> Ty {
        let bounds: Vec<Vec<TraitRef>> =
            params.iter().map(|p| self.p.type_params[p.0 as usize].bounds.clone()).collect();
        self.p.types.generic(params, &bounds, ty)
    }

    pub(super) fn simd_ty(&mut self, elem: Ty, n: Ty, span: Span) -> Ty {
        if self.p.types.is_error(elem) {
            return TypeTable::ERROR;
        }
        let fits = self.p.types.as_prim(elem).is_some()
            || self.p.types.as_var(elem).is_some()
            || matches!(self.p.types.kind(elem), Kind::Param(_));
        let lanes = match self.p.types.as_const(n) {
            Some(Const::Int(n)) => u64::try_from(n).unwrap_or(0),
            _ => 1,
        };
        if !fits || lanes == 0 || lanes > MAX_LANES {
            let shown = self.show(elem);
            self.report(bad_simd_type::error(span, &shown, lanes, MAX_LANES, fits));
            return TypeTable::ERROR;
        }
        self.p.types.mk(Kind::Simd(elem, n))
    }

    pub(super) fn check_depth(&mut self, span: Span) {
        if std::mem::take(&mut self.p.types.too_deep) {
            self.report(type_too_deep::error(span));
        }
        if let Some(fault) = self.p.types.fault.take() {
            self.report(bad_constant::fault(span, fault));
        }
        for (a, b) in std::mem::take(&mut self.p.types.equations) {
            self.unit.check_later(Final::Equal { a, b, span });
        }
    }

    fn path_ty(&mut self, path: &'a Path) -> Ty {
        let name = &path.names[path.names.len() - 1];
        let entity = match self.primitive_unless_hidden(path) {
            Some(prim) => {
                let ty = self.prim(prim);
                if path.type_args.is_some() {
                    self.report(not_generic::error(path.span, &short(&name.text), "a primitive type"));
                }
                return ty;
            }
            None => match self.find(path, true) {
                Found::Entity(entity) => entity,
                Found::Of(..) | Found::OfTrait(..) => {
                    self.report(not_a_type::error(name.span, &short(&name.text), "a function of a type"));
                    return TypeTable::ERROR;
                }
            },
        };
        self.named_ty(entity, path.type_args.as_deref(), name, Arity::All)
    }

    /// Only other types hide the primitive ones.
    fn primitive_unless_hidden(&mut self, path: &'a Path) -> Option<Prim> {
        let [name] = &path.names[..] else { return None };
        let prim = primitive(&name.text)?;
        let hidden = matches!(
            self.lookup(&name.text),
            Some(Entity::Error | Entity::Struct(_) | Entity::Enum(_) | Entity::Alias(_) | Entity::Type(_))
        );
        (!hidden && !path.root).then_some(prim)
    }

    /// The type that `entity` means with these type arguments.
    pub(super) fn named_ty(&mut self, entity: Entity, args: Option<&'a [TypeId]>, name: &'a Name, arity: Arity) -> Ty {
        let what = match entity {
            Entity::Error => {
                for arg in args.into_iter().flatten() {
                    self.ty(*arg);
                }
                return TypeTable::ERROR;
            }
            Entity::Struct(id) => {
                let info = &self.p.structs[id.0 as usize];
                let (generics, n_outer) = (info.generics.clone(), info.n_outer);
                let args = self.type_args(&generics, n_outer, args, name.span, arity, &name.text);
                return self.p.types.mk(Kind::Struct(id, args));
            }
            Entity::Enum(id) => {
                let info = &self.p.enums[id.0 as usize];
                let (generics, n_outer) = (info.generics.clone(), info.n_outer);
                let args = self.type_args(&generics, n_outer, args, name.span, arity, &name.text);
                return self.p.types.mk(Kind::Enum(id, args));
            }
            Entity::Alias(id) => {
                let ty = self.alias(id);
                let (generics, n_outer) = {
                    let alias = &self.aliases.all[id.0 as usize];
                    (alias.generics.clone(), alias.n_outer)
                };
                let args = self.type_args(&generics, n_outer, args, name.span, arity, &name.text);
                return self.p.types.instantiate(ty, &generics, &args);
            }
            Entity::Type(ty) => {
                if args.is_some() {
                    self.report(not_generic::error(name.span, &short(&name.text), "a type parameter"));
                }
                if self.const_param(ty).is_some() {
                    self.report(argument_kind::constant(name.span, &format!("`{}`", short(&name.text))));
                    return TypeTable::ERROR;
                }
                return ty;
            }
            Entity::Local(_) => "a variable",
            Entity::Fn(_) => "a function",
            Entity::Static(_) => "a static",
            Entity::Option(..) => "an option of an enum",
            Entity::Trait(_) => "a trait",
            Entity::Module(_) => "a module",
        };
        self.report(not_a_type::error(name.span, &short(&name.text), what));
        TypeTable::ERROR
    }

    /// Arguments for all of `generics`. Those of enclosing items stand for themselves; the item's own are given or
    /// open.
    pub(super) fn type_args(
        &mut self,
        generics: &[ParamId],
        n_outer: usize,
        given: Option<&'a [TypeId]>,
        span: Span,
        arity: Arity,
        name: &str,
    ) -> Arc<[Ty]> {
        let n = generics.len() - n_outer;
        let given = given.unwrap_or(&[]);
        let mut args: Vec<Ty> = generics[..n_outer].iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        for (i, arg) in given.iter().enumerate() {
            let ty = self.generic_arg(*arg, generics.get(n_outer + i).copied());
            if i < n {
                args.push(ty);
            }
        }
        if given.len() > n || arity == Arity::All && given.len() < n {
            if n == 0 {
                self.report(not_generic::error(span, &short(name), "a type without parameters"));
            } else {
                let all = arity == Arity::All;
                self.wrong_type_arguments(span, given.len(), &generics[n_outer..], all);
            }
            args.resize(generics.len(), TypeTable::ERROR);
        }
        while args.len() < generics.len() {
            let ty = self.var();
            if self.p.type_params[generics[args.len()].0 as usize].constant.is_none() {
                self.unit.check_later(Final::Known { ty, span, what: "this type argument" });
            }
            args.push(ty);
        }
        self.check_const_args(&generics[n_outer..], &args[n_outer..], span);
        for (i, &param) in generics.iter().enumerate().skip(n_outer) {
            for bound in self.p.type_params[param.0 as usize].bounds.clone() {
                let bound = self.instantiate_bound(&bound, generics, &args);
                self.require_later(span, args[i], bound);
            }
        }
        args.into()
    }

    pub(super) fn instantiate_bound(&mut self, bound: &TraitRef, params: &[ParamId], args: &[Ty]) -> TraitRef {
        let own = bound.args.iter().map(|a| self.p.types.instantiate(*a, params, args)).collect();
        TraitRef { id: bound.id, args: own }
    }

    pub(super) fn alias(&mut self, id: AliasId) -> Ty {
        let alias = &mut self.aliases.all[id.0 as usize];
        match alias.state {
            AliasState::Done(ty) => ty,
            AliasState::Busy => {
                let name = &alias.ast.name;
                alias.state = AliasState::Done(TypeTable::ERROR);
                self.report(recursive_type::alias(name.span, &short(&name.text)));
                TypeTable::ERROR
            }
            AliasState::Fresh if self.aliases.depth > MAX_CHAIN => {
                alias.state = AliasState::Done(TypeTable::ERROR);
                let span = alias.ast.name.span;
                self.report(type_too_deep::aliases(span, MAX_CHAIN));
                TypeTable::ERROR
            }
            AliasState::Fresh => {
                alias.state = AliasState::Busy;
                self.aliases.depth += 1;
                let (ast, top_level, generics, n_outer) =
                    (alias.ast, alias.top_level, alias.generics.clone(), alias.n_outer);
                let (module, ns) = (alias.module, alias.ns);
                let old = std::mem::replace(&mut self.at, At { module, ns });
                let scopes = if top_level { std::mem::take(&mut self.scopes) } else { Scopes::default() };
                let old_generics = self.enter_generics(&generics, n_outer);
                self.define_bounds(&ast.type_params, &generics, n_outer);
                let ty = self.ty(ast.ty);
                self.leave_generics(old_generics);
                if top_level {
                    self.scopes = scopes;
                }
                self.at = old;
                self.aliases.depth -= 1;
                let alias = &mut self.aliases.all[id.0 as usize];
                if let AliasState::Done(ty) = alias.state {
                    return ty;
                }
                alias.state = AliasState::Done(ty);
                ty
            }
        }
    }
}
