//! Closures and the code under evaluation, as data: stubs and their table, requests, blocks, modes. Separate from the
//! code that decides about them. Functions here use only their arguments, no other parts of the evaluator.

use super::budget::UnitId;
use crate::memory::Memory;
use hashbrown::HashTable;
use nyala_base::locality::spread;
use nyala_base::{CallId, SideTable, Span};
use nyala_ir::{Cont, Node, Val, World};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

pub(super) type StubId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not built yet; it may have been requested.
    New,
    /// Built in full generality: any residual code may use it.
    Built,
    /// Inlined, or built only for the requests made so far. A later request gets a fresh stub ([`Stub::alias`]).
    Consumed,
}

/// A continuation of the source, with the values it captures and those of the parameters it is specialized in.
pub struct Stub {
    pub(super) source: Cont,
    /// Bit mask of the specialized parameters.
    pub(super) mask: u64,
    /// The values of the source's free values, then those of the specialized parameters.
    pub(super) vals: Rc<[Val]>,
    /// The residual continuation.
    pub(super) cont: Cont,
    pub(super) state: State,
    /// Whether residual code uses it as a value.
    pub(super) escaped: bool,
    pub(super) queued: bool,
    pub(super) requests: Vec<Request>,
    /// The history of the path to its first request.
    pub(super) past: Past,
    /// The mode in which to evaluate it, wherever it is called from.
    pub(super) resume: Option<Mode>,
    /// The time when it was made, in reductions. For a stub made by code that a call by `@` runs, the last such time.
    pub(super) made: u64,
    /// The stub that stands in for it once it is consumed.
    pub(super) alias: Option<StubId>,
    /// If it was built for requests with known contents of memory: the contents it assumes, and its block.
    pub(super) assumed: Option<Box<(Memory, Cont)>>,
    pub(super) rank: (u32, u32),
    /// A recorded call may leave by it: it is a continuation among the values that the call was given.
    pub(super) is_exit: bool,
    /// Whether its captured values were searched for such continuations.
    pub(super) has_exits_marked: bool,
    /// The number of records when a stub with these values was first made.
    pub(super) n_records: u32,
    /// The record of its block, once evaluation of the block has begun.
    pub(super) record: Option<u32>,
    /// The unit it is evaluated in.
    pub(super) unit: UnitId,
    /// The unfolded call whose code made it.
    pub(super) call: CallId,
    /// Whether it may capture the address of an object.
    pub(super) holds_address: bool,
    /// Whether it was inlined at its only call.
    pub(super) was_called: bool,
    /// Drifting parameters were left out of the specialization.
    pub(super) is_general: bool,
}

/// A place in residual code where control continues at a stub.
pub(super) struct Request {
    pub block: Cont,
    /// The number of bodies that the block had at that time.
    pub version: u32,
    pub kind: RequestKind,
    pub memory: Memory,
    /// The call that this is, if the stub will be unfolded here.
    pub call: CallId,
}

pub(super) enum RequestKind {
    /// The block ends with a call of the stub. `args` has the current `mem` and the remaining arguments.
    Jump { args: Vec<Val> },
    /// The block's body has the stub among its arguments.
    Arg,
}

/// The residual block under construction.
pub(super) struct Site {
    pub block: Cont,
    /// The number of the segment, which reaches from one residual terminator to the next.
    pub segment: u32,
    pub past: Past,
    pub memory: Memory,
}

/// The history of the path to some code.
#[derive(Clone, Copy)]
pub(super) struct Past {
    pub records: Option<u32>,
    /// The list of those records whose calls have returned.
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
    /// Within a call by `@`, but after a call that could not be decided: as filters say, up to the post-dominator, if
    /// that is code of which no closure exists yet.
    Skip(u32, Option<Cont>),
}

/// A call by `@`.
pub(super) struct RunCall {
    /// Continuations made before that time are outside, and end the run.
    pub start: u64,
    /// The mode in those continuations.
    pub outer: Mode,
}

/// The continuation to evaluate next, with its free values and its arguments.
pub(super) struct Entry {
    pub cont: Cont,
    /// The unfolded call that `cont` is code of.
    pub call: CallId,
    pub free: Rc<[Val]>,
    pub args: Vec<Val>,
}

// All stubs.

/// The first stub of each source, mask and values, with half of their hash.
type Memo = HashTable<(u32, u32)>;

fn hash_of(source: Cont, mask: u64, vals: &[Val], call: CallId) -> u32 {
    let mut hasher = FxHasher::default();
    (source, mask, vals).hash(&mut hasher);
    if call != Span::NO_CALL {
        call.hash(&mut hasher);
    }
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

/// Tickets: stand-ins for return continuations, by the calling continuation and the stub that a ticket stands for; and
/// the inverse map.
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

    /// The first stub of this source, mask and values; of those of a call, if one is given.
    pub fn first(&self, source: Cont, mask: u64, vals: &[Val], call: CallId) -> Option<StubId> {
        let half = hash_of(source, mask, vals, call);
        let is_it = |stub: &Stub| {
            let is_of_call = call == Span::NO_CALL || stub.call == call;
            stub.source == source && stub.mask == mask && is_of_call && *stub.vals == *vals
        };
        let found = self.memo.find(spread(half), |&(s, h)| h == half && is_it(&self.all[s as usize]))?;
        Some(found.0 as usize)
    }

    /// Registers `s` as the first stub of its source, mask and values, and of the call, if one is given.
    pub fn note_first(&mut self, s: StubId, call: CallId) {
        let Stub { source, mask, vals, .. } = &self.all[s];
        let half = hash_of(*source, *mask, vals, call);
        self.memo.insert_unique(spread(half), (s as u32, half), |&(_, h)| spread(h));
    }

    /// A stub, the stub that stands in for it, the one that stands in for that, and so on.
    pub fn line(&self, s: StubId) -> impl Iterator<Item = StubId> {
        std::iter::successors(Some(s), |&s| self.all[s].alias)
    }

    /// The residual continuation to use in place of `c`, which may have been consumed.
    pub fn resolve(&self, c: Cont) -> Cont {
        self.of_cont(c).and_then(|s| self.line(s).last()).map_or(c, |s| self.all[s].cont)
    }
}

/// The residual graph, and the sources of the closures in it.
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

    /// For a closure, its height: how deeply stubs are nested in it.
    pub fn height(self, v: Val) -> Option<u32> {
        self.stub(v).map(|stub| stub.rank.1)
    }
}
