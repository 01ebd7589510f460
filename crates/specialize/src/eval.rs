//! The evaluator proper. One call of a known continuation is decided so:
//!
//! 1. `@@`, a filter that is true for the whole function, or for every parameter but `mem`: *full*. Else the parameters
//!    whose filter is true, and those that are functions ([`Facts::automatic`]).
//! 2. A recursive callee is compared with its ancestors ([`whistle`](crate::whistle)): parameters that drift are not
//!    specialized. A full unfold that repeats an ancestor's arguments, under dynamic control, becomes a *knot*: a block.
//! 3. Full: go on in the body. So too, whatever the filters say, if this is the only call there will be (`is_linear`).
//! 4. Else a stub for what is specialized, called with the rest.
//!
//! Memory is no part of a memo key: a stub that is requested from several places knows what all of them know, and a
//! recursive or escaped one nothing.

use crate::Options;
use crate::facts::{Facts, loop_condition};
use crate::memory::{self, Memory};
use crate::whistle::{self, CallKey, Change, Diverged, Hints};
use nyala_base::{Diagnostic, Severity, SideTable, Span};
use nyala_ir::{Builtin, Cont, Effect, Linkage, Node, Op, Rule, TyKind, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

const MAX_REDUCTIONS: u64 = 50_000_000;
const MAX_NODES: u64 = 20_000_000;
const MAX_BLOCKS_PER_CONT: u64 = 1_000_000;
/// Unfolds of recursive continuations kept for the report of a divergence.
const CHAIN: usize = 64;

type StubId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not built; may have been requested.
    New,
    /// Built in full generality: any residual code may use it.
    Built,
    /// Inlined, or built for just the requests there were. Whoever asks again gets a fresh one ([`Stub::alias`]).
    Consumed,
}

/// A continuation of the source with what it captures and the parameters it is specialized in.
pub struct Stub {
    source: Cont,
    /// Parameters specialized, a bit each.
    mask: u64,
    /// Values of the source's free values, then of the specialized parameters.
    vals: Rc<[Val]>,
    /// The residual continuation.
    cont: Cont,
    state: State,
    /// Residual code uses it as a value.
    escaped: bool,
    queued: bool,
    requests: Vec<Request>,
    /// Records and runs that its first request saw.
    records: Option<u32>,
    runs: Option<u32>,
    /// Stands in for it once it is consumed.
    alias: Option<StubId>,
    rank: (u32, u32),
    key: CallKey,
    /// Inlined where its only call was.
    was_called: bool,
}

/// A place of residual code that goes on at a stub.
struct Request {
    block: Cont,
    /// Which of the bodies that the block had so far.
    version: u32,
    kind: RequestKind,
    memory: Memory,
}

enum RequestKind {
    /// The block ends with a call of it; `args` has the current `mem` and the remaining arguments.
    Jump { args: Vec<Val> },
    /// The block's body has it among its arguments.
    Arg,
}

/// One unfold or residual function, for comparison with later ones.
struct Record {
    cont: Cont,
    free: Rc<[Val]>,
    /// By parameter; `mem` included, not compared.
    args: Box<[Val]>,
    segment: u32,
    next: Option<u32>,
}

/// The residual block under construction.
struct Site {
    block: Cont,
    /// From one residual terminator to the next.
    segment: u32,
    records: Option<u32>,
    runs: Option<u32>,
    memory: Memory,
}

/// A function with loops was entered, by `@@` or otherwise.
struct Run {
    cont: Cont,
    run: bool,
    next: Option<u32>,
}

/// What to evaluate next: a continuation of the source, its free values, its arguments.
struct Entry {
    cont: Cont,
    free: Rc<[Val]>,
    args: Vec<Val>,
}

pub struct Evaluator<'a> {
    source: &'a World,
    facts: &'a Facts,
    hints: &'a Hints,
    options: Options,
    /// The residual graph.
    pub dst: World,
    /// Values of the continuation being evaluated, by source value.
    registers: SideTable<Val, Val>,
    literals: SideTable<Val, Option<Val>>,
    stubs: Vec<Stub>,
    stub_of: SideTable<Cont, Option<u32>>,
    memo: FxHashMap<(Cont, u64, Rc<[Val]>), StubId>,
    /// Birth of residual parameters, and of what was computed from them; with the nesting of held stubs.
    ranks: SideTable<Val, Option<(u32, u32)>>,
    births: u32,
    queue: BinaryHeap<((u32, u32, u32), StubId)>,
    records: Vec<Record>,
    runs: Vec<Run>,
    segments: u32,
    knots: FxHashSet<(Cont, Rc<[Val]>, Box<[Val]>)>,
    noted: Hints,
    reports: Vec<Diagnostic>,
    reductions: u64,
    blocks: SideTable<Cont, u64>,
    versions: SideTable<Cont, u32>,
    chain: VecDeque<(Cont, Span, Vec<String>)>,
}

