//! The evaluator proper: its state, and the loop over its work list. Each part has one subject, and a file of its own.
//!
//! | | |
//! |---|---|
//! | what goes on in bodies | `machine` on `code`, with values that are no nodes (`plain`); nodes (`values`); calls computed as a whole (`computed`) |
//! | what becomes of a call | `call`; `run` for those by `@` and `$`; how residual blocks end: `residual`; whether lanes meet behind it: `meeting` |
//! | closures and blocks | `state`; in what order they are built: `stubs`; what they know of memory: `kept` |
//! | what is asked about other calls | `history`, `hints`, `sharing` |
//! | what it may take, what is told of it | `budget`, `unrolled`, `explain` |
//!
//! Memory is not part of a memo key. A stub that is requested from several places knows the contents that all of them
//! know. A recursive stub knows the contents that it does not write. An escaped stub knows nothing of memory.

mod budget;
mod call;
mod code;
mod computed;
mod explain;
mod hints;
mod history;
mod kept;
mod machine;
mod meeting;
mod plain;
mod repeated;
mod residual;
mod run;
mod sharing;
mod state;
mod stubs;
mod unrolled;
mod values;

use crate::Options;
use crate::facts::Facts;
use crate::memory;
use crate::record::Record as Explained;
use crate::whistle::{CallKey, Diverged, Hints};
use nyala_base::{CallId, Diagnostic, SideTable, Span};
use nyala_ir::{Cont, Linkage, Val, World};
use rustc_hash::FxHashSet;
use state::{Mode, NO_PAST, RunCall, StubId, Stubs};
use std::rc::Rc;

pub use state::{Stub, View};

pub struct Evaluator<'a> {
    source: &'a World,
    facts: &'a Facts,
    options: Options,
    hints: hints::Advice<'a>,
    sources: hints::Sources,
    /// The residual graph.
    pub dst: World,
    stubs: Stubs,
    order: stubs::Order,
    history: history::History,
    budget: budget::Budget,
    /// See `kept.rs`.
    writes_of: kept::WritesOf,
    run_calls: Vec<RunCall>,
    /// The continuation being evaluated, and the mode of its evaluation.
    current: (Cont, Mode),
    /// The unfolded call whose code is being evaluated.
    call: CallId,
    segments: u32,
    /// By residual block, the number of bodies that it has had so far.
    versions: SideTable<Cont, u32>,
    cache: Cache,
    computer: computed::Computer<'a>,
    plain: plain::Plain,
    meetings: meeting::Meetings,
    repeated: repeated::Repeated,
    unrolled: unrolled::Unrolled,
    reports: Vec<Diagnostic>,
    /// The decisions so far, if a record is asked for.
    record: Option<Box<Explained>>,
}

/// Data that is computed once and kept for speed.
#[derive(Default)]
struct Cache {
    codes: SideTable<Cont, Option<Rc<code::Code>>>,
    /// Residual values of source values that do not depend on where they are used.
    literals: SideTable<Val, Option<Val>>,
    constants: memory::Constants,
    shapes: memory::Shapes,
    /// Frames that are not in use.
    frames: [Vec<plain::Value>; 2],
}

impl<'a> Evaluator<'a> {
    /// An evaluator for the export `root`, or for several of which it is the first.
    /// `may_start_again` says that another round can use what this one finds, so that this one may end early.
    pub fn new(
        source: &'a World,
        facts: &'a Facts,
        hints: &'a Hints,
        options: Options,
        root: Cont,
        may_start_again: bool,
    ) -> Self {
        Evaluator {
            source,
            facts,
            record: options.record.then(Default::default),
            hints: hints::Advice::new(hints),
            sources: hints::Sources::default(),
            dst: World::like(source),
            stubs: Stubs::default(),
            order: stubs::Order::default(),
            history: history::History::default(),
            budget: budget::Budget::new(root, options.budget, options.units, may_start_again),
            options,
            writes_of: kept::WritesOf::default(),
            run_calls: Vec::new(),
            current: (Cont(0), Mode::Filters),
            call: Span::NO_CALL,
            segments: 0,
            versions: SideTable::default(),
            cache: Cache::default(),
            computer: computed::Computer::default(),
            plain: plain::Plain::default(),
            meetings: meeting::Meetings::default(),
            repeated: repeated::Repeated::default(),
            unrolled: unrolled::Unrolled::default(),
            reports: Vec::new(),
        }
    }

