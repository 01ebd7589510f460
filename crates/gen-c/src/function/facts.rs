//! Facts about the values of a function, found before its text is written: which are used, and where; which parameters
//! count the rounds of a loop; which share a variable.

use super::{FunctionEmitter, Growth, MAX_SHARING, Use};
use crate::expr::Expr;
use crate::flow::Flow;
use crate::statements::Step;
use crate::{Result, bug, ops};
use nyala_base::Id;
use nyala_base::graph::{self, NONE};
use nyala_flat::{Block, Function, Inst, InstOp, Terminator, Value};
use nyala_ir::{Op, Prim, TyKind, Types};
use rustc_hash::FxHashSet;

/// For each value the block of which it is a parameter.
pub(super) fn homes(function: &Function, n: usize) -> Vec<Option<usize>> {
    let mut homes = vec![None; n];
    for (b, block) in function.blocks.iter().enumerate() {
        block.params.iter().for_each(|p| homes[p.idx()] = Some(b));
    }
    homes
}

pub(super) fn definitions(function: &Function, n: usize) -> Vec<Option<(usize, usize)>> {
    let mut defs = vec![None; n];
    for (b, block) in function.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            if let Some(r) = inst.result {
                defs[r.idx()] = Some((b, i));
            }
        }
    }
    defs
}

/// Post-dominators of a block that are looked at to find what needs its values.
const MAX_LATER: usize = 12;

/// For each value whether the program certainly computes it where its block is executed: something needs it there, or in a later
/// block that is then executed as well. Other values may have been moved out of loops and branches.
pub(super) fn certain(function: &Function, flow: &Flow, types: &Types, n: usize) -> Vec<bool> {
    let mut home = vec![usize::MAX; n];
    for (b, block) in function.blocks.iter().enumerate() {
        block.insts.iter().filter_map(|i| i.result).for_each(|r| home[r.idx()] = b);
    }
    let mut certain = vec![false; n];
    // What each block needs of others.
    let mut needs: Vec<Vec<Value>> = Vec::new();
    for (b, block) in function.blocks.iter().enumerate() {
        let mut others = Vec::new();
        let mut need = |certain: &mut [bool], v: Value| match home[v.idx()] == b {
            true => certain[v.idx()] = true,
            false => others.push(v),
        };
        match &block.term {
            Terminator::Branch { cond, .. } => need(&mut certain, *cond),
            term => term.for_each_use(|v| need(&mut certain, v)),
        }
        needed_by(&block.insts, types, function, &mut certain, need);
        needs.push(others);
    }
    let later = later_blocks(function, flow);
    for b in flow.cfg.rpo.iter().map(|b| b.idx()).rev() {
        for &v in later[b].iter().flat_map(|&c| &needs[c]).filter(|v| home[v.idx()] == b) {
            certain[v.idx()] = true;
        }
        let need = |certain: &mut [bool], v: Value| certain[v.idx()] |= home[v.idx()] == b;
        needed_by(&function.blocks[b].insts, types, function, &mut certain, need);
    }
    certain
}

/// For each block some that are executed after it, in the same round of the innermost loop around it.
fn later_blocks(function: &Function, flow: &Flow) -> Vec<Vec<usize>> {
    let exit = function.blocks.len();
    let mut succs: Vec<Vec<usize>> =
        function.blocks.iter().map(|b| b.term.edges().map(|e| e.block.idx()).collect::<Vec<_>>()).collect();
    succs.push(Vec::new());
    graph::connect_to_exit(&mut succs, 0, exit);
    let next = graph::post_dominators(&succs, exit);
    let innermost = |b: usize| flow.loops_of(b).next();
    let ends_rounds = |c: usize, header: usize| {
        let latches = flow.cfg.preds[header].iter().map(|p| p.idx()).filter(|&p| flow.is_back_edge(p, header));
        latches.into_iter().all(|latch| flow.dominates(c, latch))
    };
    let of = |b: usize| {
        let chain = std::iter::successors(Some(next[b]), |&c| next.get(c).copied());
        let chain = chain.take_while(|&c| c < exit).take(MAX_LATER);
        let is_after = |c: usize| innermost(b).is_none_or(|h| flow.is_in_loop(c, h) && ends_rounds(c, h));
        chain.filter(|&c| is_after(c)).collect()
    };
    (0..exit).map(|b| if flow.cfg.position[b] != NONE { of(b) } else { Vec::new() }).collect()
}

