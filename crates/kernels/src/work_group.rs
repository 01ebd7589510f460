//! The functions that run a kernel on the host: one for each region, one that runs a block, one that runs a range of blocks.

use super::barrier_regions::{Barrier, End, Regions, linear};
use super::{Kernel, Key, inline, name_of, runtime_func, text};
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::environments::load_env;
use nyala_flat::*;
use nyala_ir::lanes::SUBGROUP;
use nyala_ir::{LaneOp, Op, Prim, Ty, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a block's arrays up to which they lie in the frame of the function that runs it.
const MAX_FRAME: u64 = 1 << 20;

/// The callback that runs a range of blocks of a kernel, from an environment that holds three numbers of blocks, the three
/// extents of a block, and what the kernel takes. `None` if it is not supported; the reasons are in `diagnostics`.
pub(super) fn compile(module: &mut Module, key: &Key, span: Span, diagnostics: &mut Vec<Diagnostic>) -> Option<Func> {
    let mut kernel = inline::prepare(module, key, span, diagnostics)?;
    let regions = match Regions::find(module, &mut kernel) {
        Ok(regions) => regions,
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            return None;
        }
    };
    let name = name_of(module, key.kernel);
    let block = build_block(module, &kernel, &regions, name);
    Some(build_blocks(module, key, block))
}

/// The function that runs a range of blocks.
fn build_blocks(module: &mut Module, key: &Key, block: Func) -> Func {
    let (i32, i64, unit, bool_ty) = (module.types.i32(), module.types.i64(), module.types.unit(), module.types.bool());
    let env = module.types.ptr(unit);
    let kernel = module.func(key.kernel);
    let (name, own, span) = (format!("{}.blocks", kernel.name), kernel.params.clone(), kernel.span);
    let func = module.declare(&name, Linkage::Callback, &[env, i64, i64], &[]);
    module.funcs[func.idx()].span = span;
    let mut b = FunctionBuilder::new(module, func);
    b.span = span;
    let entry = b.entry(&["env", "from", "to"]);
    let mut tys = vec![i32; 6];
    tys.extend(&own);
    let env = b.param(entry, 0);
    let values = load_env(&mut b, env, &tys);
    let (numbers, captured) = values.split_at(6);
    let (from, to) = (b.param(entry, 1), b.param(entry, 2));
    let head = b.block("head", &[(i64, "block")]);
    let body = b.block("block", &[]);
    let done = b.block("done", &[]);
    b.switch_to(entry);
    b.terminate(Terminator::Jump(Edge { block: head, args: vec![from] }));
    b.switch_to(head);
    let at = b.param(head, 0);
    let more = b.op(Op::Lt, &[at, to], bool_ty);
    branch(&mut b, more, body, done);
    b.switch_to(body);
    // Blocks are numbered with x first. Unsigned division is cheaper.
    let u64 = b.types.prim(Prim::U64);
    let mut rest = b.op(Op::Cast, &[at], u64);
    let mut index = Vec::new();
    for &n in &numbers[..2] {
        let n = b.op(Op::Cast, &[n], u64);
        let own = b.op(Op::Rem, &[rest, n], u64);
        index.push(b.op(Op::Cast, &[own], i32));
        rest = b.op(Op::Div, &[rest, n], u64);
    }
    index.push(b.op(Op::Cast, &[rest], i32));
    let mut args = captured.to_vec();
    args.extend(numbers);
    args.extend(index);
    b.call(block, &args, &[]);
    let one = b.literal(Prim::I64, 1);
    let next = b.op(Op::Add, &[at, one], i64);
    b.terminate(Terminator::Jump(Edge { block: head, args: vec![next] }));
    b.switch_to(done);
    b.terminate(Terminator::Return(Vec::new()));
    func
}

fn branch(b: &mut FunctionBuilder, cond: Value, then: Block, els: Block) {
    let edge = |block| Edge { block, args: Vec::new() };
    b.terminate(Terminator::Branch { cond, then: edge(then), els: edge(els) });
}

/// Runs code for each number from 0 up to below `n`.
fn counted(b: &mut FunctionBuilder, n: Value, code: &mut dyn FnMut(&mut FunctionBuilder, Value)) {
    if b.function.as_bits(n) == Some(1) {
        let zero = b.literal(Prim::I32, 0);
        return code(b, zero);
    }
    let before = b.current();
    let (i32, bool_ty) = (b.types.i32(), b.types.bool());
    let head = b.block("head", &[(i32, "i")]);
    let (body, after) = (b.block("body", &[]), b.block("after", &[]));
    let zero = b.literal(Prim::I32, 0);
    b.switch_to(before);
    b.terminate(Terminator::Jump(Edge { block: head, args: vec![zero] }));
    b.switch_to(head);
    let i = b.param(head, 0);
    let more = b.op(Op::Lt, &[i, n], bool_ty);
    branch(b, more, body, after);
    b.switch_to(body);
    code(b, i);
    let one = b.literal(Prim::I32, 1);
    let next = b.op(Op::Add, &[i, one], i32);
    b.terminate(Terminator::Jump(Edge { block: head, args: vec![next] }));
    b.switch_to(after);
}

