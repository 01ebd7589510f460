//! The evaluator proper: what it has, and how residual blocks end. What becomes of a call: `call`.
//!
//! Memory is no part of a memo key: a stub that is requested from several places knows what all of them know, a recursive
//! one what it leaves alone (`kept`), an escaped one nothing. What is decided without residual nodes: `machine`.

mod call;
mod code;
mod computed;
mod explain;
mod hints;
mod history;
mod kept;
mod machine;
mod plain;
mod run;
mod sharing;
mod stubs;
mod units;
mod values;

use crate::Options;
use crate::facts::Facts;
use crate::memory::{self, Memory};
use crate::postdom;
use crate::record::Record as Explained;
use crate::whistle::{self, CallKey, Diverged, Hints};
use nyala_base::{Diagnostic, Id, SideTable, Span};
use nyala_ir::{Builtin, Cont, Linkage, Node, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

/// Unfolds of recursive continuations kept for the report of a divergence.
const CHAIN: usize = 1024;

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
    /// What its first request came from.
    past: Past,
    /// The mode to evaluate it in wherever it is called.
    resume: Option<Mode>,
    /// When it was made, in reductions; by the code that a call by `@` runs, made last.
    made: u64,
    /// Stands in for it once it is consumed.
    alias: Option<StubId>,
    /// If it was built for requests that know something of memory: what, and the block.
    assumed: Option<Box<(Memory, Cont)>>,
    rank: (u32, u32),
    /// A call that has a record may leave by it: it is a continuation among the values that the call was given.
    is_exit: bool,
    /// What it captures was searched for such continuations.
    has_exits_marked: bool,
    /// Records that were there when it was made first.
    n_records: u32,
    /// The record of its block, once that is begun.
    record: Option<u32>,
    /// The unit it is evaluated in.
    unit: Cont,
    /// It may capture the address of an object.
    holds_address: bool,
    /// Inlined where its only call was.
    was_called: bool,
    /// Parameters that drift were left out.
    is_general: bool,
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
    /// Parameters that drift were left out.
    is_general: bool,
    /// Records before it on the way.
    depth: u32,
    next: Option<u32>,
}

/// The residual block under construction.
struct Site {
    block: Cont,
    /// From one residual terminator to the next.
    segment: u32,
    past: Past,
    memory: Memory,
}

/// What happened on the way to some code.
#[derive(Clone, Copy)]
struct Past {
    records: Option<u32>,
    /// What of these has returned.
    returned: Option<u32>,
    entered: Option<u32>,
    mode: Mode,
}

const NO_PAST: Past = Past { records: None, returned: None, entered: None, mode: Mode::Filters };

/// The records from `first` to `last`, as far as they are on the way, are of calls that have returned.
struct Returned {
    first: u32,
    last: u32,
    next: Option<u32>,
}

/// A function with loops was entered, by `@@` or otherwise.
struct Entered {
    cont: Cont,
    unfold: bool,
    next: Option<u32>,
}

/// How calls are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// As their filters say.
    Filters,
    /// Within the call by `@` with that index: all known callees are unfolded.
    Run(u32),
    /// The same, but behind a call that could not be decided, up to its post-dominator, if that is code of which there
    /// is no closure yet: as filters say.
    Skip(u32, Option<Cont>),
}

/// A call by `@`.
struct RunCall {
    /// Continuations made before are outside, and end it.
    start: u64,
    /// The mode there.
    outer: Mode,
}

/// A recursive continuation, its free values, its arguments without `mem`.
type Knot = (Cont, Rc<[Val]>, Box<[Val]>);

