//! Finds iterations of `parallel`, and lanes of one vector, that access one byte, one of them writing, with nothing between that
//! orders them.
//!
//! The interpreter runs iterations one after another. For each byte that they access, the last writer and the last reader
//! are kept. An access is ordered after an earlier one if
//!
//! - both are of one iteration, or the earlier one's launch has ended; nested launches are part of the iteration around them,
//! - or its iteration has read, by an atomic operation that acquires, what the other's has written by one that releases,
//! - or both are of lanes, and the later one's lane has been at the earlier one's instruction before, as often as the earlier
//!   one: in vector code, too, all lanes come there before any comes here.
//!
//! The second rule takes whole iterations for ordered, so that some races are missed, and none is reported where there is none.
//! By the third one, `a(i) = a(i + 1)` is no race in lanes, and `a(i) = a(i - 1)` is one. The lanes of a vector are a launch of
//! their own from one meeting to the next.
//!
//! Two atomic operations never race. A write that leaves the memory as it is only counts as a read for writes that follow: flags that
//! several iterations set are harmless. Not seen are accesses of foreign functions, those of threads that `spawn` starts, and work items.

use rustc_hash::FxHashMap;

/// An iteration or a lane: the number of its launch, and its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    launch: u32,
    iteration: i64,
}

/// Code outside of all launches.
const OUTSIDE: Task = Task { launch: 0, iteration: 0 };
/// Stands for several iterations of a launch.
const SEVERAL: i64 = i64::MIN;

/// An access: who, where in the code, and whether by an atomic operation.
#[derive(Clone, Copy, Debug)]
struct Access {
    task: Task,
    pc: u32,
    /// How often its lane had been at `pc`, this time included.
    visit: u32,
    is_atomic: bool,
}

const NOBODY: Access = Access { task: OUTSIDE, pc: 0, visit: 0, is_atomic: false };

/// A launch that runs.
#[derive(Debug)]
struct Running {
    task: Task,
    in_lanes: bool,
    /// In lanes, for each place of the code that accesses memory: how often the current lane has been there.
    passed: FxHashMap<u32, u32>,
}

#[derive(Clone, Copy)]
struct Byte {
    write: Access,
    read: Access,
}

/// Bytes are kept in blocks of this size.
const BLOCK: usize = 64;
/// Limit on the blocks. When it is exceeded, all are forgotten, and races may go unnoticed.
const MAX_BLOCKS: usize = 1 << 17;
/// Limit on the launches that are remembered; all memory is forgotten when there are more.
const MAX_LAUNCHES: usize = 1 << 20;
/// Limit on how deep the search for what an atomic operation has released goes.
const MAX_DEPTH: usize = 8;

/// Two accesses that race; the later one is the current one.
#[derive(Debug)]
pub struct Race {
    /// The earlier one's place in the code.
    pub pc: u32,
    pub was_write: bool,
    /// They are lanes of one vector.
    pub in_lanes: bool,
    /// The numbers of the iterations: the earlier one's, if there is only one, and the current one's.
    pub iterations: (Option<i64>, i64),
}

/// Releases of iterations by atomic operations at one address.
#[derive(Default)]
struct Released {
    /// By iteration, how many had released before it.
    tasks: FxHashMap<Task, u32>,
    /// What these iterations had acquired: an address, and how much of what was released there.
    before: Vec<(usize, u32)>,
}

/// All launches that run, and what they access.
#[derive(Default)]
pub struct Races {
    /// The launches that run, the innermost last.
    running: Vec<Running>,
    /// By launch, the iteration around it.
    around: FxHashMap<u32, Task>,
    n_launches: u32,
    blocks: FxHashMap<usize, Box<[Byte; BLOCK]>>,
    released: FxHashMap<usize, Released>,
    acquired: FxHashMap<Task, Vec<(usize, u32)>>,
    /// A fence makes relaxed operations around it acquire and release.
    has_fence: bool,
    /// The next access is part of an atomic operation.
    is_atomic: bool,
}

impl Races {
    /// Whether a launch runs, so that accesses matter.
    #[inline]
    pub fn is_active(&self) -> bool {
        !self.running.is_empty()
    }

