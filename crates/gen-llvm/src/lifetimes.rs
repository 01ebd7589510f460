//! How long the contents of local variables matter, which LLVM is told: variables that are never needed at one time share
//! memory, and what an earlier round of a loop left in one need not be kept.
//!
//! A variable's contents are undefined when its `slot` is executed, and nobody reads them after the last access. That is known
//! where addresses of the variable go nowhere but into loads and stores. Of vector code nothing is said: there a variable may
//! hold values of lanes for which a loop has ended, while it goes on for others.

use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::{Block, Function, InstOp, Value};
use nyala_ir::{Op, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
pub(crate) struct Lifetimes {
    /// Variables that begin at their `slot`.
    pub begins: FxHashSet<Value>,
    /// Those that end where a block begins.
    pub ends_at: FxHashMap<Block, Vec<Value>>,
    /// Those that end after an instruction, by its place in the block.
    pub ends_after: FxHashMap<(Block, usize), Vec<Value>>,
}

/// Of so many blocks for each of the function's, variables are followed.
const EFFORT: usize = 32;

/// What is known of one variable.
struct Slot {
    value: Value,
    home: Block,
    /// Where it is accessed.
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
        // From these blocks on, it is accessed.
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
        *effort -= order.len();
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

/// The function's variables, in order; none if it has vector code.
fn slots(types: &Types, function: &Function, cfg: &Cfg) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    // The variable that an address belongs to.
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
