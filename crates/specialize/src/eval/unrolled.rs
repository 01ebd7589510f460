//! Counts the rounds of loops and recursions that are unrolled, so that one that leaves a great program can be named: code generation
//! takes long then, and does not say why. Separate from [`history`](super::history), which compares arguments: here nothing is decided.
//!
//! A loop under way is known by its header and the unfolded call that its code belongs to. One that goes on ends those that began
//! after it: they are loops inside of it. What a loop leaves are the operations made from its first round to its last one that the
//! residual program has.
//!
//! Counting costs a comparison for each round of a loop that has none inside, and a look into a table for others.

use super::Evaluator;
use crate::diagnostics::long_unroll;
use crate::facts::is_function;
use crate::finish::Finished;
use nyala_base::{CallId, Diagnostic, Id, Span};
use nyala_ir::{Cont, Node, Val};
use rustc_hash::FxHashMap;

/// For a budget of 1, which multiplies it. LLVM takes some seconds for as many operations.
const MIN_OPERATIONS: u64 = 50_000;
/// Rounds of one run of a loop. Fewer are what people unroll loops for.
const MIN_ROUNDS: u64 = 250;
/// Runs that made fewer nodes are not looked at.
const MIN_GROWN: usize = 64;

type Key = (Cont, CallId);

/// A run of a loop: from when its header was first entered until a loop around it goes on.
struct Run {
    key: Key,
    rounds: u64,
    /// The sizes of the graph at the first and the last round.
    first: usize,
    last: usize,
}

/// All runs of a loop that have ended.
#[derive(Default)]
struct Ended {
    rounds: u64,
    /// The rounds of the longest run.
    most: u64,
    ranges: Vec<(usize, usize)>,
    /// A loop around it.
    inside: Option<Key>,
}

/// The loops of an evaluation.
#[derive(Default)]
pub(super) struct Unrolled {
    /// Runs under way, the outermost first, and where a loop is among them.
    open: Vec<Run>,
    place: FxHashMap<Key, usize>,
    ended: FxHashMap<Key, Ended>,
}

impl Unrolled {
    fn note(&mut self, key: Key, size: usize) {
        let at = match self.open.last() {
            Some(run) if run.key == key => Some(self.open.len() - 1),
            _ => self.place.get(&key).copied(),
        };
        let Some(at) = at else {
            self.place.insert(key, self.open.len());
            return self.open.push(Run { key, rounds: 1, first: size, last: size });
        };
        self.end(at + 1, Some(key));
        let run = &mut self.open[at];
        run.rounds += 1;
        run.last = size;
    }

    /// Ends all runs from a place on.
    fn end(&mut self, from: usize, inside: Option<Key>) {
        while self.open.len() > from {
            let Some(run) = self.open.pop() else { return };
            self.place.remove(&run.key);
            if run.last - run.first < MIN_GROWN {
                continue;
            }
            let ended = self.ended.entry(run.key).or_default();
            // The last one only finds that it is the last.
            ended.rounds += run.rounds - 1;
            ended.most = ended.most.max(run.rounds);
            ended.ranges.push((run.first, run.last));
            ended.inside = ended.inside.or(inside);
        }
    }
}

impl Evaluator<'_> {
    /// Notes that the body of a recursive continuation is entered.
    pub(super) fn note_round(&mut self, header: Cont) {
        self.unrolled.note((header, self.call), self.dst.n_vals());
    }

    /// A warning for each loop that leaves a great part of a great residual program. A loop around it is named in its place if that is
    /// unrolled as often.
    pub fn long_unrolls(&mut self, residual: &Finished) -> Vec<Diagnostic> {
        let mut unrolled = std::mem::take(&mut self.unrolled);
        unrolled.end(0, None);
        let n_left = residual.world.n_vals() as u64;
        let least = self.budget.scaled(MIN_OPERATIONS);
        if n_left < least || unrolled.ended.is_empty() {
            return Vec::new();
        }
        // For each value of the evaluated graph, how many operations before it are left.
        let is_left = |v: usize| {
            let left = residual.vals[Val::from_idx(v)];
            left.is_some_and(|v| matches!(residual.world.node(v), Node::Op(_)))
        };
        let n_vals = self.dst.n_vals();
        let mut before: Vec<u32> = Vec::with_capacity(n_vals + 1);
        before.push(0);
        for v in 0..n_vals {
            before.push(before[v] + is_left(v) as u32);
        }
        let mut long: FxHashMap<Key, u64> = FxHashMap::default();
        for (&key, ended) in &unrolled.ended {
            let operations: u64 = ended.ranges.iter().map(|&(a, b)| u64::from(before[b] - before[a])).sum();
            if ended.most >= MIN_ROUNDS && operations >= least {
                long.insert(key, operations);
            }
        }
        let is_outermost = |key: &Key| {
            let inside = |key: &Key| unrolled.ended.get(key).and_then(|ended| ended.inside);
            // Two loops may lie in each other, as functions that are called from several places.
            let around = std::iter::successors(inside(key), inside).take(unrolled.ended.len());
            !around.into_iter().any(|around| around != *key && long.contains_key(&around))
        };
        let mut found: Vec<(Key, u64)> =
            long.iter().filter(|(key, _)| is_outermost(key)).map(|(&k, &n)| (k, n)).collect();
        found.sort_unstable();
        let warning = |((header, call), operations): (Key, u64)| {
            let data = self.source.cont(header);
            let declared = Span { call, ..data.origin };
            let counts = (unrolled.ended[&(header, call)].rounds, operations);
            if !is_function(self.source, header) {
                return long_unroll::of_loop(declared, counts);
            }
            let called = residual.world.calls.get(call).filter(|_| self.is_top_level(header)).map(|(place, _)| place);
            long_unroll::of_function(called.unwrap_or(declared), (self.source.name(header), data.origin), counts)
        };
        found.into_iter().map(warning).collect()
    }
}
