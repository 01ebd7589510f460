//! Reference counts of environments, so that they are freed: each counts the values that hold it. Separate from
//! scheduling, which makes the environments, because counts follow from liveness in finished code.
//!
//! A *counted* value is a function value, or a tuple, struct or array of at most [`MAX_LEAVES`] of them; larger ones
//! are treated as memory. A counted value holds its environments from its definition to its last use, or to the edge
//! after which it is dead:
//!
//! * A call *consumes* its arguments, and so do `return`, jumps, tail calls and stores: the count is transferred to the
//!   callee, the block's parameter, or the memory. A value that is still live is retained before. So releases stand
//!   before a tail call, which stays a jump.
//! * Everything else *borrows* its operands, and a counted result (of a load, an `extract`) is retained.
//! * The code of a function value owns the environment that it is called with, and releases it once it has read it.
//! * A local variable ([`Op::Slot`]) holds the value stored last: null at first, released when another value is stored
//!   and where the function ends. Values stored through any other pointer, in a static or in larger arrays are never
//!   released.
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
//! continuations that are values (crate `schedule`) look like environments to their holders. Their addresses, of the type [`record_ptr`], are counted as well: code that leaves by a record returns the count that it
//! was called with. Records in frames have a count that never changes ([`uncounted`]). Modules that allocate nothing on
//! the heap are left as they are.
//!
//! A variable that function values share, and that outlives its function, has a count of its own: [`variables`] says
//! which addresses hold one. Such an address is counted like a function value, but is held as long as anything derived
//! from it is used.
//!
//! An environment that nothing refers to any more when its function ends lies in the function's frame, with a count
//! that never changes ([`uncounted`]). Function values that it captures are held as by a local variable; captured
//! variables, as long as the environment is in use.
//!
//! Bodies of `vectorize` and kernels run many times for one set of captured values: they retain their arguments. Threads get copies
//! of the values that they capture; counts are atomic in functions that run while threads do ([`threads`]).

mod function;
mod threads;
mod variables;

use crate::data::*;
use crate::environments::{record_ptr, uncounted};
use crate::escape::{Escapes, can_hold};
use function::Counter;
use nyala_base::{Id, Span};
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use threads::run_with_threads;
use variables::{Variables, is_made_before};

/// Maximal number of function values in one counted value.
const MAX_LEAVES: usize = 256;

/// Indices that lead from a counted value to a function value in it.
type Path = Vec<u64>;

/// The functions of the runtime that change counts.
#[derive(Clone, Copy)]
struct Counting {
    retain: Func,
    release: Func,
}

/// Facts about the whole module.
struct Program {
    env_ptr: Ty,
    pair: Ty,
    record: Ty,
    leaves: FxHashMap<Ty, Rc<[Path]>>,
    /// Functions that are the code of function values: their last parameter is the environment, which they own.
    codes: FxHashSet<Func>,
    /// Code of continuations that are values: their last parameter is a record, which they do not own.
    leavers: FxHashSet<Func>,
    /// Bodies of `vectorize` and kernels, which retain their arguments.
    vectorized: FxHashSet<Func>,
    /// Callbacks of threads: they own the values that they read from their environment.
    threads: FxHashSet<Func>,
    /// Functions that may run while a thread does, whose counts are atomic.
    shared: FxHashSet<Func>,
    counting: Counting,
    counting_shared: Counting,
    environment: Func,
    layouts: FxHashMap<Vec<u64>, GlobalId>,
    variables: Rc<Variables>,
    in_frames: BTreeSet<(Func, Value)>,
}

