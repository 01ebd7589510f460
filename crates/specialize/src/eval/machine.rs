//! The loop of the evaluator. What it computes with are not nodes of the residual graph until that is needed: numbers are
//! numbers, and a closure is its code and what it captures, until it is compared, requested or handed to residual code.
//! A call that is unfolded in any case is decided here; all others are turned into nodes, and decided by
//! [`Evaluator::call`].

use super::code::{Code, Inst, InstKind, Operand, Target};
use super::{Diverged, Entry, Evaluator, Mode, Site, StubId};
use crate::whistle;
use nyala_base::Span;
use nyala_ir::print;
use nyala_ir::scalar::{eval_arith, eval_cast, eval_comparison};
use nyala_ir::{Builtin, Cont, Effect, Node, Op, Prim, Ty, Val};
use smallvec::SmallVec;
use std::rc::Rc;

/// Bytes of closures at which dead ones are freed first.
const MIN_BYTES: usize = 32 << 20;
/// Bytes of living closures.
const MAX_BYTES: usize = 512 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// The bits of a literal; its type is that of the place where it is.
    Lit(u64),
    /// A node of the residual graph; no literal.
    Node(Val),
    /// Of [`Closures`].
    Closure(u32),
}

/// Closures that are no stubs yet.
#[derive(Default)]
pub(super) struct Plain {
    all: Vec<PlainClosure>,
    captured: Vec<Value>,
    /// Bytes at which dead closures are freed next.
    limit: usize,
}

impl Plain {
    fn bytes(&self) -> usize {
        self.all.len() * size_of::<PlainClosure>() + self.captured.len() * size_of::<Value>()
    }

    fn clear(&mut self) {
        self.all.clear();
        self.captured.clear();
    }
}

#[derive(Clone, Copy)]
struct PlainClosure {
    source: Cont,
    /// In `captured`; as many as the source's free values.
    start: u32,
    rank: (u32, u32),
    made: u64,
    node: Option<Val>,
}

/// A closure that is called.
enum Callee {
    /// Of values in the frame, never made.
    Made(Cont, Rc<[u32]>),
    Plain(u32),
    Stub(StubId),
}

/// What becomes of a call.
enum Decision {
    /// Goes on in the callee's body.
    Enter(Mode),
    /// The same, if the condition at its end is known.
    Look(Mode),
    /// To be looked at more closely.
    Residual,
}

