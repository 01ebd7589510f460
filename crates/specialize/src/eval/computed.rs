//! Calls that are *computed* as a whole: calls of functions with loops or recursion whose inputs are known numbers, and
//! in which nothing is left to decide. The interpreter runs such a call, confined, several times as fast as the
//! evaluator's own machine could. Its results go on as numbers.
//!
//! The result is the same either way. If the interpreter stops at undefined behavior, or when its budget is spent, the
//! evaluator goes through the call itself, as if nothing had been tried. A function takes part
//!
//! - if it captures nothing, its only parameter with functions is its return continuation, and its arguments and
//!   results are numbers, or structs and arrays of numbers; arguments may also be addresses of constants;
//! - if no operation that it may reach has effects seen from outside (foreign functions, globals that change, the heap,
//!   atomics), asks what the interpreter does not know (`?`, `$`, `static_assert`, `pe_info`), uses addresses as
//!   numbers, or would not fold (`sin`);
//! - if, outside of a call by `@`, all functions that it may reach have filters that hold when their arguments are
//!   known, and all loops are recursions of these: a call that the annotations leave residual stays.

use super::Evaluator;
use super::call::Rules;
use super::code::{Code, MAX_PARTS, Operand, Target};
use super::plain::Value;
use super::state::Mode;
use crate::facts::{Facts, Traits, is_data, is_function};
use nyala_base::SideTable;
use nyala_interp::{Machine, UNINITIALIZED};
use nyala_ir::{Builtin, Cont, Linkage, Node, Op, Ty, TyKind, Val, World};
use std::rc::Rc;

/// The number of functions whose computation may fail before no further call is tried.
const MAX_FAILURES: u32 = 16;
/// Limit on the words of arguments. They are visited at each call, in vain if one of them is not known.
const MAX_WORDS: usize = 256;
/// Limit on the constants that are checked in one body.
const MAX_CONSTANTS: usize = 64;

/// In the interpreter, overflow wraps as it does in constant folding.
static CONFINED: nyala_interp::Options =
    nyala_interp::Options { libraries: Vec::new(), max_steps: None, wrap: true, confined: true, residual: false };

/// How calls of a function are computed.
pub(super) struct Computable {
    /// Calls are also computed outside of a call by `@`.
    by_filters: bool,
    /// Code whose frame has the function's parameters, then the results. It calls the return continuation with the
    /// results.
    code: Rc<Code>,
    results: Box<[Ty]>,
}

#[derive(Default)]
pub(super) struct Computer<'a> {
    machine: Option<Machine<'a>>,
    /// Whether the computation of a call of the function was given up.
    has_failed: SideTable<Cont, bool>,
    failures: u32,
    words: Vec<u64>,
}

impl Traits {
    fn or(self, other: Traits) -> Traits {
        Traits {
            is_open: self.is_open | other.is_open,
            is_partial: self.is_partial | other.is_partial,
            has_loop: self.has_loop | other.has_loop,
        }
    }
}

