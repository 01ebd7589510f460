//! Decides about calls of known continuations, in one place: [`Evaluator::decide_call`]. Arguments are [values](Value).
//! Most calls are decided as the machine comes to them, when few values are nodes yet. A question that only nodes can
//! answer, as how a call relates to earlier ones, ends that first look; the machine then makes the nodes, and
//! [`Evaluator::call`] asks once more.
//!
//! 1. `@@`, a filter that is true for the whole function, or for every parameter but `mem`: *full*. Else the parameters
//!    whose filter is true, and those that are functions ([`Facts::automatic`](crate::facts::Facts)).
//! 2. Hints take parameters out again: too many copies, drift. Or they make a call full: it is the only one.
//! 3. A recursive callee is compared with its ancestors ([`whistle`](crate::whistle)): parameters that drift are not
//!    specialized. A full unfold that repeats an ancestor's arguments, under dynamic control, becomes a *knot*: a block.
//! 4. Full: go on in the body. So too, whatever the filters say, if this is the only call there will be in the export's code (`is_linear`).
//! 5. Else a stub for what is specialized, called with the rest.

use super::Evaluator;
use super::code::Code;
use super::explain::{Mark, Reasons};
use super::plain::{Idx, Value};
use super::state::{Entry, Mode, Site, State, StubId};
use crate::{facts, postdom};
use nyala_base::{CallId, Callee as Unfolded, Span};
use nyala_ir::scalar::{eval_arith, eval_comparison};
use nyala_ir::{Cont, Node, Op, Prim, Val};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::rc::Rc;

/// Limit on the values that are searched for a stub.
const MAX_SEARCHED: usize = 1000;

/// Facts about a continuation that decide about its calls, whatever their arguments.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// All parameters but `mem`, a bit each.
    pub all: u64,
    /// Those that have functions in them.
    pub functions: u64,
    /// Those that are specialized because they are functions.
    pub automatic: u64,
    /// There are no filters.
    pub unfiltered: bool,
    /// A filter for the function as a whole is true.
    pub always: bool,
    pub is_recursive: bool,
    /// Calls of it were found to drift, or too many copies. Code has what was known as it was made.
    pub is_hinted: bool,
    /// Earlier rounds found calls that are the only ones.
    pub may_inline: bool,
    pub has_loop: bool,
}

/// A closure that is called.
#[derive(Clone, Copy)]
pub(super) enum Callee<'a> {
    /// A closure whose captured values are in the frame; it has no node and no stub yet.
    Made(Cont, &'a [u32]),
    Plain(Cont, Idx),
    Stub(StubId),
}

/// Annotations before the callee.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    /// `@@`
    pub unfold: bool,
    /// `@`
    pub run: bool,
    /// `$`
    pub halt: bool,
}

impl Marks {
    fn shown(self) -> Mark {
        match self {
            Marks { halt: true, .. } => Mark::Halt,
            Marks { run: true, .. } => Mark::Run,
            Marks { unfold: true, .. } => Mark::Unfold,
            _ => Mark::Plain,
        }
    }
}

/// A call to be decided about.
pub(super) struct Call<'a> {
    pub k: Cont,
    pub rules: &'a Rules,
    pub callee: Callee<'a>,
    /// The caller's.
    pub frame: &'a [Value],
    pub args: &'a [Value],
    /// Captured values and arguments as nodes, once they are made.
    pub nodes: Option<Nodes<'a>>,
    pub marks: Marks,
    /// That of the callee's body.
    pub mode: Mode,
}

/// The captured values and arguments that a call passes.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    free: &'a Rc<[Val]>,
    args: &'a [Val],
}

impl Nodes<'_> {
    /// The values that a stub is specialized in: captured values, then the arguments of `mask`.
    fn specialized(self, mask: u64) -> Rc<[Val]> {
        let masked = (0..self.args.len().min(64)).filter(|&i| mask >> i & 1 == 1).map(|i| self.args[i]);
        self.free.iter().copied().chain(masked).collect()
    }
}

