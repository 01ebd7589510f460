//! The loop that runs register programs. It is one file since all that a call changes is here; what instructions compute is in the
//! modules below.

mod foreign;
mod frames;
mod lane_turns;
mod simple;

use crate::Options;
use crate::code::{Code, Entry, EntryIdx, FuncIdx, Function, Inst, Leave, NO_ENTRY, POISON, Reg};
use crate::compile::compile;
use crate::diagnostics::{self, undefined_call, uninitialized_read};
use crate::diagnostics::{broken_promise, budget_spent, dead_continuation, invalid_access, invalid_handle, panic};
use crate::eval;
use crate::externals::{ForeignKind, HALT, LANE_END, Linker, RELEASE, memory_fault};
use crate::fault::{Fault, bug, limitation};
use crate::heap::{Class, Closure, ENTRY_SHIFT, Frame, Heap, Kind, MAX_WORDS, NONE, Parts, Record};
use crate::lane_groups::{Group, State};
use crate::leaves::Leaf;
use crate::restricted;
use nyala_base::Span;
use nyala_ir::facts::Nest;
use nyala_ir::{Builtin, Cont, Global, World};
use nyala_runtime::{FfiType, call_checked};
use rustc_hash::FxHashMap;
use std::rc::Rc;

type Result<T> = std::result::Result<T, Box<Fault>>;

/// Limit on the calls of the chain that a fault shows.
const MAX_CHAIN: usize = 32;
/// Limit on the bytes of a confined program, for its own memory and for its frames and records separately.
const MAX_CONFINED: usize = 1 << 28;

/// The number of bytes at which abandoned frames are searched for the first time, as their local variables hold memory.
const MIN_BYTES: usize = 64 << 20;
/// The number of words that count as one step when they are moved at once.
const WORDS_OF_STEP: u32 = 32;

/// Limit on the bytes of a panic's message; the rest is cut off.
const MAX_TEXT: usize = 10_000;

/// The data about a function that a call needs.
#[derive(Clone, Copy)]
struct Call {
    /// Its first instruction.
    start: u32,
    /// The number of words of parameters and captured values; an impossible number if the function is not compiled yet.
    n_words: u32,
    /// The size class of its frames. `captured` is that of the records of captured values.
    class: Class,
    captured: Class,
}

const UNKNOWN: Call = Call { start: 0, n_words: u32::MAX, class: 0, captured: 0 };

/// Runs of one program, one after the other. Functions compiled for one run serve the next.
pub struct Machine<'w> {
    l: Linker<'w>,
    options: &'w Options,
    heap: Heap,
    compiled: Vec<Option<Rc<Function>>>,
    /// By function, the data that calls need.
    calls: Vec<Call>,
    code: Code,
    /// Function values in memory, by the address of their place. Some were overwritten, or their memory was freed.
    stored: FxHashMap<usize, Closure>,
    /// Addresses in memory, by the address of their place. Some were overwritten, or their memory was freed.
    stored_addresses: FxHashMap<usize, u64>,
    /// Foreign code was given addresses: it may have copied function values without the machine's notice.
    may_be_copied: bool,
    /// Records of function values in memory that were overwritten after that.
    copied: Vec<Frame>,
    /// Frames that end together with another one, by that one.
    kept: FxHashMap<Frame, Vec<Frame>>,
    /// Address and size of each variable that lives as long as a function value that captured it.
    outliving: Vec<(u64, u64)>,
    /// Lanes that run, the innermost last.
    groups: Vec<Group>,
    /// The arguments or results that are being passed.
    words: Vec<u64>,
    steps: u64,
    max_steps: u64,
    /// Bytes of local variables and allocations after the last marking.
    bytes_then: usize,
    steps_then: u64,
    restricted: restricted::Calls,
    /// The last jump of `call`: its target with its frame, and where it came from. The latter frame may be free since then.
    jumped: Option<[(FuncIdx, Frame); 2]>,
    // The current activation.
    func: FuncIdx,
    frame: Frame,
    base: usize,
    pc: usize,
}

/// The frame whose local variable an address leads into.
fn owner(variables: &[(usize, usize, Frame)], address: u64) -> Option<Frame> {
    let (first, last) = (variables.first()?, variables.last()?);
    if address < first.0 as u64 || address >= (last.0 + last.1) as u64 {
        return None;
    }
    let next = variables.partition_point(|v| v.0 as u64 <= address);
    let (at, size, frame) = variables[next.checked_sub(1)?];
    (address - (at as u64) < size as u64).then_some(frame)
}

