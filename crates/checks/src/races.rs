//! Finds races: iterations of `parallel`, or lanes of `vectorize`, that store to the same address. Separate from other analyses, since
//! it follows addresses through calls of a body, and only reports.
//!
//! ```text
//! vectorize(0, n, sum, a) of body          body(i, sum, a):  v = load(lea(a, i))   varies with i
//!                                                            store(sum, …)         warning: the address does not vary
//! ```
//!
//! A value *varies* if it may differ between iterations: the iteration's number, what is computed from it, what is loaded. An
//! address is *shared* if it comes from outside of the body, by way of a capture, or is that of a `static mut`. A store is
//! reported if its address is shared and does not vary, unless
//!
//! - it is atomic,
//! - it only runs where a number that is computed from the iteration's number equals another one, as in `if i == 0 { … }`,
//! - it only runs after an atomic operation with acquire order, such as that of a lock, in the same function or in one that it calls,
//! - all lanes store the same value.
//!
//! Addresses that vary are compared with each other, too (`in_place.rs`). These reports are certain, except for conditions: the race
//! happens if two iterations reach the store. A store whose index may be equal in several iterations is reported if the body also reads
//! there (`scattered.rs`). Addresses that are loaded from memory, or that a call returns, are not followed.

mod in_place;
mod scattered;
mod shown;
mod sums;

use nyala_base::diagnostics::shared_write;
use nyala_base::{Diagnostic, Id, Span, graph};
use nyala_flat::analysis::{Cfg, loops};
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use shown::Shown;

/// Limit on the bodies and functions that are examined; a function counts once for each combination of facts about its arguments.
const MAX_VISITS: usize = 10_000;

/// The memory at an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    /// No address, or one that is not followed.
    Unknown,
    /// Memory that exists before the body and after it.
    Shared,
    /// A variable of the body.
    Own,
    /// The record from which the body of a thread takes what it captures.
    Captures,
}

/// Facts about a value: whether it differs between iterations, and which memory it points to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Known {
    varies: bool,
    /// It is the iteration's number.
    is_iteration: bool,
    /// It depends on memory, so two iterations may have the same value.
    is_loaded: bool,
    /// It is computed from the iteration's number, or loaded from an address that is, or chosen by such a condition.
    by_number: bool,
    /// How the computation shows that it differs between iterations.
    shown: Shown,
    place: Place,
}

const FIXED: Known = Known {
    varies: false,
    is_iteration: false,
    is_loaded: false,
    by_number: false,
    shown: Shown::NOTHING,
    place: Place::Unknown,
};
const NUMBER: Known = Known { varies: true, is_iteration: true, by_number: true, shown: Shown::DIFFERS, ..FIXED };
const LOADED: Known = Known { varies: true, is_loaded: true, ..FIXED };
const SHARED: Known = Known { place: Place::Shared, ..FIXED };

impl Known {
    fn join(self, other: Known) -> Known {
        let place = if self.place == other.place { self.place } else { Place::Unknown };
        Known {
            varies: self.varies || other.varies,
            is_iteration: self.is_iteration && other.is_iteration,
            is_loaded: self.is_loaded || other.is_loaded,
            by_number: self.by_number || other.by_number,
            shown: self.shown.join(other.shown),
            place,
        }
    }
}

/// Whether a module has a `parallel` or `vectorize`.
pub fn has_launches(module: &Module) -> bool {
    let is_launch = |inst: &Inst| match inst.op {
        InstOp::Vectorize(..) => true,
        InstOp::Call(callee) => is_parallel(module, callee),
        _ => false,
    };
    module.funcs.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.insts).any(is_launch)
}

fn is_parallel(module: &Module, callee: Func) -> bool {
    module.func(callee).symbol() == Some("nyala_parallel")
}

/// Warnings of all stores that race, one for each place in the source.
pub fn find_races(module: &Module) -> Vec<Diagnostic> {
    let mut finder = Finder { module, seen: FxHashSet::default(), found: Vec::new() };
    for function in &module.funcs {
        for inst in function.blocks.iter().flat_map(|b| &b.insts) {
            finder.launch(function, inst);
        }
    }
    let mut reported = FxHashSet::default();
    let is_first = |d: &Diagnostic| {
        let place = d.primary.span;
        !place.is_none() && reported.insert((place.without_call(), d.message.clone()))
    };
    finder.found.retain(is_first);
    finder.found
}

