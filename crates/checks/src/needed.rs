//! Moves arithmetic to where it is used, so that it is checked there. The scheduler hoists operations: in front of a loop that may
//! have no iteration, or before the branch that guards them. A check there would report an overflow that never happens in the source.
//! So a value that is used on some paths only is computed again on these paths:
//!
//! ```text
//! entry(a, n):                       entry(a, n):
//!   p = mul(a, 3)                      jump head(0)
//!   jump head(0)                     head(i): branch i < n, body(), out()
//! head(i): branch i < n, body(), out()
//! body(): store(…, p); jump …        body(): p.1 = mul(a, 3); store(…, p.1); jump …
//! ```
//!
//! In a loop, LLVM hoists it again from the copy without checks (`versions.rs`).
//!
//! Not handled: operands of `select`, `&&` and `||` that are used under a condition.

use nyala_base::Id;
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Effect, Op, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on the blocks that a search from one block visits.
const MAX_STEPS: usize = 1000;
/// Limits on the blocks in which one value is computed again, and on all such instructions.
const MAX_BLOCKS: usize = 16;
const MAX_COPIES: usize = 20_000;

/// The blocks that certainly use a value when they run.
type Users = FxHashMap<Value, Vec<Block>>;

/// Values that are used on every path from their definition to the end of the function.
pub fn needed(function: &Function) -> FxHashSet<Value> {
    let cfg = Cfg::new(function);
    let after = cfg.post_dominators();
    let mut found = FxHashSet::default();
    let mut users = Users::default();
    // In reverse order: uses come before their definitions.
    for &b in cfg.rpo.iter().rev() {
        use_by_terminator(&mut users, b, &function.block(b).term);
        for inst in function.block(b).insts.iter().rev() {
            let is_used = inst.result.is_some_and(|r| users.get(&r).is_some_and(|users| passes(&after, b, users)));
            found.extend(inst.result.filter(|_| is_used));
            if is_used || !is_pure(inst) {
                use_by_inst(&mut users, b, inst);
            }
        }
    }
    found
}

fn use_by(users: &mut Users, v: Value, b: Block) {
    let users = users.entry(v).or_default();
    if users.last() != Some(&b) {
        users.push(b);
    }
}

fn use_by_terminator(users: &mut Users, b: Block, term: &Terminator) {
    match term {
        Terminator::Branch { cond, then, els } => {
            use_by(users, *cond, b);
            then.args.iter().filter(|v| els.args.contains(v)).for_each(|&v| use_by(users, v, b));
        }
        term => term.for_each_use(|v| use_by(users, v, b)),
    }
}

fn use_by_inst(users: &mut Users, b: Block, inst: &Inst) {
    inst.args[..n_certain(inst)].iter().for_each(|&v| use_by(users, v, b));
}

/// The number of operands that an instruction certainly uses. A `select` uses one of two; `&&` and `||` may not use the second
/// operand.
fn n_certain(inst: &Inst) -> usize {
    let is_choice = matches!(inst.op, InstOp::Op(Op::Select | Op::And | Op::Or));
    if is_choice { 1 } else { inst.args.len() }
}

fn is_pure(inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Op(op) if op.effect() == Effect::Total)
}

/// Whether every path from a block, which is included, passes one of some other blocks.
fn passes(after: &[Option<Block>], from: Block, others: &[Block]) -> bool {
    let mut at = Some(from);
    for _ in 0..MAX_STEPS {
        match at {
            Some(b) if others.contains(&b) => return true,
            Some(b) => at = after[b.idx()],
            None => return false,
        }
    }
    false
}