impl<'w> Machine<'w> {
    /// A machine for calls of functions in `nest`, which belongs to the program.
    pub fn new(w: &'w World, nest: &'w Nest, options: &'w Options) -> Result<Machine<'w>> {
        let mut machine = Machine {
            l: Linker::new(w, nest, &options.libraries),
            options,
            heap: Heap::new(if options.confined { MAX_CONFINED / 8 } else { MAX_WORDS }),
            compiled: Vec::new(),
            calls: Vec::new(),
            code: Code::default(),
            stored: FxHashMap::default(),
            stored_addresses: FxHashMap::default(),
            may_be_copied: false,
            copied: Vec::new(),
            kept: FxHashMap::default(),
            outliving: Vec::new(),
            restricted: restricted::Calls::default(),
            jumped: None,
            groups: Vec::new(),
            words: Vec::new(),
            steps: 0,
            max_steps: options.max_steps.unwrap_or(u64::MAX),
            bytes_then: 0,
            steps_then: 0,
            func: 0,
            frame: NONE,
            base: 0,
            pc: 0,
        };
        if options.confined {
            machine.l.memory.confine(MAX_CONFINED);
        }
        Ok(machine)
    }

    /// Calls `entry`, like [`run`](crate::run). After a fault, the machine must not be used again.
    pub fn run(&mut self, entry: Cont, args: &[u64]) -> Result<Vec<u64>> {
        self.steps = 0;
        self.frame = NONE;
        self.words.clear();
        self.words.extend_from_slice(args);
        self.words.push((HALT as u64) << ENTRY_SHIFT | NONE as u64);
        let func = self.l.func(entry);
        let started = self.enter(func);
        let result = started.and_then(|()| self.execute());
        result.map_err(|fault| self.locate(fault))
    }

    /// The address of number, pointer or function `leaf` of a global. `None` if the global does not have `n` of them in
    /// all.
    pub fn address(&mut self, g: Global, leaf: u64, n: u64) -> Option<u64> {
        let layout = self.l.layouts.layout(self.l.program.w.global(g).ty).ok()?;
        let &(_, offset) = layout.leaves.get(leaf as usize).filter(|_| layout.leaves.len() as u64 == n)?;
        Some((self.l.global(g).ok()? + offset) as u64)
    }

    /// The number of calls and jumps in the last run.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Limits the number of calls and jumps of later runs.
    pub fn limit_steps(&mut self, max_steps: u64) {
        self.max_steps = max_steps;
    }
}

impl Machine<'_> {
    #[inline]
    fn get(&self, r: Reg) -> u64 {
        self.heap.words[self.base + r as usize]
    }

    #[inline]
    fn set(&mut self, r: Reg, bits: u64) {
        self.heap.words[self.base + r as usize] = bits;
    }

    fn compiled(&mut self, func: FuncIdx) -> Result<Rc<Function>> {
        let idx = func as usize;
        if let Some(Some(f)) = self.compiled.get(idx) {
            return Ok(f.clone());
        }
        let (mut function, code) = compile(&mut self.l, func)?;
        function.start = self.code.append(code);
        for &entry in &function.entries {
            if let Entry::Block { pc, .. } = &mut self.l.entries[entry as usize] {
                *pc += function.start;
            }
        }
        if self.compiled.len() <= idx {
            self.compiled.resize(idx + 1, None);
            self.calls.resize(idx + 1, UNKNOWN);
        }
        self.calls[idx] = Call {
            start: function.start,
            n_words: function.n_params + function.n_captured,
            class: self.heap.class(function.n_regs),
            captured: self.heap.class(function.n_captured),
        };
        let function = Rc::new(function);
        self.compiled[idx] = Some(function.clone());
        Ok(function)
    }

    /// Makes a frame for a function, for a call with `n` words. The parameters are not set yet.
    #[inline]
    fn new_frame(&mut self, func: FuncIdx, n: usize) -> Result<(Frame, usize, u32)> {
        let call = match self.calls.get(func as usize) {
            Some(&call) if call.n_words as usize == n => call,
            _ => self.look_up(func, n)?,
        };
        let frame = match self.heap.reuse(Kind::Frame(func), call.class) {
            Some(frame) => frame,
            None => self.grow(Kind::Frame(func), call.class)?,
        };
        let record = &mut self.heap.records[frame as usize];
        record.called_at = self.pc as u32;
        Ok((frame, record.base as usize, call.start))
    }

