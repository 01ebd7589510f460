//! Fills the [record](crate::record). The evaluator calls this where it has decided something, and only if a record is
//! asked for. It makes no nodes that the evaluator has not made, so that the residual program is equal with and without
//! a record.

use super::Evaluator;
use super::plain::Value;
use super::state::{Site, State, Stub, StubId};
use crate::facts::loop_condition;
use crate::record::{Example, Outcome, Piece, Record, RowId, Unknown, Why};
use crate::whistle;
use nyala_ir::{Cont, Effect, Node, Op, Val};

/// Limit on the values that are searched for an unknown part of a value.
const MAX_LOOKED_AT: usize = 100;
/// Limits on the depth and the number of the parts in an example.
const MAX_DEPTH: usize = 3;
const MAX_PARTS: usize = 8;

/// The annotation before a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Plain,
    Unfold,
    Run,
    Halt,
}

/// The facts that led to a decision about a call.
#[derive(Clone, Copy)]
pub(super) struct Reasons {
    pub mark: Mark,
    /// Unfolded whatever the filters say.
    pub forced: bool,
    /// The filters want it unfolded.
    pub asked: bool,
    /// The callee is the header of a loop that is unrolled.
    pub known_loop: bool,
    pub drift: u64,
    pub knot: bool,
    pub shared: bool,
}

/// Numbers for frequent combinations of outcome and reason ([`Record::again`]).
const UNFOLD: u8 = 1;
const FORCED: u8 = 2;
const ASKED: u8 = 3;
const ONLY: u8 = 4;
const LOOP: u8 = 5;
const BRANCH: u8 = 6;