    pub fn reductions(&self) -> u64 {
        self.budget.reductions
    }
    /// The numbers of continuations and values of the residual graph.
    pub fn size_of_graph(&self) -> (usize, usize) {
        (self.dst.n_conts(), self.dst.n_vals())
    }
    pub fn take_noted(&mut self) -> Hints {
        std::mem::take(&mut self.hints.noted)
    }
    pub fn take_reports(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.reports)
    }

    pub fn source_linkage(&self, root: Cont) -> Linkage {
        (*self.source.cont(root).linkage).clone()
    }

    fn view(&self) -> View<'_> {
        View { dst: &self.dst, stubs: &self.stubs }
    }

    /// Notes calls that are the only ones of their callee, so that the next round unfolds them (`001` 4.6). `n_uses`
    /// returns the number of residual uses of a continuation.
    pub fn note_single_calls(&mut self, n_uses: impl Fn(Cont) -> u32) {
        let takes_function = |&p: &Val| self.source.types.has_function(self.source.ty(p));
        let mut single: Vec<(Cont, CallKey)> = Vec::new();
        let mut several: FxHashSet<(Cont, CallKey)> = FxHashSet::default();
        for stub in self.stubs.iter() {
            let k = stub.source;
            let n = n_uses(stub.cont);
            if n == 0 && !stub.was_called
                || self.facts.is_recursive[k]
                || !self.source.params(k).iter().any(takes_function)
            {
                continue;
            }
            match n {
                0 | 1 => single.push((self.budget.of(stub.unit).name.0, (k, stub.mask))),
                _ => drop(several.insert((self.budget.of(stub.unit).name.0, (k, stub.mask)))),
            }
        }
        for (unit, key) in single {
            if !several.contains(&(unit, key)) {
                self.hints.noted.note_inline(unit, key);
            }
        }
    }

    #[inline]
    fn stub_of_val(&self, v: Val) -> Option<StubId> {
        self.stubs.of_val(&self.dst, v)
    }

    /// The residual continuation to use in place of `c`, which may have been consumed.
    pub fn resolve(&self, c: Cont) -> Cont {
        self.stubs.resolve(c)
    }

    /// Frees the memory that only evaluation needs.
    pub fn forget_code(&mut self) {
        self.cache = Cache::default();
        self.plain = plain::Plain::default();
        self.repeated = repeated::Repeated::default();
        self.history.forget();
    }

    /// Evaluates roots.
    pub fn run(&mut self, roots: &[Cont]) -> Result<(), Box<Diverged>> {
        self.copy_globals();
        for &root in roots {
            let s = self.stub(root, 0, Rc::new([]), Span::NO_CALL);
            self.escape_stub(s, NO_PAST);
        }
        let mut left: Option<Box<Diverged>> = None;
        loop {
            while let Some(s) = self.order.next() {
                let Err(diverged) = self.decide(s) else { continue };
                // Other units may still find hints for the next round, which then need not find them again.
                self.plain.clear();
                self.repeated.close();
                let unit = self.budget.of_mut(self.budget.unit);
                (unit.is_left, unit.is_spent) = (true, !diverged.is_early);
                if diverged.is_total {
                    return Err(diverged);
                }
                if left.as_ref().is_none_or(|left| left.is_early && !diverged.is_early) {
                    left = Some(diverged);
                }
            }
            if !self.escape_globals() {
                return left.map_or(Ok(()), Err);
            }
        }
    }

    /// The residual continuation of a root.
    pub fn root(&self, root: Cont) -> Cont {
        let s = self.stubs.first(root, 0, &[], Span::NO_CALL).expect("roots have stubs");
        self.stubs.resolve(self.stubs[s].cont)
    }
}
