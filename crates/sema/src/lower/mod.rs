//! Lowers a checked program to the graph, in continuation-passing style.
//!
//! Mutable variables that no function captures and whose address is not taken are values: a join or loop header has
//! parameters for those that differ. All others live in slots. A call in tail position passes the return continuation
//! on unchanged.

mod asserts;
mod calls;
mod consts;
mod control;
mod defer;
mod device_functions;
mod devices;
mod enums;
mod exprs;
mod instances;
mod lane_operations;
mod operators;
mod places;
mod rounding;
mod threads;
mod vectors;
mod x86_intrinsics;

use crate::diagnostics::*;
use crate::program::*;
use crate::types::{EnumId, Kind, ParamId, TraitId, Ty, TypeTable};
use nyala_base::{Diagnostic, Sink, Sources, Span};
use nyala_ir::target::Spaces;
use nyala_ir::{self as ir, Builtin, Cont, Filter, Global, Linkage, Node, Op, Val, World};
use nyala_syntax::ast::{self, ExprId, Marks, Module, Param, Pattern, PatternKind};
use std::sync::Arc;

/// How a program is lowered.
#[derive(Clone, Copy, Debug)]
pub struct Lowering {
    /// Types are laid out for a machine with these address spaces.
    pub spaces: Spaces,
    /// Signed arithmetic is modulo 2ⁿ.
    pub wrap: bool,
    /// The values of variables are named for debuggers.
    pub debug: bool,
    /// Accesses are checked: what `checks_bounds()` gives.
    pub checks_bounds: bool,
}

/// The graph of everything that exported functions and `main` reach. `None` if `sink` has errors then.
pub fn lower(program: &Program, sources: &Sources, options: Lowering, sink: &mut Sink) -> Option<World> {
    crate::on_big_stack(move || {
        let before = sink.diagnostics.len();
        let mut demands = instances::Demands::default();
        for _ in 0..MAX_ROUNDS {
            let mut lowerer = Lowerer::new(program, sources, sink, std::mem::take(&mut demands));
            (lowerer.wrap, lowerer.debug) = (options.wrap, options.debug);
            lowerer.checks_bounds = options.checks_bounds;
            lowerer.w.types.set_spaces(options.spaces);
            // The interpreter reports what is written.
            lowerer.w.keeps_faults = true;
            lowerer.run();
            if !lowerer.missed_instance {
                let mut world = lowerer.w;
                world.keeps_faults = false;
                return (!sink.has_errors()).then_some(world);
            }
            demands = lowerer.demands;
            sink.diagnostics.truncate(before);
        }
        sink.push(polymorphic_recursion::of_values(MAX_ROUNDS));
        None
    })
}

/// Limit on the rounds of lowering. Each round but the first has found more types that generic function values are used
/// with.
const MAX_ROUNDS: usize = 64;
/// Limit on the chain of statics whose initializers need each other.
const MAX_CHAIN: u32 = 10_000;

/// The storage of a variable.
#[derive(Clone, Copy, Default)]
struct Var {
    val: Option<Val>,
    ptr: Option<Val>,
}

/// The continuation that is being built, and its current memory.
#[derive(Clone, Copy)]
struct Cur {
    k: Cont,
    mem: Val,
}

#[derive(Clone, Default)]
struct LoopState {
    header: Option<Cont>,
    exit: Option<Cont>,
    vars: Vec<LocalId>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// In a function's body.
    Code,
    /// In the initializer of a static.
    Constant,
    Filter,
}

#[derive(Clone, Copy, PartialEq)]
enum InitState {
    Fresh,
    Busy,
    Done,
}

/// A function and the types of its type parameters.
type InstanceKey = (FnId, Arc<[Ty]>);

/// Type parameters and their types.
#[derive(Clone, Default)]
struct Env {
    params: Arc<[ParamId]>,
    args: Arc<[Ty]>,
    /// Memoized types, with the parameters replaced.
    memo: rustc_hash::FxHashMap<Ty, Ty>,
}

