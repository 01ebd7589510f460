//! Instances: functions with types for their type parameters, made on demand. Also selects the impl of a trait's method
//! for given types.
//!
//! A generic function as a value (`f: fn[A](A) -> A`) is the tuple of its instances for all types that values of this
//! generic type are used with anywhere in the program. If lowering meets a use that the tuple lacks, it notes that use,
//! and everything is lowered again ([`Demands`]).

use super::*;
use crate::intrinsics;
use crate::types::TraitRef;
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on the instances of one function that need each other.
const MAX_NESTED: usize = 64;

/// The limit where only constants differ, which do not grow as types do.
const MAX_NESTED_CONSTANTS: usize = 1000;

/// Limit on the instances of all generic functions and types.
const MAX_INSTANCES: usize = 100_000;

/// The types that values of each generic function type are used with.
pub(super) type Demands = FxHashMap<Ty, Vec<Arc<[Ty]>>>;

#[derive(Default)]
pub(super) struct Instances {
    /// Functions of modules that are still to be lowered.
    queue: Vec<InstanceKey>,
    /// The instance that first needed each instance.
    parents: FxHashMap<InstanceKey, Option<InstanceKey>>,
    current: Option<InstanceKey>,
    /// Instances of nested functions whose definition has not been reached.
    waiting: FxHashMap<FnId, Vec<InstanceKey>>,
    /// Nested functions whose definition has been reached, with the type arguments of the enclosing functions.
    reached: FxHashSet<InstanceKey>,
    /// The arguments of impls for types; `None` if the impl does not apply to the type.
    args_of_impls: FxHashMap<(ImplId, Ty), Option<Vec<Ty>>>,
    /// The number of instances of generic functions and types.
    made: usize,
}

