//! Kernels for devices other than the host: each platform gets a module of its own, with the kernels that are launched on
//! it and all that they call and use. A launch becomes a call of the runtime. Separate from the host's kernels, which stay
//! in the program.
//!
//! ```text
//! launch "opencl"(0, n, 1, 1, 64, 1, 1, a, p)          with a: &[f32], p: struct { x: f32, on: bool }
//!
//! host:    global kernel = { code, "main_kernel", "blur.impala:7:5", table, panics, 3, 0 }
//!          global table = [24, 8, 1,  32, 4, 0,  36, 1, 0]              offset, size, kind of each argument
//!          env = slot (i32, i32, i32, i32, i32, i32, &[f32], f32, bool)
//!          call nyala_launch_device(2, 0, kernel, env)
//! device:  kernel(64, 1, 1) "main_kernel" main_kernel(&[f32], f32, bool)
//! ```
//!
//! - Aggregates that a kernel takes are passed as their parts, so that no device needs to know their layout; large ones
//!   without addresses are passed as they are. Parts that the kernel does not use are not passed: they may be addresses of the host.
//! - A panic is noted in memory of the runtime ([`panics`](super::panics)).
//! - A variable of the host that a kernel captures is copied: the kernel has a variable of its own, with the value at the
//!   launch ([`captures`](super::captures)).
//! - Launches of one kernel with blocks of the same known size share it.
//! - The device module is laid out like the host's: addresses in memory have eight bytes.

use super::dataflow::Param;
use super::diagnostics::not_on_platform;
use super::inline::{fresh_entry, inline_where};
use super::panics::{Panic, is_panic, note_panics};
use super::{Key, N_SIZES, runtime_func, text};
use super::{dataflow, device};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::environments::store_env;
use nyala_flat::*;
use nyala_ir::lanes::{PLATFORM_NUMBERS, PLATFORMS, is_hls};
use nyala_ir::{LaneOp, Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// An aggregate of more parts is passed as it is.
const MAX_PARTS: usize = 16;
/// Bytes of an aggregate that is passed by itself. Larger ones lie in memory: devices limit all arguments together, some to 1 KiB.
const MAX_BYTES: u64 = 256;

/// How the runtime passes an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number = 0,
    Address = 1,
    Aggregate = 2,
    /// The address of the runtime's memory for a note of a panic.
    Notes = 3,
    /// A large aggregate: the kernel gets the address of a copy in the device's memory.
    InMemory = 4,
}

/// The kernels for devices that are made so far, in the host's module.
#[derive(Default)]
pub(super) struct Split {
    made: FxHashMap<(Key, u32, Vec<bool>), Option<Func>>,
    /// For each platform, the global with its code.
    codes: FxHashMap<u32, GlobalId>,
    /// Launches by platform: the global that names the place, the place, the kernel.
    launches: FxHashMap<u32, Vec<(GlobalId, Span, Func)>>,
    symbols: FxHashSet<String>,
    /// For each kernel, the leaves of its arguments that are not passed.
    unused: FxHashMap<Func, Vec<usize>>,
    /// Kernels that may panic: where, with which text.
    panics: FxHashMap<Func, Vec<Panic>>,
    /// Launches for `hls`.
    flows: Vec<dataflow::Flow>,
}

