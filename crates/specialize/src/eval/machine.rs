//! The evaluator's main loop. It works on frames of values that become nodes of the residual graph only when they have
//! to ([`plain`](super::plain)). Calls that are unfolded in any case go on here; the arguments of other calls become
//! nodes.

use super::call::{Callee, Decision};
use super::code::{Code, Inst, InstKind, Number, Operand, Target};
use super::plain::{Kind, Place, PlainValue, Value};
use super::state::{Entry, Mode, Site};
use super::{Diverged, Evaluator};
use crate::memory::{self, Leaf, MAX_LEAVES};
use crate::whistle;
use nyala_ir::print;
use nyala_ir::scalar::{eval_arith, eval_cast, eval_comparison};
use nyala_ir::{Builtin, Cont, Effect, Node, Op, Ty, TyKind, Val};
use smallvec::SmallVec;
use std::rc::Rc;

impl Evaluator<'_> {
    pub(super) fn evaluate(&mut self, mut site: Site, entry: Entry) -> Result<(), Box<Diverged>> {
        let [mut frame, mut ahead] = std::mem::take(&mut self.cache.frames);
        let mut entry = Some(entry);
        if let Some(record) = &mut self.record {
            record.begin(site.block);
        }
        let mut k = Cont(0);
        while let Some(next) = entry.take() {
            k = next.cont;
            self.call = next.call;
            self.load(&mut frame, &next);
            let Some(code) = self.code(k) else {
                // A foreign function is never a stub; this is a source that the verifier rejects.
                let mem = self.dst.types.mem();
                let mem = self.node_of(frame[0], mem);
                let callee = self.dst.builtin(Builtin::Unreachable);
                self.define(site.block, callee, &[mem]);
                break;
            };
            let code = self.unfold(code, &mut frame, &mut ahead, &mut site)?;
            k = code.cont;
            let any = self.dst.types.mem();
            let callee = self.get(&code.callee, &frame);
            let mut callee = self.node_of(callee, any);
            if code.target == (Target::Call { unfold: true }) {
                callee = self.dst.op(Op::Unfold, &[callee]);
            }
            let mut vals = Vec::with_capacity(code.args.len());
            for (a, &ty) in code.args.iter().zip(&code.arg_tys) {
                let v = self.get(a, &frame);
                vals.push(self.node_of(v, ty));
            }
            self.set_origin(code.origin);
            entry = self.call(&mut site, callee, vals, code.origin);
            self.keep_nodes();
            self.plain.clear();
        }
        self.repeated.close();
        if let Some(record) = &mut self.record {
            record.end(site.block, self.facts.function[k].unwrap_or(k));
        }
        for frame in [&mut frame, &mut ahead] {
            frame.clear();
        }
        self.cache.frames = [frame, ahead];
        Ok(())
    }

    /// Goes from body to body as long as calls are unfolded in any case. Returns the code of the last body, whose
    /// operations have been computed.
    fn unfold(
        &mut self,
        mut code: Rc<Code>,
        frame: &mut Vec<Value>,
        ahead: &mut Vec<Value>,
        site: &mut Site,
    ) -> Result<Rc<Code>, Box<Diverged>> {
        loop {
            self.budget.reductions += 1;
            if self.record.is_some() {
                self.explain_step(code.cont);
            }
            // If memory is already large, a few more arrays may exceed the budget.
            let is_large = self.array_bytes() > self.budget.max_bytes / 2 || self.budget.is_due();
            if self.budget.reductions.is_multiple_of(1024) || self.budget.reductions < 1024 || is_large {
                self.check_budget()?;
                self.collect(frame)?;
                if let Some(progress) = &self.options.progress {
                    let place = self.at(code.origin);
                    progress.note(self.budget.reductions, self.dst.calls.places(place).last().unwrap_or(place));
                }
            }
            if code.rules.is_recursive {
                self.note_round(code.cont);
            }
            self.current = (code.cont, site.past.mode);
            match self.compute_call(&code, frame, site.past.mode) {
                Some(end) => code = end,
                None => match self.repeat_call(&code, frame, site) {
                    Some(end) => code = end,
                    None => drop(self.compute_all(&code, frame, site, false)),
                },
            }
            let (operand, n) = match code.target {
                Target::Branch => {
                    let Value::Lit(bit) = self.get(&code.args[1], frame) else { return Ok(code) };
                    if self.record.is_some() {
                        self.explain_decided(bit);
                    }
                    if let Some(next) = self.target_code(&code, bit as usize)
                        && let Some(callee) = self.callee(&code.args[3 - bit as usize], frame)
                    {
                        let mem = self.get(&code.args[0], frame);
                        let Some(Decision::Enter(mode)) =
                            self.decide_in_frame(callee, &next, (frame, &[mem]), false, site)
                        else {
                            return Ok(code);
                        };
                        if self.budget.near_end {
                            self.note_call(next.cont, &[mem], code.origin);
                        }
                        site.past.mode = mode;
                        self.call = self.call_of(next.cont, self.made_by(&callee), self.at(code.origin));
                        frame.push(mem);
                        code = next;
                        continue;
                    }
                    (&code.args[3 - bit as usize], 1)
                }
                Target::Call { .. } => (&code.callee, code.args.len()),
                Target::Other => return Ok(code),
            };
            let Some(callee) = self.callee(operand, frame) else { return Ok(code) };
            let Some(next) = self.code(self.source_of(&callee)) else { return Ok(code) };
            ahead.clear();
            match callee {
                Callee::Made(_, slots) => ahead.extend(slots.iter().map(|&slot| frame[slot as usize])),
                Callee::Plain(_, c) => ahead.extend_from_slice(self.plain.parts(c)),
                Callee::Stub(s) => {
                    let vals = self.stubs[s].vals.clone();
                    for &v in &vals[..next.n_free.min(vals.len())] {
                        let v = self.value_of(v);
                        ahead.push(v);
                    }
                }
            }
            for a in &code.args[..n] {
                let v = self.get(a, frame);
                ahead.push(v);
            }
            self.note_return(callee, &ahead[next.n_free..], site);
            let unfold = code.target == Target::Call { unfold: true };
            let decision = self.decide_in_frame(callee, &next, (frame, &ahead[next.n_free..]), unfold, site);
            match decision {
                Some(Decision::Enter(mode)) => site.past.mode = mode,
                // The header of a loop in a function called by `@@` is entered if its condition is known.
                Some(Decision::Look(mode)) => {
                    if !self.is_condition_known(&next, ahead, site) {
                        return Ok(code);
                    }
                    if self.record.is_some() {
                        self.explain_loop(next.cont);
                    }
                    site.past.mode = mode;
                }
                Some(Decision::Leave(_)) | None => return Ok(code),
            }
            if self.budget.near_end {
                self.note_call(next.cont, &ahead[next.n_free..next.n_free + n], code.origin);
            }
            self.call = self.call_of(next.cont, self.made_by(&callee), self.at(code.origin));
            std::mem::swap(frame, ahead);
            code = next;
        }
    }

    fn load(&mut self, frame: &mut Vec<Value>, entry: &Entry) {
        frame.clear();
        for &v in entry.free.iter().chain(&entry.args) {
            let v = self.value_of(v);
            frame.push(v);
        }
    }

    /// Computes the operations of a frame that are not computed yet. With `is_look`, returns false if an operation
    /// would need pending stores to be made first.
    fn compute_all(&mut self, code: &Code, frame: &mut Vec<Value>, site: &mut Site, is_look: bool) -> bool {
        let first = frame.len() - (code.tys.len() - code.insts.len());
        for inst in &code.insts[first..] {
            let number = |at: usize| match inst.numbers[at] {
                Number::Slot(slot) => match frame[slot as usize] {
                    Value::Lit(bits) => Some(bits),
                    _ => None,
                },
                Number::Lit(bits) => Some(bits),
                Number::No => None,
            };
            let number = match inst.kind {
                InstKind::Arith(prim) => match (number(0), number(1)) {
                    (Some(a), Some(b)) => without_fault(eval_arith(inst.op, prim, a, b)),
                    _ => None,
                },
                InstKind::Compare(prim) => match (number(0), number(1)) {
                    (Some(a), Some(b)) => Some(eval_comparison(inst.op, prim, a, b) as u64),
                    _ => None,
                },
                InstKind::Cast(from, to) => number(0).map(|bits| eval_cast(from, to, bits)),
                InstKind::Divide(op, prim) => match (number(0), number(1)) {
                    (Some(a), Some(b)) => without_fault(eval_arith(op, prim, a, b)),
                    _ => None,
                },
                _ => None,
            };
            if let Some(bits) = number {
                frame.push(Value::Lit(bits));
                continue;
            }
            if inst.op.effect() != Effect::Total {
                let address = if inst.op == Op::Load { Some(self.get(&inst.args[1], frame)) } else { None };
                self.note_effect(inst, address);
            }
            let v = match self.structured(inst, code, frame, site) {
                Some(v) => v,
                None if is_look && self.would_flush(inst, frame, site) => return false,
                None => self.step(inst, code, frame, site),
            };
            frame.push(v);
        }
        true
    }

    /// Computes an operation on known structs, addresses and memory, without making nodes.
    fn structured(&mut self, inst: &Inst, code: &Code, frame: &[Value], site: &mut Site) -> Option<Value> {
        let arg = |at: usize| match &inst.args[at] {
            Operand::Slot(slot) => Some(frame[*slot as usize]),
            Operand::Const(v, _) => Some(*v),
            Operand::Closure(..) => None,
        };
        match inst.kind {
            InstKind::Select => match arg(0)? {
                Value::Lit(bit) => Some(self.get(&inst.args[if bit == 1 { 1 } else { 2 }], frame)),
                _ => None,
            },
            InstKind::Known => {
                let v = self.get(&inst.args[0], frame);
                Some(Value::Lit((self.options.annotations && self.is_value_known(v)) as u64))
            }
            InstKind::Part(idx) => match arg(0)? {
                Value::Parts(c) => self.plain.parts(c).get(idx as usize).copied(),
                _ => None,
            },
            InstKind::Parts(ty) => {
                // Operands that are closures are made first.
                let parts: SmallVec<[Value; 8]> = inst.args.iter().map(|a| self.get(a, frame)).collect();
                Some(self.parts(ty, &parts))
            }
            InstKind::WithPart(idx) => match arg(0)? {
                Value::Parts(c) => {
                    let part = self.get(&inst.args[2], frame);
                    let Kind::Parts(ty) = self.plain.all[c.idx()].kind else { return None };
                    let mut parts: SmallVec<[Value; 8]> = self.plain.parts(c).into();
                    *parts.get_mut(idx as usize)? = part;
                    Some(self.parts(ty, &parts))
                }
                _ => None,
            },
            InstKind::Element(step, n) => match (arg(0)?, arg(1)?) {
                (Value::Place(p), Value::Lit(idx)) if idx < n.min(MAX_LEAVES) => {
                    let at = p.at() + idx * u64::from(step);
                    (n != u64::MAX || self.is_within(p.base(), at + u64::from(step))).then_some(())?;
                    (at < MAX_LEAVES).then_some(Value::place(p.base(), at))
                }
                _ => None,
            },
            InstKind::Field(start) => match arg(0)? {
                Value::Place(p) => {
                    let at = p.at() + u64::from(start);
                    (at < MAX_LEAVES).then_some(Value::place(p.base(), at))
                }
                _ => None,
            },
            InstKind::Elements => match arg(0)? {
                v @ Value::Place(..) => Some(v),
                _ => None,
            },
            InstKind::Load(parts) => match arg(1)? {
                Value::Place(p) => self.known_contents(p, parts, code.tys[frame.len()], site),
                _ => None,
            },
            InstKind::Store(parts) => match arg(1)? {
                Value::Place(p) => {
                    let (mem, val) = (arg(0)?, arg(2)?);
                    let ty = self.operand_ty(&inst.args[2], code);
                    let is_possible = p.at() + u64::from(parts) < MAX_LEAVES && site.memory.is_private(p.base());
                    (is_possible && self.store(p, parts, val, ty, inst, site)).then_some(mem)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn operand_ty(&self, operand: &Operand, code: &Code) -> Ty {
        match operand {
            Operand::Slot(slot) => code.tys[*slot as usize],
            Operand::Const(_, ty) => *ty,
            Operand::Closure(k, _) => self.source.cont(*k).ty,
        }
    }

    /// Whether an object has at least `n` leaves.
    fn is_within(&mut self, base: Val, n: u64) -> bool {
        let Some(ty) = self.dst.types.pointee(self.dst.ty(base)) else { return false };
        matches!(self.dst.types.kind(ty), TyKind::IndefArray(_)) || n <= self.cache.shapes.leaves(&self.dst, ty)
    }

    /// The contents at a place, if all of them are known: a struct of `n_parts` parts, or a single leaf if that is 0.
    fn known_contents(&mut self, p: Place, n_parts: u32, ty: Ty, site: &mut Site) -> Option<Value> {
        if n_parts == 0 {
            return self.known_leaf(p.base(), p.at(), ty, site);
        }
        let mut parts: SmallVec<[Value; 8]> = SmallVec::new();
        for i in 0..u64::from(n_parts) {
            let part = self.source.types.part(ty, i)?;
            parts.push(self.known_leaf(p.base(), p.at() + i, part, site)?);
        }
        Some(self.parts(ty, &parts))
    }

    fn known_leaf(&mut self, base: Val, at: u64, ty: Ty, site: &mut Site) -> Option<Value> {
        let constant = self.cache.constants.leaf(&mut self.dst, &mut self.cache.shapes, base, at);
        match constant.unwrap_or_else(|| site.memory.leaf(base, at)) {
            Leaf::Unknown => None,
            Leaf::Lit(bits) => Some(Value::Lit(bits)),
            Leaf::Val(v) => Some(self.value_of(v.val())),
            Leaf::Undefined => Some(Value::node(self.dst.undef(ty))),
        }
    }

    /// Writes `val` to a private object: a struct of `n_parts` parts, or a single leaf if that is 0. Returns false if
    /// the store has to be made in another way.
    fn store(&mut self, p: Place, n_parts: u32, val: Value, ty: Ty, inst: &Inst, site: &mut Site) -> bool {
        let (base, mut new) = (p.base(), false);
        for i in 0..n_parts.max(1) {
            let (v, ty) = match (n_parts, val) {
                (0, _) => (val, ty),
                (_, Value::Parts(c)) => {
                    (self.plain.parts(c)[i as usize], self.source.types.part(ty, i.into()).unwrap_or(ty))
                }
                _ => return false,
            };
            let leaf = match v {
                Value::Lit(bits) => Leaf::Lit(bits),
                _ => {
                    let v = self.node_of(v, ty);
                    self.escape(v, site, false);
                    if self.dst.node(v) == Node::Undef { Leaf::Undefined } else { Leaf::Val(memory::Wide::new(v)) }
                }
            };
            let at = p.at() + u64::from(i);
            if site.memory.leaf(base, at) != leaf {
                site.memory.set_leaf(base, at, leaf);
                new = true;
            }
        }
        if new {
            let origin = self.at(self.source.origin(inst.source));
            site.memory.add_pending(base, (p.at(), u64::from(n_parts.max(1))), ty, origin);
        }
        true
    }

    /// Whether an instruction is a load that needs pending stores to be made first.
    fn would_flush(&mut self, inst: &Inst, frame: &[Value], site: &mut Site) -> bool {
        if inst.op != Op::Load {
            return false;
        }
        match self.get(&inst.args[1], frame) {
            Value::Place(p) => site.memory.has_pending(Some(p.base())),
            Value::Node(ptr) => site.memory.has_pending(Some(memory::base_of(&self.dst, ptr.val()))),
            _ => site.memory.has_pending(None),
        }
    }

    /// Computes an operation on nodes of the residual graph.
    fn step(&mut self, inst: &Inst, code: &Code, frame: &mut [Value], site: &mut Site) -> Value {
        let mut args: SmallVec<[Val; 4]> = SmallVec::new();
        for a in &inst.args {
            let v = self.get(a, frame);
            let ty = self.operand_ty(a, code);
            args.push(self.node_of(v, ty));
        }
        self.set_origin(self.source.origin(inst.source));
        let mem = args.first().copied();
        if matches!(inst.op, Op::Select | Op::Bitcast | Op::Aligned | Op::Restrict) {
            self.note_given_away();
        }
        let v = self.compute(inst.op, inst.source, &mut args, site);
        // If pending stores were made, the rest of the body continues with the memory after them.
        if let (Some(&now), Some(Operand::Slot(slot))) = (args.first(), inst.args.first())
            && mem != Some(now)
        {
            frame[*slot as usize] = Value::node(now);
        }
        self.value_of(v)
    }

    /// The value of an operand. A closure is made here.
    #[inline]
    fn get(&mut self, operand: &Operand, frame: &[Value]) -> Value {
        match operand {
            Operand::Slot(slot) => frame[*slot as usize],
            Operand::Const(v, _) => *v,
            Operand::Closure(k, slots) => self.make_closure(*k, slots, frame),
        }
    }

    /// Whether closures of `k` that the code being evaluated makes may stay unmade, as no run has to look at them.
    pub(super) fn is_run_own(&self, k: Cont) -> bool {
        let (by, mode) = self.current;
        match mode {
            Mode::Filters => true,
            Mode::Run(_) => self.facts.function[k] == self.facts.function[by],
            Mode::Skip(..) => false,
        }
    }

    fn callee<'a>(&self, operand: &'a Operand, frame: &[Value]) -> Option<Callee<'a>> {
        let v = match operand {
            Operand::Slot(slot) => frame[*slot as usize],
            Operand::Const(v, _) => *v,
            Operand::Closure(k, slots) if self.is_run_own(*k) => return Some(Callee::Made(*k, slots)),
            Operand::Closure(..) => return None,
        };
        match v {
            Value::Closure(c) => match self.plain.all[c.idx()] {
                PlainValue { node: Some(node), .. } => self.stub_of_val(node).map(Callee::Stub),
                PlainValue { kind: Kind::Closure(k), .. } => Some(Callee::Plain(k, c)),
                _ => None,
            },
            Value::Node(v) => self.stub_of_val(v.val()).map(Callee::Stub),
            Value::Lit(_) | Value::Parts(_) | Value::Place(..) => None,
        }
    }

    fn source_of(&self, callee: &Callee) -> Cont {
        match callee {
            Callee::Made(k, _) | Callee::Plain(k, _) => *k,
            Callee::Stub(s) => self.stubs[*s].source,
        }
    }

    pub(super) fn show(&self, k: Cont, param: usize, v: Value) -> String {
        match v {
            Value::Lit(bits) => print::literal(&self.source.types, self.source.ty(self.source.param(k, param)), bits),
            Value::Node(v) => whistle::show(&self.dst, v.val()),
            Value::Place(p) => whistle::show(&self.dst, p.base()),
            Value::Closure(_) => "a function".into(),
            Value::Parts(c) => match self.plain.all[c.idx()].node {
                Some(v) => whistle::show(&self.dst, v),
                None => "a struct".into(),
            },
        }
    }

    /// Computes the operations of a loop's header, if they only compute or read. Returns whether the condition of the
    /// branch at its end is known.
    fn is_condition_known(&mut self, header: &Code, frame: &mut Vec<Value>, site: &mut Site) -> bool {
        let reads = |inst: &Inst| inst.op.effect() == Effect::Total || matches!(inst.op, Op::Load | Op::DebugValue);
        if header.target != Target::Branch || !header.insts.iter().all(reads) {
            return false;
        }
        self.compute_all(header, frame, site, true) && matches!(self.get(&header.args[1], frame), Value::Lit(_))
    }

    pub(super) fn is_header_known(&mut self, header: Cont, free: &[Val], args: &[Val], site: &mut Site) -> bool {
        let mut frame: Vec<Value> = Vec::new();
        for &v in free.iter().chain(args) {
            let v = self.value_of(v);
            frame.push(v);
        }
        self.code(header).is_some_and(|code| self.is_condition_known(&code, &mut frame, site))
    }
}

/// The result of arithmetic, unless it is undefined: that is left to the run.
fn without_fault(result: Option<(u64, bool)>) -> Option<u64> {
    result.filter(|(_, overflows)| !overflows).map(|(bits, _)| bits)
}
