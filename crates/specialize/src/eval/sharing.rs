//! Functions of which there would be too many copies. Filters, and the rule that functions are specialized, may ask for
//! more copies than a budget has room for, even without recursion: a chain of ten functions that call the next one four
//! times each has a million copies. Copies that do not differ in known values are worth little, so they are shared in
//! the next round. Unknown arguments and the return continuation then stay parameters; if that is not enough, functions
//! do too.

use super::budget::UnitId;
use super::state::{State, Stub, StubId, View};
use super::{Evaluator, memory};
use crate::facts::is_return;
use crate::whistle::Sharing;
use nyala_base::SideTable;
use nyala_ir::{Cont, Node, Val};
use rustc_hash::{FxHashMap, FxHashSet};

/// The number of copies of a function that is too many once a budget is spent.
const MAX_COPIES: u64 = 32;
/// The number of copies of a function without filter that is too many even before that.
const MAX_UNASKED: u64 = 1000;
/// The number of copies for each set of known values that is too many.
const MAX_ALIKE: u64 = 8;

/// The data that tells copies apart: known numbers, and the sources of the functions that a copy is specialized in.
type Known = Vec<(Option<u64>, Option<u32>)>;

impl Evaluator<'_> {
    /// The parameters that are not specialized because there were too many copies. A call that is unfolded by force
    /// (`forced`) stays unfolded unless functions have to be shared too.
    pub(super) fn shared(&self, k: Cont, args: &[Val], forced: bool) -> u64 {
        let Some(sharing) =
            self.hints.earlier.sharing(self.budget.name(), k).filter(|&s| !forced || s == Sharing::Functions)
        else {
            return 0;
        };
        let params = self.source.params(k);
        let is_variable = |v| !matches!(self.dst.node(memory::base_of(&self.dst, v)), Node::Global(_));
        let is_shared = |&i: &usize| match self.source.types.has_function(self.source.ty(params[i])) {
            // Each copy of a caller has variables of its own, so their addresses differ.
            _ if self.source.types.pointee(self.source.ty(params[i])).is_some() && is_variable(args[i]) => true,
            true => sharing == Sharing::Functions || i + 1 == params.len() && is_return(self.source, params[i]),
            false => !self.is_known(args[i]),
        };
        (1..args.len().min(64)).filter(is_shared).fold(0, |shared, i| shared | 1 << i)
    }

    /// Notes functions with many copies in the units whose budget is spent.
    pub fn note_shared_in_spent(&mut self) {
        for unit in self.budget.spent_units() {
            self.note_shared(unit, false);
        }
    }

    /// Notes functions of one unit with many copies that do not differ in known values. With `early`, only those
    /// without a filter. Returns whether any of them is new.
    pub(super) fn note_shared(&mut self, unit: UnitId, early: bool) -> bool {
        let mut n_copies: SideTable<Cont, u64> = SideTable::default();
        let is_built = |stub: &Stub| stub.unit == unit && stub.state != State::New;
        let built: Vec<StubId> = (0..self.stubs.len()).filter(|&s| is_built(&self.stubs[s])).collect();
        self.budget.pay(self.stubs.len());
        built.iter().for_each(|&s| n_copies[self.stubs[s].source] += 1);
        #[derive(Default)]
        struct Copies {
            n: u64,
            known: FxHashSet<Known>,
            numbers: FxHashSet<Vec<Option<u64>>>,
        }
        let mut copies: FxHashMap<Cont, Copies> = FxHashMap::default();
        for s in built {
            let source = self.stubs[s].source;
            if n_copies[source] < MAX_COPIES {
                continue;
            }
            let known = self.known(s);
            let copies = copies.entry(source).or_default();
            copies.n += 1;
            copies.known.insert(known);
            copies.numbers.insert(self.stubs[s].vals.iter().map(|&v| self.dst.as_lit(v)).collect());
        }
        let mut most = 0;
        let mut noted = Vec::new();
        for (k, Copies { n, known, numbers }) in copies {
            let Some(function) = self.facts.function[k] else { continue };
            // Sharing helps only if few sets of values remain.
            // Copies that are specialized in other functions would stay.
            let (returns_help, functions_help) =
                (n >= MAX_ALIKE * known.len() as u64, n >= MAX_ALIKE * numbers.len() as u64);
            let sharing = match self.hints.earlier.sharing(self.budget.of(unit).name, function) {
                None if early && !self.source.cont(function).filter.is_empty() => continue,
                None if returns_help => Sharing::Returns,
                _ if early || !functions_help => continue,
                _ => Sharing::Functions,
            };
            most = most.max(n);
            noted.push((function, sharing));
        }
        if early && most < self.budget.scaled(MAX_UNASKED) {
            return false;
        }
        let mut found = false;
        for (function, sharing) in noted {
            found |= self.hints.noted.note_shared(self.budget.of(unit).name, function, sharing);
        }
        found
    }

    fn known(&mut self, s: StubId) -> Known {
        let stub = &self.stubs[s];
        let returns_to = self.source.params(stub.source).last().is_some_and(|&p| is_return(self.source, p));
        let specialized = stub.mask >> (self.source.params(stub.source).len().clamp(1, 64) - 1) & 1 == 1;
        let n = stub.vals.len() - (returns_to && specialized) as usize;
        let view = View { dst: &self.dst, stubs: &self.stubs };
        let mut known = |&v: &Val| {
            let sources = self.dst.types.has_function(self.dst.ty(v)).then(|| self.sources.id(view, v));
            (self.dst.as_lit(v), sources)
        };
        self.budget.pay(n);
        stub.vals[..n].iter().map(&mut known).collect()
    }
}