impl Evaluator<'_> {
    /// How calls of a function are computed. `None` if they never are.
    pub(super) fn computable(&mut self, k: Cont, rules: &Rules) -> Option<Box<Computable>> {
        let source = self.source;
        let params = source.params(k);
        let (&ret, rest) = params.split_last()?;
        let (&mem, data) = rest.split_first()?;
        let results = source.types.cn_params(source.ty(ret))?;
        let (&first, results) = results.split_first()?;
        let is_closed = source.ty(mem) == source.types.mem()
            && first == source.types.mem()
            && data.iter().all(|&p| is_data(source, source.ty(p)) || source.types.pointee(source.ty(p)).is_some())
            && results.iter().all(|&ty| is_data(source, ty))
            && self.facts.nest.free(k).is_empty();
        if !is_closed || !self.options.annotations {
            return None;
        }
        let facts = self.facts;
        let traits = facts.traits.get_or_init(|| find_traits(source, facts))[k];
        if traits.is_open || !traits.has_loop {
            return None;
        }
        let results: Box<[Ty]> = results.into();
        let n = params.len() as u32;
        let slots = std::iter::once(0).chain(n..n + results.len() as u32);
        let code = Code {
            cont: k,
            n_free: 0,
            rules: *rules,
            insts: Vec::new(),
            tys: params.iter().map(|&p| source.ty(p)).chain(results.iter().copied()).collect(),
            callee: Operand::Slot(n - 1),
            target: Target::Call { unfold: false },
            args: slots.map(Operand::Slot).collect(),
            arg_tys: std::iter::once(source.types.mem()).chain(results.iter().copied()).collect(),
            origin: source.body(k)?.origin,
            targets: Default::default(),
            computable: None,
            returns: None,
            slots: Default::default(),
        };
        Some(Box::new(Computable { by_filters: !traits.is_partial, code: Rc::new(code), results }))
    }

    /// Computes a call whose arguments are in the frame. Returns the code that goes on with the results, which are then
    /// in the frame too.
    pub(super) fn compute_call(&mut self, code: &Code, frame: &mut Vec<Value>, mode: Mode) -> Option<Rc<Code>> {
        let computable = code.computable.as_ref()?;
        let is_asked = computable.by_filters || matches!(mode, Mode::Run(_));
        if !is_asked || self.computer.has_failed[code.cont] || self.computer.failures >= MAX_FAILURES {
            return None;
        }
        let mut machine = match self.computer.machine.take() {
            Some(machine) => machine,
            None => Machine::new(self.source, &self.facts.nest, &CONFINED).ok()?,
        };
        let mut words = std::mem::take(&mut self.computer.words);
        words.clear();
        let data = 1..frame.len() - 1;
        let is_known = frame[data.clone()].iter().zip(&code.tys[data]).all(|(&v, &ty)| {
            // An address that is a number refers to the program's memory, not to the interpreter's.
            let is_number = matches!(v, Value::Lit(bits) if bits != 0);
            !(is_number && self.source.types.pointee(ty).is_some()) && self.push_words(v, &mut machine, &mut words)
        });
        let results = if is_known { self.compute_words(code.cont, &mut machine, &words) } else { None };
        self.computer.words = words;
        // A machine that has stopped with a fault is not used again.
        if !self.computer.has_failed[code.cont] {
            self.computer.machine = Some(machine);
        }
        let results = results?;
        let (mut rest, n_args) = (&results[..], frame.len());
        for &ty in &computable.results {
            let Some(v) = self.value_of_words(ty, &mut rest) else {
                frame.truncate(n_args);
                return None;
            };
            frame.push(v);
        }
        Some(computable.code.clone())
    }

    /// Appends the words of a number, of the address of a constant, or of a struct or array of these. Returns false for
    /// other values.
    fn push_words(&mut self, v: Value, machine: &mut Machine, words: &mut Vec<u64>) -> bool {
        match v {
            _ if words.len() > MAX_WORDS => return false,
            Value::Lit(bits) => words.push(bits),
            Value::Place(p) => {
                let Node::Global(g) = self.dst.node(p.base()) else { return false };
                let data = self.source.global(g);
                if data.mutable || self.source.types.has_function(data.ty) {
                    return false;
                }
                let n = self.cache.shapes.leaves(self.source, data.ty);
                let Some(address) = machine.address(g, p.at(), n) else { return false };
                words.push(address);
            }
            // The recursion is as deep as the type.
            Value::Parts(c) => {
                for i in 0..self.plain.parts(c).len() {
                    if !self.push_words(self.plain.parts(c)[i], machine, words) {
                        return false;
                    }
                }
            }
            Value::Node(v) if matches!(self.dst.as_op(v.val()), Some(Op::Struct | Op::Tuple | Op::Array)) => {
                for i in 0..self.dst.args(v.val()).len() {
                    let part = self.value_of(self.dst.args(v.val())[i]);
                    if !self.push_words(part, machine, words) {
                        return false;
                    }
                }
            }
            // All elements are equal.
            Value::Node(v) if self.dst.as_op(v.val()) == Some(Op::Splat) => {
                let n = match *self.dst.types.kind(self.dst.ty(v.val())) {
                    TyKind::Array(_, n) => n,
                    TyKind::Vector(_, n) => n.into(),
                    _ => return false,
                };
                let elem = self.value_of(self.dst.args(v.val())[0]);
                let first = words.len();
                if !self.push_words(elem, machine, words) {
                    return false;
                }
                let one = words[first..].to_vec();
                for _ in 1..n {
                    if words.len() > MAX_WORDS {
                        return false;
                    }
                    words.extend_from_slice(&one);
                }
            }
            _ => return false,
        }
        true
    }

    /// Runs a call in the interpreter. Returns the words of its results, if all of them are defined.
    fn compute_words(&mut self, k: Cont, machine: &mut Machine, args: &[u64]) -> Option<Vec<u64>> {
        // Each failure halves the time that later attempts may take.
        machine.limit_steps(self.budget.reductions_left() >> self.computer.failures);
        match machine.run(k, args) {
            Ok(results) if !results.contains(&UNINITIALIZED) => {
                self.budget.reductions += machine.steps();
                if self.record.is_some() {
                    self.explain_computed(k, machine.steps());
                }
                Some(results)
            }
            _ => {
                self.computer.has_failed[k] = true;
                self.computer.failures += 1;
                None
            }
        }
    }

    fn value_of_words(&mut self, ty: Ty, words: &mut &[u64]) -> Option<Value> {
        match *self.source.types.kind(ty) {
            TyKind::Prim(_) => words.split_off_first().map(|&bits| Value::Lit(bits)),
            TyKind::Struct(_) | TyKind::Tuple(_)
                if self.source.types.n_parts(ty).is_some_and(|n| (1..=MAX_PARTS as u64).contains(&n)) =>
            {
                let n = self.source.types.n_parts(ty)?;
                let mut parts = Vec::with_capacity(n as usize);
                for i in 0..n {
                    parts.push(self.value_of_words(self.source.types.part(ty, i)?, words)?);
                }
                Some(self.parts(ty, &parts))
            }
            _ => {
                let node = nyala_interp::constant(&mut self.dst, ty, words).ok()?;
                Some(self.value_of(node))
            }
        }
    }
}

