//! Calls that are not evaluated again, as the same function was called with the same arguments before, and its results
//! follow from these. Separate from `computed.rs`, which is about calls whose arguments are numbers and needs no
//! earlier one.
//!
//! While a block is evaluated, calls are *open* from the entry of the function to that of the continuation that it was
//! called with. If nothing was written in between, and no residual block ended, the results are values that depend on
//! the arguments only, or also on what memory contains. The results of calls that took some work are kept. In the first
//! case they hold in the whole unit, as another evaluation would make the same nodes; in the second one, until
//! something is written, in the block.
//!
//! So a function that calls itself twice with equal arguments is evaluated once for each level, and not twice as often
//! for each.

use super::Evaluator;
use super::budget::UnitId;
use super::call::{Callee, Rules};
use super::code::{Code, Inst, Operand, Target};
use super::plain::{Kind, Value};
use super::state::{Mode, Site, StubId};
use crate::facts::is_return;
use nyala_base::SideTable;
use nyala_ir::{Cont, Effect, Node, Op, Ty, Val};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// The number of bodies that a call must have entered for its results to be kept.
const MIN_WORK: u64 = 32;
/// Limit on the values that a function captures and gets, and on the parts of these.
const MAX_VALUES: usize = 32;
const MAX_PARTS: usize = 256;
/// Limit on the open calls. Beyond it, the outermost are forgotten.
const MAX_OPEN: usize = 4096;
/// Limit on the open calls that a return is compared with: calls that were left in another way may be among them.
const MAX_COMPARED: usize = 8;
/// Limit on the calls of one unit whose results are kept.
const MAX_KEPT: u32 = 1 << 16;

/// How calls of a function return.
pub(super) struct Returns {
    /// Code whose frame has captured values and arguments, then the results. It calls the return continuation with the
    /// results.
    code: Rc<Code>,
    n_results: usize,
}

/// A value, or the head of a struct or closure whose parts follow.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Token {
    Value(Value),
    Parts(Ty, usize),
    Closure(Cont, usize),
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    unit: UnitId,
    function: Cont,
    is_run: bool,
    /// Captured values and arguments, without memory and the return continuation.
    values: Box<[Token]>,
}

struct Results {
    values: Box<[Token]>,
    /// If they depend on memory: the segment, the number of writes until then, and the memory.
    read: Option<(u32, u64, Value)>,
}

struct Open {
    function: Cont,
    is_run: bool,
    /// The start of its captured values and arguments in [`Repeated::values`].
    start: usize,
    n_free: usize,
    /// The number of bodies that were entered before.
    work: u64,
    has_read: bool,
}

/// The open calls of the block under evaluation, and the results of earlier ones.
#[derive(Default)]
pub(super) struct Repeated {
    open: Vec<Open>,
    values: Vec<Value>,
    /// The number of open calls whose values are nodes.
    n_nodes: usize,
    n_writes: u64,
    kept: FxHashMap<Key, Results>,
    /// Functions with results of which some are kept, and their number by unit.
    has_results: SideTable<Cont, bool>,
    n_kept: SideTable<UnitId, u32>,
}

impl Repeated {
    /// Nothing that is open may be kept any more.
    pub fn close(&mut self) {
        self.open.clear();
        self.values.clear();
        self.n_nodes = 0;
    }

    fn note_read(&mut self) {
        // The calls around an open call that has read have so, too.
        for open in self.open.iter_mut().rev() {
            if std::mem::replace(&mut open.has_read, true) {
                break;
            }
        }
    }

    fn pop_to(&mut self, n: usize) {
        if let Some(open) = self.open.get(n) {
            self.values.truncate(open.start);
            self.open.truncate(n);
            self.n_nodes = self.n_nodes.min(n);
        }
    }
}

