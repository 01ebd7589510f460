//! What the evaluator asks of hints from earlier rounds, and notes for the next one ([`Hints`]).

use super::Evaluator;
use crate::whistle::{self, CallKey, Hints, Kind, Kinds};
use nyala_base::SideTable;
use nyala_ir::{Cont, Val};
use rustc_hash::FxHashSet;

/// Values looked at to tell what a function value is made of.
const MAX_SOURCES: usize = 1000;

/// Hints of earlier rounds, and those of this one for the next.
pub(super) struct Advice<'a> {
    pub earlier: &'a Hints,
    pub noted: Hints,
    /// Continuations with calls that drift, as was found now or in earlier rounds, or that are shared.
    pub drifts: SideTable<Cont, bool>,
    /// Continuations with calls that were the only ones in earlier rounds.
    pub inlines: SideTable<Cont, bool>,
}

impl Advice<'_> {
    pub fn new(earlier: &Hints) -> Advice<'_> {
        Advice { earlier, noted: Hints::default(), drifts: earlier.drifting(), inlines: earlier.inlining() }
    }
}

impl Evaluator<'_> {
    /// Whether earlier rounds found that this is the only such call in the unit; if the callee is a unit, of all.
    pub(super) fn is_inline(&self, k: Cont, mask: u64) -> bool {
        self.hints.earlier.is_inline(self.unit_of(k, mask, self.facts.nest.free(k).is_empty()), (k, mask))
    }

    /// Parameters that earlier calls of that kind in the unit were found to drift in.
    pub(super) fn hinted_drift(&self, key: CallKey, args: &[Val]) -> u64 {
        if !self.hints.drifts[key.0] {
            return 0;
        }
        let kinds = self.kinds(key.1, args);
        let sources = |i: usize| self.sources(args[i]);
        self.hints.earlier.drift(self.budget.unit, key, &kinds, sources)
            | self.hints.noted.drift(self.budget.unit, key, &kinds, sources)
    }

    pub(super) fn note_drift(&mut self, key: CallKey, args: &[Val], params: u64) {
        let kinds = self.kinds(key.1, args);
        let mut noted = std::mem::take(&mut self.hints.noted);
        noted.note_drift(self.budget.unit, key, kinds, params, |i| self.sources(args[i]));
        self.hints.noted = noted;
    }

    /// What kinds of values the specialized arguments are: the same from round to round.
    pub(super) fn kinds(&self, mask: u64, args: &[Val]) -> Kinds {
        let kind = |(i, &a): (usize, &Val)| match self.stub_of_val(a) {
            _ if i >= 64 || mask >> i & 1 == 0 => Kind::Other,
            Some(s) => Kind::Closure(self.stubs[s].source),
            None if self.dst.as_lit(a).is_some() => Kind::Literal,
            None => Kind::Other,
        };
        args.iter().enumerate().map(kind).collect()
    }

    /// What a function value is made of.
    pub(super) fn sources(&self, v: Val) -> whistle::Sources {
        let mut sources = whistle::Sources::default();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if seen.len() > MAX_SOURCES || !seen.insert(v) {
                continue;
            }
            match self.view().captured(v) {
                Some((source, vals)) => {
                    sources.insert(source);
                    work.extend(vals.iter().filter(|&&v| self.dst.types.has_function(self.dst.ty(v))));
                }
                None => work.extend(self.dst.args(v)),
            }
        }
        sources
    }
}