/// How the work items of a block are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order {
    /// The axis along which lanes lie; `None` for the number in the block.
    axis: Option<usize>,
    lanes: u32,
}

impl Order {
    fn of(kernel: &Kernel, vector_bits: u32) -> Order {
        let is_one = |axis: usize| kernel.size(axis) == Some(1);
        let first = (0..3).find(|&axis| !is_one(axis)).unwrap_or(0);
        let alone = (0..3).filter(|&axis| axis != first).all(is_one);
        if kernel.has_subgroups {
            let whole = alone || first == 0 && kernel.size(0).is_some_and(|n| n.is_multiple_of(SUBGROUP.into()));
            return Order { axis: whole.then_some(first), lanes: SUBGROUP };
        }
        let natural = (vector_bits / 32).clamp(1, 64);
        let fits = |n: u64| 1 << n.max(1).ilog2().min(6);
        let lanes = kernel.size(first).map_or(natural, |n| natural.min(fits(n)));
        Order { axis: Some(first), lanes }
    }
}

/// A value that regions have in common, in the function of the block.
struct Common {
    /// Variables with the values that the regions compute.
    slots: FxHashMap<Value, Value>,
    /// The function's own values for parameters of the kernel.
    params: FxHashMap<Value, Value>,
    /// Arrays with one element for each work item, for other values.
    arrays: FxHashMap<Value, Value>,
    /// An array that tells which work items have returned, if some may do so before others.
    returned: Option<Value>,
}

impl Common {
    fn read(&self, b: &mut FunctionBuilder, kernel: &Function, v: Value) -> Value {
        if let Some(&own) = self.params.get(&v) {
            return own;
        }
        let ty = kernel.ty(v);
        if let Def::Const(c) = kernel.values[v.idx()].def {
            return b.function.constant(c, ty);
        }
        match self.slots.get(&v) {
            Some(&slot) => b.op(Op::Load, &[slot], ty),
            None => b.function.undef(ty),
        }
    }
}

/// The values that a region takes and leaves.
struct Interface {
    /// Common values, in the order of parameters.
    common: Vec<Value>,
    /// Arrays of values that differ, in the order of parameters.
    arrays: Vec<Value>,
}

