//! Calls by `@` and `$`: which code is run, where a run ends, and where it goes on after a call or branch that cannot
//! be decided (`000` section 3.3, `002` 10.4).
//!
//! The code of such a call is in one of three [`Mode`]s at any time. While control is known, all calls of known
//! functions unfold: *run*. At an unknown branch or callee, the code up to the post-dominator is *skipped*: evaluated
//! as its filters say, without unfolding for the sake of the run. The post-dominator is run again, its parameters
//! unknown. A continuation from outside, first of all the return continuation of the call, ends the run. Modes
//! determine what is unfolded, never what is computed.

use super::Evaluator;
use super::state::{Mode, RunCall, Site, StubId};
use crate::facts::is_function;
use crate::postdom::{Analysis, Closures, Fun, Symbol, UNKNOWN, Variant};
use nyala_ir::{Cont, Node, Val};
use rustc_hash::FxHashSet;

impl Evaluator<'_> {
    /// The mode in the callee of a call by `@`, made by code in mode `outer`. Its return continuation goes on in
    /// `outer`.
    pub(super) fn start_run(&mut self, outer: Mode, args: &[Val]) -> Mode {
        if !self.options.annotations {
            return outer;
        }
        if let Some(ret) = args.last().and_then(|&a| self.stub_of_val(a)) {
            self.stubs[ret].resume = Some(self.mode_in(ret, outer));
        }
        self.run_calls.push(RunCall { start: self.budget.reductions + 1, outer });
        Mode::Run(self.run_calls.len() as u32 - 1)
    }

    /// The mode in a closure that code in `mode` calls or passes on.
    pub(super) fn mode_in(&self, s: StubId, mut mode: Mode) -> Mode {
        if let Some(resume) = self.stubs[s].resume {
            return resume;
        }
        let k = self.stubs[s].source;
        match mode {
            Mode::Skip(r, Some(until)) if until == k => return Mode::Run(r),
            Mode::Run(_) => {}
            // A function of its own.
            _ if self.facts.nest.free(k).is_empty() => return Mode::Filters,
            _ => {}
        }
        while let Mode::Run(r) | Mode::Skip(r, _) = mode
            && self.is_outside(s, r)
            && !is_function(self.source, k)
        {
            mode = self.run_calls[r as usize].outer;
        }
        mode
    }

    /// Whether a closure was made before the run began. A function that captures nothing returns, a continuation does
    /// not.
    fn is_outside(&self, s: StubId, run: u32) -> bool {
        let stub = &self.stubs[s];
        stub.made < self.run_calls[run as usize].start && !self.facts.nest.free(stub.source).is_empty()
    }

    /// Notes that the code being evaluated made a closure, or made it once more.
    pub(super) fn note_made(&mut self, s: StubId, when: u64) {
        let (by, mode) = self.current;
        if mode == Mode::Filters {
            return;
        }
        let k = self.stubs[s].source;
        if self.facts.function[k] == self.facts.function[by] {
            self.stubs[s].made = self.stubs[s].made.max(when);
        }
        if let Mode::Skip(r, Some(until)) = mode
            && until == k
        {
            self.stubs[s].resume = Some(Mode::Run(r));
        }
    }

    /// Ends a run at a call that cannot be decided: the code up to the call's post-dominator is skipped.
    pub(super) fn skip(&mut self, site: &mut Site, callee: Fun, args: &[Val]) {
        if let Mode::Run(run) = site.past.mode {
            self.skip_to_post_dominator(run, site, Some(callee), args);
        }
    }

    /// Ends a run at a branch that cannot be decided: the code up to the branch's post-dominator is skipped.
    pub(super) fn skip_branch(&mut self, site: &mut Site, targets: &[Val]) {
        if let Mode::Run(run) = site.past.mode {
            self.skip_to_post_dominator(run, site, None, targets);
        }
    }

    fn skip_to_post_dominator(&mut self, run: u32, site: &mut Site, callee: Option<Fun>, args: &[Val]) {
        let closures = Made { ev: self, run };
        let args: Vec<Vec<Fun>> = args.iter().map(|&a| closures.functions(a)).collect();
        let nest = &self.facts.nest;
        let analysis = Analysis::new(self.source, nest, &closures, Variant::ContextSensitive, callee, &args);
        let found = analysis.post_dominator(|_| true);
        let until = found.and_then(|f| match f {
            Fun::Code(k) => Some(k),
            Fun::Closure(s) => Some(self.stubs[s as usize].source),
            Fun::Outside(_) => None,
        });
        if let Some(Fun::Closure(s)) = found
            && until.is_some_and(|k| !nest.free(k).is_empty())
        {
            self.stubs[s as usize].resume = Some(Mode::Run(run));
        }
        site.past.mode = Mode::Skip(run, until);
        self.current.1 = site.past.mode;
    }
}

/// The evaluator's closures, as seen from a run.
struct Made<'a, 'b> {
    ev: &'a Evaluator<'b>,
    run: u32,
}

impl Made<'_, '_> {
    /// The functions in a value.
    fn functions(&self, v: Val) -> Vec<Fun> {
        let ev = self.ev;
        let mut found = Vec::new();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if !ev.dst.types.has_function(ev.dst.ty(v)) || !seen.insert(v) {
                continue;
            }
            found.push(match (ev.stub_of_val(v), ev.dst.node(v)) {
                (Some(s), _) if ev.is_outside(s, self.run) => {
                    let takes_functions = is_function(ev.source, ev.stubs[s].source);
                    Fun::Outside(Symbol { id: s as u32, takes_functions })
                }
                (Some(s), _) => Fun::Closure(s as u32),
                (None, Node::Op(_)) if !ev.dst.args(v).is_empty() => {
                    work.extend(ev.dst.args(v).iter().rev());
                    continue;
                }
                _ => UNKNOWN,
            });
        }
        found
    }
}

impl Closures for Made<'_, '_> {
    fn source(&self, closure: u32) -> Cont {
        self.ev.stubs[closure as usize].source
    }
    fn captured(&self, closure: u32, idx: usize) -> Vec<Fun> {
        self.functions(self.ev.stubs[closure as usize].vals[idx])
    }
}
