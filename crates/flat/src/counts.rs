//! Environments of function values are freed: each has a count of the values that hold it. Separate from
//! [scheduling](mod@crate::schedule), which makes the environments, because counts follow from liveness in finished code.
//!
//! A *counted* value is a function value, or a tuple, struct or array of at most [`MAX_LEAVES`] of them; larger ones are
//! treated as memory. Every counted value holds its environments from its definition on; its last use, or the edge behind
//! which nobody uses it, ends that:
//!
//! * A call *consumes* its arguments, and so do `return`, jumps, tail calls and stores: the count goes over to the callee,
//!   the block's parameter, or the memory. A value that is used again afterwards is retained before. So releases stand
//!   before a tail call, which stays a jump.
//! * Everything else *borrows* its operands, and a counted result (of a load, an `extract`) is retained.
//! * The code of a function value owns the environment that it is called with, and releases it once it has read it.
//! * A local variable ([`Op::Slot`]) holds what was stored last: null at first, released when something else is stored and
//!   where the function ends. What is stored through any other pointer, in a static or in larger arrays is never released.
//!
//! ```text
//! v1: (code, &()) = …                     v1: (code, &()) = …
//! c: code = extract(v1, 0i64)             c: code = extract(v1, 0i64)
//! e: &() = extract(v1, 1i64)              e: &() = extract(v1, 1i64)
//!                                         call nyala_retain(e)
//! x: i32 = call_indirect c(1i32, e)       x: i32 = call_indirect c(1i32, e)
//! y: i32 = call_indirect c(x, e)          y: i32 = call_indirect c(x, e)        consumes the last count
//! ```
//!
//! Which memory is an environment follows from the code: it is the second part of a function value. Records of
//! continuations that are values ([`schedule`](mod@crate::schedule)) look the same to those who hold them; they belong to
//! frames, and have a count that nobody changes ([`uncounted`]). Modules that make no environment are left as they are.
//!
//! A variable that function values share, and that outlives its function, has a count of its own: [`variables`] says which
//! addresses hold one. Such an address is counted as a function value is, but held as long as anything derived from it is used.
//!
//! An environment that nobody has any more when its function ends lies in the function's frame, with a count that nobody
//! changes ([`uncounted`]). What it captures is held as by a local variable.
//!
//! Bodies of `vectorize` run many times for one set of captured values: they retain what they are given. Threads get
//! copies of what they capture; where a module starts any, counts are atomic.

mod function;
mod variables;

use crate::data::*;
use crate::escape::{Escapes, can_hold};
use function::Counter;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use variables::{Variables, is_made_before};

/// Function values in one counted value.
const MAX_LEAVES: usize = 256;

/// Indices that lead from a counted value to a function value.
type Path = Vec<u64>;

/// What the whole module has to say.
struct Program {
    env_ptr: Ty,
    pair: Ty,
    leaves: FxHashMap<Ty, Rc<[Path]>>,
    /// Functions that are the code of a function value: the last parameter is the environment, which they own.
    codes: FxHashSet<Func>,
    /// Code of continuations, whose last parameter is a record, not theirs.
    leavers: FxHashSet<Func>,
    vectorized: FxHashSet<Func>,
    /// Callbacks of threads: they own what they read.
    threads: FxHashSet<Func>,
    retain: Func,
    release: Func,
    environment: Func,
    layouts: FxHashMap<Vec<u64>, GlobalId>,
    variables: Rc<Variables>,
    in_frames: FxHashSet<(Func, Value)>,
}

