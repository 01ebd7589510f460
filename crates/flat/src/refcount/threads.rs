//! Which functions may run while another thread does, so that their counts are atomic. Separate from [`refcount`](super),
//! because it is a question about calls.
//!
//! `parallel` returns when all of its threads are done, so only its body, and the functions that the body may call, run
//! concurrently; likewise the blocks of a kernel on the host. A thread of `spawn` runs on while its maker does: a module
//! that has one uses atomic counts everywhere.

use crate::data::*;
use nyala_base::Id;
use rustc_hash::FxHashSet;

/// Functions that may run while another thread does.
pub(super) fn run_with_threads(module: &Module) -> FxHashSet<Func> {
    let all = || (0..module.funcs.len()).map(Func::from_idx);
    let mut work: Vec<Func> = Vec::new();
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let callee = match inst.op {
                InstOp::Call(callee) => callee,
                InstOp::Launch(kernel, _) => {
                    work.push(kernel);
                    continue;
                }
                _ => continue,
            };
            match module.func(callee).symbol() {
                Some("nyala_spawn") => return all().collect(),
                Some("nyala_parallel") => {
                    match inst.args.iter().find_map(|a| function_of(&function.values[a.idx()].def)) {
                        Some(body) => work.push(body),
                        None => return all().collect(),
                    }
                }
                _ => {}
            }
        }
    }
    let mut found: FxHashSet<Func> = FxHashSet::default();
    // Functions that unknown callees may be: function values, and functions that the program passes to C.
    let (mut values, mut from_c) = (Vec::new(), Vec::new());
    if !work.is_empty() {
        values = module.globals.iter().flat_map(|g| g.init.functions()).collect();
        values.extend(module.funcs.iter().flat_map(|f| f.values.iter().filter_map(|v| function_of(&v.def))));
        from_c = all().filter(|&f| matches!(module.func(f).linkage, Linkage::Exported(_))).collect();
        from_c.extend(&values);
    }
    while let Some(func) = work.pop() {
        if !found.insert(func) {
            continue;
        }
        let function = module.func(func);
        if function.blocks.is_empty() && !function.symbol().is_some_and(|symbol| symbol.starts_with("nyala_")) {
            work.append(&mut from_c);
        }
        for block in &function.blocks {
            for inst in &block.insts {
                match inst.op {
                    InstOp::Call(callee) | InstOp::Vectorize(callee, ..) | InstOp::Launch(callee, _) => {
                        work.push(callee)
                    }
                    InstOp::CallIndirect => work.append(&mut values),
                    _ => {}
                }
            }
            match &block.term {
                Terminator::TailCall { callee: Callee::Func(callee), .. } => work.push(*callee),
                Terminator::TailCall { callee: Callee::Indirect(_), .. } => work.append(&mut values),
                _ => {}
            }
        }
    }
    found
}

fn function_of(def: &Def) -> Option<Func> {
    match *def {
        Def::Const(Const::Func(f) | Const::CFunc(f)) => Some(f),
        _ => None,
    }
}
