//! Copies counted loops. The copy runs if a guard finds, before the loop begins, that all checks will hold, so it gets none. This pass
//! is separate from the insertion of checks and runs before it, when loops still have their plain form.
//!
//! ```text
//! i(a): branch a < n, body(), out()     guard(a): branch HOLDS, fast(a), i(a)    what HOLDS is: see guards.rs
//! body: x = load(p + a)                 fast(b): branch b < n, body.1(), leave()
//!       jump i(a + 1)                   body.1: x = load(p + b); jump fast(b + 1)
//!                                       leave(): jump out()
//! ```
//!
//! A loop is copied if it is innermost, counts up or down to a bound by a constant, and calls nothing: then no memory is freed in it,
//! and it has no output that shows that a report after the loop comes late.

use nyala_base::graph::Tree;
use nyala_base::{Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// Larger loops are not copied: the checks are a small part of their time.
const MAX_BLOCKS: usize = 64;
const MAX_INSTS: usize = 1000;

/// A loop that counts.
pub struct Counted {
    /// The blocks of the loop in reverse postorder, the header first.
    pub blocks: Vec<Block>,
    /// Whether each block runs in every iteration that does not leave the loop early.
    pub is_always: Vec<bool>,
    /// The index of the header's parameter that counts, and its step.
    pub counter: usize,
    pub step: i64,
    /// The loop goes on while this comparison of the counter with the bound holds. The bound does not change in the loop.
    pub goes_on: Op,
    pub bound: Value,
}

/// A loop and its copy.
pub struct Version {
    /// The block that chooses between loop and copy. Its condition is filled in later (`guards.rs`).
    pub guard: Block,
    /// The copy's header.
    pub fast: Block,
    /// The blocks between the exits of the copy and what follows the loop.
    pub leave: Vec<Block>,
}

/// Copies the loops of a function.
pub fn version_loops(types: &mut Types, function: &mut Function) -> Vec<Version> {
    let cfg = Cfg::new(function);
    let tree = cfg.dominator_tree();
    let find = |&h: &Block| counted(types, function, (&cfg, &tree), h);
    let found: Vec<Counted> = cfg.rpo.iter().filter_map(find).collect();
    let versions: Vec<Version> = found.iter().map(|l| copy(types, function, l)).collect();
    if !versions.is_empty() {
        promote_slots_of(types, function);
    }
    versions
}

/// The loop with this header, if it counts and can be copied.
pub fn counted(types: &Types, function: &Function, (cfg, tree): (&Cfg, &Tree), header: Block) -> Option<Counted> {
    let dominated = |b: Block| tree.meet(header.idx(), b.idx()) == header.idx();
    let mut members: FxHashSet<Block> = [header].into_iter().collect();
    let ends: Vec<Block> = cfg.preds[header.idx()].iter().copied().filter(|&p| dominated(p)).collect();
    if ends.is_empty() {
        return None;
    }
    let mut work = ends.clone();
    while let Some(b) = work.pop() {
        if members.insert(b) {
            work.extend(&cfg.preds[b.idx()]);
        }
        if members.len() > MAX_BLOCKS {
            return None;
        }
    }
    let is_back = |b: Block, to: Block| to != header && cfg.position[to.idx()] <= cfg.position[b.idx()];
    let mut blocks: Vec<Block> = members.iter().copied().collect();
    blocks.sort_unstable_by_key(|b| cfg.position[b.idx()]);
    let mut own: FxHashSet<Value> = FxHashSet::default();
    let mut n_insts = 0;
    for &b in &blocks {
        let block = function.block(b);
        let is_inner = block.term.edges().any(|e| members.contains(&e.block) && is_back(b, e.block));
        if is_inner || !block.insts.iter().all(can_be_copied) {
            return None;
        }
        n_insts += block.insts.len();
        own.extend(block.params.iter().copied().chain(block.insts.iter().filter_map(|i| i.result)));
    }
    let Terminator::Branch { cond, then, els } = &function.block(header).term else { return None };
    let (stays, leaves) = (members.contains(&then.block), members.contains(&els.block));
    let inner = if stays { then.block } else { els.block };
    if n_insts > MAX_INSTS || stays == leaves || inner == header || cfg.preds[inner.idx()].len() != 1 {
        return None;
    }
    let test = function.block(header).insts.iter().find(|i| i.result == Some(*cond))?;
    let InstOp::Op(op) = test.op else { return None };
    let params = &function.block(header).params;
    let place = |v: Value| params.iter().position(|&p| p == v);
    let [a, b] = test.args[..] else { return None };
    let (counter, bound, op) = match (place(a), place(b)) {
        (Some(i), _) if !own.contains(&b) => (i, b, op),
        (_, Some(i)) if !own.contains(&a) => (i, a, turned(op)?),
        _ => return None,
    };
    let goes_on = if stays { op } else { opposite(op)? };
    let prim = types.as_prim(function.ty(params[counter])).filter(|p| p.is_int())?;
    let mut step = None;
    for &end in &ends {
        for edge in function.block(end).term.edges().filter(|e| e.block == header) {
            let by = step_of((types, function), &blocks, prim, edge.args[counter], params[counter])?;
            if *step.get_or_insert(by) != by {
                return None;
            }
        }
    }
    let step = step?;
    let is_up = step > 0;
    let ends_there = match goes_on {
        Op::Lt | Op::Le => is_up,
        Op::Gt | Op::Ge => !is_up,
        Op::Ne => (step.unsigned_abs()).is_power_of_two(),
        _ => false,
    };
    if !ends_there || step.abs() >= 1 << 20 {
        return None;
    }
    let is_always = |b: &Block| ends.iter().all(|end| tree.meet(b.idx(), end.idx()) == b.idx());
    let is_always = blocks.iter().map(is_always).collect();
    Some(Counted { blocks, is_always, counter, step, goes_on, bound })
}

fn can_be_copied(inst: &Inst) -> bool {
    let is_call = matches!(
        inst.op,
        InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) | InstOp::Op(Op::Alloc)
    );
    !is_call && !matches!(inst.op, InstOp::Op(Op::Slot | Op::Fence))
}

