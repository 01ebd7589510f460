//! Code that may be called without trust: whatever it is given, it accesses no memory but its own variables, constants, and what the
//! call lends it. A pass of its own before the checks are inserted, which relies on them.
//!
//! The checks alone do not promise that: an address that was stored or passed has the bounds of the block in which it lies then, and memory
//! of the host has none (docs/checks.md). So a *confined* function has no such addresses:
//!
//! - Each access begins with a slice that a parameter lends, a variable of the function, or a constant of the program. These have bounds,
//!   which each access is compared with ([`insert_checks`](crate::insert_checks) refuses what it cannot compare). What is lent to be
//!   read is not written.
//! - No address is loaded, stored, returned, passed to a function that is left, or made of an integer; no function is called by its
//!   address. Calls with addresses are replaced by the code of their callees first.
//! - It calls nothing foreign but what prints numbers and what ends the call with a report. It allocates nothing, has no variables of the
//!   program, no threads, no atomics, no assembly, no promises (`restrict`, `assume_aligned`).
//! - No operation is undefined: parts are taken by literal indices within their bounds, integers are divided under the checks, or by
//!   literals. Code that was never to run ends the call. Floats are not fast.
//!
//! The rest is the back end's: its code promises LLVM nothing (`gen-llvm/src/confined.rs`).

use crate::{MAX_FUNCTION, inline_bodies, lane_arithmetic, undefined};
use nyala_base::graph::in_cycles;
use nyala_base::{Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a parameter of an exported function lends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lent {
    /// It has no address in it.
    Nothing,
    /// The elements of a slice, a struct of their address and their number, to be read.
    Slice,
    /// The elements of a slice, to be read and written.
    MutSlice,
}

/// Why a function cannot be confined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Where.
    pub span: Span,
    /// What it does there: `it …`.
    pub what: String,
}

/// The runtime's function that ends a call with a report.
const PANIC: &str = "nyala_panic_at";

/// Prepares a module with one exported function, whose parameters lend it this. Returns what forbids to confine it.
pub fn confine(module: &mut Module, lent: &[Lent]) -> Vec<Refused> {
    inline_bodies(module);
    let is_exported = |i: &usize| matches!(module.funcs[*i].linkage, Linkage::Exported(_));
    let exported: Vec<usize> = (0..module.funcs.len()).filter(is_exported).collect();
    let &[root] = &exported[..] else {
        return vec![Refused { span: Span::NONE, what: "it is compiled with others that C can call".into() }];
    };
    let root = Func::from_idx(root);
    inline_calls(module, root);
    let mut refused = Vec::new();
    let function = module.func(root);
    if function.params.len() != lent.len() {
        refused.push(Refused { span: function.span, what: "it has other parameters".into() });
    }
    for (&ty, lent) in function.params.iter().zip(lent) {
        match lent {
            Lent::Nothing if has_address(&module.types, ty) => {
                refused.push(Refused { span: function.span, what: "it takes an address without a length".into() });
            }
            // A `bool` of Rust is 0 or 1, which the checks do not ensure.
            Lent::MutSlice if element(&module.types, ty).is_none_or(|ty| contains(&module.types, ty, Prim::Bool)) => {
                refused.push(Refused { span: function.span, what: "it writes elements that are `bool`s".into() });
            }
            _ => {}
        }
    }
    let reached = reached(module, root);
    let mut calls = Vec::new();
    for f in (0..module.funcs.len()).map(Func::from_idx).filter(|f| !reached.contains(f)) {
        remove_code(&mut module.funcs[f.idx()]);
    }
    for f in reached {
        let function = module.func(f);
        let mut judge = Judge { module, root, function, defs: defs(function), calls: Vec::new(), refused: Vec::new() };
        judge.function(f == root);
        refused.append(&mut judge.refused);
        calls.append(&mut judge.calls);
        end_undefined(module, f);
        define(module, f);
    }
    // Addresses are stored for calls of the runtime.
    let mut refused = if calls.is_empty() { refused } else { calls };
    let mut seen = FxHashSet::default();
    refused.retain(|r| seen.insert((r.span.file, r.span.lo, r.what.clone())));
    refused
}

