//! Simplifies control flow and removes dead code.
//!
//! Constant branches become jumps, jumps skip blocks that only jump on or branch on a known argument, a block whose
//! only predecessor jumps to it is merged into that, parameters that always get the same value vanish, and so do dead
//! instructions, unused parameters and unreachable blocks. It runs after slot promotion, to remove its leftovers, and
//! before the back ends, so that their text shows the program and not how it was made. It does not duplicate code.

use crate::analysis::Cfg;
use crate::data::*;
use nyala_base::{Id, SideTable};
use nyala_ir::{Op, TyKind, Types};

/// Maximal number of rounds for one function; each is linear.
const MAX_ROUNDS: usize = 10;

/// Simplifies all functions.
pub fn simplify_branches(module: &mut Module) {
    let types = &module.types;
    for function in &mut module.funcs {
        simplify_function(types, function);
    }
}

/// Simplifies one function.
pub fn simplify_function(types: &Types, function: &mut Function) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = fold_branches(function);
        changed |= thread_jumps(function);
        changed |= drop_unreachable(function);
        changed |= fold_params(function);
        changed |= merge_blocks(function);
        changed |= remove_dead(function);
        changed |= select_to_cond(types, function);
        if !changed {
            break;
        }
    }
}

fn fold_branches(function: &mut Function) -> bool {
    let mut changed = false;
    for i in 0..function.blocks.len() {
        if let Terminator::Branch { cond, then, els } = &function.blocks[i].term {
            let taken = match function.as_const(*cond) {
                Some(Const::Bits(bits)) => Some(if bits != 0 { then } else { els }),
                _ if then == els => Some(then),
                _ => None,
            };
            if let Some(edge) = taken {
                function.blocks[i].term = Terminator::Jump(edge.clone());
                changed = true;
            }
        }
    }
    changed
}

/// Whether jumps can skip a block: it has no instructions, and nothing outside uses its parameters.
fn passes_on(function: &Function, block: Block, used_outside: &SideTable<Value, bool>) -> bool {
    let data = function.block(block);
    block.idx() != 0
        && data.insts.is_empty()
        && matches!(data.term, Terminator::Jump(_) | Terminator::Branch { .. })
        && data.params.iter().all(|&p| !used_outside[p])
}

/// Lets jumps skip blocks without instructions.
fn thread_jumps(function: &mut Function) -> bool {
    // Parameters that are used elsewhere than in their own block.
    let mut home: SideTable<Value, Option<Block>> = SideTable::default();
    let mut used_outside: SideTable<Value, bool> = SideTable::default();
    for (i, block) in function.blocks.iter().enumerate() {
        for &p in &block.params {
            home[p] = Some(Block::from_idx(i));
        }
    }
    for (i, block) in function.blocks.iter().enumerate() {
        let here = Some(Block::from_idx(i));
        let mut note = |v: Value| {
            if home[v].is_some() && home[v] != here {
                used_outside[v] = true;
            }
        };
        block.insts.iter().flat_map(|inst| &inst.args).copied().for_each(&mut note);
        block.term.for_each_use(note);
    }
    let through: Vec<bool> =
        (0..function.blocks.len()).map(|i| passes_on(function, Block::from_idx(i), &used_outside)).collect();
    let mut changed = false;
    for i in 0..function.blocks.len() {
        let mut term = std::mem::replace(&mut function.blocks[i].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            // A chain may be a cycle of empty blocks: stop after some steps.
            for _ in 0..16 {
                let target = edge.block;
                if !through[target.idx()] || target.idx() == i {
                    break;
                }
                let data = function.block(target);
                let value = |v: Value| match data.params.iter().position(|&p| p == v) {
                    Some(at) => edge.args[at],
                    None => v,
                };
                let next = match &data.term {
                    Terminator::Jump(next) => next,
                    Terminator::Branch { cond, then, els } => match function.as_bits(value(*cond)) {
                        Some(bits) => {
                            if bits != 0 {
                                then
                            } else {
                                els
                            }
                        }
                        None => break,
                    },
                    _ => break,
                };
                if next.block == target {
                    break;
                }
                *edge = Edge { block: next.block, args: next.args.iter().map(|&v| value(v)).collect() };
                changed = true;
            }
        }
        function.blocks[i].term = term;
    }
    changed
}

