//! The vectorizer: flat SSA in, flat SSA out; bodies of `vectorize` become vector code (`targets.md`, Vectorization; `001`
//! 5.2).
//!
//! TODO header

mod linear;
mod loops;
mod prepare;
mod regions;
mod shapes;
mod versions;
mod widen;

use nyala_base::{Diagnostic, Id};
use nyala_flat::*;
use nyala_ir::{Op, Prim};
use regions::Regions;
use shapes::{LaneOp, Shapes};
use versions::Versions;

/// Makes loops of all `vectorize` instructions, and what their bodies call into vector code. `wrap`: signed overflow wraps
/// around instead of being undefined. What cannot be vectorized is in the diagnostics.
pub fn vectorize(module: &mut Module, wrap: bool) -> Vec<Diagnostic> {
    let mut versions = Versions::new(module);
    for func in 0..module.funcs.len() {
        loops::expand(&mut versions, module, func);
    }
    let mut next = 0;
    while let Some(version) = versions.all.get(next).cloned() {
        next += 1;
        let mut old = module.func(version.source).clone();
        let Module { types, funcs, .. } = module;
        let loops = prepare::prepare(types, &mut old, &|f: Func| funcs[f.idx()].rets.clone());
        let regions = Regions::new(&old, loops);
        let shapes = Shapes::new(&module.types, &old, &regions, &version.shapes, wrap, &versions);
        let new = linear::build(
            &mut versions,
            module,
            version.target,
            &old,
            &regions,
            &shapes,
            &version.shapes,
            version.masked,
            version.width,
        );
        module.funcs[version.target.idx()] = new;
    }
    for func in 0..module.funcs.len() {
        alone(module, func, &versions);
    }
    versions.diagnostics
}

/// Operations across lanes in scalar code: a lane without others is one of one.
fn alone(module: &mut Module, func: usize, versions: &Versions) {
    let (types, function) = (&mut module.types, &mut module.funcs[func]);
    let (i32, u64) = (types.i32(), types.prim(Prim::U64));
    for b in 0..function.blocks.len() {
        for i in 0..function.blocks[b].insts.len() {
            let inst = &function.blocks[b].insts[i];
            let InstOp::Call(f) = inst.op else { continue };
            let (Some(op), Some(result)) = (versions.lane_operation(f), inst.result) else { continue };
            let first = inst.args.first().copied();
            let ty = function.ty(result);
            let zero = function.constant(Const::Bits(0), i32);
            let one = function.constant(Const::Bits(1), i32);
            let (op, args) = match (op, first) {
                // As good as nothing.
                (LaneOp::Barrier, _) | (_, None) if op != LaneOp::Id && op != LaneOp::Width => (Op::Tuple, vec![]),
                (LaneOp::Id, _) => (Op::Bitcast, vec![zero]),
                (LaneOp::Width, _) => (Op::Bitcast, vec![one]),
                (LaneOp::Count | LaneOp::Ballot, Some(x)) => (Op::Cast, vec![x]),
                (_, Some(x)) => (Op::Bitcast, vec![x]),
                (_, None) => (Op::Tuple, vec![]),
            };
            let _ = (u64, ty);
            let inst = &mut function.blocks[b].insts[i];
            inst.op = InstOp::Op(op);
            inst.args = Args::from_slice(&args);
        }
    }
}
