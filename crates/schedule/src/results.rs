//! The results of functions that may be left by other ways than their return: their own results, values of the exits,
//! and a number, the last result, that tells the way: 0 for the return, 1 for a record, from 2 on exits
//! ([`super::exits`]).
//!
//! A call in tail position stays a jump if the caller's callers understand the callee's results. So functions that call
//! one another in tail position form a group, whose members return the same types and number their exits alike.

use super::Scheduler;
use super::exits::Target;
use nyala_base::SideTable;
use nyala_ir::{Cont, Prim, Ty, Val};
use rustc_hash::FxHashMap;

/// The number that says a function was left by a record, whose address is among the results.
pub(super) const FAR: u64 = 1;

/// The results that all functions of a group return.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    /// All results, the number at the end.
    pub tys: Vec<Ty>,
    /// The index of the result that is a record's address.
    pub record: Option<usize>,
    /// For exit numbers from 2 on, the indices of the results that are the exit's values.
    exits: Vec<Vec<usize>>,
}

impl Results {
    pub(super) fn number(&self) -> usize {
        self.tys.len() - 1
    }

    /// The indices of the results that are the values of the exit with this number.
    pub(super) fn values(&self, number: u64) -> &[usize] {
        &self.exits[number as usize - 2]
    }
}

/// Groups of functions, and of function values by type.
#[derive(Default)]
pub(super) struct Groups {
    pub all: Vec<Results>,
    functions: SideTable<Cont, Option<u32>>,
    types: FxHashMap<Ty, u32>,
    numbers: FxHashMap<(Cont, Val), u64>,
}

impl Groups {
    pub(super) fn of(&self, k: Cont) -> Option<usize> {
        self.functions[k].map(|g| g as usize)
    }

    pub(super) fn of_type(&self, ty: Ty) -> Option<usize> {
        self.types.get(&ty).map(|&g| g as usize)
    }

    /// The number of an exit of a function.
    pub(super) fn number(&self, k: Cont, exit: Val) -> Option<u64> {
        self.numbers.get(&(k, exit)).copied()
    }
}

/// Disjoint sets of small numbers (union-find).
struct Sets(Vec<u32>);

impl Sets {
    fn find(&mut self, mut i: u32) -> u32 {
        while self.0[i as usize] != i {
            let up = self.0[self.0[i as usize] as usize];
            self.0[i as usize] = up;
            i = up;
        }
        i
    }