struct Lowerer<'p, 'a, 's> {
    p: &'p Program<'a>,
    /// The sources, for messages that show their text.
    sources: &'p Sources,
    w: World,
    sink: &'s mut Sink,
    module: usize,
    mode: Mode,
    /// The code being lowered is inside of `@racy`.
    is_racy: bool,
    /// The innermost block around what is lowered.
    scope: Span,
    cur: Option<Cur>,
    /// The program's types, and those of its instances.
    types: TypeTable,
    /// The type arguments of the instance that is being lowered.
    env: Env,
    tys: Vec<Option<ir::Ty>>,
    /// The number of structs with each name, as names are unique in the graph.
    struct_names: rustc_hash::FxHashMap<String, u32>,
    /// Structs and enums declared in the graph that have no fields there yet.
    fields_missing: Vec<(Ty, ir::StructId)>,
    /// Generic types that have been reported as endless.
    deep_types: rustc_hash::FxHashSet<String>,
    /// For each enum type, by option, the struct fields that hold the option's parts.
    layouts: rustc_hash::FxHashMap<Ty, Arc<[Vec<u64>]>>,
    /// The number of nested initializers of statics.
    init_depth: u32,
    /// The number of calls in the filter that is being lowered.
    filter_calls: u32,
    fn_vals: rustc_hash::FxHashMap<InstanceKey, Val>,
    instances: instances::Instances,
    demands: instances::Demands,
    /// A generic function value was used with types for which it has no instance yet.
    missed_instance: bool,
    /// Signed arithmetic is modulo 2ⁿ.
    wrap: bool,
    /// Whether the values of variables are named.
    debug: bool,
    /// Whether accesses are checked.
    checks_bounds: bool,
    /// Parameters of functions with their numbers, from 1, if they are named.
    params: rustc_hash::FxHashMap<LocalId, i32>,
    /// The variables that addresses belong to, if they are named.
    slots: rustc_hash::FxHashMap<Val, LocalId>,
    globals: Vec<Option<Global>>,
    inits: Vec<InitState>,
    vars: Vec<Var>,
    /// The earlier states of variables, for undoing changes.
    log: Vec<(LocalId, Var)>,
    in_memory: Vec<bool>,
    loops: Vec<LoopState>,
    /// The `defer { … }` that were lowered last.
    deferred: rustc_hash::FxHashMap<GlobalExpr, defer::Deferred>,
}

impl<'p, 'a, 's> Lowerer<'p, 'a, 's> {
    fn new(p: &'p Program<'a>, sources: &'p Sources, sink: &'s mut Sink, demands: instances::Demands) -> Self {
        let mut in_memory: Vec<bool> = p.locals.iter().map(|l| l.addressed || (l.mutable && l.captured)).collect();
        for looped in p.loops.iter().filter(|l| l.first_class) {
            for local in &looped.assigned {
                in_memory[local.0 as usize] = true;
            }
        }
        Lowerer {
            p,
            sources,
            w: World::new(),
            sink,
            module: 0,
            mode: Mode::Code,
            is_racy: false,
            scope: Span::NONE,
            cur: None,
            types: p.types.for_lowering(),
            env: Env::default(),
            tys: Vec::new(),
            deep_types: rustc_hash::FxHashSet::default(),
            layouts: rustc_hash::FxHashMap::default(),
            struct_names: rustc_hash::FxHashMap::default(),
            fields_missing: Vec::new(),
            init_depth: 0,
            filter_calls: 0,
            fn_vals: rustc_hash::FxHashMap::default(),
            instances: instances::Instances::default(),
            demands,
            missed_instance: false,
            wrap: false,
            debug: false,
            checks_bounds: false,
            params: rustc_hash::FxHashMap::default(),
            slots: rustc_hash::FxHashMap::default(),
            globals: vec![None; p.statics.len()],
            inits: vec![InitState::Fresh; p.statics.len()],
            vars: vec![Var::default(); p.locals.len()],
            log: Vec::new(),
            in_memory,
            loops: vec![LoopState::default(); p.loops.len()],
            deferred: rustc_hash::FxHashMap::default(),
        }
    }

