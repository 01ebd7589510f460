//! Structs, enums, patterns and `match`.
//!
//! An enum is a struct of the option's number and the parts. Parts of different options share a field where they have
//! one type, so that `enum E { A(i32), B(i32, f32) }` is `struct { tag: i32, i32, f32 }`. So partial evaluation knows
//! option and parts separately.

use super::control::End;
use super::*;
use nyala_syntax::ast::Arm;

impl Lowerer<'_, '_, '_> {
    /// Declares the struct of the graph for a struct or enum.
    pub(super) fn declare_aggregate(&mut self, ty: Ty) -> ir::Ty {
        let p = self.p;
        let (name, params, args) = match self.kind(ty) {
            Kind::Struct(id, args) => (&p.structs[id.0 as usize].ast.name, &p.structs[id.0 as usize].generics, args),
            Kind::Enum(id, args) => (&p.enums[id.0 as usize].ast.name, &p.enums[id.0 as usize].generics, args),
            _ => return self.w.types.unit(),
        };
        let (has_args, span) = (!args.is_empty(), name.span);
        if self.has_bad_constant(params, &args, span) {
            return self.w.types.unit();
        }
        let name = self.instance_name(&name.text, params, &args);
        if has_args && self.types.is_deep(ty) {
            let shown = self.types.show(ty, p);
            if self.deep_types.insert(name.clone()) {
                self.sink.push(polymorphic_recursion::of_type(span, &short(&shown)));
            }
            return self.w.types.unit();
        }
        if has_args && self.too_many_instances(ty, span) {
            return self.w.types.unit();
        }
        let n = self.struct_names.entry(name.clone()).or_insert(0u32);
        *n += 1;
        let name = match *n {
            1 => name,
            n => format!("{name}.{}", n - 1),
        };
        let (ir_id, t) = self.w.types.declare_struct(&name);
        if self.tys.len() <= ty.0 as usize {
            self.tys.resize(ty.0 as usize + 1, None);
        }
        self.tys[ty.0 as usize] = Some(t);
        // Types that mention each other form long chains. Their fields are set one type after the other, not
        // recursively.
        self.fields_missing.push((ty, ir_id));
        if self.fields_missing.len() == 1 {
            let mut next = 0;
            while let Some(&(ty, ir_id)) = self.fields_missing.get(next) {
                next += 1;
                let fields = self.fields(ty);
                self.w.types.set_fields(ir_id, fields);
            }
            self.fields_missing.clear();
        }
        t
    }

    fn fields(&mut self, ty: Ty) -> Vec<(String, ir::Ty)> {
        let p = self.p;
        match self.kind(ty) {
            Kind::Struct(id, args) => {
                let info = &p.structs[id.0 as usize];
                let mut out = Vec::with_capacity(info.fields.len());
                for (name, ty) in &info.fields {
                    let ty = self.types.instantiate(*ty, &info.generics, &args);
                    out.push((name.to_string(), self.ir_ty(ty)));
                }
                out
            }
            Kind::Enum(id, args) => {
                let mut out = vec![("tag".to_string(), self.w.types.i32())];
                let mut layout = Vec::new();
                for i in 0..p.enums[id.0 as usize].options.len() {
                    let mut places: Vec<u64> = Vec::new();
                    for part in self.option_parts(id, i as u32, &args) {
                        let part = self.ir_ty(part);
                        let free = (1..out.len()).find(|j| out[*j].1 == part && !places.contains(&(*j as u64)));
                        let place = free.unwrap_or_else(|| {
                            out.push((format!("part{}", out.len() - 1), part));
                            out.len() - 1
                        });
                        places.push(place as u64);
                    }
                    layout.push(places);
                }
                self.layouts.insert(ty, layout.into());
                out
            }
            _ => Vec::new(),
        }
    }

    fn option_parts(&mut self, id: EnumId, i: u32, args: &[Ty]) -> Vec<Ty> {
        let info = &self.p.enums[id.0 as usize];
        let parts = info.options.get(i as usize).map_or(&[][..], |p| p);
        parts.iter().map(|t| self.types.instantiate(*t, &info.generics, args)).collect()
    }

    /// The fields that hold the parts of the enum's option `i`.
    fn places(&mut self, ty: Ty, i: u32) -> Vec<u64> {
        self.ir_ty(ty);
        self.layouts.get(&ty).and_then(|l| l.get(i as usize)).cloned().unwrap_or_default()
    }

    /// The value of an option with these parts.
    pub(super) fn option_val(&mut self, ty: Ty, i: u32, parts: &[Val]) -> Val {
        let ir_ty = self.ir_ty(ty);
        let places = self.places(ty, i);
        let n = self.w.types.n_parts(ir_ty).unwrap_or(0);
        let mut vals = Vec::with_capacity(n as usize);
        for field in 0..n {
            let val = match places.iter().position(|p| *p == field).and_then(|j| parts.get(j)) {
                Some(&part) => part,
                None if field == 0 => self.w.lit_prim(ir::Prim::I32, i.into()),
                None => {
                    let part_ty = self.w.types.part(ir_ty, field).unwrap_or(self.w.types.unit());
                    self.w.undef(part_ty)
                }
            };
            vals.push(val);
        }
        self.w.op_ty(Op::Struct, ir_ty, &vals)
    }

    /// The function that makes an option from its parts.
    pub(super) fn option_fn(&mut self, fn_ty: Ty, i: u32) -> Val {
        let ir_ty = self.ir_ty(fn_ty);
        let Kind::Fn(params, result) = self.kind(fn_ty) else { return self.w.undef(ir_ty) };
        let k = self.w.declare("option", ir_ty, &["m"]);
        self.w.cont_mut(k).filter.all = Some(self.w.lit_bool(true));
        let all: Vec<Val> = self.w.params(k).to_vec();
        let val = self.option_val(result, i, &all[1..=params.len()]);
        let ret = all[all.len() - 1];
        self.w.define(k, ret, &[all[0], val]);
        self.w.cont_val(k)
    }

    // Patterns.

    fn option_at(&self, pattern: &Pattern) -> Option<u32> {
        self.p.patterns.get(&(pattern.span.file, pattern.span.lo, pattern.span.hi)).copied()
    }

    /// Declares the names of a pattern, with the parts of `val`, which matches it. In filters, variables are always
    /// values.
    pub(super) fn bind_pattern(&mut self, pattern: &Pattern, ty: Ty, val: Val, in_filter: bool) {
        match &pattern.kind {
            PatternKind::Unnamed | PatternKind::Literal(_) => {}
            PatternKind::Name { name, .. } => {
                if let Some(id) = self.p.local_at(name.span)
                    && self.option_at(pattern).is_none()
                {
                    if in_filter {
                        self.set_var(id, Var { val: Some(val), ptr: None });
                    } else {
                        self.bind(id, val);
                    }
                }
            }
            PatternKind::Tuple(_) | PatternKind::Option { .. } | PatternKind::Struct { .. } => {
                for (part, part_ty, part_val) in self.take_apart(pattern, ty, val) {
                    self.bind_pattern(part, part_ty, part_val, in_filter);
                }
            }
        }
    }

    /// The parts of a pattern, with the values that they are matched against.
    fn take_apart<'q>(&mut self, pattern: &'q Pattern, ty: Ty, val: Val) -> Vec<(&'q Pattern, Ty, Val)> {
        let p = self.p;
        let mut out = Vec::new();
        match (&pattern.kind, self.kind(ty)) {
            (PatternKind::Tuple(parts), Kind::Tuple(tys)) => {
                for (i, (part, ty)) in parts.iter().zip(tys.iter()).enumerate() {
                    out.push((part, *ty, self.w.extract(val, i as u64)));
                }
            }
            (PatternKind::Option { parts, .. }, Kind::Enum(id, args)) => {
                let Some(i) = self.option_at(pattern) else { return out };
                let (tys, places) = (self.option_parts(id, i, &args), self.places(ty, i));
                for ((part, ty), place) in parts.iter().flatten().zip(tys).zip(places) {
                    out.push((part, ty, self.w.extract(val, place)));
                }
            }
            (PatternKind::Struct { fields, .. }, Kind::Struct(id, args)) => {
                let info = &p.structs[id.0 as usize];
                for (name, part) in fields {
                    if let Some(&idx) = info.index.get(&*name.text) {
                        let ty = self.types.instantiate(info.fields[idx as usize].1, &info.generics, &args);
                        out.push((part, ty, self.w.extract(val, idx.into())));
                    }
                }
            }
            _ => {}
        }
        out
    }

    /// Goes on if `val` matches the pattern, and goes to `otherwise` if not. Returns whether it may not match.
    fn test_pattern(&mut self, pattern: &Pattern, ty: Ty, val: Val, otherwise: Cont) -> bool {
        let mut may_fail = false;
        let cond = match &pattern.kind {
            PatternKind::Literal(e) => {
                let literal = self.value(*e);
                Some(self.w.op(Op::Eq, &[val, literal]))
            }
            _ => match (self.option_at(pattern), self.kind(ty)) {
                (Some(i), Kind::Enum(id, _)) if self.p.enums[id.0 as usize].options.len() > 1 => {
                    let tag = self.w.extract(val, 0);
                    let wanted = self.w.lit_prim(ir::Prim::I32, i.into());
                    Some(self.w.op(Op::Eq, &[tag, wanted]))
                }
                _ => None,
            },
        };
        if let Some(cond) = cond {
            let fits = self.block("fits");
            self.branch(cond, fits, otherwise);
            self.go_on_in(fits);
            may_fail = true;
        }
        for (part, part_ty, part_val) in self.take_apart(pattern, ty, val) {
            may_fail |= self.test_pattern(part, part_ty, part_val, otherwise);
        }
        may_fail
    }

    /// Lowers the arms of a `match`, each with `body`, which leaves its end open or calls another continuation itself.
    pub(super) fn match_arms(
        &mut self,
        e: ExprId,
        scrutinee: ExprId,
        arms: &[Arm],
        body: &mut dyn FnMut(&mut Self, ExprId, usize),
    ) {
        let ty = self.adjusted_ty(scrutinee);
        let val = self.value(scrutinee);
        if !self.alive() {
            return;
        }
        let mark = self.log.len();
        let exhaustive = self.p.exhaustive.contains(&self.g(e));
        for (i, arm) in arms.iter().enumerate() {
            let next = self.block("next");
            let is_last = exhaustive && i + 1 == arms.len();
            let may_fail = !is_last && self.test_pattern(&arm.pattern, ty, val, next);
            let mut fails: Vec<End> = Vec::new();
            if may_fail {
                let cur = self.cur.take();
                self.go_on_in(next);
                let unit = self.w.unit();
                self.close_end(mark, unit, &mut fails);
                self.cur = cur;
            }
            self.bind_pattern(&arm.pattern, ty, val, false);
            if let Some(guard) = arm.guard {
                let cond = self.value(guard);
                if self.alive() {
                    let (then, otherwise) = (self.block("guarded"), self.block("passed"));
                    self.branch(cond, then, otherwise);
                    self.go_on_in(otherwise);
                    let unit = self.w.unit();
                    self.close_end(mark, unit, &mut fails);
                    self.go_on_in(then);
                }
            }
            if self.alive() {
                body(self, arm.body, mark);
            }
            self.rollback(mark);
            if fails.is_empty() {
                self.cur = None;
                return;
            }
            self.join(fails, TypeTable::UNIT);
        }
        // No value gets here.
        self.end_unreachable();
        self.rollback(mark);
    }

    pub(super) fn match_value(&mut self, e: ExprId, scrutinee: ExprId, arms: &[Arm]) -> Val {
        let ty = self.ty_of(e);
        if self.mode != Mode::Code {
            self.mem(self.ast()[e].span);
            return self.undef(ty);
        }
        let mut ends = Vec::new();
        self.match_arms(e, scrutinee, arms, &mut |l, body, mark| {
            let val = l.value(body);
            l.close_end(mark, val, &mut ends);
        });
        self.join(ends, ty)
    }
}
