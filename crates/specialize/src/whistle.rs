//! Decides when a recursion is taken for divergent, by comparison with its ancestors. Also holds the hints for the next
//! round, and makes the report for recursions that nothing can stop (`docs/design/specializer.md`, Drift).

use crate::diagnostics::specialization_diverges;
use crate::eval::View;
use crate::record::Record;
use nyala_base::{Diagnostic, FileId, SideTable, Span};
use nyala_ir::{Cont, Node, Op, TyKind, Val, World, print};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Limit on the ancestors of the same continuation with which a call is compared.
pub const MAX_ANCESTORS: usize = 16;
/// Limit on the records that are searched for ancestors.
pub const MAX_RECORDS: usize = 256;
/// Limit on how often the number of searched records is doubled, as it is now and then.
pub const FARTHEST: u32 = 15;

/// The number of calls that a report shows.
const SHOWN_CALLS: usize = 4;
/// Recursions that end soon have at most this many different numbers as one argument.
pub const FEW_NUMBERS: usize = 6;

/// A continuation and the parameters to specialize.
pub type CallKey = (Cont, u64);

/// The kind of a specialized argument, as far as it is the same from round to round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Literal,
    Closure(Cont),
    Other,
}

/// The kinds of all arguments; `Other` for those that are not specialized.
pub type Kinds = smallvec::SmallVec<[Kind; 6]>;

/// The source continuations that a function value is made of: its own, and those of the closures it captures.
pub type Sources = FxHashSet<Cont>;

/// What is the same of a unit from round to round: the function, and for a kernel that it launches, that.
pub type UnitName = (Cont, Option<Cont>);

/// The findings of earlier rounds. Each is about the code of one *unit*: a root, a function that captures nothing and is
/// called with nothing specialized, or a kernel that one of these launches. A finding in one unit says nothing about the
/// others. Only calls and meetings are found for a function with its kernels.
#[derive(Default, Clone, Debug)]
pub struct Hints {
    /// Parameters not to specialize in such calls, because their arguments would be different each time.
    drift: FxHashMap<(UnitName, CallKey), Vec<Drifting>>,
    /// Calls that are the only ones of their callee.
    inline: FxHashSet<(Cont, CallKey)>,
    /// Functions of which there were too many copies (`eval/sharing.rs`).
    shared: FxHashMap<(UnitName, Cont), Sharing>,
    /// Continuations where lanes meet. Each is built as one block for all requests, which knows nothing about where
    /// lanes come from.
    meetings: FxHashSet<(Cont, Cont)>,
}

/// Parameters that drift in calls with arguments of these kinds. Arguments that are drifting functions are different
/// closures in the next round, when they capture less, but they are made of no other sources.
#[derive(Clone, Debug)]
struct Drifting {
    kinds: Kinds,
    params: u64,
    /// By parameter, the sources of the functions that drift.
    sources: Vec<(usize, Sources)>,
}

impl Drifting {
    fn is_function(&self, i: usize) -> bool {
        i < 64 && self.params >> i & 1 == 1 && matches!(self.kinds[i], Kind::Closure(_))
    }
    /// Whether calls with arguments of `kinds` are meant, apart from functions that drift.
    fn is_like(&self, kinds: &Kinds) -> bool {
        let is_like = |(i, (a, b)): (usize, (&Kind, &Kind))| a == b || self.is_function(i);
        self.kinds.len() == kinds.len() && self.kinds.iter().zip(kinds).enumerate().all(is_like)
    }
}

/// Which parameters of a function are no longer specialized, so that calls share its copies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sharing {
    /// Unknown arguments, and the return continuation.
    Returns,
    /// Other functions as well.
    Functions,
}

