//! The graph becomes flat SSA: what is a function, a block, a closure, and where each operation stands.
//!
//! **Functions.** A continuation whose last parameter is a continuation is a function, the others are blocks of the
//! functions that lead to them. Values that are free in a function become parameters at its end (lambda lifting, `002` 11.1).
//! A function that is used as a value becomes a pair of code and environment: the environment, on the heap, holds the
//! free values; the code is a small function that unpacks it. A function that is left by another continuation than its
//! return says so in its results ([`exits`]). Bodies of `parallel` and `spawn` become callbacks of the runtime
//! ([`launch`]).
//!
//! **Order.** Writes and partial operations stay in the block that owns their `mem`, in its order. Other operations are
//! placed as late as their uses allow, then moved up the dominator tree to where the fewest loops are around them
//! (`docs/design/targets.md`, Placement).
//!
//! ```text
//! cont f(m, x, ret) = branch(m, lt(x, 0), then, else)        func f(i32) -> (i32) {
//!   cont then(m.1) = ret(m.1, sub(0, x))                     entry(x):
//!   cont else(m.2) = ret(m.2, x)                               c: bool = lt(x, 0)
//!                                                              branch c, then(), else() …
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod body;
mod exits;
mod launch;
mod leave;
mod results;

use exits::Exits;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Id, SideTable, Sink, Span};
use nyala_flat::environments::{load_env, record_ptr};
use nyala_flat::*;
use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Node, Op, Prim, Ty, TyKind, Types, Val, World, layout};
use results::Groups;
use rustc_hash::{FxHashMap, FxHashSet};

/// Makes the module of all that a graph exports. `None` on errors, which are in `sink`.
pub fn schedule(w: &World, sink: &mut Sink) -> Option<Module> {
    Some(schedule_with_sources(w, sink)?.0)
}

/// Like [`schedule`], but also returns for each function of the module the continuation that it was made from, if any.
pub fn schedule_with_sources(w: &World, sink: &mut Sink) -> Option<(Module, Vec<Option<Cont>>)> {
    let roots = w.roots();
    let is_root: FxHashSet<Cont> = roots.iter().copied().collect();
    let (nest, globals) = Nest::of_functions(w, &roots, |k| is_root.contains(&k) || is_function(w, k));
    let mut s = Scheduler {
        w,
        module: Module::new(w.types.clone()),
        types: SideTable::default(),
        funcs: SideTable::default(),
        closures: SideTable::default(),
        callbacks: SideTable::default(),
        runtime: FxHashMap::default(),
        globals: SideTable::default(),
        is_root: SideTable::default(),
        queue: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
        variables: Vec::new(),
        captured: FxHashSet::default(),
        nest,
        exits: Exits::default(),
        groups: Groups::default(),
        leavers: FxHashMap::default(),
        numbers: SideTable::with_room(w.n_vals()),
        values: SideTable::with_room(w.n_vals()),
        have_values: Vec::new(),
    };
    for &g in &globals {
        let data = w.global(g);
        let ty = s.ty(data.ty);
        let (name, mutable) = (data.name.clone(), data.mutable);
        let id = s.module.add_global(Global { name, ty, mutable, space: 0, init: Init::Zero });
        s.globals[g] = Some(id);
    }
    for k in w.roots() {
        s.is_root[k] = true;
    }
    let mut is_function: SideTable<Cont, bool> = SideTable::default();
    for &k in &s.nest.conts {
        is_function[k] = s.is_function(k);
    }
    s.exits = Exits::new(w, &mut s.nest, is_function, &conts_in_globals(w, &globals));
    s.find_groups();
    for k in w.roots() {
        s.func(k);
    }
    for &g in &globals {
        if let (Some(init), Some(id)) = (w.global(g).init, s.globals[g]) {
            s.module.globals[id.idx()].init = s.init(init);
        }
    }
    let mut next = 0;
    while next < s.queue.len() {
        let k = s.queue[next];
        next += 1;
        s.build(k);
    }
    s.warnings.into_iter().for_each(|d| sink.push(d));
    if s.errors.is_empty() {
        let may_leave = |v: &&Variable| v.may_be_left || s.captured.contains(&v.of);
        let variables: Vec<_> = s.variables.iter().filter(may_leave).map(|v| (v.func, v.slot)).collect();
        nyala_flat::escape::keep_variables(&mut s.module, &variables);
        let mut sources = vec![None; s.module.funcs.len()];
        for &k in &s.nest.conts {
            let made = [s.funcs[k], s.closures[k], s.callbacks[k]];
            made.into_iter().flatten().for_each(|func| sources[func.idx()] = Some(k));
        }
        return Some((s.module, sources));
    }
    let mut seen = FxHashSet::default();
    for d in s.errors {
        if seen.insert((d.primary.span, d.message.clone())) {
            sink.push(d);
        }
    }
    None
}