/// The type of the elements that a slice leads to.
fn element(types: &Types, slice: Ty) -> Option<Ty> {
    types.part(types.pointee(types.part(slice, 0)?)?, 0)
}

fn defs(function: &Function) -> FxHashMap<Value, Inst> {
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    insts.filter_map(|i| Some((i.result?, i.clone()))).collect()
}

// Types.

/// Whether values of a type have addresses in them, of data or of code.
fn has_address(types: &Types, ty: Ty) -> bool {
    any_part(types, ty, |kind| matches!(kind, TyKind::Ptr { .. } | TyKind::Code | TyKind::Cn(_)))
}

fn contains(types: &Types, ty: Ty, prim: Prim) -> bool {
    any_part(types, ty, |kind| matches!(kind, TyKind::Prim(p) | TyKind::Vector(p, _) if *p == prim))
}

/// Whether a type or a part of it is such a type.
fn any_part(types: &Types, ty: Ty, is_it: impl Fn(&TyKind) -> bool) -> bool {
    let (mut work, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        let kind = types.kind(ty);
        if is_it(kind) {
            return true;
        }
        match kind {
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
            }
            TyKind::Array(..) | TyKind::IndefArray(_) => work.extend(types.part(ty, 0)),
            _ => {}
        }
    }
    false
}

// Calls.

fn callees(function: &Function) -> Vec<Func> {
    let mut found = Vec::new();
    for block in &function.blocks {
        found.extend(block.insts.iter().filter_map(|i| match i.op {
            InstOp::Call(f) => Some(f),
            _ => None,
        }));
        if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
            found.push(f);
        }
    }
    found
}

/// The functions with code that a function calls, and itself.
fn reached(module: &Module, root: Func) -> Vec<Func> {
    let (mut all, mut at) = (vec![root], 0);
    while let Some(&f) = all.get(at) {
        at += 1;
        for callee in callees(module.func(f)) {
            if !module.func(callee).blocks.is_empty() && !all.contains(&callee) {
                all.push(callee);
            }
        }
    }
    all
}

/// Replaces calls with addresses by the code of their callees, unless these call themselves.
fn inline_calls(module: &mut Module, root: Func) {
    let succs: Vec<Vec<usize>> = module.funcs.iter().map(|f| callees(f).iter().map(|f| f.idx()).collect()).collect();
    let recursive = in_cycles(&succs, root.idx());
    let takes_addresses = |f: &Function| f.params.iter().chain(&f.rets).any(|&ty| has_address(&module.types, ty));
    let is_inlined: Vec<bool> = (0..module.funcs.len())
        .map(|i| {
            let f = &module.funcs[i];
            f.linkage == Linkage::Internal && !f.blocks.is_empty() && !recursive[i] && takes_addresses(f)
        })
        .collect();
    for f in reached(module, root) {
        let mut function =
            std::mem::replace(&mut module.funcs[f.idx()], Function::new("", Linkage::Internal, &[], &[]));
        // A function that is inlined ends by returns only.
        let is_plain = |callee: Func| is_inlined[f.idx()] || is_inlined[callee.idx()];
        return_from_calls(module, &mut function, is_plain);
        module.funcs[f.idx()] = function;
    }
    for f in reached(module, root) {
        let mut function =
            std::mem::replace(&mut module.funcs[f.idx()], Function::new("", Linkage::Internal, &[], &[]));
        let mut size: usize = function.blocks.iter().map(|b| b.insts.len()).sum();
        let (mut b, n_before) = (0, function.blocks.len());
        while b < function.blocks.len() {
            let ends = |f: Func| !module.func(f).blocks.iter().any(|b| matches!(b.term, Terminator::TailCall { .. }));
            let is_it = |i: &Inst| matches!(i.op, InstOp::Call(f) if is_inlined[f.idx()] && ends(f));
            let place = function.blocks[b].insts.iter().position(is_it);
            let Some((at, InstOp::Call(callee))) = place.map(|at| (at, function.blocks[b].insts[at].op)) else {
                b += 1;
                continue;
            };
            let code = module.func(callee);
            size += code.blocks.iter().map(|b| b.insts.len()).sum::<usize>();
            if size > MAX_FUNCTION {
                break;
            }
            inline(&mut function, b, at, code);
        }
        if function.blocks.len() > n_before {
            promote_slots_of(&mut module.types, &mut function);
            simplify_function(&module.types, &mut function);
            take_parts(&module.types, &mut function);
            simplify_function(&module.types, &mut function);
        }
        module.funcs[f.idx()] = function;
    }
}