/// The decision about a call.
pub(super) enum Decision {
    /// Goes on in the callee's body.
    Enter(Mode),
    /// Goes on in the callee's body if the condition at its end is known. Only for calls whose arguments are in a frame.
    Look(Mode),
    /// The block ends with a call of the stub.
    Leave(StubId),
}

/// A decision under way.
struct Plan {
    /// Parameters to specialize, a bit each.
    mask: u64,
    /// To be unfolded.
    full: bool,
    reasons: Reasons,
}

impl Plan {
    fn leave_out(&mut self, params: u64) {
        self.mask &= !params;
        self.full = false;
    }
}

impl Evaluator<'_> {
    pub(super) fn rules(&self, k: Cont) -> Rules {
        let (source, facts) = (self.source, self.facts);
        let (params, filter) = (source.params(k), &source.cont(k).filter);
        let mut functions = 0;
        for (i, &p) in params.iter().enumerate().take(64) {
            functions |= (source.types.has_function(source.ty(p)) as u64) << i;
        }
        Rules {
            all: (if params.len() >= 64 { u64::MAX } else { (1 << params.len()) - 1 }) & !1,
            functions,
            automatic: facts.automatic[k],
            unfiltered: filter.is_empty(),
            always: filter.all.is_some_and(|f| source.as_lit(f) == Some(1)),
            is_recursive: facts.is_recursive[k],
            is_hinted: self.hints.drifts[k],
            may_inline: self.hints.inlines[k],
            has_loop: facts.has_loop[k],
        }
    }

    /// One call; what to evaluate next, or nothing if the block ends here.
    pub(super) fn call(&mut self, site: &mut Site, callee: Val, mut args: Vec<Val>, origin: Span) -> Option<Entry> {
        if let Node::Builtin(b) = self.dst.node(callee) {
            return self.call_builtin(site, b, callee, args);
        }
        let (callee, marks) = self.marks(callee);
        let Some(closure) = self.stub_of_val(callee) else {
            if self.record.is_some() {
                self.explain_unknown(callee, marks.shown());
            }
            self.skip(site, postdom::UNKNOWN, &args);
            self.escape(callee, site, false);
            self.residual_call(site, callee, &args, None);
            return None;
        };
        let k = self.stubs[closure].source;
        let free = self.stubs[closure].vals.clone();
        let mode = self.callee_mode(closure, &args, marks, site);
        if (self.facts.exchanges[k] || self.facts.may_exchange[k] && facts::is_function(self.source, k))
            && let Some((&ret, others)) = args.split_last()
            && let Some(s) = self.stub_of_val(ret)
            && self.lanes_meet(k, &free, others)
        {
            let ticket = self.ticket(s);
            if let Some(ret) = args.last_mut() {
                *ret = ticket;
            }
        }
        let rules = self.cache.codes[k].as_ref().map_or_else(|| self.rules(k), |code| code.rules);
        let values: SmallVec<[Value; 16]> = args.iter().map(|&a| self.simple_value(a)).collect();
        let call = Call {
            k,
            rules: &rules,
            callee: Callee::Stub(closure),
            frame: &[],
            args: &values,
            nodes: Some(Nodes { free: &free, args: &args }),
            marks,
            mode,
        };
        self.note_return(call.callee, &values, site);
        let decision = self.decide_call(&call, site);
        if self.budget.near_end {
            self.note_call(k, &values, origin);
        }
        match decision {
            Some(Decision::Enter(mode)) => {
                site.past.mode = mode;
                let call = self.call_of(k, self.stubs[closure].call, self.dst.current_origin());
                Some(Entry { cont: k, call, free, args })
            }
            Some(Decision::Leave(s)) => {
                if self.stubs[s].resume.is_none() {
                    self.stubs[s].resume = self.stubs[closure].resume;
                }
                let (mask, mut i) = (self.stubs[s].mask, 0);
                args.retain(|_| {
                    i += 1;
                    i > 64 || mask >> (i - 1) & 1 == 0
                });
                self.request_call(site, s, args);
                None
            }
            Some(Decision::Look(_)) | None => unreachable!("all that the call passes are nodes"),
        }
    }

    /// The callee without what stands before it.
    fn marks(&self, mut callee: Val) -> (Val, Marks) {
        let mut marks = Marks::default();
        while let Some(op @ (Op::Unfold | Op::Run | Op::Hlt)) = self.dst.as_op(callee) {
            marks.unfold |= op == Op::Unfold;
            marks.run |= op == Op::Run;
            marks.halt |= op == Op::Hlt;
            callee = self.dst.args(callee)[0];
        }
        (callee, marks)
    }

    /// The mode of the callee's body; a run begins, or goes on behind the call.
    fn callee_mode(&mut self, closure: StubId, args: &[Val], marks: Marks, site: &mut Site) -> Mode {
        let mode = match marks.run {
            true => self.start_run(site.past.mode, args),
            false => self.mode_in(closure, site.past.mode),
        };
        if !marks.halt {
            return mode;
        }
        self.skip(site, postdom::UNKNOWN, args);
        Mode::Filters
    }

    /// Decides about a call whose arguments are in a frame. `None`: they have to be nodes.
    pub(super) fn decide_in_frame(
        &mut self,
        callee: Callee,
        code: &Code,
        (frame, args): (&[Value], &[Value]),
        unfold: bool,
        site: &mut Site,
    ) -> Option<Decision> {
        let mode = match callee {
            Callee::Stub(s) => {
                let stub = &self.stubs[s];
                if stub.mask != 0 || stub.vals.len() != code.n_free {
                    return None;
                }
                self.mode_in(s, site.past.mode)
            }
            _ => site.past.mode,
        };
        let (k, rules, marks) = (code.cont, &code.rules, Marks { unfold, ..Marks::default() });
        self.decide_call(&Call { k, rules, callee, frame, args, nodes: None, marks, mode }, site)
    }

    /// Decides about a call. `None`: the arguments have to be nodes. Twice in the compiled program, so that the machine's
    /// does without what is about nodes.
    #[inline(always)]
    fn decide_call(&mut self, call: &Call, site: &mut Site) -> Option<Decision> {
        let &Call { k, rules, marks, nodes, .. } = call;
        if nodes.is_none() && (rules.is_hinted || self.facts.exchanges[k] || self.facts.may_exchange[k]) {
            return None;
        }
        // A run that has skipped something evaluates the code it comes back to once, for all ways there.
        let forced = marks.unfold || marks.run || matches!((site.past.mode, call.mode), (Mode::Run(_), Mode::Run(_)));
        let restricted;
        let rules = match nodes {
            Some(Nodes { free, args }) if self.parts_lanes(k, free, args) => {
                restricted = Rules { automatic: 0, ..*rules };
                &restricted
            }
            _ => rules,
        };
        let (mask, full) = match marks.halt {
            true => (rules.automatic & !self.kept_return(k), false),
            false => self.requested(call, rules, forced)?,
        };
        let mark = marks.shown();
        let reasons = Reasons { mark, forced, asked: full, known_loop: false, drift: 0, knot: false, shared: false };
        let mut plan = Plan { mask, full, reasons };
        if let Some(nodes) = nodes {
            self.follow_hints(k, nodes, &mut plan);
        }
        if rules.is_recursive {
            if !plan.full && !marks.halt && self.is_unfolded_loop(k, site) {
                match nodes {
                    Some(Nodes { free, args }) => plan.reasons.known_loop = self.is_header_known(k, free, args, site),
                    None if self.history.is_recorded(k, site) => return Some(Decision::Look(call.mode)),
                    None => {}
                }
                plan.full = plan.reasons.known_loop;
            }
            if !plan.full || !self.history.is_recorded(k, site) {
                self.compare_with_earlier(k, nodes?, &mut plan, site);
            }
        } else if !plan.full && !marks.halt && rules.may_inline {
            plan.full = self.is_inline(k, plan.mask);
        }
        // The stub whose only call this may be.
        let mut stub = call.callee;
        if !plan.full {
            let mut is_new = false;
            if let Some(nodes) = nodes {
                let n_stubs = self.stubs.len();
                // A copy for known values belongs to the call that asks for it first.
                let made_by = self.call_of(k, self.made_by(&call.callee), self.dst.current_origin());
                let s = self.stub(k, plan.mask, nodes.specialized(plan.mask), made_by);
                self.stubs[s].is_general |= plan.reasons.drift != 0;
                (stub, is_new) = (Callee::Stub(s), n_stubs < self.stubs.len());
            }
            if marks.halt || !self.is_linear(call, stub, plan.mask) {
                let (Some(nodes), Callee::Stub(s)) = (nodes, stub) else { return None };
                if self.record.is_some() {
                    self.explain_residual(site, k, nodes.args, (s, is_new), plan.reasons);
                }
                return Some(Decision::Leave(s));
            }
            if let Callee::Stub(s) = stub {
                self.stubs[s].state = State::Consumed;
            }
            (plan.reasons.forced, plan.reasons.asked) = (false, false);
        }
        if self.record.is_some() {
            self.explain_unfolded(k, plan.reasons);
        }
        // An only call that the close look finds is not noted: a loop in it counts as one of the function's call before.
        if rules.has_loop && (plan.full || nodes.is_none()) {
            self.note_entered(k, forced, site);
        }
        if let Callee::Stub(s) = call.callee
            && self.stubs[s].is_exit
        {
            self.note_returned(s, &mut site.past);
        }
        Some(Decision::Enter(call.mode))
    }

    /// The return of a function, as a mask, if a call with a `$` keeps it as a parameter: calls with equal functions share a copy
    /// then, whatever they return to. Loops, and what is to be unfolded anyway, are made for their return.
    fn kept_return(&self, k: Cont) -> u64 {
        let params = self.source.params(k);
        let is_plain = self.source.cont(k).filter.all.is_none() && !self.facts.is_recursive[k] && self.is_top_level(k);
        match params.last() {
            Some(&p) if is_plain && params.len() <= 64 && facts::is_return(self.source, p) => 1 << (params.len() - 1),
            _ => 0,
        }
    }

    /// Whether a continuation is a function that captures nothing. Code of others belongs to the call that made them.
    pub(super) fn is_top_level(&self, k: Cont) -> bool {
        self.facts.function[k] == Some(k) && self.facts.nest.free(k).is_empty()
    }

    /// The unfolded call that the code of a callee belongs to, which is called at `origin`.
    pub(super) fn call_of(&mut self, k: Cont, made_by: CallId, origin: Span) -> CallId {
        match self.is_top_level(k) {
            true => {
                let cont = self.source.cont(k);
                let is_plain = cont.filter.is_empty();
                let callee = || Unfolded { name: self.source.name(k).into(), place: cont.origin, is_plain };
                self.dst.calls.enter(origin, k.0, callee)
            }
            false => made_by,
        }
    }

    /// The unfolded call whose code made a closure.
    pub(super) fn made_by(&self, callee: &Callee) -> CallId {
        match *callee {
            Callee::Made(..) => self.call,
            Callee::Plain(_, c) => self.plain.all[c.idx()].call,
            Callee::Stub(s) => self.stubs[s].call,
        }
    }

    /// A place of the source, in the call that is being unfolded.
    pub(super) fn at(&self, place: Span) -> Span {
        Span { call: self.call, ..place }
    }

    /// Sets the origin of the values that are made next.
    pub(super) fn set_origin(&mut self, place: Span) {
        self.dst.set_origin(self.at(place));
    }

    /// Calls are noted for the report once a budget is nearly spent. Functions may be recursive through values.
    #[cold]
    pub(super) fn note_call(&mut self, k: Cont, args: &[Value], origin: Span) {
        if self.facts.is_recursive[k] || self.facts.function[k] == Some(k) {
            let shown = args.iter().enumerate().map(|(i, &a)| self.show(k, i, a)).collect();
            self.budget.note_call(k, shown, self.at(origin));
        }
    }

    // Filters.

    /// The parameters that filters specialize, and whether the call is to be unfolded. `None`: the arguments have
    /// to be nodes.
    #[inline(always)]
    fn requested(&mut self, call: &Call, rules: &Rules, forced: bool) -> Option<(u64, bool)> {
        let &Rules { all, automatic, unfiltered, always, .. } = rules;
        if self.options.annotations {
            if forced || always {
                return Some((all, true));
            }
            if !unfiltered {
                return self.filtered(call.k, rules, call.args, call.nodes.is_some());
            }
        }
        Some((automatic, automatic == all && all != 0))
    }

    /// [`Evaluator::requested`] for a callee with filters.
    fn filtered(&mut self, k: Cont, rules: &Rules, args: &[Value], are_nodes: bool) -> Option<(u64, bool)> {
        let filter = &self.source.cont(k).filter;
        if let Some(f) = filter.all
            && self.filter_holds(f, args, are_nodes)?
        {
            return Some((rules.all, true));
        }
        let mut mask = rules.automatic;
        for (i, f) in filter.params.iter().enumerate().take(64).skip(1) {
            if let Some(f) = f.filter(|_| mask >> i & 1 == 0)
                && self.filter_holds(f, args, are_nodes)?
            {
                mask |= 1 << i;
            }
        }
        Some((mask, mask == rules.all && rules.all != 0))
    }

    /// Parameters that are specialized only because functions are in them.
    fn unasked(&self, k: Cont) -> u64 {
        let filters = &self.source.cont(k).filter.params;
        let asked =
            filters.iter().take(64).enumerate().filter(|(_, f)| f.is_some()).fold(0, |all, (i, _)| all | 1 << i);
        self.facts.automatic[k] & !asked
    }

    /// Whether a filter is true. `None`: the arguments have to be nodes; `are_nodes` if they are.
    pub(super) fn filter_holds(&mut self, f: Val, args: &[Value], are_nodes: bool) -> Option<bool> {
        Some(self.filter_value(f, args, are_nodes)? == Value::Lit(1))
    }

    /// A filter's value with the arguments substituted. `None`: it depends on more than numbers and what is known, so that
    /// the arguments have to be nodes. Filters are as deep as their source, which is limited.
    fn filter_value(&mut self, f: Val, args: &[Value], are_nodes: bool) -> Option<Value> {
        let source = self.source;
        let is_number = |v: Value| matches!(v, Value::Lit(_));
        let op = match source.node(f) {
            Node::Lit(bits) => return Some(Value::Lit(bits)),
            Node::Param(_, i) => return Some(args[i as usize]).filter(|&v| are_nodes || is_number(v)),
            Node::Op(op) => op,
            _ if are_nodes => return Some(Value::node(self.value(f))),
            _ => return None,
        };
        if op == Op::Known {
            let v = match source.node(source.args(f)[0]) {
                Node::Param(_, i) => args[i as usize],
                _ => self.filter_value(source.args(f)[0], args, are_nodes)?,
            };
            return Some(Value::Lit(self.is_value_known(v) as u64));
        }
        let mut operands: SmallVec<[Option<Value>; 3]> = SmallVec::new();
        for &a in source.args(f) {
            operands.push(self.filter_value(a, args, are_nodes));
        }
        let prim = source.args(f).first().and_then(|&a| source.prim(a));
        if let Some(bits) = prim.and_then(|prim| filter_number(op, prim, &operands)) {
            return Some(Value::Lit(bits));
        }
        if !are_nodes {
            return None;
        }
        let mut nodes: SmallVec<[Val; 3]> = SmallVec::new();
        for (&a, v) in source.args(f).iter().zip(operands) {
            nodes.push(self.node_of(v?, source.ty(a)));
        }
        let v = self.make(op, f, &nodes);
        Some(self.simple_value(v))
    }

    // Hints and earlier calls.

    /// Leaves out parameters that drift, or of which there would be too many copies.
    fn follow_hints(&mut self, k: Cont, nodes: Nodes, plan: &mut Plan) {
        let shared = plan.mask & self.shared(k, nodes.args, plan.reasons.forced);
        if shared != 0 {
            plan.reasons.shared = true;
            plan.leave_out(shared);
        }
        if !self.facts.is_recursive[k] {
            return;
        }
        // Parameters that drift once the first ones are left out were noted with the mask that remained.
        loop {
            let drift = self.hinted_drift((k, plan.mask), nodes.args) & plan.mask;
            if drift == 0 {
                return;
            }
            plan.reasons.drift |= drift;
            plan.leave_out(drift);
        }
    }

    /// A recursive call beside the earlier ones on the way, unless it is another unfold in this segment: parameters that
    /// drift are left out, an unfold that repeats one becomes a knot.
    fn compare_with_earlier(&mut self, k: Cont, nodes: Nodes, plan: &mut Plan, site: &mut Site) {
        let Nodes { free, args } = nodes;
        if plan.mask != 0 && (plan.full || !self.is_known_stub(k, plan.mask, free, args)) {
            let unasked = if plan.reasons.asked { 0 } else { plan.mask & self.unasked(k) };
            let drift = self.drift(k, (plan.mask, unasked), free, args, site);
            if drift != 0 {
                self.note_drift((k, plan.mask), args, drift);
                self.hints.drifts[k] = true;
                let size = self.size();
                self.budget.note_found(size);
                plan.reasons.drift |= drift;
                plan.leave_out(drift);
            }
        }
        if plan.full {
            let knot = (k, free.clone(), args[1..].into());
            if self.history.knots.contains(&knot) || self.history.repeats(k, free, args, site) {
                plan.reasons.knot = true;
                (plan.mask, plan.full) = (self.rules(k).all, false);
                self.history.knots.insert(knot);
            } else {
                site.past.records = Some(self.record(k, free, args, (site.segment, false), site.past.records));
            }
        } else if self.needs_frame(k, plan.mask, free, args) {
            let ret = 1 << (args.len() - 1);
            self.note_drift((k, plan.mask), args, ret);
            plan.mask &= !ret;
        }
    }

    // Whether it is the only call.

    /// Whether no other call of the stub can come, so that going on in its body copies nothing. A closure without a
    /// node is in no other code.
    #[inline(always)]
    fn is_linear(&mut self, call: &Call, stub: Callee, mask: u64) -> bool {
        let functions = call.rules.functions & !mask;
        let has_functions = functions != 0 || call.args.len() > 64;
        match stub {
            _ if call.rules.is_recursive => false,
            Callee::Made(..) | Callee::Plain(..) if mask != 0 => false,
            Callee::Made(..) if self.order.is_done() && !has_functions => true,
            _ => {
                let Some(rank) = self.rank_of_unasked(stub, call.frame, mask) else { return false };
                self.order.is_first((rank.0, rank.1, self.facts.postorder[call.k]))
                    && (!has_functions || !self.may_be_held(call, stub, rank, functions))
            }
        }
    }

    /// The rank of a stub, unless code asked for it before.
    fn rank_of_unasked(&mut self, stub: Callee, frame: &[Value], mask: u64) -> Option<(u32, u32)> {
        match stub {
            Callee::Made(_, slots) => {
                let mut rank = (0, 0);
                for &slot in slots {
                    let (birth, height) = self.rank_of(frame[slot as usize]);
                    rank = (rank.0.max(birth), rank.1.max(height));
                }
                Some((rank.0, rank.1 + 1))
            }
            Callee::Plain(_, c) => Some(self.plain.all[c.idx()].rank),
            Callee::Stub(s) => {
                let stub = &self.stubs[s];
                let is_unasked = stub.mask == mask && !stub.queued && stub.state == State::New && !stub.escaped;
                is_unasked.then_some(stub.rank)
            }
        }
    }

    /// Whether a function among the remaining arguments may hold the stub, which has this rank, so that another call of it may come.
    fn may_be_held(&mut self, call: &Call, stub: Callee, rank: (u32, u32), functions: u64) -> bool {
        let is_top_level = self.facts.nest.free(call.k).is_empty();
        let mut held: SmallVec<[Val; 8]> = SmallVec::new();
        for (i, &arg) in call.args.iter().enumerate().skip(1) {
            let has_function = match i {
                0..64 => functions >> i & 1 == 1,
                _ => self.source.types.has_function(self.source.ty(self.source.param(call.k, i))),
            };
            if !has_function {
                continue;
            }
            let of_arg = match arg {
                Value::Lit(_) => continue,
                Value::Closure(c) | Value::Parts(c) => self.plain.all[c.idx()].rank,
                Value::Node(v) => match (self.stub_of_val(v.val()), self.dst.as_op(v.val())) {
                    (Some(s), _) => self.stubs[s].rank,
                    (None, Some(Op::Struct | Op::Tuple)) => self.rank(v.val()),
                    (None, Some(_)) => return true,
                    (None, None) => continue,
                },
                Value::Place(..) => return true,
            };
            match arg {
                _ if is_top_level => return true,
                _ if !may_hold(of_arg, rank) => {}
                Value::Node(v) => held.push(v.val()),
                _ => return true,
            }
        }
        !held.is_empty() && self.is_held(stub, rank, held)
    }

    /// Whether a stub of this rank is among the values, or what they hold. Functions that are unknown hold no stub that
    /// code has not asked for.
    fn is_held(&mut self, stub: Callee, rank: (u32, u32), mut work: SmallVec<[Val; 8]>) -> bool {
        let Callee::Stub(stub) = stub else { return true };
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            self.budget.pay(1);
            if seen.len() > MAX_SEARCHED {
                return true;
            }
            let parts: &[Val] = match (self.stub_of_val(v), self.dst.as_op(v)) {
                (Some(s), _) if s == stub => return true,
                // A closure is made after those it captures.
                (Some(s), _) if s < stub || !may_hold(self.stubs[s].rank, rank) => continue,
                (Some(s), _) => &self.stubs[s].vals,
                (None, Some(Op::Struct | Op::Tuple)) => self.dst.args(v),
                (None, Some(_)) if self.dst.types.has_function(self.dst.ty(v)) => return true,
                (None, _) => continue,
            };
            work.extend(parts.iter().copied().filter(|&v| self.dst.types.has_function(self.dst.ty(v))));
        }
        false
    }
}

/// Whether a value of rank `holder` may hold a stub of rank `held`: it is no older, and higher.
fn may_hold(holder: (u32, u32), held: (u32, u32)) -> bool {
    holder.0 >= held.0 && holder.1 > held.1
}

/// The value of an operation in a filter if the operands that it depends on are numbers.
fn filter_number(op: Op, prim: Prim, operands: &[Option<Value>]) -> Option<u64> {
    let number = |i: usize| match operands.get(i) {
        Some(Some(Value::Lit(bits))) => Some(*bits),
        _ => None,
    };
    let a = number(0)?;
    match op {
        Op::And if prim == Prim::Bool && a == 0 => Some(0),
        Op::Or if prim == Prim::Bool && a == 1 => Some(1),
        Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul => eval_arith(op, prim, a, number(1)?).map(|r| r.0),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => Some(eval_comparison(op, prim, a, number(1)?) as u64),
        _ => None,
    }
}
