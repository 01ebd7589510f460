//! The guard of a counted loop: a condition in front of the loop under which a copy of the loop needs no checks (see
//! `versions.rs`).
//!
//! The counter's first and last numbers are known before the loop. Interval arithmetic gives the range of every sum, difference and
//! product of the counter and of values that do not change in the loop. The ends of a range are literals, or values that code in
//! front of the loop computes. An access needs no check if its range lies within its block, arithmetic if its range fits the
//! type. Memory that is read must be initialized before the loop; what the loop writes is marked as initialized after it.
//!
//! Arithmetic without a range, on data from memory for example, is checked after the loop, by a variable that collects sign bits: a
//! branch in each iteration would keep LLVM from vectorizing the loop. This is done only if no access needs a check, because an
//! overflow has to be reported before the access that it leads astray.

use super::checker::{Access, Bounds, Checker};
use super::versions::{Counted, Version};
use nyala_base::{Id, Span};
use nyala_flat::*;
use nyala_ir::{Op, Prim};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// Limit on conditions that one range depends on.
const MAX_CONDITIONS: usize = 16;
/// Limit on indices of one address.
const MAX_TERMS: usize = 4;
/// Values that the guard computes have at most this magnitude, so that a few operations on them cannot overflow.
const MOST: i128 = 1 << 61;
/// Limit on the bytes between an address and its root.
const MOST_BYTES: i128 = 1 << 58;

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Num {
    Known(i128),
    /// An `i64` that code in front of the loop computes.
    Computed(Value),
}

/// The range of a value in all iterations, if the conditions hold.
#[derive(Clone)]
struct Range {
    lo: Num,
    hi: Num,
    conditions: Conditions,
}

type Conditions = SmallVec<[Value; 4]>;

impl Range {
    fn known(lo: i128, hi: i128) -> Range {
        Range { lo: Num::Known(lo), hi: Num::Known(hi), conditions: smallvec![] }
    }

