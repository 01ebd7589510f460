//! The history of the current path: functions with loops that were entered, by `@@` or not, and earlier calls of
//! recursive continuations.
//!
//! **Why evaluation ends.** Budgets (`budget.rs`) end it in any case; this is why they are usually not spent. The
//! source has finitely many continuations. An infinite path reaches one of them again and again, and never with values
//! that it had before, since their stub is memoized. Its calls are on the path as records, and each is compared with
//! earlier ones: one in `2^n` looks back over `2^(n + 1)` records, so that calls of any period meet. Numbers may differ
//! from call to call where a filter asks for them: the program counts. Any other difference is *drift*. It makes a
//! parameter general in the next round, for the calls of that continuation with arguments of these kinds in that unit.
//! There are finitely many such combinations, and none is made general twice.
//!
//! Two rules remove records from the path, and keep those that the argument above needs:
//!
//! - A block that is built again is no deeper recursion ([`Evaluator::before_first_build`]). Its values are those of
//!   the first build. It assumes less of memory than before, which can happen only finitely often.
//! - A call that was left by any exit is over ([`Evaluator::note_returned`]). Only records that are younger than the
//!   exit's stub are removed. A path that leaves by one stub again and again has reached memoized code. If it is
//!   another stub each time, the code that makes these stubs recurs, and has older records.

use super::state::{Past, Site, State, StubId};
use super::{Evaluator, View};
use crate::facts::{is_function, is_return};
use crate::whistle::{self, Change};
use nyala_base::{SideTable, Span};
use nyala_ir::{Cont, Val};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::rc::Rc;

/// Limit on the values that are searched for continuations by which a call may be left.
const MAX_SEARCHED: usize = 1000;

/// The record of one unfolded call or one residual function, for comparison with later calls.
struct Record {
    cont: Cont,
    free: Rc<[Val]>,
    /// The arguments by parameter, `mem` included, which is not compared.
    args: Box<[Val]>,
    segment: u32,
    /// Drifting parameters were left out of the specialization.
    is_general: bool,
    /// The number of earlier records on its path.
    depth: u32,
    next: Option<u32>,
}

/// States that the records from `first` to `last` that are on the path belong to calls that have returned.
struct Returned {
    first: u32,
    last: u32,
    next: Option<u32>,
}

/// States that a function with loops was entered, by `@@` or otherwise.
struct Entered {
    cont: Cont,
    unfold: bool,
    next: Option<u32>,
}

/// A recursive continuation, its free values, its arguments without `mem`.
type Knot = (Cont, Rc<[Val]>, Box<[Val]>);

/// The history of all paths. A [`Past`] selects that of one path.
#[derive(Default)]
pub(super) struct History {
    records: Vec<Record>,
    returned: Vec<Returned>,
    entered: Vec<Entered>,
    /// The segment of the newest record of each continuation.
    last_segment: SideTable<Cont, u32>,
    pub knots: FxHashSet<Knot>,
}

impl History {
    pub fn n_records(&self) -> u32 {
        self.records.len() as u32
    }

    /// Whether the continuation has a record in the current segment.
    #[inline]
    pub fn is_recorded(&self, k: Cont, site: &Site) -> bool {
        self.last_segment[k] == site.segment
    }

    fn add(&mut self, record: Record) -> u32 {
        self.last_segment[record.cont] = record.segment;
        self.records.push(record);
        self.records.len() as u32 - 1
    }

    /// The number of records on the path that ends with the record `last`.
    fn depth(&self, last: Option<u32>) -> u32 {
        last.map_or(0, |i| self.records[i as usize].depth + 1)
    }

    /// The records on a path, the newest first.
    fn path(&self, mut at: Option<u32>) -> impl Iterator<Item = (u32, &Record)> {
        std::iter::from_fn(move || {
            let i = at?;
            let record = &self.records[i as usize];
            at = record.next;
            Some((i, record))
        })
    }