    /// Joins two sets; the smaller representative stands for both.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

impl Scheduler<'_> {
    /// Groups all functions that may be left by an exit.
    pub(super) fn find_groups(&mut self) {
        let entries: Vec<Cont> = self.exits.entries.clone();
        let leaving: Vec<Cont> =
            entries.into_iter().filter(|&k| self.exits.is_far(k) || !self.exits.exits(k).is_empty()).collect();
        let far_types = self.exits.far_types();
        if leaving.is_empty() && far_types.is_empty() {
            return;
        }
        let mut node: SideTable<Cont, Option<u32>> = SideTable::default();
        for (i, &k) in leaving.iter().enumerate() {
            node[k] = Some(i as u32);
        }
        let type_node: FxHashMap<Ty, u32> =
            far_types.iter().enumerate().map(|(i, &t)| (t, (leaving.len() + i) as u32)).collect();
        let mut groups = Sets((0..(leaving.len() + far_types.len()) as u32).collect());
        // Exits, by function and continuation, and the sets of those with equal numbers.
        let mut keys: Vec<(Cont, Val)> = Vec::new();
        let mut key: FxHashMap<(Cont, Val), u32> = FxHashMap::default();
        for &k in &leaving {
            for x in self.exits.exits(k) {
                key.insert((k, x), keys.len() as u32);
                keys.push((k, x));
            }
        }
        let mut same = Sets((0..keys.len() as u32).collect());
        let mut members: Vec<FxHashMap<Cont, u32>> =
            keys.iter().enumerate().map(|(i, &(k, _))| FxHashMap::from_iter([(k, i as u32)])).collect();
        for &k in &leaving {
            let Some(at) = node[k] else { continue };
            if self.exits.is_value(k)
                && let Some(&ty) = type_node.get(&self.w.cont(k).ty)
            {
                groups.join(at, ty);
            }
            for c in self.exits.region(k).to_vec() {
                if !self.is_tail(k, c) {
                    continue;
                }
                let uses = self.exits.uses(c);
                if let Some(ty) = uses.indirect.and_then(|t| type_node.get(&t)) {
                    groups.join(at, *ty);
                }
                let Some((callee, to)) = uses.callee.and_then(|f| Some((f, node[f]?))) else { continue };
                groups.join(at, to);
                for x in self.exits.exits(callee) {
                    let Target::Exit(own) = self.exits.target(self.w, k, self.exits.at_call(self.w, c, x)) else {
                        continue;
                    };
                    let (Some(&a), Some(&b)) = (key.get(&(callee, x)), key.get(&(k, own))) else { continue };
                    let (a, b) = (same.find(a), same.find(b));
                    // Two exits of one function keep different numbers.
                    if a == b || members[a as usize].iter().any(|(f, _)| members[b as usize].contains_key(f)) {
                        continue;
                    }
                    let moved = std::mem::take(&mut members[a.max(b) as usize]);
                    members[a.min(b) as usize].extend(moved);
                    same.join(a, b);
                }
            }
        }
        let mut number: FxHashMap<u32, usize> = FxHashMap::default();
        for i in 0..(leaving.len() + far_types.len()) as u32 {
            let root = groups.find(i);
            let all = &mut self.groups.all;
            let group = *number.entry(root).or_insert_with(|| {
                all.push(Results::default());
                all.len() - 1
            });
            let (ty, is_far) = match leaving.get(i as usize) {
                Some(&k) => {
                    self.groups.functions[k] = Some(group as u32);
                    (self.w.cont(k).ty, self.exits.is_far(k))
                }
                None => {
                    let ty = far_types[i as usize - leaving.len()];
                    self.groups.types.insert(ty, group as u32);
                    (ty, true)
                }
            };
            let (_, rets) = self.signature(ty);
            let record_ty = self.record_ptr();
            let results = &mut self.groups.all[group];
            if results.tys.is_empty() {
                results.tys = rets;
            }
            if is_far && results.record.is_none() {
                results.record = Some(place(&mut results.tys, &[], record_ty));
            }
        }
        for i in 0..keys.len() as u32 {
            let (k, exit) = keys[i as usize];
            let root = same.find(i);
            let Some(group) = self.groups.of(k) else { continue };
            let n = match root == i {
                true => {
                    let tys: Vec<Ty> = self.w.types.cn_params(self.w.ty(exit)).unwrap_or(&[])[1..].to_vec();
                    let mut values = Vec::new();
                    for ty in tys {
                        let ty = self.ty(ty);
                        let at = place(&mut self.groups.all[group].tys, &values, ty);
                        values.push(at);
                    }
                    self.groups.all[group].exits.push(values);
                    self.groups.all[group].exits.len() as u64 + 1
                }
                false => self.groups.numbers[&keys[root as usize]],
            };
            self.groups.numbers.insert((k, exit), n);
        }
        let number = self.module.types.prim(Prim::I32);
        for results in &mut self.groups.all {
            results.tys.push(number);
        }
    }

    /// Whether the call in block `c` of `k` returns where `k` returns, and all other ways out of the callee lead past
    /// `k`.
    fn is_tail(&self, k: Cont, c: Cont) -> bool {
        let uses = self.exits.uses(c);
        let to_own = match uses.ret {
            Some(ret) => self.exits.target(self.w, k, ret) == Target::Return,
            None => self.ret_ty(self.w.cont(k).ty).is_none(),
        };
        if !to_own {
            return false;
        }
        let is_far = match uses.callee {
            Some(f) => self.exits.is_far(f),
            None => uses.indirect.is_some_and(|t| self.exits.is_far_type(t)),
        };
        if is_far && !self.exits.reified(k).is_empty() {
            return false;
        }
        let exits = uses.callee.map(|f| self.exits.exits(f)).unwrap_or_default();
        let passes =
            |x: &Val| matches!(self.exits.target(self.w, k, self.exits.at_call(self.w, c, *x)), Target::Exit(_));
        exits.is_empty() || !self.exits.is_value(k) && exits.iter().all(passes)
    }

    /// Whether all results of the callee are valid results of `k`, so that the call can be a jump.
    pub(super) fn is_jump(&self, k: Cont, c: Cont, callee: Option<usize>) -> bool {
        if !self.is_tail(k, c) || callee != self.groups.of(k) || callee.is_none() && self.exits.uses(c).ret.is_none() {
            return false;
        }
        let Some(f) = self.exits.uses(c).callee else { return true };
        self.exits.exits(f).into_iter().all(|x| match self.exits.target(self.w, k, self.exits.at_call(self.w, c, x)) {
            Target::Exit(own) => self.groups.number(f, x) == self.groups.number(k, own),
            _ => false,
        })
    }
}

/// The index of a result of this type that is not taken yet; adds one if needed.
fn place(tys: &mut Vec<Ty>, taken: &[usize], ty: Ty) -> usize {
    match (0..tys.len()).find(|i| tys[*i] == ty && !taken.contains(i)) {
        Some(at) => at,
        None => {
            tys.push(ty);
            tys.len() - 1
        }
    }
}