impl Evaluator<'_> {
    pub(super) fn evaluate(&mut self, mut site: Site, entry: Entry) -> Result<(), Box<Diverged>> {
        let mut k = entry.cont;
        let [mut frame, mut args, mut ahead] = std::mem::take(&mut self.frames);
        self.load(&mut frame, &entry);
        if let Some(record) = &mut self.record {
            record.begin(site.block);
        }
        loop {
            self.reductions += 1;
            if self.record.is_some() {
                self.explain_step(k);
            }
            if self.reductions.is_multiple_of(1024) || self.reductions < 1024 {
                self.check_budget()?;
                self.collect(&mut frame)?;
            }
            self.current = (k, site.past.mode);
            let Some(code) = self.code(k) else {
                // A foreign function is never a stub; this is a source that the verifier rejects.
                let mem = self.dst.types.mem();
                let mem = self.node_of(frame[0], mem);
                let callee = self.dst.builtin(Builtin::Unreachable);
                self.define(site.block, callee, &[mem]);
                break;
            };
            self.compute_all(&code, &mut frame, &mut site);
            let callee = match (code.target, &code.callee) {
                (Target::Branch, _) => match self.get(&code.args[1], &frame) {
                    Value::Lit(bit) => {
                        if self.record.is_some() {
                            self.explain_decided(bit);
                        }
                        self.callee(&code.args[if bit == 1 { 2 } else { 3 }], &frame)
                    }
                    _ => None,
                },
                (Target::Call { .. }, callee) => self.callee(callee, &frame),
                (Target::Other, _) => None,
            };
            if let Some(callee) = callee {
                args.clear();
                let n = if code.target == Target::Branch { 1 } else { code.args.len() };
                for a in &code.args[..n] {
                    let v = self.get(a, &frame);
                    args.push(v);
                }
                let unfold = code.target == Target::Call { unfold: true };
                match self.decide_call(&callee, &args, &frame, (unfold, code.origin), &mut site) {
                    Decision::Enter(mode) => {
                        self.frame_of(&mut ahead, &callee, &args, &frame);
                        std::mem::swap(&mut frame, &mut ahead);
                        (k, site.past.mode) = (self.source_of(&callee), mode);
                        continue;
                    }
                    // The header of a loop in a function called by `@@`: entered if its condition is known.
                    Decision::Look(mode) => {
                        self.frame_of(&mut ahead, &callee, &args, &frame);
                        let header = self.source_of(&callee);
                        if self.is_condition_known(header, &mut ahead, &mut site) {
                            if self.record.is_some() {
                                self.explain_loop(header);
                            }
                            std::mem::swap(&mut frame, &mut ahead);
                            (k, site.past.mode) = (header, mode);
                            continue;
                        }
                    }
                    Decision::Residual => {}
                }
            }
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
            self.dst.set_origin(code.origin);
            let next = self.call(&mut site, callee, vals, code.origin);
            self.plain.clear();
            let Some(next) = next else { break };
            self.load(&mut frame, &next);
            k = next.cont;
        }
        if let Some(record) = &mut self.record {
            record.end(site.block, self.facts.function[k].unwrap_or(k));
        }
        for frame in [&mut frame, &mut args, &mut ahead] {
            frame.clear();
        }
        self.frames = [frame, args, ahead];
        Ok(())
    }

    fn load(&mut self, frame: &mut Vec<Value>, entry: &Entry) {
        frame.clear();
        frame.extend(entry.free.iter().chain(&entry.args).map(|&v| self.value_of(v)));
    }

    /// The operations of a frame that are not computed yet.
    fn compute_all(&mut self, code: &Code, frame: &mut Vec<Value>, site: &mut Site) {
        let first = frame.len() - (code.tys.len() - code.insts.len());
        for inst in &code.insts[first..] {
            let v = self.step(inst, code, frame, site);
            frame.push(v);
        }
    }

    fn step(&mut self, inst: &Inst, code: &Code, frame: &[Value], site: &mut Site) -> Value {
        let lit = |at: usize| match inst.args[at] {
            Operand::Slot(slot) => match frame[slot as usize] {
                Value::Lit(bits) => Some(bits),
                _ => None,
            },
            Operand::Const(Value::Lit(bits), _) => Some(bits),
            _ => None,
        };
        let number = match inst.kind {
            InstKind::Arith(prim) => lit(0).zip(lit(1)).and_then(|(a, b)| eval_arith(inst.op, prim, a, b)).map(|r| r.0),
            InstKind::Compare(prim) => lit(0).zip(lit(1)).map(|(a, b)| eval_comparison(inst.op, prim, a, b) as u64),
            InstKind::Cast(from, to) => lit(0).map(|bits| eval_cast(from, to, bits)),
            InstKind::Divide(op, prim) => lit(1).zip(lit(2)).and_then(|(a, b)| eval_arith(op, prim, a, b)).map(|r| r.0),
            InstKind::Select if lit(0).is_some() => {
                return self.get(&inst.args[if lit(0) == Some(1) { 1 } else { 2 }], frame);
            }
            InstKind::Known => {
                let known = match self.get(&inst.args[0], frame) {
                    Value::Lit(_) | Value::Closure(_) => true,
                    Value::Node(v) => self.is_known(v),
                };
                Some((known && self.options.annotations) as u64)
            }
            InstKind::Select | InstKind::Other => None,
        };
        if let Some(bits) = number {
            return Value::Lit(bits);
        }
        let mut args: SmallVec<[Val; 4]> = SmallVec::new();
        for a in &inst.args {
            let v = self.get(a, frame);
            let ty = match a {
                Operand::Slot(slot) => code.tys[*slot as usize],
                Operand::Const(_, ty) => *ty,
                Operand::Closure(k, _) => self.source.cont(*k).ty,
            };
            args.push(self.node_of(v, ty));
        }
        self.dst.set_origin(self.source.origin(inst.source));
        let v = self.compute(inst.op, inst.source, &args, site);
        self.value_of(v)
    }

    /// The value of an operand; a closure is made.
    fn get(&mut self, operand: &Operand, frame: &[Value]) -> Value {
        match operand {
            Operand::Slot(slot) => frame[*slot as usize],
            Operand::Const(v, _) => *v,
            Operand::Closure(k, slots) => {
                let start = self.plain.captured.len() as u32;
                let mut rank = (0, 0);
                for &slot in slots.iter() {
                    let v = frame[slot as usize];
                    let (birth, height) = self.rank_of(v);
                    rank = (rank.0.max(birth), rank.1.max(height));
                    self.plain.captured.push(v);
                }
                let rank = (rank.0, rank.1 + 1);
                let plain = PlainClosure { source: *k, start, rank, made: self.reductions, node: None };
                self.plain.all.push(plain);
                let closure = Value::Closure(self.plain.all.len() as u32 - 1);
                if self.is_run_own(*k) {
                    return closure;
                }
                let any = self.dst.types.mem();
                Value::Node(self.node_of(closure, any))
            }
        }
    }

    /// Whether a run need not look at closures of `k` that the code being evaluated makes.
    fn is_run_own(&self, k: Cont) -> bool {
        let (by, mode) = self.current;
        match mode {
            Mode::Filters => true,
            Mode::Run(_) => self.facts.function[k] == self.facts.function[by],
            Mode::Skip(..) => false,
        }
    }

    fn rank_of(&mut self, v: Value) -> (u32, u32) {
        match v {
            Value::Lit(_) => (0, 0),
            Value::Node(v) => self.rank(v),
            Value::Closure(c) => self.plain.all[c as usize].rank,
        }
    }

    fn callee(&self, operand: &Operand, frame: &[Value]) -> Option<Callee> {
        let v = match operand {
            Operand::Slot(slot) => frame[*slot as usize],
            Operand::Const(v, _) => *v,
            Operand::Closure(k, slots) if self.is_run_own(*k) => return Some(Callee::Made(*k, slots.clone())),
            Operand::Closure(..) => return None,
        };
        match v {
            Value::Lit(_) => None,
            Value::Closure(c) => match self.plain.all[c as usize].node {
                Some(node) => self.stub_of_val(node).map(Callee::Stub),
                None => Some(Callee::Plain(c)),
            },
            Value::Node(v) => self.stub_of_val(v).map(Callee::Stub),
        }
    }

    fn source_of(&self, callee: &Callee) -> Cont {
        match callee {
            Callee::Made(k, _) => *k,
            Callee::Plain(c) => self.plain.all[*c as usize].source,
            Callee::Stub(s) => self.stubs[*s].source,
        }
    }

    /// The frame in which a callee begins.
    fn frame_of(&mut self, new: &mut Vec<Value>, callee: &Callee, args: &[Value], frame: &[Value]) {
        new.clear();
        match callee {
            Callee::Made(_, slots) => new.extend(slots.iter().map(|&slot| frame[slot as usize])),
            Callee::Plain(c) => {
                let PlainClosure { source, start, .. } = self.plain.all[*c as usize];
                let n = self.facts.nest.free(source).len();
                new.extend_from_slice(&self.plain.captured[start as usize..][..n]);
            }
            Callee::Stub(s) => {
                let vals = self.stubs[*s].vals.clone();
                new.extend(vals.iter().map(|&v| self.value_of(v)));
            }
        }
        new.extend_from_slice(args);
    }

    /// Whether a call is unfolded in any case. See [`Evaluator::call`], which decides about all others.
    fn decide_call(
        &mut self,
        callee: &Callee,
        args: &[Value],
        frame: &[Value],
        (unfold, origin): (bool, Span),
        site: &mut Site,
    ) -> Decision {
        let k = self.source_of(callee);
        if self.has_drift_hint[k] {
            return Decision::Residual;
        }
        let mode = match callee {
            Callee::Stub(s) => {
                let stub = &self.stubs[*s];
                if stub.mask != 0 || stub.vals.len() != self.facts.nest.free(k).len() {
                    return Decision::Residual;
                }
                self.mode_in(*s, site.past.mode)
            }
            _ => site.past.mode,
        };
        let forced = unfold || matches!((site.past.mode, mode), (Mode::Run(_), Mode::Run(_)));
        let n = args.len();
        let all = (if n >= 64 { u64::MAX } else { (1 << n) - 1 }) & !1;
        let Some((mask, mut full)) = self.quick_request(k, args, all, forced) else { return Decision::Residual };
        let mut asked = true;
        if self.facts.is_recursive[k] {
            if full && self.last_recorded[k] != site.segment {
                return Decision::Residual;
            }
            if self.near_end {
                let shown = args.iter().enumerate().map(|(i, &a)| self.show(k, i, a)).collect();
                self.note_chain(k, shown, origin);
            }
            if !full {
                return match self.is_unfolded_loop(k, site) && self.last_recorded[k] == site.segment {
                    true => Decision::Look(mode),
                    false => Decision::Residual,
                };
            }
        } else {
            asked = full;
            full |= self.hints.is_inline((k, mask)) || self.is_linear_call(callee, args, frame, mask);
        }
        if !full {
            return Decision::Residual;
        }
        if self.record.is_some() {
            self.explain_entered(k, Self::unfold_class(unfold, forced, asked));
        }
        self.note_entered(k, forced, site);
        if let Callee::Stub(s) = callee {
            self.note_returned(*s, &mut site.past);
        }
        Decision::Enter(mode)
    }

    fn show(&self, k: Cont, param: usize, v: Value) -> String {
        match v {
            Value::Lit(bits) => print::literal(&self.source.types, self.source.ty(self.source.param(k, param)), bits),
            Value::Node(v) => whistle::show(&self.dst, v),
            Value::Closure(_) => "a function".into(),
        }
    }

    /// As [`Evaluator::requested`], if that can be told without nodes.
    fn quick_request(&mut self, k: Cont, args: &[Value], all: u64, unfold: bool) -> Option<(u64, bool)> {
        let automatic = self.facts.automatic[k];
        if !self.options.annotations {
            return Some((automatic, automatic == all && all != 0));
        }
        if unfold {
            return Some((all, true));
        }
        let source = self.source;
        let filter = &source.cont(k).filter;
        if let Some(f) = filter.all
            && self.quick_filter(f, args)? == 1
        {
            return Some((all, true));
        }
        let mut mask = automatic;
        for (i, f) in filter.params.iter().enumerate().take(64).skip(1) {
            if let Some(f) = f.filter(|_| mask >> i & 1 == 0)
                && self.quick_filter(f, args)? == 1
            {
                mask |= 1 << i;
            }
        }
        Some((mask, mask == all && all != 0))
    }

    /// A filter's value if it is a number. Filters are as deep as their source, which is limited.
    fn quick_filter(&mut self, f: Val, args: &[Value]) -> Option<u64> {
        let source = self.source;
        match source.node(f) {
            Node::Lit(bits) => Some(bits),
            Node::Param(_, i) => match args[i as usize] {
                Value::Lit(bits) => Some(bits),
                _ => None,
            },
            Node::Op(Op::Known) => match source.node(source.args(f)[0]) {
                Node::Param(_, i) => Some(match args[i as usize] {
                    Value::Lit(_) | Value::Closure(_) => 1,
                    Value::Node(v) => self.is_known(v) as u64,
                }),
                Node::Lit(_) => Some(1),
                _ => None,
            },
            Node::Op(op) => {
                let operands = source.args(f);
                let prim = source.prim(*operands.first()?)?;
                let a = self.quick_filter(operands[0], args)?;
                match op {
                    Op::And if prim == Prim::Bool && a == 0 => Some(0),
                    Op::Or if prim == Prim::Bool && a == 1 => Some(1),
                    Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul => {
                        let b = self.quick_filter(operands[1], args)?;
                        eval_arith(op, prim, a, b).map(|r| r.0)
                    }
                    Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                        let b = self.quick_filter(operands[1], args)?;
                        Some(eval_comparison(op, prim, a, b) as u64)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// As [`Evaluator::is_linear`].
    fn is_linear_call(&mut self, callee: &Callee, args: &[Value], frame: &[Value], mask: u64) -> bool {
        let k = self.source_of(callee);
        let rank = match callee {
            Callee::Stub(s) => {
                // Only what the slow path would take for this stub itself.
                let stub = &self.stubs[*s];
                if mask != 0 || stub.queued || stub.state != super::State::New || stub.escaped {
                    return false;
                }
                stub.rank
            }
            Callee::Plain(c) => self.plain.all[*c as usize].rank,
            Callee::Made(_, slots) => {
                let mut rank = (0, 0);
                for &slot in slots.iter() {
                    let (birth, height) = self.rank_of(frame[slot as usize]);
                    rank = (rank.0.max(birth), rank.1.max(height));
                }
                (rank.0, rank.1 + 1)
            }
        };
        if mask != 0 {
            return false;
        }
        let queue_rank = (rank.0, rank.1, self.facts.postorder[k]);
        if self.queue.peek().is_some_and(|(top, _)| *top >= queue_rank) {
            return false;
        }
        let top_level = self.facts.nest.free(k).is_empty();
        for (i, &arg) in args.iter().enumerate().skip(1) {
            let height = match arg {
                Value::Lit(_) => continue,
                Value::Closure(c) => self.plain.all[c as usize].rank.1,
                Value::Node(_) if !self.source.types.has_function(self.source.ty(self.source.param(k, i))) => continue,
                Value::Node(v) => match self.stub_of_val(v) {
                    Some(held) => self.stubs[held].rank.1,
                    None if self.dst.as_op(v).is_some() => return false,
                    None => continue,
                },
            };
            if top_level || height > rank.1 {
                return false;
            }
        }
        if let Callee::Stub(s) = callee {
            self.stubs[*s].state = super::State::Consumed;
        }
        true
    }

    /// Computes the operations of a loop's header, if they only compute or read; whether the branch at its end is known.
    fn is_condition_known(&mut self, header: Cont, frame: &mut Vec<Value>, site: &mut Site) -> bool {
        let Some(code) = self.code(header) else { return false };
        let reads = |inst: &Inst| inst.op.effect() == Effect::Total || inst.op == Op::Load;
        if code.target != Target::Branch || !code.insts.iter().all(reads) {
            return false;
        }
        self.compute_all(&code, frame, site);
        matches!(self.get(&code.args[1], frame), Value::Lit(_))
    }

    pub(super) fn is_header_known(&mut self, header: Cont, free: &[Val], args: &[Val], site: &mut Site) -> bool {
        let mut frame: Vec<Value> = free.iter().chain(args).map(|&v| self.value_of(v)).collect();
        self.is_condition_known(header, &mut frame, site)
    }

    // Values as nodes.

    pub(super) fn value_of(&self, v: Val) -> Value {
        match self.dst.node(v) {
            Node::Lit(bits) => Value::Lit(bits),
            _ => Value::Node(v),
        }
    }

    /// The node for a value; closures become stubs, with what they capture.
    pub(super) fn node_of(&mut self, v: Value, ty: Ty) -> Val {
        let root = match v {
            Value::Lit(bits) => return self.dst.lit(ty, bits),
            Value::Node(v) => return v,
            Value::Closure(c) => c,
        };
        let mut stack = vec![root];
        while let Some(&c) = stack.last() {
            let PlainClosure { source, start, made, node, .. } = self.plain.all[c as usize];
            if node.is_some() {
                stack.pop();
                continue;
            }
            let facts = self.facts;
            let free = facts.nest.free(source);
            let before = stack.len();
            for i in 0..free.len() {
                if let Value::Closure(inner) = self.plain.captured[start as usize + i]
                    && self.plain.all[inner as usize].node.is_none()
                {
                    stack.push(inner);
                }
            }
            if stack.len() > before {
                continue;
            }
            let mut vals = Vec::with_capacity(free.len());
            for (i, &f) in free.iter().enumerate() {
                vals.push(match self.plain.captured[start as usize + i] {
                    Value::Lit(bits) => {
                        let ty = self.source.ty(f);
                        self.dst.lit(ty, bits)
                    }
                    Value::Node(v) => v,
                    Value::Closure(inner) => self.plain.all[inner as usize].node.unwrap_or(Val(0)),
                });
            }
            let s = self.stub(source, 0, Rc::from(vals));
            self.note_made(s, made);
            self.plain.all[c as usize].node = Some(self.dst.cont_val(self.stubs[s].cont));
            stack.pop();
        }
        self.plain.all[root as usize].node.unwrap_or(Val(0))
    }

    /// Frees closures that the frame does not reach.
    fn collect(&mut self, frame: &mut [Value]) -> Result<(), Box<Diverged>> {
        if self.plain.bytes() < self.plain.limit.max(MIN_BYTES) {
            return Ok(());
        }
        let mut new = Plain::default();
        let mut moved = vec![u32::MAX; self.plain.all.len()];
        let old = std::mem::take(&mut self.plain);
        let mut forward = |v: &mut Value, new: &mut Plain| {
            let Value::Closure(c) = *v else { return };
            if moved[c as usize] == u32::MAX {
                let mut closure = old.all[c as usize];
                let n = self.facts.nest.free(closure.source).len();
                let captured = &old.captured[closure.start as usize..][..n];
                closure.start = new.captured.len() as u32;
                new.captured.extend_from_slice(captured);
                moved[c as usize] = new.all.len() as u32;
                new.all.push(closure);
            }
            *v = Value::Closure(moved[c as usize]);
        };
        frame.iter_mut().for_each(|v| forward(v, &mut new));
        let mut at = 0;
        while at < new.captured.len() {
            let mut v = new.captured[at];
            forward(&mut v, &mut new);
            new.captured[at] = v;
            at += 1;
        }
        new.limit = 2 * new.bytes();
        self.plain = new;
        let limit = (MAX_BYTES as f64 * self.options.budget.max(0.1)) as usize;
        self.near_end |= self.plain.bytes() * 2 > limit;
        match self.plain.bytes() > limit {
            true => Err(self.diverged("bytes of closures", limit as u64)),
            false => Ok(()),
        }
    }
}
