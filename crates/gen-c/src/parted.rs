//! Operations among the lanes of a subgroup to which some of its lanes may not come. Some languages have such operations in a weaker
//! form, in which all lanes take part: a kernel that needs more says so. Separate from `devices`, which writes the operations.
//!
//! ```text
//! entry(n):
//!   i: i32 = work_item(thread, x)
//!   c: bool = lt(i, n)
//!   branch c, inside(), outside()          lanes part here,
//! inside():
//!   v: bool = call nyala_lanes_any(d)      so that not all of them vote
//!   jump outside()
//! outside():                               and meet here
//! ```
//!
//! Lanes part at a branch on a value that differs among them, and meet where all ways from the branch do. A value differs if it is made
//! of one that does: the number of a work item in its block, the result of an atomic operation or of a call, what lies in memory
//! of the work item, what lies at an address that differs. In a loop that lanes leave at different times, and behind it, so does
//! all that the loop computes. Memory that lanes share is taken to be the same for all at one time.

use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::{Callee, Def, Func, Function, Inst, InstOp, Module, Terminator, Value};
use nyala_ir::{Effect, LaneOp, Op, Scope, TyKind, WorkItem};
use rustc_hash::FxHashSet;

/// Facts about a function that a kernel calls, or the kernel itself.
struct Known {
    /// Values that may differ among the lanes of a subgroup.
    differs: Vec<bool>,
    /// Blocks to which some lanes may not come.
    is_parted: Vec<bool>,
}

impl Known {
    fn count(&self) -> usize {
        self.differs.iter().chain(&self.is_parted).filter(|fact| **fact).count()
    }
}

