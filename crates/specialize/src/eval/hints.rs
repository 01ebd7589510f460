//! Looks up hints of earlier rounds for the evaluator, and notes hints for the next one ([`Hints`]).

use super::Evaluator;
use crate::whistle::{self, CallKey, Hints, Kind, Kinds};
use nyala_base::SideTable;
use nyala_ir::{Cont, Val};
use rustc_hash::FxHashSet;

/// Limit on the values that are searched for the sources of a function value.
const MAX_SOURCES: usize = 1000;

/// The hints of earlier rounds, and those that this round notes for the next.
pub(super) struct Advice<'a> {
    pub earlier: &'a Hints,
    pub noted: Hints,
    /// Continuations whose calls drift or are shared, as found in this round or in earlier ones.
    pub drifts: SideTable<Cont, bool>,
    /// Continuations that were called only once with some parameters specialized, in earlier rounds.
    pub inlines: SideTable<Cont, bool>,
}

impl Advice<'_> {
    pub fn new(earlier: &Hints) -> Advice<'_> {
        Advice { earlier, noted: Hints::default(), drifts: earlier.drifting(), inlines: earlier.inlining() }
    }
}

impl Evaluator<'_> {
    /// Whether earlier rounds found that this is the only such call in the unit, or in the program if the callee is a
    /// unit.
    pub(super) fn is_inline(&self, k: Cont, mask: u64) -> bool {
        self.hints.earlier.is_inline(self.unit_of(k, mask, self.facts.nest.free(k).is_empty()), (k, mask))
    }

    /// The parameters that drifted in earlier calls of that kind in the unit.
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

    /// The kinds of the specialized arguments, which are comparable from round to round.
    pub(super) fn kinds(&self, mask: u64, args: &[Val]) -> Kinds {
        let kind = |(i, &a): (usize, &Val)| match self.stub_of_val(a) {
            _ if i >= 64 || mask >> i & 1 == 0 => Kind::Other,
            Some(s) => Kind::Closure(self.stubs[s].source),
            None if self.dst.as_lit(a).is_some() => Kind::Literal,
            None => Kind::Other,
        };
        args.iter().enumerate().map(kind).collect()
    }

    /// The source continuations that a function value is made of.
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