/// The step of the counter, if it is a sum in its own type.
fn step_of(
    (types, function): (&Types, &Function),
    blocks: &[Block],
    prim: Prim,
    next: Value,
    counter: Value,
) -> Option<i64> {
    let insts = || blocks.iter().flat_map(|b| &function.block(*b).insts);
    // Vectorized loops count in unsigned numbers.
    let bits = |v: Value| types.as_prim(function.ty(v)).filter(|p| p.is_int()).map(Prim::bits);
    let peeled = |v: Value| match insts().find(|i| i.result == Some(v)) {
        Some(Inst { op: InstOp::Op(Op::Cast), args, .. }) if bits(args[0]) == bits(v) => args[0],
        _ => v,
    };
    let next = insts().find(|i| i.result == Some(peeled(next)))?;
    let literal = |v: Value| function.as_bits(v).map(|bits| sign_extended(prim, bits) as i64);
    match (next.op, &next.args[..]) {
        (InstOp::Op(Op::Add), &[a, b]) if peeled(a) == counter => literal(b),
        (InstOp::Op(Op::Add), &[a, b]) if peeled(b) == counter => literal(a),
        (InstOp::Op(Op::Sub), &[a, b]) if peeled(a) == counter => literal(b)?.checked_neg(),
        _ => None,
    }
    .filter(|&n| n != 0)
}

fn sign_extended(prim: Prim, bits: u64) -> u64 {
    let unused = 64 - prim.bits();
    ((bits << unused) as i64 >> unused) as u64
}

/// The comparison with its operands exchanged.
fn turned(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        Op::Eq | Op::Ne => op,
        _ => return None,
    })
}

fn opposite(op: Op) -> Option<Op> {
    Some(match op {
        Op::Lt => Op::Ge,
        Op::Le => Op::Gt,
        Op::Gt => Op::Le,
        Op::Ge => Op::Lt,
        Op::Eq => Op::Ne,
        Op::Ne => Op::Eq,
        _ => return None,
    })
}

