//! Finds what certainly costs time in a kernel: accesses of memory by a warp (work items that run together; a wave on AMD's GPUs)
//! that are not coalesced or conflict in banks, and branches on which a warp diverges.
//!
//! ```text
//! x: i32 = add(mul(block, 64), thread)     step 1 from one work item to the next
//! v1: i32 = mul(x, 64)                     step 64
//! v2: &[1]f32 = lea(a, v1)                 step 256 bytes: each work item accesses a line of its own
//! v3: i32 = rem(thread, 2)                 alternates within a warp: a branch on it parts the lanes
//! ```
//!
//! - A warp consists of neighbors on the axis x. Kernels whose blocks have fewer than [`WARP`] work items on x are not analyzed.
//! - Values that the analysis does not follow, such as loaded ones, lead to no report.

use super::called;
use nyala_base::{Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{LaneOp, Op, TyKind, WorkItem, layout};
use rustc_hash::FxHashMap;

/// The least number of work items that run together.
const WARP: i64 = 32;
/// The least number of bytes that memory of a device transfers.
const SECTOR: i64 = 32;
/// The number of banks of a block's memory, and the bytes of a word of a bank.
const BANKS: i64 = 32;
const BANK_BYTES: i64 = 4;

/// A fact about a kernel that costs time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// The access, or the branch.
    pub span: Span,
    /// What it is: `load`, `store`, `branch`.
    pub subject: &'static str,
    /// The cost, in words.
    pub text: String,
}

/// How a value changes from one work item of a warp to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// By this number, in bytes for addresses; 0 if all work items have the same value.
    By(i64),
    /// By this number times one that is known at run time only.
    Scaled(i64),
    /// It repeats after this many work items, which are fewer than a warp has.
    Periodic(i64),
    /// In an unknown way.
    Any,
}

impl Step {
    fn add(self, other: Step, sign: i64) -> Step {
        match (self, other) {
            (Step::By(a), Step::By(b)) => {
                b.checked_mul(sign).and_then(|b| a.checked_add(b)).map_or(Step::Any, Step::By)
            }
            (step, Step::By(0)) | (Step::By(0), step) => step,
            _ => Step::Any,
        }
    }

    fn times(self, factor: i64) -> Step {
        let times = |n: i64| n.checked_mul(factor);
        match self {
            Step::By(n) => times(n).map_or(Step::Any, Step::By),
            Step::Scaled(n) => times(n).map_or(Step::Any, Step::Scaled),
            Step::Periodic(_) | Step::Any => Step::Any,
        }
    }
}

/// What certainly costs time in a kernel, in the order of its blocks.
pub fn costs(module: &Module, kernel: Func) -> Vec<Cost> {
    let function = module.func(kernel);
    let Linkage::Kernel(_, sizes) = &function.linkage else { return Vec::new() };
    if sizes[0] > 0 && i64::from(sizes[0]) < WARP {
        return Vec::new();
    }
    let mut steps = Steps { module, function, known: FxHashMap::default(), places: FxHashMap::default() };
    let cfg = Cfg::new(function);
    steps.solve(&cfg);
    let mut costs: Vec<Cost> = Vec::new();
    for &b in &cfg.rpo {
        let block = function.block(b);
        let mut last = Span::NONE;
        for inst in &block.insts {
            last = if inst.span == Span::NONE { last } else { inst.span };
            let (subject, value) = match inst.op {
                InstOp::Op(Op::Load) => ("load", inst.result),
                InstOp::Op(Op::Store) => ("store", inst.args.get(1).copied()),
                _ => continue,
            };
            let Some(value) = value else { continue };
            let size = layout::size_align(&module.types, function.ty(value)).map_or(0, |s| s.0 as i64);
            if let Some(text) = steps.access(inst.args[0], size) {
                costs.push(Cost { span: inst.span, subject, text });
            }
        }
        if let Terminator::Branch { cond, .. } = &block.term
            && let Step::Periodic(n) = steps.of(*cond)
        {
            let text = format!("the lanes part: the condition repeats after {n} work items");
            costs.push(Cost { span: steps.span_of(*cond).unwrap_or(last), subject: "branch", text });
        }
    }
    costs.dedup();
    costs
}

