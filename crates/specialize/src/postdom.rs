//! Finds where evaluation goes on after a call that it cannot decide: at the call's post-dominator, which a
//! control-flow analysis of the code behind the call computes (`000` section 4, `002` 10.6).
//!
//! The analysis is *local*: it starts at the call, and follows continuations that are declared in the evaluated code,
//! the *inside* ones, wherever parameters and captured values take them. Closures that the evaluator has made are nodes
//! of their own. The code behind them has one node for each continuation, whatever its context. Functions declared
//! *outside* (`end`, a function that captures nothing, an unknown parameter) are followed as [`Variant`] says. The
//! post-dominator only says where evaluation resumes. Should the analysis be imprecise, code is specialized less or
//! more, but never wrongly.
//!
//! ```text
//! cont f(m) = branch(m, dynamic, F, T)         f ─▶ F ─────────────────▶ C ─▶ out·C ─▶ N ─▶ end
//!   cont F(m.1) = C(m.1, B)                    └──▶ T ─▶ out·T ────────▶ C        └──▶ out·T
//!   cont T(m.2) = out(m.2, A, C)                            └─▶ A ─▶ out·A ─▶ out·T
//! ```

use crate::facts::is_function;
use nyala_base::graph;
use nyala_ir::facts::Nest;
use nyala_ir::{Builtin, Cont, Node, Op, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Limit on the visited continuations. Code behind that many counts as outside.
const MAX_NODES: usize = 4096;

/// How calls of outside continuations are modeled (`002` Figure 10.2, a to c).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// They leave for good.
    NonSymbolic,
    /// Each is one node, from which its arguments are called.
    Symbolic,
    /// Each call is one node, from which the arguments of this call are called; they get the call as context.
    ContextSensitive,
}

/// A function as the analysis sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fun {
    /// A continuation of the source, in whatever environment.
    Code(Cont),
    /// A closure that [`Closures`] knows, by its number there.
    Closure(u32),
    /// A function that is declared outside; equal symbols are the same function.
    Outside(Symbol),
}

/// A function that is declared outside the evaluated code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol {
    pub id: u32,
    /// Whether it takes functions, which it may call.
    pub takes_functions: bool,
}

/// A function about which nothing is known.
pub const UNKNOWN: Fun = Fun::Outside(ANY);
const ANY: Symbol = Symbol { id: u32::MAX, takes_functions: true };

/// The closures that exist when the analysis begins.
pub trait Closures {
    fn source(&self, closure: u32) -> Cont;
    /// The functions in the value that a closure captured for its source's `idx`-th free value.
    fn captured(&self, closure: u32, idx: usize) -> Vec<Fun>;
}

/// A function value: a node, or a placeholder for any function that an outside call may call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Value {
    Inside(usize),
    Outside(Symbol),
    /// A function that the outside call at this node passed on.
    Context(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Exit,
    Start,
    Inside(Fun),
    Outside { symbol: Symbol, context: usize },
}

/// Symbol numbers from here on are continuations of the source.
const CODE: u32 = 1 << 31;

const EXIT: usize = 0;
const START: usize = 1;

pub struct Analysis<'a> {
    w: &'a World,
    nest: &'a Nest,
    closures: &'a dyn Closures,
    variant: Variant,
    keys: Vec<Key>,
    succs: Vec<Vec<usize>>,
    node_of: FxHashMap<Key, usize>,
    /// By node, the functions that values of the source may be there.
    env: Vec<FxHashMap<Val, Vec<Value>>>,
    seen: Vec<bool>,
    queued: Vec<bool>,
    queue: VecDeque<usize>,
    /// Nodes without successors, as they end in `unreachable`.
    dead: Vec<usize>,
}