impl Split {
    /// Appends the call that launches a kernel on its device to block `b` of the host function `func`.
    pub(super) fn launch(
        &mut self,
        module: &mut Module,
        (func, b): (Func, usize),
        inst: &Inst,
        copied: &[bool],
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let InstOp::Launch(kernel, platform) = inst.op else { return };
        let is_one = |i: usize| module.func(func).as_bits(inst.args[i]) == Some(1);
        if is_hls(platform) && !(1..N_LAUNCH).all(is_one) {
            diagnostics.push(not_on_platform::work_items(inst.span));
            return;
        }
        let size = |i: usize| module.func(func).as_bits(inst.args[4 + i]).map(|bits| bits as u32);
        let key = Key { kernel, sizes: [size(0), size(1), size(2)] };
        let shape = (key.clone(), platform, copied.to_vec());
        let made = match self.made.get(&shape) {
            Some(&made) => made,
            None => {
                let host = module.func(func);
                let names = inst.args[N_LAUNCH..].iter().map(|&a| name_of_value(host, a)).collect();
                let host = host.name.clone();
                let made = self.make_kernel(module, &key, copied, (&host, names), inst.span, diagnostics);
                if let Some(kernel) = made.filter(|_| !is_hls(platform)) {
                    let leaves = leaves_of_args(module, func, inst, copied);
                    self.unused.insert(kernel, drop_unused_parts(module, kernel, &leaves));
                }
                self.made.insert(shape, made);
                made
            }
        };
        let Some(made) = made else { return };
        let code = match self.codes.get(&platform) {
            Some(&code) => code,
            None => {
                let name = PLATFORMS.get(platform as usize).unwrap_or(&"device");
                let code = bytes(module, &format!("code.{name}"), &[]);
                self.codes.insert(platform, code);
                code
            }
        };
        if is_hls(platform) {
            self.note_flow(module, (func, b), inst, copied, made);
        }
        let place = bytes(module, "place", &[]);
        self.launches.entry(platform).or_default().push((place, inst.span, made));
        let panics = self.panics.get(&made).map_or(&[][..], |p| p);
        let unused = self.unused.get(&made).map_or(&[][..], |u| u);
        call_runtime(module, (func, b), inst, (copied, unused), (made, code, place), panics);
    }

    /// Notes which of a kernel's parameters are channels.
    fn note_flow(&mut self, module: &mut Module, at: (Func, usize), inst: &Inst, copied: &[bool], kernel: Func) {
        let function = module.func(at.0);
        let mut params = Vec::new();
        for (&arg, &is_copied) in inst.args[N_LAUNCH..].iter().zip(copied) {
            let ty = function.ty(arg);
            let value_ty = if is_copied { module.types.pointee(ty).unwrap_or(ty) } else { ty };
            let n = n_leaves(&module.types, value_ty, MAX_PARTS);
            let what = match (is_copied, dataflow::channel_of(function, arg)) {
                (false, Some(channel)) => Param::Channel(channel),
                (false, None) if n == 1 => Param::Value(arg),
                _ => Param::Other,
            };
            params.extend(vec![what; n]);
        }
        // Memory for notes of panics comes last.
        params.resize(module.func(kernel).params.len(), Param::Other);
        let own = &mut module.funcs[kernel.idx()];
        for (param, what) in own.blocks[0].params.clone().into_iter().zip(&params) {
            if own.name(param).is_empty() && matches!(what, Param::Channel(_)) {
                own.set_name(param, "channel");
            }
        }
        self.flows.push(dataflow::Flow { at, kernel, params });
    }

