//! Kernels: launches leave a module, as calls of the runtime; address spaces of devices, and what costs time there.
//!
//! On the host, `launch` instructions become calls of the runtime, and their kernels become functions that run
//! whole blocks of work items on a CPU. On other devices, kernels move to modules of their own ([`split`]). Separate from other
//! lowering, because it is a back end for one more machine: the host as a device.
//!
//! A block is one call on one thread. The work items of a block wait for each other at *barriers*, which are all
//! operations of [`LaneOp`] with the scope of a block. A kernel is cut there into *regions* ([`barrier_regions`]): a region begins
//! at the kernel's entry, after a barrier, or after a branch that decides which barrier comes next, and ends at the next
//! of these, or at the return. Work items that are in one region all end it at the same place, so each region is a loop
//! over the work items of the block, a `vectorize` with as many lanes as a register has ([`work_group`]):
//!
//! ```text
//! kernel(a, n)                       kernel.block(a, n, …)
//!   t = work_item(thread, x)           s = shared.slot; x = slot [f32 * 64]
//!   s = nyala_block_shared(256)        vectorize[8] region.0(0, 64, a, n, s, x)
//!   x = load(a + t)                    vectorize[8] region.1(0, 64, a, n, s, x)
//!   store(s + t, x)                  region.0(i, a, n, s, x)
//!   nyala_block_barrier()              v = load(a + i); store(s + i, v); store(x + i, v)
//!   y = load(s + 63 - t)             region.1(i, a, n, s, x)
//!   store(a + t, x + y)                y = load(s + 63 - i); v = load(x + i); store(a + i, v + y)
//! ```
//!
//! Between regions,
//!
//! - a value that all work items have in common is computed once for the block, and passed to the regions that use it;
//! - a value that is cheap to compute from these and from the number of the work item is computed again (`t`);
//! - any other value lies in an array with one element for each work item (`x`), and so do variables with an address.
//!
//! A branch between regions is taken by the whole block. Where its condition is not common to the work items for certain,
//! all of them compute it, and the runtime ends the program if they disagree.
//!
//! Functions that ask for the work item, or that lead to a barrier, are inlined into their kernel first; so they can't be
//! recursive. A kernel that exchanges values within a subgroup runs with 32 lanes, whatever a register has.
//!
//! The algorithm is that of work-group functions for OpenCL on CPUs (Karrenberg and Hack, *Improving Performance of
//! OpenCL on CPUs*, CC 2012; Jääskeläinen and others, *pocl*, IJPP 2015), with control dependence in place of a barrier
//! at each branch and loop.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accesses;
mod barrier_regions;
mod captures;
mod dataflow;
mod device;
pub mod diagnostics;
mod inline;
mod inside;
mod panics;
mod spaces;
mod split;
mod work_group;

use nyala_base::diagnostics::{bad_shared_memory, limitation};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::environments::store_env;
use nyala_flat::*;
use nyala_ir::lanes::{DEVICE_ARGS, PLATFORM_NUMBERS, PLATFORMS, PRAGMA, is_hls, is_of_cpu};
use nyala_ir::{LaneOp, Op, Prim, Ty, Types, WorkItem};
use rustc_hash::{FxHashMap, FxHashSet};
use split::Split;

pub use accesses::{Cost, costs};
pub use spaces::{infer_spaces, place_statics};

/// Extents of a grid and of a block, three each, which come before what a kernel takes.
const N_SIZES: usize = 6;

/// Where kernels run.
pub enum Devices<'a> {
    /// On the host, whatever their platform.
    Host,
    /// On their platform, if it is one of these, as indices of [`PLATFORMS`]: their kernels are in [`Module::devices`] then.
    /// A launch on another platform ends the program with a message.
    Platforms(&'a [u32]),
    /// On one device, whatever their platform: that of a platform, as an index of [`PLATFORMS`], with this number.
    One(u32, u32),
}