    /// The data of a function, which is compiled now if need be. Checks that the call passes `n` words.
    #[cold]
    fn look_up(&mut self, func: FuncIdx, n: usize) -> Result<Call> {
        let function = self.compiled(func)?;
        match self.calls.get(func as usize) {
            Some(&call) if call.n_words as usize == n => Ok(call),
            _ => Err(undefined_call::other_type(&function.name).into()),
        }
    }

    /// Makes a new record. If it is time, abandoned records are released first.
    #[cold]
    fn grow(&mut self, kind: Kind, class: Class) -> Result<Frame> {
        let bytes = self.l.memory.live_bytes;
        // Marking also visits all stored closures and addresses.
        let n_stored = (self.stored.len() + self.stored_addresses.len()) as u64;
        let steps = self.steps.saturating_sub(self.steps_then).saturating_sub(2 * n_stored);
        if self.heap.wants_marking(steps) || self.heap.is_full() || bytes > 2 * self.bytes_then + MIN_BYTES {
            self.collect();
            (self.bytes_then, self.steps_then) = (self.l.memory.live_bytes, self.steps);
            if let Some(frame) = self.heap.reuse(kind, class) {
                return Ok(frame);
            }
        }
        match self.heap.is_full() {
            true => Err(budget_spent::recursion().into()),
            false => Ok(self.heap.add(kind, class)),
        }
    }

    /// Begins a function, whose parameters and captured values are in `self.words`.
    fn enter(&mut self, func: FuncIdx) -> Result<()> {
        let n = self.words.len();
        let (frame, base, start) = self.new_frame(func, n)?;
        self.heap.words[base..base + n].copy_from_slice(&self.words);
        self.go(func, frame, base, start);
        Ok(())
    }

    #[inline]
    fn go(&mut self, func: FuncIdx, frame: Frame, base: usize, pc: u32) {
        self.func = func;
        self.frame = frame;
        self.base = base;
        self.pc = pc as usize;
    }

    /// Executes the instruction `Call`, which copies words from frame to frame.
    #[inline]
    fn call(&mut self, func: FuncIdx, list: u32, leave: Leave, then: EntryIdx) -> Result<()> {
        let n = self.code.list(list).len();
        let (frame, base, start) = self.new_frame(func, n + usize::from(then != NO_ENTRY))?;
        for (i, &r) in self.code.list(list).iter().enumerate() {
            self.heap.words[base + i] = self.heap.words[self.base + r as usize];
        }
        if then != NO_ENTRY {
            self.heap.words[base + n] = self.heap.closure(then, self.frame).0;
        } else {
            self.jumped = Some([(func, frame), (self.func, self.frame)]);
        }
        match leave {
            Leave::Stay | Leave::Forget => {}
            Leave::Keep => self.kept.entry(frame).or_default().push(self.frame),
            Leave::Free | Leave::FreeSlots => {
                if !self.kept.is_empty() {
                    let words = self.heap.words[base..base + n].to_vec();
                    self.hand_on(frame, words);
                }
                self.free_frame(self.frame);
            }
            Leave::Release => {
                let last = match &self.compiled[func as usize] {
                    Some(f) => f.ret,
                    None => None,
                };
                if let Some(last) = last {
                    let release = self.heap.closure(RELEASE, self.frame);
                    let to = std::mem::replace(&mut self.heap.words[base + last as usize], release.0);
                    self.set_release(to);
                }
            }
        }
        self.go(func, frame, base, start);
        Ok(())
    }

    fn set_release(&mut self, to: u64) {
        if let Some(Some(f)) = self.compiled.get(self.func as usize) {
            let reg = f.release;
            self.set(reg, to);
        }
    }

    /// Finds abandoned records and releases them.
    fn collect(&mut self) {
        let variables = self.variables();
        let (mut roots, in_variables) = self.find_stored(&variables);
        roots.extend(self.kept.values().flatten().chain(&self.copied));
        if self.frame != NONE {
            roots.push(self.frame);
        }
        // Any word being passed may be a closure or an address.
        let words = || self.words.iter().copied().chain(self.groups.iter().flat_map(Group::words));
        roots.extend(words().map(|w| Closure(w).frame()).chain(words().filter_map(|w| owner(&variables, w))));
        let compiled = &self.compiled;
        let others = |frame: Frame| in_variables.get(&frame).map_or(&[][..], Vec::as_slice);
        self.heap.mark(
            roots,
            others,
            |word| owner(&variables, word),
            |kind| match kind {
                Kind::Frame(f) => compiled.get(f as usize).and_then(|f| f.as_ref()).map_or(&[], |f| &f.closures),
                Kind::Captured(f) => {
                    compiled.get(f as usize).and_then(|f| f.as_ref()).map_or(&[], |f| &f.captured_closures)
                }
                Kind::Free => &[],
            },
        );
        for frame in self.heap.sweep() {
            match self.heap.records[frame as usize].kind {
                Kind::Frame(_) => self.free_frame(frame),
                Kind::Captured(_) => self.heap.release(frame),
                Kind::Free => {}
            }
        }
        self.free_outliving();
    }