    /// A copy of a kernel that takes leaves only. `None` if it is not supported; the reasons are in `diagnostics`.
    fn make_kernel(
        &mut self,
        module: &mut Module,
        key: &Key,
        copied: &[bool],
        (host, names): (&str, Vec<String>),
        span: Span,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Func> {
        let mut function = module.func(key.kernel).clone();
        // Memory of a block belongs to the kernel in most languages of devices; a panic ends the kernel.
        let reserves = |module: &Module, inst: &Inst| {
            module.lane_op(inst).is_some_and(|(op, _)| op == LaneOp::Shared) || is_panic(module, inst)
        };
        inline_where(module, key.kernel, &mut function, span, &reserves, diagnostics)?;
        fresh_entry(&mut function);
        let params = std::mem::take(&mut function.blocks[0].params);
        let mut insts = Vec::new();
        let mut leaves = Vec::new();
        let mut names = names.into_iter();
        let panicking: FxHashSet<InstOp> =
            function.blocks.iter().flat_map(|b| &b.insts).filter(|inst| is_panic(module, inst)).map(|i| i.op).collect();
        for (&param, &is_copied) in params.iter().zip(copied) {
            let name = match function.name(param) {
                "" => names.next().unwrap_or_default(),
                name => {
                    names.next();
                    name.to_string()
                }
            };
            let ty = function.ty(param);
            let value_ty = if is_copied { module.types.pointee(ty)? } else { ty };
            if module.types.has_function(value_ty) {
                diagnostics.push(not_on_platform::chosen_function(span));
                return None;
            }
            if is_copied && lies_in_memory(&module.types, value_ty) {
                // The kernel only reads it.
                let address = function.new_value(ty, &name);
                leaves.push(address);
                renames(&mut function, param, address);
                continue;
            }
            let made = assemble(&mut module.types, &mut function, value_ty, &name, &mut leaves, &mut insts, MAX_PARTS);
            let mut push = |op: Op, args: &[Value], result: Option<Value>| {
                insts.push(Inst { op: InstOp::Op(op), args: Args::from_slice(args), result, span, fast: false });
            };
            if is_copied {
                push(Op::Slot, &[], Some(param));
                push(Op::Store, &[param, made], None);
            } else {
                renames(&mut function, param, made);
                take_as_used(&module.types, &mut function, made);
            }
        }
        let noted = note_panics(&mut module.types, &mut function, &|inst| panicking.contains(&inst.op));
        let (fault, panics) = noted.unzip();
        leaves.extend(fault);
        function.params = leaves.iter().map(|&v| function.ty(v)).collect();
        function.blocks[0].params = leaves;
        insts.append(&mut function.blocks[0].insts);
        function.blocks[0].insts = insts;
        let own = &module.func(key.kernel).name;
        let base = if own == "kernel" { format!("{host}_kernel") } else { own.clone() };
        let base: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let numbered = (2..).map(|n| format!("{base}_{n}"));
        let symbol = std::iter::once(base.clone()).chain(numbered).find(|s| !self.symbols.contains(s))?;
        self.symbols.insert(symbol.clone());
        function.name = symbol.clone();
        function.linkage = Linkage::Kernel(symbol, key.sizes.map(|size| size.unwrap_or(0)));
        promote_slots_of(&mut module.types, &mut function);
        take_parts(&mut function);
        simplify_function(&module.types, &mut function);
        module.funcs.push(function);
        let kernel = Func::from_idx(module.funcs.len() - 1);
        read_in_place(module, kernel);
        self.panics.extend(panics.map(|panics| (kernel, panics)));
        Some(kernel)
    }

    /// Moves the kernels into modules of their own.
    pub(super) fn finish(mut self, module: &mut Module, diagnostics: &mut Vec<Diagnostic>) {
        let mut platforms: Vec<u32> = self.codes.keys().copied().collect();
        platforms.sort_unstable();
        for platform in platforms {
            let launches = self.launches.get(&platform).cloned().unwrap_or_default();
            let mut device = Module::new(module.types.clone());
            device.set_target(module.target().clone());
            let mut mover = Mover {
                from: module,
                to: &mut device,
                funcs: FxHashMap::default(),
                globals: FxHashMap::default(),
                work: Vec::new(),
            };
            let launches: Vec<_> =
                launches.into_iter().map(|(global, span, f)| (global, span, mover.func(f))).collect();
            mover.run();
            if is_hls(platform) {
                let moved = mover.funcs.clone();
                dataflow::forget_places(&mut device);
                dataflow::add(&mut device, module, &self.flows, &|f| moved[&f], &mut self.symbols);
            }
            device::finish(&mut device, diagnostics);
            device::check(&device, &launches, PLATFORMS[platform as usize], diagnostics);
            module.devices.push(DeviceModule { platform, module: device, code: self.codes[&platform], launches });
        }
        for func in self.made.into_values().flatten() {
            let function = &mut module.funcs[func.idx()];
            function.linkage = Linkage::Internal;
            function.blocks.truncate(1);
            function.blocks[0].insts.clear();
            function.blocks[0].term = Terminator::Unreachable;
        }
    }
}

/// The number of leaves of each argument of a launch.
fn leaves_of_args(module: &Module, func: Func, inst: &Inst, copied: &[bool]) -> Vec<usize> {
    let function = module.func(func);
    let args = inst.args[N_LAUNCH..].iter().zip(copied);
    args.map(|(&arg, &is_copied)| {
        let ty = function.ty(arg);
        let value_ty = if is_copied { module.types.pointee(ty).unwrap_or(ty) } else { ty };
        n_leaves(&module.types, value_ty, MAX_PARTS)
    })
    .collect()
}

/// Takes the parameters from a kernel that are parts of aggregates and have no use. Returns their places among the leaves.
fn drop_unused_parts(module: &mut Module, kernel: Func, leaves: &[usize]) -> Vec<usize> {
    let function = &mut module.funcs[kernel.idx()];
    let makes = |inst: &Inst| matches!(inst.op, InstOp::Op(Op::Tuple | Op::Struct | Op::Array | Op::Ne | Op::Bitcast));
    let used = loop {
        let mut used: FxHashSet<Value> = FxHashSet::default();
        for block in &function.blocks {
            used.extend(block.insts.iter().flat_map(|inst| inst.args.iter().copied()));
            block.term.for_each_use(|v| _ = used.insert(v));
        }
        // Aggregates of which only parts are taken.
        let insts = &mut function.blocks[0].insts;
        let n_before = insts.len();
        insts.retain(|inst| !makes(inst) || inst.result.is_none_or(|r| used.contains(&r)));
        if insts.len() == n_before {
            break used;
        }
    };
    let (mut at, mut unused) = (0, Vec::new());
    for &n in leaves {
        unused.extend((at..at + n).filter(|&i| n > 1 && !used.contains(&function.blocks[0].params[i])));
        at += n;
    }
    let mut places = 0..at;
    function.blocks[0].params.retain(|_| places.next().is_none_or(|i| !unused.contains(&i)));
    function.params = function.blocks[0].params.iter().map(|&v| function.ty(v)).collect();
    unused
}

/// The source's name of a value, or of the address that it is derived from.
fn name_of_value(function: &Function, value: Value) -> String {
    let mut value = value;
    for inst in function.blocks.iter().rev().flat_map(|b| b.insts.iter().rev()) {
        if inst.result == Some(value)
            && function.name(value).is_empty()
            && matches!(inst.op, InstOp::Op(Op::Bitcast | Op::Restrict | Op::Aligned))
        {
            value = inst.args[0];
        }
    }
    function.name(value).to_string()
}

/// Uses the parts of aggregates that are made at the entry in place of what is taken out of them again.
fn take_parts(function: &mut Function) {
    let mut made: FxHashMap<Value, Args> = FxHashMap::default();
    for inst in &function.blocks[0].insts {
        if let (InstOp::Op(Op::Tuple | Op::Struct | Op::Array), Some(result)) = (inst.op, inst.result) {
            made.insert(result, inst.args.clone());
        }
    }
    // A part may be taken out of a part.
    loop {
        let mut parts: FxHashMap<Value, Value> = FxHashMap::default();
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let (InstOp::Op(Op::Extract), Some(result)) = (inst.op, inst.result) else { continue };
            let index = function.as_bits(inst.args[1]).map(|i| i as usize);
            if let Some(&part) = made.get(&inst.args[0]).zip(index).and_then(|(args, i)| args.get(i)) {
                parts.insert(result, part);
            }
        }
        if parts.is_empty() {
            return;
        }
        let new = |v: Value| parts.get(&v).copied().unwrap_or(v);
        for block in &mut function.blocks {
            block.insts.retain(|inst| inst.result.is_none_or(|r| !parts.contains_key(&r)));
            block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = new(*a));
            block.term.map_uses(new);
        }
    }
}

