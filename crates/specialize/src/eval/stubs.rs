//! Stubs: made on demand and memoized, requested by residual code, and built in an order that keeps residual programs
//! linear (`docs/design/specializer.md`, Order of the work list).

use super::budget::STEPS_OF_OBJECT;
use super::memory;
use super::state::{Entry, NO_PAST, Past, Request, RequestKind, Site, State, Stub, StubId};
use super::{Diverged, Evaluator, View};
use crate::memory::Memory;
use nyala_base::{CallId, SideTable, Span};
use nyala_ir::{Cont, Effect, Node, Op, TyKind, Val};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The work list, and the data that determines its order.
#[derive(Default)]
pub(super) struct Order {
    queue: BinaryHeap<(Rank, StubId)>,
    /// By residual value: the birth of the youngest parameter in it, and its height, which is the nesting of stubs in
    /// it.
    ranks: SideTable<Val, Option<(u32, u32)>>,
    births: u32,
}

/// Birth, height, and position in the source's postorder; the greatest rank is next.
type Rank = (u32, u32, u32);

impl Order {
    pub fn next(&mut self) -> Option<StubId> {
        self.queue.pop().map(|(_, s)| s)
    }

    pub fn is_done(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether a stub of this rank would be next.
    pub fn is_first(&self, rank: Rank) -> bool {
        self.queue.peek().is_none_or(|&(top, _)| rank > top)
    }

    /// Gives a new residual parameter the current birth, which it shares with others.
    fn bear(&mut self, v: Val) {
        self.ranks[v] = Some((self.births, 0));
    }

    /// The birth of the youngest residual parameter in a value, and the value's height.
    fn rank(&mut self, View { dst, stubs }: View, v: Val) -> (u32, u32) {
        if let Some(rank) = self.ranks[v] {
            return rank;
        }
        let mut stack: SmallVec<[(Val, bool); 16]> = SmallVec::from_slice(&[(v, false)]);
        while let Some((v, done)) = stack.pop() {
            if self.ranks[v].is_some() {
                continue;
            }
            if let Some(s) = stubs.of_val(dst, v) {
                self.ranks[v] = Some(stubs[s].rank);
            } else if done || dst.args(v).is_empty() {
                let ranks = dst.args(v).iter().map(|&a| self.ranks[a].unwrap_or((0, 0)));
                self.ranks[v] = Some(ranks.fold((0, 0), |r, s| (r.0.max(s.0), r.1.max(s.1))));
            } else {
                stack.push((v, true));
                stack.extend(dst.args(v).iter().map(|&a| (a, false)));
            }
        }
        self.ranks[v].unwrap_or((0, 0))
    }
}

impl Evaluator<'_> {
    // Stubs.

    /// Returns a *ticket*: a stand-in for the return continuation of a call of a function with operations across lanes.
    /// It differs from the tickets of other calls with that return continuation. If such calls shared code, lanes would
    /// meet in it that do not meet in the source.
    pub(super) fn ticket(&mut self, ret: StubId) -> Val {
        let call = self.current.0;
        // A function that calls itself in tail position has one ticket for each such call.
        let mut at = ret;
        while let Some(&(of, stands_for)) = self.stubs.tickets.of.get(&at) {
            if of == call {
                return self.dst.cont_val(self.stubs[at].cont);
            }
            at = stands_for;
        }
        let ticket = match self.stubs.tickets.by.get(&(call, ret)) {
            Some(&ticket) => ticket,
            None => {
                let ticket = self.again(ret);
                (self.stubs[ticket].state, self.stubs[ticket].alias) = (State::Consumed, Some(ret));
                self.stubs.tickets.by.insert((call, ret), ticket);
                self.stubs.tickets.of.insert(ticket, (call, ret));
                ticket
            }
        };
        self.dst.cont_val(self.stubs[ticket].cont)
    }

    /// The stub of this source, mask and values; `call` is what made it, if it is new.
    pub(super) fn stub(&mut self, source: Cont, mask: u64, vals: Rc<[Val]>, call: CallId) -> StubId {
        let of_call = self.told(source, call);
        if let Some(s) = self.stubs.first(source, mask, &vals, of_call) {
            return s;
        }
        let s = self.fresh_stub(source, mask, vals, call);
        self.stubs.note_first(s, of_call);
        s
    }

    /// The call that a copy of a continuation is for: blocks that lead to a panic tell the calls that led there.
    fn told(&self, source: Cont, call: CallId) -> CallId {
        if self.facts.tells_calls[source] { call } else { Span::NO_CALL }
    }