    /// Local variables in memory, sorted: address, size, and the frame that owns them.
    fn variables(&self) -> Vec<(usize, usize, Frame)> {
        let mut found: Vec<(usize, usize, Frame)> = Vec::new();
        for (i, record) in self.heap.records.iter().enumerate() {
            let Kind::Frame(func) = record.kind else { continue };
            let Some(Some(function)) = self.compiled.get(func as usize) else { continue };
            let addresses = function.slots.iter().map(|&r| self.heap.words[record.base as usize + r as usize] as usize);
            let sized = addresses.filter_map(|at| Some((at, self.l.memory.block_size(at).ok()?, i as Frame)));
            found.extend(sized);
        }
        found.sort_unstable();
        found
    }

    /// Records that function values and addresses in memory refer to: those in memory other than local variables, and,
    /// by frame, those in a frame's local variables.
    fn find_stored(&mut self, variables: &[(usize, usize, Frame)]) -> (Vec<Frame>, FxHashMap<Frame, Vec<Frame>>) {
        if !self.may_be_copied {
            let l = &mut self.l;
            self.stored.retain(|&address, closure| l.load(address, Leaf::Cn).is_ok_and(|word| word == closure.0));
        }
        let l = &mut self.l;
        self.stored_addresses.retain(|&at, word| l.load(at, Leaf::Ptr).is_ok_and(|now| now == *word));
        let (mut found, mut in_variables): (Vec<Frame>, FxHashMap<Frame, Vec<Frame>>) = Default::default();
        let functions = self.stored.iter().map(|(&at, closure)| (at, closure.frame()));
        let addresses = self.stored_addresses.iter().filter_map(|(&at, &word)| Some((at, owner(variables, word)?)));
        for (at, held) in functions.chain(addresses) {
            match owner(variables, at as u64) {
                Some(frame) => in_variables.entry(frame).or_default().push(held),
                None => found.push(held),
            }
        }
        (found, in_variables)
    }

    /// Frees local variables that function values captured, once nothing refers to them any more.
    fn free_outliving(&mut self) {
        if self.outliving.is_empty() {
            return;
        }
        let mut held: Vec<u64> = self.heap.words_in_use().chain(self.words.iter().copied()).collect();
        held.extend(self.groups.iter().flat_map(Group::words));
        held.sort_unstable();
        let variables = std::mem::take(&mut self.outliving);
        for (at, size) in variables {
            // An address into the variable, or just past its end, keeps it.
            let next = held.partition_point(|&w| w < at);
            match held.get(next).is_some_and(|&w| w <= at + size) {
                true => self.outliving.push((at, size)),
                // This fails if the program has freed the memory itself.
                false => _ = self.l.memory.free(at as usize),
            }
        }
    }