/// Takes all launches out of a module.
pub fn lower_launches(module: &mut Module, devices: &Devices) -> Vec<Diagnostic> {
    let mut lowering =
        Lowering { devices, made: FxHashMap::default(), split: Split::default(), diagnostics: Vec::new() };
    match devices {
        Devices::Host => stand_for_devices(module, None),
        Devices::One(platform, device) => stand_for_devices(module, Some((*platform, *device))),
        Devices::Platforms(_) => {}
    }
    inside::answer(module);
    let kernels = kernels(module);
    let in_circuits = functions_for_hls(module, devices);
    let outside = |i: usize| !in_circuits.contains(&Func::from_idx(i));
    let pragmas = pragmas(module);
    let hints = |f: &mut Function| drop_hints(f, &pragmas);
    module.funcs.iter_mut().enumerate().filter(|(i, _)| outside(*i)).for_each(|(_, f)| hints(f));
    if !kernels.is_empty() {
        for func in 0..module.funcs.len() {
            lowering.function(module, Func::from_idx(func));
        }
        lowering.split.finish(module, &mut lowering.diagnostics);
        in_circuits.iter().for_each(|f| hints(&mut module.funcs[f.idx()]));
        drop_unused(module, &kernels);
    }
    let mut diagnostics = lowering.diagnostics;
    for func in 0..module.funcs.len() {
        if asks_for_work_item(&module.funcs[func]) {
            let (types, function) = (&mut module.types, &mut module.funcs[func]);
            inline::answer(types, function, &|_, _| None);
        }
        let insts = module.funcs[func].blocks.iter().flat_map(|b| &b.insts);
        let is_shared = |inst: &&Inst| matches!(module.lane_op(inst), Some((LaneOp::Shared, _)));
        diagnostics.extend(insts.filter(is_shared).map(|inst| bad_shared_memory::outside(inst.span)));
    }
    once_for_each_cause(diagnostics)
}

/// Errors in words that are the same for all platforms, as one: the first, with the number of other places.
fn once_for_each_cause(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const WORDS: [&str; 10] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let cause = |d: &Diagnostic| {
        let platform = |name: &&&str| d.message.starts_with(&format!("a kernel for `{name}` "));
        let prefix = PLATFORMS.iter().find(platform).map_or(0, |name| format!("a kernel for `{name}` ").len());
        (d.code, d.message[prefix..].to_string())
    };
    let mut firsts: Vec<Diagnostic> = Vec::new();
    let mut places: Vec<FxHashSet<Span>> = Vec::new();
    let mut known = FxHashMap::default();
    for d in diagnostics {
        let n = firsts.len();
        let at = *known.entry(cause(&d)).or_insert(n);
        if at == n {
            places.push(FxHashSet::default());
            places[at].insert(d.primary.span);
            firsts.push(d);
        } else {
            places[at].insert(d.primary.span);
        }
    }
    for (d, places) in firsts.iter_mut().zip(places) {
        let n = places.len() - 1;
        let number = WORDS.get(n.wrapping_sub(1)).map_or_else(|| n.to_string(), |word| word.to_string());
        if n > 0 {
            let separator = if d.primary.text.is_empty() { "" } else { "; " };
            d.primary.text.push_str(&format!("{separator}and {number} more"));
        }
    }
    firsts
}

/// Kernels that become circuits, and what they call.
fn functions_for_hls(module: &Module, devices: &Devices) -> FxHashSet<Func> {
    let on_circuit = |platform: u32| match devices {
        Devices::Host => false,
        Devices::Platforms(platforms) => is_hls(platform) && platforms.contains(&platform),
        Devices::One(platform, _) => is_hls(*platform),
    };
    let insts = module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let launched = |inst: &Inst| match inst.op {
        InstOp::Launch(kernel, platform) if on_circuit(platform) => Some(kernel),
        _ => None,
    };
    let mut work: Vec<Func> = insts.filter_map(launched).collect();
    let mut found = FxHashSet::default();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(module.func(func).blocks.iter().flat_map(|b| &b.insts).filter_map(called));
        }
    }
    found
}

/// Functions whose calls are lines for the tools of circuits.
fn pragmas(module: &Module) -> FxHashSet<Func> {
    let is_pragma = |f: &Func| module.func(*f).is_foreign() && module.func(*f).symbol() == Some(PRAGMA);
    (0..module.funcs.len()).map(Func::from_idx).filter(is_pragma).collect()
}