/// Gives a new parameter the only type as which its address is used, in place of the one that it has on the host.
fn take_as_used(types: &Types, function: &mut Function, param: Value) {
    if !matches!(types.kind(function.ty(param)), TyKind::Ptr { .. }) {
        return;
    }
    let mut used: Option<Ty> = None;
    for block in &function.blocks {
        for inst in block.insts.iter().filter(|inst| inst.args.contains(&param)) {
            let ty = inst.result.map(|r| function.ty(r)).filter(|_| inst.op == InstOp::Op(Op::Bitcast));
            let is_same = ty.is_some_and(|ty| used.is_none_or(|u| u == ty));
            if !is_same || !ty.is_some_and(|ty| matches!(types.kind(ty), TyKind::Ptr { .. })) {
                return;
            }
            used = ty;
        }
        let mut in_terminator = false;
        block.term.for_each_use(|v| in_terminator |= v == param);
        if in_terminator {
            return;
        }
    }
    let Some(ty) = used else { return };
    function.values[param.idx()].ty = ty;
    let mut converted = Vec::new();
    for block in &mut function.blocks {
        block.insts.retain(|inst| {
            let is_conversion = inst.args.contains(&param);
            converted.extend(inst.result.filter(|_| is_conversion));
            !is_conversion
        });
    }
    converted.into_iter().for_each(|v| renames(function, v, param));
}

/// Replaces a value of a function by another.
fn renames(function: &mut Function, from: Value, to: Value) {
    let new = |v: Value| if v == from { to } else { v };
    for block in &mut function.blocks {
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = new(*a));
        block.term.map_uses(new);
    }
}