/// How the iterations of a body run: `Some` in this many lanes, 0 if the number is not known; `None` on threads.
type Lanes = Option<u32>;

struct Finder<'a> {
    module: &'a Module,
    seen: FxHashSet<(Func, Vec<Known>, Lanes)>,
    found: Vec<Diagnostic>,
}

impl Finder<'_> {
    /// Examines the body of a `parallel` or `vectorize`.
    fn launch(&mut self, host: &Function, inst: &Inst) {
        let number = |i: usize| host.as_bits(inst.args[i]).map(|n| n as i32);
        let has_one =
            |lo: usize| matches!((number(lo), number(lo + 1)), (Some(lo), Some(hi)) if hi.wrapping_sub(lo) <= 1);
        match inst.op {
            InstOp::Vectorize(body, width, _) if width != 1 && !has_one(0) => {
                let of_capture = |&a: &Value| if self.is_address(host, a) { SHARED } else { FIXED };
                let params = [NUMBER].into_iter().chain(inst.args[2..].iter().map(of_capture)).collect();
                self.follow(body, params, inst.span, Some(width));
            }
            InstOp::Call(callee) if is_parallel(self.module, callee) => {
                let Some(Const::CFunc(body)) = inst.args.get(3).and_then(|&a| host.as_const(a)) else { return };
                if number(0) == Some(1) || has_one(1) {
                    return;
                }
                let captures = Known { place: Place::Captures, ..FIXED };
                self.follow(body, vec![captures, NUMBER, NUMBER], inst.span, None);
            }
            _ => {}
        }
    }

    fn is_address(&self, function: &Function, value: Value) -> bool {
        matches!(self.module.types.kind(function.ty(value)), TyKind::Ptr { .. })
    }

    /// Examines a body and all functions that it calls.
    fn follow(&mut self, body: Func, params: Vec<Known>, launch: Span, lanes: Lanes) {
        let mut work = vec![(body, params)];
        while let Some((func, params)) = work.pop() {
            if self.seen.len() < MAX_VISITS && self.seen.insert((func, params.clone(), lanes)) {
                self.function(func, &params, launch, lanes, &mut work);
            }
        }
    }

    fn function(
        &mut self,
        func: Func,
        params: &[Known],
        launch: Span,
        lanes: Lanes,
        work: &mut Vec<(Func, Vec<Known>)>,
    ) {
        let module = self.module;
        let function = module.func(func);
        if function.blocks.is_empty() || function.blocks[0].params.len() != params.len() {
            return;
        }
        let (cfg, in_lanes) = (Cfg::new(function), lanes.is_some());
        let known = self.values(function, &cfg, params, lanes);
        let of = |v: Value| value(module, function, &known, v);
        let mut guarded = guarded(function, &cfg, &|v| of(v).varies && !of(v).is_loaded);
        guarded.extend(self.locked(function, &cfg));
        self.found.extend(in_place::find(module, function, &cfg, &of, launch, lanes));
        self.found.extend(scattered::find(module, function, &cfg, &of, &guarded, launch, in_lanes));
        for &b in cfg.rpo.iter().filter(|b| !guarded.contains(b)) {
            let block = function.block(b);
            for inst in &block.insts {
                let args = |args: &[Value]| args.iter().map(|&a| of(a)).collect::<Vec<_>>();
                match inst.op {
                    InstOp::Op(Op::Store) => {
                        let to = of(inst.args[0]);
                        let is_met = to.place == Place::Shared && !to.varies && (!in_lanes || of(inst.args[1]).varies);
                        if is_met {
                            self.found.push(shared_write::warning(inst.span, launch, in_lanes));
                        }
                    }
                    InstOp::Call(callee) => work.push((callee, args(&inst.args))),
                    InstOp::Vectorize(inner, ..) => {
                        let number = of(inst.args[0]).join(of(inst.args[1]));
                        let params = [Known { place: Place::Unknown, ..number }].into_iter();
                        work.push((inner, params.chain(args(&inst.args[2..])).collect()));
                    }
                    _ => {}
                }
            }
            if let Terminator::TailCall { callee: Callee::Func(callee), args, .. } = &block.term {
                work.push((*callee, args.iter().map(|&a| of(a)).collect()));
            }
        }
    }

    /// The blocks that only run after an atomic operation with acquire order.
    fn locked(&self, function: &Function, cfg: &Cfg) -> Vec<Block> {
        let acquires = |function: &Function, inst: &Inst| {
            let InstOp::Op(op @ (Op::Atomic | Op::Cmpxchg | Op::CmpxchgWeak)) = inst.op else { return false };
            // In flat code, operands have no `mem`, so the index is one less.
            let order = op.literal_operands().next().and_then(|i| function.as_bits(inst.args[i - 1]));
            order.is_some_and(|order| matches!(order, 4 | 6 | 7))
        };
        let is_lock = |inst: &Inst| match inst.op {
            InstOp::Call(callee) => {
                let callee = self.module.func(callee);
                callee.blocks.iter().flat_map(|b| &b.insts).any(|i| acquires(callee, i))
            }
            _ => acquires(function, inst),
        };
        let locks: Vec<Block> =
            cfg.rpo.iter().copied().filter(|&b| function.block(b).insts.iter().any(is_lock)).collect();
        if locks.is_empty() {
            return locks;
        }
        let tree = cfg.dominator_tree();
        let is_behind = |b: &Block| locks.iter().any(|l| tree.meet(l.idx(), b.idx()) == l.idx());
        cfg.rpo.iter().copied().filter(is_behind).collect()
    }

    /// Facts about the values of a function, as a fixed point. Each fact changes at most eight times, always in the same direction, so
    /// this ends.
    fn values(&self, function: &Function, cfg: &Cfg, params: &[Known], lanes: Lanes) -> FxHashMap<Value, Known> {
        let (module, loops, in_lanes) = (self.module, loops(cfg), lanes.is_some());
        let insts = cfg.rpo.iter().flat_map(|&b| &function.block(b).insts);
        let defs: FxHashMap<Value, &Inst> = insts.filter_map(|i| Some((i.result?, i))).collect();
        let def = |v: Value| match defs.get(&v)?.op {
            InstOp::Op(op) => Some((op, defs[&v].args.to_vec())),
            _ => None,
        };
        let mut known: FxHashMap<Value, Known> = FxHashMap::default();
        known.extend(function.blocks[0].params.iter().copied().zip(params.iter().copied()));
        loop {
            let mut has_changed = false;
            let mut learn = |known: &mut FxHashMap<Value, Known>, v: Value, new: Known| {
                let old = known.get(&v).copied();
                let joined = old.map_or(new, |old| old.join(new));
                has_changed |= old != Some(joined);
                known.insert(v, joined);
            };
            // Whether iterations may take different branches. Conditions that leave a loop do not count.
            let parts = cfg.rpo.iter().any(|&b| match &function.block(b).term {
                Terminator::Branch { cond, then, els } => {
                    let stays = |l: &&FxHashSet<Block>| l.contains(&b);
                    let leaves =
                        loops.iter().filter(stays).any(|l| !l.contains(&then.block) || !l.contains(&els.block));
                    !leaves && value(module, function, &known, *cond).varies
                }
                _ => false,
            });
            for &b in &cfg.rpo {
                let block = function.block(b);
                for inst in &block.insts {
                    let Some(result) = inst.result else { continue };
                    let of = |v: Value| value(module, function, &known, v);
                    let all = inst.args.iter().map(|&a| of(a)).reduce(Known::join).unwrap_or(FIXED);
                    let is_address = self.is_address(function, result);
                    let new = match inst.op {
                        InstOp::Op(Op::Load) if of(inst.args[0]).place == Place::Captures && !all.varies => {
                            if is_address {
                                SHARED
                            } else {
                                FIXED
                            }
                        }
                        InstOp::Op(op @ (Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict)) if is_address => {
                            let mut new = Known { place: of(inst.args[0]).place, is_iteration: false, ..all };
                            // `restrict` promises something about other iterations, too.
                            if op == Op::Restrict {
                                new.shown = Shown::DIFFERS;
                            }
                            new
                        }
                        InstOp::Call(_) if in_lanes => match module.lane_op(inst).map(|(op, _)| op) {
                            // The result is the same in all lanes.
                            Some(LaneOp::Any | LaneOp::All | LaneOp::Count | LaneOp::Ballot | LaneOp::Width) => FIXED,
                            Some(LaneOp::Id) => NUMBER,
                            _ => Known { shown: all.shown, by_number: all.by_number, ..LOADED },
                        },
                        InstOp::Call(_) => Known { shown: all.shown, by_number: all.by_number, ..LOADED },
                        InstOp::Op(Op::Cast) => {
                            let shown = Shown::of_op(module, function, inst, Op::Cast, all.shown, lanes);
                            Known { place: Place::Unknown, shown, ..all }
                        }
                        InstOp::Op(op) if is_pure(op) => {
                            let shown = Shown::of_op(module, function, inst, op, all.shown, lanes);
                            Known { place: Place::Unknown, is_iteration: false, shown, ..all }
                        }
                        InstOp::Op(Op::Slot) => Known { place: Place::Own, ..LOADED },
                        // The contents of variables of the body are not followed.
                        InstOp::Op(Op::Load) if of(inst.args[0]).place == Place::Own => {
                            Known { shown: Shown::DIFFERS, ..LOADED }
                        }
                        _ => Known { by_number: all.by_number, ..LOADED },
                    };
                    learn(&mut known, result, new);
                }
                for edge in block.term.edges() {
                    let params = &function.block(edge.block).params;
                    for (i, (&param, &arg)) in params.iter().zip(&edge.args).enumerate() {
                        let mut new = value(module, function, &known, arg);
                        let differs = || {
                            let mut others =
                                cfg.preds[edge.block.idx()].iter().flat_map(|&p| function.block(p).term.edges());
                            others.any(|e| e.block == edge.block && e.args[i] != arg && e.args[i] != param)
                        };
                        new.varies |= parts && differs();
                        new.by_number |= differs() && is_chosen(module, function, cfg, &known, &loops, edge.block);
                        let edges = || cfg.preds[edge.block.idx()].iter().flat_map(|&p| function.block(p).term.edges());
                        let given = || edges().filter(|e| e.block == edge.block).map(|e| e.args[i]).collect::<Vec<_>>();
                        if shown::counts_from_memory(param, &given(), &def, &|v| value(module, function, &known, v)) {
                            new.shown = Shown::DIFFERS;
                        }
                        learn(&mut known, param, new);
                    }
                }
            }
            if !has_changed {
                return known;
            }
        }
    }
}