/// Drops lines for the tools of circuits, and how often rounds of a loop begin, which no other machine has a use for.
fn drop_hints(function: &mut Function, pragmas: &FxHashSet<Func>) {
    let is_used = |function: &Function, result: Option<Value>| {
        let insts = function.blocks.iter().flat_map(|b| &b.insts);
        result.is_some_and(|r| {
            let mut used = insts.flat_map(|i| &i.args).any(|&a| a == r);
            function.blocks.iter().for_each(|b| b.term.for_each_use(|v| used |= v == r));
            used
        })
    };
    for b in 0..function.blocks.len() {
        let mut i = 0;
        while let Some(inst) = function.blocks[b].insts.get(i) {
            let is_pragma =
                matches!(inst.op, InstOp::Call(f) if pragmas.contains(&f)) && !is_used(function, inst.result);
            if is_pragma || inst.op == InstOp::Op(Op::Pipeline) {
                function.blocks[b].insts.remove(i);
            } else {
                i += 1;
            }
        }
    }
}

/// Lets functions of the runtime, and launches, mean one device for all: the one of a platform, as an index of
/// [`PLATFORMS`], with its number, or the host. A device's queue stays.
fn stand_for_devices(module: &mut Module, one: Option<(u32, u32)>) {
    let positions = |f: &Function| DEVICE_ARGS.iter().find(|(name, _)| f.is_foreign() && f.symbol() == Some(name));
    let taking: FxHashMap<Func, &[usize]> =
        module.funcs.iter().enumerate().filter_map(|(i, f)| Some((Func::from_idx(i), positions(f)?.1))).collect();
    let alloc = taking.keys().copied().find(|&f| module.func(f).symbol() == Some("anydsl_alloc"));
    let Module { funcs, types, .. } = module;
    for function in funcs {
        for b in 0..function.blocks.len() {
            let mut i = 0;
            while i < function.blocks[b].insts.len() {
                let inst = &function.blocks[b].insts[i];
                let own = match inst.op {
                    InstOp::Launch(_, platform) if one.is_some() && !is_of_cpu(platform) => &[0][..],
                    InstOp::Call(callee) => taking.get(&callee).copied().unwrap_or(&[]),
                    _ => &[],
                };
                for &at in own {
                    let Some(&arg) = function.blocks[b].insts[i].args.get(at) else { continue };
                    let mut insts = Vec::new();
                    let other = match (one, &mut function.blocks[b].insts[i].op) {
                        (None, InstOp::Call(callee)) if Some(*callee) == alloc => {
                            stand_in(types, function, arg, &mut insts)
                        }
                        (None, _) => function.constant(Const::Bits(0), function.ty(arg)),
                        (Some((platform, device)), InstOp::Launch(_, own)) => {
                            *own = platform;
                            on_queue(function, arg, device, LAUNCH_DEVICE, &mut insts)
                        }
                        (Some((platform, device)), _) => {
                            let number = PLATFORM_NUMBERS.get(platform as usize).copied().unwrap_or_default();
                            let other = on_queue(function, arg, number | device << 4, DEVICE, &mut insts);
                            unless_host(types, function, arg, other, &mut insts)
                        }
                    };
                    function.blocks[b].insts[i].args[at] = other;
                    let n = insts.len();
                    function.blocks[b].insts.splice(i..i, insts);
                    i += n;
                }
                i += 1;
            }
        }
    }
}

/// Bits of a device's number without its queue, for functions of the runtime and for launches.
const DEVICE: u32 = 0xffff;
const LAUNCH_DEVICE: u32 = 0xfff;

/// Appends an operation on `i32` numbers; returns its result.
fn number_op(function: &mut Function, op: Op, args: &[Value], ty: Ty, insts: &mut Vec<Inst>) -> Value {
    let result = function.new_value(ty, "");
    let args = Args::from_slice(args);
    insts.push(Inst { op: InstOp::Op(op), args, result: Some(result), span: Span::NONE, fast: false });
    result
}