    fn ast(&self) -> &'a Module {
        self.p.modules[self.module]
    }

    fn g(&self, e: ExprId) -> GlobalExpr {
        self.p.global(self.module, e)
    }

    fn ty_of(&mut self, e: ExprId) -> Ty {
        let ty = self.p.expr_ty[self.g(e) as usize];
        let ty = self.mono(ty);
        if self.types.fault.is_some() {
            self.report_fault(self.ast()[e].span);
        }
        ty
    }

    fn kind(&self, ty: Ty) -> Kind {
        self.types.final_kind(ty).clone()
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // A function may be called in several filters, each of which would report its errors.
        if self.mode != Mode::Filter || !self.sink.diagnostics.contains(&diagnostic) {
            self.sink.push(diagnostic);
        }
    }

    /// Lowers the roots and everything reachable from them.
    fn run(&mut self) {
        let mut symbols = rustc_hash::FxHashMap::default();
        for id in 0..self.p.fns.len() {
            let f = &self.p.fns[id];
            let is_main = self.p.is_main(f);
            let top_level = f.top_level && f.owner == FnOwner::None && f.generics.is_empty();
            if f.kind != FnKind::Defined || !top_level || !(f.ast.exported || is_main) {
                continue;
            }
            let symbol = f.ast.symbol.as_ref().map_or(f.ast.name.text.to_string(), |s| s.0.clone());
            if let Some(first) = symbols.insert(symbol.clone(), f.ast.name.span) {
                self.sink.push(duplicate_symbol::error(f.ast.name.span, &short(&symbol), first));
                continue;
            }
            let val = self.fn_val(FnId(id as u32), Arc::new([]), f.ast.name.span);
            if let Some(k) = self.w.as_cont(val) {
                self.w.cont_mut(k).linkage = Linkage::Exported(symbol).into();
            }
        }
        // Lower unused statics too, so that errors in them are reported.
        for id in 0..self.p.statics.len() {
            let info = &self.p.statics[id];
            if info.module >= self.p.n_libraries && !info.generic {
                self.global(StaticId(id as u32));
                self.report_fault(info.ast.name.span);
            }
        }
        self.lower_queue();
    }

    // Types.

    fn ir_ty(&mut self, ty: Ty) -> ir::Ty {
        if let Some(Some(t)) = self.tys.get(ty.0 as usize) {
            return *t;
        }
        let t = match self.kind(ty) {
            // Values of these never exist.
            Kind::Error | Kind::Never | Kind::Var(_) | Kind::Param(_) | Kind::Bound(..) => self.w.types.unit(),
            Kind::Const(_) | Kind::Operation(..) => self.w.types.unit(),
            Kind::Prim(p) => self.w.types.prim(p),
            Kind::Generic(..) => self.generic_ty(ty),
            Kind::Simd(elem, n) => self.simd_ty(elem, self.types.length(n)),
            Kind::Tuple(parts) => {
                let parts: Vec<ir::Ty> = parts.iter().map(|p| self.ir_ty(*p)).collect();
                self.w.types.tuple(&parts)
            }
            Kind::Struct(..) | Kind::Enum(..) => return self.declare_aggregate(ty),
            Kind::Array(elem, n) => {
                let (elem, n) = (self.ir_ty(elem), self.types.length(n));
                self.w.types.array(elem, n)
            }
            Kind::Indef(elem) => {
                let elem = self.ir_ty(elem);
                self.w.types.indef_array(elem)
            }
            Kind::Ptr { space, to, .. } => {
                let pointee = self.ir_ty(to);
                self.w.types.intern(ir::TyKind::Ptr { pointee, space })
            }
            Kind::Fn(params, result) => {
                let mut tys = vec![self.w.types.mem()];
                for p in params.iter() {
                    tys.push(self.ir_ty(*p));
                }
                if result != TypeTable::NEVER {
                    tys.push(self.ret_ty(result));
                }
                self.w.types.cn(&tys)
            }
        };
        if self.tys.len() <= ty.0 as usize {
            self.tys.resize(ty.0 as usize + 1, None);
        }
        self.tys[ty.0 as usize] = Some(t);
        t
    }

    /// The type of the continuation that takes a result of type `ty`.
    fn ret_ty(&mut self, ty: Ty) -> ir::Ty {
        let mut tys = vec![self.w.types.mem()];
        for part in self.parts(ty) {
            tys.push(self.ir_ty(part));
        }
        self.w.types.cn(&tys)
    }

    /// The types that a return continuation takes for a result of type `ty`.
    fn parts(&self, ty: Ty) -> Vec<Ty> {
        match self.kind(ty) {
            Kind::Tuple(parts) => parts.to_vec(),
            Kind::Never => Vec::new(),
            _ => vec![ty],
        }
    }

    /// The value of type `ty` that is made of a return continuation's arguments.
    fn join_parts(&mut self, vals: &[Val], ty: Ty) -> Val {
        match self.kind(ty) {
            Kind::Tuple(_) => self.w.op(Op::Tuple, vals),
            _ => match vals {
                [one] => *one,
                _ => self.w.unit(),
            },
        }
    }

    fn split_parts(&mut self, val: Val, ty: Ty) -> Vec<Val> {
        match self.kind(ty) {
            Kind::Tuple(parts) => (0..parts.len()).map(|i| self.w.extract(val, i as u64)).collect(),
            Kind::Never => Vec::new(),
            _ => vec![val],
        }
    }

    fn undef(&mut self, ty: Ty) -> Val {
        let ty = self.ir_ty(ty);
        self.w.undef(ty)
    }

    // Code.

    /// Whether the code being lowered can be reached.
    fn alive(&self) -> bool {
        self.cur.is_some() || self.mode != Mode::Code
    }

    fn block(&mut self, name: &str) -> Cont {
        let mem = self.w.types.mem();
        let ty = self.w.types.cn(&[mem]);
        self.w.declare(name, ty, &["m"])
    }

    /// Makes `k` the current continuation.
    fn go_on_in(&mut self, k: Cont) {
        let mem = self.w.param(k, 0);
        self.cur = Some(Cur { k, mem });
    }

    /// Ends the current continuation with a call. `args` are without `mem`.
    fn end(&mut self, callee: Val, args: &[Val]) {
        let Some(cur) = self.cur.take() else { return };
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(cur.mem);
        all.extend_from_slice(args);
        self.w.define(cur.k, callee, &all);
    }

    fn end_unreachable(&mut self) {
        let callee = self.w.builtin(Builtin::Unreachable);
        self.end(callee, &[]);
    }

    fn jump(&mut self, k: Cont, args: &[Val]) {
        let callee = self.w.cont_val(k);
        self.end(callee, args);
    }

    fn branch(&mut self, cond: Val, then: Cont, otherwise: Cont) {
        let callee = self.w.builtin(Builtin::Branch);
        let (then, otherwise) = (self.w.cont_val(then), self.w.cont_val(otherwise));
        self.end(callee, &[cond, then, otherwise]);
    }

    /// The current memory. Where there is none, reports an error for the code that needs it.
    fn mem(&mut self, span: Span) -> Option<Val> {
        match self.mode {
            Mode::Code => self.cur.map(|c| c.mem),
            Mode::Constant => {
                self.sink.push(not_constant::error(span, "needs memory"));
                None
            }
            Mode::Filter => {
                let message = "access to memory in filters is not supported yet";
                self.report(limitation::error(span, message, "let filters compute with parameters and constants"));
                None
            }
        }
    }

    fn set_mem(&mut self, mem: Val) {
        if let Some(cur) = &mut self.cur {
            cur.mem = mem;
        }
    }

    // Variables.

    fn set_var(&mut self, id: LocalId, var: Var) {
        let old = std::mem::replace(&mut self.vars[id.0 as usize], var);
        self.log.push((id, old));
    }

    fn rollback(&mut self, mark: usize) {
        while self.log.len() > mark {
            if let Some((id, old)) = self.log.pop() {
                self.vars[id.0 as usize] = old;
            }
        }
    }

    /// Declares the variable `id` with this value.
    fn bind(&mut self, id: LocalId, val: Val) {
        let local = self.p.local(id);
        if !self.in_memory[id.0 as usize] {
            return self.assign(id, val);
        }
        let origin = self.w.current_origin();
        if self.debug {
            self.w.set_origin(local.span);
        }
        let ptr = if local.mutable { self.slot(val) } else { self.spill(val, false) };
        self.w.set_origin(origin);
        if self.debug {
            self.slots.insert(ptr, id);
        }
        self.set_var(id, Var { val: (!local.mutable).then_some(val), ptr: Some(ptr) });
        self.debug_value(id, val);
    }

    /// Gives a variable that is a value another one.
    fn assign(&mut self, id: LocalId, val: Val) {
        self.set_var(id, Var { val: Some(val), ptr: None });
        self.debug_value(id, val);
    }

    /// Names the value that a variable has, for debuggers. A variable in memory is named where it is written or read as a whole, since
    /// its memory may vanish.
    fn debug_value(&mut self, id: LocalId, val: Val) {
        let (true, Mode::Code, Some(cur)) = (self.debug, self.mode, self.cur) else { return };
        let (local, ty) = (self.p.local(id), self.w.ty(val));
        // Variables that the compiler declares have no name in the source.
        let is_named = self.sources.text(local.span.file).get(local.span.lo as usize..local.span.hi as usize)
            == Some(&*local.name);
        let has_value = ty != self.w.types.unit() && ty != self.w.types.mem() && !self.w.types.has_function(ty);
        if !is_named || !has_value || matches!(self.w.node(val), Node::Undef) {
            return;
        }
        let origin = self.w.current_origin();
        self.w.set_origin(local.span);
        let nth = self.w.lit_i32(self.params.get(&id).map_or(0, |nth| *nth));
        let mem = self.w.op(Op::DebugValue, &[cur.mem, val, nth]);
        self.set_mem(mem);
        self.w.set_origin(origin);
    }

    /// Sets the marks of the code that is lowered next. Returns those before.
    fn set_marks(&mut self, marks: Marks) -> Marks {
        Marks { fast: self.w.set_fast(marks.fast), racy: std::mem::replace(&mut self.is_racy, marks.racy) }
    }

    /// The address of a new slot that contains this value.
    fn slot(&mut self, val: Val) -> Val {
        let Some(cur) = self.cur else {
            let ty = self.w.ty(val);
            let ptr = self.w.types.ptr(ty);
            return self.w.undef(ptr);
        };
        let ty = self.w.ty(val);
        let made = self.w.op_ty(Op::Slot, ty, &[cur.mem]);
        let (mem, ptr) = (self.w.extract(made, 0), self.w.extract(made, 1));
        let mem = self.w.op(Op::Store, &[mem, ptr, val]);
        self.set_mem(mem);
        ptr
    }

    // Functions.

    fn declare_fn(&mut self, name: &str, ty: ir::Ty, params: &[Param]) -> Cont {
        let n = self.w.types.cn_params(ty).map_or(1, <[_]>::len);
        let mut names = vec!["m"];
        // One tuple may stand for several parameters.
        if params.len() + 1 == n || params.len() + 2 == n {
            names.extend(params.iter().map(|p| match &p.pattern.kind {
                PatternKind::Name { name, .. } if !name.is_wildcard() => &*name.text,
                _ => "x",
            }));
            if params.len() + 2 == n {
                names.push("ret");
            }
        }
        self.w.declare(name, ty, &names)
    }

    /// Gives `def.k` its filters and its body.
    fn lower_def(&mut self, def: Def) {
        let old = (self.cur, self.mode);
        let mark = self.log.len();
        self.mode = Mode::Code;
        let Kind::Fn(tys, result) = self.kind(def.ty) else { return };
        let n = def.params.len();
        let ir_params: Vec<Val> = self.w.params(def.k)[1..].to_vec();
        let returns = result != TypeTable::NEVER;
        let explicit = returns && n == tys.len() + 1;
        let as_tuple = !returns && n == 1 && tys.len() != 1;
        let mut vals: Vec<Val> =
            if as_tuple { vec![self.w.op(Op::Tuple, &ir_params)] } else { ir_params.iter().copied().take(n).collect() };
        self.cur = None;
        self.lower_filters(&def, &vals, as_tuple);
        self.go_on_in(def.k);
        self.restrict(&def, &mut vals);
        for &id in self.p.copies.get(&self.g(def.body)).into_iter().flatten() {
            if let Some(val) = self.vars[id.0 as usize].val {
                self.bind(id, val);
            }
        }
        for (nth, ((param, ty), val)) in (1..).zip(def.params.iter().zip(def.param_tys).zip(&vals)) {
            if let PatternKind::Name { name, .. } = &param.pattern.kind
                && let Some(id) = self.p.local_at(name.span).filter(|_| self.debug)
            {
                self.params.insert(id, nth);
            }
            self.w.set_origin(param.span);
            self.bind_pattern(&param.pattern, *ty, *val, false);
        }
        let ret = if returns && !explicit {
            let k = ir_params[ir_params.len() - 1];
            if let Some(id) = def.return_local {
                self.bind(id, k);
            }
            Some(k)
        } else {
            // The value, if there is one, is passed to the last parameter.
            match (def.param_tys.last().map(|t| self.kind(*t)), vals.last()) {
                (Some(Kind::Fn(_, r)), Some(&k)) if r == TypeTable::NEVER => Some(k),
                _ => None,
            }
        };
        self.tail(def.body, ret);
        self.rollback(mark);
        (self.cur, self.mode) = old;
    }

    /// For restricted parameters, marks addresses by the parameter that they come from.
    fn restrict(&mut self, def: &Def, vals: &mut [Val]) {
        let is_address: Vec<bool> = vals.iter().map(|&v| self.w.types.pointee(self.w.ty(v)).is_some()).collect();
        let restricted = || def.params.iter().zip(&is_address).enumerate().filter(|(_, (p, _))| p.restrict);
        for (i, (param, _)) in restricted().filter(|(_, (_, fits))| !**fits) {
            let shown = self.w.types.display(self.w.ty(vals[i])).to_string();
            self.report(bad_restrict::error(param.span, &shown));
        }
        let Some(cur) = self.cur.filter(|_| restricted().any(|(_, (_, fits))| *fits)) else { return };
        self.w.set_origin(def.params[0].span);
        let made = self.w.op(Op::Scope, &[cur.mem]);
        let (mem, scope) = (self.w.extract(made, 0), self.w.extract(made, 1));
        self.set_mem(mem);
        for (i, param) in def.params.iter().enumerate() {
            if is_address.get(i) == Some(&true) {
                let kind = self.w.lit_i32(param.restrict as i32);
                vals[i] = self.w.op(Op::Restrict, &[vals[i], scope, kind]);
            }
        }
    }

    fn lower_filters(&mut self, def: &Def, vals: &[Val], as_tuple: bool) {
        let none = |f: &ast::Filter| matches!(f, ast::Filter::Never);
        if none(&def.filter) && def.params.iter().all(|p| none(&p.filter)) {
            return;
        }
        let mark = self.log.len();
        self.mode = Mode::Filter;
        for ((param, ty), val) in def.params.iter().zip(def.param_tys).zip(vals) {
            self.bind_pattern(&param.pattern, *ty, *val, true);
        }
        let mut filter = Filter { all: self.lower_filter(&def.filter, def.k), params: Vec::new() };
        let mut params = vec![None];
        for param in def.params {
            params.push(self.lower_filter(&param.filter, def.k));
        }
        if as_tuple {
            params = std::iter::once(None).chain((1..self.w.params(def.k).len()).map(|_| params[1])).collect();
        }
        if params.iter().any(Option::is_some) {
            filter.params = params;
        }
        self.w.cont_mut(def.k).filter = filter.into();
        self.rollback(mark);
        self.mode = Mode::Code;
    }

    fn lower_filter(&mut self, filter: &ast::Filter, k: Cont) -> Option<Val> {
        let e = match filter {
            ast::Filter::Never => return None,
            ast::Filter::Always(_) => return Some(self.w.lit_bool(true)),
            ast::Filter::When(e) => *e,
        };
        self.filter_calls = 0;
        let val = self.value(e);
        if self.w.as_lit(val) == Some(0) {
            return None;
        }
        let mut work = vec![val];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            if matches!(self.w.node(v), Node::Param(owner, _) if owner != k) {
                let span = self.ast()[e].span;
                let message = "filters that use variables of an enclosing function are not supported yet";
                self.report(limitation::error(span, message, "pass the variable as a parameter"));
                return None;
            }
            work.extend(self.w.args(v));
        }
        Some(val)
    }

    // Statics.

    fn global(&mut self, id: StaticId) -> Val {
        let p = self.p;
        let info = &p.statics[id.0 as usize];
        let global = match self.globals[id.0 as usize] {
            Some(global) => global,
            None => {
                let ty = self.ir_ty(info.ty);
                let origin = self.w.current_origin();
                self.w.set_origin(info.ast.name.span);
                let global = self.w.declare_global(&info.ast.name.text, ty, info.ast.mutable);
                self.w.set_origin(origin);
                self.globals[id.0 as usize] = Some(global);
                global
            }
        };
        self.init(id, global);
        self.w.global_val(global)
    }

    /// Lowers an initializer, unless that is already in progress.
    fn init(&mut self, id: StaticId, global: Global) {
        if self.inits[id.0 as usize] != InitState::Fresh {
            return;
        }
        self.inits[id.0 as usize] = InitState::Busy;
        let p = self.p;
        let info = &p.statics[id.0 as usize];
        if self.init_depth > MAX_CHAIN {
            let message = format!("more than {MAX_CHAIN} statics depend on each other");
            self.report(limitation::error(info.ast.name.span, message, "make the chain shorter"));
        } else if let Some(init) = info.ast.init {
            self.init_depth += 1;
            let old = (self.cur.take(), self.mode, self.module, self.w.current_origin());
            let env = std::mem::take(&mut self.env);
            let marks = self.set_marks(Marks::default());
            self.module = info.module;
            let val = match info.computed {
                true => self.computed(info.ty, init),
                false => {
                    self.mode = Mode::Constant;
                    let folds = std::mem::replace(&mut self.w.folds_overflow, true);
                    let val = self.value(init);
                    self.w.folds_overflow = folds;
                    val
                }
            };
            (self.cur, self.mode, self.module) = (old.0, old.1, old.2);
            self.w.set_origin(old.3);
            self.set_marks(marks);
            self.env = env;
            self.w.set_init(global, val);
            self.init_depth -= 1;
        }
        self.inits[id.0 as usize] = InitState::Done;
    }

    /// Makes a function that returns the value of an initializer.
    fn computed(&mut self, ty: Ty, init: ExprId) -> Val {
        self.mode = Mode::Code;
        let (mem, ty) = (self.w.types.mem(), self.ir_ty(ty));
        let ret = self.w.types.cn(&[mem, ty]);
        let ty = self.w.types.cn(&[mem, ret]);
        let k = self.w.declare("initializer", ty, &["m", "return"]);
        self.go_on_in(k);
        let val = self.value(init);
        let ret = self.w.param(k, 1);
        self.end(ret, &[val]);
        self.w.cont_val(k)
    }

    /// The value of an immutable static, for constants.
    fn static_value(&mut self, id: StaticId, span: Span) -> Val {
        let ptr = self.global(id);
        let info = &self.p.statics[id.0 as usize];
        if info.computed {
            let message = "a static with a computed initializer is not supported in filters yet";
            self.report(limitation::error(
                span,
                message,
                "write the number itself, or give the static a constant initializer",
            ));
            return self.undef(info.ty);
        }
        if self.inits[id.0 as usize] == InitState::Busy {
            self.report(recursive_static::error(span, &short(&info.ast.name.text)));
            return self.undef(info.ty);
        }
        let init = match self.w.node(ptr) {
            Node::Global(g) => self.w.global(g).init,
            _ => None,
        };
        match init {
            Some(val) => val,
            None => {
                let ty = self.ir_ty(info.ty);
                self.zero(ty)
            }
        }
    }

    pub(super) fn zero(&mut self, ty: ir::Ty) -> Val {
        match self.w.types.kind(ty).clone() {
            ir::TyKind::Prim(_) | ir::TyKind::Vector(..) | ir::TyKind::Ptr { .. } => self.w.lit(ty, 0),
            ir::TyKind::Array(elem, _) => {
                let elem = self.zero(elem);
                self.w.op_ty(Op::Splat, ty, &[elem])
            }
            ir::TyKind::Tuple(parts) => {
                let parts: Vec<Val> = parts.iter().map(|p| self.zero(*p)).collect();
                self.w.op(Op::Tuple, &parts)
            }
            ir::TyKind::Struct(id) => {
                let fields: Vec<ir::Ty> = self.w.types.struct_data(id).fields.iter().map(|f| f.1).collect();
                let parts: Vec<Val> = fields.into_iter().map(|p| self.zero(p)).collect();
                self.w.op_ty(Op::Struct, ty, &parts)
            }
            ir::TyKind::Mem | ir::TyKind::IndefArray(_) | ir::TyKind::Cn(_) | ir::TyKind::Code => self.w.undef(ty),
        }
    }
}

/// The definition of a continuation in the source.
struct Def<'d> {
    k: Cont,
    ty: Ty,
    params: &'d [Param],
    param_tys: &'d [Ty],
    filter: ast::Filter,
    return_local: Option<LocalId>,
    body: ExprId,
}