/// Makes calls in tail position of a callee plain calls, after which the function returns.
fn return_from_calls(module: &mut Module, function: &mut Function, is_plain: impl Fn(Func) -> bool) {
    for b in 0..function.blocks.len() {
        let Terminator::TailCall { callee: Callee::Func(callee), args, span } = &function.blocks[b].term else {
            continue;
        };
        let (callee, args, span) = (*callee, Args::from_slice(args), *span);
        if !is_plain(callee) {
            continue;
        }
        let rets = module.func(callee).rets.clone();
        let ty = Module::result_ty(&mut module.types, &rets);
        let result = function.new_value(ty, "");
        let call = Inst { op: InstOp::Call(callee), args, result: Some(result), span, fast: false };
        function.blocks[b].insts.push(call);
        let results = match &rets[..] {
            [_] => vec![result],
            _ => {
                let i64 = module.types.i64();
                let part = |(i, &ty): (usize, &Ty)| {
                    let (index, part) = (function.constant(Const::Bits(i as u64), i64), function.new_value(ty, ""));
                    let args = Args::from_slice(&[result, index]);
                    let inst = Inst { op: InstOp::Op(Op::Extract), args, result: Some(part), span, fast: false };
                    function.blocks[b].insts.push(inst);
                    part
                };
                rets.iter().enumerate().map(part).collect()
            }
        };
        function.blocks[b].term = Terminator::Return(results);
    }
}

/// Parts of aggregates that the function itself makes are what they were made of: so a slice is known by its parts.
fn take_parts(types: &Types, function: &mut Function) {
    let defs = defs(function);
    let part = |v: Value| {
        let Inst { op: InstOp::Op(Op::Extract), args, .. } = defs.get(&v)? else { return None };
        let made = defs.get(&args[0])?;
        let is_made =
            matches!(made.op, InstOp::Op(Op::Struct | Op::Tuple)) && types.as_vector(function.ty(args[0])).is_none();
        made.args.get(function.as_index(args[1])? as usize).copied().filter(|_| is_made)
    };
    let mut of: FxHashMap<Value, Value> = FxHashMap::default();
    for &v in defs.keys() {
        let mut last = v;
        while let Some(next) = part(last) {
            last = next;
        }
        if last != v {
            of.insert(v, last);
        }
    }
    let new = |v: Value| of.get(&v).copied().unwrap_or(v);
    for block in &mut function.blocks {
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = new(*a));
        block.term.map_uses(new);
    }
}

/// Nobody calls the function any more.
fn remove_code(function: &mut Function) {
    function.blocks.truncate(1);
    for block in &mut function.blocks {
        block.insts.clear();
        block.term = Terminator::Unreachable;
    }
}