/// The number `device`, with the queue of `arg`.
fn on_queue(function: &mut Function, arg: Value, device: u32, bits: u32, insts: &mut Vec<Inst>) -> Value {
    let ty = function.ty(arg);
    if let Some(own) = function.as_bits(arg) {
        return function.constant(Const::Bits((own as u32 & !bits | device).into()), ty);
    }
    let [mask, device] = [!bits, device].map(|n| function.constant(Const::Bits(n.into()), ty));
    let queue = number_op(function, Op::And, &[arg, mask], ty, insts);
    number_op(function, Op::Or, &[queue, device], ty, insts)
}

/// The number `other`, unless `arg` is one of the host.
fn unless_host(types: &mut Types, function: &mut Function, arg: Value, other: Value, insts: &mut Vec<Inst>) -> Value {
    let ty = function.ty(arg);
    if let Some(own) = function.as_bits(arg) {
        return if own & 15 == 0 { arg } else { other };
    }
    let is_host = is_of_host(types, function, arg, insts);
    number_op(function, Op::Select, &[is_host, arg, other], ty, insts)
}

/// The number of the host where it stands for another device, for allocations: checked code lets only kernels access the memory. The
/// runtime knows it as well.
const STAND_IN: u64 = 0x7fff_0000;

/// The host, or [`STAND_IN`] if `arg` is another device.
fn stand_in(types: &mut Types, function: &mut Function, arg: Value, insts: &mut Vec<Inst>) -> Value {
    let ty = function.ty(arg);
    if let Some(own) = function.as_bits(arg) {
        return function.constant(Const::Bits(if own & 15 == 0 { 0 } else { STAND_IN }), ty);
    }
    let [host, other] = [0, STAND_IN].map(|n| function.constant(Const::Bits(n), ty));
    let is_host = is_of_host(types, function, arg, insts);
    number_op(function, Op::Select, &[is_host, host, other], ty, insts)
}

/// Whether a number of a device is one of the host.
fn is_of_host(types: &mut Types, function: &mut Function, arg: Value, insts: &mut Vec<Inst>) -> Value {
    let (ty, bool_ty) = (function.ty(arg), types.bool());
    let [mask, zero] = [15, 0].map(|n| function.constant(Const::Bits(n), ty));
    let platform = number_op(function, Op::And, &[arg, mask], ty, insts);
    number_op(function, Op::Eq, &[platform, zero], bool_ty, insts)
}

/// The functions that are launched.
fn kernels(module: &Module) -> FxHashSet<Func> {
    let insts = module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts);
    let kernel = |inst: &Inst| match inst.op {
        InstOp::Launch(kernel, _) => Some(kernel),
        _ => None,
    };
    insts.filter_map(kernel).collect()
}

fn asks_for_work_item(function: &Function) -> bool {
    function.blocks.iter().flat_map(|b| &b.insts).any(|inst| inst.op == InstOp::Op(Op::WorkItem))
}

/// The sizes that a kernel is compiled for: launches with equal ones share code.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kernel: Func,
    /// The extents of a block, where they are known.
    sizes: [Option<u32>; 3],
}

struct Lowering<'a> {
    devices: &'a Devices<'a>,
    /// Code of kernels on the host.
    made: FxHashMap<Key, Option<Func>>,
    split: Split,
    diagnostics: Vec<Diagnostic>,
}