    /// All numbers of a type.
    fn of(prim: Prim) -> Range {
        let bits = prim.bits();
        match prim.is_signed() {
            true => Range::known(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => Range::known(0, (1 << bits) - 1),
        }
    }

    fn ends(&self) -> Option<(i128, i128)> {
        match (self.lo, self.hi) {
            (Num::Known(lo), Num::Known(hi)) => Some((lo, hi)),
            _ => None,
        }
    }

    /// The only number, if there is one.
    fn point(&self) -> Option<i128> {
        self.ends().filter(|(lo, hi)| lo == hi).map(|(lo, _)| lo)
    }
}

/// The conditions of both lists, each once. `None` if there are too many.
fn joined(a: &Conditions, b: &Conditions) -> Option<Conditions> {
    let mut all = a.clone();
    all.extend(b.iter().copied().filter(|c| !a.contains(c)));
    (all.len() <= MAX_CONDITIONS).then_some(all)
}

/// The memory that accesses by one root reach: the bytes from `lo` up to `hi`, counted from the root.
#[derive(Clone, Copy)]
struct Area {
    root: Value,
    lo: Num,
    hi: Num,
    /// Whether the loop initializes all of it.
    is_filled: bool,
}

/// The ranges of values in one loop.
struct Ranges {
    of: FxHashMap<Value, Range>,
    /// Values that are defined in the loop.
    own: FxHashSet<Value>,
}

impl Checker<'_, '_> {
    /// Computes the guard of a loop in the current block, and finds the instructions that need no check in the copy.
    pub fn guard(&mut self, version: &Version, found: &Counted) {
        let blocks: Vec<BlockData> = found.blocks.iter().map(|&b| self.code.function.block(b).clone()).collect();
        let values = |b: &BlockData| b.params.iter().copied().chain(b.insts.iter().filter_map(|i| i.result)).collect();
        let own: FxHashSet<Value> = blocks.iter().flat_map(|b| -> Vec<Value> { values(b) }).collect();
        let mut ranges = Ranges { of: FxHashMap::default(), own };
        let counter = blocks[0].params[found.counter];
        let Some((in_header, in_body)) = self.counts(version, found, counter, &mut ranges) else { return };
        let mut conditions = Conditions::new();
        let mut exempt = Vec::new();
        let mut late = Vec::new();
        let mut areas: Vec<Area> = Vec::new();
        let mut all_accesses = true;
        let mut reads_shadows = false;
        for (i, block) in blocks.iter().enumerate() {
            ranges.of.insert(counter, if i == 0 { in_header.clone() } else { in_body.clone() });
            for (k, inst) in block.insts.iter().enumerate() {
                let range = self.range_of_result(inst, &mut ranges);
                let place = (found.blocks[i], k);
                if self.checked_arithmetic(inst).is_some() {
                    match &range {
                        Some(range) => {
                            exempt.push(place);
                            conditions.extend(range.conditions.iter().copied());
                        }
                        None => late.push((place, inst.clone())),
                    }
                } else if let Some(access) = self.access(inst) {
                    reads_shadows |= !access.writes && self.shadows.contains_key(&self.origin(access.address).root);
                    match self.reached(inst, &access, &mut ranges) {
                        Some((of_access, area)) => {
                            exempt.push(place);
                            conditions.extend(of_access);
                            let is_filled = access.writes
                                && found.is_always[i]
                                && version.leave.len() == 1
                                && self.fills(&access, found, counter, &ranges);
                            areas.extend(area.map(|area| Area { is_filled, ..area }));
                        }
                        None => all_accesses = false,
                    }
                }
                self.note_range(inst, range, &mut ranges);
            }
            if i == 0 {
                // The last time, only the header runs. Values that it computes for the other blocks are not used then.
                ranges.of.insert(counter, in_body.clone());
                for inst in &block.insts {
                    let range = self.range_of_result(inst, &mut ranges);
                    self.note_range(inst, range, &mut ranges);
                }
            }
        }
        if !all_accesses {
            // An access that keeps its check may read what the loop itself has written.
            areas.iter_mut().for_each(|area| area.is_filled = false);
        }
        if !all_accesses || reads_shadows {
            late.clear();
        }
        let late: Option<Vec<_>> =
            late.into_iter().map(|(place, inst)| Some((place, inst.span, self.late(&inst, &ranges.own)?))).collect();
        let late = late.unwrap_or_default();
        if exempt.is_empty() && late.is_empty() {
            return;
        }
        let Some(within) = self.hold_for(&areas, version) else { return };
        conditions.extend(within);
        if self.checks.uninit && areas.iter().any(|area| area.is_filled) {
            conditions.extend(self.begins(version, found));
        }
        self.exempt.extend(exempt);
        self.late.extend(late.iter().map(|&(place, _, late)| (place, late)));
        let reports: Vec<(Value, Span)> = late.iter().map(|&(_, span, late)| (late.variable, span)).collect();
        self.reports.extend(version.leave.iter().map(|&b| (b, reports.clone())));
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let bool_ty = self.code.types.bool();
        let mut all = self.literal(Prim::Bool, 1);
        for c in conditions.into_iter().filter(|&c| seen.insert(c)) {
            all = self.op(Op::And, &[all, c], bool_ty);
        }
        if let Terminator::Branch { cond, .. } = &mut self.code.function.blocks[version.guard.idx()].term {
            *cond = all;
        }
    }