/// Calls `need` with the operands of what certainly happens in a block.
fn needed_by(
    insts: &[Inst],
    types: &Types,
    function: &Function,
    certain: &mut [bool],
    mut need: impl FnMut(&mut [bool], Value),
) {
    for inst in insts.iter().rev() {
        let is_needed = !inst.is_droppable() || inst.result.is_some_and(|r| certain[r.idx()]);
        let n_needed = match inst.op {
            InstOp::Op(Op::Load | Op::Slot | Op::Alloc) => inst.args.len(),
            _ if !is_needed => 0,
            // The other sides may not be computed, nor what is right of `&&` and `||`.
            InstOp::Op(Op::Select) => 1,
            InstOp::Op(Op::And | Op::Or) if types.as_prim(function.ty(inst.args[0])) == Some(Prim::Bool) => 1,
            _ => inst.args.len(),
        };
        inst.args[..n_needed].iter().for_each(|&v| need(certain, v));
    }
}

impl<'m> FunctionEmitter<'_, 'm> {
    /// Whether the n-th argument of an edge is written: not what a `for` does between rounds.
    pub(super) fn is_moved(&self, from: usize, to: usize, at: usize) -> bool {
        !self.flow.is_back_edge(from, to) || self.steps.get(&to).is_none_or(|s| s.0 != at)
    }

    /// Whether an instruction prints a text, or a line for tools, which stands in the program: its argument is not written.
    fn prints_text(&self, inst: &Inst) -> bool {
        let InstOp::Call(callee) = inst.op else { return false };
        let callee = self.e.module.func(callee);
        let prints =
            |symbol: &str| nyala_ir::lanes::printed(symbol) == Some("string") || symbol == nyala_ir::lanes::PRAGMA;
        !self.e.dialect.printf.is_empty() && callee.is_foreign() && callee.symbol().is_some_and(prints)
    }

    /// For each value whether something that happens depends on it.
    pub(super) fn live(&self) -> Vec<bool> {
        let function = self.function;
        let mut place = vec![None; function.values.len()];
        let mut work: Vec<Value> = Vec::new();
        for &b in &self.flow.cfg.rpo {
            let block = function.block(b);
            block.params.iter().enumerate().for_each(|(i, p)| place[p.idx()] = Some((b, i)));
            for inst in block.insts.iter().filter(|i| !i.is_droppable() && !self.prints_text(i)) {
                work.extend(&inst.args);
            }
            match &block.term {
                Terminator::Jump(_) => {}
                Terminator::Branch { cond, .. } => work.push(*cond),
                term => term.for_each_use(|v| work.push(v)),
            }
        }
        let mut live = vec![false; function.values.len()];
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut live[v.idx()], true) {
                continue;
            }
            if let Some(inst) = self.definition(v) {
                work.extend(&inst.args);
            }
            let Some((b, i)) = place[v.idx()] else { continue };
            for p in &self.flow.cfg.preds[b.idx()] {
                for edge in function.block(*p).term.edges().filter(|e| e.block == b) {
                    if self.is_moved(p.idx(), b.idx(), i) {
                        work.push(edge.args[i]);
                    }
                }
            }
        }
        live
    }

    pub(super) fn count_uses(&mut self) {
        let live = self.live();
        let function = self.function;
        let mut uses = std::mem::take(&mut self.uses);
        for b in self.flow.cfg.rpo.iter().map(|b| b.idx()) {
            let mut used = |v: Value, times: u32| {
                let u = &mut uses[v.idx()];
                *u = Use { block: b, n: u.n + times };
            };
            let block = &function.blocks[b];
            let happens = |i: &&Inst| !i.is_droppable() || i.result.is_some_and(|r| live[r.idx()]);
            for inst in block.insts.iter().filter(happens).filter(|i| !self.prints_text(i)) {
                inst.args.iter().for_each(|&v| used(v, 1));
            }
            match &block.term {
                Terminator::Return(results) if self.flow.returns[b] => results.iter().for_each(|&v| used(v, 2)),
                Terminator::Jump(_) | Terminator::Branch { .. } => {
                    if let Terminator::Branch { cond, .. } = &block.term {
                        used(*cond, 1);
                    }
                    for edge in block.term.edges() {
                        let params = &function.block(edge.block).params;
                        for (i, (param, &arg)) in params.iter().zip(&edge.args).enumerate() {
                            if live[param.idx()] && self.is_moved(b, edge.block.idx(), i) {
                                used(arg, 1);
                            }
                        }
                    }
                }
                term => term.for_each_use(|v| used(v, 1)),
            }
        }
        self.uses = uses;
        self.find_read(&live);
    }

    /// Finds values that are used otherwise than as the address of a store, or of a part to which is stored.
    pub(super) fn find_read(&mut self, live: &[bool]) {
        let function = self.function;
        let read = &mut self.read_slots;
        for b in self.flow.cfg.rpo.iter().rev() {
            let block = function.block(*b);
            block.term.for_each_use(|v| read[v.idx()] = true);
            let happens = |i: &&Inst| !i.is_droppable() || i.result.is_some_and(|r| live[r.idx()]);
            for inst in block.insts.iter().rev().filter(happens) {
                let is_address = match (inst.op, inst.result) {
                    (InstOp::Op(Op::Store), _) => true,
                    (InstOp::Op(Op::Lea | Op::Restrict | Op::Aligned), Some(r)) => !read[r.idx()],
                    _ => false,
                };
                inst.args.iter().skip(is_address as usize).for_each(|v| read[v.idx()] = true);
            }
        }
    }

    /// Finds the addresses that whole arrays are read from or written to.
    pub(super) fn find_whole(&mut self) {
        let types = &self.e.module.types;
        let is_array = |ty| matches!(types.kind(ty), TyKind::Array(..));
        for inst in self.function.blocks.iter().flat_map(|b| &b.insts) {
            let whole = match (inst.op, inst.result) {
                (InstOp::Op(Op::Load), Some(result)) => result,
                (InstOp::Op(Op::Store), _) => inst.args[1],
                _ => continue,
            };
            if !is_array(self.ty(whole)) {
                continue;
            }
            let mut address = inst.args[0];
            while let Some(Inst { op: InstOp::Op(Op::Bitcast | Op::Restrict | Op::Aligned), args, .. }) =
                self.definition(address)
            {
                address = args[0];
            }
            self.whole_slots[address.idx()] = true;
        }
    }

    /// The instruction that defines a value.
    pub(crate) fn definition(&self, v: Value) -> Option<&'m Inst> {
        let (b, i) = self.defs[v.idx()]?;
        Some(&self.function.blocks[b].insts[i])
    }

    /// Finds loops with a tested parameter that changes by the same in each round.
    pub(super) fn find_steps(&mut self) {
        if self.flow.is_irregular {
            return;
        }
        let headers: Vec<usize> = (0..self.function.blocks.len()).filter(|&b| self.flow.is_header[b]).collect();
        for header in headers {
            let block = &self.function.blocks[header];
            let Terminator::Branch { cond, then, els } = &block.term else { continue };
            let Some(Inst { op: InstOp::Op(op), args, .. }) = self.definition(*cond) else { continue };
            let stays = self.flow.is_in_loop(then.block.idx(), header);
            if !op.is_comparison() || stays == self.flow.is_in_loop(els.block.idx(), header) {
                continue;
            }
            for (at, param) in block.params.iter().enumerate().filter(|(_, p)| args.contains(p)) {
                if let Some((sum, by)) = self.growth(header, at) {
                    let test = stays.then_some((*op, args[0] == *param));
                    self.steps.insert(header, (at, Growth { op: sum, by, test }));
                    break;
                }
            }
        }
    }

    /// The operation and the constant by which a parameter of a loop changes in every round.
    pub(super) fn growth(&self, header: usize, at: usize) -> Option<(Op, u64)> {
        let param = self.function.blocks[header].params[at];
        let mut found = None;
        for p in self.flow.cfg.preds[header].iter().filter(|p| self.flow.is_back_edge(p.idx(), header)) {
            for edge in self.function.block(*p).term.edges().filter(|e| e.block.idx() == header) {
                let inst = self.definition(edge.args[at])?;
                let is_int = self.e.module.types.as_prim(self.ty(param))?.is_int();
                let InstOp::Op(op @ (Op::Add | Op::Sub)) = inst.op else { return None };
                let grown = (op, self.function.as_bits(inst.args[1]).filter(|_| is_int && inst.args[0] == param)?);
                if *found.get_or_insert(grown) != grown {
                    return None;
                }
            }
        }
        found
    }

    /// The step of a `for` loop between rounds.
    pub(super) fn step(&mut self, header: usize) -> Result<Option<Step>> {
        let Some(&(at, growth)) = self.steps.get(&header) else { return Ok(None) };
        let param = self.function.blocks[header].params[at];
        let var = self.variable(param)?;
        let name = self.vars[var as usize].name.clone();
        let Some(prim) = self.e.module.types.as_prim(self.ty(param)) else { return Err(bug("a step of no number")) };
        let text = ops::numbers::step(self.e, &Expr::var(&name, var), prim, growth)?;
        Ok(Some(Step { var, text, vars: vec![var] }))
    }

    /// The parameter of another block whose variable a block's parameter can take over: it gives the latter its value, and
    /// is not used from there on until it gets its next value.
    pub(super) fn source(&self, b: Block, param: Value) -> Option<Value> {
        let function = self.function;
        if self.flow.is_irregular || function.blocks.len() > MAX_SHARING {
            return None;
        }
        let params = &function.block(b).params;
        let at = params.iter().position(|&p| p == param)?;
        for p in self.flow.cfg.preds[b.idx()].iter().filter(|p| !self.flow.is_back_edge(p.idx(), b.idx())) {
            for edge in function.block(*p).term.edges().filter(|e| e.block == b) {
                let arg = edge.args[at];
                let (Some(home), Some(var)) = (self.home[arg.idx()], self.var_of.get(&arg)) else { continue };
                let is_taken = params.iter().any(|p| self.var_of.get(p) == Some(var));
                let counts = |s: &(usize, Growth)| function.blocks[home].params[s.0] == arg;
                if !is_taken && !self.steps.get(&home).is_some_and(counts) && !self.is_used_after(arg, home, b) {
                    return Some(arg);
                }
            }
        }
        None
    }

    /// Whether a parameter of the block `home` may be used when control has come to a block, before it is at `home` again.
    /// Values computed of it count as well: their expressions may be nested where they are used.
    pub(super) fn is_used_after(&self, v: Value, home: usize, at: Block) -> bool {
        let mut derived: FxHashSet<Value> = FxHashSet::default();
        derived.insert(v);
        for &b in &self.flow.cfg.rpo {
            for inst in
                self.function.block(b).insts.iter().filter(|i| matches!(i.op, InstOp::Op(_) | InstOp::Vector(_)))
            {
                if let Some(result) = inst.result
                    && inst.args.iter().any(|a| derived.contains(a))
                {
                    derived.insert(result);
                }
            }
        }
        let mut seen = vec![false; self.function.blocks.len()];
        let mut work = vec![at.idx()];
        while let Some(b) = work.pop() {
            if b == home || std::mem::replace(&mut seen[b], true) {
                continue;
            }
            let block = &self.function.blocks[b];
            let mut used = block.insts.iter().flat_map(|i| &i.args).any(|a| derived.contains(a));
            block.term.for_each_use(|u| used |= derived.contains(&u));
            if used {
                return true;
            }
            work.extend(block.term.edges().map(|e| e.block.idx()));
        }
        false
    }
}