    /// Adds the place of a fault and the calls that led there.
    fn locate(&mut self, mut fault: Box<Fault>) -> Box<Fault> {
        if let Some((race, writes)) = self.l.race.take() {
            let earlier = self.code.spans.get((race.pc as usize).saturating_sub(1)).copied().unwrap_or(Span::NONE);
            let is_launch = |g: &&Group| if race.in_lanes { g.is_vector() } else { g.is_parallel };
            let launch = self.groups.iter().rev().find(is_launch).map_or(Span::NONE, |g| g.span);
            let earlier = (earlier, race.was_write);
            fault = diagnostics::data_race::error(race.iterations, earlier, writes, launch, race.in_lanes).into();
        }
        if self.options.confined {
            fault.confine();
        }
        let at = self.pc.saturating_sub(1);
        fault.set_span(self.code.spans.get(at).copied().unwrap_or(Span::NONE));
        let Some(Some(function)) = self.compiled.get(self.func as usize) else { return fault };
        let mut name = function.name.clone();
        let (mut function, mut frame) = (function.clone(), self.frame);
        // A block that uses nothing of the function around it is one of its own, which nobody waits for: so are most that panic.
        if let (None, Some([to, (func, from)])) = (function.ret, self.jumped)
            && to == (self.func, self.frame)
            && let Some(Some(around)) = self.compiled.get(func as usize)
        {
            name.clone_from(&around.name);
            (function, frame) = (around.clone(), from);
        }
        let mut next = function.ret;
        while fault.chain.len() < MAX_CHAIN {
            let Some(reg) = next else { break };
            if frame == NONE {
                break;
            }
            let word = self.heap.words[self.heap.base(frame) + reg as usize];
            // What leads to an iteration or a lane is what leads to its launch.
            let mut closure = Closure(word);
            for (i, group) in self.groups.iter().enumerate().rev() {
                if closure.0 == Closure::numbered(LANE_END, i + 1).0 {
                    closure = group.next;
                }
            }
            if closure.entry() == RELEASE && self.heap.is_alive(closure) {
                // A call in tail position got an address of the caller's variables, so the caller's frame is still there.
                let at = self.heap.records[frame as usize].called_at.saturating_sub(1);
                let caller = closure.frame();
                let Some(&Record { kind: Kind::Frame(func), .. }) = self.heap.records.get(caller as usize) else {
                    break;
                };
                let Some(Some(of)) = self.compiled.get(func as usize) else { break };
                let span = self.code.spans.get(at as usize).copied().unwrap_or(Span::NONE);
                fault.chain.push((std::mem::replace(&mut name, of.name.clone()), span));
                (next, frame) = (Some(of.release), caller);
                continue;
            }
            let Some(&Entry::Block { func, pc, .. }) = self.l.entries.get(closure.entry() as usize) else { break };
            if !self.heap.is_alive(closure) {
                break;
            }
            let Some(Some(caller)) = self.compiled.get(func as usize) else { break };
            // A continuation's own place is after the call. The call is the instruction that made it.
            let start = caller.start as usize;
            let makes = |i: &Inst| match *i {
                Inst::MakeCont { entry, .. } | Inst::Call { then: entry, .. } => entry == closure.entry(),
                _ => false,
            };
            let made = self.code.insts[start..].iter().position(makes);
            let span = self.code.spans.get(made.map_or(pc as usize, |i| start + i));
            // The function that is called there may have left its frame to the one that faulted, by a call in tail position.
            if let Some(Inst::Call { func, .. }) = made.map(|i| &self.code.insts[start + i])
                && let Some(Some(called)) = self.compiled.get(*func as usize)
            {
                name.clone_from(&called.name);
            }
            fault.chain.push((name, span.copied().unwrap_or(Span::NONE)));
            name = caller.name.clone();
            (next, frame) = (caller.ret, closure.frame());
        }
        fault
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > self.max_steps {
            return Err(budget_spent::steps(self.max_steps).into());
        }
        Ok(())
    }