    /// The ranges of the counter: in the header, where it reaches the bound, and in the other blocks.
    fn counts(
        &mut self,
        version: &Version,
        found: &Counted,
        counter: Value,
        ranges: &mut Ranges,
    ) -> Option<(Range, Range)> {
        let prim = self.code.types.as_prim(self.code.function.ty(counter))?;
        let Terminator::Branch { then, .. } = &self.code.function.block(version.guard).term else { return None };
        let first = self.range(then.args[found.counter], ranges)?;
        let bound = self.range(found.bound, ranges)?;
        let mut conditions = joined(&first.conditions, &bound.conditions)?;
        let is_up = found.step > 0;
        let step = i128::from(found.step);
        let last = match found.goes_on {
            Op::Le | Op::Ge => bound.lo,
            // With `!=`, the counter has to hit the bound exactly.
            Op::Ne => self.difference(bound.lo, Num::Known(step))?,
            _ => self.difference(bound.lo, Num::Known(step.signum()))?,
        };
        let (low, high) = if is_up { (first.lo, last) } else { (last, first.lo) };
        let distance = self.difference(high, low)?;
        let last = match found.goes_on {
            Op::Ne => {
                conditions.extend(self.at_most(Num::Known(-step.abs()), distance)?);
                if step.abs() > 1 {
                    let mask = Num::Known(step.abs() - 1);
                    let rest = self.compute(Op::And, distance, mask)?;
                    conditions.extend(self.at_most(rest, Num::Known(0))?);
                }
                last
            }
            _ if step.abs() == 1 => last,
            _ => {
                let rounds = self.apply(Op::Div, distance, step.abs())?;
                let way = self.product(rounds, Num::Known(step))?;
                self.sum(first.lo, way)?
            }
        };
        let after = self.sum(last, Num::Known(step))?;
        let mut range = |to: Num, conditions: &Conditions| {
            let end = self.least(first.lo, to, is_up)?;
            let (lo, hi) = if is_up { (first.lo, end) } else { (end, first.lo) };
            Some(Range { lo, hi, conditions: conditions.clone() })
        };
        let (in_header, in_body) = (range(after, &conditions)?, range(last, &conditions)?);
        let in_header = self.fitting(in_header, prim)?;
        Some((in_header.clone(), Range { conditions: in_header.conditions, ..in_body }))
    }

    fn note_range(&mut self, inst: &Inst, range: Option<Range>, ranges: &mut Ranges) {
        let Some(result) = inst.result else { return };
        let prim = self.code.types.as_prim(self.code.function.ty(result)).filter(|p| !p.is_float());
        if let Some(range) = range.or(prim.map(Range::of)) {
            ranges.of.insert(result, range);
        }
    }

    /// The range of a value, which fits its type.
    fn range(&mut self, v: Value, ranges: &mut Ranges) -> Option<Range> {
        let prim = self.code.types.as_prim(self.code.function.ty(v)).filter(|p| !p.is_float())?;
        if let Some(bits) = self.code.function.as_bits(v) {
            let bits = prim.normalize(bits);
            let n = if prim.is_signed() { i128::from(bits as i64) } else { i128::from(bits) };
            return Some(Range::known(n, n));
        }
        if let Some(range) = ranges.of.get(&v) {
            return Some(range.clone());
        }
        if ranges.own.contains(&v) || self.code.function.as_const(v).is_some() {
            return Some(Range::of(prim));
        }
        let number = self.cast(v, Prim::I64);
        let mut range = Range { lo: Num::Computed(number), hi: Num::Computed(number), conditions: smallvec![] };
        if prim.bits() == 64 {
            range.conditions = self.near_zero(Num::Computed(number), MOST)?;
            if !prim.is_signed() {
                range.conditions.extend(self.at_most(Num::Known(0), Num::Computed(number))?);
            }
        }
        ranges.of.insert(v, range.clone());
        Some(range)
    }

    /// The range of an instruction's result. `None` if nothing is known about it, or if it may not fit its type.
    fn range_of_result(&mut self, inst: &Inst, ranges: &mut Ranges) -> Option<Range> {
        let InstOp::Op(op) = inst.op else { return None };
        let prim = self.code.types.as_prim(self.code.function.ty(inst.result?)).filter(|p| p.is_int())?;
        let mut arg = |i: usize| self.range(*inst.args.get(i)?, ranges);
        let range = match op {
            Op::Cast => arg(0)?,
            Op::Select => {
                let (a, b) = (arg(1)?, arg(2)?);
                let conditions = joined(&a.conditions, &b.conditions)?;
                Range { lo: self.least(a.lo, b.lo, false)?, hi: self.least(a.hi, b.hi, true)?, conditions }
            }
            Op::Add | Op::Sub | Op::Mul | Op::Shl | Op::Shr | Op::And | Op::Div | Op::Rem => {
                let (a, b) = (arg(0)?, arg(1)?);
                self.range_of(op, a, b, prim)?
            }
            Op::Popcount | Op::Clz | Op::Ctz => Range::known(0, prim.bits().into()),
            _ => return None,
        };
        self.fitting(range, prim)
    }