/// Makes environments reference-counted, in all functions.
pub fn count_environments(module: &mut Module) {
    let env_ptr = {
        let unit = module.types.unit();
        module.types.ptr(unit)
    };
    let code = module.types.code();
    let pair = module.types.tuple(&[code, env_ptr]);
    let record = record_ptr(&mut module.types);
    let codes = codes(module);
    let (mut vectorized, mut threads) = (FxHashSet::default(), FxHashSet::default());
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            match inst.op {
                InstOp::Vectorize(body, ..) | InstOp::Launch(body, _) => drop(vectorized.insert(body)),
                InstOp::Call(callee) if module.func(callee).symbol() == Some("nyala_spawn") => {
                    threads.extend(inst.args.iter().filter_map(|&a| match function.as_const(a) {
                        Some(Const::CFunc(f)) => Some(f),
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
    }
    if module.funcs.iter().all(|f| environments(f, pair, record).is_empty()) {
        return;
    }
    let shared = run_with_threads(module);
    let leavers = codes.iter().copied().filter(|&f| returns_last_param(module.func(f))).collect();
    let i64_ty = module.types.prim(Prim::I64);
    let layout_ptr = module.types.ptr(i64_ty);
    let mut runtime = |symbol: &str, params: &[Ty], rets: &[Ty]| {
        module.declare(symbol, Linkage::Foreign(symbol.into()), params, rets)
    };
    let mut declare = |retain, release| Counting {
        retain: runtime(retain, &[env_ptr], &[]),
        release: runtime(release, &[env_ptr], &[]),
    };
    let counting = declare("nyala_retain", "nyala_release");
    let counting_shared = match shared.is_empty() {
        true => counting,
        false => declare("nyala_retain_shared", "nyala_release_shared"),
    };
    let environment = runtime("nyala_environment", &[i64_ty, layout_ptr], &[env_ptr]);
    let mut program = Program {
        env_ptr,
        pair,
        record,
        leaves: FxHashMap::default(),
        codes,
        leavers,
        vectorized,
        threads,
        shared,
        counting,
        counting_shared,
        environment,
        layouts: FxHashMap::default(),
        variables: Rc::default(),
        in_frames: BTreeSet::new(),
    };
    program.in_frames = program.find_in_frames(module);
    program.variables = Rc::new(variables::find(&program, module));
    for i in 0..module.funcs.len() {
        if !module.funcs[i].blocks.is_empty() {
            program.count_in(module, Func::from_idx(i));
        }
    }
}

/// Functions that are the code of function values.
fn codes(module: &Module) -> FxHashSet<Func> {
    let mut found: FxHashSet<Func> = module.globals.iter().flat_map(|g| g.init.functions()).collect();
    for function in &module.funcs {
        let insts = function.blocks.iter().flat_map(|b| &b.insts);
        found.extend(insts.filter_map(|inst| function_value(function, inst)).map(|(code, _)| code));
    }
    found
}

/// Code and environment of the function value that an instruction makes, if its code is known.
fn function_value(function: &Function, inst: &Inst) -> Option<(Func, Value)> {
    match (inst.op, &inst.args[..]) {
        (InstOp::Op(Op::Tuple), &[code, environment]) => match function.as_const(code) {
            Some(Const::Func(code)) => Some((code, environment)),
            _ => None,
        },
        _ => None,
    }
}

/// In a module with counts, the code of function values that have environments, with the environment's memory and its
/// maker.
fn environments_made(function: &Function) -> Vec<(Func, Option<(Value, InstOp)>)> {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    let made: Vec<(Func, Value)> = insts().filter_map(|inst| function_value(function, inst)).collect();
    if made.is_empty() {
        return Vec::new();
    }
    let makers = makers(function);
    let made = made.into_iter().filter(|&(_, environment)| function.as_const(environment).is_none());
    let memory = |environment| memory_of(&makers, environment).map(|memory| (memory, makers[&memory].op));
    made.map(|(code, environment)| (code, memory(environment))).collect()
}

/// In a module with counts, the code of function values that have environments, and whether one of these may lie on the
/// heap.
pub fn environments_by_code(module: &Module) -> FxHashMap<Func, bool> {
    let mut found = FxHashMap::default();
    for (code, memory) in module.funcs.iter().flat_map(environments_made) {
        *found.entry(code).or_default() |= memory.is_none_or(|(_, maker)| maker != InstOp::Op(Op::Slot));
    }
    found
}

/// Finds environments in the frames of functions that may leave by a tail call, in a module with counts.
pub struct Frames<'m> {
    module: &'m Module,
    escapes: Option<Escapes<'m>>,
}

impl<'m> Frames<'m> {
    /// Makes the table; nothing is computed yet.
    pub fn new(module: &'m Module) -> Frames<'m> {
        Frames { module, escapes: None }
    }

    /// The slots of a function that are environments, and to which nothing refers when it ends, also by a tail call.
    pub fn environments(&mut self, func: Func) -> FxHashSet<Value> {
        let made = environments_made(self.module.func(func));
        let slots = made.into_iter().filter_map(|(_, memory)| memory).filter(|m| m.1 == InstOp::Op(Op::Slot));
        let slots: FxHashSet<Value> = slots.map(|(slot, _)| slot).collect();
        if slots.is_empty() {
            return slots;
        }
        let escapes = self.escapes.get_or_insert_with(|| Escapes::of_environments(self.module, codes(self.module)));
        slots.into_iter().filter(|&slot| escapes.derived_in_frame(func, slot).is_some()).collect()
    }
}

/// The source locations of continuations that have records on the heap, in a module with counts.
pub fn records_on_heap(module: &mut Module) -> Vec<Span> {
    let record = record_ptr(&mut module.types);
    let mut found: Vec<Span> = Vec::new();
    for function in &module.funcs {
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let makers = makers(function);
        let is_made = |memory: Value| matches!(makers[&memory].op, InstOp::Call(_));
        let addresses = insts().filter(|inst| {
            inst.op == InstOp::Op(Op::Bitcast) && inst.result.is_some_and(|result| function.ty(result) == record)
        });
        found.extend(addresses.filter(|i| memory_of(&makers, i.args[0]).is_some_and(is_made)).map(|inst| inst.span));
    }
    found
}

/// Memory on the heap of a function that is an environment or a record; true for records.
fn environments(function: &Function, pair: Ty, record: Ty) -> BTreeMap<Value, bool> {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    let makers = makers(function);
    let mut found: BTreeMap<Value, bool> = BTreeMap::new();
    for inst in insts() {
        let Some(ty) = inst.result.map(|result| function.ty(result)) else { continue };
        let address = match inst.op {
            InstOp::Op(Op::Bitcast) if ty == record => inst.args[0],
            InstOp::Op(Op::Tuple) if ty == pair && function.as_const(inst.args[0]).is_some() => inst.args[1],
            _ => continue,
        };
        if let Some(memory) = memory_of(&makers, address).filter(|m| makers[m].op == InstOp::Op(Op::Alloc)) {
            *found.entry(memory).or_default() |= ty == record;
        }
    }
    found
}

/// Instructions by their results.
fn makers(function: &Function) -> FxHashMap<Value, &Inst> {
    function.blocks.iter().flat_map(|b| &b.insts).filter_map(|inst| Some((inst.result?, inst))).collect()
}

/// The memory that an address points into.
fn memory_of(makers: &FxHashMap<Value, &Inst>, mut at: Value) -> Option<Value> {
    while let InstOp::Op(Op::Bitcast | Op::Lea) = makers.get(&at)?.op {
        at = makers[&at].args[0];
    }
    Some(at)
}

/// An instruction that gives an address another value as name.
fn renamed(address: Value, name: Value, span: Span) -> Inst {
    Inst { op: InstOp::Op(Op::Bitcast), args: [address].as_slice().into(), result: Some(name), span, fast: false }
}

fn returns_last_param(function: &Function) -> bool {
    let Some(&last) = function.blocks.first().and_then(|entry| entry.params.last()) else { return false };
    let is_record = |inst: &&Inst| inst.op == InstOp::Op(Op::Bitcast) && inst.args[0] == last;
    let records = function.blocks.iter().flat_map(|b| &b.insts).filter(is_record).filter_map(|inst| inst.result);
    let own: Vec<Value> = records.chain([last]).collect();
    let returns =
        |b: &BlockData| matches!(&b.term, Terminator::Return(values) if values.iter().any(|v| own.contains(v)));
    function.blocks.iter().any(returns)
}

impl Program {
    /// Whether a function is the code of function values that owns its environment.
    fn owns_environment(&self, func: Func) -> bool {
        self.codes.contains(&func) && !self.leavers.contains(&func)
    }

    /// Paths to the environments and records in a counted value; empty if it is not counted.
    fn leaves(&mut self, types: &Types, ty: Ty) -> Rc<[Path]> {
        if let Some(known) = self.leaves.get(&ty) {
            return known.clone();
        }
        let mut found: Vec<Path> = Vec::new();
        // Recursion is bounded: the source limits the depth of types.
        if ty == self.pair {
            found.push(vec![1]);
        } else if ty == self.record {
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

    /// Values that may be addresses of variables with function values, or contain one.
    fn addresses_of_variables(&mut self, module: &Module, func: Func) -> FxHashSet<Value> {
        let function = module.func(func);
        let insts = || function.blocks.iter().flat_map(|b| &b.insts);
        let makers = makers(function);
        // Environments are excluded: all their uses are known.
        let in_frame = self.in_frames.range((func, Value(0))..=(func, Value(u32::MAX)));
        let environments: FxHashSet<Value> = in_frame.filter_map(|frame| memory_of(&makers, frame.1)).collect();
        let made = insts().filter(|inst| inst.op == InstOp::Op(Op::Slot)).filter_map(|inst| inst.result);
        let holds_functions = |v: &Value| {
            let ty = module.types.pointee(function.ty(*v));
            ty.is_some_and(|ty| !self.leaves(&module.types, ty).is_empty()) && !environments.contains(v)
        };
        let slots: Vec<Value> = made.filter(holds_functions).collect();
        if slots.is_empty() {
            return FxHashSet::default();
        }
        match Escapes::new(module).derived(func, &slots) {
            Some(derived) => (0..derived.len()).filter(|&i| derived[i]).map(Value::from_idx).collect(),
            // An address is stored somewhere: any address may be one of them.
            None => {
                let values = (0..function.values.len()).map(Value::from_idx);
                values.filter(|v| can_hold(&module.types, function.ty(*v))).collect()
            }
        }
    }

    /// Environments that can lie in the frames of the functions that make them: nothing refers to them when these
    /// functions end, nor when the next one is made.
    fn find_in_frames(&self, module: &Module) -> BTreeSet<(Func, Value)> {
        let mut found = BTreeSet::new();
        let mut escapes = Escapes::of_environments(module, self.codes.clone());
        for (i, function) in module.funcs.iter().enumerate() {
            let func = Func::from_idx(i);
            for (memory, is_record) in environments(function, self.pair, self.record) {
                if !is_record
                    && let Some(derived) = escapes.derived_in_frame(func, memory)
                    && (escapes.made_again(func, &[memory]).is_empty() || is_made_before(function, memory, &derived))
                {
                    found.insert((func, memory));
                }
            }
        }
        found
    }

    /// Gives memory that is an environment its count.
    fn make_environments(&mut self, module: &mut Module, func: Func) {
        let found = environments(module.func(func), self.pair, self.record);
        for i in 0..module.func(func).blocks.len() {
            let insts = std::mem::take(&mut module.funcs[func.idx()].blocks[i].insts);
            for inst in insts {
                match inst.result.and_then(|r| Some((r, *found.get(&r)?))) {
                    Some((memory, is_record)) => {
                        self.make_environment(module, (func, i), &inst, memory);
                        if is_record {
                            self.clear(module, (func, i), inst.span, memory);
                        }
                    }
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
            let made = uncounted(&mut b, ty);
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

    /// Clears a new record: it has room for arguments, which may never be written, and must hold no environments until
    /// then.
    fn clear(&mut self, module: &mut Module, (func, block): (Func, usize), span: Span, memory: Value) {
        let pointee = module.types.pointee(module.func(func).ty(memory));
        let Some(ty) = pointee.and_then(|ty| part_ty(&module.types, ty, None)) else { return };
        let paths = self.leaves(&module.types, ty);
        let mut b = FunctionBuilder::new(module, func);
        b.span = span;
        b.switch_to(Block::from_idx(block));
        for path in paths.iter() {
            let (mut at, mut inner) = (memory, ty);
            for (i, &idx) in [&[0], &path[..]].concat().iter().enumerate() {
                inner = if i == 0 { ty } else { part_ty(b.types, inner, Some(idx)).unwrap_or(inner) };
                let (idx, ptr) = (b.literal(Prim::I64, idx), b.types.ptr(inner));
                at = b.op(Op::Lea, &[at, idx], ptr);
            }
            let null = b.function.constant(Const::Bits(0), inner);
            b.store(at, null);
        }
    }

    /// Offsets in bytes of the environments that an environment of this type captures.
    fn offsets(&mut self, types: &Types, ty: Ty) -> Vec<u64> {
        let mut found = Vec::new();
        for i in 0..types.n_parts(ty).unwrap_or(0) {
            let Some(part) = types.part(ty, i) else { continue };
            for path in self.leaves(types, part).iter() {
                let (mut at, mut inner) = (0, ty);
                for &idx in [&[i], &path[..]].concat().iter() {
                    at += layout::offset(types, inner, idx).unwrap_or(0);
                    inner = part_ty(types, inner, Some(idx)).unwrap_or(inner);
                }
                found.push(at);
            }
        }
        found
    }

    /// The global with the runtime's description of an environment.
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
        let global = module.add_global(Global { name, ty, mutable: false, space: 0, init });
        self.layouts.insert(words, global);
        global
    }
}