struct Scheduler<'a> {
    w: &'a World,
    nest: Nest,
    module: Module,
    /// Types of the module by types of the graph; they differ for types that contain functions.
    types: SideTable<Ty, Option<Ty>>,
    funcs: SideTable<Cont, Option<Func>>,
    /// Code of function values, by the function's continuation.
    closures: SideTable<Cont, Option<Func>>,
    /// Callbacks of the runtime, by the body's continuation.
    callbacks: SideTable<Cont, Option<Func>>,
    /// Functions of the runtime, by symbol.
    runtime: FxHashMap<&'static str, Func>,
    globals: SideTable<nyala_ir::Global, Option<GlobalId>>,
    is_root: SideTable<Cont, bool>,
    queue: Vec<Cont>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    variables: Vec<Variable>,
    /// Operations that make variables captured by function values.
    captured: FxHashSet<Val>,
    exits: Exits,
    groups: Groups,
    /// Code of continuations that are values, by their type.
    leavers: FxHashMap<Ty, Func>,
    /// Scratch table of `place`; all 0 between its calls.
    numbers: SideTable<Val, u32>,
    /// For graph values, the flat value in the function under construction plus one; and the graph values that have
    /// one.
    values: SideTable<Val, u32>,
    have_values: Vec<Val>,
}

/// A local variable.
struct Variable {
    func: Func,
    slot: Value,
    /// The operation that makes it.
    of: Val,
    /// Whether its function may be left by other ways than its return.
    may_be_left: bool,
}

/// The operation that makes the variable into which an address points.
fn variable_of(w: &World, mut v: Val) -> Option<Val> {
    while let Some(Op::Lea | Op::Bitcast | Op::Extract) = w.as_op(v) {
        v = w.args(v)[0];
    }
    w.is_op(v, Op::Slot).then_some(v)
}

/// State of the function under construction.
struct Building {
    func: Func,
    cont: Cont,
    blocks: FxHashMap<Cont, Block>,
    /// A block that only returns, for branches to the return continuation.
    ret_block: Option<Block>,
    /// Operations without an owner, by the block that computed them.
    local: FxHashMap<(Block, Val), Value>,
    /// Records passed to the function, by continuation.
    records: FxHashMap<Val, Value>,
    made: Vec<leave::Made>,
    /// The address that its own records begin with.
    frame: Option<Value>,
    /// The block where records of this function arrive.
    far: Option<Block>,
}