fn copy(types: &mut Types, function: &mut Function, found: &Counted) -> Version {
    let header = found.blocks[0];
    let members: FxHashSet<Block> = found.blocks.iter().copied().collect();
    let n_before = function.blocks.len();
    let copies: FxHashMap<Block, Block> =
        found.blocks.iter().enumerate().map(|(i, &b)| (b, Block::from_idx(n_before + i))).collect();
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    for &b in &found.blocks {
        let block = function.block(b);
        let own: Vec<Value> = block.params.iter().copied().chain(block.insts.iter().filter_map(|i| i.result)).collect();
        for v in own {
            let name = function.name(v).to_string();
            let made = function.new_value(function.ty(v), &name);
            values.insert(v, made);
        }
    }
    // Both loops leave their results in variables, which the code after them reads.
    let variables = variables(types, function, &members, &values);
    let new = |v: Value| values.get(&v).copied().unwrap_or(v);
    for &b in &found.blocks {
        let mut block = function.block(b).clone();
        block.params.iter_mut().for_each(|p| *p = new(*p));
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(|a| *a = new(*a));
            inst.result = inst.result.map(new);
        }
        block.term.map_uses(new);
        function.blocks.push(block);
    }
    let mut leave = Vec::new();
    for b in (n_before..n_before + found.blocks.len()).map(Block::from_idx) {
        let mut term = std::mem::replace(&mut function.blocks[b.idx()].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            if let Some(&to) = copies.get(&edge.block) {
                edge.block = to;
                continue;
            }
            let block = Block::from_idx(function.blocks.len());
            let out = std::mem::replace(edge, Edge { block, args: Vec::new() });
            let data =
                BlockData { name: "leave".into(), params: Vec::new(), insts: Vec::new(), term: Terminator::Jump(out) };
            function.blocks.push(data);
            leave.push(block);
        }
        function.blocks[b.idx()].term = term;
    }
    for (&v, &variable) in &variables {
        store_after(function, &found.blocks, v, variable);
        let blocks: Vec<Block> = found.blocks.iter().map(|b| copies[b]).collect();
        store_after(function, &blocks, new(v), variable);
    }
    let guard = Block::from_idx(function.blocks.len());
    for (i, block) in function.blocks.iter_mut().enumerate() {
        if !members.contains(&Block::from_idx(i)) {
            block.term.edges_mut().filter(|e| e.block == header).for_each(|e| e.block = guard);
        }
    }
    let params: Vec<Value> = function.block(header).params.clone();
    let params: Vec<Value> = params.into_iter().map(|p| function.new_value(function.ty(p), "")).collect();
    let bool_ty = types.bool();
    let unknown = function.constant(Const::Bits(0), bool_ty);
    let edge = |block: Block| Edge { block, args: params.clone() };
    let term = Terminator::Branch { cond: unknown, then: edge(copies[&header]), els: edge(header) };
    function.blocks.push(BlockData { name: "guard".into(), params: params.clone(), insts: Vec::new(), term });
    Version { guard, fast: copies[&header], leave }
}

/// Makes variables for the values that are used outside of the loop, and lets these uses read them.
fn variables(
    types: &mut Types,
    function: &mut Function,
    members: &FxHashSet<Block>,
    values: &FxHashMap<Value, Value>,
) -> FxHashMap<Value, Value> {
    let mut variables: FxHashMap<Value, Value> = FxHashMap::default();
    let mut slots = Vec::new();
    for i in 0..function.blocks.len() {
        if members.contains(&Block::from_idx(i)) {
            continue;
        }
        let mut block = std::mem::replace(
            &mut function.blocks[i],
            BlockData { name: String::new(), params: Vec::new(), insts: Vec::new(), term: Terminator::Unreachable },
        );
        let mut loads: FxHashMap<Value, Value> = FxHashMap::default();
        let mut first = Vec::new();
        let mut read = |v: Value, span: Span| -> Value {
            if !values.contains_key(&v) {
                return v;
            }
            *loads.entry(v).or_insert_with(|| {
                let ty = function.ty(v);
                let variable = *variables.entry(v).or_insert_with(|| {
                    let slot = function.new_value(types.ptr(ty), "");
                    let op = InstOp::Op(Op::Slot);
                    slots.push(Inst { op, args: Args::new(), result: Some(slot), span: Span::NONE, fast: false });
                    slot
                });
                let result = function.new_value(ty, "");
                let args = [variable].into_iter().collect();
                first.push(Inst { op: InstOp::Op(Op::Load), args, result: Some(result), span, fast: false });
                result
            })
        };
        for inst in &mut block.insts {
            let span = inst.span;
            inst.args.iter_mut().for_each(|a| *a = read(*a, span));
        }
        block.term.map_uses(|v| read(v, Span::NONE));
        block.insts.splice(0..0, first);
        function.blocks[i] = block;
    }
    function.blocks[0].insts.splice(0..0, slots);
    variables
}

/// Stores a value right after its definition, in one of these blocks.
fn store_after(function: &mut Function, blocks: &[Block], v: Value, variable: Value) {
    for &b in blocks {
        let block = &mut function.blocks[b.idx()];
        let at = match block.insts.iter().position(|i| i.result == Some(v)) {
            Some(at) => at + 1,
            None if block.params.contains(&v) => 0,
            None => continue,
        };
        let args = [variable, v].into_iter().collect();
        block.insts.insert(at, Inst { op: InstOp::Op(Op::Store), args, result: None, span: Span::NONE, fast: false });
        return;
    }
}