/// The function that runs a block. It takes what the kernel takes, then nine numbers: of blocks, extents, the block.
fn build_block(module: &mut Module, kernel: &Kernel, regions: &Regions, name: (GlobalId, Ty)) -> Func {
    let old = &kernel.function;
    let own = &old.blocks[0].params;
    let n_own = own.len() - kernel.shared.len() - 3 - 9;
    let tys: Vec<Ty> = own[..n_own + 9].iter().map(|&p| old.ty(p)).collect();
    let order = Order::of(kernel, module.target().vector_bits);
    let func = module.declare(&format!("{}.block", old.name), Linkage::Internal, &tys, &[]);
    module.funcs[func.idx()].span = old.span;
    let codes: Vec<(Option<Func>, Interface)> =
        (0..regions.all.len()).map(|i| build_region(module, kernel, regions, i, order)).collect();
    let (unit, i32, i64) = (module.types.unit(), module.types.i32(), module.types.i64());
    let text_ptr = module.types.ptr(unit);
    let diverged = runtime_func(module, "nyala_diverged", &[text_ptr]);
    let free = runtime_func(module, "nyala_free", &[text_ptr]);
    // The program may have declared it with another type of address.
    let freed_ptr = module.func(free).params.first().copied().unwrap_or(text_ptr);
    let mut b = FunctionBuilder::new(module, func);
    b.span = old.span;
    let names: Vec<&str> = own[..n_own + 9].iter().map(|&p| old.name(p)).collect();
    let entry = b.entry(&names);
    let mut common = Common {
        slots: FxHashMap::default(),
        params: FxHashMap::default(),
        arrays: FxHashMap::default(),
        returned: None,
    };
    for (i, &p) in own[..n_own + 9].iter().enumerate() {
        common.params.insert(p, b.param(entry, i));
    }
    let size = kernel.grid[1].map(|v| common.read(&mut b, old, v));
    let n_items = kernel.size(0).zip(kernel.size(1)).zip(kernel.size(2)).map(|((x, y), z)| x * y * z);
    let items = match n_items {
        Some(n) => b.literal(Prim::I32, n),
        None => {
            let rows = b.op(Op::Mul, &[size[1], size[2]], i32);
            b.op(Op::Mul, &[size[0], rows], i32)
        }
    };
    // Memory of the block.
    let mut freed = Vec::new();
    let mut left = MAX_FRAME;
    let mut reserve = |b: &mut FunctionBuilder, elem: Ty, n: Option<u64>, count: Value| -> Value {
        let array = b.types.indef_array(elem);
        let ptr = b.types.ptr(array);
        let bytes = layout::size_align(b.types, elem).map_or(8, |s| s.0);
        match n.map(|n| (n, n.saturating_mul(bytes))).filter(|&(_, bytes)| bytes <= left) {
            Some((n, bytes)) => {
                left -= bytes;
                let ty = b.types.array(elem, n);
                let slot = b.slot(ty, "items");
                b.op(Op::Bitcast, &[slot], ptr)
            }
            None => {
                let count = b.op(Op::Cast, &[count], i64);
                let made = b.op(Op::Alloc, &[count], ptr);
                freed.push(made);
                made
            }
        }
    };
    for &(at, ty) in &kernel.shared {
        let made = match (kernel.per_item.contains(&at), b.types.kind(ty).clone()) {
            (false, nyala_ir::TyKind::Array(elem, n)) => {
                let count = b.literal(Prim::I32, n);
                reserve(&mut b, elem, Some(n), count)
            }
            _ => reserve(&mut b, ty, n_items, items),
        };
        let made = b.op(Op::Bitcast, &[made], old.ty(at));
        common.params.insert(at, made);
    }
    for (_, interface) in &codes {
        for &v in &interface.arrays {
            common.arrays.entry(v).or_insert_with(|| reserve(&mut b, old.ty(v), n_items, items));
        }
    }
    if regions.all.iter().any(|region| region.may_return) {
        let bool_ty = b.types.bool();
        common.returned = Some(reserve(&mut b, bool_ty, n_items, items));
    }
    for v in common_values(kernel, regions, &codes) {
        let slot = b.slot(old.ty(v), old.name(v));
        common.slots.insert(v, slot);
    }
    let starts: Vec<Block> = regions.all.iter().map(|_| b.block("region", &[])).collect();
    let done = b.block("done", &[]);
    b.switch_to(entry);
    if let Some(returned) = common.returned {
        counted(&mut b, items, &mut |b, i| {
            let bool_ty = b.types.bool();
            let at = element(b, returned, i, bool_ty);
            let no = b.function.constant(Const::Bits(0), bool_ty);
            b.store(at, no);
        });
    }
    b.terminate(Terminator::Jump(Edge { block: starts[0], args: Vec::new() }));
    for (i, region) in regions.all.iter().enumerate() {
        b.switch_to(starts[i]);
        let (code, interface) = &codes[i];
        let mut args: Vec<Value> = interface.common.iter().map(|&v| common.read(&mut b, old, v)).collect();
        args.extend(interface.arrays.iter().map(|v| common.arrays[v]));
        args.extend(common.returned.filter(|_| region.may_return || region.after_return));
        compute_common(&mut b, kernel, regions, i, &common);
        if let Some(code) = code {
            run_items(&mut b, kernel, order, *code, size, items, &args);
        }
        match region.end {
            End::Return => b.terminate(Terminator::Jump(Edge { block: done, args: Vec::new() })),
            End::Never => {}
            End::At(at) => {
                let next = |edge: &Edge| starts[regions.of_entry[&edge.block.idx()]];
                let mut there = There { returned: None, n: items };
                if region.may_return || region.after_return {
                    there = find_there(&mut b, &common, items, done);
                }
                if let Some(barrier) = regions.barriers.get(&at) {
                    meet(&mut b, kernel, &common, barrier, items, &there);
                }
                match &old.blocks[at].term {
                    Terminator::Branch { cond, then, els } => {
                        let (then, els) = (next(then), next(els));
                        let cond = match common.arrays.get(cond) {
                            Some(&array) => agree(&mut b, array, items, &there, diverged, name),
                            None => common.read(&mut b, old, *cond),
                        };
                        branch(&mut b, cond, then, els);
                    }
                    Terminator::Jump(edge) => {
                        let block = next(edge);
                        b.terminate(Terminator::Jump(Edge { block, args: Vec::new() }));
                    }
                    _ => {}
                }
            }
        }
    }
    b.switch_to(done);
    for made in freed {
        let made = b.op(Op::Bitcast, &[made], freed_ptr);
        b.call(free, &[made], &[]);
    }
    b.terminate(Terminator::Return(Vec::new()));
    let function = &mut module.funcs[func.idx()];
    promote_slots_of(&mut module.types, function);
    simplify_function(&module.types, function);
    func
}

