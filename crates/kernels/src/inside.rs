//! Code that is another one in kernels: functions of devices that programs declare in `extern "C"` blocks. Separate from the numbers of
//! work items, since no parameter of a kernel has the answer, and since functions that only compute stay functions of their own.
//!
//! ```text
//! work_item(IN_KERNEL, 0)      1 in kernels and in all that they call, 0 elsewhere
//! ```
//!
//! A function that leads to the question, and that both kernels and the host call, is copied for the kernels. An address of a function
//! that the host has stored leads to the host's one.

use super::called;
use nyala_base::Id;
use nyala_flat::*;
use nyala_ir::Op;
use nyala_ir::lanes::IN_KERNEL;
use rustc_hash::{FxHashMap, FxHashSet};

/// Answers all questions of a module.
pub(super) fn answer(module: &mut Module) {
    let funcs = || (0..module.funcs.len()).map(Func::from_idx);
    let asking: Vec<Func> = funcs().filter(|&f| asks(module.func(f))).collect();
    if asking.is_empty() {
        return;
    }
    let leading = leading_to(module, &asking);
    let launches =
        |f: Func| module.func(f).blocks.iter().flat_map(|b| &b.insts).filter_map(launched).collect::<Vec<_>>();
    let inside = reached(module, funcs().flat_map(launches).collect());
    let is_entry = |f: &Func| matches!(module.func(*f).linkage, Linkage::Exported(_));
    let mut entries: Vec<Func> = funcs().filter(is_entry).collect();
    entries.extend(module.globals.iter().flat_map(|g| g.init.functions()));
    let outside = reached(module, entries);
    let both: Vec<Func> = funcs().filter(|f| [&leading, &inside, &outside].iter().all(|s| s.contains(f))).collect();
    let mut copies = FxHashMap::default();
    for func in both {
        let mut copy = module.func(func).clone();
        copy.name = format!("{}.kernel", copy.name);
        copy.linkage = match copy.linkage {
            Linkage::Exported(_) => Linkage::Callback,
            other => other,
        };
        copies.insert(func, Func::from_idx(module.funcs.len()));
        module.funcs.push(copy);
    }
    let of_copies: FxHashSet<Func> = copies.values().copied().collect();
    let i32 = module.types.i32();
    for func in (0..module.funcs.len()).map(Func::from_idx) {
        let is_inside = of_copies.contains(&func) || inside.contains(&func) && !copies.contains_key(&func);
        let Module { funcs, types, .. } = module;
        let function = &mut funcs[func.idx()];
        for inst in function.blocks.iter_mut().flat_map(|b| &mut b.insts) {
            match &mut inst.op {
                InstOp::Launch(f, _) => *f = copies.get(f).copied().unwrap_or(*f),
                InstOp::Call(f) | InstOp::Vectorize(f, ..) if is_inside => *f = copies.get(f).copied().unwrap_or(*f),
                _ => {}
            }
        }
        if is_inside {
            for block in &mut function.blocks {
                if let Terminator::TailCall { callee: Callee::Func(f), .. } = &mut block.term {
                    *f = copies.get(f).copied().unwrap_or(*f);
                }
            }
            for value in &mut function.values {
                if let Def::Const(Const::Func(f) | Const::CFunc(f)) = &mut value.def {
                    *f = copies.get(f).copied().unwrap_or(*f);
                }
            }
        }
        if asks(function) {
            let answer = function.constant(Const::Bits(is_inside.into()), i32);
            replace(function, answer);
            simplify_function(types, function);
        }
    }
}

fn is_question(function: &Function, inst: &Inst) -> bool {
    inst.op == InstOp::Op(Op::WorkItem) && function.as_bits(inst.args[0]) == Some(IN_KERNEL)
}

fn asks(function: &Function) -> bool {
    function.blocks.iter().flat_map(|b| &b.insts).any(|inst| is_question(function, inst))
}

fn launched(inst: &Inst) -> Option<Func> {
    match inst.op {
        InstOp::Launch(f, _) => Some(f),
        _ => None,
    }
}

/// The functions that a function calls, or whose addresses it has, but for kernels.
fn callees(module: &Module, func: Func) -> Vec<Func> {
    let function = module.func(func);
    let calls = function.blocks.iter().flat_map(|b| &b.insts).filter(|i| launched(i).is_none()).filter_map(called);
    let jumps = function.blocks.iter().filter_map(|b| match b.term {
        Terminator::TailCall { callee: Callee::Func(f), .. } => Some(f),
        _ => None,
    });
    let addresses = function.values.iter().filter_map(|v| match v.def {
        Def::Const(Const::Func(f) | Const::CFunc(f)) => Some(f),
        _ => None,
    });
    calls.chain(jumps).chain(addresses).collect()
}

fn reached(module: &Module, mut work: Vec<Func>) -> FxHashSet<Func> {
    let mut found = FxHashSet::default();
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(callees(module, func));
        }
    }
    found
}

/// The functions that lead to one of these.
fn leading_to(module: &Module, to: &[Func]) -> FxHashSet<Func> {
    let mut callers: FxHashMap<Func, Vec<Func>> = FxHashMap::default();
    for func in (0..module.funcs.len()).map(Func::from_idx) {
        for callee in callees(module, func) {
            callers.entry(callee).or_default().push(func);
        }
    }
    let (mut work, mut found) = (to.to_vec(), FxHashSet::default());
    while let Some(func) = work.pop() {
        if found.insert(func) {
            work.extend(callers.get(&func).into_iter().flatten());
        }
    }
    found
}

/// Replaces the questions of a function by the answer, and comparisons of it by their results.
fn replace(function: &mut Function, answer: Value) {
    let mut new: FxHashMap<Value, Value> = FxHashMap::default();
    for b in 0..function.blocks.len() {
        let mut insts = std::mem::take(&mut function.blocks[b].insts);
        insts.retain(|inst| match inst.result {
            Some(result) if is_question(function, inst) => {
                new.insert(result, answer);
                false
            }
            _ => true,
        });
        function.blocks[b].insts = insts;
    }
    let renamed = |v: Value, new: &FxHashMap<Value, Value>| new.get(&v).copied().unwrap_or(v);
    let mut compared = FxHashMap::default();
    for b in 0..function.blocks.len() {
        for i in 0..function.blocks[b].insts.len() {
            let inst = &mut function.blocks[b].insts[i];
            inst.args.iter_mut().for_each(|a| *a = renamed(*a, &new));
            let (InstOp::Op(op @ (Op::Eq | Op::Ne)), Some(result)) = (inst.op, inst.result) else { continue };
            let (x, y) = (inst.args[0], inst.args[1]);
            if x != answer && y != answer {
                continue;
            }
            if let (Some(x), Some(y)) = (function.as_bits(x), function.as_bits(y)) {
                let ty = function.ty(result);
                let holds = function.constant(Const::Bits(((x == y) == (op == Op::Eq)).into()), ty);
                compared.insert(result, holds);
            }
        }
        function.blocks[b].term.map_uses(|v| renamed(v, &new));
    }
    for block in &mut function.blocks {
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = renamed(*a, &compared));
        block.term.map_uses(|v| renamed(v, &compared));
    }
}