    /// The records of a continuation among the newest `n` records. Without `all`, only those since the last generalized
    /// call.
    fn ancestors(&self, k: Cont, site: &Site, all: bool, n: usize) -> impl Iterator<Item = (u32, &Record)> {
        let path = self.path(site.past.records).take(n).take_while(move |(_, r)| all || !r.is_general);
        path.filter(move |(_, r)| r.cont == k && r.segment != site.segment)
    }

    /// The predecessor of a record on a path. `None` if the record is not on the path.
    fn before(&self, record: u32, way: Option<u32>) -> Option<Option<u32>> {
        let newest_first = self.path(way).take_while(|&(i, _)| i >= record);
        newest_first.last().filter(|&(i, _)| i == record).map(|(_, r)| r.next)
    }

    pub fn repeats(&self, k: Cont, free: &[Val], args: &[Val], site: &Site) -> bool {
        self.ancestors(k, site, true, whistle::MAX_RECORDS).any(|(_, r)| *r.free == *free && r.args[1..] == args[1..])
    }

    /// Notes that the records from `first` to the last one on the path belong to calls that have returned.
    fn end_calls(&mut self, first: u32, past: &mut Past) {
        let Some(last) = past.records else { return };
        let mut next = past.returned;
        while let Some(i) = next
            && self.returned[i as usize].first >= first
        {
            next = self.returned[i as usize].next;
        }
        self.returned.push(Returned { first, last, next });
        past.returned = Some(self.returned.len() as u32 - 1);
    }

    fn is_over(&self, record: u32, site: &Site) -> bool {
        let mut at = site.past.returned;
        for _ in 0..whistle::MAX_RECORDS {
            let Some(i) = at else { return false };
            let Returned { first, last, next } = self.returned[i as usize];
            if (first..=last).contains(&record) {
                return true;
            }
            at = next;
        }
        false
    }

    fn enter(&mut self, k: Cont, unfold: bool, past: &mut Past) {
        let is_top = |e: u32| self.entered[e as usize].cont == k && self.entered[e as usize].unfold == unfold;
        if !past.entered.is_some_and(is_top) {
            self.entered.push(Entered { cont: k, unfold, next: past.entered });
            past.entered = Some(self.entered.len() as u32 - 1);
        }
    }

    /// Whether a function was entered by `@@` when it was entered last.
    fn is_unfolded(&self, function: Cont, past: &Past) -> bool {
        let mut at = past.entered;
        for _ in 0..whistle::MAX_RECORDS {
            let Some(i) = at else { return false };
            let entered = &self.entered[i as usize];
            if entered.cont == function {
                return entered.unfold;
            }
            at = entered.next;
        }
        false
    }

    /// Frees the memory that only evaluation needs.
    pub fn forget(&mut self) {
        (self.knots, self.records) = (FxHashSet::default(), Vec::new());
    }
}