impl Evaluator<'_> {
    /// How calls of a function return. `None` if its results are not kept.
    pub(super) fn returns(&self, k: Cont, rules: &Rules, insts: &[Inst]) -> Option<Box<Returns>> {
        let source = self.source;
        let (params, free) = (source.params(k), self.facts.nest.free(k));
        let (&ret, _) = params.split_last()?;
        let results = source.types.cn_params(source.ty(ret))?;
        let (&first, results) = results.split_first()?;
        let mem = source.types.mem();
        let writes = |inst: &Inst| {
            let harmless = matches!(inst.op.effect(), Effect::Total | Effect::Partial);
            !harmless && !matches!(inst.op, Op::Load | Op::DebugValue)
        };
        let n = free.len() + params.len();
        if source.ty(params[0]) != mem
            || first != mem
            || results.is_empty()
            || params.len() < 2
            || n > MAX_VALUES
            || !is_return(source, ret)
            || insts.iter().any(writes)
        {
            return None;
        }
        let mem_slot = free.len() as u32;
        let slots = std::iter::once(mem_slot).chain(n as u32..(n + results.len()) as u32);
        let values = free.iter().chain(params).map(|&v| source.ty(v));
        let code = Code {
            cont: k,
            n_free: free.len(),
            rules: *rules,
            insts: Vec::new(),
            tys: values.chain(results.iter().copied()).collect(),
            callee: Operand::Slot(n as u32 - 1),
            target: Target::Call { unfold: false },
            args: slots.map(Operand::Slot).collect(),
            arg_tys: std::iter::once(mem).chain(results.iter().copied()).collect(),
            origin: source.body(k)?.origin,
            targets: Default::default(),
            computable: None,
            returns: None,
            slots: Default::default(),
        };
        Some(Box::new(Returns { code: Rc::new(code), n_results: results.len() }))
    }

    /// If the results of the call whose arguments are in the frame are known from an earlier one: the code that goes on
    /// with them. They are then in the frame, too. Else, the call is open from now on.
    pub(super) fn repeat_call(&mut self, code: &Code, frame: &mut Vec<Value>, site: &Site) -> Option<Rc<Code>> {
        let returns = code.returns.as_ref()?;
        let n = returns.code.tys.len() - returns.n_results;
        // A condition that was looked at is in the frame already.
        if frame.len() != n {
            return None;
        }
        let (k, is_run) = (code.cont, matches!(site.past.mode, Mode::Run(_)));
        if self.repeated.has_results[k]
            && let Some(key) = self.key(k, is_run, frame, code.n_free)
            && let Some(results) = self.repeated.kept.get(&key)
            && results.read.is_none_or(|at| at == (site.segment, self.repeated.n_writes, frame[code.n_free]))
        {
            let has_read = results.read.is_some();
            let values = results.values.clone();
            let mut values = &values[..];
            for _ in 0..returns.n_results {
                let v = self.value_of_tokens(&mut values);
                frame.push(v);
            }
            if has_read {
                self.repeated.note_read();
            }
            return Some(returns.code.clone());
        }
        // A call in tail position returns as the one around it does.
        let ret = frame[n - 1];
        if let Some(last) = self.repeated.open.last()
            && let Some(&last_ret) = self.repeated.values.last()
            && last.start < self.repeated.values.len()
            && last_ret == ret
        {
            return None;
        }
        if self.repeated.open.len() == MAX_OPEN {
            self.repeated.close();
        }
        let start = self.repeated.values.len();
        self.repeated.values.extend_from_slice(&frame[..n]);
        let (n_free, work) = (code.n_free, self.budget.reductions);
        self.repeated.open.push(Open { function: k, is_run, start, n_free, work, has_read: false });
        None
    }

    /// Notes that a continuation is about to be called with these arguments. Keeps the results if it is the return
    /// continuation of an open call.
    #[inline]
    pub(super) fn note_return(&mut self, callee: Callee, args: &[Value], site: &Site) {
        if !self.repeated.open.is_empty() && !matches!(callee, Callee::Made(..)) {
            self.keep_results(callee, args, site);
        }
    }

    fn keep_results(&mut self, callee: Callee, args: &[Value], site: &Site) {
        let n_open = self.repeated.open.len();
        let mut end = self.repeated.values.len();
        for n in (n_open.saturating_sub(MAX_COMPARED)..n_open).rev() {
            let start = self.repeated.open[n].start;
            let is_it = match (self.repeated.values[end - 1], callee) {
                (Value::Closure(a), Callee::Plain(_, b)) => a == b,
                (v, Callee::Stub(s)) => self.stub_of_value(v) == Some(s),
                _ => false,
            };
            if !is_it {
                end = start;
                continue;
            }
            let Open { function, is_run, n_free, work, has_read, .. } = self.repeated.open[n];
            let mem = self.repeated.values[start + n_free];
            let unit = self.budget.unit;
            if self.budget.reductions - work >= MIN_WORK
                && args.first() == Some(&mem)
                && self.repeated.n_kept[unit] < MAX_KEPT
            {
                let frame = self.repeated.values[start..end].to_vec();
                let mut values = SmallVec::new();
                let fits = args[1..].iter().all(|&v| self.tokens(v, &mut values));
                if let Some(key) = self.key(function, is_run, &frame, n_free).filter(|_| fits) {
                    let read = has_read.then_some((site.segment, self.repeated.n_writes, mem));
                    let values = values.into_vec().into_boxed_slice();
                    self.repeated.kept.insert(key, Results { values, read });
                    self.repeated.has_results[function] = true;
                    self.repeated.n_kept[unit] += 1;
                }
            }
            self.repeated.pop_to(n);
            return;
        }
    }

    fn stub_of_value(&self, v: Value) -> Option<StubId> {
        match v {
            Value::Node(v) => self.stub_of_val(v.val()),
            Value::Closure(c) => self.plain.all[c.idx()].node.and_then(|v| self.stub_of_val(v)),
            _ => None,
        }
    }

    /// Notes the effect of an operation that is about to be made.
    pub(super) fn note_effect(&mut self, inst: &Inst, address: Option<Value>) {
        match inst.op.effect() {
            Effect::Total => {}
            _ if inst.op == Op::DebugValue => {}
            Effect::Partial => self.repeated.note_read(),
            _ if inst.op == Op::Load => {
                let is_constant = matches!(address, Some(Value::Place(p)) if self.is_constant(p.base()));
                if !is_constant {
                    self.repeated.note_read();
                }
            }
            _ => {
                self.repeated.n_writes += 1;
                self.repeated.close();
            }
        }
    }

    /// Notes that an operation gives addresses away, which holds from then on in the block.
    pub(super) fn note_given_away(&mut self) {
        self.repeated.note_read();
    }

    fn is_constant(&self, base: Val) -> bool {
        matches!(self.dst.node(base), Node::Global(g) if !self.dst.global(g).mutable)
    }

    /// Closures and structs that are not nodes yet are about to be freed. Those of open calls that have nodes stay as
    /// these.
    pub(super) fn keep_nodes(&mut self) {
        if self.repeated.n_nodes == self.repeated.open.len() {
            return;
        }
        let start = self.repeated.open[self.repeated.n_nodes].start;
        for at in start..self.repeated.values.len() {
            if let Value::Closure(c) | Value::Parts(c) = self.repeated.values[at] {
                let Some(node) = self.plain.all[c.idx()].node else {
                    // This call and those in it cannot be kept.
                    let n = self.repeated.open.partition_point(|open| open.start <= at) - 1;
                    self.repeated.pop_to(n);
                    break;
                };
                self.repeated.values[at] = Value::node(node);
            }
        }
        self.repeated.n_nodes = self.repeated.open.len();
    }

    fn key(&self, function: Cont, is_run: bool, frame: &[Value], n_free: usize) -> Option<Key> {
        let mut values = SmallVec::new();
        let data = frame[..n_free].iter().chain(&frame[n_free + 1..frame.len() - 1]);
        for &v in data {
            if !self.tokens(v, &mut values) {
                return None;
            }
        }
        Some(Key { unit: self.budget.unit, function, is_run, values: values.into_vec().into_boxed_slice() })
    }

    /// Appends the tokens of a value. Returns false if there are too many.
    fn tokens(&self, v: Value, tokens: &mut SmallVec<[Token; 16]>) -> bool {
        let mut work: SmallVec<[Value; 16]> = SmallVec::from_slice(&[v]);
        while let Some(v) = work.pop() {
            if tokens.len() > MAX_PARTS {
                return false;
            }
            let (Value::Closure(c) | Value::Parts(c)) = v else {
                tokens.push(Token::Value(v));
                continue;
            };
            let value = self.plain.all[c.idx()];
            if let Some(node) = value.node {
                tokens.push(Token::Value(Value::node(node)));
                continue;
            }
            let parts = self.plain.parts(c);
            tokens.push(match value.kind {
                Kind::Closure(k) => Token::Closure(k, parts.len()),
                Kind::Parts(ty) => Token::Parts(ty, parts.len()),
            });
            work.extend(parts.iter().rev().copied());
        }
        true
    }

    /// The value whose tokens come first. Results have no closures. The recursion is as deep as the type.
    fn value_of_tokens(&mut self, tokens: &mut &[Token]) -> Value {
        match tokens.split_off_first() {
            Some(&Token::Value(v)) => v,
            Some(&Token::Parts(ty, n)) => {
                let parts: Vec<Value> = (0..n).map(|_| self.value_of_tokens(tokens)).collect();
                self.parts(ty, &parts)
            }
            Some(Token::Closure(..)) | None => unreachable!("results are data"),
        }
    }
}
