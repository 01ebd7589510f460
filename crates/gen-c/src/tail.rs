//! Calls in tail position are jumps: recursion by such calls becomes loops, before C is written. C promises nothing about
//! them.

use crate::Result;
use nyala_base::Id;
use nyala_flat::{Block, BlockData, Callee, Const, Def, Edge, Func, Module, Terminator};
use nyala_ir::Ty;
use rustc_hash::FxHashMap;

/// Makes loops of functions that end by calls of themselves.
pub(crate) fn make_loops(module: &mut Module) -> Result<()> {
    for i in 0..module.funcs.len() {
        let this = Func::from_idx(i);
        let function = &mut module.funcs[i];
        let is_own = |t: &Terminator| matches!(t, Terminator::TailCall { callee: Callee::Func(f), .. } if *f == this);
        if !function.blocks.iter().any(|b| is_own(&b.term)) {
            continue;
        }
        let old = function.blocks[0].params.clone();
        let new: Vec<_> = old
            .iter()
            .map(|&p| {
                let name = function.name(p).to_string();
                function.new_value(function.ty(p), &name)
            })
            .collect();
        let body = Block::from_idx(function.blocks.len());
        let term = Terminator::Jump(Edge { block: body, args: new.clone() });
        let name = function.blocks[0].name.clone();
        let entry = BlockData { name, params: new, insts: Vec::new(), term };
        let moved = std::mem::replace(&mut function.blocks[0], entry);
        function.blocks.push(moved);
        for block in &mut function.blocks {
            if is_own(&block.term)
                && let Terminator::TailCall { args, .. } = &mut block.term
            {
                let args = std::mem::take(args);
                block.term = Terminator::Jump(Edge { block: body, args });
            }
        }
    }
    Ok(())
}

/// Tuples of the results of functions that have several.
pub(crate) fn result_types(module: &mut Module) -> FxHashMap<Vec<Ty>, Ty> {
    let mut found = FxHashMap::default();
    let all: Vec<Vec<Ty>> = module.funcs.iter().map(|f| f.rets.clone()).filter(|r| r.len() != 1).collect();
    for rets in all {
        let ty = module.types.tuple(&rets);
        found.insert(rets, ty);
    }
    let _ = (Const::Undef, Def::Local);
    found
}