/// The traits of every continuation: its own, and those of the continuations that it may reach.
fn find_traits(w: &World, facts: &Facts) -> SideTable<Cont, Traits> {
    let mut traits: SideTable<Cont, Traits> = SideTable::default();
    let referrers = facts.nest.referrers();
    let mut work = facts.nest.conts.clone();
    for &k in &facts.nest.conts {
        traits[k] = own_traits(w, facts, k);
    }
    while let Some(k) = work.pop() {
        for &by in &referrers[k] {
            let both = traits[by].or(traits[k]);
            if both != traits[by] {
                traits[by] = both;
                work.push(by);
            }
        }
    }
    traits
}

fn own_traits(w: &World, facts: &Facts, k: Cont) -> Traits {
    let is_recursive = facts.is_recursive[k];
    let is_partial = (is_recursive || is_function(w, k)) && !holds_when_known(w, facts, k);
    Traits { is_open: is_open(w, facts, k), is_partial, has_loop: is_recursive }
}

/// Whether the filters unfold every call whose arguments are known.
fn holds_when_known(w: &World, facts: &Facts, k: Cont) -> bool {
    let filter = &w.cont(k).filter;
    let all = filter.all.is_some_and(|f| is_true_when_known(w, f));
    let mut mask = facts.automatic[k] | 1;
    for (i, f) in filter.params.iter().enumerate().take(64) {
        mask |= (f.is_some_and(|f| is_true_when_known(w, f)) as u64) << i;
    }
    let n = w.params(k).len();
    all || (n > 1 && n < 64 && mask == (1 << n) - 1)
}

/// Whether a filter is true when all arguments are known. The recursion is as deep as the filter in the source, which
/// is limited.
fn is_true_when_known(w: &World, f: Val) -> bool {
    match w.node(f) {
        Node::Lit(bits) => bits == 1,
        Node::Op(Op::Known) => true,
        Node::Op(Op::And) => w.args(f).iter().all(|&a| is_true_when_known(w, a)),
        Node::Op(Op::Or) => w.args(f).iter().any(|&a| is_true_when_known(w, a)),
        _ => false,
    }
}

/// Whether the interpreter cannot execute a body, or not as the evaluator does.
fn is_open(w: &World, facts: &Facts, k: Cont) -> bool {
    let Some(body) = w.body(k) else { return true };
    if matches!(*w.cont(k).linkage, Linkage::Foreign(_) | Linkage::Asm(_)) {
        return true;
    }
    let mut work: Vec<Val> = vec![body.callee];
    work.extend(body.args);
    for &v in facts.nest.ops(k) {
        if is_open_op(w, v) {
            return true;
        }
        work.extend(w.args(v));
    }
    // Values that no continuation owns are constants.
    let mut n = 0;
    while let Some(v) = work.pop() {
        match w.node(v) {
            Node::Global(g) => {
                let data = w.global(g);
                if data.mutable || w.types.has_function(data.ty) {
                    return true;
                }
            }
            Node::Lit(bits) if bits != 0 && w.types.pointee(w.ty(v)).is_some() => return true,
            Node::Builtin(b) if !matches!(b, Builtin::Branch | Builtin::Unreachable) => return true,
            Node::Op(_) if facts.nest.owner(v).is_none() => {
                n += 1;
                if n > MAX_CONSTANTS || is_open_op(w, v) {
                    return true;
                }
                work.extend(w.args(v));
            }
            _ => {}
        }
    }
    false
}

fn is_open_op(w: &World, v: Val) -> bool {
    let Some(op) = w.as_op(v) else { return false };
    let is_ptr = |v: Val| matches!(w.types.kind(w.ty(v)), TyKind::Ptr { .. });
    match op {
        Op::Known
        | Op::Hlt
        | Op::Alloc
        | Op::WorkItem
        | Op::Atomic
        | Op::AtomicLoad
        | Op::AtomicStore
        | Op::Cmpxchg
        | Op::CmpxchgWeak
        | Op::Fence => true,
        Op::Bitcast => {
            let from = w.args(v)[0];
            let (is_address, is_number) = (is_ptr(from) && is_ptr(v), is_data(w, w.ty(from)) && is_data(w, w.ty(v)));
            !is_address && !is_number
        }
        _ if op.is_comparison() => w.lane_prim(w.args(v)[0]).is_none(),
        _ => op.is_math() && !op.is_exact_math(),
    }
}