    fn range_of(&mut self, op: Op, a: Range, b: Range, prim: Prim) -> Option<Range> {
        let bits = i128::from(prim.bits());
        // The range of a whole type is not worth a computed end.
        let is_wide = |r: &Range| r.ends().is_some_and(|(lo, hi)| hi - lo >= 1 << (bits - 2));
        if (a.ends().is_none() || b.ends().is_none())
            && (is_wide(&a) || is_wide(&b))
            && !matches!(op, Op::And | Op::Rem)
        {
            return None;
        }
        let both = joined(&a.conditions, &b.conditions)?;
        let range = |lo: Num, hi: Num| Some(Range { lo, hi, conditions: both.clone() });
        match op {
            Op::Add => range(self.sum(a.lo, b.lo)?, self.sum(a.hi, b.hi)?),
            Op::Sub => range(self.difference(a.lo, b.hi)?, self.difference(a.hi, b.lo)?),
            Op::Mul => self.products(a, b, prim),
            Op::Shl => {
                let by = b.point().filter(|n| (0..bits).contains(n))?;
                let factor = Range { conditions: b.conditions, ..Range::known(1 << by, 1 << by) };
                self.products(a, factor, prim)
            }
            Op::Shr => {
                let by = b.point().filter(|n| (0..bits).contains(n))?;
                range(self.apply(Op::Shr, a.lo, by)?, self.apply(Op::Shr, a.hi, by)?)
            }
            Op::Div => {
                let by = b.point().filter(|n| *n > 0)?;
                range(self.apply(Op::Div, a.lo, by)?, self.apply(Op::Div, a.hi, by)?)
            }
            Op::Rem => {
                let by = b.point().filter(|n| *n > 0)?;
                let is_positive = !prim.is_signed() || matches!(a.lo, Num::Known(lo) if lo >= 0);
                let least = if is_positive { 0 } else { 1 - by };
                // The dividend may be known to be non-negative only under its conditions.
                Some(Range { conditions: a.conditions, ..Range::known(least, by - 1) })
            }
            _ => {
                let masks = [a.ends(), b.ends()].into_iter().flatten().filter(|(lo, _)| *lo >= 0);
                Some(Range::known(0, masks.map(|(_, hi)| hi).min()?))
            }
        }
    }

    fn products(&mut self, a: Range, b: Range, prim: Prim) -> Option<Range> {
        let mut conditions = joined(&a.conditions, &b.conditions)?;
        let most = |r: &Range| match r.ends() {
            Some((lo, hi)) => lo.abs().max(hi.abs()),
            None if prim.bits() == 64 => MOST,
            None => 1 << (prim.bits() - u32::from(prim.is_signed())),
        };
        // Products that the guard computes must not overflow.
        if most(&a).saturating_mul(most(&b)) > 2 * MOST {
            for (r, other) in [(&a, &b), (&b, &a)] {
                let limit = if other.ends().is_some() { MOST / most(other).max(1) } else { 1 << 30 };
                for end in [r.lo, r.hi].into_iter().filter(|_| r.ends().is_none()) {
                    conditions.extend(self.near_zero(end, limit)?);
                }
            }
        }
        let mut found: SmallVec<[Num; 4]> = smallvec![];
        for x in [a.lo, a.hi].into_iter().take(if a.lo == a.hi { 1 } else { 2 }) {
            for y in [b.lo, b.hi].into_iter().take(if b.lo == b.hi { 1 } else { 2 }) {
                found.push(self.product(x, y)?);
            }
        }
        let is_ordered = |r: &Range, other: &Range| {
            let (n, is_two) = (other.point()?, r.lo != r.hi);
            is_two.then_some(n >= 0)
        };
        // A positive factor keeps the order of the ends, a negative one reverses it.
        if let (&[p, q], Some(keeps)) = (&found[..], is_ordered(&a, &b).or(is_ordered(&b, &a))) {
            let (lo, hi) = if keeps { (p, q) } else { (q, p) };
            return Some(Range { lo, hi, conditions });
        }
        let (mut lo, mut hi) = (found[0], found[0]);
        for &n in &found[1..] {
            (lo, hi) = (self.least(lo, n, false)?, self.least(hi, n, true)?);
        }
        (conditions.len() <= MAX_CONDITIONS).then_some(Range { lo, hi, conditions })
    }

