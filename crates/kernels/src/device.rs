//! The last steps for the module of a device: what all its functions go through after the kernels and their callees are
//! in it. Separate from the split, which makes the kernels and what the host passes to them.
//!
//! - The lanes of a `vectorize` in a kernel run in turn: the work items are the lanes of a device.
//! - A function asks for the numbers of its work item once, at its entry.
//! - What no device can do is reported at the launch, or where it is written.

use super::diagnostics::{host_code_in_kernel, host_memory_in_kernel, not_on_platform};
use super::inline::answer;
use super::{called, launched_by_kernel, refuse};
use nyala_base::graph::Components;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::*;
use nyala_ir::lanes::{PRAGMA, can_print, device_function, has_gpu_intrinsic, is_channel, printed};
use nyala_ir::{Op, Scope, Types, WorkItem};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// Brings the functions of a device's module into the form that its back ends expect.
pub(super) fn finish(device: &mut Module, diagnostics: &mut Vec<Diagnostic>) {
    for func in (0..device.funcs.len()).map(Func::from_idx) {
        if device.func(func).is_foreign() {
            continue;
        }
        run_lanes_in_turn(device, func, diagnostics);
        ask_at_entry(&mut device.types, &mut device.funcs[func.idx()]);
    }
}

/// Runs the iterations of a `vectorize` in a kernel one after the other: the work items are the lanes of a device.
fn run_lanes_in_turn(device: &mut Module, func: Func, diagnostics: &mut Vec<Diagnostic>) {
    let mut b = 0;
    while b < device.func(func).blocks.len() {
        let is_lanes = |inst: &Inst| matches!(inst.op, InstOp::Vectorize(..));
        let Some(at) = device.func(func).blocks[b].insts.iter().position(is_lanes) else {
            b += 1;
            continue;
        };
        let function = &mut device.funcs[func.idx()];
        let mut rest = function.blocks[b].insts.split_off(at);
        let inst = rest.remove(0);
        let InstOp::Vectorize(body, ..) = inst.op else { return };
        if exchanges(device, body) {
            let message = "a kernel for a device has a `vectorize` whose lanes exchange values";
            let hint = "exchange values among the work items, or run the kernel with `--device host`";
            diagnostics.push(*refuse(inst.span, message, hint));
        }
        let (lo, hi) = (inst.args[0], inst.args[1]);
        let term = std::mem::replace(&mut device.funcs[func.idx()].blocks[b].term, Terminator::Unreachable);
        let mut fb = FunctionBuilder::new(device, func);
        fb.span = inst.span;
        let (ty, bool_ty) = (fb.function.ty(lo), fb.types.bool());
        let head = fb.block("head", &[(ty, "i")]);
        let round = fb.block("round", &[]);
        let after = fb.block("after", &[]);
        let edge = |block: Block, args: Vec<Value>| Edge { block, args };
        fb.switch_to(Block::from_idx(b));
        fb.terminate(Terminator::Jump(edge(head, vec![lo])));
        fb.switch_to(head);
        let i = fb.param(head, 0);
        let cond = fb.op(Op::Lt, &[i, hi], bool_ty);
        fb.terminate(Terminator::Branch { cond, then: edge(round, Vec::new()), els: edge(after, Vec::new()) });
        fb.switch_to(round);
        let mut args = vec![i];
        args.extend(&inst.args[2..]);
        fb.call(body, &args, &[]);
        let one = fb.function.constant(Const::Bits(1), ty);
        let next = fb.op(Op::Add, &[i, one], ty);
        fb.terminate(Terminator::Jump(edge(head, vec![next])));
        fb.switch_to(after);
        fb.terminate(term);
        device.funcs[func.idx()].blocks[after.idx()].insts = rest;
        b += 1;
    }
}

/// Whether a function, or one that it calls, has operations among the lanes of a subgroup.
fn exchanges(device: &Module, func: Func) -> bool {
    let (mut work, mut seen) = (vec![func], FxHashSet::default());
    while let Some(func) = work.pop() {
        if !seen.insert(func) {
            continue;
        }
        let mut insts = device.func(func).blocks.iter().flat_map(|b| &b.insts);
        if insts.any(|inst| device.lane_op(inst).is_some_and(|(_, scope)| scope == Scope::Subgroup)) {
            return true;
        }
        work.extend(callees(device.func(func)).into_iter().map(Func::from_idx));
    }
    false
}