/// Code that is never to run ends the call with a report if it runs.
fn end_undefined(module: &mut Module, f: Func) {
    let is_panic = |f: &Function| f.is_foreign() && f.symbol() == Some(PANIC);
    let known = module.funcs.iter().position(is_panic).map(Func::from_idx);
    let ends = |b: &BlockData| b.insts.iter().any(|i| known.is_some_and(|panic| i.op == InstOp::Call(panic)));
    let cfg = Cfg::new(module.func(f));
    let is_undefined = |b: &Block| {
        let block = module.func(f).block(*b);
        matches!(block.term, Terminator::Unreachable) && !ends(block)
    };
    let undefined: Vec<Block> = cfg.rpo.iter().copied().filter(is_undefined).collect();
    if undefined.is_empty() {
        return;
    }
    let u8 = module.types.prim(Prim::U8);
    let bytes = module.types.indef_array(u8);
    let text_ty = module.types.ptr(bytes);
    let panic =
        known.unwrap_or_else(|| module.declare(PANIC, Linkage::Foreign(PANIC.into()), &[text_ty, text_ty], &[]));
    let text = b"code that is undefined was reached\0".to_vec();
    let array = module.types.array(u8, text.len() as u64);
    let init = Init::Bytes(text);
    let global = module.add_global(Global { name: "undefined".into(), ty: array, mutable: false, space: 0, init });
    let (array, unit) = (module.types.ptr(array), module.types.unit());
    let function = &mut module.funcs[f.idx()];
    for b in undefined {
        let address = function.constant(Const::Global(global), array);
        let (text, result, span) = (function.new_value(text_ty, ""), function.new_value(unit, ""), function.span);
        let insts = &mut function.blocks[b.idx()].insts;
        let span = insts.last().map_or(span, |i| i.span);
        let inst = |op, args: &[Value], result| Inst { op, args: args.into(), result: Some(result), span, fast: false };
        insts.push(inst(InstOp::Op(Op::Bitcast), &[address], text));
        insts.push(inst(InstOp::Call(panic), &[text, text], result));
    }
}

/// Numbers that are undefined are 0, and floats may be NaN.
fn define(module: &mut Module, f: Func) {
    let (types, function) = (&module.types, &mut module.funcs[f.idx()]);
    let is_undefined = |v: &ValueData| v.def == Def::Const(Const::Undef) && types.as_prim(v.ty).is_some();
    let undefined: Vec<Value> =
        (0..function.values.len()).map(Value::from_idx).filter(|v| is_undefined(&function.values[v.idx()])).collect();
    let mut zeros: FxHashMap<Value, Value> = FxHashMap::default();
    for v in undefined {
        let zero = function.constant(Const::Bits(0), function.ty(v));
        zeros.insert(v, zero);
    }
    let new = |v: Value| zeros.get(&v).copied().unwrap_or(v);
    for block in &mut function.blocks {
        block.insts.iter_mut().for_each(|i| i.fast = false);
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = new(*a));
        block.term.map_uses(new);
    }
}

// What a function does.

struct Judge<'a> {
    module: &'a Module,
    /// The exported function.
    root: Func,
    function: &'a Function,
    defs: FxHashMap<Value, Inst>,
    /// Calls that are refused.
    calls: Vec<Refused>,
    /// What else is.
    refused: Vec<Refused>,
}

