//! Functions of which there would be too many copies. Filters, and the rule that functions are specialized, may ask for
//! more copies than a budget has room for, without any recursion: a chain of ten functions that call the next one four
//! times each is a million. Copies that do not differ in known values are worth little, so that they are shared in the
//! next round: what is not known, and where the function returns to, stay parameters; if that is not enough, functions too.

use super::{Evaluator, State, memory};
use crate::facts::is_return;
use crate::whistle::Sharing;
use nyala_base::SideTable;
use nyala_ir::{Cont, Node, Val};
use rustc_hash::{FxHashMap, FxHashSet};

/// Copies of a function that are too many once a budget is spent.
const MAX_COPIES: u64 = 32;
/// Copies of a function without filter that are too many before.
const MAX_UNASKED: u64 = 1000;
/// So many copies for each set of known values are too many.
const MAX_ALIKE: u64 = 8;

/// Which values of a copy are numbers.
type Known = Vec<Option<u64>>;

impl Evaluator<'_> {
    /// Parameters that are not specialized because there were too many copies. What is unfolded by force is so as long
    /// as possible.
    pub(super) fn shared(&self, k: Cont, args: &[Val], forced: bool) -> u64 {
        let Some(sharing) = self.hints.sharing(k).filter(|&s| !forced || s == Sharing::Functions) else { return 0 };
        let params = self.source.params(k);
        let is_variable = |v| !matches!(self.dst.node(memory::base_of(&self.dst, v)), Node::Global(_));
        let is_shared = |&i: &usize| match self.source.types.has_function(self.source.ty(params[i])) {
            // Each copy of a caller has its own variables.
            _ if self.source.types.pointee(self.source.ty(params[i])).is_some() && is_variable(args[i]) => true,
            true => sharing == Sharing::Functions || i + 1 == params.len() && is_return(self.source, params[i]),
            false => !self.is_known(args[i]),
        };
        (1..args.len().min(64)).filter(is_shared).fold(0, |shared, i| shared | 1 << i)
    }

    /// Notes functions with many copies that do not differ in known values; with `early`, those that nobody asked for.
    /// Whether there are new ones.
    pub fn note_shared(&mut self, early: bool) -> bool {
        let mut n_copies: SideTable<Cont, u64> = SideTable::default();
        let built = || self.stubs.iter().filter(|s| s.state != State::New);
        built().for_each(|stub| n_copies[stub.source] += 1);
        let mut copies: FxHashMap<Cont, (u64, FxHashSet<Known>)> = FxHashMap::default();
        for stub in built().filter(|stub| n_copies[stub.source] >= MAX_COPIES) {
            let (n, known) = copies.entry(stub.source).or_default();
            *n += 1;
            known.insert(stub.vals.iter().map(|&v| self.dst.as_lit(v)).collect::<Known>());
        }
        let mut most = 0;
        let mut noted = Vec::new();
        for (k, (n, known)) in copies {
            let Some(function) = self.facts.function[k] else { continue };
            if n < MAX_ALIKE * known.len() as u64 {
                continue;
            }
            let sharing = match self.hints.sharing(function) {
                None if early && !self.source.cont(function).filter.is_empty() => continue,
                None => Sharing::Returns,
                Some(_) if early => continue,
                Some(_) => Sharing::Functions,
            };
            most = most.max(n);
            noted.push((function, sharing));
        }
        if early && most < self.scaled(MAX_UNASKED) {
            return false;
        }
        let mut found = false;
        for (function, sharing) in noted {
            found |= self.noted.note_shared(function, sharing);
        }
        found
    }
}