    pub fn begin_launch(&mut self, in_lanes: bool) {
        if self.around.len() >= MAX_LAUNCHES {
            self.blocks.clear();
            let running = &self.running;
            self.around.retain(|launch, _| running.iter().any(|r| r.task.launch == *launch));
        }
        self.n_launches += 1;
        self.around.insert(self.n_launches, self.current());
        let task = Task { launch: self.n_launches, iteration: SEVERAL };
        self.running.push(Running { task, in_lanes, passed: FxHashMap::default() });
    }

    /// Goes on with an iteration of the innermost launch, or with a lane.
    pub fn begin_iteration(&mut self, iteration: i64) {
        if let Some(running) = self.running.last_mut() {
            running.task.iteration = iteration;
            running.passed.clear();
        }
    }

    pub fn end_launch(&mut self) {
        self.running.pop();
        if self.running.is_empty() {
            *self = Races { has_fence: self.has_fence, ..Races::default() };
        }
    }

    /// All lanes have met, or the next vector begins: what they did before is before what they do now.
    pub fn meet(&mut self) {
        self.end_launch();
        self.begin_launch(true);
    }

    fn current(&self) -> Task {
        self.running.last().map_or(OUTSIDE, |r| r.task)
    }

    /// The iteration of a thread that runs. Lanes do not wait for each other by atomic operations.
    fn current_thread(&self) -> Task {
        self.running.iter().rev().find(|r| !r.in_lanes).map_or(OUTSIDE, |r| r.task)
    }

    /// Notes that memory has been allocated: it is not what was there before.
    pub fn forget(&mut self, address: usize, size: usize) {
        let end = address.saturating_add(size);
        if !self.is_active() || self.blocks.is_empty() {
            return;
        }
        if size / BLOCK > self.blocks.len() {
            self.blocks.retain(|at, _| *at < address / BLOCK || *at > end / BLOCK);
        }
        for block in address / BLOCK..end.div_ceil(BLOCK).min(address / BLOCK + self.blocks.len() + 2) {
            let Some(bytes) = self.blocks.get_mut(&block) else { continue };
            for (i, byte) in bytes.iter_mut().enumerate() {
                if (address..end).contains(&(block * BLOCK + i)) {
                    *byte = Byte { write: NOBODY, read: NOBODY };
                }
            }
        }
    }

    /// Begins an atomic operation, whose accesses come next. `order` is LLVM's number; `address` is `None` for a fence.
    pub fn synchronize(&mut self, address: Option<usize>, order: u64, reads: bool, writes: bool) {
        let Some(address) = address else {
            self.has_fence = true;
            return;
        };
        if !self.is_active() {
            return;
        }
        self.is_atomic = true;
        let task = self.current_thread();
        let acquires = reads && (self.has_fence || matches!(order, 4 | 6 | 7));
        let releases = writes && (self.has_fence || matches!(order, 5..=7));
        if acquires && let Some(released) = self.released.get(&address) {
            let acquired = self.acquired.entry(task).or_default();
            let n = released.tasks.len() as u32;
            match acquired.iter_mut().find(|(at, _)| *at == address) {
                Some((_, known)) => *known = n,
                None => acquired.push((address, n)),
            }
        }
        if releases {
            let before = self.acquired.get(&task).cloned().unwrap_or_default();
            let released = self.released.entry(address).or_default();
            let n = released.tasks.len() as u32;
            released.tasks.entry(task).or_insert(n);
            for (at, n) in before.into_iter().filter(|(at, _)| *at != address) {
                match released.before.iter_mut().find(|(known, _)| *known == at) {
                    Some((_, known)) => *known = n.max(*known),
                    None => released.before.push((at, n)),
                }
            }
        }
    }

    /// Ends an atomic operation.
    pub fn end_atomic(&mut self) {
        self.is_atomic = false;
    }

