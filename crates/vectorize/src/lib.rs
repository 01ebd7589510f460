//! Bodies of `vectorize` become vector code: flat SSA in, flat SSA out.
//!
//! `docs/design/targets.md`, Vector code, says what is decided (`001` 5.2; `002` 6.2).
//!
//! Of a function, *versions* are made ([`versions`]): for arguments of certain shapes, with or without a mask. A version
//! does for all lanes at once what the function does for each of the active ones. Its six steps, one module each:
//!
//! 1. [`structure()`] of flat code: one return, no tail calls, loops with one way in (others get a block that all ways in lead
//!    over, and a number that says where to go on) and one block that jumps back.
//! 2. [`Regions`]: which blocks the same lanes execute; an order of blocks in which loops, and what a block dominates, stand
//!    together.
//! 3. [`shapes`]: values are uniform, strided or varying; branches on varying conditions part the lanes, and make varying
//!    what differs where they meet again; loops that lanes leave at different times.
//! 4. [`narrow`]: integers that fit are computed in fewer bits.
//! 5. [`linear`]: **partial linearization** (after Moll and Hack, *Partial Control-Flow Linearization*, PLDI 2018). Blocks
//!    are written in that order. Uniform branches stay branches. At the end of a block that parts the lanes, all go on to the
//!    first of the blocks where some want to; the others *wait*: their blocks follow. So a block is told which lanes are
//!    active by its *mask*, which all edges to it add to. A block that must not be executed by nobody (calls, loops, uniform
//!    branches, uniform accesses), or would be long, is skipped if its mask is empty. A loop goes on while any lane does.
//!    Parameters of blocks are variables: an edge assigns to them, in its lanes, where lanes meet; what is used outside of a
//!    divergent loop is a variable that lanes set when they leave. Only at the end do variables become values again
//!    ([`nyala_flat::promote_slots_of`]), and values that would be used where they are not always computed become variables
//!    before, so that nothing here has to care about dominance. [`fold`] clears up, [`interleave`] puts accesses to fields
//!    together, [`pieces`] splits vectors of many lanes, [`gathers`] reads together what lies side by side.
//! 6. [`widen`], [`memory`], [`lanes`]: what the instructions become.
//!
//! Conditions are undefined in lanes that are not active; masks never are: `select(mask, cond, false)`, not `and`. Whoever
//! looks at bits of a mask, or branches by them, relies on it.
//!
//! Worked example (`tests/ir/vectorize/divergent_loop.ir`): `y` is a parameter of the loop's header, `v2` what lanes that
//! have left had for it, `v3` the lanes that are still there.
//!
//! ```text
//! func body(i32, &[i32])                func body.lanes(i32, &[i32])          i: strided 1, a: uniform
//! entry(i, a):                          entry(i, a):
//!   p = lea(a, i)                         p = lea(a, i)                       strided 4 bytes
//!   x = load(p)                           x = vload(p)                        varying
//!   jump head(x)                          jump head(undef, x, splat(true))
//! head(y):                              head(v2, y, v3):
//!   more = gt(y, 3)                       more = gt(y, splat(3))              parts the lanes: the loop is divergent
//!   branch more, again(), done()          v6 = select(v3, more, false)        go on; the others wait at `done`
//!                                         v7 = select(v3, y, v2)              and keep y: the last one counts
//! again():
//!   z = div(y, 2)                         z = div(y, splat(2))
//!   jump head(z)                          branch any(v6), head(v7, z, v6), done()
//! done():                               done():
//!   store(p, y)                           vstore(p, v7)
//!   return()                              return()
//! ```
//!
//! [`loops`] makes loops over groups of lanes of the `vectorize` instructions; what is left over goes through the version
//! with a mask.
//!
//! # A `vectorize` in the body of another
//!
//! Rays of a packet are traversed together as lanes. Where one ray goes its own way, a loop over the children of its node
//! has lanes again (*hybrid traversal*). So an inner loop runs once for each active lane of the outer one, in the order of
//! lanes, and is vectorized by itself: it is an instruction of one lane, like a call of an unknown function.
//!
//! ```text
//! body(i, a):                                  body.lanes(i, a):
//!   p = lea(a, i)                                p = lea(a, i)
//!   n = load(p)                                  n = vload(p)
//!   vectorize[4] inner(0, n, i, a)               jump lanes(all)
//!                                              lanes(left): branch ne(left, 0), lane(), joined()
//!                                              lane():
//!                                                k = ctz(left)
//!                                                vectorize[4] inner(0, n[k], i[k], a)
//!                                                jump lanes(and(left, sub(left, 1)))
//! ```
//!
//! While a version is made, the instruction stays as it is: [`lanes`] reads what one lane has of its operands, the bounds and
//! the free variables of the body. Only the finished version is expanded by [`loops`], like any other function. Everything
//! else follows from this:
//!
//! - The inner body is never widened for the outer lanes. Its versions have its own width; its free variables are uniform,
//!   also those that differ between the outer lanes. All outer loops, of whatever width, share these versions. Loops in loops
//!   in loops, and a function that gets back to itself through its own `vectorize`, need no more of them.
//! - An operation across lanes asks the lanes of the innermost `vectorize` that runs it, wherever its function is written. An
//!   inner body can't ask the outer lanes. It can't end one either: the outer body's `continue` leaves the inner body, and
//!   that is the error `jump-out-of-parallel` (`flat`, `schedule/launch.rs`).
//! - All effects of one outer lane's inner loop come before those of the next lane.
//! - A variable of the outer body whose address the inner one has is no variable whose lanes lie side by side ([`shapes`],
//!   `own`): each lane has one of its own, and hands over its address.
//! - A block that contains an inner loop is skipped where no lane is active.
//! - An inner loop of one lane is a plain loop of one lane after the other. It is not made vector code of the outer lanes,
//!   because operations across lanes in it are those of one lane.
//!
//! Versions are made of functions as they were before their loops were expanded, so these are kept.
#![forbid(unsafe_code)]