/// Computes values that are not always used again in the blocks that use them, if they depend on signed arithmetic.
/// The edges of the given blocks stay as they are.
pub fn put_where_needed(types: &Types, function: &mut Function, fixed: &[Block]) {
    let may_overflow = may_overflow(types, function);
    if may_overflow.is_empty() {
        return;
    }
    split_edges(function, &may_overflow, fixed);
    let cfg = Cfg::new(function);
    let after = cfg.post_dominators();
    let mut users = Users::default();
    // For each block the operations that it computes again at its start, in the order of their uses, with the new values.
    let mut copies: FxHashMap<Block, Vec<Inst>> = FxHashMap::default();
    let mut new: FxHashMap<(Block, Value), Value> = FxHashMap::default();
    let mut n = 0;
    for &b in cfg.rpo.iter().rev() {
        use_by_terminator(&mut users, b, &function.block(b).term);
        for i in (0..function.block(b).insts.len()).rev() {
            let inst = function.block(b).insts[i].clone();
            let used = inst.result.and_then(|r| users.get(&r));
            let is_used = used.is_some_and(|users| passes(&after, b, users));
            if is_used || !is_pure(&inst) {
                use_by_inst(&mut users, b, &inst);
                continue;
            }
            let (Some(result), Some(blocks)) = (inst.result, used) else { continue };
            let blocks: Vec<Block> = blocks.iter().copied().take(MAX_BLOCKS).collect();
            if !may_overflow.contains(&result) || n + blocks.len() > MAX_COPIES {
                continue;
            }
            n += blocks.len();
            for block in blocks {
                let copy = function.new_value(function.ty(result), "");
                new.insert((block, result), copy);
                use_by_inst(&mut users, block, &inst);
                copies.entry(block).or_default().push(Inst { result: Some(copy), ..inst.clone() });
            }
        }
    }
    for b in (0..function.blocks.len()).map(Block::from_idx) {
        if n == 0 {
            return;
        }
        let block = &mut function.blocks[b.idx()];
        let mut insts = copies.remove(&b).unwrap_or_default();
        insts.reverse();
        insts.append(&mut block.insts);
        block.insts = insts;
        let own = |v: Value| new.get(&(b, v)).copied().unwrap_or(v);
        block.insts.iter_mut().flat_map(|i| &mut i.args).for_each(|a| *a = own(*a));
        block.term.map_uses(own);
    }
}

/// Signed sums, differences and products, and pure operations on these.
fn may_overflow(types: &Types, function: &Function) -> FxHashSet<Value> {
    let mut found: FxHashSet<Value> = FxHashSet::default();
    for b in Cfg::new(function).rpo {
        for inst in function.block(b).insts.iter().filter(|i| is_pure(i)) {
            let Some(result) = inst.result else { continue };
            let is_arithmetic = matches!(inst.op, InstOp::Op(Op::Add | Op::Sub | Op::Mul))
                && types.as_prim(function.ty(result)).is_some_and(|p| p.is_int() && p.is_signed());
            if is_arithmetic || inst.args.iter().any(|a| found.contains(a)) {
                found.insert(result);
            }
        }
    }
    found
}

/// Splits each edge of a branch that passes a value which may overflow: only that path uses the value.
fn split_edges(function: &mut Function, values: &FxHashSet<Value>, fixed: &[Block]) {
    for b in (0..function.blocks.len()).filter(|&b| !fixed.contains(&Block::from_idx(b))) {
        for way in 0..2 {
            let Terminator::Branch { then, els, .. } = &mut function.blocks[b].term else { break };
            let edge = if way == 0 { then } else { els };
            if !edge.args.iter().any(|a| values.contains(a)) {
                continue;
            }
            let next = Edge { block: Block::from_idx(0), args: Vec::new() };
            let old = std::mem::replace(edge, next);
            let term = Terminator::Jump(old);
            function.blocks.push(BlockData { name: String::new(), params: Vec::new(), insts: Vec::new(), term });
            let made = Block::from_idx(function.blocks.len() - 1);
            if let Terminator::Branch { then, els, .. } = &mut function.blocks[b].term {
                (if way == 0 { then } else { els }).block = made;
            }
        }
    }
}