impl Scheduler<'_> {
    fn limitation(&mut self, span: Span, message: &str, hint: &str) {
        self.errors.push(limitation::error(span, message, hint));
    }

    // Types.

    fn is_continuation(&self, ty: Ty) -> bool {
        is_continuation(&self.w.types, ty)
    }

    fn is_function(&self, k: Cont) -> bool {
        self.is_root[k] || is_function(self.w, k)
    }

    /// The return continuation's type, if functions of this type have one.
    fn ret_ty(&self, ty: Ty) -> Option<Ty> {
        let last = *self.w.types.cn_params(ty)?.last()?;
        self.is_continuation(last).then_some(last)
    }

    /// Types of the parameters and results of functions of this type, without environment and free values.
    fn signature(&mut self, ty: Ty) -> (Vec<Ty>, Vec<Ty>) {
        let params = self.w.types.cn_params(ty).unwrap_or(&[]).to_vec();
        let rets = match self.ret_ty(ty) {
            Some(ret) => self.w.types.cn_params(ret).unwrap_or(&[])[1..].to_vec(),
            None => Vec::new(),
        };
        let n = params.len() - self.ret_ty(ty).is_some() as usize;
        (params[1..n].iter().map(|&t| self.ty(t)).collect(), rets.iter().map(|&t| self.ty(t)).collect())
    }

    fn ty(&mut self, ty: Ty) -> Ty {
        if let Some(converted) = self.types[ty] {
            return converted;
        }
        let kind = self.w.types.kind(ty).clone();
        let converted = match kind {
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Code => ty,
            TyKind::Cn(_) => {
                let code = self.module.types.code();
                let env = self.env_ptr();
                self.module.types.tuple(&[code, env])
            }
            TyKind::Ptr { pointee, space } => {
                let pointee = self.ty(pointee);
                self.module.types.intern(TyKind::Ptr { pointee, space })
            }
            TyKind::Tuple(elems) => {
                let elems: Vec<Ty> = elems.iter().map(|&e| self.ty(e)).collect();
                self.module.types.tuple(&elems)
            }
            TyKind::Array(elem, n) => {
                let elem = self.ty(elem);
                self.module.types.array(elem, n)
            }
            TyKind::IndefArray(elem) => {
                let elem = self.ty(elem);
                self.module.types.indef_array(elem)
            }
            TyKind::Struct(id) if !self.contains_function(ty) => {
                let _ = id;
                ty
            }
            TyKind::Struct(id) => {
                let data = self.w.types.struct_data(id).clone();
                let (new, new_ty) = self.module.types.declare_struct(&data.name);
                self.types[ty] = Some(new_ty);
                let fields = data.fields.into_iter().map(|(name, t)| (name, self.ty(t))).collect();
                self.module.types.set_fields(new, fields);
                new_ty
            }
        };
        self.types[ty] = Some(converted);
        converted
    }

    /// Whether a type contains functions, also behind pointers.
    fn contains_function(&self, ty: Ty) -> bool {
        let mut work = vec![ty];
        let mut seen = FxHashSet::default();
        while let Some(ty) = work.pop() {
            if !seen.insert(ty) {
                continue;
            }
            match self.w.types.kind(ty) {
                TyKind::Cn(_) => return true,
                TyKind::Ptr { pointee, .. } => work.push(*pointee),
                TyKind::IndefArray(elem) | TyKind::Array(elem, _) => work.push(*elem),
                TyKind::Tuple(elems) => work.extend(elems),
                TyKind::Struct(id) => work.extend(self.w.types.struct_data(*id).fields.iter().map(|f| f.1)),
                TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Mem | TyKind::Code => {}
            }
        }
        false
    }

    fn env_ptr(&mut self) -> Ty {
        let unit = self.module.types.unit();
        self.module.types.ptr(unit)
    }

    fn record_ptr(&mut self) -> Ty {
        record_ptr(&mut self.module.types)
    }

    // Functions.

    /// The function of a continuation, declared on demand; its blocks are built later.
    fn func(&mut self, k: Cont) -> Func {
        if let Some(func) = self.funcs[k] {
            return func;
        }
        let data = self.w.cont(k);
        let rets = self.signature(data.ty).1;
        let params: Vec<Ty> = self.own_params(k).into_iter().map(|p| self.w.ty(p)).collect();
        let mut params: Vec<Ty> = params.into_iter().map(|t| self.ty(t)).collect();
        params.extend(self.free_tys(k));
        let linkage = match &*data.linkage {
            nyala_ir::Linkage::Internal => Linkage::Internal,
            nyala_ir::Linkage::Exported(s) => Linkage::Exported(s.clone()),
            nyala_ir::Linkage::Foreign(s) => Linkage::Foreign(s.clone()),
            nyala_ir::Linkage::Asm(info) => Linkage::Asm(info.clone()),
        };
        let func = match self.groups.of(k) {
            Some(group) => {
                let all = self.groups.all[group].tys.clone();
                let name = match linkage {
                    Linkage::Internal => self.w.name(k).to_string(),
                    _ => format!("{}.body", self.w.name(k)),
                };
                let func = self.module.declare(&name, Linkage::Internal, &params, &all);
                if linkage != Linkage::Internal {
                    self.wrap(k, func, linkage, &rets);
                }
                func
            }
            None => self.module.declare(self.w.name(k), linkage, &params, &rets),
        };
        self.module.funcs[func.idx()].span = data.origin;
        self.funcs[k] = Some(func);
        if self.w.body(k).is_some() {
            self.queue.push(k);
        }
        func
    }

    /// Makes the function that outside code calls instead of `target`, which may be left by a continuation: its callers
    /// have none.
    fn wrap(&mut self, k: Cont, target: Func, linkage: Linkage, rets: &[Ty]) -> Func {
        let data = self.w.cont(k);
        let params = self.module.func(target).params.clone();
        let func = self.module.declare(self.w.name(k), linkage, &params, rets);
        self.module.funcs[func.idx()].span = data.origin;
        let mut b = FunctionBuilder::new(&mut self.module, func);
        b.span = data.origin;
        let entry = b.entry(&[]);
        let args: Vec<Value> = (0..params.len()).map(|i| b.param(entry, i)).collect();
        self.call_and_return(func, target, &args, rets);
        func
    }

    /// Ends the current function with a call of `target`, which may be left by a continuation; if it is, the program
    /// ends.
    fn call_and_return(&mut self, func: Func, target: Func, args: &[Value], rets: &[Ty]) {
        let tys = self.module.func(target).rets.clone();
        let dead = if tys.len() > rets.len() { Some(self.runtime_func("nyala_dead_continuation", &[])) } else { None };
        let mut b = FunctionBuilder::new(&mut self.module, func);
        b.span = b.function.span;
        let result = b.call(target, args, &tys);
        let mut results = unpack(&mut b, result, &tys);
        let Some(dead) = dead else {
            b.terminate(Terminator::Return(results));
            return;
        };
        let (bool_ty, zero) = (b.types.prim(Prim::Bool), b.literal(Prim::I32, 0));
        let cond = b.op(Op::Eq, &[results[tys.len() - 1], zero], bool_ty);
        results.truncate(rets.len());
        let done = b.block("return", &[]);
        b.terminate(Terminator::Return(results));
        let left = b.block("left", &[]);
        b.call(dead, &[], &[]);
        b.terminate(Terminator::Unreachable);
        b.switch_to(Block(0));
        let edge = |block| Edge { block, args: Vec::new() };
        b.terminate(Terminator::Branch { cond, then: edge(done), els: edge(left) });
    }

    /// A function of the runtime without results, declared on demand.
    fn runtime_func(&mut self, symbol: &'static str, params: &[Ty]) -> Func {
        if let Some(&func) = self.runtime.get(symbol) {
            return func;
        }
        let func = self.module.declare(symbol, Linkage::Foreign(symbol.into()), params, &[]);
        self.runtime.insert(symbol, func);
        func
    }

    /// Parameters that calls pass values for: without `mem`, the return continuation, and exits.
    fn own_params(&self, k: Cont) -> Vec<Val> {
        let params = self.w.params(k);
        let n = params.len() - self.ret_ty(self.w.cont(k).ty).is_some() as usize;
        params[1..n].iter().copied().filter(|&p| !self.exits.is_static(self.w, p)).collect()
    }

    /// The code of a function value, which takes the environment as its last argument.
    fn closure_code(&mut self, k: Cont) -> Func {
        if let Some(func) = self.closures[k] {
            return func;
        }
        let target = self.func(k);
        let data = self.w.cont(k);
        let (mut params, own) = self.signature(data.ty);
        params.push(self.env_ptr());
        let group = self.groups.of_type(data.ty);
        let rets = group.map_or(own.clone(), |g| self.groups.all[g].tys.clone());
        let code = self.module.declare(&format!("{}.closure", self.w.name(k)), Linkage::Internal, &params, &rets);
        self.closures[k] = Some(code);
        let free_tys = self.free_tys(k);
        let target_rets = self.module.func(target).rets.clone();
        let is_foreign = self.module.func(target).is_foreign();
        let span = data.origin;
        let mut b = FunctionBuilder::new(&mut self.module, code);
        b.span = span;
        let entry = b.entry(&[]);
        let mut args: Vec<Value> = (0..params.len() - 1).map(|i| b.param(entry, i)).collect();
        let env = b.param(entry, params.len() - 1);
        args.extend(load_env(&mut b, env, &free_tys));
        if is_foreign || target_rets != rets {
            let result = b.call(target, &args, &target_rets);
            let mut results = unpack(&mut b, result, &target_rets);
            // Other functions of this type may be left by a continuation, so there are results for that.
            for &ty in &rets[results.len()..] {
                results.push(b.function.undef(ty));
            }
            if let Some(number) = results[target_rets.len()..].last_mut() {
                *number = b.literal(Prim::I32, 0);
            }
            b.terminate(Terminator::Return(results));
        } else {
            b.terminate(Terminator::TailCall { callee: Callee::Func(target), args, span: Span::NONE });
        }
        code
    }

    /// Types of the free values of a function, which its environment holds.
    fn free_tys(&mut self, k: Cont) -> Vec<Ty> {
        let mut tys: Vec<Ty> = self.needs(k).iter().map(|&v| self.ty(self.w.ty(v))).collect();
        let n = tys.len() + self.exits.records(k).len();
        tys.resize(n, self.record_ptr());
        tys
    }

    /// The free values of a function.
    fn needs(&self, k: Cont) -> Vec<Val> {
        self.exits.needs(&self.nest, k)
    }

    fn init(&mut self, v: Val) -> Init {
        let w = self.w;
        match w.node(v) {
            Node::Lit(0) => Init::Zero,
            Node::Lit(bits) => Init::Bits(bits),
            Node::Global(g) => self.globals[g].map_or(Init::Undef, |id| Init::Global(id, 0)),
            Node::Cont(k) => Init::Parts(vec![Init::Func(self.closure_code(k)), Init::Zero]),
            Node::Op(Op::Tuple | Op::Struct | Op::Array) => {
                let bytes: Option<Vec<u8>> = w
                    .args(v)
                    .iter()
                    .map(|&a| (w.prim(a) == Some(Prim::U8)).then(|| w.as_lit(a).map(|b| b as u8)).flatten())
                    .collect();
                match bytes {
                    Some(bytes) if matches!(w.types.kind(w.ty(v)), TyKind::Array(..)) && !bytes.is_empty() => {
                        Init::Bytes(bytes)
                    }
                    _ => Init::Parts(w.args(v).to_vec().iter().map(|&a| self.init(a)).collect()),
                }
            }
            Node::Op(Op::Splat) => match self.init(w.args(v)[0]) {
                Init::Zero => Init::Zero,
                part => Init::Parts(vec![part; w.types.n_parts(w.ty(v)).unwrap_or(0) as usize]),
            },
            Node::Op(Op::Insert) => {
                // The outermost `insert` at an index is the last.
                let n = w.types.n_parts(w.ty(v)).unwrap_or(0);
                let mut parts: Vec<Option<Init>> = vec![None; n as usize];
                let mut at = v;
                while w.is_op(at, Op::Insert) {
                    let idx = w.as_lit(w.args(at)[1]).unwrap_or(0) as usize;
                    if parts[idx].is_none() {
                        parts[idx] = Some(self.init(w.args(at)[2]));
                    }
                    at = w.args(at)[0];
                }
                let base = self.init(at);
                let part = |i: usize| match &base {
                    Init::Parts(parts) => parts[i].clone(),
                    Init::Bytes(bytes) => Init::Bits(bytes[i] as u64),
                    Init::Zero => Init::Zero,
                    _ => Init::Undef,
                };
                Init::Parts(parts.into_iter().enumerate().map(|(i, p)| p.unwrap_or_else(|| part(i))).collect())
            }
            Node::Op(Op::Bitcast) => self.init(w.args(v)[0]),
            Node::Op(Op::Lea) => {
                let (base, idx) = (w.args(v)[0], w.as_lit(w.args(v)[1]));
                let offset = w.types.pointee(w.ty(base)).zip(idx).and_then(|(t, i)| layout::offset(&w.types, t, i));
                match (self.init(base), offset) {
                    (Init::Global(id, at), Some(offset)) => Init::Global(id, at + offset),
                    _ => Init::Undef,
                }
            }
            _ => Init::Undef,
        }
    }
}

