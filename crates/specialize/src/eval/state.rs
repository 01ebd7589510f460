//! Closures and the code under evaluation, as data: stubs and their table, requests, blocks, modes. Separate from what decides
//! about them; nothing here needs more of the evaluator than it is given.

use crate::memory::Memory;
use hashbrown::HashTable;
use nyala_base::SideTable;
use nyala_base::locality::spread;
use nyala_ir::{Cont, Node, Val, World};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

pub(super) type StubId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not built; may have been requested.
    New,
    /// Built in full generality: any residual code may use it.
    Built,
    /// Inlined, or built for just the requests there were. Whoever asks again gets a fresh one ([`Stub::alias`]).
    Consumed,
}

/// A continuation of the source with what it captures and the parameters it is specialized in.
pub struct Stub {
    pub(super) source: Cont,
    /// Parameters specialized, a bit each.
    pub(super) mask: u64,
    /// Values of the source's free values, then of the specialized parameters.
    pub(super) vals: Rc<[Val]>,
    /// The residual continuation.
    pub(super) cont: Cont,
    pub(super) state: State,
    /// Residual code uses it as a value.
    pub(super) escaped: bool,
    pub(super) queued: bool,
    pub(super) requests: Vec<Request>,
    /// What its first request came from.
    pub(super) past: Past,
    /// The mode to evaluate it in wherever it is called.
    pub(super) resume: Option<Mode>,
    /// When it was made, in reductions; by the code that a call by `@` runs, made last.
    pub(super) made: u64,
    /// Stands in for it once it is consumed.
    pub(super) alias: Option<StubId>,
    /// If it was built for requests that know something of memory: what, and the block.
    pub(super) assumed: Option<Box<(Memory, Cont)>>,
    pub(super) rank: (u32, u32),
    /// A call that has a record may leave by it: it is a continuation among the values that the call was given.
    pub(super) is_exit: bool,
    /// What it captures was searched for such continuations.
    pub(super) has_exits_marked: bool,
    /// Records that were there when it was made first.
    pub(super) n_records: u32,
    /// The record of its block, once that is begun.
    pub(super) record: Option<u32>,
    /// The unit it is evaluated in.
    pub(super) unit: Cont,
    /// It may capture the address of an object.
    pub(super) holds_address: bool,
    /// Inlined where its only call was.
    pub(super) was_called: bool,
    /// Parameters that drift were left out.
    pub(super) is_general: bool,
}

/// A place of residual code that goes on at a stub.
pub(super) struct Request {
    pub block: Cont,
    /// Which of the bodies that the block had so far.
    pub version: u32,
    pub kind: RequestKind,
    pub memory: Memory,
}

pub(super) enum RequestKind {
    /// The block ends with a call of it; `args` has the current `mem` and the remaining arguments.
    Jump { args: Vec<Val> },
    /// The block's body has it among its arguments.
    Arg,
}

/// The residual block under construction.
pub(super) struct Site {
    pub block: Cont,
    /// From one residual terminator to the next.
    pub segment: u32,
    pub past: Past,
    pub memory: Memory,
}

/// What happened on the way to some code.
#[derive(Clone, Copy)]
pub(super) struct Past {
    pub records: Option<u32>,
    /// What of these has returned.
    pub returned: Option<u32>,
    pub entered: Option<u32>,
    pub mode: Mode,
}

pub(super) const NO_PAST: Past = Past { records: None, returned: None, entered: None, mode: Mode::Filters };

/// How calls are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// As their filters say.
    Filters,
    /// Within the call by `@` with that index: all known callees are unfolded.
    Run(u32),
    /// The same, but behind a call that could not be decided, up to its post-dominator, if that is code of which there
    /// is no closure yet: as filters say.
    Skip(u32, Option<Cont>),
}

/// A call by `@`.
pub(super) struct RunCall {
    /// Continuations made before are outside, and end it.
    pub start: u64,
    /// The mode there.
    pub outer: Mode,
}