impl Lowering<'_> {
    fn function(&mut self, module: &mut Module, func: Func) {
        let Lowering { devices, made, split, diagnostics } = self;
        for b in 0..module.funcs[func.idx()].blocks.len() {
            let is_launch = |inst: &Inst| matches!(inst.op, InstOp::Launch(..));
            while let Some(at) = module.funcs[func.idx()].blocks[b].insts.iter().position(is_launch) {
                let mut rest = module.funcs[func.idx()].blocks[b].insts.split_off(at);
                let inst = rest.remove(0);
                let InstOp::Launch(kernel, platform) = inst.op else { return };
                let name = PLATFORMS.get(platform as usize).copied().unwrap_or_default();
                let is_fibers = name == "fibers";
                let on_device = match devices {
                    Devices::Platforms(platforms) => platforms.contains(&platform),
                    Devices::One(..) => !is_of_cpu(platform),
                    Devices::Host => false,
                };
                let is_here = matches!(devices, Devices::Host) || is_of_cpu(platform);
                let before = diagnostics.len();
                // Fibers are threads of the host: they work on its variables.
                let copied = match is_fibers {
                    true => Vec::new(),
                    false => captures::captures(module, func, &inst, !on_device, diagnostics),
                };
                match () {
                    () if diagnostics.len() > before => {}
                    () if on_device => split.launch(module, (func, b), &inst, &copied, diagnostics),
                    () => {
                        let function = &module.funcs[func.idx()];
                        let size = |i: usize| function.as_bits(inst.args[4 + i]).map(|bits| bits as u32);
                        let key = Key { kernel, sizes: [size(0), size(1), size(2)] };
                        let code = is_here.then(|| match made.get(&key) {
                            Some(&code) => code,
                            None => {
                                let code = work_group::compile(module, &key, inst.span, diagnostics);
                                *made.entry(key).or_insert(code)
                            }
                        });
                        call_runtime(module, func, b, &inst, code);
                    }
                }
                module.funcs[func.idx()].blocks[b].insts.append(&mut rest);
            }
        }
    }
}

/// Appends the call that launches a kernel to a block. `code`: `None` if its device is missing.
fn call_runtime(module: &mut Module, func: Func, b: usize, inst: &Inst, code: Option<Option<Func>>) {
    let InstOp::Launch(kernel, platform) = inst.op else { return };
    let (i32, unit) = (module.types.i32(), module.types.unit());
    let (env_ptr, code_ty) = (module.types.ptr(unit), module.types.code());
    let name = name_of(module, kernel);
    let symbol = if code.is_some() { "nyala_launch" } else { "nyala_launch_missing" };
    let params: &[Ty] = if code.is_some() { &[i32, code_ty, env_ptr, env_ptr] } else { &[i32, i32, env_ptr] };
    let runtime = runtime_func(module, symbol, params);
    let tys: Vec<Ty> = inst.args[1..].iter().map(|&a| module.func(func).ty(a)).collect();
    let mut fb = FunctionBuilder::new(module, func);
    fb.switch_to(Block::from_idx(b));
    fb.span = inst.span;
    let number = PLATFORM_NUMBERS.get(platform as usize).copied().unwrap_or_default();
    let is_fibers = PLATFORMS.get(platform as usize) == Some(&"fibers");
    let name = text(&mut fb, name);
    let mut args = Vec::new();
    if let Some(code) = code {
        let Some(code) = code else { return };
        // `fibers` is given a number of threads instead of a device.
        args.push(if is_fibers { inst.args[0] } else { fb.literal(Prim::I32, 0) });
        let env_ty = fb.types.tuple(&tys);
        let env = fb.slot(env_ty, "launch");
        store_env(&mut fb, env, &inst.args[1..], &tys);
        let env = fb.op(Op::Bitcast, &[env], env_ptr);
        let code = fb.function.constant(Const::CFunc(code), code_ty);
        args.extend([code, env]);
    } else {
        args.extend([fb.literal(Prim::I32, number.into()), inst.args[0]]);
    }
    args.push(name);
    fb.call(runtime, &args, &[]);
}

/// A function of the runtime without results.
fn runtime_func(module: &mut Module, symbol: &str, params: &[Ty]) -> Func {
    match module.funcs.iter().position(|f| f.is_foreign() && f.symbol() == Some(symbol)) {
        Some(found) => Func::from_idx(found),
        None => module.declare(symbol, Linkage::Foreign(symbol.into()), params, &[]),
    }
}

/// A global with a kernel's name, for messages of the runtime.
fn name_of(module: &mut Module, kernel: Func) -> (GlobalId, Ty) {
    let bytes: Vec<u8> = module.func(kernel).name.bytes().chain([0]).collect();
    let u8 = module.types.prim(Prim::U8);
    let ty = module.types.array(u8, bytes.len() as u64);
    let init = Init::Bytes(bytes);
    let found = module.globals.iter().position(|g| !g.mutable && g.ty == ty && g.init == init);
    let id = match found {
        Some(found) => GlobalId::from_idx(found),
        None => module.add_global(Global { name: "kernel".into(), ty, mutable: false, space: 0, init }),
    };
    (id, ty)
}

