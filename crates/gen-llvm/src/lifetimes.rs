//! Lifetimes of local variables, for LLVM: variables that are not live at the same time share memory, and contents from
//! an earlier iteration of a loop need not be kept.
//!
//! A variable's contents are undefined when its `slot` is executed, and dead after the last access. Accesses are known
//! if addresses of the variable are only used by loads and stores. Functions with vector code get no lifetimes: there a
//! variable may hold values of lanes for which a loop has ended, while it continues for others.

use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::{Block, Function, InstOp, Value};
use nyala_ir::{Op, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
pub(crate) struct Lifetimes {
    /// Variables whose lifetime begins at their `slot`.
    pub begins: FxHashSet<Value>,
    /// Variables whose lifetime ends at the start of a block.
    pub ends_at: FxHashMap<Block, Vec<Value>>,
    /// Variables whose lifetime ends after an instruction, by its position in the block.
    pub ends_after: FxHashMap<(Block, usize), Vec<Value>>,
}

/// Limit of the blocks visited while following variables, per block of the function.
const EFFORT: usize = 32;

/// Facts about one variable.
struct Slot {
    value: Value,
    home: Block,
    /// Positions of loads and stores.
    accesses: Vec<(Block, usize)>,
    escapes: bool,
}

impl Lifetimes {
    pub fn new(types: &Types, function: &Function, cfg: &Cfg) -> Lifetimes {
        let mut lifetimes = Lifetimes::default();
        let mut effort = EFFORT * cfg.rpo.len();
        for slot in slots(types, function, cfg) {
            if !slot.escapes && !slot.accesses.is_empty() {
                lifetimes.follow(function, cfg, &slot, &mut effort);
            }
        }
        lifetimes
    }

    fn follow(&mut self, function: &Function, cfg: &Cfg, slot: &Slot, effort: &mut usize) {
        // Blocks at whose start the variable is live.
        let mut live = FxHashSet::default();
        let mut last = FxHashMap::default();
        let mut stack = Vec::new();
        for &(b, i) in &slot.accesses {
            last.insert(b, i);
            if b != slot.home && live.insert(b) {
                stack.push(b);
            }
        }
        let mut order = vec![slot.home];
        while let Some(b) = stack.pop() {
            order.push(b);
            for &p in &cfg.preds[b.idx()] {
                if p != slot.home && live.insert(p) {
                    stack.push(p);
                }
            }
            if order.len() > *effort {
                *effort = 0;
                return;
            }
        }
        let Some(left) = effort.checked_sub(order.len()) else { return };
        *effort = left;
        self.begins.insert(slot.value);
        for b in order {
            let next = || function.block(b).term.edges().map(|e| e.block);
            if next().any(|s| live.contains(&s)) {
                for s in next().filter(|s| !live.contains(s)) {
                    let ends = self.ends_at.entry(s).or_default();
                    if ends.last() != Some(&slot.value) {
                        ends.push(slot.value);
                    }
                }
            } else if let Some(&i) = last.get(&b) {
                self.ends_after.entry((b, i)).or_default().push(slot.value);
            }
        }
    }
}

/// The function's variables, in order; empty if it has vector code.
fn slots(types: &Types, function: &Function, cfg: &Cfg) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    // The variable that an address points into.
    let mut of: FxHashMap<Value, usize> = FxHashMap::default();
    for &b in &cfg.rpo {
        let block = function.block(b);
        for (i, inst) in block.insts.iter().enumerate() {
            let is_vector = |v: Value| matches!(types.kind(function.ty(v)), TyKind::Vector(..));
            if matches!(inst.op, InstOp::Vector(_)) || inst.result.is_some_and(is_vector) {
                return Vec::new();
            }
            if let (InstOp::Op(Op::Slot), Some(value)) = (inst.op, inst.result) {
                of.insert(value, slots.len());
                slots.push(Slot { value, home: b, accesses: Vec::new(), escapes: false });
                continue;
            }
            for (k, arg) in inst.args.iter().enumerate() {
                let Some(&s) = of.get(arg) else { continue };
                match (inst.op, inst.result) {
                    (InstOp::Op(Op::Load | Op::Store), _) if k == 0 => slots[s].accesses.push((b, i)),
                    (InstOp::Op(Op::Lea | Op::Bitcast), Some(r)) if k == 0 => {
                        of.insert(r, s);
                    }
                    _ => slots[s].escapes = true,
                }
            }
        }
        block.term.for_each_use(|v| {
            if let Some(&s) = of.get(&v) {
                slots[s].escapes = true;
            }
        });
    }
    slots
}