/// A call for the report of a divergence, and its arguments.
type Link = (Cont, Span, Vec<String>);

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
    codes: SideTable<Cont, Option<Rc<code::Code>>>,
    constants: memory::Constants,
    computer: computed::Computer<'a>,
    plain: plain::Plain,
    /// Where the living ones go next.
    spare: plain::Plain,
    /// Frames that nobody uses.
    frames: [Vec<plain::Value>; 2],
    literals: SideTable<Val, Option<Val>>,
    shapes: memory::Shapes,
    stubs: Vec<Stub>,
    stub_of: SideTable<Cont, Option<u32>>,
    memo: stubs::Memo,
    tickets: stubs::Tickets,
    /// See `kept.rs`.
    writes_of: kept::WritesOf,
    /// Birth of residual parameters, and of what was computed from them; with the nesting of held stubs.
    ranks: SideTable<Val, Option<(u32, u32)>>,
    births: u32,
    queue: BinaryHeap<((u32, u32, u32), StubId)>,
    records: Vec<Record>,
    returned: Vec<Returned>,
    entered: Vec<Entered>,
    run_calls: Vec<RunCall>,
    /// The continuation being evaluated, and how.
    current: (Cont, Mode),
    segments: u32,
    knots: FxHashSet<Knot>,
    noted: Hints,
    reports: Vec<Diagnostic>,
    reductions: u64,
    /// The root, or the function that captures nothing and has nothing specialized, whose code is evaluated. Budgets, and
    /// what one round tells the next, are its own, so that they do not depend on how many others there are.
    unit: Cont,
    units: SideTable<Cont, units::Unit>,
    /// Nodes and reductions that were there when it was told last what the unit has.
    counted: (u64, u64),
    /// Blocks of each continuation in each unit.
    blocks: FxHashMap<(Cont, Cont), u64>,
    /// The segment of the newest record.
    last_recorded: SideTable<Cont, u32>,
    /// Calls of it were found to drift, now or in earlier rounds.
    has_drift_hint: SideTable<Cont, bool>,
    max_bytes: u64,
    /// There is another round for what is found.
    pub may_start_again: bool,
    /// Earlier rounds found calls of it that are the only ones.
    has_inline_hint: SideTable<Cont, bool>,
    /// A budget will soon be spent: calls are noted for the report.
    near_end: bool,
    versions: SideTable<Cont, u32>,
    chain: VecDeque<Link>,
    /// What was decided, for those who ask.
    record: Option<Box<Explained>>,
}

