//! Math functions as functions of a module: `math.flat`, the code of `math.impala`. Kernels get those that they need.
//!
//! They replace functions of `GLSL.std.450`, which are too coarse, or missing. What is fast takes the device's own.

use crate::{Result, bug};
use nyala_base::Id;
use nyala_flat::{Callee, Func, Function, InstOp, Linkage, Module, Terminator};
use nyala_ir::{Op, Prim};
use rustc_hash::FxHashMap;

const TEXT: &str = include_str!("math.flat");

/// The functions of a module that compute operations on floats.
pub(crate) type Library = FxHashMap<(Op, Prim), Func>;

/// The type on which a function works in place of another.
pub(crate) fn works_on(prim: Prim) -> Prim {
    if prim == Prim::F16 { Prim::F32 } else { prim }
}

/// Adds the functions that a module needs.
pub(crate) fn link(module: &mut Module) -> Result<Library> {
    let mut wanted: Vec<(Op, Prim)> = Vec::new();
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let (InstOp::Op(op), Some(&last)) = (inst.op, inst.args.last()) else { continue };
            let prim = module.types.lane_prim(function.ty(last)).filter(|p| p.is_float());
            if let (Some(prim), true) = (prim, !inst.fast && (op.is_math() || op == Op::Rem)) {
                wanted.push((op, works_on(prim)));
            }
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut library = Library::default();
    if wanted.is_empty() {
        return Ok(library);
    }
    // Types of numbers are the same in all modules, and the functions have no others.
    let source = nyala_flat::read(TEXT).map_err(|e| bug(format!("the math functions: {e}")))?;
    let mut moved: FxHashMap<Func, Func> = FxHashMap::default();
    let mut work: Vec<Func> = Vec::new();
    for (op, prim) in wanted {
        if let Some(func) = source.exported(&format!("{}_{}", op.name(), prim.name())) {
            library.insert((op, prim), place(module, &source, &mut moved, &mut work, func));
        }
    }
    while let Some(func) = work.pop() {
        let mut function = source.func(func).clone();
        if !function.values.iter().all(|v| source.types.as_prim(v.ty).is_some()) {
            return Err(bug(format!("the math function `{}` has values that are no numbers", function.name)));
        }
        function.linkage = Linkage::Internal;
        for block in &mut function.blocks {
            for inst in &mut block.insts {
                if let InstOp::Call(callee) = &mut inst.op {
                    *callee = place(module, &source, &mut moved, &mut work, *callee);
                }
            }
            if let Terminator::TailCall { callee: Callee::Func(callee), .. } = &mut block.term {
                *callee = place(module, &source, &mut moved, &mut work, *callee);
            }
        }
        let to = moved[&func];
        module.funcs[to.idx()] = function;
    }
    Ok(library)
}

/// The place of a function in the module; it is filled later.
fn place(
    module: &mut Module,
    source: &Module,
    moved: &mut FxHashMap<Func, Func>,
    work: &mut Vec<Func>,
    func: Func,
) -> Func {
    *moved.entry(func).or_insert_with(|| {
        let function = source.func(func);
        module.funcs.push(Function::new(&function.name, Linkage::Internal, &function.params, &function.rets));
        work.push(func);
        Func::from_idx(module.funcs.len() - 1)
    })
}