impl Hints {
    /// The parameters that drift in a call. `sources` returns the sources of an argument that is a function.
    pub fn drift(
        &self,
        unit: UnitName,
        key: CallKey,
        kinds: &Kinds,
        mut sources: impl FnMut(usize) -> Rc<[Cont]>,
    ) -> u64 {
        let noted = self.drift.get(&(unit, key)).into_iter().flatten().filter(|noted| noted.is_like(kinds));
        let is_related =
            |noted: &&Drifting| noted.sources.iter().all(|(i, of)| sources(*i).iter().all(|k| of.contains(k)));
        noted.filter(is_related).fold(0, |all, noted| all | noted.params)
    }
    /// Notes a continuation where lanes meet. Returns whether that is new.
    pub fn note_meeting(&mut self, unit: Cont, k: Cont) -> bool {
        self.meetings.insert((unit, k))
    }
    pub fn is_meeting(&self, unit: Cont, k: Cont) -> bool {
        !self.meetings.is_empty() && self.meetings.contains(&(unit, k))
    }
    /// Continuations whose calls drift, or are shared, in some unit.
    pub fn drifting(&self) -> SideTable<Cont, bool> {
        let mut drifting = SideTable::default();
        self.drift.keys().for_each(|&(_, (k, _))| drifting[k] = true);
        self.shared.keys().for_each(|&(_, k)| drifting[k] = true);
        drifting
    }
    pub fn sharing(&self, unit: UnitName, k: Cont) -> Option<Sharing> {
        self.shared.get(&(unit, k)).copied()
    }
    /// Notes that copies are shared. Returns whether that is new.
    pub fn note_shared(&mut self, unit: UnitName, k: Cont, sharing: Sharing) -> bool {
        self.shared.insert((unit, k), sharing) != Some(sharing)
    }
    /// Continuations that were called only once with some parameters specialized, in some unit.
    pub fn inlining(&self) -> SideTable<Cont, bool> {
        let mut inlining = SideTable::default();
        self.inline.iter().for_each(|&(_, (k, _))| inlining[k] = true);
        inlining
    }
    pub fn is_inline(&self, unit: Cont, key: CallKey) -> bool {
        self.inline.contains(&(unit, key))
    }
    pub fn note_drift(
        &mut self,
        unit: UnitName,
        key: CallKey,
        kinds: Kinds,
        params: u64,
        mut sources: impl FnMut(usize) -> Rc<[Cont]>,
    ) {
        let mut new = Drifting { kinds, params, sources: Vec::new() };
        let functions: Vec<usize> = (0..new.kinds.len()).filter(|&i| new.is_function(i)).collect();
        new.sources = functions.into_iter().map(|i| (i, sources(i).iter().copied().collect())).collect();
        self.merge_drift(unit, key, new);
    }
    /// Adds parameters that drift. Returns false if nothing about them is new.
    fn merge_drift(&mut self, unit: UnitName, key: CallKey, new: Drifting) -> bool {
        let noted = self.drift.entry((unit, key)).or_default();
        let same = noted.iter_mut().find(|old| old.params == new.params && old.is_like(&new.kinds));
        let Some(old) = same else {
            noted.push(new);
            return true;
        };
        let mut changed = false;
        for ((_, old), (_, new)) in old.sources.iter_mut().zip(new.sources) {
            let n = old.len();
            old.extend(new);
            changed |= old.len() > n;
        }
        changed
    }
    pub fn note_inline(&mut self, unit: Cont, key: CallKey) {
        self.inline.insert((unit, key));
    }

    /// Adds the hints of `new`. Returns false if none of them is new.
    pub fn absorb(&mut self, new: Hints) -> bool {
        let mut changed = false;
        for ((unit, key), noted) in new.drift {
            for drifting in noted {
                changed |= self.merge_drift(unit, key, drifting);
            }
        }
        for key in new.inline {
            changed |= self.inline.insert(key);
        }
        for ((unit, k), sharing) in new.shared {
            changed |= self.note_shared(unit, k, sharing);
        }
        for meeting in new.meetings {
            changed |= self.meetings.insert(meeting);
        }
        changed
    }
}