/// The parts of an aggregate that are passed one by one; empty if it is passed as it is.
fn parts(types: &Types, ty: Ty, max: usize) -> Option<Vec<Ty>> {
    if !matches!(types.kind(ty), TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..)) {
        return None;
    }
    if lies_in_memory(types, ty) {
        return None;
    }
    let n = types.n_parts(ty)?;
    let is_small = (n as usize) <= max || has_address(types, ty);
    is_small.then(|| (0..n).filter_map(|i| types.part(ty, i)).collect())
}

/// Whether a kernel gets a value of this type by the address of a copy.
fn lies_in_memory(types: &Types, ty: Ty) -> bool {
    let is_aggregate = matches!(types.kind(ty), TyKind::Tuple(_) | TyKind::Struct(_) | TyKind::Array(..));
    let is_large = || layout::size_align(types, ty).is_some_and(|(size, _)| size > MAX_BYTES);
    is_aggregate && is_large() && !has_address(types, ty)
}

/// How many parameters [`assemble`] makes of a type.
fn n_leaves(types: &Types, ty: Ty, max: usize) -> usize {
    parts(types, ty, max).map_or(1, |parts| parts.into_iter().map(|part| n_leaves(types, part, max)).sum())
}

/// Bools and halves are passed as integers, since not every device has such arguments; and the operation that makes the
/// value of the integer.
fn passed_as(types: &Types, ty: Ty) -> Option<(Prim, Op)> {
    match types.as_prim(ty)? {
        Prim::Bool => Some((Prim::U8, Op::Ne)),
        Prim::F16 => Some((Prim::U16, Op::Bitcast)),
        _ => None,
    }
}

/// Whether a value of the type holds addresses.
fn has_address(types: &Types, ty: Ty) -> bool {
    let (mut work, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = work.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match types.kind(ty) {
            TyKind::Ptr { .. } | TyKind::Code | TyKind::Cn(_) => return true,
            TyKind::Array(elem, _) => work.push(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                work.extend((0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)));
            }
            _ => {}
        }
    }
    false
}

/// The value of a type, made of new parameters.
fn assemble(
    types: &mut Types,
    function: &mut Function,
    ty: Ty,
    name: &str,
    leaves: &mut Vec<Value>,
    insts: &mut Vec<Inst>,
    max: usize,
) -> Value {
    let Some(parts) = parts(types, ty, max) else {
        if lies_in_memory(types, ty) {
            let address = function.new_value(types.ptr(ty), name);
            leaves.push(address);
            let result = function.new_value(ty, name);
            let args = Args::from_slice(&[address]);
            insts.push(Inst { op: InstOp::Op(Op::Load), args, result: Some(result), span: Span::NONE, fast: false });
            return result;
        }
        let passed = passed_as(types, ty);
        let leaf = function.new_value(passed.map_or(ty, |(prim, _)| types.prim(prim)), name);
        leaves.push(leaf);
        let Some((_, op)) = passed else { return leaf };
        let mut args = Args::from_slice(&[leaf]);
        if op == Op::Ne {
            args.push(function.constant(Const::Bits(0), types.prim(Prim::U8)));
        }
        let result = function.new_value(ty, name);
        insts.push(Inst { op: InstOp::Op(op), args, result: Some(result), span: Span::NONE, fast: false });
        return result;
    };
    let field = |types: &Types, i: usize| match types.kind(ty) {
        TyKind::Struct(id) => types.struct_data(*id).fields.get(i).map(|f| f.0.clone()).unwrap_or_default(),
        _ => i.to_string(),
    };
    let args: Args = parts
        .iter()
        .enumerate()
        .map(|(i, &part)| {
            let name = if name.is_empty() { String::new() } else { format!("{name}_{}", field(types, i)) };
            assemble(types, function, part, &name, leaves, insts, max)
        })
        .collect();
    let op = match types.kind(ty) {
        TyKind::Struct(_) => Op::Struct,
        TyKind::Array(..) => Op::Array,
        _ => Op::Tuple,
    };
    let result = function.new_value(ty, name);
    insts.push(Inst { op: InstOp::Op(op), args, result: Some(result), span: Span::NONE, fast: false });
    result
}