/// What to evaluate next: a continuation of the source, its free values, its arguments.
pub(super) struct Entry {
    pub cont: Cont,
    pub free: Rc<[Val]>,
    pub args: Vec<Val>,
}

// All stubs.

/// The first stub of each source, mask and values, with half of their hash.
type Memo = HashTable<(u32, u32)>;

fn hash_of(source: Cont, mask: u64, vals: &[Val]) -> u32 {
    let mut hasher = FxHasher::default();
    (source, mask, vals).hash(&mut hasher);
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

/// Stand-ins for what calls return to, by the calling continuation and what they stand for, and what each stands for.
#[derive(Default)]
pub(super) struct Tickets {
    pub by: FxHashMap<(Cont, StubId), StubId>,
    pub of: FxHashMap<StubId, (Cont, StubId)>,
}

/// All stubs, in the order in which they were made.
#[derive(Default)]
pub(super) struct Stubs {
    all: Vec<Stub>,
    /// By residual continuation.
    of: SideTable<Cont, Option<u32>>,
    memo: Memo,
    pub tickets: Tickets,
}

impl Index<StubId> for Stubs {
    type Output = Stub;
    #[inline]
    fn index(&self, s: StubId) -> &Stub {
        &self.all[s]
    }
}

impl IndexMut<StubId> for Stubs {
    #[inline]
    fn index_mut(&mut self, s: StubId) -> &mut Stub {
        &mut self.all[s]
    }
}

impl Stubs {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stub> {
        self.all.iter()
    }

    pub fn add(&mut self, stub: Stub) -> StubId {
        let s = self.all.len();
        self.of[stub.cont] = Some(s as u32);
        self.all.push(stub);
        s
    }

    /// The stub that a residual continuation was made for.
    #[inline]
    pub fn of_cont(&self, c: Cont) -> Option<StubId> {
        self.of[c].map(|s| s as usize)
    }

    #[inline]
    pub fn of_val(&self, dst: &World, v: Val) -> Option<StubId> {
        match dst.node(v) {
            Node::Cont(c) => self.of_cont(c),
            _ => None,
        }
    }

    /// The first stub that was made of these.
    pub fn first(&self, source: Cont, mask: u64, vals: &[Val]) -> Option<StubId> {
        let half = hash_of(source, mask, vals);
        let is_it = |stub: &Stub| stub.source == source && stub.mask == mask && *stub.vals == *vals;
        let found = self.memo.find(spread(half), |&(s, h)| h == half && is_it(&self.all[s as usize]))?;
        Some(found.0 as usize)
    }

    /// From now on this is the first one of its source, mask and values.
    pub fn note_first(&mut self, s: StubId) {
        let Stub { source, mask, vals, .. } = &self.all[s];
        let half = hash_of(*source, *mask, vals);
        self.memo.insert_unique(spread(half), (s as u32, half), |&(_, h)| spread(h));
    }

    /// A stub, what stands in for it, what stands in for that.
    pub fn line(&self, s: StubId) -> impl Iterator<Item = StubId> {
        std::iter::successors(Some(s), |&s| self.all[s].alias)
    }

    /// The continuation that residual code must use where it means `c`.
    pub fn resolve(&self, c: Cont) -> Cont {
        self.of_cont(c).and_then(|s| self.line(s).last()).map_or(c, |s| self.all[s].cont)
    }
}

/// The residual graph, and what closures in it are made of.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub dst: &'a World,
    pub(super) stubs: &'a Stubs,
}

impl<'a> View<'a> {
    fn stub(self, v: Val) -> Option<&'a Stub> {
        Some(&self.stubs[self.stubs.of_val(self.dst, v)?])
    }

    /// The source continuation and captured values of a closure.
    pub fn captured(self, v: Val) -> Option<(Cont, &'a [Val])> {
        self.stub(v).map(|stub| (stub.source, &*stub.vals))
    }

    /// For a closure, how deep stubs are held in it.
    pub fn height(self, v: Val) -> Option<u32> {
        self.stub(v).map(|stub| stub.rank.1)
    }
}