/// Makes environments counted, in all functions.
pub fn count_environments(module: &mut Module) {
    let env_ptr = {
        let unit = module.types.unit();
        module.types.ptr(unit)
    };
    let code = module.types.code();
    let pair = module.types.tuple(&[code, env_ptr]);
    let mut codes: FxHashSet<Func> = module.globals.iter().flat_map(|g| functions_in(&g.init)).collect();
    let (mut vectorized, mut threads, mut makes_any) = (FxHashSet::default(), FxHashSet::default(), false);
    let mut has_threads = false;
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match inst.op {
                InstOp::Op(Op::Tuple) if inst.result.is_some_and(|r| function.ty(r) == pair) => {
                    if let Some(Const::Func(f)) = function.as_const(inst.args[0]) {
                        codes.insert(f);
                        let is_null = function.as_const(inst.args[1]).is_some();
                        makes_any |= !is_null && !returns_last_param(module.func(f));
                    }
                }
                InstOp::Vectorize(body, ..) => drop(vectorized.insert(body)),
                InstOp::Call(callee) => match module.func(callee).symbol() {
                    Some("nyala_spawn") => {
                        has_threads = true;
                        threads.extend(inst.args.iter().filter_map(|&a| match function.as_const(a) {
                            Some(Const::CFunc(f)) => Some(f),
                            _ => None,
                        }));
                    }
                    Some("nyala_parallel") => has_threads = true,
                    _ => {}
                },
                _ => {}
            }
        }
    }
    if !makes_any {
        return;
    }
    let leavers = codes.iter().copied().filter(|&f| returns_last_param(module.func(f))).collect();
    let i64_ty = module.types.prim(Prim::I64);
    let layout_ptr = module.types.ptr(i64_ty);
    let mut runtime = |symbol: &str, params: &[Ty], rets: &[Ty]| {
        module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets)
    };
    let (retain, release) = match has_threads {
        true => ("nyala_retain_shared", "nyala_release_shared"),
        false => ("nyala_retain", "nyala_release"),
    };
    let (retain, release) = (runtime(retain, &[env_ptr], &[]), runtime(release, &[env_ptr], &[]));
    let environment = runtime("nyala_environment", &[i64_ty, layout_ptr], &[env_ptr]);
    let mut program = Program {
        env_ptr,
        pair,
        leaves: FxHashMap::default(),
        codes,
        leavers,
        vectorized,
        threads,
        retain,
        release,
        environment,
        layouts: FxHashMap::default(),
        variables: Rc::default(),
        in_frames: FxHashSet::default(),
    };
    program.variables = Rc::new(variables::find(&program, module));
    program.in_frames = program.find_in_frames(module);
    for i in 0..module.funcs.len() {
        if !module.funcs[i].blocks.is_empty() {
            program.count_in(module, Func::from_idx(i));
        }
    }
}

/// The functions that environments are made for, and whether one of them may lie on the heap: code of function values, in a
/// module with counts.
pub fn environments_by_code(module: &Module) -> FxHashMap<Func, bool> {
    let mut found = FxHashMap::default();
    for function in &module.funcs {
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let makers: FxHashMap<Value, &Inst> = insts().filter_map(|inst| Some((inst.result?, inst))).collect();
        for inst in insts().filter(|inst| inst.op == InstOp::Op(Op::Tuple)) {
            if let [code, environment] = inst.args[..]
                && let Some(Const::Func(code)) = function.as_const(code)
                && function.as_const(environment).is_none()
            {
                let memory = memory_of(&makers, environment).map(|memory| makers[&memory].op);
                *found.entry(code).or_default() |= memory != Some(InstOp::Op(Op::Slot));
            }
        }
    }
    found
}

/// Makes memory that looks like an environment to those who hold it, with a count that nobody changes: in the frame, or on
/// the heap. Its address.
pub(crate) fn uncounted(b: &mut FunctionBuilder, ty: Ty, on_heap: bool) -> Value {
    let align = layout::size_align(b.types, ty).map_or(16, |(_, align)| align.max(16));
    // Padding, the count, and no layout.
    let n_before = align / 8;
    let i64_ty = b.types.prim(Prim::I64);
    let parts: Vec<Ty> = (0..n_before).map(|_| i64_ty).chain([ty]).collect();
    let behind_header = b.types.tuple(&parts);
    let whole = match on_heap {
        false => b.slot(behind_header, ""),
        true => {
            let array = b.types.indef_array(behind_header);
            let (array, element) = (b.types.ptr(array), b.types.ptr(behind_header));
            let (one, zero) = (b.literal(Prim::I64, 1), b.literal(Prim::I64, 0));
            let made = b.op(Op::Alloc, &[one], array);
            b.op(Op::Lea, &[made, zero], element)
        }
    };
    let mut part = |idx: u64, ty: Ty| {
        let (idx, ptr) = (b.literal(Prim::I64, idx), b.types.ptr(ty));
        b.op(Op::Lea, &[whole, idx], ptr)
    };
    let (count, memory) = (part(n_before - 2, i64_ty), part(n_before, ty));
    let forever = b.literal(Prim::I64, -1i64 as u64);
    b.store(count, forever);
    memory
}

fn functions_in(init: &Init) -> Vec<Func> {
    let (mut found, mut work) = (Vec::new(), vec![init]);
    while let Some(init) = work.pop() {
        match init {
            Init::Func(f) => found.push(*f),
            Init::Parts(parts) => work.extend(parts),
            _ => {}
        }
    }
    found
}