/// The work items that have not returned.
struct There {
    /// Which have; `None` if none has.
    returned: Option<Value>,
    n: Value,
}

/// Counts the work items that have not returned. If there are none, the block is done.
fn find_there(b: &mut FunctionBuilder, common: &Common, items: Value, done: Block) -> There {
    let Some(returned) = common.returned else { return There { returned: None, n: items } };
    let (i32, bool_ty, zero) = (b.types.i32(), b.types.bool(), b.literal(Prim::I32, 0));
    let gone = count(b, returned, items, None);
    let n = b.op(Op::Sub, &[items, gone], i32);
    let any = b.op(Op::Ne, &[n, zero], bool_ty);
    let before = b.current();
    let on = b.block("on", &[]);
    b.switch_to(before);
    branch(b, any, on, done);
    b.switch_to(on);
    There { returned: Some(returned), n }
}

/// In how many work items a condition holds, without those that have returned.
fn count(b: &mut FunctionBuilder, array: Value, items: Value, returned: Option<Value>) -> Value {
    let (i32, bool_ty) = (b.types.i32(), b.types.bool());
    let sum = b.slot(i32, "count");
    let zero = b.literal(Prim::I32, 0);
    b.store(sum, zero);
    counted(b, items, &mut |b, i| {
        let at = element(b, array, i, bool_ty);
        let mut holds = b.op(Op::Load, &[at], bool_ty);
        if let Some(returned) = returned {
            let at = element(b, returned, i, bool_ty);
            let gone = b.op(Op::Load, &[at], bool_ty);
            let no = b.function.constant(Const::Bits(0), bool_ty);
            holds = b.op(Op::Select, &[gone, no, holds], bool_ty);
        }
        let one = b.op(Op::Cast, &[holds], i32);
        let before = b.op(Op::Load, &[sum], i32);
        let after = b.op(Op::Add, &[before, one], i32);
        b.store(sum, after);
    });
    b.op(Op::Load, &[sum], i32)
}

/// A condition that has to be equal in all work items that have not returned.
fn agree(
    b: &mut FunctionBuilder,
    array: Value,
    items: Value,
    there: &There,
    diverged: Func,
    name: (GlobalId, Ty),
) -> Value {
    let bool_ty = b.types.bool();
    let n = count(b, array, items, there.returned);
    let zero = b.literal(Prim::I32, 0);
    let some = b.op(Op::Ne, &[n, zero], bool_ty);
    let not_all = b.op(Op::Ne, &[n, there.n], bool_ty);
    let differ = b.op(Op::And, &[some, not_all], bool_ty);
    let before = b.current();
    let (bad, good) = (b.block("diverged", &[]), b.block("agree", &[]));
    b.switch_to(before);
    branch(b, differ, bad, good);
    b.switch_to(bad);
    let name = text(b, name);
    b.call(diverged, &[name], &[]);
    b.terminate(Terminator::Unreachable);
    b.switch_to(good);
    some
}

/// Computes the result of a barrier.
fn meet(b: &mut FunctionBuilder, kernel: &Kernel, common: &Common, barrier: &Barrier, items: Value, there: &There) {
    let (Some(result), Some(arg)) = (barrier.result, barrier.arg) else { return };
    let Some(&slot) = common.slots.get(&result) else { return };
    let bool_ty = b.types.bool();
    b.span = barrier.span;
    let n = match common.arrays.get(&arg) {
        Some(&array) => count(b, array, items, there.returned),
        None => {
            let holds = common.read(b, &kernel.function, arg);
            let (i32, zero) = (b.types.i32(), b.literal(Prim::I32, 0));
            b.op(Op::Select, &[holds, there.n, zero], i32)
        }
    };
    let zero = b.literal(Prim::I32, 0);
    let value = match barrier.op {
        LaneOp::Any => b.op(Op::Ne, &[n, zero], bool_ty),
        LaneOp::All => b.op(Op::Eq, &[n, there.n], bool_ty),
        _ => n,
    };
    b.store(slot, value);
}