impl<'a> Evaluator<'a> {
    pub fn new(source: &'a World, facts: &'a Facts, hints: &'a Hints, options: Options) -> Evaluator<'a> {
        let mut dst = World::new();
        dst.types = source.types.clone();
        Evaluator {
            source,
            facts,
            hints,
            options,
            dst,
            registers: SideTable::with_default(Val(0)),
            literals: SideTable::default(),
            stubs: Vec::new(),
            stub_of: SideTable::default(),
            memo: FxHashMap::default(),
            ranks: SideTable::default(),
            births: 0,
            queue: BinaryHeap::new(),
            records: Vec::new(),
            runs: Vec::new(),
            segments: 0,
            knots: FxHashSet::default(),
            noted: Hints::default(),
            reports: Vec::new(),
            reductions: 0,
            blocks: SideTable::default(),
            versions: SideTable::default(),
            chain: VecDeque::new(),
        }
    }

    pub fn reductions(&self) -> u64 {
        self.reductions
    }
    pub fn nodes(&self) -> usize {
        self.dst.n_vals()
    }
    pub fn take_noted(&mut self) -> Hints {
        std::mem::take(&mut self.noted)
    }
    pub fn take_reports(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.reports)
    }

    pub fn source_linkage(&self, root: Cont) -> Linkage {
        self.source.cont(root).linkage.clone()
    }

    /// Notes the kinds of calls that are the only ones of their callee, so that the next round unfolds them (`001` 4.6).
    /// `n_uses` counts the residual uses of a continuation.
    pub fn note_single_calls(&mut self, n_uses: impl Fn(Cont) -> u32) {
        let takes_function = |&p: &Val| self.source.types.has_function(self.source.ty(p));
        let mut single: Vec<CallKey> = Vec::new();
        let mut several: FxHashSet<CallKey> = FxHashSet::default();
        for stub in &self.stubs {
            let k = stub.source;
            if self.facts.is_recursive[k] || !self.source.params(k).iter().any(takes_function) {
                continue;
            }
            match n_uses(stub.cont) {
                1 => single.push(stub.key),
                0 if stub.was_called => single.push(stub.key),
                0 => {}
                _ => drop(several.insert(stub.key)),
            }
        }
        for key in single {
            if !several.contains(&key) {
                self.noted.note_inline(key);
            }
        }
    }

    /// The source continuation and captured values of a closure.
    pub fn captured(&self, v: Val) -> Option<(Cont, &[Val])> {
        let stub = &self.stubs[self.stub_of_val(v)?];
        Some((stub.source, &stub.vals))
    }

    fn stub_of_val(&self, v: Val) -> Option<StubId> {
        match self.dst.node(v) {
            Node::Cont(c) => self.stub_of[c].map(|s| s as usize),
            _ => None,
        }
    }

    /// The continuation that residual code must use where it means `c`.
    pub fn resolve(&self, c: Cont) -> Cont {
        let Some(mut s) = self.stub_of[c].map(|s| s as usize) else { return c };
        while let Some(alias) = self.stubs[s].alias {
            s = alias;
        }
        self.stubs[s].cont
    }

    pub fn run(&mut self, roots: &[Cont]) -> Result<(), Box<Diverged>> {
        self.copy_globals();
        for &root in roots {
            let s = self.stub(root, 0, Rc::new([]), (root, 0, 0));
            self.escape_stub(s, None, None);
        }
        loop {
            while let Some((_, s)) = self.queue.pop() {
                self.decide(s)?;
            }
            if !self.escape_globals() {
                return Ok(());
            }
        }
    }

    /// The residual continuation of a root.
    pub fn root(&self, root: Cont) -> Cont {
        let s = self.memo[&(root, 0, Rc::from([].as_slice()))];
        self.resolve(self.stubs[s].cont)
    }

    fn copy_globals(&mut self) {
        for i in 0..self.source.n_globals() {
            let data = self.source.global(nyala_ir::Global(i as u32));
            self.dst.set_origin(data.origin);
            self.dst.declare_global(&data.name, data.ty, data.mutable);
        }
        for i in 0..self.source.n_globals() {
            let g = nyala_ir::Global(i as u32);
            if let Some(init) = self.source.global(g).init {
                let init = self.value(init);
                self.dst.set_init(g, init);
            }
        }
    }