impl Lowerer<'_, '_, '_> {
    /// The type, with the type parameters replaced as in the current instance.
    pub(super) fn mono(&mut self, ty: Ty) -> Ty {
        if !self.types.has_param(ty) {
            return ty;
        }
        if let Some(&done) = self.env.memo.get(&ty) {
            return done;
        }
        let (params, args) = (self.env.params.clone(), self.env.args.clone());
        let done = self.types.instantiate(ty, &params, &args);
        self.env.memo.insert(ty, done);
        done
    }

    pub(super) fn mono_all(&mut self, tys: &[Ty]) -> Arc<[Ty]> {
        tys.iter().map(|t| self.mono(*t)).collect()
    }

    /// The type arguments of the function that the expression names.
    pub(super) fn args_of(&mut self, g: GlobalExpr) -> Arc<[Ty]> {
        match self.p.type_args.get(&g) {
            Some(args) => self.mono_all(args),
            None => Arc::new([]),
        }
    }

    /// The instance as a value.
    pub(super) fn fn_val(&mut self, id: FnId, args: Arc<[Ty]>, span: Span) -> Val {
        let (id, args) = self.implementation(id, args);
        let key = (id, args);
        if let Some(&val) = self.fn_vals.get(&key) {
            return val;
        }
        let p = self.p;
        let info = &p.fns[id.0 as usize];
        let old_env = self.enter_env(&info.generics, &key.1);
        let fn_ty = self.mono(info.ty);
        if self.has_bad_constant(&info.generics, &key.1, span) {
            let ty = self.ir_ty(fn_ty);
            self.env = old_env;
            return self.w.undef(ty);
        }
        if !info.generics.is_empty()
            && let Some(limit) = self.exceeds_nesting(&key)
        {
            let name = &info.ast.name.text;
            let constants = info.generics.iter().any(|g| p.type_params[g.0 as usize].constant.is_some());
            let shown = match constants {
                true => self.show_instance(name, &key.1),
                false => self.types.show(fn_ty, p),
            };
            self.sink.push(polymorphic_recursion::of_function(span, &short(name), &shown, limit, constants));
            let ty = self.ir_ty(fn_ty);
            self.env = old_env;
            return self.w.undef(ty);
        }
        if !key.1.is_empty() && info.kind == FnKind::Defined && self.too_many_instances(fn_ty, span) {
            let ty = self.ir_ty(fn_ty);
            self.env = old_env;
            return self.w.undef(ty);
        }
        let ty = self.ir_ty(fn_ty);
        let origin = self.w.current_origin();
        self.w.set_origin(info.ast.name.span);
        let is_defined = info.kind == FnKind::Defined;
        let val = match &info.kind {
            FnKind::Foreign(symbol) => {
                let k = self.w.foreign(symbol, ty);
                let foreign = self.w.cont_val(k);
                match intrinsics::of_device(symbol) {
                    Some(of_device) => self.in_kernels(id, &of_device, foreign).unwrap_or(foreign),
                    None => foreign,
                }
            }
            FnKind::Intrinsic(intrinsic) => self.intrinsic_val(id, &key.1, intrinsic),
            FnKind::Defined => {
                let name = self.instance_name(&info.ast.name.text, &info.generics, &key.1);
                let k = self.declare_fn(&name, ty, &info.ast.params);
                self.w.cont_val(k)
            }
        };
        self.w.set_origin(origin);
        self.env = old_env;
        self.fn_vals.insert(key.clone(), val);
        if is_defined {
            self.instances.parents.insert(key.clone(), self.instances.current.clone());
            if info.top_level || info.owner != FnOwner::None {
                self.instances.queue.push(key);
            } else if self.instances.reached.contains(&around(info, &key)) {
                self.lower_instance(key);
            } else {
                self.instances.waiting.entry(id).or_default().push(key);
            }
        }
        val
    }

    pub(super) fn enter_env(&mut self, params: &Arc<[ParamId]>, args: &Arc<[Ty]>) -> Env {
        if self.env.params == *params && self.env.args == *args {
            return self.env.clone();
        }
        let new = Env { params: params.clone(), args: args.clone(), memo: FxHashMap::default() };
        std::mem::replace(&mut self.env, new)
    }

    /// The limit on the instances of one function that need each other, if there are more with this one.
    fn exceeds_nesting(&self, key: &InstanceKey) -> Option<usize> {
        let mut n = 0;
        let mut limit = MAX_NESTED;
        let mut at = self.instances.current.as_ref();
        while let Some(parent) = at {
            if parent.0 == key.0 {
                if n == 0 && self.differ_in_constants(key, parent) {
                    limit = MAX_NESTED_CONSTANTS;
                }
                n += 1;
            }
            if n > limit {
                return Some(limit);
            }
            at = self.instances.parents.get(parent).and_then(|p| p.as_ref());
        }
        None
    }

    /// Whether two instances of a function have the same types, apart from constants. Nested functions are lowered where they
    /// are needed, so that their instances nest in each other.
    fn differ_in_constants(&self, a: &InstanceKey, b: &InstanceKey) -> bool {
        let info = &self.p.fns[a.0.0 as usize];
        let is_constant = |g: &ParamId| self.p.type_params[g.0 as usize].constant.is_some();
        (info.top_level || info.owner != FnOwner::None)
            && info.generics.iter().zip(a.1.iter().zip(b.1.iter())).all(|(g, (x, y))| x == y || is_constant(g))
    }

    /// Counts one more instance. Returns whether there are too many, which is reported once.
    pub(super) fn too_many_instances(&mut self, ty: Ty, span: Span) -> bool {
        self.instances.made += 1;
        if self.instances.made == MAX_INSTANCES + 1 {
            let shown = short(&self.types.show(ty, self.p));
            self.sink.push(too_many_instances::error(span, &shown, MAX_INSTANCES));
        }
        self.instances.made > MAX_INSTANCES
    }

    pub(super) fn lower_queue(&mut self) {
        let mut done = 0;
        while let Some(key) = self.instances.queue.get(done).cloned() {
            done += 1;
            if self.instances.made > MAX_INSTANCES {
                return;
            }
            self.lower_instance(key);
        }
    }

    /// Notes that the definition of a nested function is reached: from here on, the values it captures exist.
    pub(super) fn reach(&mut self, id: FnId) {
        let p = self.p;
        let info = &p.fns[id.0 as usize];
        let outer: Arc<[Ty]> = info.generics[..info.n_outer].iter().map(|p| self.param_arg(*p)).collect();
        self.instances.reached.insert((id, outer.clone()));
        let (now, later) = self
            .instances
            .waiting
            .remove(&id)
            .unwrap_or_default()
            .into_iter()
            .partition(|key: &InstanceKey| key.1[..info.n_outer] == outer[..]);
        self.instances.waiting.insert(id, later);
        let now: Vec<InstanceKey> = now;
        for key in now {
            self.lower_instance(key);
        }
        if info.generics.len() == info.n_outer {
            self.fn_val(id, outer, info.ast.name.span);
        }
    }

    /// The type argument of a type parameter in the current instance.
    fn param_arg(&self, param: ParamId) -> Ty {
        let place = self.env.params.iter().position(|p| *p == param);
        place.and_then(|i| self.env.args.get(i)).copied().unwrap_or(TypeTable::ERROR)
    }

    fn lower_instance(&mut self, key: InstanceKey) {
        let p = self.p;
        let info = &p.fns[key.0.0 as usize];
        let Some(body) = info.ast.body else { return };
        let Some(k) = self.fn_vals.get(&key).and_then(|val| self.w.as_cont(*val)) else { return };
        let module = std::mem::replace(&mut self.module, info.module);
        let old_env = self.enter_env(&info.generics, &key.1);
        let old_current = self.instances.current.replace(key);
        let old_origin = self.w.current_origin();
        let ty = self.mono(info.ty);
        let param_tys = self.mono_all(&info.param_tys);
        let def = Def {
            k,
            ty,
            params: &info.ast.params,
            param_tys: &param_tys,
            filter: info.ast.filter,
            return_local: info.return_local,
            body,
        };
        // The blocks of the body have their own marks.
        let old_marks = self.set_marks(Marks::default());
        self.lower_def(def);
        self.report_fault(info.ast.name.span);
        self.set_marks(old_marks);
        self.w.set_origin(old_origin);
        self.instances.current = old_current;
        self.env = old_env;
        self.module = module;
    }

    // Generic functions as values.

    /// The instances that a value of a generic function type consists of.
    fn demanded(&self, ty: Ty) -> Vec<Arc<[Ty]>> {
        self.demands.get(&ty).cloned().unwrap_or_default()
    }

    pub(super) fn generic_ty(&mut self, ty: Ty) -> ir::Ty {
        let mut parts = Vec::new();
        for args in self.demanded(ty) {
            let (_, instance) = self.types.open(ty, &args);
            parts.push(self.ir_ty(instance));
        }
        self.w.types.tuple(&parts)
    }

    /// The instance of a generic function value for these types.
    pub(super) fn instance_of(&mut self, val: Val, ty: Ty, args: &[Ty]) -> (Val, Ty) {
        let (_, instance) = self.types.open(ty, args);
        let known = self.demands.entry(ty).or_default();
        match known.iter().position(|a| **a == *args) {
            Some(i) if self.w.types.n_parts(self.w.ty(val)).is_some_and(|n| (i as u64) < n) => {
                (self.w.extract(val, i as u64), instance)
            }
            at => {
                if at.is_none() {
                    known.push(args.into());
                }
                self.missed_instance = true;
                (self.undef(instance), instance)
            }
        }
    }

    /// The function as a value of generic type.
    pub(super) fn generic_fn(&mut self, id: FnId, ty: Ty, span: Span) -> Val {
        let info = &self.p.fns[id.0 as usize];
        let outer: Vec<Ty> = info.generics[..info.n_outer].iter().map(|p| self.param_arg(*p)).collect();
        let mut parts = Vec::new();
        for args in self.demanded(ty) {
            let all = outer.iter().chain(args.iter()).copied().collect();
            parts.push(self.fn_val(id, all, span));
        }
        self.w.op(Op::Tuple, &parts)
    }

    /// Collects the results of `instance` for each of the types that a value of generic type is used with; they replace
    /// `generics`.
    pub(super) fn for_each_instance(
        &mut self,
        ty: Ty,
        generics: &[ParamId],
        mut instance: impl FnMut(&mut Self) -> Val,
    ) -> Val {
        let mut parts = Vec::new();
        for args in self.demanded(ty) {
            let params: Arc<[ParamId]> = self.env.params.iter().chain(generics).copied().collect();
            let all: Arc<[Ty]> = self.env.args.iter().chain(args.iter()).copied().collect();
            let old = self.enter_env(&params, &all);
            parts.push(instance(self));
            self.env = old;
        }
        self.w.op(Op::Tuple, &parts)
    }

    /// Converts a generic function value to another generic type.
    pub(super) fn convert_generic(&mut self, val: Val, from: Ty, to: Ty) -> Val {
        let Kind::Generic(bounds, _) = self.kind(from) else { return val };
        let holes: Vec<ParamId> = (0..bounds.len()).map(|i| ParamId(u32::MAX - i as u32)).collect();
        let hole_tys: Vec<Ty> = holes.iter().map(|p| self.types.mk(Kind::Param(*p))).collect();
        let (_, pattern) = self.types.open(from, &hole_tys);
        let mut parts = Vec::new();
        for args in self.demanded(to) {
            let (_, wanted) = self.types.open(to, &args);
            let mut found: FxHashMap<ParamId, Ty> = holes.iter().map(|p| (*p, TypeTable::ERROR)).collect();
            self.types.may_match(pattern, wanted, &mut found);
            let own: Vec<Ty> = holes.iter().map(|p| found[p]).collect();
            let (part, part_ty) = self.instance_of(val, from, &own);
            parts.push(self.convert(part, part_ty, wanted));
        }
        self.w.op(Op::Tuple, &parts)
    }

    // Methods of traits.

    /// The function that implements a trait's method for these types. Any other function is returned as it is.
    pub(super) fn implementation(&mut self, id: FnId, args: Arc<[Ty]>) -> InstanceKey {
        let p = self.p;
        let info = &p.fns[id.0 as usize];
        let FnOwner::Trait(of) = info.owner else { return (id, args) };
        let t = &p.traits[of.0 as usize];
        let n = t.generics.len();
        let (this, trait_args) = (args[t.n_outer], &args[t.n_outer + 1..n]);
        let Some((found, impl_args)) = self.select(of, this, trait_args, 0) else { return (id, args) };
        match p.impls[found.0 as usize].methods.get(&*info.ast.name.text) {
            Some(&method) => (method, impl_args.into_iter().chain(args[n..].iter().copied()).collect()),
            None => (id, args),
        }
    }

    /// The impl of a trait for a type without parameters, and the arguments of the impl's parameters.
    fn select(&mut self, of: TraitId, ty: Ty, args: &[Ty], depth: usize) -> Option<(ImplId, Vec<Ty>)> {
        if depth > MAX_NESTED {
            return None;
        }
        let p = self.p;
        for id in p.impls_for(of, self.types.head(ty)) {
            let info = &p.impls[id.0 as usize];
            let own = info.of.as_ref()?;
            let mut holes = self.holes(id);
            if !self.types.may_match(info.ty, ty, &mut holes)
                || !own.args.iter().zip(args).all(|(x, y)| self.types.may_match(*x, *y, &mut holes))
            {
                continue;
            }
            if self.fill(&info.generics, info.n_outer, &mut holes, depth) {
                return Some((id, self.filled(&info.generics, &holes)));
            }
        }
        None
    }

    fn holes(&self, id: ImplId) -> FxHashMap<ParamId, Ty> {
        let info = &self.p.impls[id.0 as usize];
        info.generics[info.n_outer..].iter().map(|p| (*p, TypeTable::ERROR)).collect()
    }

    fn filled(&self, generics: &[ParamId], holes: &FxHashMap<ParamId, Ty>) -> Vec<Ty> {
        generics.iter().map(|p| holes.get(p).copied().unwrap_or_else(|| self.param_arg(*p))).collect()
    }

    /// Whether the bounds of an impl's parameters are met. Determines those parameters that only occur in bounds.
    fn fill(&mut self, generics: &[ParamId], first: usize, holes: &mut FxHashMap<ParamId, Ty>, depth: usize) -> bool {
        let p = self.p;
        // Parameters may depend on each other in any order: each round determines at least one more.
        for _ in first..=generics.len() {
            for param in &generics[first..] {
                let ty = holes[param];
                if ty == TypeTable::ERROR {
                    continue;
                }
                for bound in &p.type_params[param.0 as usize].bounds {
                    if !self.meets(ty, bound, holes, depth) {
                        return false;
                    }
                }
            }
            if generics[first..].iter().all(|p| holes[p] != TypeTable::ERROR) {
                return true;
            }
        }
        false
    }

    /// The arguments of an impl's parameters, if it applies to `ty`. Memoized, since types share parts.
    fn args_for(&mut self, id: ImplId, ty: Ty, depth: usize) -> Option<Vec<Ty>> {
        if let Some(known) = self.instances.args_of_impls.get(&(id, ty)) {
            return known.clone();
        }
        let info = &self.p.impls[id.0 as usize];
        let mut holes = self.holes(id);
        let fits = self.types.may_match(info.ty, ty, &mut holes)
            && self.fill(&info.generics, info.n_outer, &mut holes, depth + 1);
        let args = fits.then(|| self.filled(&info.generics, &holes));
        self.instances.args_of_impls.insert((id, ty), args.clone());
        args
    }

    /// Whether `ty` has an impl for the bound. Determines the holes in the bound.
    fn meets(&mut self, ty: Ty, bound: &TraitRef, holes: &mut FxHashMap<ParamId, Ty>, depth: usize) -> bool {
        let p = self.p;
        if p.traits[bound.id.0 as usize].lang.is_some() {
            return self.types.as_prim(ty).is_some();
        }
        if let Some(operator) = p.traits[bound.id.0 as usize].operator
            && self.has_operator(ty, operator)
        {
            let mut tried = holes.clone();
            if bound.args.iter().all(|x| self.types.may_match(*x, ty, &mut tried)) {
                *holes = tried;
                return true;
            }
        }
        if depth > MAX_NESTED {
            return false;
        }
        for id in p.impls_for(bound.id, self.types.head(ty)) {
            let info = &p.impls[id.0 as usize];
            let Some(own) = &info.of else { continue };
            let Some(inner_args) = self.args_for(id, ty, depth) else { continue };
            let mut tried = holes.clone();
            let mut fits = true;
            for (x, y) in bound.args.iter().zip(own.args.iter()) {
                let y = self.types.instantiate(*y, &info.generics, &inner_args);
                fits = fits && self.types.may_match(*x, y, &mut tried);
            }
            if fits {
                *holes = tried;
                return true;
            }
        }
        false
    }
}

/// The key of the instance of a nested function's enclosing items.
fn around(info: &FnInfo, key: &InstanceKey) -> InstanceKey {
    (key.0, key.1[..info.n_outer].into())
}
