//! Types of expressions.

use super::*;
use nyala_syntax::ast::{Block, ExprKind, Suffix, UnaryOp};

impl<'a> Checker<'a, '_> {
    /// Determines and records the type of `e`. `expected` is only a hint; the caller checks the result against it.
    pub(super) fn expr(&mut self, e: ExprId, expected: Option<Ty>) -> Ty {
        let ty = self.expr_inner(e, expected);
        let g = self.g(e);
        self.p.expr_ty[g as usize] = ty;
        self.check_depth(self.ast()[e].span);
        ty
    }

    /// Checks `e`, whose value is converted to the expected type `to`.
    pub(super) fn expr_to(&mut self, e: ExprId, to: Ty, why: Why) -> Ty {
        let ty = self.expr(e, Some(to));
        let (g, span) = (self.g(e), self.value_span(e));
        self.coerce(g, span, ty, to, why);
        ty
    }

    /// The place where a value comes from. For a block, that of its result.
    pub(super) fn value_span(&self, mut e: ExprId) -> Span {
        while let ExprKind::Block(Block { result: Some(result), .. }) = &self.ast()[e].kind {
            e = *result;
        }
        self.ast()[e].span
    }

    /// `e` as an operand: it must have a value.
    pub(super) fn operand(&mut self, e: ExprId, expected: Option<Ty>) -> Ty {
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
            ExprKind::Float { suffix, .. } => self.float_literal(*suffix, expected),
            ExprKind::Bool(_) => self.prim(Prim::Bool),
            ExprKind::Char(_) => self.prim(Prim::U8),
            ExprKind::Str(bytes) => {
                let elem = self.prim(Prim::U8);
                self.p.types.array(elem, bytes.len() as u64)
            }
            ExprKind::Path(path) => self.path_expr(e, path, false, expected),
            ExprKind::Struct { path, fields, base } => self.struct_expr(path, fields, *base, expected),
            ExprKind::Tuple(parts) => {
                let hints = match expected.map(|t| self.p.types.kind(t)) {
                    Some(Kind::Tuple(hints)) if hints.len() == parts.len() => Some(hints),
                    _ => None,
                };
                let mut tys = Vec::with_capacity(parts.len());
                for (i, part) in parts.iter().enumerate() {
                    let hint = hints.as_ref().map(|h| h[i]);
                    let ty = self.operand(*part, hint);
                    // Parts are converted one by one, so that their addresses can be taken.
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
            ExprKind::DynArray(n, elem) => {
                self.dyn_array(*n, *elem);
                self.report(indefinite_array::value(span));
                TypeTable::ERROR
            }
            ExprKind::Simd(parts) => self.simd_expr(parts, expected, span),
            ExprKind::Match { scrutinee, arms } => self.match_expr(e, *scrutinee, arms, expected),
            ExprKind::Asm(asm) => self.asm_expr(asm),
            ExprKind::Block(block) => self.block(block, expected),
            ExprKind::Unary(op, inner) => self.unary(e, *op, *inner, expected),
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
                let result = self.var();
                self.address(self.g(e), self.g(*place), Access::of(*mutable), ty, result);
                self.p.types.shallow(result)
            }
            ExprKind::IncDec { place, .. } => {
                let ty = self.operand(*place, None);
                self.p.types.make_number(ty);
                self.unit.check_later(Final::Operand { op: "++", want: Want::Number, ty, span });
                self.assignable(*place, span);
                // It has no value where none is expected: `if c { i++ }`.
                if expected == Some(TypeTable::UNIT) { TypeTable::UNIT } else { ty }
            }
            ExprKind::Binary { op, op_span, lhs, rhs } => self.binary(e, *op, *op_span, *lhs, *rhs, expected),
            ExprKind::Assign { op, op_span, place, value } => {
                let ty = self.operand(*place, None);
                match op {
                    None => {
                        self.operand_to(*value, ty, Why(Some((ast[*place].span, "the place that is assigned"))));
                    }
                    Some(op) => {
                        let hint = (!self.is_overloadable(ty, *op)).then_some(ty);
                        let rhs = self.operand(*value, hint);
                        let why = Why(Some((ast[*place].span, "the place that is assigned")));
                        if self.may_be_overloaded(*op, ty, rhs) {
                            let g = self.g(e);
                            self.operate(g, ty, Some(rhs), ty);
                        } else if self.unify(ast[*value].span, rhs, ty, why) {
                            self.arithmetic(*op, ty, *op_span);
                        }
                    }
                }
                self.assignable(*place, span);
                TypeTable::UNIT
            }
            ExprKind::Cast(inner, to) => {
                let to = self.value_ty(*to);
                // A literal that does not fit in `i32` takes the type of the cast. Others wrap.
                let is_large =
                    |e: &ExprId| matches!(ast[*e].kind, ExprKind::Int { value, .. } if value > i32::MAX as u128);
                let literal = match &ast[*inner].kind {
                    ExprKind::Simd(lanes) => lanes.iter().any(is_large),
                    _ => is_large(inner),
                };
                let lane = if let Kind::Simd(lane, _) = self.p.types.kind(to) { lane } else { to };
                let int = self.p.types.as_prim(lane).is_some_and(Prim::is_int);
                let number = matches!(self.p.types.kind(lane), Kind::Prim(_));
                let from = self.operand(*inner, (!number || literal && int).then_some(to));
                self.same_nominal(from, to);
                let g = self.g(e);
                self.p.cast_to.insert(g, to);
                self.unit.check_later(Final::Cast { from, to, span });
                to
            }
            ExprKind::Call { callee, args } => self.call(e, *callee, args, expected),
            ExprKind::Field { base, name, type_args } => {
                let base_ty = self.operand(*base, None);
                if type_args.is_some() {
                    self.report(not_generic::error(name.span, &short(&name.text), "a field"));
                    return TypeTable::ERROR;
                }
                let result = self.var();
                let (g, from) = (self.g(e), self.asker());
                self.field_of(g, name.span, base_ty, name.clone(), result, from);
                self.p.types.shallow(result)
            }
            ExprKind::Lambda(lambda) => self.lambda(e, lambda, expected),
            ExprKind::If { arms, otherwise } => self.if_expr(arms, *otherwise, expected, span),
            ExprKind::While { cond, body } => self.while_expr(e, *cond, *body),
            ExprKind::For(looped) => self.for_expr(e, looped),
        }
    }

    /// In a cast of a struct or enum to the same one, also behind pointers, unifies the type arguments.
    fn same_nominal(&mut self, from: Ty, to: Ty) {
        let (mut from, mut to) = (from, to);
        loop {
            match (self.p.types.kind(from), self.p.types.kind(to)) {
                (Kind::Ptr { to: a, .. }, Kind::Ptr { to: b, .. }) => (from, to) = (a, b),
                (Kind::Struct(a, _), Kind::Struct(b, _)) if a == b => break,
                (Kind::Enum(a, _), Kind::Enum(b, _)) if a == b => break,
                _ => return,
            }
        }
        self.p.types.unify(from, to);
    }

    pub(super) fn operand_to(&mut self, e: ExprId, to: Ty, why: Why) {
        let ty = self.expr_to(e, to, why);
        if self.p.types.is_never(ty) {
            self.never_value(e);
        }
    }

    fn int_literal(&mut self, value: u128, suffix: Option<Suffix>, negative: bool, hint: Option<Ty>, span: Span) -> Ty {
        let hinted = hint.filter(|t| self.p.types.as_prim(*t).is_some_and(Prim::is_int));
        let ty = match suffix {
            Some(suffix) => self.suffix_ty(suffix),
            None => hinted.unwrap_or_else(|| self.p.types.var(Class::Int)),
        };
        self.unit.check_later(Final::Literal { value, negative, ty, span });
        ty
    }

    fn float_literal(&mut self, suffix: Option<Suffix>, hint: Option<Ty>) -> Ty {
        let hinted = hint.filter(|t| self.p.types.as_prim(*t).is_some_and(Prim::is_float));
        match suffix {
            Some(suffix) => self.suffix_ty(suffix),
            None => hinted.unwrap_or_else(|| self.p.types.var(Class::Float)),
        }
    }

    fn suffix_ty(&mut self, suffix: Suffix) -> Ty {
        self.prim(match suffix {
            Suffix::I8 => Prim::I8,
            Suffix::I16 => Prim::I16,
            Suffix::I32 => Prim::I32,
            Suffix::I64 => Prim::I64,
            Suffix::U8 => Prim::U8,
            Suffix::U16 => Prim::U16,
            Suffix::U32 => Prim::U32,
            Suffix::U64 => Prim::U64,
            Suffix::F16 => Prim::F16,
            Suffix::F32 => Prim::F32,
            Suffix::F64 => Prim::F64,
        })
    }

    /// The type of a path's value. `called` says that it is applied at once.
    pub(super) fn path_expr(&mut self, e: ExprId, path: &'a ast::Path, called: bool, expected: Option<Ty>) -> Ty {
        let name = &path.names[path.names.len() - 1];
        let g = self.g(e);
        let entity = match self.find(path, false) {
            Found::Entity(entity) => entity,
            Found::Of(ty, name) => return self.of_type(g, ty, name, path),
            Found::OfTrait(id, name) => return self.of_trait(g, id, name, path),
        };
        self.p.resolved.insert(g, entity);
        if let (Some(args), Entity::Error) = (&path.type_args, entity) {
            args.iter().for_each(|arg| {
                self.ty(*arg);
            });
        }
        match entity {
            Entity::Error => TypeTable::ERROR,
            Entity::Local(id) => {
                let ty = self.use_local(id, name.span, called);
                self.value_of(g, ty, path, expected, "a variable")
            }
            Entity::Static(id) => {
                let ty = self.p.statics[id.0 as usize].ty;
                self.value_of(g, ty, path, expected, "a static")
            }
            Entity::Fn(id) => self.use_fn(g, id, path, called, expected),
            Entity::Option(id, i) => {
                let info = &self.p.enums[id.0 as usize];
                let (generics, n_outer) = (info.generics.clone(), info.n_outer);
                let given = self.option_args(path);
                let args = self.type_args(&generics, n_outer, given, path.span, Arity::Open, &name.text);
                self.option_value(g, id, i, args)
            }
            Entity::Type(param) if let Some(prim) = self.const_param(param) => {
                if path.type_args.is_some() {
                    self.report(not_generic::error(path.span, &short(&name.text), "a constant"));
                } else if self.ctx.static_floor.is_some() {
                    self.not_constant(name.span);
                }
                self.prim(prim)
            }
            _ => {
                let fields: Option<Vec<&str>> = match entity {
                    Entity::Struct(id) => Some(self.p.structs[id.0 as usize].fields.iter().map(|f| f.0).collect()),
                    _ => None,
                };
                let what = match entity {
                    Entity::Trait(_) => "a trait",
                    Entity::Module(_) => "a module",
                    _ => "a type",
                };
                self.report(not_a_value::error(name.span, &short(&name.text), what, fields.as_deref()));
                TypeTable::ERROR
            }
        }
    }

    /// The value `E::A`, the function `E::B`.
    pub(super) fn option_value(&mut self, g: GlobalExpr, id: EnumId, i: u32, args: Arc<[Ty]>) -> Ty {
        self.p.resolved.insert(g, Entity::Option(id, i));
        let parts = self.option_parts(id, i, &args);
        let ty = self.p.types.mk(Kind::Enum(id, args));
        let has_parts = !self.p.enums[id.0 as usize].ast.options[i as usize].parts.is_empty();
        if has_parts { self.p.types.func(&parts, ty) } else { ty }
    }

    /// The types of an option's parts.
    pub(super) fn option_parts(&mut self, id: EnumId, i: u32, args: &[Ty]) -> Vec<Ty> {
        let info = &self.p.enums[id.0 as usize];
        let (generics, parts) = (info.generics.clone(), info.options.get(i as usize).cloned().unwrap_or_default());
        parts.into_iter().map(|p| self.p.types.instantiate(p, &generics, args)).collect()
    }

    /// Instantiates a value of a generic function type, unless a generic function is expected.
    fn value_of(&mut self, g: GlobalExpr, ty: Ty, path: &'a ast::Path, expected: Option<Ty>, what: &'static str) -> Ty {
        let is_generic = matches!(self.p.types.kind(ty), Kind::Generic(..));
        if !is_generic {
            if path.type_args.is_some() {
                let name = &path.names[path.names.len() - 1];
                self.report(not_generic::error(path.span, &short(&name.text), what));
                return TypeTable::ERROR;
            }
            return ty;
        }
        let wants_generic = expected.is_some_and(|t| matches!(self.p.types.kind(t), Kind::Generic(..)));
        if wants_generic && path.type_args.is_none() {
            return ty;
        }
        self.instantiate_value(g, ty, path.type_args.as_deref(), path.span)
    }

    /// The function type of an instance of a generic value.
    pub(super) fn instantiate_value(
        &mut self,
        g: GlobalExpr,
        ty: Ty,
        given: Option<&'a [ast::TypeId]>,
        span: Span,
    ) -> Ty {
        let Kind::Generic(params, _) = self.p.types.kind(ty) else { return ty };
        let mut args = Vec::with_capacity(params.len());
        for arg in given.unwrap_or(&[]) {
            args.push(self.value_ty(*arg));
        }
        if args.len() > params.len() {
            self.report(wrong_number_of_arguments::type_arguments(span, args.len(), params.len(), false, None));
            args.truncate(params.len());
        }
        while args.len() < params.len() {
            let ty = self.var();
            self.unit.check_later(Final::Known { ty, span, what: "this type argument" });
            args.push(ty);
        }
        let (bounds, body) = self.p.types.open(ty, &args);
        for (&arg, bounds) in args.iter().zip(bounds) {
            for bound in bounds {
                self.require(span, arg, bound);
            }
        }
        self.p.instantiated.insert(g, args);
        body
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
        let (ty, declared_in) = (local.ty, local.blocks);
        if self.ctx.deferred_in.is_some_and(|blocks| declared_in <= blocks)
            && let Kind::Fn(_, result) = self.p.types.kind(ty)
            && self.p.types.is_never(result)
        {
            let name = short(&self.p.local(id).name);
            self.report(leaves_defer::error(span, &name));
            return TypeTable::ERROR;
        }
        let local = self.p.local(id);
        if outside && local.declared != Declared::Implicit {
            self.bodies.note_shared(owner, id);
        }
        if self.ctx.static_floor.is_some_and(|floor| self.p.local(id).owner < floor) {
            self.not_constant(span);
            return TypeTable::ERROR;
        }
        if self.ctx.method_floor.is_some_and(|floor| self.p.local(id).owner < floor) {
            let hint = "pass it to the method as an argument, or keep it in a field";
            self.limitation(span, "variables of the function around an `impl` in its methods", hint);
            return TypeTable::ERROR;
        }
        // A lambda in a function captures the function's variables by itself; that is no capture by the function.
        if outside
            && let Some(function) = self.ctx.function
            && self.bodies.function(self.p.local(id).owner) != Some(function)
        {
            self.uses.captures.push((function, id));
        }
        ty
    }

    fn use_fn(&mut self, g: GlobalExpr, id: FnId, path: &'a ast::Path, called: bool, expected: Option<Ty>) -> Ty {
        let info = &self.p.fns[id.0 as usize];
        let (generics, n_outer, top_level) = (info.generics.clone(), info.n_outer, info.top_level);
        if self.ctx.function != Some(id) && self.at.module >= self.p.n_libraries {
            self.uses.fns.insert(id);
        }
        if !top_level && self.ctx.static_floor.is_some() && self.p.fns[id.0 as usize].ast.body.is_some() {
            self.limitation(path.span, "nested functions in statics", "put the function outside of the other one");
            return TypeTable::ERROR;
        }
        if !top_level {
            let known = LocalId(self.p.locals.len() as u32);
            self.uses.nested.push(order::NestedUse { user: self.ctx.function, used: id, known, span: path.span });
        }
        let wants_generic = expected.is_some_and(|t| matches!(self.p.types.kind(t), Kind::Generic(..)));
        if wants_generic && !called && generics.len() > n_outer && path.type_args.is_none() {
            let ty = self.p.fns[id.0 as usize].ty;
            return self.generic_ty(&generics[n_outer..], ty);
        }
        let outer = generics[..n_outer].iter().map(|p| self.p.types.mk(Kind::Param(*p))).collect();
        self.fn_instance(g, id, outer, path.type_args.as_deref(), path.span)
    }

    fn struct_expr(
        &mut self,
        path: &'a ast::Path,
        fields: &'a [(Name, ExprId)],
        base: Option<ExprId>,
        expected: Option<Ty>,
    ) -> Ty {
        let Some((id, args)) = self.struct_of(path, expected) else {
            for e in fields.iter().map(|f| f.1).chain(base) {
                self.operand(e, None);
            }
            return TypeTable::ERROR;
        };
        let tys = self.field_tys(id, &args);
        let mut given: FxHashMap<u32, Span> = FxHashMap::default();
        for (name, e) in fields {
            let Some(&idx) = self.p.structs[id.0 as usize].index.get(&*name.text) else {
                self.no_such_field(id, name);
                self.operand(*e, None);
                continue;
            };
            self.check_field_access(id, idx, name.span, self.at.ns);
            let declared = self.p.structs[id.0 as usize].ast.fields[idx as usize].name.span;
            self.operand_to(*e, tys[idx as usize], Why(Some((declared, "the field's type"))));
            if let Some(first) = given.insert(idx, name.span) {
                self.report(duplicate_field::error(name.span, &short(&name.text), first));
            }
        }
        let missing = self.missing_fields(id, &given);
        let declared = self.p.structs[id.0 as usize].ast.name.span;
        let ty = self.p.types.mk(Kind::Struct(id, args));
        match base {
            Some(base) => {
                self.operand_to(base, ty, Why(Some((path.span, "the struct of which fields are taken"))));
                if missing.is_empty() && given.len() == fields.len() {
                    self.report(useless_base::warning(self.ast()[base].span));
                }
            }
            None if !missing.is_empty() && given.len() == fields.len() => {
                self.report(missing_field::error(path.span, &missing, declared));
            }
            None => {}
        }
        ty
    }

    /// The struct that a literal or pattern names. Omitted type arguments are open.
    pub(super) fn struct_of(&mut self, path: &'a ast::Path, expected: Option<Ty>) -> Option<(StructId, Arc<[Ty]>)> {
        let name = &path.names[path.names.len() - 1];
        let entity = match (&path.names[..], path.root) {
            ([name], false) => self.resolve(name, true),
            _ => match self.find(path, true) {
                Found::Entity(entity) => entity,
                Found::Of(..) | Found::OfTrait(..) => Entity::Module(self.at.ns),
            },
        };
        match entity {
            Entity::Error => return None,
            Entity::Struct(_) | Entity::Alias(_) | Entity::Type(_) => {
                let ty = self.named_ty(entity, path.type_args.as_deref(), name, Arity::Open);
                match self.p.types.kind(ty) {
                    Kind::Struct(id, args) => {
                        // The expected type arguments help with literals.
                        if let Some(Kind::Struct(other, wanted)) = expected.map(|t| self.p.types.kind(t))
                            && id == other
                        {
                            for (a, b) in args.iter().zip(wanted.iter()) {
                                if self.p.types.as_var(*a).is_some() {
                                    self.p.types.unify(*a, *b);
                                }
                            }
                        }
                        return Some((id, args));
                    }
                    Kind::Error => return None,
                    _ => {}
                }
            }
            _ => {}
        }
        self.report(not_a_struct::error(name.span, &short(&name.text)));
        None
    }

    /// The names of some of the missing fields.
    pub(super) fn missing_fields(&self, id: StructId, given: &FxHashMap<u32, Span>) -> Vec<String> {
        let fields = self.p.structs[id.0 as usize].fields.iter().enumerate();
        fields.filter(|(i, _)| !given.contains_key(&(*i as u32))).map(|(_, f)| short(f.0)).take(5).collect()
    }

    /// The types of the fields of a struct with these type arguments.
    pub(super) fn field_tys(&mut self, id: StructId, args: &[Ty]) -> Vec<Ty> {
        let info = &self.p.structs[id.0 as usize];
        let generics = info.generics.clone();
        let tys: Vec<Ty> = info.fields.iter().map(|f| f.1).collect();
        tys.into_iter().map(|t| self.p.types.instantiate(t, &generics, args)).collect()
    }

    /// Reports access to a `priv` field outside of its struct's module.
    pub(super) fn check_field_access(&mut self, id: StructId, idx: u32, span: Span, from: NsId) {
        self.note(span, Symbol::Field(id, idx));
        let info = &self.p.structs[id.0 as usize];
        if info.ast.fields[idx as usize].private && !self.namespaces.is_inside(from, info.ns) {
            let name = short(info.fields[idx as usize].0);
            self.report(private_name::error(span, &name));
        }
    }

    pub(super) fn no_such_field(&mut self, id: StructId, name: &Name) {
        let info = &self.p.structs[id.0 as usize];
        let fields: Vec<&str> = info.fields.iter().map(|f| f.0).collect();
        let similar = closest(&name.text, fields.iter().copied());
        let mut seen = FxHashSet::default();
        let fields: Vec<&str> = fields.into_iter().filter(|f| seen.insert(*f)).collect();
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

    /// The common type of all parts: that of the first part if none is expected.
    fn elements(&mut self, parts: &'a [ExprId], mut elem: Option<Ty>, what: &'static str, span: Span) -> Ty {
        for part in parts {
            match elem {
                Some(ty) => self.operand_to(*part, ty, NO_WHY),
                None => elem = Some(self.operand(*part, None)),
            }
        }
        let elem = elem.unwrap_or_else(|| self.var());
        if parts.is_empty() {
            self.unit.check_later(Final::Known { ty: elem, span, what });
        }
        elem
    }

    fn array_expr(&mut self, parts: &'a [ExprId], expected: Option<Ty>, span: Span) -> Ty {
        let elem = self.elem_hint(expected);
        let elem = self.elements(parts, elem, "the elements of this array", span);
        self.p.types.array(elem, parts.len() as u64)
    }

    fn unary(&mut self, e: ExprId, op: UnaryOp, inner: ExprId, expected: Option<Ty>) -> Ty {
        let ast = self.ast();
        let span = ast[e].span;
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
                if op == UnaryOp::Neg
                    && let Some(result) = self.unary_by_trait(e, ty)
                {
                    return result;
                }
                self.p.types.make_number(ty);
                self.unit.check_later(Final::Operand { op: op.text(), want: Want::Number, ty, span });
                ty
            }
            UnaryOp::Not => {
                let ty = self.operand(inner, expected);
                if let Some(result) = self.unary_by_trait(e, ty) {
                    return result;
                }
                self.unit.check_later(Final::Operand { op: "!", want: Want::IntegerOrBool, ty, span });
                ty
            }
            UnaryOp::Deref => {
                let base = self.operand(inner, None);
                let result = self.var();
                self.deref(span, base, result);
                self.p.types.shallow(result)
            }
            UnaryOp::Own => {
                if let ExprKind::DynArray(n, elem) = &ast[inner].kind {
                    let ty = self.dyn_array(*n, *elem);
                    let g = self.g(inner);
                    self.p.expr_ty[g as usize] = ty;
                    return self.p.types.ptr(Access::Owned, ty);
                }
                let hint = match expected.map(|t| self.p.types.kind(t)) {
                    Some(Kind::Ptr { to, .. }) => Some(to),
                    _ => None,
                };
                let ty = self.operand(inner, hint);
                self.unit.check_later(Final::Value { ty, span });
                self.p.types.ptr(Access::Owned, ty)
            }
            UnaryOp::Known => {
                self.operand(inner, None);
                self.warn_known(inner, span);
                self.prim(Prim::Bool)
            }
            UnaryOp::Halt => {
                let is_call = matches!(ast[inner].kind, ExprKind::Call { .. });
                if is_call { self.expr(inner, expected) } else { self.operand(inner, expected) }
            }
            UnaryOp::Unfold | UnaryOp::Run => self.expr(inner, expected),
        }
    }

    pub(super) fn asker(&self) -> Asker {
        Asker { ns: self.at.ns, looped: self.ctx.current_loop }
    }

    /// `[n: T]`, which stands behind `~` only.
    fn dyn_array(&mut self, n: ExprId, elem: ast::TypeId) -> Ty {
        let ty = self.operand(n, None);
        self.p.types.make_number(ty);
        self.unit.check_later(Final::Operand { op: "a length", want: Want::Integer, ty, span: self.ast()[n].span });
        let elem = self.value_ty(elem);
        self.p.types.mk(Kind::Indef(elem))
    }

    fn simd_expr(&mut self, parts: &'a [ExprId], expected: Option<Ty>, span: Span) -> Ty {
        let elem = match expected.map(|t| self.p.types.kind(t)) {
            Some(Kind::Simd(elem, _)) if self.p.types.as_var(elem).is_none() => Some(elem),
            _ => None,
        };
        let elem = self.elements(parts, elem, "the lanes of this vector", span);
        if !parts.is_empty() {
            self.unit.check_later(Final::Operand { op: "`simd`", want: Want::Lane, ty: elem, span });
        }
        let n = self.p.types.int(parts.len() as u64);
        self.p.types.mk(Kind::Simd(elem, n))
    }

    fn asm_expr(&mut self, asm: &'a ast::Asm) -> Ty {
        for (constraint, e) in &asm.outs {
            let (ty, span) = (self.operand(*e, None), self.ast()[*e].span);
            if !constraint.starts_with(['=', '+']) {
                let hint = "an output begins with `=`, as in `\"=r\"(x)`";
                self.report(bad_asm::constraint(span, constraint, hint));
            } else if constraint.starts_with('+') {
                let hint = "write the operand twice: as an output `\"=r\"(x)`, and as the input `\"0\"(x)`";
                self.report(bad_asm::constraint(span, constraint, hint));
            }
            self.unit.check_later(Final::Operand { op: "`asm`", want: Want::Register, ty, span });
            if constraint.contains('*') {
                self.need_place(*e, Need::MutAddress, span);
            } else {
                self.assignable(*e, span);
            }
        }
        for (constraint, e) in &asm.ins {
            let (ty, span) = (self.operand(*e, None), self.ast()[*e].span);
            if constraint.starts_with(['=', '+']) {
                let hint = "an input has no `=`: outputs stand before the second colon";
                self.report(bad_asm::constraint(span, constraint, hint));
            }
            self.unit.check_later(Final::Operand { op: "`asm`", want: Want::Register, ty, span });
        }
        for (option, span) in &asm.options {
            if !matches!(&**option, "volatile" | "alignstack" | "intel") {
                self.report(bad_asm::option(*span, option));
            }
        }
        TypeTable::UNIT
    }

    /// Whether `()` is not a value of this type.
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

    pub(super) fn arm(&mut self, e: ExprId, common: &mut Common) {
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
        // If both are pointers, the common type is that of the pointer that allows less.
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
        self.scopes.open();
        let span = self.ast()[e].span;
        let cont = self.p.types.cont(TypeTable::UNIT);
        for (name, is_break) in [("break", true), ("continue", false)] {
            let local = self.implicit(name, span, cont);
            self.p.locals[local.0 as usize].loop_cont = Some((id, is_break));
            let looped = &mut self.p.loops[id.0 as usize];
            *(if is_break { &mut looped.break_local } else { &mut looped.continue_local }) = Some(local);
        }
        self.expr_to(body, TypeTable::UNIT, NO_WHY);
        self.scopes.close();
        self.ctx.current_loop = old;
        TypeTable::UNIT
    }
}

/// The common type of branches.
pub(super) struct Common {
    pub ty: Option<Ty>,
    /// Whether the context determines it.
    pub fixed: bool,
    pub all_never: bool,
    /// Branches with a value so far, and their types.
    pub arms: Vec<(ExprId, Ty)>,
}