    /// Functions in globals that residual code still loads must exist. True if there were new ones.
    fn escape_globals(&mut self) -> bool {
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        let mut work: Vec<Val> = Vec::new();
        let mut found = false;
        for s in 0..self.stubs.len() {
            if let Some(body) = self.dst.body(self.stubs[s].cont) {
                work.push(body.callee);
                work.extend(&body.args);
            }
        }
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            work.extend(self.dst.args(v));
            if let Node::Global(g) = self.dst.node(v)
                && let Some(init) = self.dst.global(g).init
                && self.dst.types.has_function(self.dst.ty(init))
            {
                let mut parts = vec![init];
                while let Some(p) = parts.pop() {
                    if let Some(s) = self.stub_of_val(p) {
                        let s = self.live(s);
                        found |= !self.stubs[s].escaped;
                        self.escape_stub(s, None, None);
                    }
                    parts.extend(self.dst.args(p));
                }
            }
        }
        found
    }

    // Stubs.

    fn stub(&mut self, source: Cont, mask: u64, vals: Rc<[Val]>, key: CallKey) -> StubId {
        if let Some(&s) = self.memo.get(&(source, mask, vals.clone())) {
            return s;
        }
        let s = self.fresh_stub(source, mask, vals.clone(), key);
        self.memo.insert((source, mask, vals), s);
        s
    }

    fn fresh_stub(&mut self, source: Cont, mask: u64, vals: Rc<[Val]>, key: CallKey) -> StubId {
        let ty = if mask == 0 {
            self.source.cont(source).ty
        } else {
            let kept: Vec<_> =
                self.unmasked(source, mask).map(|i| self.source.ty(self.source.param(source, i))).collect();
            self.dst.types.cn(&kept)
        };
        let cont = self.dst.reserve(ty);
        let (mut birth, mut height) = (0, 0);
        for &v in vals.iter() {
            let (b, h) = self.rank(v);
            birth = birth.max(b);
            height = height.max(h);
        }
        let s = self.stubs.len();
        self.stub_of[cont] = Some(s as u32);
        self.stubs.push(Stub {
            source,
            mask,
            vals,
            cont,
            state: State::New,
            escaped: false,
            queued: false,
            requests: Vec::new(),
            records: None,
            runs: None,
            alias: None,
            rank: (birth, height + 1),
            key,
            was_called: false,
        });
        s
    }

    /// The stub that a new request of `s` must use.
    fn live(&mut self, mut s: StubId) -> StubId {
        while self.stubs[s].state == State::Consumed {
            s = match self.stubs[s].alias {
                Some(alias) => alias,
                None => {
                    let Stub { source, mask, key, .. } = self.stubs[s];
                    let vals = self.stubs[s].vals.clone();
                    let fresh = self.fresh_stub(source, mask, vals, key);
                    self.stubs[s].alias = Some(fresh);
                    fresh
                }
            };
        }
        s
    }

    fn unmasked(&self, k: Cont, mask: u64) -> impl Iterator<Item = usize> + use<> {
        (0..self.source.params(k).len()).filter(move |&i| i >= 64 || mask >> i & 1 == 0)
    }

    /// Birth of the youngest residual parameter in a value, and how deep stubs are held in it.
    fn rank(&mut self, v: Val) -> (u32, u32) {
        if let Some(rank) = self.ranks[v] {
            return rank;
        }
        let mut stack = vec![(v, false)];
        while let Some((v, done)) = stack.pop() {
            if self.ranks[v].is_some() {
                continue;
            }
            if let Some(s) = self.stub_of_val(v) {
                self.ranks[v] = Some(self.stubs[s].rank);
            } else if done || self.dst.args(v).is_empty() {
                let ranks = self.dst.args(v).iter().map(|&a| self.ranks[a].unwrap_or((0, 0)));
                self.ranks[v] = Some(ranks.fold((0, 0), |r, s| (r.0.max(s.0), r.1.max(s.1))));
            } else {
                stack.push((v, true));
                stack.extend(self.dst.args(v).iter().map(|&a| (a, false)));
            }
        }
        self.ranks[v].unwrap_or((0, 0))
    }

    fn queue_rank(&self, s: StubId) -> (u32, u32, u32) {
        let stub = &self.stubs[s];
        (stub.rank.0, stub.rank.1, self.facts.postorder[stub.source])
    }

    fn enqueue(&mut self, s: StubId, records: Option<u32>, runs: Option<u32>) {
        if !self.stubs[s].queued {
            self.stubs[s].queued = true;
            self.stubs[s].records = records;
            self.stubs[s].runs = runs;
            self.queue.push((self.queue_rank(s), s));
        }
    }

    /// Residual code uses the stub as a value.
    fn escape_stub(&mut self, s: StubId, records: Option<u32>, runs: Option<u32>) {
        let s = self.live(s);
        self.stubs[s].escaped = true;
        self.enqueue(s, records, runs);
    }

    /// Residual code gets `v`: closures in it are needed, objects whose address it has may change. With `addresses_only`
    /// code that is built anyway gets it, so that only the latter counts.
    fn escape(&mut self, v: Val, site: &mut Site, addresses_only: bool) {
        if self.dst.types.as_prim(self.dst.ty(v)).is_some() {
            return;
        }
        let mut work = vec![v];
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            if !seen.insert(v) {
                continue;
            }
            if let Some(s) = self.stub_of_val(v) {
                work.extend(self.stubs[s].vals.iter());
                if !addresses_only {
                    self.escape_stub(s, site.records, site.runs);
                }
                continue;
            }
            match self.dst.types.kind(self.dst.ty(v)) {
                TyKind::Prim(_) | TyKind::Mem => {}
                TyKind::Ptr { .. } => {
                    let base = memory::base_of(&self.dst, v);
                    site.memory.escape(base);
                    if !memory::is_object(&self.dst, base) {
                        work.extend(self.dst.args(base));
                    }
                }
                _ => {
                    if self.dst.as_op(v).is_some_and(|op| op.effect() == Effect::Total) {
                        work.extend(self.dst.args(v));
                    }
                }
            }
        }
    }

    // Deciding what becomes of a stub.

    fn decide(&mut self, s: StubId) -> Result<(), Box<Diverged>> {
        if self.stubs[s].state != State::New {
            return Ok(());
        }
        let stub = &mut self.stubs[s];
        let k = stub.source;
        let vals = stub.vals.clone();
        let mut requests = std::mem::take(&mut stub.requests);
        let general = stub.escaped || self.facts.is_recursive[k];
        let n_free = self.facts.nest.free(k).len();
        let free: Rc<[Val]> = vals[..n_free].into();
        if !general
            && let [Request { kind: RequestKind::Jump { .. }, .. }] = requests[..]
            && let Some(Request { block, kind: RequestKind::Jump { args }, memory, .. }) = requests.pop()
        {
            self.stubs[s].state = State::Consumed;
            self.stubs[s].was_called = true;
            let args = self.all_args(s, &args);
            self.segments += 1;
            let Stub { records, runs, .. } = self.stubs[s];
            let site = Site { block, segment: self.segments, records, runs, memory };
            return self.evaluate(site, Entry { cont: k, free, args });
        }
        // Arguments that all requests agree on, memory that all of them know.
        let kept: Vec<usize> = self.unmasked(k, self.stubs[s].mask).collect();
        let mut fixed: Vec<Option<Val>> = vec![None; kept.len()];
        let mut memory = Memory::default();
        if !general {
            for (i, slot) in fixed.iter_mut().enumerate().skip(1) {
                let mut passed = requests.iter().map(|r| match &r.kind {
                    RequestKind::Jump { args } => Some(args[i]),
                    RequestKind::Arg => None,
                });
                let first = passed.next().flatten();
                if first.is_some() && passed.all(|p| p == first) {
                    *slot = first;
                }
            }
            let states: Vec<Memory> = requests.iter().map(|r| r.memory.clone()).collect();
            memory = Memory::merge(&self.dst, &states);
        }
        let particular = fixed.iter().any(Option::is_some) || !memory.is_empty();
        let block = if particular {
            self.stubs[s].state = State::Consumed;
            let tys: Vec<_> = kept
                .iter()
                .zip(&fixed)
                .filter(|(_, f)| f.is_none())
                .map(|(&i, _)| self.source.ty(self.source.param(k, i)))
                .collect();
            let ty = self.dst.types.cn(&tys);
            self.dst.reserve(ty)
        } else {
            self.stubs[s].state = State::Built;
            self.stubs[s].cont
        };
        let data = self.source.cont(k);
        let names = kept.iter().zip(&fixed).filter(|(_, f)| f.is_none());
        let names = names.map(|(&i, _)| data.param_names.get(i).cloned().unwrap_or_default()).collect();
        self.dst.set_origin(data.origin);
        self.dst.set_params(block, &data.name, names);
        self.births += 1;
        let mut params = self.dst.params(block).to_vec().into_iter();
        let mut remaining = Vec::with_capacity(kept.len());
        for f in &fixed {
            let Some(v) = f.or_else(|| params.next()) else { continue };
            if f.is_none() {
                self.ranks[v] = Some((self.births, 0));
            }
            remaining.push(v);
        }
        for request in requests {
            self.connect(request, block, self.stubs[s].cont, &fixed);
        }
        let args = self.all_args(s, &remaining);
        let mut records = self.stubs[s].records;
        self.segments += 1;
        if self.facts.is_recursive[k] {
            records = Some(self.record(k, &free, &args, self.segments, records));
        }
        self.blocks[k] += 1;
        let limit = (MAX_BLOCKS_PER_CONT as f64 * self.options.budget) as u64;
        if self.blocks[k] > limit {
            return Err(self.diverged("blocks of one function", limit));
        }
        let mut site = Site { block, segment: self.segments, records, runs: self.stubs[s].runs, memory };
        self.note_run(k, false, &mut site);
        self.evaluate(site, Entry { cont: k, free, args })
    }

    /// All arguments of a stub's source: specialized ones from the stub, the others from `remaining`.
    fn all_args(&self, s: StubId, remaining: &[Val]) -> Vec<Val> {
        let stub = &self.stubs[s];
        let mut masked = stub.vals[self.facts.nest.free(stub.source).len()..].iter();
        let mut remaining = remaining.iter();
        (0..self.source.params(stub.source).len())
            .filter_map(|i| if i < 64 && stub.mask >> i & 1 == 1 { masked.next() } else { remaining.next() })
            .copied()
            .collect()
    }

    /// Makes a request go to `block`, which stands for the stub `stub` with some parameters fixed.
    fn connect(&mut self, request: Request, block: Cont, stub: Cont, fixed: &[Option<Val>]) {
        if self.versions[request.block] != request.version {
            return;
        }
        let target = self.dst.cont_val(block);
        let old = self.dst.cont_val(stub);
        let Some(body) = &mut self.dst.cont_mut(request.block).body else { return };
        match request.kind {
            RequestKind::Jump { .. } => {
                body.callee = target;
                let kept = body.args.iter().zip(fixed).filter(|(_, f)| f.is_none());
                body.args = kept.map(|(&a, _)| a).collect();
            }
            RequestKind::Arg => body.args.iter_mut().filter(|a| **a == old).for_each(|a| *a = target),
        }
    }

    /// Sets a residual block's body; requests that an earlier one made are void.
    fn define(&mut self, block: Cont, callee: Val, args: &[Val]) {
        self.versions[block] += 1;
        self.dst.define(block, callee, args);
    }

    fn request(&mut self, site: &Site, s: StubId, kind: RequestKind, memory: Memory) {
        if self.stubs[s].state == State::New {
            let request = Request { block: site.block, version: self.versions[site.block], kind, memory };
            self.stubs[s].requests.push(request);
        }
        self.enqueue(s, site.records, site.runs);
    }

    // Evaluation.

    fn evaluate(&mut self, mut site: Site, mut entry: Entry) -> Result<(), Box<Diverged>> {
        let source = self.source;
        loop {
            self.reductions += 1;
            if self.reductions.is_multiple_of(1024) || self.reductions < 1024 {
                self.check_budget()?;
            }
            let k = entry.cont;
            for (&v, &x) in self.facts.nest.free(k).iter().zip(entry.free.iter()) {
                self.registers[v] = x;
            }
            for (&p, &x) in source.params(k).iter().zip(&entry.args) {
                self.registers[p] = x;
            }
            let facts = self.facts;
            for &op in facts.nest.ops(k) {
                let v = self.compute(op, &mut site);
                self.registers[op] = v;
            }
            let Some(body) = source.body(k) else {
                // A foreign function is never a stub; this is a source that the verifier rejects.
                let callee = self.dst.builtin(Builtin::Unreachable);
                self.define(site.block, callee, &[entry.args[0]]);
                return Ok(());
            };
            let callee = self.value(body.callee);
            let args: Vec<Val> = body.args.iter().map(|&a| self.value(a)).collect();
            self.dst.set_origin(body.origin);
            match self.call(&mut site, callee, args, body.origin) {
                Some(next) => entry = next,
                None => return Ok(()),
            }
        }
    }

    fn check_budget(&self) -> Result<(), Box<Diverged>> {
        let scaled = |n: u64| (n as f64 * self.options.budget) as u64;
        if self.reductions > scaled(MAX_REDUCTIONS) {
            return Err(self.diverged("unfoldings", scaled(MAX_REDUCTIONS)));
        }
        if (self.dst.n_vals() + 4 * self.dst.n_conts()) as u64 > scaled(MAX_NODES) {
            return Err(self.diverged("residual nodes", scaled(MAX_NODES)));
        }
        Ok(())
    }

    fn diverged(&self, what: &'static str, limit: u64) -> Box<Diverged> {
        let mut count: FxHashMap<Cont, usize> = FxHashMap::default();
        for (k, ..) in &self.chain {
            *count.entry(*k).or_default() += 1;
        }
        let cont = count.into_iter().max_by_key(|&(k, n)| (n, k)).map(|(k, _)| k);
        let links: Vec<_> = self.chain.iter().filter(|(k, ..)| Some(*k) == cont).collect();
        let chain = links.iter().rev().take(4).rev().map(|(_, _, args)| args.clone()).collect();
        let call = links.last().map_or(self.dst.current_origin(), |l| l.1);
        Box::new(Diverged { what, limit, cont, call, chain })
    }

    /// One call; what to evaluate next, or nothing if the block ends here.
    fn call(&mut self, site: &mut Site, callee: Val, mut args: Vec<Val>, origin: Span) -> Option<Entry> {
        if let Node::Builtin(b) = self.dst.node(callee) {
            return self.call_builtin(site, b, callee, args);
        }
        let (mut callee, mut run, mut halt) = (callee, false, false);
        while let Some(op @ (Op::Run | Op::Hlt)) = self.dst.as_op(callee) {
            run |= op == Op::Run;
            halt |= op == Op::Hlt;
            callee = self.dst.args(callee)[0];
        }
        let Some(closure) = self.stub_of_val(callee) else {
            self.escape(callee, site, true);
            self.residual_call(site, callee, &args);
            return None;
        };
        let k = self.stubs[closure].source;
        let free = self.stubs[closure].vals.clone();
        let recursive = self.facts.is_recursive[k];
        let n = args.len();
        let all = (if n >= 64 { u64::MAX } else { (1 << n) - 1 }) & !1;
        let (mut mask, mut full) = self.requested(k, &args, all, run);
        if halt {
            full = false;
        }
        let literals = args.iter().take(64).enumerate().filter(|(_, a)| self.dst.as_lit(**a).is_some());
        let key: CallKey = (k, mask, literals.fold(0, |bits, (i, _)| bits | 1 << i));
        if recursive {
            let drift = self.hints.drift(key) & mask;
            if drift != 0 {
                mask &= !drift;
                full = false;
            }
        } else if self.hints.is_inline(key) && !halt {
            full = true;
        }
        if recursive && !full && !halt && self.is_run_loop(k, site) && self.is_condition_known(k, &free, &args) {
            full = true;
        }
        let first = recursive && full && self.is_first_unfold(k, site);
        if recursive && mask != 0 && (first || !full) && (full || !self.is_known_stub(k, mask, &free, &args)) {
            let drift = self.drift(k, mask, &free, &args, site);
            if drift != 0 {
                self.noted.note_drift(key, drift);
                mask &= !drift;
                full = false;
            }
        }
        if full && first {
            let knot = (k, free.clone(), args[1..].into());
            if self.knots.contains(&knot) || self.repeats(k, &free, &args, site) {
                full = false;
                mask = all;
                self.knots.insert(knot);
            } else {
                site.records = Some(self.record(k, &free, &args, site.segment, site.records));
            }
        }
        if recursive {
            self.note_chain(k, &args, origin);
        }
        if full {
            self.note_run(k, run, site);
            return Some(Entry { cont: k, free, args });
        }
        let masked = (0..n.min(64)).filter(|&i| mask >> i & 1 == 1).map(|i| args[i]);
        let vals: Rc<[Val]> = free.iter().copied().chain(masked).collect();
        let s = self.stub(k, mask, vals, key);
        if !halt && self.is_linear(s, &args) {
            self.stubs[s].state = State::Consumed;
            return Some(Entry { cont: k, free, args });
        }
        let mut i = 0;
        args.retain(|_| {
            i += 1;
            i > 64 || mask >> (i - 1) & 1 == 0
        });
        self.request_call(site, s, args);
        None
    }

    fn call_builtin(&mut self, site: &mut Site, b: Builtin, callee: Val, args: Vec<Val>) -> Option<Entry> {
        match b {
            Builtin::Unreachable => self.define(site.block, callee, &args),
            Builtin::PeInfo => {
                self.report_info(args[1], args[2]);
                return self.call(site, args[3], vec![args[0]], Span::NONE);
            }
            Builtin::Branch => {
                let known = self.dst.as_lit(args[1]).map(|bit| if bit == 1 { args[2] } else { args[3] });
                if let Some(target) = known.or((args[2] == args[3]).then_some(args[2])) {
                    return self.call(site, target, vec![args[0]], Span::NONE);
                }
                let (mut resolved, mut requests) = (args.clone(), Vec::new());
                for idx in [2, 3] {
                    if let Some(s) = self.stub_of_val(args[idx]) {
                        let s = self.live(s);
                        resolved[idx] = self.dst.cont_val(self.stubs[s].cont);
                        requests.push(s);
                    }
                }
                self.define(site.block, callee, &resolved);
                for s in requests {
                    self.request(site, s, RequestKind::Arg, site.memory.clone());
                }
            }
        }
        None
    }

    /// Ends the block with a call of a stub, `args` what remains of the arguments.
    fn request_call(&mut self, site: &mut Site, s: StubId, args: Vec<Val>) {
        let s = self.live(s);
        let (cont, vals) = (self.stubs[s].cont, self.stubs[s].vals.clone());
        let target = self.dst.cont_val(cont);
        let is_block = args.iter().all(|&a| !self.dst.types.has_function(self.dst.ty(a)));
        let before = site.memory.clone();
        if is_block {
            for &a in &args[1..] {
                self.escape(a, site, false);
            }
            self.define(site.block, target, &args);
        } else {
            for &v in vals.iter() {
                self.escape(v, site, true);
            }
            self.residual_call(site, target, &args);
        }
        // Should the callee be inlined here after all, the arguments have not escaped.
        let memory = if is_block { site.memory.clone() } else { before };
        self.request(site, s, RequestKind::Jump { args }, memory);
    }

    /// Ends the block with a call of residual code, after which whatever escaped may have changed.
    fn residual_call(&mut self, site: &mut Site, callee: Val, args: &[Val]) {
        let mut resolved = args.to_vec();
        let last = args.len() - 1;
        let ret = self.stub_of_val(args[last]).filter(|_| {
            let params = self.dst.types.cn_params(self.dst.ty(args[last]));
            params.is_some_and(|p| p.iter().all(|&t| !self.dst.types.has_function(t)))
        });
        for (i, &a) in args.iter().enumerate().skip(1) {
            if i != last || ret.is_none() {
                self.escape(a, site, false);
            }
        }
        let ret = ret.map(|r| self.live(r));
        if let Some(r) = ret {
            resolved[last] = self.dst.cont_val(self.stubs[r].cont);
        }
        self.define(site.block, callee, &resolved);
        site.memory.clobber();
        if let Some(r) = ret {
            self.request(site, r, RequestKind::Arg, site.memory.clone());
        }
    }

    /// Which parameters the filters of `k` want specialized, and whether the call is to be unfolded.
    fn requested(&mut self, k: Cont, args: &[Val], all: u64, run: bool) -> (u64, bool) {
        let automatic = self.facts.automatic[k];
        if !self.options.annotations {
            return (automatic, automatic == all && all != 0);
        }
        let filter = &self.source.cont(k).filter;
        if run || filter.all.is_some_and(|f| self.filter_holds(f, args)) {
            return (all, true);
        }
        let mut mask = automatic;
        for (i, f) in filter.params.iter().enumerate().take(64).skip(1) {
            if mask >> i & 1 == 0
                && let Some(f) = f
                && self.filter_holds(*f, args)
            {
                mask |= 1 << i;
            }
        }
        (mask, mask == all && all != 0)
    }

    fn filter_holds(&mut self, f: Val, args: &[Val]) -> bool {
        let v = self.filter_value(f, args);
        self.dst.as_lit(v) == Some(1)
    }

    /// A filter's value with the arguments substituted. Filters are as deep as their source, which is limited.
    fn filter_value(&mut self, f: Val, args: &[Val]) -> Val {
        match self.source.node(f) {
            Node::Param(_, i) => args[i as usize],
            Node::Op(op) => {
                let operands: Vec<Val> = self.source.args(f).iter().map(|&a| self.filter_value(a, args)).collect();
                self.make(op, f, &operands)
            }
            _ => self.value(f),
        }
    }

    /// No other call of the stub will come: going on in its body copies nothing.
    fn is_linear(&mut self, s: StubId, args: &[Val]) -> bool {
        let stub = &self.stubs[s];
        let (k, mask) = (stub.source, stub.mask);
        if self.facts.is_recursive[k] || stub.queued || stub.state != State::New || stub.escaped {
            return false;
        }
        let rank = self.queue_rank(s);
        if self.queue.peek().is_some_and(|(top, _)| *top >= rank) {
            return false;
        }
        let top_level = self.facts.nest.free(k).is_empty();
        for i in self.unmasked(k, mask).skip(1) {
            let ty = self.dst.ty(args[i]);
            if !self.dst.types.has_function(ty) {
                continue;
            }
            let Some(held) = self.stub_of_val(args[i]) else {
                if self.dst.as_op(args[i]).is_some() {
                    return false;
                }
                continue;
            };
            if top_level || self.stubs[held].rank.1 > self.stubs[s].rank.1 {
                return false;
            }
        }
        true
    }

    // Loops of functions called by `@@`.

    fn note_run(&mut self, k: Cont, run: bool, site: &mut Site) {
        if self.facts.has_loop[k] {
            self.runs.push(Run { cont: k, run, next: site.runs });
            site.runs = Some(self.runs.len() as u32 - 1);
        }
    }

    /// Whether `k` is the header of a loop in a function that `@@` entered last.
    fn is_run_loop(&self, k: Cont, site: &Site) -> bool {
        let Some(function) = self.facts.loop_of[k].filter(|_| self.options.annotations) else { return false };
        let mut at = site.runs;
        for _ in 0..whistle::MAX_RECORDS {
            let Some(i) = at else { return false };
            let run = &self.runs[i as usize];
            if run.cont == function {
                return run.run;
            }
            at = run.next;
        }
        false
    }

    /// Whether the branch at a loop's header is decided with these arguments.
    fn is_condition_known(&mut self, k: Cont, free: &[Val], args: &[Val]) -> bool {
        let Some(cond) = loop_condition(self.source, k) else { return false };
        let facts = self.facts;
        let mut memo: FxHashMap<Val, Val> =
            facts.nest.free(k).iter().copied().zip(free.iter().copied()).collect();
        memo.extend(self.source.params(k).iter().copied().zip(args.iter().copied()));
        for &op in facts.nest.ops(k) {
            let total = self.source.as_op(op).filter(|o| o.effect() == Effect::Total);
            let operands: Option<Vec<Val>> = self
                .source
                .args(op)
                .to_vec()
                .iter()
                .map(|&a| match self.source.node(a) {
                    Node::Lit(_) | Node::Undef | Node::Global(_) => Some(self.value(a)),
                    _ => memo.get(&a).copied(),
                })
                .collect();
            if let (Some(total), Some(operands)) = (total, operands) {
                let v = self.make(total, op, &operands);
                memo.insert(op, v);
            }
        }
        memo.get(&cond).is_some_and(|&c| self.dst.as_lit(c).is_some())
    }

    // Records of recursive calls.

    fn record(&mut self, cont: Cont, free: &Rc<[Val]>, args: &[Val], segment: u32, next: Option<u32>) -> u32 {
        self.records.push(Record { cont, free: free.clone(), args: args.into(), segment, next });
        self.records.len() as u32 - 1
    }

    fn ancestors(&self, k: Cont, site: &Site) -> impl Iterator<Item = &Record> {
        let mut at = site.records;
        let mut looked_at = 0;
        std::iter::from_fn(move || {
            while let Some(i) = at
                && looked_at < whistle::MAX_RECORDS
            {
                looked_at += 1;
                let record = &self.records[i as usize];
                at = record.next;
                if record.cont == k {
                    return Some(record);
                }
            }
            None
        })
    }

    fn is_first_unfold(&self, k: Cont, site: &Site) -> bool {
        self.ancestors(k, site).next().is_none_or(|r| r.segment != site.segment)
    }

    fn is_known_stub(&self, k: Cont, mask: u64, free: &[Val], args: &[Val]) -> bool {
        let masked = (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1).map(|i| args[i]);
        let vals: Rc<[Val]> = free.iter().copied().chain(masked).collect();
        self.memo.get(&(k, mask, vals)).is_some_and(|&s| self.stubs[s].state != State::New || self.stubs[s].queued)
    }

    fn repeats(&self, k: Cont, free: &[Val], args: &[Val], site: &Site) -> bool {
        self.ancestors(k, site).any(|r| r.segment != site.segment && *r.free == *free && r.args[1..] == args[1..])
    }

    /// Parameters of `mask` that change without end, as far as the ancestors tell.
    fn drift(&self, k: Cont, mask: u64, free: &[Val], args: &[Val], site: &Site) -> u64 {
        let ancestors = self.ancestors(k, site).filter(|r| r.segment != site.segment);
        for record in ancestors.take(whistle::MAX_ANCESTORS) {
            if *record.free != *free {
                continue;
            }
            let mut drift = 0;
            let mut progress = false;
            for i in (0..args.len().min(64)).filter(|&i| mask >> i & 1 == 1) {
                match whistle::compare(self, record.args[i], args[i]) {
                    Change::Same => {}
                    Change::Drift => drift |= 1 << i,
                    Change::Progress => progress = true,
                }
            }
            if drift != 0 && !progress {
                return drift;
            }
        }
        0
    }

    fn note_chain(&mut self, k: Cont, args: &[Val], origin: Span) {
        // Only the last calls before the budget is spent are shown; describing all of them would cost too much.
        let limit = (MAX_REDUCTIONS as f64 * self.options.budget) as u64;
        let nodes = (MAX_NODES as f64 * self.options.budget) as usize;
        let near_end = self.reductions + 4096 > limit || self.dst.n_vals() + 4 * self.dst.n_conts() + 40_000 > nodes;
        if near_end || self.blocks[k] + 100 > (MAX_BLOCKS_PER_CONT as f64 * self.options.budget) as u64 {
            if self.chain.len() == CHAIN {
                self.chain.pop_front();
            }
            let args = args.iter().map(|&a| whistle::show(&self.dst, a)).collect();
            self.chain.push_back((k, origin, args));
        }
    }

    fn report_info(&mut self, text: Val, value: Val) {
        if !self.options.annotations {
            return;
        }
        let bytes = self.dst.args(text).iter().map_while(|&b| self.dst.as_lit(b)).map(|b| b as u8);
        let text: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
        let text = String::from_utf8_lossy(&text).into_owned();
        let shown = if self.is_known(value) { whistle::show(&self.dst, value) } else { "not known".into() };
        let origin = self.dst.current_origin();
        let mut diagnostic = Diagnostic::warning("pe-info", origin, format!("{text}: {shown}"));
        diagnostic.severity = Severity::Info;
        if !self.reports.contains(&diagnostic) {
            self.reports.push(diagnostic);
        }
    }

    // Values.

    /// The residual value of a source value, as seen from the continuation being evaluated.
    fn value(&mut self, v: Val) -> Val {
        match self.source.node(v) {
            Node::Param(..) => self.registers[v],
            Node::Op(op) => {
                if self.facts.nest.owner(v).is_some() {
                    return self.registers[v];
                }
                let operands: Vec<Val> = self.source.args(v).iter().map(|&a| self.value(a)).collect();
                self.make(op, v, &operands)
            }
            Node::Cont(c) => self.closure(c),
            node => {
                if let Some(x) = self.literals[v] {
                    return x;
                }
                let ty = self.source.ty(v);
                let x = match node {
                    Node::Lit(bits) => self.dst.lit(ty, bits),
                    Node::Builtin(b) => self.dst.builtin(b),
                    Node::Global(g) => self.dst.global_val(g),
                    _ => self.dst.undef(ty),
                };
                self.literals[v] = Some(x);
                x
            }
        }
    }

    fn closure(&mut self, c: Cont) -> Val {
        let data = self.source.cont(c);
        if let Linkage::Foreign(symbol) = &data.linkage {
            self.dst.set_origin(data.origin);
            let k = self.dst.foreign(symbol, data.ty);
            return self.dst.cont_val(k);
        }
        let vals: Rc<[Val]> = self.facts.nest.free(c).iter().map(|&v| self.registers[v]).collect();
        let s = self.stub(c, 0, vals, (c, 0, 0));
        self.dst.cont_val(self.stubs[s].cont)
    }

    /// An operation of the continuation being evaluated, with its effect on what is known of memory.
    fn compute(&mut self, v: Val, site: &mut Site) -> Val {
        let Node::Op(op) = self.source.node(v) else { return self.value(v) };
        let args: Vec<Val> = self.source.args(v).iter().map(|&a| self.value(a)).collect();
        self.dst.set_origin(self.source.origin(v));
        match op {
            Op::Load => {
                if let Some(known) = site.memory.load(&mut self.dst, args[1]) {
                    return known;
                }
                let loaded = self.dst.op(op, &args);
                site.memory.loaded(&self.dst, args[1], loaded);
                loaded
            }
            Op::Store => {
                if site.memory.load(&mut self.dst, args[1]) == Some(args[2]) {
                    return args[0];
                }
                self.escape(args[2], site, false);
                site.memory.store(&mut self.dst, args[1], args[2]);
                self.dst.op(op, &args)
            }
            Op::Slot | Op::Alloc => {
                let made = self.make(op, v, &args);
                let ptr = self.dst.extract(made, 1);
                site.memory.make(&mut self.dst, ptr, false);
                made
            }
            Op::Select => {
                let r = self.dst.op(op, &args);
                if self.dst.is_op(r, Op::Select) {
                    self.escape(args[1], site, false);
                    self.escape(args[2], site, false);
                }
                r
            }
            Op::Bitcast => {
                let from_ptr = matches!(self.dst.types.kind(self.dst.ty(args[0])), TyKind::Ptr { .. });
                if from_ptr && !matches!(self.source.types.kind(self.source.ty(v)), TyKind::Ptr { .. }) {
                    self.escape(args[0], site, false);
                }
                self.make(op, v, &args)
            }
            _ => self.make(op, v, &args),
        }
    }

    /// Operation `op` of source value `v` on residual operands.
    fn make(&mut self, op: Op, v: Val, args: &[Val]) -> Val {
        match op {
            Op::Known => {
                let known = self.options.annotations && self.is_known(args[0]);
                self.dst.lit_bool(known)
            }
            Op::Hlt | Op::Run if !self.options.annotations => args[0],
            Op::Slot | Op::Alloc => {
                let ty = self.source.ty(v);
                let ptr = self.source.types.part(ty, 1).and_then(|p| self.source.types.pointee(p));
                let elem = match (op, ptr) {
                    (Op::Alloc, Some(array)) => self.source.types.part(array, 0),
                    (_, ptr) => ptr,
                };
                self.dst.op_ty(op, elem.unwrap_or(ty), args)
            }
            _ => match op.rule() {
                Rule::Stated => self.dst.op_ty(op, self.source.ty(v), args),
                _ => self.dst.op(op, args),
            },
        }
    }

    /// `?v`: whether every part of the value is known.
    pub fn is_known(&self, v: Val) -> bool {
        let mut work = vec![v];
        let mut seen: FxHashSet<Val> = FxHashSet::default();
        while let Some(v) = work.pop() {
            let known = match self.dst.node(v) {
                Node::Lit(_) | Node::Undef | Node::Global(_) | Node::Cont(_) | Node::Builtin(_) => true,
                Node::Param(..) => false,
                Node::Op(Op::Tuple | Op::Struct | Op::Array | Op::Splat | Op::Insert | Op::Lea | Op::Bitcast) => {
                    if seen.insert(v) {
                        work.extend(self.dst.args(v));
                    }
                    true
                }
                Node::Op(Op::Extract) => self.dst.is_op(self.dst.args(v)[0], Op::Slot),
                Node::Op(_) => false,
            };
            if !known {
                return false;
            }
        }
        true
    }
}