    /// The range, with the condition that it fits a type.
    fn fitting(&mut self, mut range: Range, prim: Prim) -> Option<Range> {
        let (least, most) = if prim == Prim::Bool { (0, 1) } else { Range::of(prim).ends()? };
        let (low, high) = (least.max(-MOST), most.min(MOST));
        match range.lo {
            Num::Known(n) if n < least || n > most => return None,
            Num::Known(_) => {}
            lo => range.conditions.extend(self.at_most(Num::Known(low), lo)?),
        }
        match range.hi {
            Num::Known(n) if n < least || n > most => return None,
            Num::Known(_) => {}
            hi => range.conditions.extend(self.at_most(hi, Num::Known(high))?),
        }
        (range.conditions.len() <= MAX_CONDITIONS).then_some(range)
    }

    /// The condition that the loop has at least one iteration.
    fn begins(&mut self, version: &Version, found: &Counted) -> Option<Value> {
        let Terminator::Branch { then, .. } = &self.code.function.block(version.guard).term else { return None };
        let (first, bool_ty) = (then.args[found.counter], self.code.types.bool());
        Some(self.op(found.goes_on, &[first, found.bound], bool_ty))
    }

    /// The area that an access reaches in all iterations, with its conditions; no area if the access needs no check at all.
    fn reached(&mut self, inst: &Inst, access: &Access, ranges: &mut Ranges) -> Option<(Conditions, Option<Area>)> {
        if !self.checks.bounds {
            return (!self.checks.null).then(|| (Conditions::new(), None));
        }
        if access.mask.is_some() || matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter)) {
            return None;
        }
        let origin = self.origin(access.address);
        if ranges.own.contains(&origin.root) || origin.terms.len() > MAX_TERMS {
            return None;
        }
        let Some(bounds) = self.bounds(origin.root) else { return Some((Conditions::new(), None)) };
        let bytes = Some(i128::from(origin.bytes)).filter(|n| n.abs() < MOST_BYTES)?;
        let (mut lo, mut hi) = (Num::Known(bytes), Num::Known(bytes + i128::from(access.size)));
        let mut conditions = Conditions::new();
        for (idx, step) in origin.terms {
            let range = self.range(idx, ranges)?;
            let step = i128::from(step);
            let most = MOST_BYTES / step.max(1);
            let is_narrow = self.code.types.as_prim(self.code.function.ty(idx))?.bits() <= 32;
            for end in [range.lo, range.hi] {
                match end {
                    Num::Known(n) if n.abs() > most => return None,
                    Num::Computed(_) if !is_narrow || most < 1 << 32 => conditions.extend(self.near_zero(end, most)?),
                    _ => {}
                }
            }
            conditions.extend(range.conditions);
            let (below, above) = (self.product(range.lo, Num::Known(step))?, self.product(range.hi, Num::Known(step))?);
            (lo, hi) = (self.sum(lo, below)?, self.sum(hi, above)?);
        }
        if let Bounds::Known(all) = bounds {
            conditions.extend(self.at_most(Num::Known(0), lo)?);
            conditions.extend(self.at_most(hi, Num::Known(all.into()))?);
            return Some((conditions, None));
        }
        Some((conditions, Some(Area { root: origin.root, lo, hi, is_filled: false })))
    }

    /// Whether the accesses of all iterations cover their area without a gap: the index is the counter plus what does not change.
    fn fills(&self, access: &Access, found: &Counted, counter: Value, ranges: &Ranges) -> bool {
        let [(mut idx, step)] = self.origin(access.address).terms[..] else { return false };
        let is_fixed = |v: Value| !ranges.own.contains(&v);
        // This ends: each value is computed from earlier ones.
        while idx != counter {
            let Some(Inst { op: InstOp::Op(op), args, .. }) = self.defs.get(&idx) else { return false };
            idx = match (op, &args[..]) {
                (Op::Cast, &[a]) => a,
                (Op::Add | Op::Sub, &[a, b]) if is_fixed(b) => a,
                (Op::Add, &[a, b]) if is_fixed(a) => b,
                _ => return false,
            };
        }
        step.unsigned_abs().checked_mul(found.step.unsigned_abs()) == Some(access.size)
    }

    /// The conditions that areas lie within their blocks and are initialized. Areas that the loop initializes are marked after it.
    fn hold_for(&mut self, areas: &[Area], version: &Version) -> Option<Conditions> {
        let mut conditions = Conditions::new();
        let mut roots: Vec<Value> = Vec::new();
        for area in areas.iter().filter(|a| !matches!(self.bounds(a.root), Some(Bounds::Known(_)) | None)) {
            if !roots.contains(&area.root) {
                roots.push(area.root);
            }
        }
        let (bool_ty, u64) = (self.code.types.bool(), self.code.types.prim(Prim::U64));
        for root in roots {
            let Some(Bounds::Object(object, ahead)) = self.bounds(root) else { continue };
            let of_root: Vec<Area> = areas.iter().filter(|a| a.root == root).copied().collect();
            let all = self.hull(of_root.iter())?;
            let ahead = Num::Computed(self.cast(ahead, Prim::I64));
            let (lo, hi) = (self.sum(ahead, all.lo)?, self.sum(ahead, all.hi)?);
            conditions.extend(self.at_most(Num::Known(0), lo)?);
            // A wild pointer may be any number, so these sums may overflow.
            conditions.extend(self.at_most(lo, hi)?);
            let (end, size) = (self.computed(hi)?, self.word(object, super::checker::SIZE));
            let end = self.cast(end, Prim::U64);
            conditions.push(self.op(Op::Le, &[end, size], bool_ty));
            if !self.checks.uninit {
                continue;
            }
            let number = self.number(root);
            if let Some(needed) = self.hull(of_root.iter().filter(|a| !a.is_filled)) {
                let (from, length) = self.bytes_of(number, &needed, u64)?;
                conditions.push(self.call(self.tables.is_initialized, &[from, length, object], Some(bool_ty)));
            }
            for area in of_root.iter().filter(|a| a.is_filled) {
                let (from, length) = self.bytes_of(number, area, u64)?;
                self.filled.entry(version.leave[0]).or_default().push([from, length, object]);
            }
        }
        Some(conditions)
    }

    /// The smallest area that contains others.
    fn hull<'s>(&mut self, areas: impl Iterator<Item = &'s Area>) -> Option<Area> {
        let mut hull: Option<Area> = None;
        for area in areas {
            hull = Some(match hull {
                None => *area,
                Some(h) => {
                    let (lo, hi) = (self.least(h.lo, area.lo, false)?, self.least(h.hi, area.hi, true)?);
                    Area { lo, hi, ..h }
                }
            });
        }
        hull
    }

    /// The first address of an area, and its number of bytes.
    fn bytes_of(&mut self, number: Value, area: &Area, u64: nyala_ir::Ty) -> Option<(Value, Value)> {
        let [lo, hi] = [self.computed(area.lo)?, self.computed(area.hi)?].map(|v| self.cast(v, Prim::U64));
        Some((self.op(Op::Add, &[number, lo], u64), self.op(Op::Sub, &[hi, lo], u64)))
    }

    // Numbers.

    fn computed(&mut self, n: Num) -> Option<Value> {
        match n {
            Num::Known(n) if n.abs() <= MOST => Some(self.literal(Prim::I64, n as u64)),
            Num::Known(_) => None,
            Num::Computed(v) => Some(v),
        }
    }

    fn compute(&mut self, op: Op, a: Num, b: Num) -> Option<Num> {
        let (a, b, i64) = (self.computed(a)?, self.computed(b)?, self.code.types.i64());
        // Unsigned, so that nothing is undefined if a condition fails. The result does not matter then.
        let wraps = matches!(op, Op::Add | Op::Sub | Op::Mul);
        if !wraps {
            return Some(Num::Computed(self.op(op, &[a, b], i64)));
        }
        let u64 = self.code.types.prim(Prim::U64);
        let [a, b] = [a, b].map(|v| self.cast(v, Prim::U64));
        let r = self.op(op, &[a, b], u64);
        Some(Num::Computed(self.cast(r, Prim::I64)))
    }

    fn sum(&mut self, a: Num, b: Num) -> Option<Num> {
        match (a, b) {
            (Num::Known(a), Num::Known(b)) => a.checked_add(b).map(Num::Known),
            (n, Num::Known(0)) | (Num::Known(0), n) => Some(n),
            _ => self.compute(Op::Add, a, b),
        }
    }

    fn difference(&mut self, a: Num, b: Num) -> Option<Num> {
        match (a, b) {
            (Num::Known(a), Num::Known(b)) => a.checked_sub(b).map(Num::Known),
            (n, Num::Known(0)) => Some(n),
            _ => self.compute(Op::Sub, a, b),
        }
    }

    fn product(&mut self, a: Num, b: Num) -> Option<Num> {
        match (a, b) {
            (Num::Known(a), Num::Known(b)) => a.checked_mul(b).map(Num::Known),
            (n, Num::Known(1)) | (Num::Known(1), n) => Some(n),
            _ => self.compute(Op::Mul, a, b),
        }
    }

    /// A quotient, or a number shifted to the right.
    fn apply(&mut self, op: Op, a: Num, by: i128) -> Option<Num> {
        match a {
            Num::Known(a) if op == Op::Div => Some(Num::Known(a / by)),
            Num::Known(a) => Some(Num::Known(a >> by)),
            a => self.compute(op, a, Num::Known(by)),
        }
    }

    /// The smaller of two numbers, or the greater.
    fn least(&mut self, a: Num, b: Num, is_greatest: bool) -> Option<Num> {
        if let (Num::Known(a), Num::Known(b)) = (a, b) {
            return Some(Num::Known(if is_greatest { a.max(b) } else { a.min(b) }));
        }
        if a == b {
            return Some(a);
        }
        let (a, b) = (self.computed(a)?, self.computed(b)?);
        let (bool_ty, i64) = (self.code.types.bool(), self.code.types.i64());
        let is_less = self.op(if is_greatest { Op::Gt } else { Op::Lt }, &[a, b], bool_ty);
        Some(Num::Computed(self.op(Op::Select, &[is_less, a, b], i64)))
    }

    /// The condition that one number is at most another: an empty list if that is known to hold, `None` if it is known not to.
    fn at_most(&mut self, a: Num, b: Num) -> Option<Conditions> {
        if let (Num::Known(a), Num::Known(b)) = (a, b) {
            return (a <= b).then(Conditions::new);
        }
        let (a, b, bool_ty) = (self.computed(a)?, self.computed(b)?, self.code.types.bool());
        Some(smallvec![self.op(Op::Le, &[a, b], bool_ty)])
    }

    /// The condition that a number has at most this magnitude.
    fn near_zero(&mut self, n: Num, most: i128) -> Option<Conditions> {
        let mut conditions = self.at_most(Num::Known(-most), n)?;
        conditions.extend(self.at_most(n, Num::Known(most))?);
        Some(conditions)
    }
}