/// Lets a function ask for the numbers of its work item once, at its entry. Extents of a block that are known are
/// literals; an axis that is known at run time only chooses among the three.
fn ask_at_entry(types: &mut Types, function: &mut Function) {
    let asks = function.blocks.iter().flat_map(|b| &b.insts).any(|inst| inst.op == InstOp::Op(Op::WorkItem));
    if !asks {
        return;
    }
    let sizes = match &function.linkage {
        Linkage::Kernel(_, sizes) => *sizes,
        _ => [0; 3],
    };
    let i32 = types.i32();
    let mut insts = Vec::new();
    let numbers = WorkItem::ALL.map(|what| {
        [0, 1, 2].map(|axis: usize| {
            if what == WorkItem::BlockSize && sizes[axis] > 0 {
                return function.constant(Const::Bits(sizes[axis].into()), i32);
            }
            let args = [what.number(), axis as u64].map(|n| function.constant(Const::Bits(n), i32));
            let result = function.new_value(i32, "");
            let args = Args::from_slice(&args);
            let op = InstOp::Op(Op::WorkItem);
            insts.push(Inst { op, args, result: Some(result), span: Span::NONE, fast: false });
            result
        })
    });
    answer(types, function, &|what, axis| Some(numbers[what.number() as usize][axis]));
    let entry = &mut function.blocks[0].insts;
    entry.splice(0..0, insts);
    simplify_function(types, function);
    name_places(function);
}

/// Names the place of the work item in the grid x, y, z, unless the program does.
fn name_places(function: &mut Function) {
    let insts = function.blocks.iter().flat_map(|b| &b.insts);
    let definitions: FxHashMap<Value, &Inst> = insts.clone().filter_map(|inst| Some((inst.result?, inst))).collect();
    let axis = |v: Value, what: WorkItem| {
        let inst = definitions.get(&v).filter(|inst| inst.op == InstOp::Op(Op::WorkItem))?;
        let axis = function.as_bits(inst.args[1])?;
        (function.as_bits(inst.args[0]) == Some(what.number())).then_some(axis as usize)
    };
    let mut names = Vec::new();
    for inst in insts.filter(|inst| inst.op == InstOp::Op(Op::Add)) {
        let (Some(result), Some(product)) = (inst.result, definitions.get(&inst.args[0])) else { continue };
        let is_product = product.op == InstOp::Op(Op::Mul);
        if let (true, Some(a)) = (is_product, axis(inst.args[1], WorkItem::Thread))
            && axis(product.args[0], WorkItem::Block) == Some(a)
            && function.name(result).is_empty()
        {
            names.push((result, ["x", "y", "z"][a.min(2)]));
        }
    }
    names.into_iter().for_each(|(v, name)| function.set_name(v, name));
}

/// Whether kernels for a platform are made by way of its assembly.
fn has_assembly(platform: &str) -> bool {
    ["cuda", "nvvm", "amdgpu_hsa", "amdgpu_pal"].contains(&platform)
}

/// Whether a function of the runtime counts environments of function values.
fn counts_environments(symbol: &str) -> bool {
    ["nyala_retain", "nyala_release", "nyala_environment"].iter().any(|name| symbol.starts_with(name))
}