impl Judge<'_> {
    fn refused(&self, span: Span, what: impl Into<String>) -> Refused {
        Refused { span: if span.is_none() { self.function.span } else { span }, what: what.into() }
    }

    fn refuse(&mut self, span: Span, what: impl Into<String>) {
        let refused = self.refused(span, what);
        self.refused.push(refused);
    }

    fn refuse_call(&mut self, span: Span, callee: Func, args: &[Value]) {
        if let Some(what) = self.call(callee, args) {
            let refused = self.refused(span, what);
            self.calls.push(refused);
        }
    }

    fn has_address(&self, v: Value) -> bool {
        has_address(&self.module.types, self.function.ty(v))
    }

    fn function(&mut self, is_root: bool) {
        let function = self.function;
        let takes = function.params.iter().any(|&ty| has_address(&self.module.types, ty)) && !is_root;
        if takes {
            self.refuse(function.span, "it passes an address to a function that calls itself");
        }
        if function.rets.iter().any(|&ty| has_address(&self.module.types, ty)) {
            self.refuse(function.span, "it returns an address");
        }
        for block in &function.blocks {
            for inst in &block.insts {
                match inst.op {
                    InstOp::Call(f) => self.refuse_call(inst.span, f, &inst.args),
                    _ => {
                        if let Some(what) = self.inst(inst) {
                            self.refuse(inst.span, what);
                        }
                    }
                }
            }
            match &block.term {
                Terminator::TailCall { callee: Callee::Indirect(_), span, .. } => {
                    self.refuse(*span, BY_ADDRESS);
                }
                Terminator::TailCall { callee: Callee::Func(f), args, span } => self.refuse_call(*span, *f, args),
                Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Return(_) | Terminator::Unreachable => {}
            }
        }
    }

    /// What an instruction does that a confined function may not.
    fn inst(&self, inst: &Inst) -> Option<String> {
        match inst.op {
            InstOp::Call(f) => self.call(f, &inst.args),
            InstOp::CallIndirect => Some(BY_ADDRESS.into()),
            InstOp::Vectorize(..) | InstOp::Launch(..) => Some("it launches a kernel".into()),
            InstOp::Vector(op) => match op {
                VectorOp::Load | VectorOp::Store | VectorOp::Gather | VectorOp::Scatter => None,
                VectorOp::MaskBits | VectorOp::ExpandBits => None,
                VectorOp::Compress => Some("it moves lanes together".into()),
            },
            InstOp::Op(op) => self.op(op, inst),
        }
    }

    fn op(&self, op: Op, inst: &Inst) -> Option<String> {
        let args = &inst.args[..];
        let says = |what: &str| Some(what.to_string());
        match op {
            Op::Div | Op::Rem => self.division(inst, false),
            Op::PDiv | Op::PRem => self.division(inst, true),
            Op::Bitcast => self.bitcast(inst),
            Op::Extract | Op::Insert if !self.is_part(args[0], args[1]) => {
                says("it takes a part of a value by its number")
            }
            Op::Shuffle if !self.shuffles(args) => says("it shuffles lanes by numbers that are not known"),
            Op::Load if inst.result.is_none_or(|r| self.has_address(r)) => says("it loads an address"),
            Op::Store if self.has_address(args[1]) => says("it stores an address"),
            Op::Alloc => says("it allocates memory"),
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
                says("it has atomic operations")
            }
            Op::Aligned => says("it promises an alignment"),
            Op::Scope | Op::Restrict => says("it promises that memory is not shared"),
            Op::Prefetch => says("it prefetches memory"),
            Op::WorkItem => says("it asks for a work item"),
            nyala_ir::annotation!() => says("it is not evaluated"),
            Op::Extract | Op::Insert | Op::Shuffle | Op::Load | Op::Store | Op::Slot | Op::Lea => None,
            Op::Pipeline | Op::Watch | Op::DebugValue => None,
            Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => None,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => None,
            Op::Cast | Op::Select | Op::Tuple | Op::Struct | Op::Array | Op::Splat => None,
            Op::Popcount | Op::Clz | Op::Ctz | Op::Pext | Op::Pdep | Op::Bits => None,
            Op::Fma | nyala_ir::unary_math!() | nyala_ir::binary_math!() => None,
        }
    }

    /// Divisions of scalars that may fault are checked; others have a literal divisor.
    fn division(&self, inst: &Inst, is_checked: bool) -> Option<String> {
        let (types, function) = (&self.module.types, self.function);
        let divisor = inst.args[1];
        let ty = function.ty(divisor);
        let prim = types.lane_prim(ty)?;
        if prim.is_float() || is_checked && types.as_prim(ty).is_some() {
            return None;
        }
        let literals = match self.defs.get(&divisor) {
            None => vec![divisor],
            Some(inst) if matches!(inst.op, InstOp::Op(Op::Splat | Op::Array)) => inst.args.to_vec(),
            Some(_) => Vec::new(),
        };
        let divides = |v: &Value| {
            let bits = function.as_bits(*v).map(|bits| prim.normalize(bits));
            bits.is_some_and(|bits| bits != 0 && !(prim.is_signed() && bits == prim.normalize(u64::MAX)))
        };
        let divides = !literals.is_empty() && literals.iter().all(divides);
        (!divides).then(|| "it divides vectors by numbers that are not known".into())
    }

    fn bitcast(&self, inst: &Inst) -> Option<String> {
        let types = &self.module.types;
        let (from, to) = (self.function.ty(inst.args[0]), self.function.ty(inst.result?));
        match (types.pointee(from), types.pointee(to)) {
            (Some(from), Some(to)) => {
                let element = |ty: Ty| match types.kind(ty) {
                    TyKind::IndefArray(elem) | TyKind::Array(elem, _) => *elem,
                    _ => ty,
                };
                let (from, to) = (element(from), element(to));
                let align = |ty: Ty| layout::size_align(types, ty).map(|s| s.1);
                if from != to && contains(types, to, Prim::Bool) {
                    return Some("it takes an address for one of `bool`s".into());
                }
                let fits = align(from).zip(align(to)).is_some_and(|(from, to)| to <= from);
                (!fits).then(|| "it takes an address for one of larger alignment".into())
            }
            _ if has_address(types, to) => Some("it makes an address of a number".into()),
            _ => None,
        }
    }

    /// Whether a literal index is that of a part.
    fn is_part(&self, aggregate: Value, index: Value) -> bool {
        let n = self.module.types.n_parts(self.function.ty(aggregate));
        n.zip(self.function.as_index(index)).is_some_and(|(n, index)| index < n)
    }

    fn shuffles(&self, args: &[Value]) -> bool {
        let n = self.module.types.n_parts(self.function.ty(args[0])).unwrap_or(0);
        let Some(inst) = self.defs.get(&args[2]) else { return false };
        let is_lane = |v: &Value| self.function.as_index(*v).is_some_and(|i| i < 2 * n);
        matches!(inst.op, InstOp::Op(Op::Array | Op::Splat)) && inst.args.iter().all(is_lane)
    }

    fn call(&self, callee: Func, args: &[Value]) -> Option<String> {
        let function = self.module.func(callee);
        if !function.is_foreign() {
            // What others do with addresses is said of them; the exported function believes that its slices are as long as they say.
            let is_believed = callee == self.root && args.iter().any(|&v| self.has_address(v));
            return is_believed.then(|| "it passes an address to a function that calls itself".into());
        }
        let is_own = function.span.is_none();
        match function.symbol() {
            Some(PANIC) if args.len() == 2 && args.iter().all(|&v| self.is_text(v)) => None,
            Some(PANIC) => Some("it panics with a message that is no literal".into()),
            Some(lane_arithmetic::OVERFLOW | lane_arithmetic::DIVISION | undefined::UNDEFINED) if is_own => None,
            // They look at what tells of the bytes at an address whose bounds are known.
            Some(undefined::IS_WRITTEN | undefined::KEEP) if is_own => None,
            Some(symbol) if self.prints_number(symbol, args) => None,
            Some("nyala_parallel") => Some("it runs a loop on several threads".into()),
            Some("nyala_spawn") => Some("it starts a thread".into()),
            Some("nyala_alloc" | "nyala_free" | "nyala_environment" | "nyala_variable") => {
                Some("it allocates memory".into())
            }
            Some(symbol) => Some(format!("it calls the foreign function `{symbol}`")),
            None => Some("it has assembly".into()),
        }
    }

    /// Whether a function of the runtime prints its argument, a number of the type that is in its name.
    fn prints_number(&self, symbol: &str, args: &[Value]) -> bool {
        let (Some(name), &[arg]) = (symbol.strip_prefix("nyala_print_"), args) else { return false };
        let prim = self.module.types.as_prim(self.function.ty(arg));
        prim.is_some_and(|prim| prim.name() == name || name == "char" && prim == Prim::U8)
    }

    /// Whether an address is that of a constant text with a zero byte at its end.
    fn is_text(&self, mut v: Value) -> bool {
        while let Some(Inst { op: InstOp::Op(Op::Bitcast), args, .. }) = self.defs.get(&v) {
            v = args[0];
        }
        let Some(Const::Global(id)) = self.function.as_const(v) else { return false };
        let global = self.module.globals.get(id.idx());
        global.is_some_and(|g| !g.mutable && matches!(&g.init, Init::Bytes(bytes) if bytes.last() == Some(&0)))
    }
}

const BY_ADDRESS: &str = "it calls a function by its address";
