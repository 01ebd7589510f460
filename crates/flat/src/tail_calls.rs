//! Finds the calls in tail position that must keep their function's frame: those that pass on an address of one of its
//! slots. All others are jumps. Environments that are not passed on are known ([`Frames`]); addresses converted to
//! numbers are followed, too.

use crate::analysis::Cfg;
use crate::escape::{Escapes, Fate};
use crate::refcount::Frames;
use crate::{Args, Callee, Func, Function, InstOp, Module, Terminator, Value, VectorOp};
use nyala_base::Id;
use nyala_ir::{Op, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};

struct Finder<'m> {
    types: &'m Types,
    function: &'m Function,
    stay: FxHashSet<Value>,
    /// Whether a value may be, or contain, an address of a slot of this frame.
    derived: Vec<bool>,
    /// Whether such an address may be stored in one of the frame's slots.
    in_slots: bool,
    /// Whether such an address was stored elsewhere, possibly by a callee.
    escaped: bool,
    holds_address: FxHashMap<Ty, bool>,
    changed: bool,
}

/// For each block whether its terminator is a tail call that must keep the frame.
pub fn blocks_that_keep_frames(
    module: &Module,
    escapes: &mut Escapes,
    frames: &mut Frames,
    func: Func,
    cfg: &Cfg,
) -> Vec<bool> {
    let function = module.func(func);
    let is_slot = |op| op == InstOp::Op(Op::Slot);
    let has_tail_call = |b: &crate::BlockData| matches!(b.term, Terminator::TailCall { .. });
    if !function.blocks.iter().any(|b| b.insts.iter().any(|i| is_slot(i.op)))
        || !function.blocks.iter().any(has_tail_call)
    {
        return vec![false; function.blocks.len()];
    }
    let keeps = find(module, escapes, FxHashSet::default(), function, cfg);
    if !keeps.contains(&true) {
        return keeps;
    }
    match frames.environments(func) {
        stay if stay.is_empty() => keeps,
        stay => find(module, escapes, stay, function, cfg),
    }
}

/// `stay`: slots whose addresses are known not to be passed on.
fn find(module: &Module, escapes: &mut Escapes, stay: FxHashSet<Value>, function: &Function, cfg: &Cfg) -> Vec<bool> {
    let mut keeps = vec![false; function.blocks.len()];
    let mut finder = Finder {
        types: &module.types,
        function,
        stay,
        derived: vec![false; function.values.len()],
        in_slots: false,
        escaped: false,
        holds_address: FxHashMap::default(),
        changed: true,
    };
    // Facts only grow until the fixed point; each further round is due to a loop.
    while std::mem::take(&mut finder.changed) {
        for &b in &cfg.rpo {
            let block = function.block(b);
            for inst in &block.insts {
                finder.inst(inst.op, &inst.args, inst.result);
                if let InstOp::Call(callee) = inst.op
                    && !finder.escaped
                {
                    let mut passed = (0..inst.args.len()).filter(|&i| finder.derived[inst.args[i].idx()]);
                    finder.escaped = passed.any(|i| escapes.of_param(callee, i) == Fate::Stored);
                    finder.changed |= finder.escaped;
                }
            }
            for edge in block.term.edges() {
                for (&param, &arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                    if finder.derived[arg.idx()] {
                        finder.mark(param);
                    }
                }
            }
        }
    }
    for (i, block) in function.blocks.iter().enumerate() {
        if let Terminator::TailCall { callee, args, .. } = &block.term {
            let code = matches!(callee, Callee::Indirect(v) if finder.derived[v.idx()]);
            keeps[i] = finder.escaped || code || args.iter().any(|a| finder.derived[a.idx()]);
        }
    }
    keeps
}

impl Finder<'_> {
    fn mark(&mut self, v: Value) {
        if !std::mem::replace(&mut self.derived[v.idx()], true) {
            self.changed = true;
        }
    }

    /// Whether a value of this type can contain an address, not behind a pointer.
    fn can_hold(&mut self, ty: Ty) -> bool {
        if let Some(&holds) = self.holds_address.get(&ty) {
            return holds;
        }
        let holds = match self.types.kind(ty) {
            TyKind::Prim(p) | TyKind::Vector(p, _) => p.bits() == 64 && p.is_int(),
            TyKind::Ptr { .. } | TyKind::Cn(_) => true,
            TyKind::Code | TyKind::Mem => false,
            TyKind::Array(elem, _) | TyKind::IndefArray(elem) => self.can_hold(*elem),
            TyKind::Tuple(_) | TyKind::Struct(_) => {
                let n = self.types.n_parts(ty).unwrap_or(0);
                (0..n).filter_map(|i| self.types.part(ty, i)).any(|p| self.can_hold(p))
            }
        };
        self.holds_address.insert(ty, holds);
        holds
    }

    fn inst(&mut self, op: InstOp, args: &Args, result: Option<Value>) {
        let any = args.iter().any(|a| self.derived[a.idx()]);
        let written = match op {
            // In flat code these have no `mem` operand.
            InstOp::Op(op) => op.writes().map(|(at, written)| (self.derived[args[at - 1].idx()], args[written - 1])),
            InstOp::Vector(op) => op.written().map(|written| (self.derived[args[0].idx()], args[written])),
            InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => None,
        };
        if let Some((own, written)) = written
            && self.derived[written.idx()]
        {
            self.changed |= if own { !self.in_slots } else { !self.escaped };
            self.in_slots |= own;
            self.escaped |= !own;
            // Scattered lanes may go to slots, by addresses in the index, and elsewhere.
            if op == InstOp::Vector(VectorOp::Scatter) {
                self.changed |= !self.in_slots || !self.escaped;
                (self.in_slots, self.escaped) = (true, true);
            }
        }
        match op {
            InstOp::Op(Op::Slot) => {
                if let Some(r) = result.filter(|r| !self.stay.contains(r)) {
                    self.mark(r);
                }
            }
            InstOp::Op(Op::Store) => {}
            InstOp::Op(Op::Load) | InstOp::Vector(VectorOp::Load | VectorOp::Gather) => {
                if let Some(r) = result
                    && any
                    && self.in_slots
                    && self.can_hold(self.function.ty(r))
                {
                    self.mark(r);
                }
            }
            InstOp::Op(_) | InstOp::Vector(_) => {
                if let Some(r) = result
                    && any
                    && self.can_hold(self.function.ty(r))
                {
                    self.mark(r);
                }
            }
            InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => {
                if any {
                    // The callee may store one slot's address in another slot, and may return it.
                    self.changed |= !self.in_slots;
                    self.in_slots = true;
                    if let Some(r) = result
                        && self.can_hold(self.function.ty(r))
                    {
                        self.mark(r);
                    }
                }
            }
        }
    }
}