impl<'a> Evaluator<'a> {
    pub fn new(source: &'a World, facts: &'a Facts, hints: &'a Hints, options: Options) -> Evaluator<'a> {
        Evaluator {
            source,
            facts,
            hints,
            options,
            dst: World::like(source),
            codes: SideTable::default(),
            constants: memory::Constants::default(),
            computer: computed::Computer::default(),
            plain: plain::Plain::default(),
            spare: plain::Plain::default(),
            frames: Default::default(),
            literals: SideTable::default(),
            shapes: memory::Shapes::default(),
            stubs: Vec::new(),
            stub_of: SideTable::default(),
            memo: stubs::Memo::default(),
            tickets: stubs::Tickets::default(),
            writes_of: kept::WritesOf::default(),
            ranks: SideTable::default(),
            births: 0,
            queue: BinaryHeap::new(),
            records: Vec::new(),
            returned: Vec::new(),
            entered: Vec::new(),
            run_calls: Vec::new(),
            current: (Cont(0), Mode::Filters),
            segments: 0,
            knots: FxHashSet::default(),
            noted: Hints::default(),
            reports: Vec::new(),
            reductions: 0,
            unit: Cont(0),
            units: SideTable::default(),
            counted: (0, 0),
            blocks: FxHashMap::default(),
            last_recorded: SideTable::default(),
            has_drift_hint: hints.drifting(),
            max_bytes: units::max_bytes(options.budget),
            may_start_again: false,
            has_inline_hint: hints.inlining(),
            near_end: false,
            versions: SideTable::default(),
            chain: VecDeque::new(),
            record: options.record.then(Default::default),
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
        (*self.source.cont(root).linkage).clone()
    }

    /// Notes the kinds of calls that are the only ones of their callee, so that the next round unfolds them (`001` 4.6).
    /// `n_uses` counts the residual uses of a continuation.
    pub fn note_single_calls(&mut self, n_uses: impl Fn(Cont) -> u32) {
        let takes_function = |&p: &Val| self.source.types.has_function(self.source.ty(p));
        let mut single: Vec<(Cont, CallKey)> = Vec::new();
        let mut several: FxHashSet<(Cont, CallKey)> = FxHashSet::default();
        for stub in &self.stubs {
            let k = stub.source;
            let n = n_uses(stub.cont);
            if n == 0 && !stub.was_called
                || self.facts.is_recursive[k]
                || !self.source.params(k).iter().any(takes_function)
            {
                continue;
            }
            match n {
                0 | 1 => single.push((stub.unit, (k, stub.mask))),
                _ => drop(several.insert((stub.unit, (k, stub.mask)))),
            }
        }
        for (unit, key) in single {
            if !several.contains(&(unit, key)) {
                self.noted.note_inline(unit, key);
            }
        }
    }

    /// The source continuation and captured values of a closure.
    pub fn captured(&self, v: Val) -> Option<(Cont, &[Val])> {
        let stub = &self.stubs[self.stub_of_val(v)?];
        Some((stub.source, &stub.vals))
    }

    /// When a residual parameter was made.
    pub fn birth(&self, v: Val) -> u32 {
        self.ranks[v].map_or(0, |r| r.0)
    }

    /// For a closure, how deep stubs are held in it.
    pub fn height(&self, v: Val) -> Option<u32> {
        Some(self.stubs[self.stub_of_val(v)?].rank.1)
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

    /// Gives the memory back of what only evaluation needs.
    pub fn forget_code(&mut self) {
        self.codes = SideTable::default();
        self.plain = plain::Plain::default();
        self.spare = plain::Plain::default();
        self.literals = SideTable::default();
        self.knots = FxHashSet::default();
        self.records = Vec::new();
    }

    pub fn run(&mut self, roots: &[Cont]) -> Result<(), Box<Diverged>> {
        self.copy_globals();
        for &root in roots {
            let s = self.stub(root, 0, Rc::new([]));
            self.escape_stub(s, NO_PAST);
        }
        let mut left: Option<Box<Diverged>> = None;
        loop {
            while let Some((_, s)) = self.queue.pop() {
                let Err(diverged) = self.decide(s) else { continue };
                // The others may find more for the next round, which they need not find again.
                self.plain.clear();
                self.units[self.unit].is_left = true;
                self.units[self.unit].is_spent = !diverged.is_early;
                if diverged.is_total {
                    return Err(diverged);
                }
                if left.as_ref().is_none_or(|left| left.is_early && !diverged.is_early) {
                    left = Some(diverged);
                }
            }
            if !self.escape_globals() {
                return left.map_or(Ok(()), Err);
            }
        }
    }

    /// The residual continuation of a root.
    pub fn root(&self, root: Cont) -> Cont {
        let s = self.first_stub(root, 0, &[]).expect("roots have stubs");
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
        let has_function = |g: usize| self.dst.types.has_function(self.dst.global(nyala_ir::Global(g as u32)).ty);
        if !(0..self.dst.n_globals()).any(has_function) {
            return false;
        }
        let mut seen: SideTable<Val, bool> = SideTable::default();
        let mut work: Vec<Val> = Vec::new();
        let mut found = false;
        for k in (0..self.dst.n_conts()).map(Cont::from_idx) {
            if let Some(body) = self.dst.body(k) {
                work.push(body.callee);
                work.extend(body.args);
            }
        }
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut seen[v], true) {
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
                        self.escape_stub(s, NO_PAST);
                    }
                    parts.extend(self.dst.args(p));
                }
            }
        }
        found
    }

    // Evaluation.

    fn diverged(&self, what: &'static str, limit: u64) -> Box<Diverged> {
        let mut calls: FxHashMap<Cont, (Vec<&[String]>, Span)> = FxHashMap::default();
        for (k, span, args) in &self.chain {
            let (calls, last) = calls.entry(*k).or_default();
            calls.push(args);
            *last = *span;
        }
        // The one that counts, if there is one; or that has the most numbers.
        let rank = |k: Cont, calls: &[&[String]]| {
            let counts = whistle::counts(&whistle::last_calls(calls));
            let (numbers, _) = whistle::numbers(calls);
            (counts, numbers.max(whistle::FEW_NUMBERS), self.facts.is_recursive[k], calls.len(), k)
        };
        let worst = calls.iter().max_by_key(|(k, (calls, _))| rank(**k, calls));
        let cont = worst.map(|(k, _)| *k);
        let last = worst.map(|(_, (calls, _))| whistle::last_calls(calls)).unwrap_or_default();
        let chain = last.into_iter().map(<[String]>::to_vec).collect();
        let call = worst.map_or(self.dst.current_origin(), |(_, (_, last))| *last);
        let around = cont.map_or(Vec::new(), |k| self.calls_around(k));
        let (is_early, is_total) = (false, false);
        Box::new(Diverged { what, limit, cont, call, around, chain, is_early, is_total, record: None })
    }

    fn call_builtin(&mut self, site: &mut Site, b: Builtin, callee: Val, mut args: Vec<Val>) -> Option<Entry> {
        match b {
            Builtin::Unreachable => self.define(site.block, callee, &args),
            Builtin::PeInfo => {
                self.report_info(args[1], args[2]);
                return self.call(site, args[3], vec![args[0]], Span::NONE);
            }
            // What is not found true stays, and is reported if it is still there at the end.
            Builtin::StaticAssert => {
                if self.options.annotations && self.dst.as_lit(args[1]) == Some(1) {
                    return self.call(site, args[3], vec![args[0]], Span::NONE);
                }
                self.residual_call(site, callee, &args, None);
            }
            // The bodies are built where they stand. While a parallel loop runs, nobody else does.
            Builtin::Parallel | Builtin::Vectorize | Builtin::Spawn | Builtin::Limited => {
                self.skip(site, postdom::UNKNOWN, &args);
                let body = matches!(b, Builtin::Parallel | Builtin::Vectorize).then(|| args.len() - 2);
                self.residual_call(site, callee, &args, body);
            }
            Builtin::Branch => {
                let known = self.dst.as_lit(args[1]).map(|bit| if bit == 1 { args[2] } else { args[3] });
                if let Some(target) = known.or((args[2] == args[3]).then_some(args[2])) {
                    return self.call(site, target, vec![args[0]], Span::NONE);
                }
                if self.record.is_some() {
                    self.explain_left(args[1]);
                }
                self.flush_all(site, &mut args, &[]);
                self.skip_branch(site, &args[2..]);
                let (mut resolved, mut requests) = (args.clone(), Vec::new());
                for idx in [2, 3] {
                    if let Some(s) = self.stub_of_val(args[idx]) {
                        let (block, request) = self.target(s, &site.memory);
                        resolved[idx] = self.dst.cont_val(block);
                        requests.extend(request);
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
    fn request_call(&mut self, site: &mut Site, s: StubId, mut args: Vec<Val>) {
        let vals = self.stubs[s].vals.clone();
        self.flush_all(site, &mut args, &vals);
        let is_block = args.iter().all(|&a| !self.dst.types.has_function(self.dst.ty(a)));
        let before = site.memory.clone();
        if is_block {
            for &a in &args[1..] {
                self.escape(a, site, false);
            }
            let (block, request) = self.target(s, &site.memory);
            let target = self.dst.cont_val(block);
            self.define(site.block, target, &args);
            if let Some(s) = request {
                self.request(site, s, RequestKind::Jump { args }, site.memory.clone());
            }
        } else {
            let (block, request) = self.target(s, &before);
            let target = self.dst.cont_val(block);
            for &v in vals.iter() {
                self.escape(v, site, true);
            }
            self.residual_call(site, target, &args, None);
            // Should the callee be inlined here after all, the arguments have not escaped.
            if let Some(s) = request {
                self.request(site, s, RequestKind::Jump { args }, before);
            }
        }
    }

    /// Ends the block with a call of residual code, after which whatever escaped may have changed. During the call, only
    /// the argument `body` runs, if there is one.
    fn residual_call(&mut self, site: &mut Site, callee: Val, args: &[Val], body: Option<usize>) {
        let mut resolved = args.to_vec();
        self.flush_all(site, &mut resolved, &[callee]);
        let last = args.len() - 1;
        let ret = self.stub_of_val(args[last]).filter(|_| {
            let params = self.dst.types.cn_params(self.dst.ty(args[last]));
            params.is_some_and(|p| p.iter().all(|&t| !self.dst.types.has_function(t)))
        });
        let body = body.and_then(|i| Some((i, self.stub_of_val(args[i])?)));
        let in_body = body.map(|(_, s)| self.kept(s, &site.memory));
        for (i, &a) in args.iter().enumerate().skip(1) {
            if i != last || ret.is_none() {
                self.escape(a, site, body.is_some_and(|b| b.0 == i));
            }
        }
        let mut body_request = None;
        if let (Some((i, s)), Some(memory)) = (body, in_body) {
            let (block, request) = self.target(s, &memory);
            resolved[i] = self.dst.cont_val(block);
            body_request = request.map(|s| (s, memory));
        }
        let mut after = site.memory.clone();
        after.clobber();
        let ret = ret.map(|r| self.target(r, &after));
        if let Some((block, _)) = ret {
            resolved[last] = self.dst.cont_val(block);
        }
        self.define(site.block, callee, &resolved);
        site.memory = after;
        if let Some((s, memory)) = body_request {
            self.request(site, s, RequestKind::Arg, memory);
        }
        if let Some((_, Some(r))) = ret {
            self.request(site, r, RequestKind::Arg, site.memory.clone());
        }
    }

    fn report_info(&mut self, text: Val, value: Val) {
        if !self.options.annotations {
            return;
        }
        let text = self.dst.text(text);
        let shown = if self.is_known(value) { whistle::show(&self.dst, value) } else { "not known".into() };
        let origin = self.dst.current_origin();
        let diagnostic = crate::diagnostics::pe_info::info(origin, &text, &shown);
        if !self.reports.contains(&diagnostic) {
            self.reports.push(diagnostic);
        }
    }
}