/// Runs a region for all work items of a block.
fn run_items(
    b: &mut FunctionBuilder,
    kernel: &Kernel,
    order: Order,
    code: Func,
    size: [Value; 3],
    items: Value,
    args: &[Value],
) {
    let zero = b.literal(Prim::I32, 0);
    let Some(axis) = order.axis else {
        let mut all = vec![zero, items];
        all.extend(args);
        return b.vectorize(code, order.lanes, 0, &all);
    };
    let known = |b: &mut FunctionBuilder, axis: usize| match kernel.size(axis) {
        Some(n) => b.literal(Prim::I32, n),
        None => size[axis],
    };
    let [first, second] = others(axis);
    let (n_first, n_second, n_lanes) = (known(b, first), known(b, second), known(b, axis));
    counted(b, n_second, &mut |b, second| {
        counted(b, n_first, &mut |b, first| {
            let mut all = vec![zero, n_lanes, first, second];
            all.extend(args);
            b.vectorize(code, order.lanes, 0, &all);
        });
    });
}

/// The axes beside one, the faster first.
fn others(axis: usize) -> [usize; 2] {
    match axis {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}

/// Values that the function of the block computes: those that regions take, conditions between regions, and what these are
/// computed from.
fn common_values(kernel: &Kernel, regions: &Regions, codes: &[(Option<Func>, Interface)]) -> Vec<Value> {
    let function = &kernel.function;
    let own: FxHashSet<Value> = function.blocks[0].params.iter().copied().collect();
    let mut work: Vec<Value> = codes.iter().flat_map(|(_, i)| &i.common).copied().collect();
    for region in &regions.all {
        if let End::At(b) = region.end {
            if let Terminator::Branch { cond, .. } = &function.blocks[b].term {
                work.push(*cond);
            }
            work.extend(regions.barriers.get(&b).and_then(|barrier| barrier.arg));
        }
    }
    let results: FxHashSet<Value> = regions.barriers.values().filter_map(|b| b.result).collect();
    let mut incoming: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    for edge in function.blocks.iter().flat_map(|b| b.term.edges()) {
        for (&p, &a) in function.blocks[edge.block.idx()].params.iter().zip(&edge.args) {
            incoming.entry(p).or_default().push(a);
        }
    }
    let mut found = FxHashSet::default();
    while let Some(v) = work.pop() {
        let is_local = function.values[v.idx()].def == Def::Local && !own.contains(&v);
        if !is_local || regions.varying[v.idx()] || !found.insert(v) || results.contains(&v) {
            continue;
        }
        let (b, i) = regions.home[v.idx()];
        match function.blocks.get(b).and_then(|block| block.insts.get(i)) {
            Some(inst) => work.extend(&inst.args),
            None => work.extend(incoming.get(&v).into_iter().flatten()),
        }
    }
    let mut found: Vec<Value> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// Computes the common values of a region, once for the block.
fn compute_common(b: &mut FunctionBuilder, kernel: &Kernel, regions: &Regions, i: usize, common: &Common) {
    let (function, region) = (&kernel.function, &regions.all[i]);
    let inside: FxHashSet<usize> = region.blocks.iter().copied().collect();
    for &at in &region.blocks {
        let block = &function.blocks[at];
        if at != region.entry {
            let preds = region.blocks.iter().filter(|&&p| region.end != End::At(p));
            let edges = preds.flat_map(|&p| function.blocks[p].term.edges()).filter(|e| e.block.idx() == at);
            let args: Vec<&Edge> = edges.collect();
            if let [edge] = args[..] {
                let pairs: Vec<(Value, Value)> = block
                    .params
                    .iter()
                    .zip(&edge.args)
                    .filter_map(|(p, &a)| Some((*common.slots.get(p)?, common.read(b, function, a))))
                    .collect();
                pairs.into_iter().for_each(|(slot, value)| b.store(slot, value));
            }
        }
        debug_assert!(inside.contains(&at));
        for inst in &block.insts {
            let (Some(r), InstOp::Op(op)) = (inst.result, inst.op) else { continue };
            let Some(&slot) = common.slots.get(&r) else { continue };
            let args: Vec<Value> = inst.args.iter().map(|&a| common.read(b, function, a)).collect();
            (b.span, b.fast) = (inst.span, inst.fast);
            let value = b.op(op, &args, function.ty(r));
            b.fast = false;
            b.store(slot, value);
        }
    }
}

/// The function of a region, which takes the number of a work item, those on the other axes, common values, and arrays.
/// `None` if it does nothing.
fn build_region(
    module: &mut Module,
    kernel: &Kernel,
    regions: &Regions,
    i: usize,
    order: Order,
) -> (Option<Func>, Interface) {
    let (old, region) = (&kernel.function, &regions.all[i]);
    let uses = Uses::of(kernel, regions, i);
    let i32 = module.types.i32();
    let n_numbers = if order.axis.is_some() { 3 } else { 1 };
    let mut tys = vec![i32; n_numbers];
    tys.extend(uses.interface.common.iter().map(|&v| old.ty(v)));
    for &v in &uses.interface.arrays {
        let array = module.types.indef_array(old.ty(v));
        tys.push(module.types.ptr(array));
    }
    if region.may_return || region.after_return {
        let bool_ty = module.types.bool();
        let array = module.types.indef_array(bool_ty);
        tys.push(module.types.ptr(array));
    }
    let func = module.declare(&format!("{}.region{i}", old.name), Linkage::Internal, &tys, &[]);
    let mut b = FunctionBuilder::new(module, func);
    b.function.span = old.span;
    b.span = old.span;
    let entry = b.entry(&["i"]);
    let params: Vec<Value> = (0..tys.len()).map(|i| b.param(entry, i)).collect();
    let mut new: FxHashMap<Value, Value> = FxHashMap::default();
    let from = &params[n_numbers..];
    new.extend(uses.interface.common.iter().copied().zip(from.iter().copied()));
    let arrays: FxHashMap<Value, Value> =
        uses.interface.arrays.iter().copied().zip(from[uses.interface.common.len()..].iter().copied()).collect();
    let size = kernel.grid[1].map(|v| constant_or(&mut b, old, v, &new));
    let thread = match order.axis {
        Some(axis) => {
            let mut thread = [params[0]; 3];
            let [first, second] = others(axis);
            (thread[first], thread[second]) = (params[1], params[2]);
            thread
        }
        None => {
            let y = b.op(Op::Div, &[params[0], size[0]], i32);
            let (x, z) = (b.op(Op::Rem, &[params[0], size[0]], i32), b.op(Op::Div, &[y, size[1]], i32));
            [x, b.op(Op::Rem, &[y, size[1]], i32), z]
        }
    };
    // On an axis of one work item, its number is 0.
    let thread: Vec<Value> =
        (0..3).map(|axis| if kernel.size(axis) == Some(1) { b.literal(Prim::I32, 0) } else { thread[axis] }).collect();
    new.extend(kernel.thread.iter().copied().zip(thread.iter().copied()));
    let thread = [thread[0], thread[1], thread[2]];
    let mut made = Vec::new();
    let item = linear(b.function, i32, thread, size, &mut made, old.span);
    b.function.blocks[entry.idx()].insts.extend(made);
    if region.after_return {
        let bool_ty = b.types.bool();
        let at = element(&mut b, params[params.len() - 1], item, bool_ty);
        let gone = b.op(Op::Load, &[at], bool_ty);
        let (skip, on) = (b.block("returned", &[]), b.block("on", &[]));
        b.switch_to(entry);
        branch(&mut b, gone, skip, on);
        b.switch_to(skip);
        b.terminate(Terminator::Return(Vec::new()));
        b.switch_to(on);
    }
    let start = b.current();
    // Values of earlier regions; variables for those that this region computes anew.
    let mut slots: FxHashMap<Value, Value> = FxHashMap::default();
    let load = |&v: &Value| match arrays.get(&v).filter(|_| !regions.again[v.idx()]) {
        Some(&array) => {
            let at = element(&mut b, array, item, old.ty(v));
            b.op(Op::Load, &[at], old.ty(v))
        }
        None => again(&mut b, kernel, regions, v, &mut new),
    };
    let values: Vec<Value> = uses.taken.iter().map(load).collect();
    for (&v, value) in uses.taken.iter().zip(values) {
        if uses.made.contains(&v) {
            let slot = b.slot(old.ty(v), old.name(v));
            b.store(slot, value);
            slots.insert(v, slot);
            new.remove(&v);
        } else {
            new.insert(v, value);
        }
    }
    let blocks: FxHashMap<usize, Block> =
        region.blocks.iter().map(|&at| (at, b.block(&old.blocks[at].name, &[]))).collect();
    b.switch_to(start);
    b.terminate(Terminator::Jump(Edge { block: blocks[&region.entry], args: Vec::new() }));
    // All values of the region, as blocks in reverse postorder may use those of later ones.
    for &at in &region.blocks {
        let is_entry = at == region.entry;
        let params = old.blocks[at].params.iter().filter(|_| !is_entry);
        let results = old.blocks[at].insts.iter().filter_map(|inst| inst.result.as_ref());
        for &v in params.chain(results) {
            let own = b.function.new_value(old.ty(v), old.name(v));
            if !slots.contains_key(&v) {
                new.insert(v, own);
            }
            if !is_entry && old.blocks[at].params.contains(&v) {
                b.function.blocks[blocks[&at].idx()].params.push(own);
            }
        }
    }
    for &at in &region.blocks {
        b.switch_to(blocks[&at]);
        copy_block(&mut b, kernel, regions, (i, at), &blocks, &slots, &arrays, &mut new, item, &uses);
        if region.may_return && region.end != End::At(at) && matches!(old.blocks[at].term, Terminator::Return(_)) {
            let bool_ty = b.types.bool();
            let at = element(&mut b, params[params.len() - 1], item, bool_ty);
            let yes = b.function.constant(Const::Bits(1), bool_ty);
            b.store(at, yes);
        }
    }
    let function = &mut module.funcs[func.idx()];
    promote_slots_of(&mut module.types, function);
    simplify_function(&module.types, function);
    let acts = function.blocks.len() > 1 || function.blocks.iter().flat_map(|b| &b.insts).any(|i| !i.is_droppable());
    (acts.then_some(func), uses.interface)
}

fn constant_or(b: &mut FunctionBuilder, old: &Function, v: Value, new: &FxHashMap<Value, Value>) -> Value {
    match old.values[v.idx()].def {
        Def::Const(c) => b.function.constant(c, old.ty(v)),
        Def::Local => new.get(&v).copied().unwrap_or_else(|| b.function.undef(old.ty(v))),
    }
}

/// The address of a work item's element.
fn element(b: &mut FunctionBuilder, array: Value, item: Value, ty: Ty) -> Value {
    let ptr = b.types.ptr(ty);
    b.op(Op::Lea, &[array, item], ptr)
}

/// Computes a value of an earlier region again.
fn again(
    b: &mut FunctionBuilder,
    kernel: &Kernel,
    regions: &Regions,
    v: Value,
    new: &mut FxHashMap<Value, Value>,
) -> Value {
    let old = &kernel.function;
    // Operands first; the work list is as deep as there are operations.
    let mut work = vec![v];
    while let Some(&at) = work.last() {
        let is_done = new.contains_key(&at) || matches!(old.values[at.idx()].def, Def::Const(_));
        let (block, i) = regions.home[at.idx()];
        let inst = old.blocks.get(block).and_then(|block| block.insts.get(i));
        let (false, Some(inst), InstOp::Op(op)) = (is_done, inst, inst.map_or(InstOp::CallIndirect, |i| i.op)) else {
            work.pop();
            continue;
        };
        let is_open =
            |a: &Value| old.values[a.idx()].def == Def::Local && !new.contains_key(a) && regions.again[a.idx()];
        let open: Vec<Value> = inst.args.iter().copied().filter(is_open).collect();
        if open.is_empty() {
            let args: Vec<Value> = inst.args.iter().map(|&a| constant_or(b, old, a, new)).collect();
            b.span = inst.span;
            let value = b.op(op, &args, old.ty(at));
            new.insert(at, value);
            work.pop();
        } else {
            work.extend(open);
        }
    }
    constant_or(b, old, v, new)
}

/// Values that go into a region and out of it.
struct Uses {
    interface: Interface,
    /// Values of earlier regions that the region loads or computes again, in order; without common ones that it takes.
    taken: Vec<Value>,
    /// Values that the region computes.
    made: FxHashSet<Value>,
    /// Values that it leaves in arrays at its end.
    left: Vec<Value>,
}

impl Uses {
    fn of(kernel: &Kernel, regions: &Regions, i: usize) -> Uses {
        let (old, region) = (&kernel.function, &regions.all[i]);
        let mut made: FxHashSet<Value> = FxHashSet::default();
        let mut used: FxHashSet<Value> = FxHashSet::default();
        for &at in &region.blocks {
            let block = &old.blocks[at];
            if at != region.entry {
                made.extend(&block.params);
            }
            made.extend(block.insts.iter().filter_map(|inst| inst.result));
            used.extend(block.insts.iter().flat_map(|inst| &inst.args));
            if region.end != End::At(at) {
                block.term.for_each_use(|v| used.extend([v]));
            }
        }
        let mut left = Vec::new();
        if let End::At(at) = region.end {
            let barrier = regions.barriers.get(&at);
            let decides = barrier.and_then(|barrier| barrier.arg);
            let cond = match &old.blocks[at].term {
                Terminator::Branch { cond, .. } => Some(*cond),
                _ => None,
            };
            let varying = |v: &Value| regions.varying[v.idx()];
            let conditions: Vec<Value> = decides.into_iter().chain(cond).filter(varying).collect();
            used.extend(&conditions);
            left.extend(conditions);
            for edge in old.blocks[at].term.edges() {
                let next = regions.of_entry[&edge.block.idx()];
                let kept = |v: &&Value| varying(v) && !regions.again[v.idx()] && made.contains(*v);
                left.extend(regions.live[next].iter().filter(kept));
            }
            left.sort_unstable();
            left.dedup();
        }
        // Values that live on may have been computed in this region or in an earlier one.
        let own: FxHashSet<Value> = old.blocks[0].params.iter().copied().collect();
        let live: FxHashSet<Value> = regions.live[i].iter().copied().collect();
        let is_needed = |v: &Value| used.contains(v) || left.contains(v) && made.contains(v);
        let mut taken: Vec<Value> = regions.live[i].iter().copied().filter(is_needed).collect();
        taken.retain(|v| regions.varying[v.idx()] || made.contains(v));
        let (mut common, mut arrays) = (FxHashSet::default(), FxHashSet::default());
        let mut add_common = |v: Value| {
            if old.values[v.idx()].def == Def::Local && !regions.varying[v.idx()] {
                common.insert(v);
            }
        };
        for &v in &used {
            if own.contains(&v) || live.contains(&v) {
                add_common(v);
            }
        }
        taken.iter().for_each(|&v| add_common(v));
        kernel.grid[1].iter().for_each(|&v| add_common(v));
        let mut work: Vec<Value> = taken.iter().copied().filter(|v| regions.again[v.idx()]).collect();
        let mut seen: FxHashSet<Value> = work.iter().copied().collect();
        while let Some(v) = work.pop() {
            let (b, at) = regions.home[v.idx()];
            let Some(inst) = old.blocks.get(b).and_then(|block| block.insts.get(at)) else { continue };
            for &a in &inst.args {
                add_common(a);
                if regions.again[a.idx()] && seen.insert(a) {
                    work.push(a);
                }
            }
        }
        arrays.extend(left.iter().copied());
        arrays.extend(taken.iter().copied().filter(|v| regions.varying[v.idx()] && !regions.again[v.idx()]));
        let sorted = |set: FxHashSet<Value>| {
            let mut all: Vec<Value> = set.into_iter().collect();
            all.sort_unstable();
            all
        };
        Uses { interface: Interface { common: sorted(common), arrays: sorted(arrays) }, taken, made, left }
    }
}

/// Copies a block into the function of a region.
#[allow(clippy::too_many_arguments)]
fn copy_block(
    b: &mut FunctionBuilder,
    kernel: &Kernel,
    regions: &Regions,
    (i, at): (usize, usize),
    blocks: &FxHashMap<usize, Block>,
    slots: &FxHashMap<Value, Value>,
    arrays: &FxHashMap<Value, Value>,
    new: &mut FxHashMap<Value, Value>,
    item: Value,
    uses: &Uses,
) {
    let (old, region) = (&kernel.function, &regions.all[i]);
    let read = |b: &mut FunctionBuilder, new: &FxHashMap<Value, Value>, v: Value| match slots.get(&v) {
        Some(&slot) => b.op(Op::Load, &[slot], old.ty(v)),
        None => constant_or(b, old, v, new),
    };
    let block = &old.blocks[at];
    if at != region.entry {
        for (k, p) in block.params.iter().enumerate() {
            if let Some(&slot) = slots.get(p) {
                let own = b.function.blocks[blocks[&at].idx()].params[k];
                b.store(slot, own);
            }
        }
    }
    for inst in &block.insts {
        b.span = inst.span;
        let args: Args = inst.args.iter().map(|&a| read(b, new, a)).collect();
        let result = inst.result.map(|r| match slots.contains_key(&r) {
            true => b.function.new_value(old.ty(r), old.name(r)),
            false => new[&r],
        });
        let copied = Inst { op: inst.op, args, result, span: inst.span, fast: inst.fast };
        b.function.blocks[blocks[&at].idx()].insts.push(copied);
        if let Some(slot) = inst.result.and_then(|r| slots.get(&r))
            && let Some(result) = result
        {
            b.store(*slot, result);
        }
    }
    if region.end == End::At(at) {
        for &v in &uses.left {
            let value = read(b, new, v);
            let place = element(b, arrays[&v], item, old.ty(v));
            b.store(place, value);
        }
        return b.terminate(Terminator::Return(Vec::new()));
    }
    let mut term = block.term.clone();
    term.map_uses(|v| read(b, new, v));
    term.edges_mut().for_each(|e| e.block = blocks[&e.block.idx()]);
    b.terminate(term);
}