impl Evaluator<'_> {
    // Loops of functions called by `@@`.

    pub(super) fn note_entered(&mut self, k: Cont, unfold: bool, site: &mut Site) {
        if self.facts.has_loop[k] {
            self.history.enter(k, unfold, &mut site.past);
        }
    }

    /// Whether `k` is the header of a loop in a function that was entered by `@@` last.
    pub(super) fn is_unfolded_loop(&self, k: Cont, site: &Site) -> bool {
        let function = self.facts.loop_of[k].filter(|_| self.options.annotations);
        function.is_some_and(|function| self.history.is_unfolded(function, &site.past))
    }

    // Records of recursive calls.

    pub(super) fn record(
        &mut self,
        cont: Cont,
        free: &Rc<[Val]>,
        args: &[Val],
        (segment, is_general): (u32, bool),
        next: Option<u32>,
    ) -> u32 {
        free.iter().chain(args).for_each(|&v| self.mark_exits(v));
        let depth = self.history.depth(next);
        self.history.add(Record { cont, free: free.clone(), args: args.into(), segment, is_general, depth, next })
    }

    pub(super) fn is_known_stub(&self, k: Cont, mask: u64, free: &[Val], args: &[Val]) -> bool {
        let masked = (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1).map(|i| args[i]);
        let vals: SmallVec<[Val; 16]> = free.iter().copied().chain(masked).collect();
        let first = self.stubs.first(k, mask, &vals, Span::NO_CALL).map(|s| &self.stubs[s]);
        first.is_some_and(|stub| stub.state != State::New || stub.queued)
    }

    /// The parameters in `mask` that change without end, judging by the ancestors. A generalized function is built
    /// once. Calls in it recur only if that function drifts further, which is found at its own calls; so calls in it
    /// are not compared with those around it. Parameters in `unasked` are specialized only because they contain
    /// functions.
    pub(super) fn drift(&self, k: Cont, (mask, unasked): (u64, u64), free: &[Val], args: &[Val], site: &Site) -> u64 {
        // Known numbers may recur after many calls. Every other record on the path looks back over four records, every
        // fourth one over eight, and so on. That is some dozens of comparisons for each call, whatever the period.
        let depth = self.history.depth(site.past.records);
        let far = 2usize << depth.trailing_zeros().min(whistle::FARTHEST);
        let n_records = far.max(whistle::MAX_RECORDS);
        let has_same_numbers = |record: &Record| {
            let mut pairs = record.args.iter().zip(args);
            pairs.all(|(&old, &new)| old == new || self.dst.as_lit(old).is_none())
        };
        let ancestors = self.history.ancestors(k, site, self.hints.drifts[k], n_records).enumerate();
        let view = self.view();
        // Parameters in which only numbers beside functions have changed since all of the near ancestors.
        let (mut counting, mut n_counting) = (unasked, 0);
        let is_near = |n: usize| n < whistle::MAX_ANCESTORS;
        for (n, (i, record)) in ancestors.take_while(|&(n, _)| is_near(n) || n < far) {
            let is_other = || *record.free != *free || !is_near(n) && !has_same_numbers(record);
            if is_other() || self.history.is_over(i, site) {
                continue;
            }
            let (mut drift, mut counts) = (0, 0);
            let mut progress = false;
            self.budget.pay(args.len());
            for i in (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1) {
                let mut change = whistle::compare(view, record.args[i], args[i], true);
                if change == Change::Progress && unasked >> i & 1 == 1 {
                    // No filter asks for the numbers.
                    change = whistle::compare(view, record.args[i], args[i], false);
                    counts |= u64::from(change == Change::Same) << i;
                }
                match change {
                    Change::Same => {}
                    Change::Drift => drift |= 1 << i,
                    // The return continuation has grown around the old one, so that ever more is left to do after the
                    // call. A step inward, which passes another function on, does not count.
                    Change::Progress
                        if !progress
                            && i + 1 == args.len()
                            && is_return(self.source, self.source.param(k, i))
                            && whistle::contains(view, args[i], record.args[i]) =>
                    {
                        drift |= 1 << i
                    }
                    Change::Progress => progress = true,
                }
            }
            if drift != 0 && !progress {
                return drift;
            }
            if is_near(n) {
                counting &= if progress { 0 } else { counts };
                n_counting += 1;
            }
        }
        if n_counting == whistle::MAX_ANCESTORS { counting } else { 0 }
    }

    /// Where the path to a block of `s` begins if a block of `s` has been built before on that path. A block that is
    /// built again, because its assumptions about memory did not hold, is no deeper recursion.
    pub(super) fn before_first_build(&self, s: StubId, path: Option<u32>) -> Option<u32> {
        let first = self.first_like(s);
        let records = first.into_iter().flat_map(|first| self.stubs.line(first)).filter_map(|s| self.stubs[s].record);
        let mut built = records.filter_map(|record| self.history.before(record, path));
        built.next().unwrap_or(path)
    }

    /// Marks the continuations by which a call with `v` among its arguments may leave.
    fn mark_exits(&mut self, v: Val) {
        let mut work: SmallVec<[Val; 16]> = SmallVec::from_slice(&[v]);
        let mut n_seen = 0;
        while let Some(v) = work.pop() {
            n_seen += 1;
            if n_seen > MAX_SEARCHED {
                return;
            }
            let Some(s) = self.stub_of_val(v) else {
                if self.dst.types.has_function(self.dst.ty(v)) {
                    work.extend_from_slice(self.dst.args(v));
                }
                continue;
            };
            if std::mem::replace(&mut self.stubs[s].has_exits_marked, true) {
                continue;
            }
            work.extend_from_slice(&self.stubs[s].vals);
            if !is_function(self.source, self.stubs[s].source) {
                // Requests go to the stub that stands in for it.
                let mut at = Some(s);
                while let Some(s) = at {
                    self.stubs[s].is_exit = true;
                    at = self.stubs[s].alias;
                }
            }
        }
    }

    /// Notes that evaluation goes on at a stub. If earlier calls were given that stub as a continuation, the calls
    /// since the first of them are over, by whichever exit they were left. Calls that follow one another are no
    /// recursion, although the code around them may be one.
    #[inline(never)]
    pub(super) fn note_returned(&mut self, s: StubId, past: &mut Past) {
        if !self.stubs[s].is_exit {
            return;
        }
        let (reached, since) = (self.resolve(self.stubs[s].cont), self.stubs[s].n_records);
        let calls = self.history.path(past.records).take(whistle::MAX_RECORDS).take_while(|&(i, _)| i >= since);
        let calls: SmallVec<[u32; 16]> =
            calls.filter(|(_, r)| is_function(self.source, r.cont)).map(|(i, _)| i).collect();
        let height = self.stubs[s].rank.1;
        let first =
            calls.into_iter().rev().find(|&i| self.may_leave_by(&self.history.records[i as usize], reached, height));
        if let Some(first) = first {
            self.history.end_calls(first, past);
        }
    }

    /// Whether a call was given the continuation `reached`, at any depth.
    fn may_leave_by(&self, call: &Record, reached: Cont, height: u32) -> bool {
        let mut work: SmallVec<[Val; 16]> = call.free.iter().chain(call.args.iter()).copied().collect();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            self.budget.pay(1);
            let Some(s) = self.stub_of_val(v) else {
                if self.dst.types.has_function(self.dst.ty(v)) {
                    work.extend_from_slice(self.dst.args(v));
                }
                continue;
            };
            if self.resolve(self.stubs[s].cont) == reached {
                return true;
            }
            // A stub that captures `reached` has a greater height.
            if self.stubs[s].rank.1 > height && seen.len() < MAX_SEARCHED && seen.insert(v) {
                work.extend_from_slice(&self.stubs[s].vals);
            }
        }
        false
    }

    /// The calls around the last call of a recursive continuation, the innermost first. Only the first of several calls
    /// in one file is listed. The calls are the places where its return continuation and its function arguments were
    /// passed on, then the same for the functions that these captured.
    pub(super) fn calls_around(&self, k: Cont) -> Vec<Span> {
        let Some(record) = self.history.records.iter().rev().find(|r| r.cont == k) else { return Vec::new() };
        // By continuation of the source, a call that passes it as an argument.
        let mut passed: SideTable<Cont, Span> = SideTable::with_default(Span::NONE);
        for &k in &self.facts.nest.conts {
            let Some(body) = self.source.body(k) else { continue };
            body.args.iter().filter_map(|&a| self.source.as_cont(a)).for_each(|arg| passed[arg] = body.origin);
        }
        let view: View = self.view();
        let mut calls: Vec<Span> = Vec::new();
        let mut work: VecDeque<Val> = record.args.iter().rev().chain(record.free.iter()).copied().collect();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop_front() {
            let Some((k, vals)) = view.captured(v).filter(|_| seen.insert(v)) else { continue };
            if !passed[k].is_none() && calls.iter().all(|c| c.file != passed[k].file) {
                calls.push(passed[k]);
            }
            let free = self.facts.nest.free(k).iter().zip(vals);
            work.extend(free.filter(|(f, _)| self.source.types.has_function(self.source.ty(**f))).map(|(_, &v)| v));
        }
        calls
    }
}