    /// Runs until the return continuation of the first function is called. Returns its arguments.
    fn execute(&mut self) -> Result<Vec<u64>> {
        loop {
            self.simple()?;
            let inst = self.code.insts[self.pc];
            self.pc += 1;
            match inst {
                Inst::BeginRestricted { d } => {
                    let call = self.restricted.begin();
                    self.set(d, call);
                }
                Inst::WorkItem { d, what, axis } => {
                    let number = self.work_item(self.get(what), self.get(axis))?;
                    self.set(d, number);
                }
                Inst::Restricted { call, a, access } => {
                    let (call, address) = (self.get(call), self.get(a));
                    if !self.restricted.access(call, address, access) {
                        return Err(broken_promise::shared().into());
                    }
                }
                Inst::Aligned { d, a, n } => {
                    let (at, n) = (self.get(a), self.get(n));
                    if n == 0 || at % n != 0 {
                        return Err(broken_promise::unaligned(at, n).into());
                    }
                    self.set(d, at);
                }
                Inst::Math { op, prim, d, a, b, c } => {
                    if self.get(a) == POISON {
                        return Err(eval::uninitialized());
                    }
                    let args = [self.get(a), self.get(b), self.get(c)];
                    let r = if op.is_approximate() {
                        eval::approximate(op, prim, args[0])?
                    } else {
                        eval::math(op, prim, args)
                    };
                    self.set(d, r);
                }
                Inst::Bits { prim, d, a, n } => {
                    let mut bits = 0;
                    for i in 0..n {
                        match self.get(a + i) {
                            POISON => return Err(eval::uninitialized()),
                            lane if i < 64 => bits |= lane << i,
                            _ => {}
                        }
                    }
                    self.set(d, prim.normalize(bits));
                }
                Inst::Lane { d, a, idx, n } => {
                    let at = self.lane(idx, n)?;
                    let word = self.get(a + at);
                    if word == POISON {
                        return Err(eval::uninitialized());
                    }
                    self.set(d, word);
                }
                Inst::SetLane { d, idx, s, n } => {
                    let at = self.lane(idx, n)?;
                    self.set(d + at, self.get(s));
                }
                Inst::PickLane { d, a, b, idx, n } => {
                    let at = self.lane(idx, 2 * n)?;
                    self.set(d, if at < n { self.get(a + at) } else { self.get(b + at - n) });
                }
                Inst::CopyMany { d, s, n } => self.copy_many(d, s, n),
                Inst::Select { d, cond, a, b, n } => self.copy_many(d, if self.get(cond) != 0 { a } else { b }, n),
                Inst::LoadMany { d, a, layout } => {
                    self.steps += self.code.layouts[layout as usize].leaves.len() as u64 / u64::from(WORDS_OF_STEP);
                    self.load_many(d, self.get(a) as usize, layout)?;
                }
                Inst::Store { a, s, leaf } => {
                    let word = self.get(s);
                    self.store(self.get(a) as usize, leaf, word)?;
                }
                Inst::StoreAt { a, b, size, s, leaf } => {
                    let at = self.get(a).wrapping_add(self.get(b).wrapping_mul(u64::from(size)));
                    self.store(at as usize, leaf, self.get(s))?;
                }
                Inst::StoreMany { a, s, layout } => {
                    self.steps += self.code.layouts[layout as usize].leaves.len() as u64 / u64::from(WORDS_OF_STEP);
                    self.store_many(self.get(a) as usize, s, layout)?;
                }
                Inst::Atomic { d, a, op, s, leaf } => {
                    let (address, op, new) = (self.get(a) as usize, self.get(op), self.get(s));
                    let old = self.l.load(address, leaf)?;
                    self.l.note(address, leaf, Some(new), self.pc)?;
                    if new == POISON {
                        return Err(eval::uninitialized());
                    }
                    let new = eval::atomic(op, leaf, old, new)?;
                    self.l.store(address, leaf, new)?;
                    self.set(d, old);
                }
                Inst::Cmpxchg { d, a, expected, s, leaf } => {
                    let (address, expected, new) = (self.get(a) as usize, self.get(expected), self.get(s));
                    let old = self.l.load(address, leaf)?;
                    self.l.note(address, leaf, Some(new).filter(|_| old == expected), self.pc)?;
                    if expected == POISON || new == POISON {
                        return Err(eval::uninitialized());
                    }
                    if old == expected {
                        self.l.store(address, leaf, new)?;
                    }
                    self.set(d, old);
                    self.set(d + 1, (old == expected) as u64);
                }
                Inst::Reinterpret { d, a, from, to } => {
                    let size = self.code.layouts[from as usize].size.max(1);
                    let at = self.l.allocate(size, 16)?;
                    self.l.memory.write_bytes(at, &vec![0; size]).map_err(memory_fault)?;
                    self.store_many(at, a, from)?;
                    self.load_many(d, at, to)?;
                    self.l.memory.free(at).map_err(memory_fault)?;
                }
                Inst::Slot { d, layout, outlives } => {
                    let layout = self.code.layouts[layout as usize].clone();
                    let size = layout.size.max(1);
                    let old = self.get(d) as usize;
                    if old != 0 && !outlives {
                        // The variable is uninitialized each time; its address may stay.
                        self.l.memory.check_write(old, size).map_err(memory_fault)?;
                        self.l.memory.set_initialized(old, size, false);
                        self.l.races.forget(old, size);
                    } else {
                        let at = self.l.allocate(size, layout.align)?;
                        self.set(d, at as u64);
                        if outlives {
                            self.outliving.push((at as u64, size as u64));
                        }
                    }
                }
                Inst::Alloc { d, n, layout } => {
                    let size = self.code.layouts[layout as usize].size as i64;
                    let at = self.allocate(self.get(n) as i64, size)?;
                    self.set(d, at);
                }
                Inst::MakeClosure { d, entry, list } => self.make_closure(d, entry, list)?,
                Inst::Call { func, list, leave, then } => {
                    self.step()?;
                    self.call(func, list, leave, then)?;
                }
                Inst::Again { to } => {
                    self.step()?;
                    self.again();
                    self.pc = to as usize;
                }
                Inst::CallValue { callee, list, leave } => {
                    self.step()?;
                    let closure = Closure(self.get(callee));
                    if leave == Leave::Keep {
                        self.kept.entry(closure.frame()).or_default().push(self.frame);
                    }
                    self.gather(list);
                    let n = self.words.len();
                    self.leave(leave, n);
                    if let Some(result) = self.call_closure(closure)? {
                        return Ok(result);
                    }
                }
                Inst::CallForeign { foreign, list, leave } => {
                    self.gather(list);
                    let n = self.words.len();
                    self.step()?;
                    self.leave(leave, n);
                    let done = self.call_foreign(foreign)?;
                    if let Some(result) = self.call_closure(done)? {
                        return Ok(result);
                    }
                }
                Inst::Synchronize { a, order, reads, writes } => {
                    let address = a.map(|a| self.get(a) as usize);
                    self.l.races.synchronize(address, order.into(), reads, writes);
                }
                Inst::EndAtomic => self.l.races.end_atomic(),
                Inst::Lanes { builtin, list, leave } => {
                    self.step()?;
                    self.gather(list);
                    let n = self.words.len();
                    self.leave(leave, n);
                    let begun = match builtin {
                        Builtin::Launch => self.begin_kernel()?,
                        Builtin::Parallel => self.begin_parallel()?,
                        _ => self.begin_lanes()?,
                    };
                    if let Some(result) = self.call_closure(begun)? {
                        return Ok(result);
                    }
                }
                Inst::Fail { text } => {
                    let text = self.code.texts[text as usize].clone();
                    return Err(bug(text));
                }
                Inst::Refuse { text, by_all } => {
                    let text = self.code.texts[text as usize].clone();
                    if !by_all {
                        return Err(limitation(text));
                    }
                    return Err(refused(&text));
                }
                other => return Err(bug(format!("{other:?}"))),
            }
        }
    }