/// Removes blocks that are never reached; the others keep their order.
pub fn drop_unreachable(function: &mut Function) -> bool {
    let cfg = Cfg::new(function);
    if cfg.rpo.len() == function.blocks.len() {
        return false;
    }
    let mut new_id: Vec<Block> = Vec::with_capacity(function.blocks.len());
    let mut n = 0;
    function.blocks.retain(|_| {
        let is_kept = cfg.is_reachable(Block::from_idx(new_id.len()));
        new_id.push(Block(n));
        n += u32::from(is_kept);
        is_kept
    });
    for block in &mut function.blocks {
        block.term.edges_mut().for_each(|e| e.block = new_id[e.block.idx()]);
    }
    true
}

/// Replacements of values, which may be replaced in turn.
#[derive(Default)]
struct Replacements {
    by: SideTable<Value, Option<Value>>,
    any: bool,
}

impl Replacements {
    fn set(&mut self, old: Value, new: Value) {
        self.by[old] = Some(new);
        self.any = true;
    }

    /// The last replacement of a value; compresses the path to it.
    fn resolve(&mut self, value: Value) -> Value {
        let mut end = value;
        while let Some(next) = self.by[end] {
            end = next;
        }
        let mut at = value;
        while let Some(next) = self.by[at] {
            self.by[at] = Some(end);
            at = next;
        }
        end
    }

    fn apply(mut self, function: &mut Function) -> bool {
        if self.any {
            for block in &mut function.blocks {
                for inst in &mut block.insts {
                    inst.args.iter_mut().for_each(|a| *a = self.resolve(*a));
                }
                block.term.map_uses(|v| self.resolve(v));
            }
        }
        self.any
    }
}

/// Replaces parameters whose arguments are always the same value, or the parameter itself.
fn fold_params(function: &mut Function) -> bool {
    let n = function.blocks.len();
    // For each parameter the one argument seen so far.
    let mut args: Vec<Vec<Option<Value>>> = function.blocks.iter().map(|b| vec![None; b.params.len()]).collect();
    let mut differs: Vec<Vec<bool>> = function.blocks.iter().map(|b| vec![false; b.params.len()]).collect();
    let mut replacements = Replacements::default();
    for block in &function.blocks {
        for edge in block.term.edges() {
            let params = &function.block(edge.block).params;
            for (i, &arg) in edge.args.iter().enumerate() {
                let seen = &mut args[edge.block.idx()][i];
                if arg == params[i] || *seen == Some(arg) {
                    continue;
                }
                differs[edge.block.idx()][i] |= seen.is_some();
                *seen = Some(arg);
            }
        }
    }
    let mut removed: Vec<Vec<bool>> = Vec::with_capacity(n);
    for (b, block) in function.blocks.iter().enumerate() {
        let mut remove = vec![false; block.params.len()];
        for (i, &param) in block.params.iter().enumerate() {
            if let (true, Some(arg), false) = (b > 0, args[b][i], differs[b][i]) {
                // Two parameters may replace each other.
                if replacements.resolve(arg) != param {
                    replacements.set(param, arg);
                    remove[i] = true;
                }
            }
        }
        removed.push(remove);
    }
    remove_params(function, &removed);
    replacements.apply(function)
}

/// Drops parameters and the arguments for them.
fn remove_params(function: &mut Function, removed: &[Vec<bool>]) {
    if !removed.iter().flatten().any(|&r| r) {
        return;
    }
    for (block, removed) in function.blocks.iter_mut().zip(removed) {
        retain(&mut block.params, removed);
    }
    for block in &mut function.blocks {
        for edge in block.term.edges_mut() {
            retain(&mut edge.args, &removed[edge.block.idx()]);
        }
    }
}

fn retain(values: &mut Vec<Value>, removed: &[bool]) {
    let mut i = 0;
    values.retain(|_| {
        i += 1;
        !removed.get(i - 1).copied().unwrap_or(false)
    });
}

/// Merges blocks into their predecessor, if it is the only one and jumps to them.
fn merge_blocks(function: &mut Function) -> bool {
    let mut n_preds = vec![0u32; function.blocks.len()];
    for block in &function.blocks {
        block.term.edges().for_each(|e| n_preds[e.block.idx()] += 1);
    }
    let mut replacements = Replacements::default();
    let mut changed = false;
    for i in 0..function.blocks.len() {
        while let Terminator::Jump(edge) = &function.blocks[i].term {
            let target = edge.block.idx();
            if target == i || target == 0 || n_preds[target] != 1 {
                break;
            }
            let args = edge.args.clone();
            let block = &mut function.blocks[target];
            let params = std::mem::take(&mut block.params);
            let mut insts = std::mem::take(&mut block.insts);
            let term = std::mem::replace(&mut block.term, Terminator::Unreachable);
            n_preds[target] = 0;
            for (param, arg) in params.into_iter().zip(args) {
                replacements.set(param, arg);
            }
            function.blocks[i].insts.append(&mut insts);
            function.blocks[i].term = term;
            changed = true;
        }
    }
    replacements.apply(function);
    if changed {
        drop_unreachable(function);
    }
    changed
}