/// Lets a kernel read large aggregates where they lie, in place of variables that only have a copy of them.
fn read_in_place(module: &mut Module, kernel: Func) {
    let function = module.func(kernel);
    let addresses: FxHashSet<Value> = function.blocks[0].params.iter().copied().collect();
    let (mut values, mut copies) = (FxHashMap::default(), Vec::new());
    for inst in &function.blocks[0].insts {
        match (inst.op, inst.result) {
            (InstOp::Op(Op::Load), Some(value))
                if addresses.contains(&inst.args[0]) && lies_in_memory(&module.types, function.ty(value)) =>
            {
                values.insert(value, inst.args[0]);
            }
            (InstOp::Op(Op::Store), _) => copies.extend(values.get(&inst.args[1]).map(|&from| (inst.args[0], from))),
            _ => {}
        }
    }
    for (variable, from) in copies {
        let is_copy =
            |i: &Inst| i.op == InstOp::Op(Op::Store) && i.args[0] == variable && values.contains_key(&i.args[1]);
        let insts = &mut module.funcs[kernel.idx()].blocks[0].insts;
        let is_own = insts.iter().any(|i| i.result == Some(variable) && i.op == InstOp::Op(Op::Slot));
        let Some(at) = insts.iter().position(is_copy).filter(|_| is_own) else { continue };
        let copy = insts.remove(at);
        if super::captures::only_reads(module, kernel, variable) {
            renames(&mut module.funcs[kernel.idx()], variable, from);
        } else {
            module.funcs[kernel.idx()].blocks[0].insts.insert(at, copy);
        }
    }
    simplify_function(&module.types, &mut module.funcs[kernel.idx()]);
}

/// The leaves of a value, in the order of [`assemble`].
fn take_apart(fb: &mut FunctionBuilder, value: Value, leaves: &mut Vec<Value>) {
    let ty = fb.function.ty(value);
    let Some(parts) = parts(fb.types, ty, MAX_PARTS) else {
        return leaves.push(match passed_as(fb.types, ty) {
            Some((prim, Op::Ne)) => {
                let ty = fb.types.prim(prim);
                fb.op(Op::Cast, &[value], ty)
            }
            Some((prim, _)) => {
                let ty = fb.types.prim(prim);
                fb.op(Op::Bitcast, &[value], ty)
            }
            None => value,
        });
    };
    for (i, part) in parts.into_iter().enumerate() {
        let idx = fb.literal(Prim::I64, i as u64);
        let part = fb.op(Op::Extract, &[value, idx], part);
        take_apart(fb, part, leaves);
    }
}

/// A global of bytes, in the form of [`Module::set_bytes`].
fn bytes(module: &mut Module, name: &str, contents: &[u8]) -> GlobalId {
    let ty = module.types.unit();
    let global = module.add_global(Global { name: name.into(), ty, mutable: false, space: 0, init: Init::Zero });
    module.set_bytes(global, contents);
    global
}

fn call_runtime(
    module: &mut Module,
    (func, b): (Func, usize),
    inst: &Inst,
    (copied, unused): (&[bool], &[usize]),
    (kernel, code, place): (Func, GlobalId, GlobalId),
    panics: &[Panic],
) {
    let InstOp::Launch(_, platform) = inst.op else { return };
    let (i32, unit) = (module.types.i32(), module.types.unit());
    let env_ptr = module.types.ptr(unit);
    let runtime = runtime_func(module, "nyala_launch_device", &[i32, i32, env_ptr, env_ptr]);
    let mut fb = FunctionBuilder::new(module, func);
    fb.switch_to(Block::from_idx(b));
    fb.span = inst.span;
    let mut values = inst.args[1..N_LAUNCH].to_vec();
    for (&arg, &is_copied) in inst.args[N_LAUNCH..].iter().zip(copied) {
        let value = if is_copied { fb.load(arg).unwrap_or(arg) } else { arg };
        take_apart(&mut fb, value, &mut values);
    }
    let mut leaves = 0..values.len();
    values.retain(|_| leaves.next().is_none_or(|i| i < N_SIZES || !unused.contains(&(i - N_SIZES))));
    if !panics.is_empty() {
        // The runtime has memory for notes of panics.
        values.push(fb.function.constant(Const::Bits(0), env_ptr));
    }
    let tys: Vec<Ty> = values.iter().map(|&v| fb.function.ty(v)).collect();
    let env_ty = fb.types.tuple(&tys);
    let env = fb.slot(env_ty, "launch");
    store_env(&mut fb, env, &values, &tys);
    let env = fb.op(Op::Bitcast, &[env], env_ptr);
    let descriptor = descriptor(module, env_ty, &tys, (kernel, code, place), panics);
    let mut fb = FunctionBuilder::new(module, func);
    fb.switch_to(Block::from_idx(b));
    fb.span = inst.span;
    let descriptor = text(&mut fb, descriptor);
    let number = PLATFORM_NUMBERS.get(platform as usize).copied().unwrap_or_default();
    let number = fb.literal(Prim::I32, number.into());
    fb.call(runtime, &[number, inst.args[0], descriptor, env], &[]);
}