/// The facts about a value so far. A value counts as fixed until it is found to vary.
fn value(module: &Module, function: &Function, known: &FxHashMap<Value, Known>, v: Value) -> Known {
    match function.as_const(v) {
        Some(Const::Global(global)) if module.globals[global.idx()].mutable => SHARED,
        Some(_) => FIXED,
        None => known.get(&v).copied().unwrap_or(FIXED),
    }
}

/// Whether it depends on the iteration's number by which edge a block is reached, if the block is no loop header.
fn is_chosen(
    module: &Module,
    function: &Function,
    cfg: &Cfg,
    known: &FxHashMap<Value, Known>,
    loops: &[FxHashSet<Block>],
    block: Block,
) -> bool {
    let before = cfg.idom[block.idx()];
    let is_header = |l: &FxHashSet<Block>| l.contains(&block) && cfg.preds[block.idx()].iter().any(|p| !l.contains(p));
    match &function.block(before).term {
        Terminator::Branch { cond, .. } if before != block && !loops.iter().any(is_header) => {
            value(module, function, known, *cond).by_number
        }
        _ => false,
    }
}

/// Whether the result of an operation depends on nothing but its operands.
fn is_pure(op: Op) -> bool {
    op.is_lane_wise() || matches!(op, Op::Extract | Op::Insert | Op::Tuple | Op::Struct | Op::Array | Op::Select)
}

/// The blocks that only run where a number that varies equals another one: few iterations reach these.
fn guarded(function: &Function, cfg: &Cfg, varies: &dyn Fn(Value) -> bool) -> FxHashSet<Block> {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    let equalities: FxHashMap<Value, Op> = insts()
        .filter_map(|i| match (i.op, i.result) {
            (InstOp::Op(op @ (Op::Eq | Op::Ne)), Some(r)) if i.args.iter().any(|&a| varies(a)) => Some((r, op)),
            _ => None,
        })
        .collect();
    let tree: graph::Tree = cfg.dominator_tree();
    let mut guards = Vec::new();
    for &b in &cfg.rpo {
        if let Terminator::Branch { cond, then, els } = &function.block(b).term
            && let Some(op) = equalities.get(cond)
        {
            let to = if *op == Op::Eq { then.block } else { els.block };
            if cfg.preds[to.idx()].len() == 1 {
                guards.push(to);
            }
        }
    }
    let is_behind = |b: &Block| guards.iter().any(|g| tree.meet(g.idx(), b.idx()) == g.idx());
    cfg.rpo.iter().copied().filter(is_behind).collect()
}