/// Removes instructions without effect and block parameters, if their values are unused.
pub fn remove_dead(function: &mut Function) -> bool {
    // Where each local value comes from: an instruction, or a parameter and its position.
    #[derive(Clone, Copy)]
    enum Origin {
        None,
        Inst(u32, u32),
        Param(u32, u32),
    }
    let mut origin = vec![Origin::None; function.values.len()];
    let mut incoming: Vec<Vec<(u32, u32)>> = vec![Vec::new(); function.blocks.len()];
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, p) in block.params.iter().enumerate() {
            origin[p.idx()] = Origin::Param(b as u32, i as u32);
        }
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(r) = inst.result {
                origin[r.idx()] = Origin::Inst(b as u32, i as u32);
            }
        }
        for (i, edge) in block.term.edges().enumerate() {
            incoming[edge.block.idx()].push((b as u32, i as u32));
        }
    }
    let mut alive = vec![false; function.values.len()];
    let mut work: Vec<Value> = Vec::new();
    let mut mark = |v: Value, work: &mut Vec<Value>| {
        if !std::mem::replace(&mut alive[v.idx()], true) {
            work.push(v);
        }
    };
    for block in &function.blocks {
        for inst in block.insts.iter().filter(|inst| !inst.is_droppable()) {
            inst.args.iter().for_each(|&a| mark(a, &mut work));
        }
        match &block.term {
            Terminator::Jump(_) => {}
            Terminator::Branch { cond, .. } => mark(*cond, &mut work),
            term => term.for_each_use(|v| mark(v, &mut work)),
        }
    }
    if let Some(entry) = function.blocks.first() {
        entry.params.iter().for_each(|&p| mark(p, &mut work));
    }
    while let Some(v) = work.pop() {
        match origin[v.idx()] {
            Origin::None => {}
            Origin::Inst(b, i) => {
                let inst = &function.blocks[b as usize].insts[i as usize];
                inst.args.iter().for_each(|&a| mark(a, &mut work));
            }
            Origin::Param(b, i) => {
                for &(from, nth) in &incoming[b as usize] {
                    if let Some(edge) = function.blocks[from as usize].term.edges().nth(nth as usize) {
                        mark(edge.args[i as usize], &mut work);
                    }
                }
            }
        }
    }
    let mut changed = false;
    let mut removed: Vec<Vec<bool>> = Vec::with_capacity(function.blocks.len());
    for block in &mut function.blocks {
        let before = block.insts.len();
        block.insts.retain(|inst| !inst.is_droppable() || inst.result.is_some_and(|r| alive[r.idx()]));
        changed |= block.insts.len() != before;
        removed.push(block.params.iter().map(|p| !alive[p.idx()]).collect());
    }
    changed |= removed.iter().flatten().any(|&r| r);
    remove_params(function, &removed);
    changed
}

/// Folds `select(c, true, false)` to `c`, and selects by constants.
fn select_to_cond(types: &Types, function: &mut Function) -> bool {
    let mut replacements = Replacements::default();
    for block in &function.blocks {
        for inst in &block.insts {
            let (InstOp::Op(Op::Select), Some(result)) = (inst.op, inst.result) else { continue };
            let [cond, yes, no] = inst.args[..] else { continue };
            let is_bool = matches!(types.kind(function.ty(yes)), TyKind::Prim(nyala_ir::Prim::Bool));
            let new = match (function.as_bits(cond), function.as_bits(yes), function.as_bits(no)) {
                (Some(bits), _, _) => Some(if bits != 0 { yes } else { no }),
                _ if yes == no => Some(yes),
                (None, Some(1), Some(0)) if is_bool => Some(cond),
                _ => None,
            };
            if let Some(new) = new
                && replacements.by[result].is_none()
                && replacements.resolve(new) != result
            {
                replacements.set(result, new);
            }
        }
    }
    // Replaced selects are now dead, and removed in the next round; those that stay must not count as a change again.
    if !replacements.any {
        return false;
    }
    replacements.apply(function);
    remove_dead(function);
    true
}