/// The address of a text, as the runtime takes it.
fn text(fb: &mut FunctionBuilder, (global, ty): (GlobalId, Ty)) -> Value {
    let at = fb.global_addr(global, ty);
    let unit = fb.types.unit();
    let ptr = fb.types.ptr(unit);
    fb.op(Op::Bitcast, &[at], ptr)
}

/// Empties functions that only launches used: what they ask of work items means nothing elsewhere.
fn drop_unused(module: &mut Module, kernels: &FxHashSet<Func>) {
    let address = |v: &ValueData| match v.def {
        Def::Const(Const::Func(f) | Const::CFunc(f)) => Some(f),
        _ => None,
    };
    let is_outside = |f: &Func| matches!(module.func(*f).linkage, Linkage::Exported(_) | Linkage::Callback);
    let mut work: Vec<Func> = (0..module.funcs.len()).map(Func::from_idx).filter(is_outside).collect();
    work.extend(module.globals.iter().flat_map(|g| g.init.functions()));
    let mut used: FxHashSet<Func> = FxHashSet::default();
    while let Some(func) = work.pop() {
        if !used.insert(func) {
            continue;
        }
        let function = module.func(func);
        work.extend(function.values.iter().filter_map(address));
        for block in &function.blocks {
            work.extend(block.insts.iter().filter_map(called));
            if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
                work.push(f);
            }
        }
    }
    let mut only_kernels: Vec<Func> = kernels.iter().copied().collect();
    let mut seen: FxHashSet<Func> = FxHashSet::default();
    while let Some(func) = only_kernels.pop() {
        if used.contains(&func) || !seen.insert(func) {
            continue;
        }
        let function = &mut module.funcs[func.idx()];
        for block in &function.blocks {
            only_kernels.extend(block.insts.iter().filter_map(called));
            if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
                only_kernels.push(f);
            }
        }
        if !function.is_foreign() {
            function.blocks.truncate(1);
            function.blocks[0].insts.clear();
            function.blocks[0].term = Terminator::Unreachable;
        }
    }
}

/// The function that an instruction runs.
fn called(inst: &Inst) -> Option<Func> {
    match inst.op {
        InstOp::Call(f) | InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) => Some(f),
        InstOp::Op(_) | InstOp::Vector(_) | InstOp::CallIndirect => None,
    }
}

/// A kernel before it is cut: one function that asks for nothing, but takes the numbers of its work item.
struct Kernel {
    /// Its parameters are its own, the nine numbers of its grid, the addresses of shared memory and of variables, and
    /// the three numbers of the work item in its block.
    function: Function,
    /// By axis: the number of blocks, the extent of a block, the number of the block.
    grid: [[Value; 3]; 3],
    /// By axis, the number of the work item in its block.
    thread: [Value; 3],
    /// Addresses that are made once for each block, with the type of what lies there.
    shared: Vec<(Value, Ty)>,
    /// Those of `shared` that have one element for each work item.
    per_item: FxHashSet<Value>,
    /// Where the launch is in the source.
    span: Span,
    /// Whether it exchanges values within a subgroup.
    has_subgroups: bool,
}

impl Kernel {
    /// The number of work items of a block on an axis, if it is known.
    fn size(&self, axis: usize) -> Option<u64> {
        self.function.as_bits(self.grid[1][axis])
    }

    fn numbers(&self, what: WorkItem) -> [Value; 3] {
        match what {
            WorkItem::Thread => self.thread,
            WorkItem::Blocks => self.grid[0],
            WorkItem::BlockSize => self.grid[1],
            WorkItem::Block => self.grid[2],
        }
    }
}

fn launched_by_kernel(span: Span) -> Diagnostic {
    let message = "a kernel launches a kernel, which only the host can";
    limitation::error(span, message, "launch it from the host, after this kernel")
}

/// What kernels cannot do yet, as a sentence, and what to write instead.
fn refuse(span: Span, message: &str, hint: &str) -> Box<Diagnostic> {
    Box::new(limitation::error(span, message, hint))
}
