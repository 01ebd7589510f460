//! Bodies of `vectorize` become vector code: flat SSA in, flat SSA out.
//!
//! `docs/design/targets.md`, Vector code, says what is decided (`001` 5.2; `002` 6.2).
//!
//! A function has several *versions* ([`versions`]): for arguments of certain shapes, with or without a mask. A version
//! does for all lanes at once what the function does for each active lane. It is made in six steps, one module each:
//!
//! 1. [`structure()`] of flat code: one return, no tail calls, loops with one entry (others get a block that all entry
//!    edges go through, with a number that selects the target) and one block that jumps back.
//! 2. [`Regions`]: which blocks the same lanes execute; an order of blocks in which loops, and all that a block
//!    dominates, are contiguous.
//! 3. [`shapes`]: values are uniform, strided or varying; branches on varying conditions part the lanes, and values
//!    that differ where lanes meet again become varying; loops that lanes leave at different times.
//! 4. [`narrow`]: integers that fit are computed in fewer bits.
//! 5. [`linear`]: **partial linearization** (after Moll and Hack, *Partial Control-Flow Linearization*, PLDI 2018).
//!    Blocks are written in that order. Uniform branches stay branches. At the end of a block that parts the lanes, all
//!    lanes continue at the first of the target blocks; lanes with other targets *wait*: their blocks come later. So a
//!    block has a *mask* of its active lanes, to which all edges to it add lanes. A block that must not be executed
//!    without active lanes (calls, loops, uniform branches, uniform accesses), or that is long, is skipped if its mask
//!    is empty. A loop continues while any lane does. Parameters of blocks are variables: where lanes meet, an edge
//!    assigns to them in its own lanes; values used outside of a divergent loop are variables that lanes set when they
//!    leave. Only at the end do variables become values again ([`nyala_flat::promote_slots_of`]); values with uses that
//!    their definitions do not dominate become variables before, so that no other code here has to care about
//!    dominance. [`fold`] simplifies, [`interleave`] combines accesses to fields, [`split`] splits vectors of many
//!    lanes, [`gathers`] combines gathers of adjacent elements.
//! 6. [`widen`], [`memory`], [`calls`]: the translation of instructions.
//!
//! [`packs`] is a pass of its own, for code that has vectors in the source.
//!
//! Conditions are undefined in inactive lanes; masks never are: `select(mask, cond, false)`, not `and`. Code that reads
//! the bits of a mask, or branches by them, relies on that.
//!
//! Worked example (`tests/ir/vectorize/divergent_loop.ir`): `y` is a parameter of the loop's header, `v2` its value in
//! lanes that have left the loop, `v3` the mask of lanes that are still in the loop.
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
//! [`loops`] makes loops over groups of lanes from `vectorize` instructions; the remaining iterations run in the
//! version with a mask.
//!
//! # A `vectorize` in the body of another
//!
//! Rays of a packet are traversed together as lanes. Where one ray continues alone, a loop over the children of its
//! node has lanes again (*hybrid traversal*). So an inner loop runs once for each active lane of the outer one, in the
//! order of lanes, and is vectorized by itself: it is an instruction executed lane by lane, like a call of an unknown
//! function.
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
//! While a version is made, the instruction stays: [`calls`] extracts its operands for one lane, which are the bounds
//! and the free variables of the body. Only the finished version is expanded by [`loops`], like any other function. The
//! rest follows from this:
//!
//! - The inner body is never widened for the outer lanes. Its versions have its own width; its free variables are
//!   uniform, also those that differ between the outer lanes. All outer loops, of whatever width, share these versions.
//!   Loops in loops in loops, and functions that recurse through their own `vectorize`, need no further versions.
//! - An operation across lanes works on the lanes of the innermost `vectorize` that runs it, wherever its function is
//!   written. An inner body can't access the outer lanes. It can't end one either: the outer body's `continue` leaves
//!   the inner body, which is the error `jump-out-of-parallel` (`schedule/src/launch.rs`).
//! - All effects of one outer lane's inner loop come before those of the next lane.
//! - A variable of the outer body whose address is passed to the inner one is not interleaved by lane ([`shapes`],
//!   `own`): each lane has a variable of its own, and passes its address.
//! - A block that contains an inner loop is skipped where no lane is active.
//! - An inner loop of one lane is a plain loop of one lane after the other. It is not made vector code of the outer lanes,
//!   because operations across lanes in it are those of one lane.
//!
//! Versions are made from functions before their loops were expanded, so these functions are kept.
#![forbid(unsafe_code)]

mod calls;
mod fold;
mod gathers;
mod interleave;
mod linear;
mod loops;
mod memory;
mod narrow;
mod notes;
mod packs;
mod shapes;
mod split;
mod versions;
mod widen;

pub use notes::{Note, Subject};
use nyala_base::{Diagnostic, Id};
use nyala_flat::structure::{Regions, structure};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, Types};
pub use packs::pack_lanes;
use rustc_hash::FxHashMap;
use shapes::Shapes;
use versions::Versions;

#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Signed overflow wraps around instead of being undefined.
    pub wrap: bool,
    /// Whether notes are collected.
    pub explain: bool,
}

/// Diagnostics and notes of vectorizing.
#[derive(Default)]
pub struct Outcome {
    /// Reports of code that cannot be vectorized.
    pub diagnostics: Vec<Diagnostic>,
    pub notes: Vec<Note>,
}

/// Expands all `vectorize` instructions to loops, and makes vector versions of their bodies and of functions that these
/// call.
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

/// Folds operations across lanes in scalar code, where there is a single lane.
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
                // Has no effect with a single lane.
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