impl Evaluator<'_> {
    pub fn take_record(&mut self) -> Option<Box<Record>> {
        self.record.take()
    }

    /// Whether calls of `k` are recorded: functions and recursive continuations, not other blocks.
    fn is_told(&self, k: Cont) -> bool {
        self.facts.function[k] == Some(k) || self.facts.is_recursive[k]
    }

    /// Records that a body is entered.
    #[cold]
    pub(super) fn explain_step(&mut self, k: Cont) {
        let (function, n_vals) = (self.facts.function[k], self.dst.n_vals());
        if let Some(record) = &mut self.record {
            record.enter(function, k, self.budget.reductions, n_vals);
        }
    }

    /// Records that a call is unfolded without a closer look.
    #[cold]
    pub(super) fn explain_entered(&mut self, k: Cont, class: u8) {
        if !self.is_told(k) {
            return;
        }
        let site = self.current.0;
        let Some(record) = &mut self.record else { return };
        if let Some(row) = record.again(site, k, class) {
            return record.enter_by(k, row);
        }
        let why = match class {
            UNFOLD => Why::Unfold,
            FORCED => Why::WithinRun,
            ASKED if self.source.cont(k).filter.all.is_some() => Why::Filter,
            ASKED => Why::Parameters,
            LOOP => Why::KnownLoop,
            _ => Why::OnlyCall,
        };
        let row = record.count(site, Some(k), Outcome::Unfolded, why, 0);
        record.remember(site, k, class, row);
        record.enter_by(k, row);
    }

    /// The number of a reason to unfold a call.
    fn unfold_class(unfold: bool, forced: bool, asked: bool) -> u8 {
        match (unfold, forced, asked) {
            (true, ..) => UNFOLD,
            (_, true, _) => FORCED,
            (_, _, true) => ASKED,
            _ => ONLY,
        }
    }

    /// Records that the call of the function whose body was just entered is computed as a whole.
    #[cold]
    pub(super) fn explain_computed(&mut self, k: Cont, steps: u64) {
        if let Some(record) = &mut self.record {
            record.compute(k, steps);
        }
    }

    #[cold]
    pub(super) fn explain_loop(&mut self, k: Cont) {
        self.explain_entered(k, LOOP);
    }

    /// Records that a call is unfolded after a closer look.
    pub(super) fn explain_unfolded(&mut self, k: Cont, reasons: Reasons) {
        if !matches!(reasons.mark, Mark::Run | Mark::Halt) {
            let class = match reasons.known_loop {
                true => LOOP,
                false => Self::unfold_class(reasons.mark == Mark::Unfold, reasons.forced, reasons.asked),
            };
            return self.explain_entered(k, class);
        }
        let site = self.current.0;
        let Some(record) = &mut self.record else { return };
        let (outcome, why) = match reasons.mark {
            Mark::Halt => (Outcome::Unfolded, Why::HaltedOnlyCall),
            _ => (Outcome::Run, Why::Run),
        };
        let row = record.count(site, Some(k), outcome, why, 0);
        record.enter_by(k, row);
    }

    /// Records that a call becomes a call of a stub. `is_new` says that the stub was made for it.
    pub(super) fn explain_residual(
        &mut self,
        site: &Site,
        k: Cont,
        args: &[Val],
        (s, is_new): (StubId, bool),
        reasons: Reasons,
    ) {
        if !self.is_told(k) {
            return;
        }
        let stub = &self.stubs[s];
        let mask = stub.mask;
        let is_tied = self.facts.is_recursive[k] && mask != 0 && !is_new && stub.state != State::New;
        let (outcome, why) = if reasons.mark == Mark::Halt {
            (Outcome::Halted, Why::Halt)
        } else if reasons.knot {
            (Outcome::Knot, Why::Repeats)
        } else if reasons.drift != 0 {
            let from = args.get(reasons.drift.trailing_zeros() as usize);
            let unknown = from.map_or(Unknown::Nowhere, |&v| self.unknown_in(v));
            (Outcome::Generalized, Why::Drift(reasons.drift, unknown))
        } else if reasons.shared {
            (Outcome::Generalized, Why::Shared)
        } else if is_tied {
            (Outcome::Knot, Why::Repeats)
        } else {
            let outcome = if mask == 0 { Outcome::Residual } else { Outcome::Specialized };
            (outcome, self.why_not(site, s, args))
        };
        let at = self.current.0;
        let Some(record) = &mut self.record else { return };
        let row = record.count(at, Some(k), outcome, why, mask);
        record.rows[row as usize].made += is_new as u64;
        record.set_call(site.block, row);
        if mask != 0 && record.wants_example(row) {
            let example = self.example(s);
            self.add_example(row, example);
        }
    }

    fn add_example(&mut self, row: RowId, example: Example) {
        if let Some(record) = &mut self.record {
            record.add_example(row, example);
        }
    }

    /// Records a call whose callee is not a known function of the program.
    pub(super) fn explain_unknown(&mut self, callee: Val, mark: Mark) {
        let ty = self.dst.ty(callee);
        let params = self.dst.types.cn_params(ty);
        if !params.is_some_and(|p| p.iter().any(|&t| self.dst.types.has_function(t))) {
            return;
        }
        let (target, why) = match self.dst.node(callee) {
            Node::Cont(_) => (self.source_callee(), Why::External),
            _ => (None, Why::UnknownCallee(self.unknown_in(callee))),
        };
        let outcome = if mark == Mark::Halt { Outcome::Halted } else { Outcome::Residual };
        let site = self.current.0;
        if let Some(record) = &mut self.record {
            record.count(site, target, outcome, why, 0);
        }
    }

    /// The callee in the source, if the source calls a continuation by name.
    fn source_callee(&self) -> Option<Cont> {
        let mut callee = self.source.body(self.current.0)?.callee;
        while let Some(Op::Unfold | Op::Run | Op::Hlt) = self.source.as_op(callee) {
            callee = self.source.args(callee)[0];
        }
        self.source.as_cont(callee)
    }

    #[cold]
    pub(super) fn explain_decided(&mut self, bit: u64) {
        let site = self.current.0;
        let Some(record) = &mut self.record else { return };
        let class = BRANCH + bit as u8;
        if record.again(site, site, class).is_none() {
            let row = record.count(site, None, Outcome::Decided, Why::Condition(Unknown::Nowhere), bit);
            record.remember(site, site, class, row);
        }
    }

    pub(super) fn explain_left(&mut self, condition: Val) {
        let why = Why::Condition(self.unknown_in(condition));
        let site = self.current.0;
        if let Some(record) = &mut self.record {
            record.count(site, None, Outcome::Left, why, 0);
        }
    }

    /// Records that the residual continuation `block` will be built for a stub.
    pub(super) fn explain_block(&mut self, block: Cont, s: StubId, from: Option<Cont>, fixed: &[Option<Val>]) {
        let Stub { source: k, cont: closure, .. } = self.stubs[s];
        let mut values = None;
        if self.is_told(k) {
            let mut all = self.example(s);
            let kept: Vec<usize> = self.unmasked(k, self.stubs[s].mask).collect();
            for (&i, &v) in kept.iter().zip(fixed) {
                if let Some(v) = v {
                    all.push((i as u32, self.pieces(v, 0)));
                }
            }
            values = Some(all);
        }
        let function = self.facts.function[k].unwrap_or(k);
        if let Some(record) = &mut self.record {
            record.build((block, closure), k, function, from, values);
        }
    }

    /// Why a call is not unfolded.
    fn why_not(&mut self, site: &Site, s: StubId, args: &[Val]) -> Why {
        let Stub { source: k, mask, .. } = self.stubs[s];
        if !self.options.annotations {
            return Why::NoAnnotations;
        }
        if self.facts.function[k] != Some(k) {
            return match self.is_unfolded_loop(k, site) {
                true => Why::UnknownLoop(self.unknown_condition(k, &self.stubs[s].vals, args)),
                false => Why::PlainLoop,
            };
        }
        let filter = &self.source.cont(k).filter;
        if let Some(f) = filter.all {
            return self.why_filter(None, f, args);
        }
        let param = (0..64).zip(&filter.params).find_map(|(i, f)| Some((i, f.filter(|_| mask >> i & 1 == 0)?)));
        match param {
            Some((i, f)) => self.why_filter(Some(i), f, args),
            None => Why::NoFilter,
        }
    }

    fn why_filter(&mut self, param: Option<u32>, f: Val, args: &[Val]) -> Why {
        match self.blame(f, args) {
            Some(unknown) => Why::UnknownFilter(param, unknown),
            None => Why::FalseFilter(param),
        }
    }

    /// The unknown value because of which a filter does not hold. The recursion is as deep as the filter in the source,
    /// which is limited.
    fn blame(&mut self, f: Val, args: &[Val]) -> Option<Unknown> {
        match self.source.node(f) {
            Node::Param(_, i) => {
                let arg = *args.get(i as usize)?;
                (!self.is_known(arg)).then(|| self.unknown_in(arg))
            }
            Node::Op(op) => {
                let operands = self.source.args(f);
                let values: Vec<Value> = args.iter().map(|&a| self.simple_value(a)).collect();
                let holds = |ev: &mut Self, a: Val| op == Op::And && ev.filter_holds(a, &values, true) == Some(true);
                operands.iter().find_map(|&a| if holds(self, a) { None } else { self.blame(a, args) })
            }
            _ => None,
        }
    }

    /// The unknown value in the condition of a loop that was entered with these captured values and arguments.
    fn unknown_condition(&self, header: Cont, free: &[Val], args: &[Val]) -> Unknown {
        let source = self.source;
        let mut work: Vec<Val> = loop_condition(source, header).into_iter().collect();
        for _ in 0..MAX_LOOKED_AT {
            let Some(v) = work.pop() else { break };
            let captured = self.facts.nest.free(header).iter().position(|&f| f == v).map(|i| free.get(i));
            let value = match source.node(v) {
                Node::Param(k, i) if k == header => args.get(i as usize),
                _ => captured.flatten(),
            };
            match (value, source.as_op(v)) {
                (Some(&value), _) if !self.is_known(value) => return self.unknown_in(value),
                (Some(_), _) => {}
                (None, Some(op)) if op.effect() != Effect::Total => return Unknown::Op(op, source.origin(v)),
                (None, _) => work.extend(source.args(v).iter().rev()),
            }
        }
        Unknown::Nowhere
    }

    /// The origin of the first unknown part of a value.
    fn unknown_in(&self, v: Val) -> Unknown {
        let mut v = v;
        for _ in 0..MAX_LOOKED_AT {
            match self.dst.node(v) {
                Node::Param(c, i) => {
                    let Some(k) = self.record.as_ref().and_then(|r| r.source_of(c)) else { return Unknown::Nowhere };
                    return Unknown::Param(k, self.source_param(c, i as usize));
                }
                Node::Op(op) => {
                    let unknown = |a: &&Val| self.dst.ty(**a) != self.dst.types.mem() && !self.is_known(**a);
                    let inner = self.dst.args(v).iter().find(unknown);
                    match inner.filter(|_| op.effect() == Effect::Total && op != Op::Hlt) {
                        Some(&inner) => v = inner,
                        None => return Unknown::Op(op, self.dst.origin(v)),
                    }
                }
                _ => return Unknown::Nowhere,
            }
        }
        Unknown::Nowhere
    }

    /// The index of the source parameter that a residual parameter stands for. Residual continuations may have fewer.
    fn source_param(&self, c: Cont, i: usize) -> u32 {
        self.dst.cont(c).names.place(i).unwrap_or(i) as u32
    }

    /// The values of a stub's specialized parameters.
    fn example(&self, s: StubId) -> Example {
        let stub = &self.stubs[s];
        let vals = stub.vals[self.facts.nest.free(stub.source).len()..].to_vec();
        let params = (0..64).filter(|&i| stub.mask >> i & 1 == 1);
        params.zip(vals).map(|(i, v)| (i, self.pieces(v, 0))).collect()
    }

    fn pieces(&self, v: Val, depth: usize) -> Vec<Piece> {
        if let Some(s) = self.stub_of_val(v) {
            return vec![Piece::Function(self.stubs[s].source)];
        }
        let text = |text: &str| vec![Piece::Text(text.into())];
        match self.dst.node(v) {
            Node::Lit(_) | Node::Undef | Node::Global(_) => text(&whistle::show(&self.dst, v)),
            Node::Cont(c) => text(self.dst.name(c)),
            Node::Builtin(b) => text(b.name()),
            Node::Op(Op::Tuple | Op::Struct | Op::Array) if depth < MAX_DEPTH => {
                let parts = self.dst.args(v);
                let mut all = text("(");
                for (i, &part) in parts.iter().enumerate().take(MAX_PARTS) {
                    all.extend(text(", ").into_iter().filter(|_| i > 0));
                    all.extend(self.pieces(part, depth + 1));
                }
                all.extend(text(if parts.len() > MAX_PARTS { ", …)" } else { ")" }));
                all
            }
            Node::Op(Op::Extract) if self.is_known(v) => text("a variable"),
            _ => vec![Piece::Unknown(self.unknown_in(v))],
        }
    }
}