/// Operations of subgroups in a kernel, and in the functions that it calls, to which some lanes may not come.
pub(crate) fn parted(module: &Module, kernel: Func) -> Vec<LaneOp> {
    let has_any = |f: &&Func| lane_ops(module, **f).next().is_some();
    let order = called(module, kernel);
    if !order.iter().any(|f| has_any(&f)) {
        return Vec::new();
    }
    let mut all: Vec<(Func, Known)> = Vec::new();
    for &func in &order {
        let function = module.func(func);
        let known =
            Known { differs: vec![false; function.values.len()], is_parted: vec![false; function.blocks.len()] };
        all.push((func, known));
    }
    // Facts are only added, so this ends.
    loop {
        let mut changed = false;
        for i in 0..all.len() {
            let func = all[i].0;
            changed |= spread(module, module.func(func), &mut all[i].1);
            for (callee, args, at) in calls(module, func) {
                let is_parted = all[i].1.is_parted[at];
                let differ: Vec<bool> = args.iter().map(|a| all[i].1.differs[a.idx()]).collect();
                let Some(to) = all.iter_mut().find(|(f, _)| *f == callee).map(|(_, known)| known) else { continue };
                let Some(entry) = module.func(callee).blocks.first() else { continue };
                for (&param, differs) in entry.params.iter().zip(differ) {
                    changed |= differs && !std::mem::replace(&mut to.differs[param.idx()], true);
                }
                if is_parted && to.is_parted.contains(&false) {
                    to.is_parted.fill(true);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut found: Vec<LaneOp> = Vec::new();
    for (func, known) in &all {
        for (at, op) in lane_ops(module, *func) {
            if known.is_parted[at] && !found.contains(&op) {
                found.push(op);
            }
        }
    }
    found
}

/// The operations of subgroups in a function, with their blocks.
fn lane_ops(module: &Module, func: Func) -> impl Iterator<Item = (usize, LaneOp)> {
    let blocks = module.func(func).blocks.iter().enumerate();
    blocks.flat_map(|(b, block)| block.insts.iter().map(move |inst| (b, inst))).filter_map(|(b, inst)| {
        let (op, scope) = module.lane_op(inst)?;
        (scope == Scope::Subgroup).then_some((b, op))
    })
}

/// The calls of functions of the module, with their arguments and blocks.
fn calls(module: &Module, func: Func) -> Vec<(Func, Vec<Value>, usize)> {
    let mut found = Vec::new();
    for (b, block) in module.func(func).blocks.iter().enumerate() {
        for inst in &block.insts {
            if let InstOp::Call(callee) = inst.op
                && !module.func(callee).is_foreign()
            {
                found.push((callee, inst.args.to_vec(), b));
            }
        }
        if let Terminator::TailCall { callee: Callee::Func(callee), args, .. } = &block.term {
            found.push((*callee, args.clone(), b));
        }
    }
    found
}

/// A function and those that it calls, in the order in which they are found.
fn called(module: &Module, func: Func) -> Vec<Func> {
    let (mut order, mut seen, mut at) = (vec![func], FxHashSet::from_iter([func]), 0);
    while let Some(&func) = order.get(at) {
        order.extend(calls(module, func).into_iter().map(|c| c.0).filter(|&c| seen.insert(c)));
        at += 1;
    }
    order
}

/// Spreads what is known in a function, to the end. Returns whether that is more than before.
fn spread(module: &Module, function: &Function, known: &mut Known) -> bool {
    let cfg = Cfg::new(function);
    let after = cfg.post_dominators();
    let before = known.count();
    // Branches at which lanes part, as far as that was spread here.
    let mut parting = vec![false; function.blocks.len()];
    loop {
        let mut changed = false;
        for &b in &cfg.rpo {
            let block = function.block(b);
            for inst in &block.insts {
                let Some(result) = inst.result else { continue };
                if !known.differs[result.idx()] && differs(module, function, inst, &known.differs) {
                    known.differs[result.idx()] = true;
                    changed = true;
                }
            }
            for edge in block.term.edges() {
                for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                    changed |= known.differs[arg.idx()] && !std::mem::replace(&mut known.differs[param.idx()], true);
                }
            }
            if let Terminator::Branch { cond, .. } = &block.term
                && known.differs[cond.idx()]
                && !std::mem::replace(&mut parting[b.idx()], true)
            {
                part(function, &cfg, b.idx(), after[b.idx()].map(|b| b.idx()), known);
                changed = true;
            }
        }
        if !changed {
            return known.count() > before;
        }
    }
}

/// Lanes part at the end of a block, and meet at another one.
fn part(function: &Function, cfg: &Cfg, at: usize, meet: Option<usize>, known: &mut Known) {
    let successors = |b: usize| function.blocks[b].term.edges().map(|e| e.block.idx());
    let mut work: Vec<usize> = successors(at).filter(|&b| Some(b) != meet).collect();
    let mut reached: FxHashSet<usize> = work.iter().copied().collect();
    while let Some(b) = work.pop() {
        work.extend(successors(b).filter(|&b| Some(b) != meet && reached.insert(b)));
    }
    let is_loop = reached.contains(&at);
    for &b in &reached {
        known.is_parted[b] = true;
        for inst in function.blocks[b].insts.iter().filter(|_| is_loop) {
            inst.result.iter().for_each(|r| known.differs[r.idx()] = true);
        }
    }
    // Where ways meet, parameters differ as the ways do.
    for &b in reached.iter().chain(&meet) {
        if is_loop || cfg.preds[b].len() > 1 {
            function.blocks[b].params.iter().for_each(|p| known.differs[p.idx()] = true);
        }
    }
}

/// Whether the result of an instruction may differ among lanes that execute it.
fn differs(module: &Module, function: &Function, inst: &Inst, known: &[bool]) -> bool {
    let is_known = |v: &Value| !matches!(function.values[v.idx()].def, Def::Const(_)) && known[v.idx()];
    let by_args = || inst.args.iter().any(is_known);
    match inst.op {
        InstOp::Op(Op::WorkItem) => function.as_bits(inst.args[0]) == Some(WorkItem::Thread.number()),
        InstOp::Op(Op::Load) => by_args() || is_own(module, function, inst.args[0]),
        InstOp::Op(Op::Slot) => false,
        InstOp::Op(op) => by_args() || !matches!(op.effect(), Effect::Total | Effect::Partial),
        InstOp::Call(_) => match module.lane_op(inst) {
            Some((LaneOp::Id, _)) => true,
            // All lanes get the value of one.
            Some((LaneOp::Get, Scope::Subgroup)) => inst.args.get(1).is_some_and(is_known),
            Some((LaneOp::Get | LaneOp::Compact, _)) => true,
            Some(_) => false,
            None => true,
        },
        InstOp::Vector(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => true,
    }
}

/// Whether memory at an address may be the work item's own.
fn is_own(module: &Module, function: &Function, address: Value) -> bool {
    let TyKind::Ptr { space, .. } = module.types.kind(function.ty(address)) else { return true };
    !(1..=4).contains(space)
}