/// The bytes of memory of a block that a kernel reserves, as far as they are known. Each reservation begins at a multiple of 16.
fn bytes_of_block(module: &Module, kernel: Func) -> u64 {
    let function = module.func(kernel);
    let shared = |inst: &&Inst| module.lane_op(inst).is_some_and(|(op, _)| op == LaneOp::Shared);
    let insts = function.blocks.iter().flat_map(|b| &b.insts).filter(shared);
    let bytes = insts.filter_map(|inst| function.as_bits(*inst.args.first()?));
    bytes.fold(0, |sum, bytes| sum.saturating_add(bytes.saturating_add(15) & !15))
}

/// The record of a launch that the runtime reads: code, name, place, number of arguments, and of each its offset in the environment,
/// size, and kind with alignment; the memory of a block.
fn descriptor(
    module: &mut Module,
    env_ty: Ty,
    tys: &[Ty],
    (kernel, code, place): (Func, GlobalId, GlobalId),
    panics: &[Panic],
) -> (GlobalId, Ty) {
    let symbol = module.func(kernel).symbol().unwrap_or_default().to_string();
    let name = bytes(module, "name", symbol.as_bytes());
    let types = &module.types;
    let mut table = Vec::new();
    for (i, &ty) in tys.iter().enumerate().skip(N_SIZES) {
        let kind = match types.kind(ty) {
            _ if !panics.is_empty() && i + 1 == tys.len() => Kind::Notes,
            TyKind::Ptr { .. } => Kind::Address,
            TyKind::Prim(_) | TyKind::Vector(..) => Kind::Number,
            _ if lies_in_memory(types, ty) => Kind::InMemory,
            _ => Kind::Aggregate,
        };
        let offset = layout::offset(types, env_ty, i as u64).unwrap_or(0);
        let (size, align) = layout::size_align(types, ty).unwrap_or((0, 1));
        let kind = kind as u64 | u64::from(align.max(1).ilog2()) << 8;
        table.extend([offset, size, kind].map(Init::Bits));
    }
    let (u32, u64, unit) = (types.prim(Prim::U32), types.prim(Prim::U64), types.unit());
    let n_args = (table.len() / 3) as u64;
    let table_ty = module.types.array(u32, table.len() as u64);
    let table = Global { name: "table".into(), ty: table_ty, mutable: false, space: 0, init: Init::Parts(table) };
    let table = module.add_global(table);
    let ptr = module.types.ptr(unit);
    let text = |text: &Option<GlobalId>| text.map_or(Init::Bits(0), |g| Init::Global(g, 0));
    let texts: Vec<Init> = panics.iter().flatten().map(text).collect();
    let n_panics = panics.len() as u64;
    let texts_ty = module.types.array(ptr, texts.len() as u64);
    let texts = Global { name: "panics".into(), ty: texts_ty, mutable: false, space: 0, init: Init::Parts(texts) };
    let texts = module.add_global(texts);
    let ty = module.types.tuple(&[ptr, ptr, ptr, ptr, ptr, u64, u64, u64]);
    let addresses = [code, name, place, table, texts].map(|g| Init::Global(g, 0));
    let counts = [n_args, n_panics, bytes_of_block(module, kernel)].map(Init::Bits);
    let init = Init::Parts(addresses.into_iter().chain(counts).collect());
    (module.add_global(Global { name: "kernel".into(), ty, mutable: false, space: 0, init }), ty)
}