    fn copy_many(&mut self, d: Reg, s: Reg, n: u32) {
        self.steps += u64::from(n / WORDS_OF_STEP);
        let base = self.base;
        self.heap.words.copy_within(base + s as usize..base + (s + n) as usize, base + d as usize);
    }

    /// The index of a lane, below `n`.
    fn lane(&self, idx: Reg, n: u32) -> Result<u32> {
        let idx = self.get(idx);
        if idx == POISON {
            return Err(eval::uninitialized());
        }
        if idx >= u64::from(n) {
            return Err(invalid_access::lane(idx as i64, n).into());
        }
        Ok(idx as u32)
    }

    #[inline]
    fn store(&mut self, address: usize, leaf: Leaf, word: u64) -> Result<()> {
        self.l.note(address, leaf, Some(word), self.pc)?;
        if leaf == Leaf::Cn {
            let old = self.stored.insert(address, Closure(word));
            self.copied.extend(old.filter(|_| self.may_be_copied).map(Closure::frame));
        }
        if leaf == Leaf::Ptr && self.l.memory.owns(word as usize) {
            self.stored_addresses.insert(address, word);
        }
        if word == POISON {
            self.l.memory.check_write(address, leaf.size()).map_err(memory_fault)?;
            self.l.memory.set_initialized(address, leaf.size(), false);
            return Ok(());
        }
        self.l.store(address, leaf, word)
    }

    fn load_many(&mut self, d: Reg, address: usize, layout: u32) -> Result<()> {
        let layout = self.code.layouts[layout as usize].clone();
        self.l.memory.check_write(address, 0).map_err(memory_fault)?;
        for (i, &(leaf, offset)) in layout.leaves.iter().enumerate() {
            let at = address.wrapping_add(offset);
            self.l.note(at, leaf, None, self.pc)?;
            // Parts may be uninitialized as long as they are not used as scalars.
            let word = match self.l.load(at, leaf) {
                Err(fault) if fault.code() == "uninitialized-read" => POISON,
                other => other?,
            };
            self.set(d + i as u32, word);
        }
        Ok(())
    }

    fn store_many(&mut self, address: usize, s: Reg, layout: u32) -> Result<()> {
        let layout = self.code.layouts[layout as usize].clone();
        for (i, &(leaf, offset)) in layout.leaves.iter().enumerate() {
            let word = self.get(s + i as u32);
            self.store(address.wrapping_add(offset), leaf, word)?;
        }
        Ok(())
    }

    fn allocate(&mut self, n: i64, size: i64) -> Result<u64> {
        let bytes = n.checked_mul(size).and_then(|b| usize::try_from(b).ok());
        let Some(bytes) = bytes else {
            return Err(invalid_access::allocation(n, size).into());
        };
        Ok(self.l.give(bytes, 64)? as u64)
    }