/// How a value of a recursive call relates to the value of an ancestor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    Same,
    /// Unknown and different each time, or grown around the old value: it would never repeat.
    Drift,
    /// Another known value: the recursion may end.
    Progress,
}

/// Compares a value with the ancestor's. Without `numbers`, two known numbers count as equal.
pub fn compare(view: View, old: Val, new: Val, numbers: bool) -> Change {
    let mut worst = Change::Same;
    let mut work = vec![(old, new)];
    let mut seen = FxHashSet::default();
    while let Some((old, new)) = work.pop() {
        if old == new || !seen.insert((old, new)) {
            continue;
        }
        if seen.len() > 1000 {
            return Change::Drift;
        }
        let change = match (view.captured(old), view.captured(new)) {
            // Another function around the old one is a step inward, as in nested loops; the same one again is growth.
            (Some((k, a)), Some((l, b))) if k == l && a.len() == b.len() => {
                if contains(view, new, old) {
                    Change::Drift
                } else {
                    work.extend(a.iter().copied().zip(b.iter().copied()));
                    Change::Same
                }
            }
            // A value that was known and no longer is will stay unknown: the call is unfolded once more, then built as
            // a function.
            (Some(_), _) | (None, Some(_)) => Change::Progress,
            (None, None) if !numbers && view.dst.as_lit(old).is_some() && view.dst.as_lit(new).is_some() => {
                Change::Same
            }
            (None, None) if view.dst.as_lit(old).is_some() => Change::Progress,
            (None, None) => match view.dst.node(new) {
                Node::Lit(_) | Node::Global(_) | Node::Cont(_) | Node::Undef => Change::Progress,
                Node::Op(op @ (Op::Tuple | Op::Struct | Op::Array | Op::Splat)) => {
                    let (a, b) = (view.dst.args(old), view.dst.args(new));
                    if view.dst.is_op(old, op) && a.len() == b.len() {
                        work.extend(a.iter().copied().zip(b.iter().copied()));
                        Change::Same
                    } else {
                        Change::Progress
                    }
                }
                _ => Change::Drift,
            },
        };
        worst = worst.max(change);
        if worst == Change::Progress {
            return worst;
        }
    }
    worst
}

/// Whether closure `new` captures `old`, at any depth.
pub fn contains(view: View, new: Val, old: Val) -> bool {
    // A closure that captures `old` has a greater height.
    let height = view.height(old).unwrap_or(0);
    let mut work = vec![new];
    let mut seen = FxHashSet::default();
    while let Some(v) = work.pop() {
        if seen.len() > 1000 {
            return false;
        }
        let parts: &[Val] = match view.captured(v) {
            Some((_, vals)) if view.height(v).is_some_and(|h| h > height) => vals,
            Some(_) => continue,
            None if view.dst.types.has_function(view.dst.ty(v)) => view.dst.args(v),
            None => continue,
        };
        for &part in parts {
            if part == old {
                return true;
            }
            if seen.insert(part) {
                work.push(part);
            }
        }
    }
    false
}

/// Why an evaluation was given up.
pub struct Diverged {
    /// The name of the budget that is spent.
    pub what: &'static str,
    pub limit: u64,
    /// The recursive continuation unfolded most often lately, if there is one. `call` is where it was called; `chain`
    /// has the arguments of its calls, oldest first.
    pub cont: Option<Cont>,
    pub call: Span,
    /// The known calls around it, the innermost first. Only the first of several calls in one file is listed.
    pub around: Vec<Span>,
    pub chain: Vec<Vec<String>>,
    /// The evaluation was ended although no budget is spent, as another round will need less.
    pub is_early: bool,
    /// The budget of all units together is spent.
    pub is_total: bool,
    /// The record of the decisions until then, if it was asked for.
    pub record: Option<Box<Record>>,
}

/// Whether some argument is a different known number in each of at least three calls.
pub fn counts(calls: &[&[String]]) -> bool {
    calls.len() > 2 && numbers(calls).0 == calls.len()
}

