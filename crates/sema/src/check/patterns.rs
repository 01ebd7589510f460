//! Patterns: their types, the names they bind, and `match`.

use super::exprs::Common;
use super::*;
use nyala_syntax::ast::{Arm, ExprKind, Param, Path, Pattern, PatternKind};

impl<'a> Checker<'a, '_> {
    /// The type that a pattern states; open if it states none.
    pub(super) fn pattern_ty(&mut self, pattern: &'a Pattern) -> Ty {
        let stated = pattern.ty.map(|ty| self.value_ty(ty));
        let own = match &pattern.kind {
            PatternKind::Tuple(parts) => {
                let parts: Vec<Ty> = parts.iter().map(|p| self.pattern_ty(p)).collect();
                self.p.types.tuple(&parts)
            }
            PatternKind::Unnamed => return stated.unwrap_or_else(|| self.var()),
            PatternKind::Name { mutable, name } => {
                let option = match self.option_alone(*mutable, stated.is_some(), name) {
                    Some(option) => option,
                    None => return stated.unwrap_or_else(|| self.var()),
                };
                self.note(name.span, Symbol::Option(option.0, option.1));
                self.option_pattern_ty(pattern.span, option, None, name.span, None, &[])
            }
            PatternKind::Literal(e) => self.expr(*e, stated),
            PatternKind::Option { path, parts } => self.path_pattern_ty(pattern, path, parts.as_deref()),
            PatternKind::Struct { path, fields, rest } => self.struct_pattern_ty(path, fields, *rest),
        };
        if let Some(stated) = stated {
            self.unify(pattern.span, own, stated, NO_WHY);
        }
        own
    }

    /// The option without parts that a single name means because of a `use`, if it does.
    fn option_alone(&mut self, mutable: bool, typed: bool, name: &'a Name) -> Option<(EnumId, u32)> {
        if mutable || typed || name.is_wildcard() {
            return None;
        }
        match self.lookup(&name.text) {
            Some(Entity::Option(id, i)) if self.p.enums[id.0 as usize].ast.options[i as usize].parts.is_empty() => {
                Some((id, i))
            }
            _ => None,
        }
    }

    fn path_pattern_ty(&mut self, pattern: &'a Pattern, path: &'a Path, parts: Option<&'a [Pattern]>) -> Ty {
        let name = &path.names[path.names.len() - 1];
        let (option, args) = match self.find(path, false) {
            Found::Entity(Entity::Option(id, i)) => ((id, i), None),
            Found::Of(ty, name) => match self.p.types.kind(ty) {
                Kind::Enum(id, args) if self.p.enums[id.0 as usize].index.contains_key(&*name.text) => {
                    self.note(name.span, Symbol::Option(id, self.p.enums[id.0 as usize].index[&*name.text]));
                    ((id, self.p.enums[id.0 as usize].index[&*name.text]), Some(args))
                }
                _ => {
                    self.report(bad_pattern::no_option(path.span, &short(&name.text)));
                    return self.failed_pattern(parts);
                }
            },
            Found::Entity(Entity::Error) => return self.failed_pattern(parts),
            Found::Entity(_) | Found::OfTrait(..) => {
                self.report(bad_pattern::no_option(path.span, &short(&name.text)));
                return self.failed_pattern(parts);
            }
        };
        let args = match args {
            Some(args) => Some(args),
            None => {
                let info = &self.p.enums[option.0.0 as usize];
                let (generics, n_outer) = (info.generics.clone(), info.n_outer);
                let given = self.option_args(path);
                Some(self.type_args(&generics, n_outer, given, path.span, Arity::Open, &name.text))
            }
        };
        self.option_pattern_ty(pattern.span, option, args, path.span, parts, parts.unwrap_or(&[]))
    }

    fn failed_pattern(&mut self, parts: Option<&'a [Pattern]>) -> Ty {
        for part in parts.into_iter().flatten() {
            let ty = self.pattern_ty(part);
            self.p.types.poison(ty);
        }
        TypeTable::ERROR
    }

    fn option_pattern_ty(
        &mut self,
        at: Span,
        (id, i): (EnumId, u32),
        args: Option<Arc<[Ty]>>,
        span: Span,
        given: Option<&'a [Pattern]>,
        parts: &'a [Pattern],
    ) -> Ty {
        let args = match args {
            Some(args) => args,
            None => {
                let info = &self.p.enums[id.0 as usize];
                let (generics, n_outer) = (info.generics.clone(), info.n_outer);
                self.type_args(&generics, n_outer, None, span, Arity::Open, "")
            }
        };
        self.p.patterns.insert((at.file, at.lo, at.hi), i);
        let tys = self.option_parts(id, i, &args);
        if tys.len() != parts.len() || given.is_none() && !tys.is_empty() {
            let name = &self.p.enums[id.0 as usize].ast.options[i as usize].name;
            self.report(bad_pattern::option_parts(span, &short(&name.text), parts.len(), tys.len(), name.span));
            self.failed_pattern(given);
        } else {
            for (part, ty) in parts.iter().zip(tys) {
                let part_ty = self.pattern_ty(part);
                self.unify(part.span, part_ty, ty, NO_WHY);
            }
        }
        self.p.types.mk(Kind::Enum(id, args))
    }

    fn struct_pattern_ty(&mut self, path: &'a Path, fields: &'a [(Name, Pattern)], rest: bool) -> Ty {
        let Some((id, args)) = self.struct_of(path, None) else {
            for (_, part) in fields {
                let ty = self.pattern_ty(part);
                self.p.types.poison(ty);
            }
            return TypeTable::ERROR;
        };
        let tys = self.field_tys(id, &args);
        let mut given: FxHashMap<u32, Span> = FxHashMap::default();
        for (name, part) in fields {
            let part_ty = self.pattern_ty(part);
            let Some(&idx) = self.p.structs[id.0 as usize].index.get(&*name.text) else {
                self.no_such_field(id, name);
                self.p.types.poison(part_ty);
                continue;
            };
            self.check_field_access(id, idx, name.span, self.at.ns);
            self.unify(part.span, part_ty, tys[idx as usize], NO_WHY);
            if let Some(first) = given.insert(idx, name.span) {
                self.report(duplicate_field::error(name.span, &short(&name.text), first));
            }
        }
        let missing = self.missing_fields(id, &given);
        if !missing.is_empty() && !rest && given.len() == fields.len() {
            self.report(missing_field::in_pattern(path.span, &missing));
        }
        self.p.types.mk(Kind::Struct(id, args))
    }

    /// Declares the names of a pattern that matches a value of type `ty`.
    pub(super) fn bind_pattern(&mut self, pattern: &'a Pattern, ty: Ty) {
        match &pattern.kind {
            PatternKind::Unnamed | PatternKind::Literal(_) => {}
            PatternKind::Name { mutable, name } => {
                if self.p.patterns.contains_key(&(pattern.span.file, pattern.span.lo, pattern.span.hi)) {
                    return;
                }
                self.warn_shadowed(name);
                let id = self.new_local(&name.text, name.span, ty, *mutable);
                // Lowering looks up even `_`.
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
            PatternKind::Option { parts, .. } => {
                let option = self.p.patterns.get(&(pattern.span.file, pattern.span.lo, pattern.span.hi)).copied();
                let tys = match (self.p.types.kind(ty), option) {
                    (Kind::Enum(id, args), Some(i)) => self.option_parts(id, i, &args),
                    _ => Vec::new(),
                };
                for (i, part) in parts.iter().flatten().enumerate() {
                    self.bind_pattern(part, tys.get(i).copied().unwrap_or(TypeTable::ERROR));
                }
            }
            PatternKind::Struct { fields, .. } => {
                let (id, tys) = match self.p.types.kind(ty) {
                    Kind::Struct(id, args) => (Some(id), self.field_tys(id, &args)),
                    _ => (None, Vec::new()),
                };
                for (name, part) in fields {
                    let idx = id.and_then(|id| self.p.structs[id.0 as usize].index.get(&*name.text));
                    let ty = idx.and_then(|i| tys.get(*i as usize)).copied();
                    self.bind_pattern(part, ty.unwrap_or(TypeTable::ERROR));
                }
            }
        }
    }

    /// Declares parameters. Two with one name are an error.
    pub(super) fn bind_params(&mut self, params: &'a [Param], tys: &[Ty]) {
        let first = self.p.locals.len();
        for (param, ty) in params.iter().zip(tys) {
            self.bind_pattern(&param.pattern, *ty);
            self.irrefutable(&param.pattern, *ty);
        }
        self.p.locals[first..].iter_mut().for_each(|l| l.declared = Declared::Parameter);
        self.check_names(params.iter().map(|p| &p.pattern));
    }

    /// Reports equal names in patterns that are bound together.
    pub(super) fn check_names(&mut self, patterns: impl Iterator<Item = &'a Pattern>) {
        let mut work: Vec<&'a Pattern> = patterns.collect();
        if let [Pattern { kind: PatternKind::Name { .. } | PatternKind::Unnamed, .. }] = work[..] {
            return;
        }
        work.reverse();
        let mut names: FxHashMap<&'a str, Span> = FxHashMap::default();
        while let Some(pattern) = work.pop() {
            match &pattern.kind {
                PatternKind::Unnamed | PatternKind::Literal(_) => {}
                PatternKind::Name { name, .. } => {
                    let option = (pattern.span.file, pattern.span.lo, pattern.span.hi);
                    if !name.is_wildcard()
                        && !self.p.patterns.contains_key(&option)
                        && let Some(first) = names.insert(&name.text, name.span)
                    {
                        self.report(duplicate_name::parameter(name.span, &short(&name.text), first));
                    }
                }
                PatternKind::Tuple(parts) => work.extend(parts.iter().rev()),
                PatternKind::Option { parts, .. } => work.extend(parts.iter().flatten().rev()),
                PatternKind::Struct { fields, .. } => work.extend(fields.iter().rev().map(|f| &f.1)),
            }
        }
    }

    /// Reports a pattern outside of `match` that does not match every value.
    pub(super) fn irrefutable(&mut self, pattern: &'a Pattern, ty: Ty) {
        if !matches!(pattern.kind, PatternKind::Name { .. } | PatternKind::Unnamed) {
            self.unit.check_later(Final::Irrefutable { pattern, ty, module: self.at.module });
        }
    }

    pub(super) fn match_expr(&mut self, e: ExprId, scrutinee: ExprId, arms: &'a [Arm], expected: Option<Ty>) -> Ty {
        let fixed = expected.filter(|t| self.p.types.as_var(*t).is_none());
        let mut common = Common { ty: fixed, fixed: fixed.is_some(), all_never: true, arms: Vec::new() };
        self.match_arms(e, scrutinee, arms, &mut |c, body| c.arm(body, &mut common));
        if common.all_never { TypeTable::NEVER } else { common.ty.unwrap_or(TypeTable::NEVER) }
    }

    /// A `match` as a statement: the values of its arms are dropped, whatever types they have.
    pub(super) fn match_dropped(&mut self, e: ExprId, scrutinee: ExprId, arms: &'a [Arm]) -> Ty {
        let mut all_never = true;
        self.match_arms(e, scrutinee, arms, &mut |c, body| {
            let ty = c.expr(body, None);
            all_never &= c.p.types.is_never(ty);
        });
        if all_never { TypeTable::NEVER } else { TypeTable::UNIT }
    }

    fn match_arms(&mut self, e: ExprId, scrutinee: ExprId, arms: &'a [Arm], body: &mut dyn FnMut(&mut Self, ExprId)) {
        let bool = self.prim(Prim::Bool);
        let ty = self.operand(scrutinee, None);
        let why = Why(Some((self.ast()[scrutinee].span, "what is matched")));
        for arm in arms {
            self.scopes.open();
            let pattern_ty = self.pattern_ty(&arm.pattern);
            let fits = self.unify(arm.pattern.span, pattern_ty, ty, why);
            self.bind_pattern(&arm.pattern, if fits { ty } else { TypeTable::ERROR });
            self.check_names(std::iter::once(&arm.pattern));
            if let Some(guard) = arm.guard {
                self.operand_to(guard, bool, NO_WHY);
            }
            body(self, arm.body);
            self.scopes.close();
            self.solve();
        }
        self.unit.check_later(Final::Match { module: self.at.module, e, ty });
    }

    /// The type of a literal's expression in a pattern is a number, a char or a bool.
    pub(super) fn literal_of(&self, module: usize, e: ExprId) -> Option<(bool, &'a ExprKind)> {
        let ast = self.p.modules[module];
        match &ast[e].kind {
            ExprKind::Unary(nyala_syntax::ast::UnaryOp::Neg, inner) => Some((true, &ast[*inner].kind)),
            kind => Some((false, kind)),
        }
    }
}