/// Copies functions and globals into another module, with all that they use.
struct Mover<'a> {
    from: &'a Module,
    to: &'a mut Module,
    funcs: FxHashMap<Func, Func>,
    globals: FxHashMap<GlobalId, GlobalId>,
    /// Functions that are to be copied.
    work: Vec<Func>,
}

impl Mover<'_> {
    fn func(&mut self, func: Func) -> Func {
        if let Some(&moved) = self.funcs.get(&func) {
            return moved;
        }
        let old = self.from.func(func);
        let mut new = Function::new(&old.name, old.linkage.clone(), &old.params, &old.rets);
        new.span = old.span;
        if matches!(new.linkage, Linkage::Exported(_) | Linkage::Callback) {
            new.linkage = Linkage::Internal;
        }
        self.to.funcs.push(new);
        let moved = Func::from_idx(self.to.funcs.len() - 1);
        self.funcs.insert(func, moved);
        self.work.push(func);
        moved
    }

    fn global(&mut self, global: GlobalId) -> GlobalId {
        let mut work = vec![global];
        while let Some(global) = work.pop() {
            if self.globals.contains_key(&global) {
                continue;
            }
            self.globals.insert(global, self.to.add_global(self.from.globals[global.idx()].clone()));
            work.extend(globals_in(&self.from.globals[global.idx()].init));
        }
        self.globals[&global]
    }

    fn run(&mut self) {
        while let Some(func) = self.work.pop() {
            let mut function = self.from.func(func).clone();
            for block in &mut function.blocks {
                for inst in &mut block.insts {
                    match &mut inst.op {
                        InstOp::Call(f) | InstOp::Vectorize(f, ..) | InstOp::Launch(f, _) => *f = self.func(*f),
                        InstOp::Op(_) | InstOp::Vector(_) | InstOp::CallIndirect => {}
                    }
                }
                if let Terminator::TailCall { callee: Callee::Func(f), .. } = &mut block.term {
                    *f = self.func(*f);
                }
            }
            // Constants change their functions and globals, and so their hashes.
            let mut moved = Function::new(&function.name, function.linkage.clone(), &function.params, &function.rets);
            moved.span = function.span;
            let mut values = Vec::with_capacity(function.values.len());
            for (i, value) in function.values.iter().enumerate() {
                values.push(match value.def {
                    Def::Local => moved.new_value(value.ty, function.name(Value::from_idx(i))),
                    Def::Const(constant) => {
                        let constant = match constant {
                            Const::Func(f) => Const::Func(self.func(f)),
                            Const::CFunc(f) => Const::CFunc(self.func(f)),
                            Const::Global(g) => Const::Global(self.global(g)),
                            Const::Bits(_) | Const::Undef => constant,
                        };
                        moved.constant(constant, value.ty)
                    }
                });
            }
            let new = |v: Value| values[v.idx()];
            for block in &mut function.blocks {
                block.params.iter_mut().for_each(|p| *p = new(*p));
                for inst in &mut block.insts {
                    inst.args.iter_mut().for_each(|a| *a = new(*a));
                    inst.result = inst.result.map(new);
                }
                block.term.map_uses(new);
            }
            moved.blocks = function.blocks;
            let to = self.funcs[&func];
            moved.linkage = self.to.func(to).linkage.clone();
            self.to.funcs[to.idx()] = moved;
        }
        // Addresses in the contents of globals.
        let globals: Vec<GlobalId> = self.globals.values().copied().collect();
        for global in globals {
            let mut init = std::mem::replace(&mut self.to.globals[global.idx()].init, Init::Zero);
            let mut work = vec![&mut init];
            while let Some(init) = work.pop() {
                match init {
                    Init::Parts(parts) => work.extend(parts),
                    Init::Global(g, _) => *g = self.globals[g],
                    // A device has no addresses of the host's functions: `check` reports it.
                    Init::Func(_) | Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) => {}
                }
            }
            self.to.globals[global.idx()].init = init;
        }
    }
}

/// The globals whose addresses stand in the contents of another.
fn globals_in(init: &Init) -> Vec<GlobalId> {
    let (mut found, mut work) = (Vec::new(), vec![init]);
    while let Some(init) = work.pop() {
        match init {
            Init::Parts(parts) => work.extend(parts),
            Init::Global(g, _) => found.push(*g),
            Init::Func(_) | Init::Zero | Init::Undef | Init::Bits(_) | Init::Bytes(_) => {}
        }
    }
    found
}