    /// Notes an access by the current iteration, at that place of the code, and returns what it races with. `is_same` tells
    /// whether a write leaves the memory as it is.
    pub fn access(
        &mut self,
        (address, size): (usize, usize),
        writes: bool,
        pc: usize,
        is_same: impl FnOnce() -> bool,
    ) -> Option<Race> {
        let pc = pc as u32;
        let is_silent = writes && is_same();
        let writes = writes && !is_silent;
        let visit = self.running.iter().rev().find(|r| r.in_lanes).map_or(0, |r| r.visits(pc) + 1);
        let new = Access { task: self.current(), pc, visit, is_atomic: self.is_atomic };
        let mut race = None;
        for at in address..address.saturating_add(size) {
            if self.blocks.len() >= MAX_BLOCKS && !self.blocks.contains_key(&(at / BLOCK)) {
                self.blocks.clear();
            }
            let block = self.blocks.entry(at / BLOCK);
            let byte = block.or_insert_with(|| Box::new([Byte { write: NOBODY, read: NOBODY }; BLOCK]))[at % BLOCK];
            let meets = |old: Access| if old.is_atomic && new.is_atomic { None } else { self.unordered(old) };
            let read = self.unordered(byte.read);
            if !is_silent && let Some(with) = meets(byte.write) {
                race = Some((byte.write, true, with));
                break;
            }
            if writes && let Some(with) = meets(byte.read) {
                race = Some((byte.read, false, with));
                break;
            }
            // A lane that reads where another has read, after it or by the same instruction.
            let lane = self.running.last().filter(|r| r.in_lanes);
            let is_later = lane.is_some_and(|r| r.visits(byte.read.pc) >= byte.read.visit)
                || (byte.read.pc, byte.read.visit) == (pc, visit);
            let is_of_others = byte.read.task.launch == new.task.launch && byte.read.task != new.task;
            let is_read_by_others = read.is_some() || lane.is_some() && is_of_others;
            let Some(byte) = self.blocks.get_mut(&(at / BLOCK)).map(|block| &mut block[at % BLOCK]) else { continue };
            match (writes, is_read_by_others) {
                (true, _) => *byte = Byte { write: new, read: NOBODY },
                (false, false) => byte.read = new,
                (false, true) if byte.read.task.launch == new.task.launch => {
                    if is_later {
                        (byte.read.pc, byte.read.visit) = (new.pc, new.visit);
                    }
                    byte.read.task.iteration = SEVERAL;
                    byte.read.is_atomic &= new.is_atomic;
                }
                (false, true) => {}
            }
        }
        for running in self.running.iter_mut().filter(|r| r.in_lanes) {
            *running.passed.entry(pc).or_insert(0) += 1;
        }
        let (old, was_write, (with, in_lanes)) = race?;
        let earlier = Some(with.iteration).filter(|&i| i != SEVERAL);
        let iteration = self.running.iter().find(|r| r.task.launch == with.launch).map_or(0, |r| r.task.iteration);
        Some(Race { pc: old.pc, was_write, in_lanes, iterations: (earlier, iteration) })
    }

    /// The iteration of a launch that runs to which an earlier access belongs, and whether it is a lane; `None` if all that it
    /// has done so far is before what the current one does.
    fn unordered(&self, old: Access) -> Option<(Task, bool)> {
        let mut task = old.task;
        // A launch that has ended is part of the iteration around it.
        while task.launch != 0 {
            let Some(running) = self.running.iter().find(|r| r.task.launch == task.launch) else {
                task = self.around.get(&task.launch).copied().unwrap_or(OUTSIDE);
                continue;
            };
            if running.in_lanes {
                let visit = if task.launch == old.task.launch { old.visit } else { 1 };
                let is_ordered = running.task == task || running.visits(old.pc) >= visit;
                return (!is_ordered).then_some((task, true));
            }
            let acquired = |r: &Running| self.acquired.get(&r.task).into_iter().flatten();
            let is_ordered =
                running.task == task || self.running.iter().flat_map(acquired).any(|&(at, n)| self.has(at, n, task, 0));
            return (!is_ordered).then_some((task, false));
        }
        None
    }

    /// Whether a task is among the first `n` that released at an address, or among what these had acquired.
    fn has(&self, address: usize, n: u32, task: Task, depth: usize) -> bool {
        let Some(released) = self.released.get(&address) else { return false };
        released.tasks.get(&task).is_some_and(|&at| at < n)
            || depth < MAX_DEPTH && released.before.iter().any(|&(at, n)| self.has(at, n, task, depth + 1))
    }
}

impl Running {
    /// How often the current lane has been at a place of the code.
    fn visits(&self, pc: u32) -> u32 {
        self.passed.get(&pc).copied().unwrap_or(0)
    }
}