    fn make_closure(&mut self, d: Reg, entry: u32, list: u32) -> Result<()> {
        self.gather(list);
        let frame = match self.l.entries.get(entry as usize) {
            Some(&Entry::Func(func)) if !self.words.is_empty() => {
                // The record's layout must be known before it can be marked.
                self.compiled(func)?;
                let (kind, n) = (Kind::Captured(func), self.words.len());
                let class = self.calls[func as usize].captured;
                let frame = match self.heap.reuse(kind, class) {
                    Some(frame) => frame,
                    None => self.grow(kind, class)?,
                };
                let base = self.heap.base(frame);
                self.heap.words[base..base + n].copy_from_slice(&self.words);
                frame
            }
            _ => NONE,
        };
        let closure = self.heap.closure(entry, frame);
        self.set(d, closure.0);
        Ok(())
    }

    /// Copies the words of a list to `self.words` as arguments.
    #[inline]
    fn gather(&mut self, list: u32) {
        self.words.clear();
        let list = self.code.list(list);
        let words = &self.heap.words;
        let base = self.base;
        self.words.extend(list.iter().map(|&r| words[base + r as usize]));
    }

    /// Treats the current frame as `leave` says. The first `n` words of the arguments are parameters.
    #[inline]
    fn leave(&mut self, leave: Leave, n: usize) {
        match leave {
            Leave::Stay | Leave::Forget | Leave::Keep => {}
            Leave::Free | Leave::FreeSlots => {
                if !self.kept.is_empty() {
                    // The next frame is not known yet.
                    self.hand_on(NONE, self.words.clone());
                }
                self.free_frame(self.frame);
            }
            Leave::Release => {
                if let Some(last) = n.checked_sub(1) {
                    let release = self.heap.closure(RELEASE, self.frame);
                    let to = std::mem::replace(&mut self.words[last], release.0);
                    self.set_release(to);
                }
            }
        }
    }

    /// Goes on at a closure with the arguments in `self.words`. Returns them as results if it is the end of the run.
    fn call_closure(&mut self, mut closure: Closure) -> Result<Option<Vec<u64>>> {
        loop {
            let Some(&entry) = self.l.entries.get(closure.entry() as usize) else {
                return Err(undefined_call::no_function().into());
            };
            if closure.0 == POISON {
                return Err(uninitialized_read::error("call of an uninitialized function").into());
            }
            if !self.heap.is_alive(closure) {
                return Err(dead_continuation::error().into());
            }
            match entry {
                Entry::Halt if self.words.contains(&POISON) && !self.options.confined => {
                    return Err(eval::uninitialized());
                }
                Entry::Halt => {
                    self.check_no_lanes()?;
                    return Ok(Some(std::mem::take(&mut self.words)));
                }
                Entry::Release => {
                    let frame = closure.frame();
                    let Kind::Frame(func) = self.heap.records[frame as usize].kind else { continue };
                    let function = self.compiled(func)?;
                    closure = Closure(self.heap.words[self.heap.base(frame) + function.release as usize]);
                    if !function.may_hold_own {
                        self.free_frame(frame);
                    }
                }
                Entry::Func(func) => {
                    let frame = closure.frame();
                    if frame != NONE {
                        let n = self.compiled(func)?.n_captured as usize;
                        let base = self.heap.base(frame);
                        let (words, heap) = (&mut self.words, &self.heap);
                        words.extend_from_slice(&heap.words[base..base + n]);
                    }
                    self.enter(func)?;
                    if let Some(kept) = self.kept.remove(&NONE) {
                        self.kept.entry(self.frame).or_default().extend(kept);
                    }
                    return Ok(None);
                }
                Entry::Block { func, pc, params } => {
                    if !self.kept.is_empty() {
                        self.free_kept(NONE);
                    }
                    let frame = closure.frame();
                    let base = self.heap.base(frame);
                    let at = base + params as usize;
                    let n = self.words.len();
                    self.heap.words[at..at + n].copy_from_slice(&self.words);
                    self.go(func, frame, base, pc);
                    return Ok(None);
                }
                Entry::Foreign(foreign) => closure = self.call_foreign(foreign)?,
                Entry::LaneEnd => closure = self.end_lane(closure)?,
            }
        }
    }
}

/// The fault for something that no engine supports yet.
fn refused(text: &str) -> Box<Fault> {
    let hint = "do without it, or write it as a function of the program";
    diagnostics::limitation::error(Span::NONE, text, hint).into()
}
