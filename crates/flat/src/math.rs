//! Math functions as functions of a module, for devices that lack them: `math.flat`, the code of `math.impala`. Kernels get those
//! that they need.
//!
//! ```text
//! y: f16 = sin(x)          w: f32 = cast(x)   r: f32 = call sin_f32(w)   y: f16 = cast(r)
//! ```

use crate::data::*;
use crate::read;
use nyala_base::Id;
use nyala_ir::{Op, Prim, Ty};
use rustc_hash::FxHashMap;

const TEXT: &str = include_str!("math/math.flat");

/// The functions of a module that compute operations on floats.
pub type MathFunctions = FxHashMap<(Op, Prim), Func>;

/// The type on which a function works in place of another.
pub fn math_works_on(prim: Prim) -> Prim {
    if prim == Prim::F16 { Prim::F32 } else { prim }
}

/// Adds the functions for all operations that `wants` names, as far as there are any.
///
/// # Errors
/// A fault of this compiler: the text of the functions is broken.
pub fn link_math(module: &mut Module, wants: &dyn Fn(Op, Prim, &Inst) -> bool) -> Result<MathFunctions, String> {
    let mut wanted: Vec<(Op, Prim)> = Vec::new();
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            let (InstOp::Op(op), Some(&last)) = (inst.op, inst.args.last()) else { continue };
            let prim = module.types.lane_prim(function.ty(last)).filter(|p| p.is_float());
            if let Some(prim) = prim.filter(|_| op.is_math() || op == Op::Rem)
                && wants(op, prim, inst)
            {
                wanted.push((op, math_works_on(prim)));
            }
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut library = MathFunctions::default();
    if wanted.is_empty() {
        return Ok(library);
    }
    // Types of numbers are the same in all modules, and the functions have no others.
    let source = read(TEXT).map_err(|e| format!("the math functions: {e}"))?;
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
            return Err(format!("the math function `{}` has values that are no numbers", function.name));
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

/// Calls functions in place of the operations on numbers that `wants` names, as far as there are any.
///
/// # Errors
/// As for [`link_math`].
pub fn call_math(module: &mut Module, wants: &dyn Fn(Op, Prim, &Inst) -> bool) -> Result<(), String> {
    let library = link_math(module, wants)?;
    if library.is_empty() {
        return Ok(());
    }
    let Module { funcs, types, .. } = module;
    for function in funcs {
        for b in 0..function.blocks.len() {
            let mut insts = Vec::new();
            for mut inst in std::mem::take(&mut function.blocks[b].insts) {
                let prim = inst.result.and_then(|r| types.as_prim(function.ty(r))).filter(|p| p.is_float());
                let found = match (inst.op, prim) {
                    (InstOp::Op(op), Some(prim)) if wants(op, prim, &inst) => {
                        library.get(&(op, math_works_on(prim))).map(|&f| (f, prim))
                    }
                    _ => None,
                };
                let Some((func, prim)) = found else {
                    insts.push(inst);
                    continue;
                };
                let (own, wide) = (types.prim(prim), types.prim(math_works_on(prim)));
                inst.op = InstOp::Call(func);
                if own == wide {
                    insts.push(inst);
                    continue;
                }
                let cast = |function: &mut Function, value: Value, to: Ty, result: Option<Value>| {
                    let result = result.unwrap_or_else(|| function.new_value(to, ""));
                    let (op, args) = (InstOp::Op(Op::Cast), Args::from_slice(&[value]));
                    (result, Inst { op, args, result: Some(result), span: inst.span, fast: false })
                };
                for arg in &mut inst.args {
                    let (value, made) = cast(function, *arg, wide, None);
                    *arg = value;
                    insts.push(made);
                }
                let (narrow, computed) = (inst.result, function.new_value(wide, ""));
                let (_, made) = cast(function, computed, own, narrow);
                inst.result = Some(computed);
                insts.extend([inst, made]);
            }
            function.blocks[b].insts = insts;
        }
    }
    Ok(())
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