/// Whether a continuation is compiled as a function wherever it is used; roots are too.
fn is_function(w: &World, k: Cont) -> bool {
    let ty = w.cont(k).ty;
    *w.cont(k).linkage != nyala_ir::Linkage::Internal
        || matches!(w.types.kind(ty), TyKind::Cn(_)) && !is_continuation(&w.types, ty)
}

/// Whether values of this type are continuations that take no return continuation.
pub fn is_continuation(types: &Types, ty: Ty) -> bool {
    let mut ty = ty;
    let mut parity = true;
    // The last parameter decides: the type is a continuation unless that is one.
    while let TyKind::Cn(params) = types.kind(ty) {
        match params.last() {
            Some(&last) if matches!(types.kind(last), TyKind::Cn(_)) => ty = last,
            _ => return parity,
        }
        parity = !parity;
    }
    false
}

/// The continuations that the initializers of globals refer to.
fn conts_in_globals(w: &World, globals: &[nyala_ir::Global]) -> Vec<Cont> {
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    let mut work: Vec<Val> = globals.iter().filter_map(|&g| w.global(g).init).collect();
    while let Some(v) = work.pop() {
        if seen.insert(v) {
            found.extend(w.as_cont(v));
            work.extend(w.args(v));
        }
    }
    found
}

/// The parts of a call's result.
fn unpack(fb: &mut FunctionBuilder, result: Value, rets: &[Ty]) -> Vec<Value> {
    if let [_] = rets {
        return vec![result];
    }
    (0..rets.len())
        .map(|i| {
            let idx = fb.literal(Prim::I64, i as u64);
            fb.op(Op::Extract, &[result, idx], rets[i])
        })
        .collect()
}

/// The code (0) or the environment (1) of a function value.
fn tuple_part(fb: &mut FunctionBuilder, pair: Value, idx: u64) -> Value {
    let ty = fb.function.ty(pair);
    let ty = fb.types.part(ty, idx).unwrap_or(ty);
    let idx = fb.literal(Prim::I64, idx);
    fb.op(Op::Extract, &[pair, idx], ty)
}