/// The argument with the most different known numbers in the calls: their count, and the argument's index.
pub fn numbers(calls: &[&[String]]) -> (usize, usize) {
    let numbers = |i| calls.iter().filter_map(move |args| args.get(i)).filter(|a: &&String| is_number(a));
    let n_args = calls.iter().map(|args| args.len()).max().unwrap_or(0);
    (0..n_args).map(|i| (numbers(i).collect::<FxHashSet<_>>().len(), i)).max().unwrap_or_default()
}

fn is_number(shown: &str) -> bool {
    shown.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// Selects the calls to show, usually the last ones. If the numbers of some argument keep changing but other calls lie
/// between, selects the last calls with different such numbers.
pub fn last_calls<'a>(calls: &[&'a [String]]) -> Vec<&'a [String]> {
    let last = &calls[calls.len().saturating_sub(SHOWN_CALLS)..];
    let (n, i) = numbers(calls);
    if n <= FEW_NUMBERS || counts(last) {
        return last.to_vec();
    }
    let mut seen = FxHashSet::default();
    let mut with_another = |args: &&[String]| args.get(i).is_some_and(|a| is_number(a) && seen.insert(a.clone()));
    let mut shown: Vec<_> = calls.iter().rev().copied().filter(|args| with_another(args)).take(SHOWN_CALLS).collect();
    shown.reverse();
    shown
}

/// The error for an evaluation that was given up. It points at the innermost call outside of libraries, which
/// `is_library` recognizes by file.
pub fn report(source: &World, d: &Diverged, is_library: impl Fn(FileId) -> bool) -> Diagnostic {
    let is_own = |span: &&Span| !span.is_none() && !is_library(span.file);
    let own = std::iter::once(&d.call).chain(&d.around).find(is_own).copied().unwrap_or(d.call);
    let Some(k) = d.cont else {
        return specialization_diverges::budget(own, d.limit, d.what);
    };
    let data = source.cont(k);
    let name = |i: usize| source.param_name(k, i).unwrap_or("_");
    let mut changing = Vec::new();
    let mut unknown = Vec::new();
    let mut unasked = None;
    for (i, &param) in source.params(k).iter().enumerate().skip(1) {
        let values: Vec<&str> = d.chain.iter().filter_map(|args| args.get(i)).map(|s| s.as_str()).collect();
        let changes = values.windows(2).any(|w| w[0] != w[1]);
        if changes && !source.types.has_function(source.ty(param)) {
            changing.push((name(i), values.join(", ")));
            let is_other = |&f: &Val| source.as_lit(f).is_none() && !mentions(source, f, param);
            unasked = unasked.or(data.filter.all.filter(is_other).map(|_| name(i)));
        } else if values.last() == Some(&"?") && matches!(source.types.kind(source.ty(param)), TyKind::Prim(_)) {
            unknown.push(name(i));
        }
    }
    let advice = specialization_diverges::Advice { changing, unknown, unasked };
    specialization_diverges::recursion((own, d.call), source.name(k), data.origin, (d.limit, d.what), &advice)
}

/// Whether a filter depends on a parameter.
fn mentions(w: &World, filter: Val, param: Val) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![filter];
    while let Some(v) = work.pop() {
        if v == param {
            return true;
        }
        if seen.insert(v) {
            work.extend(w.args(v));
        }
    }
    false
}

/// The text of a value in messages.
pub fn show(w: &World, v: Val) -> String {
    match w.node(v) {
        Node::Lit(bits) => print::literal(&w.types, w.ty(v), bits),
        Node::Undef => "undef".into(),
        Node::Global(g) => format!("&{}", w.global(g).name),
        Node::Cont(_) => "a function".into(),
        Node::Op(Op::Tuple | Op::Struct | Op::Array) if w.args(v).len() <= 8 => {
            let parts: Vec<String> = w.args(v).iter().map(|&a| show(w, a)).collect();
            format!("({})", parts.join(", "))
        }
        _ => "?".into(),
    }
}