/// The memory that an address leads into.
fn memory_of(makers: &FxHashMap<Value, &Inst>, mut at: Value) -> Option<Value> {
    while let InstOp::Op(Op::Bitcast | Op::Lea) = makers.get(&at)?.op {
        at = makers[&at].args[0];
    }
    Some(at)
}

/// An address under another name.
fn renamed(address: Value, name: Value, span: Span) -> Inst {
    Inst { op: InstOp::Op(Op::Bitcast), args: [address].as_slice().into(), result: Some(name), span, fast: false }
}

fn returns_last_param(function: &Function) -> bool {
    let Some(last) = function.blocks.first().and_then(|entry| entry.params.last()) else { return false };
    function.blocks.iter().any(|b| matches!(&b.term, Terminator::Return(values) if values.contains(last)))
}

impl Program {
    /// Whether a function is the code of function values, and owns the environment that it is called with.
    fn owns_environment(&self, func: Func) -> bool {
        self.codes.contains(&func) && !self.leavers.contains(&func)
    }

    /// Paths to the function values in a counted value; none if it is not counted.
    fn leaves(&mut self, types: &Types, ty: Ty) -> Rc<[Path]> {
        if let Some(known) = self.leaves.get(&ty) {
            return known.clone();
        }
        let mut found: Vec<Path> = Vec::new();
        // Types are as deep as the source says, which is limited.
        if ty == self.pair {
            found.push(Vec::new());
        } else if matches!(types.kind(ty), TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..)) {
            for i in 0..types.n_parts(ty).unwrap_or(0) {
                let Some(part) = types.part(ty, i) else { continue };
                let inner = self.leaves(types, part);
                if inner.is_empty() && matches!(types.kind(ty), TyKind::Array(..)) {
                    break;
                }
                found.extend(inner.iter().map(|path| [&[i], &path[..]].concat()));
                if found.len() > MAX_LEAVES {
                    found.clear();
                    break;
                }
            }
        }
        let found: Rc<[Path]> = found.into();
        self.leaves.insert(ty, found.clone());
        found
    }

    fn count_in(&mut self, module: &mut Module, func: Func) {
        self.make_environments(module, func);
        let addresses = self.addresses_of_variables(module, func);
        Counter::new(self, module, func, addresses).run();
    }

    /// Values that may be addresses of variables with function values, or hold some.
    fn addresses_of_variables(&mut self, module: &Module, func: Func) -> FxHashSet<Value> {
        let function = module.func(func);
        let made = function.blocks.iter().flat_map(|b| &b.insts).filter(|inst| inst.op == InstOp::Op(Op::Slot));
        let slots: Vec<Value> = made.filter_map(|inst| inst.result).collect();
        let holds_functions = |v: &Value| {
            module.types.pointee(function.ty(*v)).is_some_and(|ty| !self.leaves(&module.types, ty).is_empty())
        };
        let slots: Vec<Value> = slots.into_iter().filter(holds_functions).collect();
        if slots.is_empty() {
            return FxHashSet::default();
        }
        match Escapes::new(module).derived(func, &slots) {
            Some(derived) => (0..derived.len()).filter(|&i| derived[i]).map(Value::from_idx).collect(),
            // They are stored somewhere: any address may be one.
            None => {
                let values = (0..function.values.len()).map(Value::from_idx);
                values.filter(|v| can_hold(&module.types, function.ty(*v))).collect()
            }
        }
    }

    /// The memory that is an environment, in a function.
    fn environments(&self, function: &Function) -> Vec<Value> {
        let mut makers: FxHashMap<Value, &Inst> = FxHashMap::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            makers.extend(inst.result.map(|result| (result, inst)));
        }
        let mut found: Vec<Value> = Vec::new();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            if inst.op == InstOp::Op(Op::Tuple)
                && inst.result.is_some_and(|r| function.ty(r) == self.pair)
                && let Some(Const::Func(code)) = function.as_const(inst.args[0])
                && !self.leavers.contains(&code)
            {
                found.extend(memory_of(&makers, inst.args[1]).filter(|m| makers[m].op == InstOp::Op(Op::Alloc)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Environments that can lie in the frames of the functions that make them: nobody has them when these end, nor when the
    /// next one is made. A function that ends with a jump to another one has no frame then.
    fn find_in_frames(&self, module: &Module) -> FxHashSet<(Func, Value)> {
        let mut found = FxHashSet::default();
        let mut escapes = Escapes::of_environments(module, self.codes.clone());
        for (i, function) in module.funcs.iter().enumerate() {
            let is_jump = |b: &BlockData| matches!(b.term, Terminator::TailCall { .. });
            if function.blocks.is_empty() || function.blocks.iter().any(is_jump) {
                continue;
            }
            let func = Func::from_idx(i);
            for memory in self.environments(function) {
                if self.variables.fields_of(func, memory).is_empty()
                    && let Some(derived) = escapes.derived_if_it_ends(func, memory)
                    && (escapes.made_again(func, &[memory]).is_empty() || is_made_before(function, memory, &derived))
                {
                    found.insert((func, memory));
                }
            }
        }
        found
    }

    /// Memory that is an environment gets its count.
    fn make_environments(&mut self, module: &mut Module, func: Func) {
        let found = self.environments(module.func(func));
        for i in 0..module.func(func).blocks.len() {
            let insts = std::mem::take(&mut module.funcs[func.idx()].blocks[i].insts);
            for inst in insts {
                match inst.result.filter(|r| found.binary_search(r).is_ok()) {
                    Some(memory) => self.make_environment(module, (func, i), &inst, memory),
                    None => module.funcs[func.idx()].blocks[i].insts.push(inst),
                }
            }
        }
    }

    fn make_environment(&mut self, module: &mut Module, (func, block): (Func, usize), inst: &Inst, memory: Value) {
        let types = &module.types;
        let pointee = types.pointee(module.func(func).ty(memory)).unwrap_or(self.env_ptr);
        let ty = match *types.kind(pointee) {
            TyKind::IndefArray(elem) => elem,
            _ => pointee,
        };
        if self.in_frames.contains(&(func, memory)) {
            let mut b = FunctionBuilder::new(module, func);
            b.span = inst.span;
            b.switch_to(Block::from_idx(block));
            let made = uncounted(&mut b, ty, false);
            b.function.blocks[block].insts.push(renamed(made, memory, inst.span));
            return;
        }
        let (size, align) = layout::size_align(types, ty).unwrap_or((0, 1));
        let mut offsets = self.offsets(&module.types, ty);
        let variables = self.variables.fields_of(func, memory).iter();
        offsets.extend(variables.filter_map(|&idx| layout::offset(&module.types, ty, idx)));
        let global = self.layout(module, align, offsets);
        let i64_ty = module.types.prim(Prim::I64);
        let layout_ptr = module.types.ptr(i64_ty);
        let mut b = FunctionBuilder::new(module, func);
        b.span = inst.span;
        b.switch_to(Block::from_idx(block));
        let layout = b.function.constant(Const::Global(global), layout_ptr);
        let size = b.literal(Prim::I64, size);
        let made = b.call(self.environment, &[size, layout], &[self.env_ptr]);
        b.function.blocks[block].insts.push(renamed(made, memory, inst.span));
    }

    /// Where the environments are that an environment of this type captures.
    fn offsets(&mut self, types: &Types, ty: Ty) -> Vec<u64> {
        let mut found = Vec::new();
        for i in 0..types.n_parts(ty).unwrap_or(0) {
            let Some(part) = types.part(ty, i) else { continue };
            for path in self.leaves(types, part).iter() {
                let (mut at, mut inner) = (0, ty);
                for &idx in [&[i], &path[..], &[1]].concat().iter() {
                    at += layout::offset(types, inner, idx).unwrap_or(0);
                    inner = part_ty(types, inner, Some(idx)).unwrap_or(inner);
                }
                found.push(at);
            }
        }
        found
    }

    /// The runtime's description of an environment.
    fn layout(&mut self, module: &mut Module, align: u64, offsets: Vec<u64>) -> GlobalId {
        let mut words = vec![align, offsets.len() as u64];
        words.extend(offsets);
        if let Some(&known) = self.layouts.get(&words) {
            return known;
        }
        let i64_ty = module.types.prim(Prim::I64);
        let ty = module.types.array(i64_ty, words.len() as u64);
        let init = Init::Parts(words.iter().map(|&w| Init::Bits(w)).collect());
        let name = format!("environment.{}", self.layouts.len());
        let global = module.add_global(Global { name, ty, mutable: false, init });
        self.layouts.insert(words, global);
        global
    }
}