    /// The first stub with the same source, mask and values as `s`.
    pub(super) fn first_like(&self, s: StubId) -> Option<StubId> {
        let stub = &self.stubs[s];
        self.stubs.first(stub.source, stub.mask, &stub.vals, self.told(stub.source, stub.call))
    }

    pub(super) fn fresh_stub(&mut self, source: Cont, mask: u64, vals: Rc<[Val]>, call: CallId) -> StubId {
        let ty = if mask == 0 {
            self.source.cont(source).ty
        } else {
            let kept: Vec<_> =
                self.unmasked(source, mask).map(|i| self.source.ty(self.source.param(source, i))).collect();
            self.dst.types.cn(&kept)
        };
        let cont = self.dst.reserve(ty);
        let (mut birth, mut height) = (0, 0);
        let mut holds_address = false;
        for &v in vals.iter() {
            holds_address |= self.may_hold_address(v);
            let (b, h) = self.rank(v);
            birth = birth.max(b);
            height = height.max(h);
        }
        let unit = self.unit_of(source, mask, vals.is_empty());
        if let Some(record) = &mut self.record {
            record.make(cont);
        }
        self.stubs.add(Stub {
            source,
            mask,
            vals,
            cont,
            state: State::New,
            escaped: false,
            queued: false,
            requests: Vec::new(),
            past: NO_PAST,
            resume: None,
            made: self.budget.reductions,
            alias: None,
            assumed: None,
            rank: (birth, height + 1),
            is_exit: false,
            has_exits_marked: false,
            unit,
            call,
            n_records: self.history.n_records(),
            record: None,
            holds_address,
            was_called: false,
            is_general: false,
        })
    }

    /// The stub that a new request of `first` must use.
    pub(super) fn live(&mut self, first: StubId) -> StubId {
        let mut s = first;
        while self.stubs[s].state == State::Consumed {
            s = match self.stubs[s].alias {
                Some(alias) => alias,
                None => {
                    // Lanes that come here later would not meet those that came before.
                    let (unit, k) = (self.stubs[s].unit, self.stubs[s].source);
                    let function = self.budget.of(unit).name.0;
                    if self.lanes_meet_in(s)
                        && !self.hints.earlier.is_meeting(function, k)
                        && self.hints.noted.note_meeting(function, k)
                        && unit == self.budget.unit
                    {
                        let size = self.size();
                        self.budget.note_found(size);
                    }
                    let fresh = self.again(s);
                    self.stubs[s].alias = Some(fresh);
                    fresh
                }
            };
        }
        // Shortens the chain of stand-ins for the next request, but keeps the blocks with assumptions in it.
        let mut at = first;
        while at != s
            && let Some(next) = self.stubs[at].alias
        {
            if self.stubs[at].assumed.is_none() && self.stubs[next].assumed.is_none() {
                self.stubs[at].alias = Some(s);
            }
            at = next;
        }
        s
    }

    /// A fresh stub with the same source, mask and values.
    fn again(&mut self, s: StubId) -> StubId {
        let Stub { source, mask, unit, call, resume, made, is_exit, has_exits_marked, n_records, is_general, .. } =
            self.stubs[s];
        let vals = self.stubs[s].vals.clone();
        let fresh = self.fresh_stub(source, mask, vals, call);
        let stub = &mut self.stubs[fresh];
        (stub.unit, stub.resume, stub.made, stub.is_general) = (unit, resume, made, is_general);
        (stub.is_exit, stub.has_exits_marked, stub.n_records) = (is_exit, has_exits_marked, n_records);
        if let Some(record) = &mut self.record {
            record.make_again(self.stubs[s].cont, self.stubs[fresh].cont);
        }
        fresh
    }

    pub(super) fn unmasked(&self, k: Cont, mask: u64) -> impl Iterator<Item = usize> + use<> {
        (0..self.source.params(k).len()).filter(move |&i| i >= 64 || mask >> i & 1 == 0)
    }

    pub(super) fn rank(&mut self, v: Val) -> (u32, u32) {
        self.order.rank(View { dst: &self.dst, stubs: &self.stubs }, v)
    }

    fn queue_rank(&self, s: StubId) -> (u32, u32, u32) {
        let stub = &self.stubs[s];
        (stub.rank.0, stub.rank.1, self.facts.postorder[stub.source])
    }

    pub(super) fn enqueue(&mut self, s: StubId, past: Past) {
        if !self.stubs[s].queued {
            self.stubs[s].queued = true;
            let mut past = Past { mode: self.mode_in(s, past.mode), ..past };
            self.note_returned(s, &mut past);
            self.stubs[s].past = past;
            self.order.queue.push((self.queue_rank(s), s));
        }
    }

