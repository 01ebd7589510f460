//! Looks up hints of earlier rounds for the evaluator, and notes hints for the next one ([`Hints`]).

use super::Evaluator;
use super::state::View;
use crate::whistle::{CallKey, Hints, Kind, Kinds};
use nyala_base::SideTable;
use nyala_ir::{Cont, Val, World};
use rustc_hash::FxHashMap;
use std::rc::Rc;

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
    /// Whether earlier rounds found that this is the only such call in the unit, or in the export's code if the callee
    /// is a unit.
    pub(super) fn is_inline(&self, k: Cont, mask: u64) -> bool {
        let function = match self.is_unit(k, mask, self.facts.nest.free(k).is_empty()) {
            true => k,
            false => self.budget.name().0,
        };
        self.hints.earlier.is_inline(function, (k, mask))
    }

    /// The parameters that drifted in earlier calls of that kind in the unit.
    pub(super) fn hinted_drift(&mut self, key: CallKey, args: &[Val]) -> u64 {
        if !self.hints.drifts[key.0] {
            return 0;
        }
        let kinds = self.kinds(key.1, args);
        let (view, sources, unit) =
            (View { dst: &self.dst, stubs: &self.stubs }, &mut self.sources, self.budget.name());
        let earlier = self.hints.earlier.drift(unit, key, &kinds, |i| sources.of(view, args[i]));
        earlier | self.hints.noted.drift(unit, key, &kinds, |i| sources.of(view, args[i]))
    }

    pub(super) fn note_drift(&mut self, key: CallKey, args: &[Val], params: u64) {
        let kinds = self.kinds(key.1, args);
        let (view, sources) = (View { dst: &self.dst, stubs: &self.stubs }, &mut self.sources);
        self.hints.noted.note_drift(self.budget.name(), key, kinds, params, |i| sources.of(view, args[i]));
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
}

/// The source continuations that function values are made of: their own, and those of the closures they capture. Each
/// set is made once, from those of what the value captures; values with equal ones share it.
#[derive(Default)]
pub(super) struct Sources {
    of: SideTable<Val, Option<u32>>,
    sets: Vec<Rc<[Cont]>>,
    ids: FxHashMap<Rc<[Cont]>, u32>,
    unions: FxHashMap<(u32, u32), u32>,
}

impl Sources {
    /// The sources of a value, in order.
    pub fn of(&mut self, view: View, v: Val) -> Rc<[Cont]> {
        let id = self.id(view, v);
        self.sets[id as usize].clone()
    }

    /// A number that tells values with different sources apart.
    pub fn id(&mut self, view: View, v: Val) -> u32 {
        let mut work = vec![(v, false)];
        while let Some((v, is_ready)) = work.pop() {
            if self.of[v].is_some() {
                continue;
            }
            let captured = view.captured(v);
            let parts = captured.map_or_else(|| view.dst.args(v), |(_, vals)| vals);
            let is_part = |dst: &World, part: Val| captured.is_none() || dst.types.has_function(dst.ty(part));
            let parts = parts.iter().copied().filter(|&part| is_part(view.dst, part));
            if !is_ready {
                work.push((v, true));
                work.extend(parts.map(|part| (part, false)));
                continue;
            }
            let mut set = self.set(captured.map(|(source, _)| source).into_iter().collect());
            for part in parts {
                if let Some(more) = self.of[part] {
                    set = self.union(set, more);
                }
            }
            self.of[v] = Some(set);
        }
        self.of[v].unwrap_or(0)
    }

    fn set(&mut self, set: Vec<Cont>) -> u32 {
        let set: Rc<[Cont]> = set.into();
        let (sets, next) = (&mut self.sets, self.ids.len() as u32);
        *self.ids.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            next
        })
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let mut all: Vec<Cont> = self.sets[a as usize].iter().chain(&*self.sets[b as usize]).copied().collect();
        all.sort_unstable();
        all.dedup();
        let union = self.set(all);
        self.unions.insert(key, union);
        union
    }
}