impl<'a> Analysis<'a> {
    /// Analyzes a call of `callee` with `args`, or a branch to `args` if `callee` is `None`. `closures` are those of
    /// the program being evaluated. Each argument is the list of all functions in it.
    pub fn new(
        w: &'a World,
        nest: &'a Nest,
        closures: &'a dyn Closures,
        variant: Variant,
        callee: Option<Fun>,
        args: &[Vec<Fun>],
    ) -> Analysis<'a> {
        let mut a = Analysis {
            w,
            nest,
            closures,
            variant,
            keys: Vec::new(),
            succs: Vec::new(),
            node_of: FxHashMap::default(),
            env: Vec::new(),
            seen: Vec::new(),
            queued: Vec::new(),
            queue: VecDeque::new(),
            dead: Vec::new(),
        };
        a.node(Key::Exit);
        a.node(Key::Start);
        let args: Vec<Vec<Value>> = args.iter().map(|arg| arg.iter().map(|&f| a.value(f)).collect()).collect();
        match callee {
            Some(callee) => {
                let callee = a.value(callee);
                a.call(START, callee, &args);
            }
            None => args.iter().flatten().for_each(|&target| a.call(START, target, &[])),
        }
        a.run();
        a
    }

    /// The first continuation accepted by `accept` that lies on all paths from the start to the exit.
    pub fn post_dominator(&self, accept: impl Fn(Fun) -> bool) -> Option<Fun> {
        let idom = graph::post_dominators(&self.succs, EXIT);
        let mut at = START;
        loop {
            at = idom[at];
            if at == EXIT || at == graph::NONE {
                return None;
            }
            if let Key::Inside(f) = self.keys[at]
                && accept(f)
            {
                return Some(f);
            }
        }
    }

    /// The edges as text, one line for each reachable node, in order of discovery.
    pub fn text(&self) -> String {
        let mut lines = String::new();
        let mut nodes = graph::postorder(&self.succs, START);
        nodes.sort_unstable();
        for n in nodes.into_iter().filter(|&n| n != EXIT) {
            let mut ends: Vec<String> = self.succs[n].iter().map(|&s| self.name(s)).collect();
            ends.sort();
            lines.push_str(&format!("{} -> {}\n", self.name(n), ends.join(" ")));
        }
        lines
    }

    fn name(&self, n: usize) -> String {
        match self.keys[n] {
            Key::Exit => "exit".into(),
            Key::Start => "start".into(),
            Key::Inside(f) => self.source(f).map_or_else(|| "?".into(), |k| self.w.name(k).to_string()),
            Key::Outside { symbol, context: EXIT } => self.symbol_name(symbol),
            Key::Outside { symbol, context } => format!("{}·{}", self.symbol_name(symbol), self.name(context)),
        }
    }

    fn symbol_name(&self, symbol: Symbol) -> String {
        match symbol.id.checked_sub(CODE) {
            Some(k) if symbol != ANY => self.w.name(Cont(k)).to_string(),
            _ => format!("out{}", symbol.id),
        }
    }

    fn source(&self, f: Fun) -> Option<Cont> {
        match f {
            Fun::Code(k) => Some(k),
            Fun::Closure(c) => Some(self.closures.source(c)),
            Fun::Outside(_) => None,
        }
    }

    fn node(&mut self, key: Key) -> usize {
        if let Some(&n) = self.node_of.get(&key) {
            return n;
        }
        let n = self.keys.len();
        self.keys.push(key);
        self.succs.push(Vec::new());
        self.env.push(FxHashMap::default());
        self.seen.push(false);
        self.queued.push(false);
        self.node_of.insert(key, n);
        n
    }

    fn value(&mut self, f: Fun) -> Value {
        match f {
            Fun::Outside(symbol) => Value::Outside(symbol),
            Fun::Code(k) => self.code(k),
            Fun::Closure(c) => match self.code(self.closures.source(c)) {
                Value::Outside(symbol) => Value::Outside(symbol),
                _ => Value::Inside(self.node(Key::Inside(f))),
            },
        }
    }

    /// The value of a source continuation. Functions that capture nothing count as outside, so that their calls have
    /// contexts.
    fn code(&mut self, k: Cont) -> Value {
        if self.w.body(k).is_none() || self.nest.free(k).is_empty() && is_function(self.w, k) {
            return Value::Outside(Symbol { id: k.0 | CODE, takes_functions: is_function(self.w, k) });
        }
        Value::Inside(self.node(Key::Inside(Fun::Code(k))))
    }

    fn enqueue(&mut self, n: usize) {
        if !std::mem::replace(&mut self.queued[n], true) {
            self.queue.push_back(n);
        }
    }

    fn edge(&mut self, from: usize, to: usize) {
        if !self.succs[from].contains(&to) {
            self.succs[from].push(to);
        }
        if matches!(self.keys[to], Key::Inside(_)) && !self.seen[to] {
            self.enqueue(to);
        }
    }

    fn join(&mut self, n: usize, v: Val, values: &[Value]) {
        let known = self.env[n].entry(v).or_default();
        let before = known.len();
        for value in values {
            if !known.contains(value) {
                known.push(*value);
            }
        }
        if known.len() > before {
            self.enqueue(n);
        }
    }

    fn run(&mut self) {
        let mut visited = 0;
        while let Some(n) = self.queue.pop_front() {
            self.queued[n] = false;
            if !self.seen[n] {
                visited += 1;
                if visited > MAX_NODES {
                    self.edge(n, EXIT);
                    continue;
                }
            }
            self.visit(n);
        }
        for n in START..self.keys.len() {
            if matches!(self.keys[n], Key::Outside { .. }) && self.succs[n].is_empty() {
                self.succs[n].push(EXIT);
            }
        }
        self.unify();
        graph::connect_to_exit(&mut self.succs, START, EXIT);
        for n in self.dead.drain(..) {
            self.succs[n].clear();
        }
    }

    /// If exactly one visited closure is made of some code, the node of the code is replaced by that of the closure.
    fn unify(&mut self) {
        let mut closures: FxHashMap<Cont, Vec<usize>> = FxHashMap::default();
        for (n, key) in self.keys.iter().enumerate() {
            if let Key::Inside(f @ Fun::Closure(_)) = key
                && self.seen[n]
            {
                self.source(*f).into_iter().for_each(|k| closures.entry(k).or_default().push(n));
            }
        }
        let mut to: Vec<usize> = (0..self.keys.len()).collect();
        for (n, key) in self.keys.iter().enumerate() {
            if let Key::Inside(Fun::Code(k)) = key
                && let Some([only]) = closures.get(k).map(Vec::as_slice)
            {
                to[n] = *only;
            }
        }
        for n in 0..self.succs.len() {
            for s in std::mem::take(&mut self.succs[n]) {
                self.edge(to[n], to[s]);
            }
        }
        self.queue.clear();
    }

    fn visit(&mut self, n: usize) {
        let Key::Inside(f) = self.keys[n] else { return };
        let Some(k) = self.source(f) else { return };
        let first = !std::mem::replace(&mut self.seen[n], true);
        if let (true, Fun::Closure(c)) = (first, f) {
            for (i, &v) in self.nest.free(k).iter().enumerate() {
                if self.has_function(v) {
                    let found = self.closures.captured(c, i);
                    let values: Vec<Value> = found.into_iter().map(|f| self.value(f)).collect();
                    self.env[n].entry(v).or_default().extend(values);
                }
            }
        }
        for &op in self.nest.ops(k) {
            if self.has_function(op) {
                self.env[n].remove(&op);
                let values = self.functions(n, op);
                self.env[n].insert(op, values);
            }
        }
        let Some(body) = self.w.body(k) else { return };
        if let Node::Builtin(b) = self.w.node(body.callee) {
            return match b {
                Builtin::Unreachable => self.dead.push(n),
                Builtin::Branch => {
                    for &target in &body.args[2..] {
                        self.call_all(n, target, &[]);
                    }
                }
                Builtin::PeInfo | Builtin::StaticAssert => self.call_all(n, body.args[3], &[]),
                Builtin::Parallel | Builtin::Vectorize | Builtin::Spawn | Builtin::Launch | Builtin::Limited => {
                    let args: Vec<Vec<Value>> = body.args.iter().map(|&a| self.functions(n, a)).collect();
                    self.call(n, Value::Outside(ANY), &args);
                }
            };
        }
        let args: Vec<Vec<Value>> = body.args.iter().map(|&a| self.functions(n, a)).collect();
        self.call_all(n, body.callee, &args);
    }

    fn call_all(&mut self, n: usize, callee: Val, args: &[Vec<Value>]) {
        for callee in self.functions(n, callee) {
            self.call(n, callee, args);
        }
    }

    fn call(&mut self, from: usize, callee: Value, args: &[Vec<Value>]) {
        let (symbol, passed_on) = match callee {
            Value::Inside(to) => {
                for (&p, values) in self.params(to).iter().zip(args) {
                    if !values.is_empty() {
                        self.join(to, p, values);
                    }
                }
                return self.edge(from, to);
            }
            Value::Outside(symbol) => (symbol, None),
            Value::Context(outside) => match self.keys[outside] {
                Key::Outside { symbol, .. } => (symbol, Some(outside)),
                _ => return,
            },
        };
        let to = match self.variant {
            Variant::NonSymbolic => EXIT,
            Variant::Symbolic => self.node(Key::Outside { symbol, context: EXIT }),
            Variant::ContextSensitive => self.node(Key::Outside { symbol, context: from }),
        };
        self.edge(from, to);
        if let Some(outside) = passed_on.filter(|&o| o != to) {
            self.edge(to, outside);
        }
        let caller = if to == EXIT { from } else { to };
        for &value in args.iter().flatten() {
            match value {
                Value::Inside(inside) => {
                    self.edge(caller, inside);
                    for &p in self.params(inside) {
                        if !self.has_function(p) {
                            continue;
                        }
                        let passed = if to == EXIT { Value::Outside(symbol) } else { Value::Context(to) };
                        self.join(inside, p, &[passed]);
                    }
                }
                Value::Outside(other) if to != EXIT && other != symbol => {
                    let context = if self.variant == Variant::ContextSensitive { to } else { EXIT };
                    let called = self.node(Key::Outside { symbol: other, context });
                    self.edge(to, called);
                    if other.takes_functions {
                        self.edge(called, to);
                    }
                }
                Value::Context(outside) if outside != to && to != EXIT => self.edge(to, outside),
                _ => {}
            }
        }
    }

    /// Parameters of an inside node.
    fn params(&self, n: usize) -> &'a [Val] {
        match self.keys[n] {
            Key::Inside(f) => self.source(f).map_or(&[], |k| self.w.params(k)),
            _ => &[],
        }
    }

    /// The functions in a value, as far as they are known at node `n`.
    fn functions(&mut self, n: usize, v: Val) -> Vec<Value> {
        let mut found = Vec::new();
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if !self.has_function(v) || !seen.insert(v) {
                continue;
            }
            if let Some(values) = self.env[n].get(&v) {
                found.extend(values.iter().copied());
                continue;
            }
            match self.w.node(v) {
                Node::Cont(c) => {
                    let value = self.code(c);
                    found.push(value);
                    let Value::Inside(to) = value else { continue };
                    for &free in self.nest.free(c) {
                        let values = self.env[n].get(&free).cloned();
                        if let Some(values) = values.filter(|values| to != n && !values.is_empty()) {
                            self.join(to, free, &values);
                        }
                    }
                }
                Node::Op(Op::Hlt | Op::Load | Op::AtomicLoad | Op::Atomic | Op::Cmpxchg | Op::CmpxchgWeak) => {
                    found.push(Value::Outside(ANY));
                }
                Node::Op(_) => work.extend(self.w.args(v).iter().rev()),
                _ => {}
            }
        }
        found
    }

    fn has_function(&self, v: Val) -> bool {
        self.w.types.has_function(self.w.ty(v))
    }
}