    /// Notes that residual code uses the stub as a value.
    pub(super) fn escape_stub(&mut self, s: StubId, past: Past) {
        let s = self.live(s);
        self.stubs[s].escaped = true;
        self.enqueue(s, past);
    }

    /// Notes that residual code gets `v`. The closures in it must be built, and objects whose address it has may
    /// change. With `addresses_only`, the code that gets `v` is evaluated anyway, so that only addresses matter.
    pub(super) fn escape(&mut self, v: Val, site: &mut Site, addresses_only: bool) {
        if self.dst.types.as_prim(self.dst.ty(v)).is_some() {
            return;
        }
        let has_private = site.memory.has_private();
        if addresses_only && !has_private {
            return;
        }
        let mut work = vec![v];
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        self.budget.pay(1);
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            self.budget.pay(1);
            if let Some(s) = self.stub_of_val(v) {
                let is_new = !addresses_only && {
                    let live = self.live(s);
                    !self.stubs[live].escaped
                };
                // If the stub has escaped before, its captured values have escaped with it.
                if is_new || has_private && self.stubs[s].holds_address {
                    work.extend(self.stubs[s].vals.iter());
                }
                if is_new {
                    self.escape_stub(s, site.past);
                }
                continue;
            }
            match self.dst.types.kind(self.dst.ty(v)) {
                TyKind::Prim(_) | TyKind::Mem => {}
                TyKind::Ptr { .. } => {
                    let base = memory::base_of(&self.dst, v);
                    site.memory.escape(base);
                    if !memory::is_object(&self.dst, base) {
                        work.extend(self.dst.args(base));
                    }
                }
                _ => {
                    if self.dst.as_op(v).is_some_and(|op| op.effect() == Effect::Total) {
                        work.extend(self.dst.args(v));
                    }
                }
            }
        }
    }

    /// Whether [`Evaluator::escape`] may find an address in `v`.
    fn may_hold_address(&self, v: Val) -> bool {
        let mut work: SmallVec<[Val; 16]> = SmallVec::from_slice(&[v]);
        let mut n_seen = 0;
        while let Some(v) = work.pop() {
            n_seen += 1;
            self.budget.pay(1);
            match (self.stub_of_val(v), self.dst.types.kind(self.dst.ty(v))) {
                (Some(s), _) if self.stubs[s].holds_address => return true,
                (Some(_), _) | (None, TyKind::Prim(_) | TyKind::Mem) => {}
                (None, TyKind::Ptr { .. }) => return true,
                (None, _) if n_seen > 100 => return true,
                (None, _) => work.extend_from_slice(self.dst.args(v)),
            }
        }
        false
    }

    /// Whether a value has an address in memory that a function has made. Statics are not that: they stay in memory anyway.
    pub(super) fn has_object(&self, v: Val) -> bool {
        let mut work: SmallVec<[Val; 16]> = SmallVec::from_slice(&[v]);
        let mut n_seen = 0;
        while let Some(v) = work.pop() {
            n_seen += 1;
            self.budget.pay(1);
            match self.dst.types.kind(self.dst.ty(v)) {
                TyKind::Prim(_) | TyKind::Mem | TyKind::Cn(_) => {}
                TyKind::Ptr { .. } if self.is_made_by_function(v) => return true,
                TyKind::Ptr { .. } if !self.dst.is_op(v, Op::Select) => {}
                _ if n_seen > 100 => return true,
                _ => work.extend_from_slice(self.dst.args(v)),
            }
        }
        false
    }

    /// Whether an address is one in a slot or an allocation.
    fn is_made_by_function(&self, ptr: Val) -> bool {
        let base = memory::base_of(&self.dst, ptr);
        memory::is_object(&self.dst, base) && !matches!(self.dst.node(base), Node::Global(_))
    }

    /// Whether a recursive call may get the address of a variable of the caller. Each call of a function has variables
    /// of its own, while a loop has one set of them. If the call were specialized in its return continuation, it would
    /// become a jump back. A stored address may be one of such a variable.
    pub(super) fn needs_frame(&self, k: Cont, mask: u64, free: &[Val], args: &[Val]) -> bool {
        let Some(last) = args.len().checked_sub(1).filter(|last| *last < 64 && mask >> last & 1 == 1) else {
            return false;
        };
        if !self.facts.has_variables[k] || !matches!(self.dst.types.kind(self.dst.ty(args[last])), TyKind::Cn(_)) {
            return false;
        }
        let masked = (0..args.len()).filter(|&i| i < 64 && mask >> i & 1 == 1).map(|i| args[i]);
        let vals: SmallVec<[Val; 16]> = free.iter().copied().chain(masked).collect();
        let Some(s) = self.stubs.first(k, mask, &vals, Span::NO_CALL) else { return false };
        if self.facts.stores_variables[k] {
            return true;
        }
        // Values older than the function's own parameters came in from outside.
        let first = self.dst.params(self.stubs[s].cont).first();
        let is_own_param = |c: Cont| {
            let stub = self.stubs.of_cont(c).map(|s| &self.stubs[s]);
            stub.is_some_and(|stub| stub.source == k && stub.mask == mask)
        };
        let is_own = |base: Val| match self.dst.node(base) {
            Node::Global(_) | Node::Lit(_) | Node::Undef => false,
            Node::Param(c, _) if is_own_param(c) => false,
            _ => first.is_none_or(|&first| base > first),
        };
        let mut work: Vec<Val> = (1..last).filter(|&i| i >= 64 || mask >> i & 1 == 0).map(|i| args[i]).collect();
        while let Some(v) = work.pop() {
            let found = match (self.stub_of_val(v), self.dst.types.kind(self.dst.ty(v))) {
                (Some(s), _) => self.stubs[s].holds_address,
                (None, TyKind::Prim(_) | TyKind::Mem) => false,
                (None, TyKind::Ptr { .. }) => is_own(memory::base_of(&self.dst, v)),
                (None, _) => {
                    work.extend(self.dst.args(v));
                    false
                }
            };
            if found {
                return true;
            }
        }
        false
    }

    // Deciding what becomes of a stub.

    pub(super) fn decide(&mut self, s: StubId) -> Result<(), Box<Diverged>> {
        let unit = self.stubs[s].unit;
        if self.stubs[s].state != State::New || self.budget.of(unit).is_left {
            return Ok(());
        }
        let size = self.size();
        self.budget.enter(unit, size);
        let stub = &mut self.stubs[s];
        let k = stub.source;
        let vals = stub.vals.clone();
        let mut requests = std::mem::take(&mut stub.requests);
        let is_meeting = self.hints.earlier.is_meeting(self.budget.name().0, k);
        let general = stub.escaped || self.facts.is_recursive[k] || is_meeting;
        let n_free = self.facts.nest.free(k).len();
        let free: Rc<[Val]> = vals[..n_free].into();
        if !general
            && let [Request { kind: RequestKind::Jump { .. }, .. }] = requests[..]
            && let Some(Request { block, kind: RequestKind::Jump { args }, memory, call, .. }) = requests.pop()
        {
            self.stubs[s].state = State::Consumed;
            self.stubs[s].was_called = true;
            if let Some(record) = &mut self.record {
                record.inline(block, k);
            }
            let args = self.all_args(s, &args);
            self.segments += 1;
            let site = Site { block, segment: self.segments, past: self.stubs[s].past, memory };
            return self.evaluate(site, Entry { cont: k, call, free, args });
        }
        // Find arguments on which all requests agree, and contents of memory that all of them know.
        let kept: Vec<usize> = self.unmasked(k, self.stubs[s].mask).collect();
        let mut fixed: Vec<Option<Val>> = vec![None; kept.len()];
        let mut memory = Memory::default();
        if !general {
            for (i, slot) in fixed.iter_mut().enumerate().skip(1) {
                let mut passed = requests.iter().map(|r| match &r.kind {
                    RequestKind::Jump { args } => Some(args[i]),
                    RequestKind::Arg => None,
                });
                let first = passed.next().flatten();
                if first.is_some() && passed.all(|p| p == first) {
                    *slot = first;
                }
            }
        }
        // A function that stays a parameter may write what its closure captured, and return. A continuation does not
        // return.
        let comes_back = |ty| match self.source.types.cn_params(ty) {
            Some(params) => params.iter().any(|&p| self.source.types.has_function(p)),
            None => self.source.types.has_function(ty),
        };
        let takes_function =
            kept.iter().zip(&fixed).any(|(&i, f)| f.is_none() && comes_back(self.source.ty(self.source.param(k, i))));
        if !self.stubs[s].escaped && !takes_function {
            let states: Vec<Memory> = requests.iter().map(|r| self.memory_with_params(r, &fixed)).collect();
            let is_shared = states.iter().all(|state| states[0].is_shared_with(state));
            let n_objects: usize = states.iter().map(Memory::size).sum();
            self.budget.pay(if is_shared { 1 } else { n_objects * STEPS_OF_OBJECT });
            memory = Memory::merge(&states);
            if general {
                let may_assume = !is_meeting && self.may_assume(s);
                memory = if may_assume { self.kept(s, &memory) } else { Memory::default() };
            }
        }
        let particular = fixed.iter().any(Option::is_some) || !memory.is_empty();
        let block = if particular {
            self.stubs[s].state = State::Consumed;
            let tys: Vec<_> = kept
                .iter()
                .zip(&fixed)
                .filter(|(_, f)| f.is_none())
                .map(|(&i, _)| self.source.ty(self.source.param(k, i)))
                .collect();
            let ty = self.dst.types.cn(&tys);
            let block = self.dst.reserve(ty);
            // A callee that is inlined late may request its return continuation once more.
            if general || fixed.iter().all(Option::is_none) && self.may_assume(s) {
                self.stubs[s].assumed = Some(Box::new((memory.clone(), block)));
            }
            block
        } else {
            self.stubs[s].state = State::Built;
            self.stubs[s].cont
        };
        let data = self.source.cont(k);
        let names = data.names.keep(kept.iter().zip(&fixed).filter(|(_, f)| f.is_none()).map(|(&i, _)| i));
        let stub = &self.stubs[s];
        self.call = if stub.mask == 0 && self.is_top_level(k) { Span::NO_CALL } else { stub.call };
        self.set_origin(data.origin);
        self.dst.set_params(block, names);
        if self.record.is_some() {
            let from = requests.first().map(|r| r.block);
            self.explain_block(block, s, from, &fixed);
        }
        self.order.births += 1;
        let mut params = self.dst.params(block).to_vec().into_iter();
        let mut remaining = Vec::with_capacity(kept.len());
        for f in &fixed {
            let Some(v) = f.or_else(|| params.next()) else { continue };
            if f.is_none() {
                self.order.bear(v);
            }
            remaining.push(v);
        }
        for request in requests {
            self.connect(request, block, self.stubs[s].cont, &fixed);
        }
        let args = self.all_args(s, &remaining);
        let mut past = self.stubs[s].past;
        self.segments += 1;
        if self.facts.is_recursive[k] {
            let is_general = self.stubs[s].is_general;
            past.records = self.before_first_build(s, past.records);
            let record = self.record(k, &free, &args, (self.segments, is_general), past.records);
            past.records = Some(record);
            self.stubs[s].record = Some(record);
        }
        self.budget.add_block(unit, k);
        self.check_budget()?;
        let mut site = Site { block, segment: self.segments, past, memory };
        self.note_entered(k, false, &mut site);
        self.evaluate(site, Entry { cont: k, call: self.call, free, args })
    }

    /// The contents of memory that a block knows from a request, if arguments that are not `fixed` become parameters.
    /// Objects whose addresses are passed as parameters are no longer private there.
    fn memory_with_params(&self, request: &Request, fixed: &[Option<Val>]) -> Memory {
        let mut memory = request.memory.clone();
        let RequestKind::Jump { args } = &request.kind else { return memory };
        if !memory.has_objects() {
            return memory;
        }
        let params = args.iter().zip(fixed).skip(1).filter(|(_, f)| f.is_none());
        let mut work: Vec<Val> = params.map(|(&a, _)| a).collect();
        while let Some(v) = work.pop() {
            match self.dst.types.kind(self.dst.ty(v)) {
                TyKind::Prim(_) | TyKind::Mem | TyKind::Cn(_) => {}
                TyKind::Ptr { .. } => {
                    let base = memory::base_of(&self.dst, v);
                    memory.escape(base);
                    if !memory::is_object(&self.dst, base) {
                        work.extend(self.dst.args(base));
                    }
                }
                _ if self.dst.as_op(v).is_some_and(|op| op.effect() == Effect::Total) => {
                    work.extend(self.dst.args(v));
                }
                _ => {}
            }
        }
        memory
    }

    /// All arguments of a stub's source: the specialized ones from the stub, the others from `remaining`.
    pub(super) fn all_args(&self, s: StubId, remaining: &[Val]) -> Vec<Val> {
        let stub = &self.stubs[s];
        let mut masked = stub.vals[self.facts.nest.free(stub.source).len()..].iter();
        let mut remaining = remaining.iter();
        (0..self.source.params(stub.source).len())
            .filter_map(|i| if i < 64 && stub.mask >> i & 1 == 1 { masked.next() } else { remaining.next() })
            .copied()
            .collect()
    }
}