struct Steps<'a> {
    module: &'a Module,
    function: &'a Function,
    known: FxHashMap<Value, Step>,
    places: FxHashMap<Value, Span>,
}

impl Steps<'_> {
    /// The step of a value. A parameter of the kernel has the step 0.
    fn of(&self, v: Value) -> Step {
        match self.function.values[v.idx()].def {
            Def::Const(_) => Step::By(0),
            Def::Local => self.known.get(&v).copied().unwrap_or(Step::By(0)),
        }
    }

    fn span_of(&self, v: Value) -> Option<Span> {
        self.places.get(&v).copied().filter(|span| *span != Span::NONE)
    }

    /// Finds the steps of all values, as a fixed point. A block parameter has the step of its arguments if they agree. Each step changes at
    /// most three times, so this ends.
    fn solve(&mut self, cfg: &Cfg) {
        let mut changed = true;
        while changed {
            changed = false;
            for &b in &cfg.rpo {
                let block = self.function.block(b);
                for inst in &block.insts {
                    let Some(result) = inst.result else { continue };
                    self.places.insert(result, inst.span);
                    let step = self.step(inst);
                    changed |= self.known.insert(result, step) != Some(step);
                }
                for edge in block.term.edges() {
                    let params = &self.function.block(edge.block).params;
                    for (&param, &arg) in params.iter().zip(&edge.args) {
                        // The step of an argument from a later block is known in the next round.
                        let is_new =
                            self.function.values[arg.idx()].def == Def::Local && !self.known.contains_key(&arg);
                        let is_param = self.function.blocks[0].params.contains(&arg);
                        if is_new && !is_param {
                            continue;
                        }
                        let step = match (self.known.get(&param).copied(), self.of(arg)) {
                            (None, step) => step,
                            (Some(own), step) if own == step => own,
                            _ => Step::Any,
                        };
                        changed |= self.known.insert(param, step) != Some(step);
                    }
                }
            }
        }
    }

    fn literal(&self, v: Value) -> Option<i64> {
        let prim = self.module.types.as_prim(self.function.ty(v))?;
        let bits = self.function.as_bits(v)?;
        Some(if prim.is_signed() { prim.normalize(bits) as i64 } else { i64::try_from(bits).ok()? })
    }

    fn step(&self, inst: &Inst) -> Step {
        let of = |i: usize| inst.args.get(i).map_or(Step::Any, |&v| self.of(v));
        let all_common = || inst.args.iter().all(|&v| self.of(v) == Step::By(0));
        let common = |holds: bool| if holds { Step::By(0) } else { Step::Any };
        let InstOp::Op(op) = inst.op else {
            return match (self.module.lane_op(inst), called(inst)) {
                (Some((LaneOp::Id, _)), _) => Step::By(1),
                (Some((LaneOp::Shared | LaneOp::Width, _)), _) => Step::By(0),
                _ => Step::Any,
            };
        };
        match op {
            Op::WorkItem => {
                let asked = (self.function.as_bits(inst.args[0]), self.function.as_bits(inst.args[1]));
                let is_thread = asked.0 == Some(WorkItem::Thread.number());
                if is_thread && asked.1 == Some(0) { Step::By(1) } else { Step::By(0) }
            }
            Op::Add => of(0).add(of(1), 1),
            Op::Sub => of(0).add(of(1), -1),
            Op::Mul => match (self.literal(inst.args[0]), self.literal(inst.args[1]), of(0), of(1)) {
                (_, Some(n), step, _) | (Some(n), _, _, step) => step.times(n),
                (_, _, Step::By(0), Step::By(0)) => Step::By(0),
                (_, _, Step::By(n), Step::By(0)) | (_, _, Step::By(0), Step::By(n)) => Step::Scaled(n),
                _ => Step::Any,
            },
            Op::Shl => match self.literal(inst.args[1]) {
                Some(n) if (0..32).contains(&n) => of(0).times(1 << n),
                _ => common(all_common()),
            },
            Op::Rem | Op::And => match (of(0), self.literal(inst.args[1])) {
                (Step::By(0), _) if all_common() => Step::By(0),
                (Step::By(1), Some(n)) if op == Op::Rem && (2..WARP).contains(&n) => Step::Periodic(n),
                (Step::By(1), Some(n)) if op == Op::And && (1..WARP - 1).contains(&n) => {
                    Step::Periodic(((n as u64) + 1).next_power_of_two() as i64)
                }
                _ => Step::Any,
            },
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => match (of(0), of(1)) {
                (Step::By(0), Step::By(0)) => Step::By(0),
                (Step::Periodic(n), Step::By(0)) | (Step::By(0), Step::Periodic(n)) => Step::Periodic(n),
                _ => Step::Any,
            },
            Op::Cast if self.is_int(inst.args[0]) && inst.result.is_some_and(|r| self.is_int(r)) => of(0),
            Op::Bitcast | Op::Aligned | Op::Restrict => of(0),
            Op::Lea => {
                match self.part_size(inst) {
                    Some(size) => of(0).add(of(1).times(size), 1),
                    // The field of a struct.
                    None => of(0),
                }
            }
            // Each work item has variables of its own.
            Op::Slot => Step::By(0),
            Op::Load => common(of(0) == Step::By(0) && self.root(inst.args[0]) != Root::Variable),
            _ => common(all_common()),
        }
    }

    fn is_int(&self, v: Value) -> bool {
        self.module.types.as_prim(self.function.ty(v)).is_some_and(|p| p.is_int())
    }

    /// The distance in bytes between the parts of the memory that an address points to.
    fn part_size(&self, inst: &Inst) -> Option<i64> {
        let types = &self.module.types;
        let elem = match types.kind(types.pointee(self.function.ty(inst.args[0]))?) {
            TyKind::IndefArray(elem) | TyKind::Array(elem, _) => *elem,
            _ => return None,
        };
        Some(layout::size_align(types, elem)?.0 as i64)
    }

    /// The kind of memory that an address points to.
    fn root(&self, mut v: Value) -> Root {
        let insts = || self.function.blocks.iter().flat_map(|b| &b.insts);
        let entry = &self.function.blocks[0].params;
        for _ in 0..self.function.values.len() {
            if let TyKind::Ptr { space: super::spaces::SHARED, .. } = self.module.types.kind(self.function.ty(v)) {
                return Root::Shared;
            }
            if entry.contains(&v) {
                return Root::Global;
            }
            match insts().find(|inst| inst.result == Some(v)) {
                Some(inst) => match inst.op {
                    InstOp::Op(Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict) => v = inst.args[0],
                    InstOp::Op(Op::Slot) => return Root::Variable,
                    _ if matches!(self.module.lane_op(inst), Some((LaneOp::Shared, _))) => return Root::Shared,
                    _ => return Root::Unknown,
                },
                None => return Root::Unknown,
            }
        }
        Root::Unknown
    }

    /// The cost of an access of `size` bytes at an address with this step.
    fn access(&self, address: Value, size: i64) -> Option<String> {
        let bytes = match self.of(address) {
            Step::By(n) => n.abs(),
            Step::Scaled(n) if self.root(address) == Root::Global && size > 0 => {
                return Some(format!(
                    "work items next to each other are a number of bytes apart that is known at run time only, a \
                     multiple of {}: unless that is {size}, memory moves {SECTOR} bytes or more for {size}",
                    n.abs()
                ));
            }
            _ => return None,
        };
        match self.root(address) {
            Root::Global if bytes > size && size > 0 => {
                let moved = bytes.min(SECTOR).max(size);
                Some(format!(
                    "not coalesced: work items next to each other are {bytes} bytes apart, so memory moves {moved} bytes for {size}"
                ))
            }
            Root::Shared if bytes > 0 && bytes % BANK_BYTES == 0 && size == BANK_BYTES => {
                let ways = gcd(bytes / BANK_BYTES, BANKS);
                (ways > 1).then(|| {
                    format!(
                        "bank conflict: {ways} work items at a time access one bank, since they are {bytes} bytes apart"
                    )
                })
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Global,
    Shared,
    Variable,
    Unknown,
}

fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
