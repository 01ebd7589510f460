//! Simplifies the vectorizer's output: known masks, selects with an undefined operand, vectors made twice in one block.
//! LLVM would do it as well; but code that is shown to users should be readable, and less code compiles faster.

use nyala_base::{Id, SideTable};
use nyala_flat::*;
use nyala_ir::{Effect, Op, Ty};
use rustc_hash::FxHashMap;

/// Folds in place. Unused instructions stay, for [`simplify_function`].
pub fn fold(function: &mut Function) {
    let mut instead: SideTable<Value, Option<Value>> = SideTable::default();
    // Vectors with one literal in all lanes.
    let mut splats: SideTable<Value, Option<u64>> = SideTable::default();
    let cfg = analysis::Cfg::new(function);
    for &b in &cfg.rpo {
        let mut seen: FxHashMap<(Op, Args, Ty), Value> = FxHashMap::default();
        let mut insts = std::mem::take(&mut function.blocks[b.idx()].insts);
        for inst in &mut insts {
            inst.args.iter_mut().for_each(|a| *a = instead[*a].unwrap_or(*a));
            let (InstOp::Op(op), Some(result)) = (inst.op, inst.result) else { continue };
            if op.effect() != Effect::Total {
                continue;
            }
            let is_undef = |v: Value| function.as_const(v) == Some(Const::Undef);
            let known = |v: Value| splats[v];
            let new = match (op, &inst.args[..]) {
                (Op::Or, &[a, b]) if known(a) == Some(0) || a == b => Some(b),
                (Op::Or, &[a, b]) if known(b) == Some(0) => Some(a),
                (Op::Select, &[c, a, b]) if is_undef(b) || a == b || known(c) == Some(1) => Some(a),
                (Op::Select, &[c, a, b]) if is_undef(a) || known(c) == Some(0) => Some(b),
                (Op::Cast, &[a]) if function.ty(a) == function.ty(result) => Some(a),
                (Op::Splat, &[a]) => {
                    splats[result] = function.as_bits(a);
                    None
                }
                _ => None,
            };
            let key = (op, inst.args.clone(), function.ty(result));
            let new = new.or_else(|| seen.get(&key).copied());
            match new {
                Some(new) => instead[result] = Some(new),
                None => drop(seen.insert(key, result)),
            }
        }
        let block = &mut function.blocks[b.idx()];
        block.insts = insts;
    }
    for block in &mut function.blocks {
        let resolve = |v: Value| instead[v].unwrap_or(v);
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = resolve(*a));
        block.term.map_uses(resolve);
    }
}