/// Reports what no device can do.
pub(super) fn check(
    device: &Module,
    launches: &[(GlobalId, Span, Func)],
    platform: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let launched = launches_by_func(device, launches);
    let mut report = |span: Span, func: usize, mut diagnostic: Diagnostic| {
        let of_launch = launched.get(&func).copied().unwrap_or(Span::NONE);
        let function = &device.funcs[func];
        let is_kernel = matches!(function.linkage, Linkage::Kernel(..));
        let place = if is_kernel { [span, of_launch, function.span] } else { [span, function.span, of_launch] };
        let place = place.into_iter().find(|s| *s != Span::NONE).unwrap_or(Span::NONE);
        diagnostic.primary.span = place;
        let elsewhere = of_launch != Span::NONE && of_launch != place;
        diagnostics.push(if elsewhere {
            diagnostic.other(of_launch, "in the kernel launched here")
        } else {
            diagnostic
        });
    };
    let lacks = |what: &str, hint: &str| not_on_platform::feature(platform, what, hint);
    let heap = || lacks("allocate memory on the heap", "allocate it before the launch, and pass it to the kernel");
    let chosen = || {
        let hint = "let the function around the call be specialized with `@`, or write a `match`";
        lacks("call a function that is chosen at run time", hint)
    };
    for (func, function) in device.funcs.iter().enumerate() {
        // Each thing once for a function.
        let mut seen = FxHashSet::default();
        for block in &function.blocks {
            for inst in &block.insts {
                let fault = match inst.op {
                    InstOp::CallIndirect => chosen(),
                    InstOp::Op(Op::Alloc) => heap(),
                    InstOp::Launch(..) => launched_by_kernel(Span::NONE),
                    InstOp::Call(callee) if device.func(callee).is_foreign() && device.lane_op(inst).is_none() => {
                        let callee = device.func(callee);
                        match callee.symbol() {
                            Some(symbol) if has_gpu_intrinsic(platform, symbol) => continue,
                            Some(symbol) if platform == "hls" && (is_channel(symbol) || symbol == PRAGMA) => continue,
                            Some(symbol) if can_print(platform) && printed(symbol).is_some() => continue,
                            Some(symbol)
                                if device_function(symbol).is_some() && ["cuda", "nvvm"].contains(&platform) =>
                            {
                                continue;
                            }
                            Some(symbol) if let Some(name) = device_function(symbol) => {
                                not_on_platform::function(platform, name)
                            }
                            Some(symbol) if printed(symbol).is_some() => {
                                lacks("print", "write results to memory, or run the kernel with `--device host`")
                            }
                            Some("nyala_alloc") => heap(),
                            Some(symbol) if counts_environments(symbol) => chosen(),
                            Some("nyala_panic" | "nyala_panic_at") => lacks(
                                "panic",
                                "leave the `assert` or `panic` to runs with `--device host`, or write a mark to memory",
                            ),
                            Some(symbol) => host_code_in_kernel::called(platform, symbol),
                            // Assembly of the GPU.
                            None if has_assembly(platform) => continue,
                            None => host_code_in_kernel::assembly(platform),
                        }
                    }
                    _ => continue,
                };
                if seen.insert(fault.message.clone()) {
                    report(inst.span, func, fault);
                }
            }
            if let Terminator::TailCall { callee: Callee::Indirect(_), .. } = block.term {
                let fault = chosen();
                if seen.insert(fault.message.clone()) {
                    report(block.insts.last().map_or(Span::NONE, |i| i.span), func, fault);
                }
            }
        }
        for (i, value) in function.values.iter().enumerate() {
            let Def::Const(Const::Global(global)) = value.def else { continue };
            let global = &device.globals[global.idx()];
            if global.mutable && seen.insert(global.name.clone()) {
                let uses = |inst: &&Inst| inst.args.contains(&Value::from_idx(i));
                let span =
                    function.blocks.iter().flat_map(|b| &b.insts).find(uses).map_or(Span::NONE, |inst| inst.span);
                report(span, func, host_memory_in_kernel::used(platform, &global.name));
            }
        }
    }
    if let Some(func) = recursive(device) {
        let what = format!("call `{}`, which is recursive", device.func(func).name);
        let fault = lacks(&what, "write a loop; a call in tail position of the function itself is one");
        report(Span::NONE, func.idx(), fault);
    }
}

/// For each function, the place of the first launch whose kernel calls it, directly or by others.
fn launches_by_func(device: &Module, launches: &[(GlobalId, Span, Func)]) -> FxHashMap<usize, Span> {
    let mut launched = FxHashMap::default();
    for &(_, span, kernel) in launches {
        let mut work = vec![kernel.idx()];
        while let Some(func) = work.pop() {
            if let Entry::Vacant(entry) = launched.entry(func) {
                entry.insert(span);
                work.extend(callees(&device.funcs[func]));
            }
        }
    }
    launched
}

/// The functions that a function calls by name, in order, with repetitions.
fn callees(function: &Function) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for block in &function.blocks {
        found.extend(block.insts.iter().filter_map(called).map(Func::idx));
        if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term {
            found.push(f.idx());
        }
    }
    found
}

/// A function that calls itself, by others or directly, but for calls of itself in tail position.
fn recursive(device: &Module) -> Option<Func> {
    let successors: Vec<Vec<usize>> = device
        .funcs
        .iter()
        .enumerate()
        .map(|(i, function)| {
            let mut found: Vec<usize> =
                function.blocks.iter().flat_map(|b| &b.insts).filter_map(called).map(Func::idx).collect();
            for block in &function.blocks {
                if let Terminator::TailCall { callee: Callee::Func(f), .. } = block.term
                    && f.idx() != i
                {
                    found.push(f.idx());
                }
            }
            found
        })
        .collect();
    let nodes: Vec<usize> = (0..successors.len()).collect();
    let components = Components::default().find(&nodes, |f, i| successors[f].get(i).copied(), |_| true);
    let is_cycle = |c: &&Vec<usize>| c.len() > 1 || c.iter().any(|&f| successors[f].contains(&f));
    components.iter().find(is_cycle).and_then(|c| c.first()).map(|&f| Func::from_idx(f))
}