mod fold;
mod gathers;
mod interleave;
mod lanes;
mod linear;
mod loops;
mod memory;
mod narrow;
mod notes;
mod pieces;
mod shapes;
mod versions;
mod widen;

pub use notes::{Note, Subject};
use nyala_base::{Diagnostic, Id};
use nyala_flat::structure::{Regions, structure};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Types};
use rustc_hash::FxHashMap;
use shapes::Shapes;
use versions::Versions;

#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Signed overflow wraps around instead of being undefined.
    pub wrap: bool,
    /// Whether notes are wanted.
    pub explain: bool,
}

/// What is to be said of vectorizing.
#[derive(Default)]
pub struct Outcome {
    /// What cannot be vectorized.
    pub diagnostics: Vec<Diagnostic>,
    pub notes: Vec<Note>,
}

/// Makes loops of all `vectorize` instructions, and what their bodies call into vector code.
pub fn vectorize(module: &mut Module, options: Options) -> Outcome {
    let mut versions = Versions::new(module, options.explain);
    versions.check_widths(module);
    if !versions.diagnostics.is_empty() {
        return Outcome { diagnostics: versions.diagnostics, notes: Vec::new() };
    }
    let with_loops: FxHashMap<usize, Function> = (0..module.funcs.len())
        .filter(|&f| loops::find(&module.funcs[f]).is_some())
        .map(|f| (f, module.funcs[f].clone()))
        .collect();
    for func in 0..module.funcs.len() {
        loops::expand(&mut versions, module, func);
    }
    let mut next = 0;
    while let Some(version) = versions.all.get(next).cloned() {
        next += 1;
        let source = version.source.idx();
        let mut old = with_loops.get(&source).unwrap_or(&module.funcs[source]).clone();
        let Module { types, funcs, .. } = module;
        let loops = structure(types, &mut old, &|f: Func| funcs[f.idx()].rets.clone());
        let regions = Regions::new(&old, loops);
        let find_shapes = |types: &Types, old: &Function, versions: &Versions| {
            Shapes::new(types, old, &regions, &version.shapes, version.is_body, options.wrap, versions)
        };
        let mut shapes = find_shapes(&module.types, &old, &versions);
        let narrowed = narrow::narrow(&mut module.types, &mut old, &regions, &shapes);
        if !narrowed.is_empty() {
            shapes = find_shapes(&module.types, &old, &versions);
            shapes.narrowed.extend(narrowed);
        }
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
        let target = version.target.idx();
        module.funcs[target] = new;
        loops::expand(&mut versions, module, target);
    }
    for func in 0..module.funcs.len() {
        fold_single_lane_operations(module, func, &versions);
    }
    Outcome { diagnostics: versions.diagnostics, notes: versions.notes.unwrap_or_default() }
}

/// Operations across lanes in scalar code: a lane without others is one of one.
fn fold_single_lane_operations(module: &mut Module, func: usize, versions: &Versions) {
    let (types, function) = (&mut module.types, &mut module.funcs[func]);
    let i32 = types.i32();
    for b in 0..function.blocks.len() {
        for i in 0..function.blocks[b].insts.len() {
            let inst = &function.blocks[b].insts[i];
            let InstOp::Call(f) = inst.op else { continue };
            let Some(op) = versions.lane_operation(f) else { continue };
            let first = inst.args.first().copied();
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
            let inst = &mut function.blocks[b].insts[i];
            inst.op = InstOp::Op(op);
            inst.args = Args::from_slice(&args);
        }
    }
}
