//! Parallel loops and threads (`001` 5.1; `docs/design/targets.md`, Launches on the CPU).
//!
//! A loop is divided into one *lane* per thread, each a contiguous part, so that successive loops over the same data
//! find it in the same caches. A thread takes ranges from the front of its lane, each a fraction of the rest; when the
//! lane is empty it takes the back half of another lane's rest. So a body gets few, long ranges, and uneven work is
//! balanced. Lanes of nested loops are distributed by `rayon`, whose workers find other work while they wait. An
//! outermost loop has a *team*: workers of the same pool that poll for the next such loop for a while before they
//! leave, because waking a thread takes longer than many loops. See Note [The team].

use crate::guard::{self, Ending};
use crate::system::fail;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// The body of a loop: environment, first iteration, end of the range (exclusive).
pub type LoopBody = unsafe extern "C" fn(*mut c_void, i64, i64);

/// The body of a thread.
pub type ThreadBody = unsafe extern "C" fn(*mut c_void);

/// Size in bytes of a thread's stack, in address space; only touched pages take memory.
pub const THREAD_STACK: usize = 256 << 20;

/// A thread takes the n-th part of its lane's rest; the first time less, to measure an iteration, and the whole rest if
/// the measured time for it is so short that no other thread could do a part of it earlier.
const FRACTION: u64 = 4;
const FIRST_FRACTION: u64 = 8;
const MOMENT: Duration = Duration::from_micros(2);

/// How often a finished thread polls for the others before it yields the processor.
const SPINS: u32 = 200;

/// How long a member of the team polls for the next loop.
const LINGER: Duration = Duration::from_micros(200);

/// Maximal number of threads.
const MAX_THREADS: usize = 1024;

/// Number of threads of a loop by default: `NYALA_NUM_THREADS`, else the number of processors.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_num_threads() -> i32 {
    static N: OnceLock<i32> = OnceLock::new();
    *N.get_or_init(|| {
        let set = std::env::var("NYALA_NUM_THREADS").ok().and_then(|n| n.trim().parse().ok()).filter(|&n| n > 0);
        let n: usize = set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        n.min(MAX_THREADS) as i32
    })
}

/// Makes a pool of `n` threads, of which the calling one is a member if `joins`.
fn build(n: usize, joins: bool) -> Option<ThreadPool> {
    let builder = || {
        ThreadPoolBuilder::new()
            .stack_size(THREAD_STACK)
            .thread_name(|i| format!("parallel {i}"))
            // The pool's threads live as long as the process.
            .start_handler(|_| std::mem::forget(crate::faults::prepare_thread()))
    };
    if joins && let Ok(pool) = builder().num_threads(n).use_current_thread().build() {
        return Some(pool);
    }
    builder().num_threads(n - 1).build().ok()
}

/// A pool that is made when it is needed first, and anew in a process that was forked.
struct Made {
    pool: AtomicPtr<Option<ThreadPool>>,
    making: Mutex<()>,
}

static MAIN_POOL: Made = Made { pool: AtomicPtr::new(std::ptr::null_mut()), making: Mutex::new(()) };

impl Made {
    fn get(&self, make: impl FnOnce() -> Option<ThreadPool>) -> Option<&'static ThreadPool> {
        let there = || {
            // SAFETY: it is null or was leaked.
            unsafe { self.pool.load(Ordering::Acquire).as_ref() }
        };
        let pool = there().unwrap_or_else(|| {
            heed_forks();
            let _making = self.making.lock().unwrap_or_else(|e| e.into_inner());
            there().unwrap_or_else(|| {
                let pool = Box::leak(Box::new(make()));
                self.pool.store(pool, Ordering::Release);
                pool
            })
        });
        pool.as_ref()
    }
}

/// The pool for all loops that do not request more threads than the default. `None`: the system has no more threads.
fn main_pool() -> Option<&'static ThreadPool> {
    // A member shares work without waiting to be scheduled, but must live as long as the pool: so only the program's
    // own thread joins.
    let joins = || is_main_thread() || crate::stack::is_program_thread();
    MAIN_POOL.get(|| build(nyala_num_threads() as usize, joins()))
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    // SAFETY: both only ask.
    unsafe { libc::gettid() == libc::getpid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    false
}

/// Pools with more threads than the main one.
static LARGE_POOLS: Mutex<Vec<(usize, Arc<ThreadPool>)>> = Mutex::new(Vec::new());

/// A pool with more threads than the main one, for loops that request them.
fn large_pool(n: usize) -> Option<Arc<ThreadPool>> {
    heed_forks();
    let mut pools = LARGE_POOLS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, pool)) = pools.iter().find(|p| p.0 == n) {
        return Some(pool.clone());
    }
    let pool = Arc::new(build(n, false)?);
    pools.push((n, pool.clone()));
    Some(pool)
}

/// The rest of one lane, in units: its start in the upper half of the word, its end (exclusive) in the lower.
#[repr(align(64))]
struct Lane(AtomicU64);

impl Lane {
    fn new(from: u64, to: u64) -> Lane {
        Lane(AtomicU64::new(from << 32 | to))
    }

    fn bounds(word: u64) -> (u64, u64) {
        (word >> 32, word & u64::from(u32::MAX))
    }

    /// Takes the `fraction`-th part of the rest, at least one unit: from the front, or from the back.
    fn take(&self, fraction: u64, front: bool) -> Option<(u64, u64)> {
        let mut taken = (0, 0);
        let shrink = |word| {
            let (from, to) = Lane::bounds(word);
            if from >= to {
                return None;
            }
            let n = ((to - from) / fraction).max(1);
            taken = if front { (from, from + n) } else { (to - n, to) };
            let rest = if front { (from + n, to) } else { (from, to - n) };
            Some(rest.0 << 32 | rest.1)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrink).ok()?;
        Some(taken)
    }

    /// Number of units in the rest.
    fn left(&self) -> u64 {
        let (from, to) = Lane::bounds(self.0.load(Ordering::Relaxed));
        to.saturating_sub(from)
    }

    /// Refills an empty lane with this part. Only its owner does, so it stays empty until then.
    fn refill(&self, (from, to): (u64, u64)) {
        self.0.store(from << 32 | to, Ordering::Relaxed);
    }
}

/// A loop that is running. Aligned, so that the low bits of its address have room for a count.
#[repr(align(64))]
struct Loop<'l> {
    lanes: &'l [Lane],
    lo: i64,
    hi: i64,
    /// Number of iterations in a unit.
    unit: u64,
    /// Number of threads at work.
    busy: AtomicUsize,
    /// The lane for the next thread that joins the team.
    next_lane: AtomicUsize,
    body: LoopBody,
    env: *mut c_void,
    /// Whether a fault of the body is the loop's: its caller is guarded.
    guarded: bool,
    /// The first fault. The iterations that have not begun then never do.
    fault: OnceLock<Ending>,
}

// SAFETY: the environment belongs to the program, which says by `parallel` that its iterations may run at once.
unsafe impl Sync for Loop<'_> {}

impl Loop<'_> {
    fn run(&self, (from, to): (u64, u64)) {
        // The bounds may be 2^64 - 1 apart; products wrap to the right iteration.
        let at = |unit: u64| self.lo.wrapping_add(unit.wrapping_mul(self.unit) as i64);
        let n = (self.hi as u64).wrapping_sub(self.lo as u64);
        let end = if to.saturating_mul(self.unit) >= n { self.hi } else { at(to) };
        // SAFETY: `nyala_parallel`'s caller promised.
        let body = || unsafe { (self.body)(self.env, at(from), end) };
        if !self.guarded {
            // This thread may be waiting in another loop, which is guarded.
            return guard::unguarded(body);
        }
        if self.fault.get().is_some() {
            return;
        }
        // SAFETY: between here and the body there is nothing.
        if let Err(fault) = unsafe { guard::guarded(body) } {
            // The first one is kept.
            let _ = self.fault.set(fault);
        }
    }

    /// Works on the lane `own`, then on parts of others, until nothing is left.
    fn work(&self, own: usize) {
        let lane = &self.lanes[own];
        let mut each = None;
        loop {
            let fraction = match each {
                None => FIRST_FRACTION,
                Some(each) if each * (lane.left() as f64) < MOMENT.as_secs_f64() => 1,
                Some(_) => FRACTION,
            };
            if let Some(range) = lane.take(fraction, true) {
                if each.is_none() {
                    let start = Instant::now();
                    self.run(range);
                    each = Some(start.elapsed().as_secs_f64() / (range.1 - range.0) as f64);
                } else {
                    self.run(range);
                }
                continue;
            }
            let others = (1..self.lanes.len()).map(|i| &self.lanes[(own + i) % self.lanes.len()]);
            match others.max_by_key(|l| l.left()).and_then(|l| l.take(2, false)) {
                Some(range) => lane.refill(range),
                None => return,
            }
        }
    }

    /// Works on a lane, then polls a moment for the others: blocking takes longer than most such waits.
    fn work_and_linger(&self, own: usize) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.work(own);
        self.busy.fetch_sub(1, Ordering::Release);
        let mut patience = SPINS;
        while patience > 0 && self.busy.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
            patience -= 1;
        }
    }

    /// Works on the lanes of `first .. end` in parallel, as far as threads are free.
    fn share(&self, first: usize, end: usize) {
        if end - first == 1 {
            return self.work_and_linger(first);
        }
        let middle = first + (end - first) / 2;
        rayon::join(|| self.share(first, middle), || self.share(middle, end));
    }
}

/// A value on a cache line of its own.
#[repr(align(128))]
struct Padded<T>(T);

/// The state that the threads of a team share.
struct Team {
    /// The loop that can be joined: its address, with a count in the lowest bits; 0 if there is none.
    current: Padded<AtomicUsize>,
    /// Number of threads that may be using `current`.
    n_inside: Padded<AtomicUsize>,
    /// Whether a loop owns the team.
    is_taken: Padded<AtomicBool>,
    /// Number of loops that have owned the team; changed by the owner only.
    n_loops: AtomicUsize,
    /// Number of threads that poll for loops, including those that are about to start.
    n_members: AtomicUsize,
    /// The thread to wake when no thread is inside any more.
    waiting: Mutex<Option<Thread>>,
    is_waiting: AtomicBool,
}

/// The low bits of an address that hold a count.
const COUNT: usize = std::mem::align_of::<Loop>() - 1;

static TEAM: Team = Team {
    current: Padded(AtomicUsize::new(0)),
    n_inside: Padded(AtomicUsize::new(0)),
    is_taken: Padded(AtomicBool::new(false)),
    n_loops: AtomicUsize::new(0),
    n_members: AtomicUsize::new(0),
    waiting: Mutex::new(None),
    is_waiting: AtomicBool::new(false),
};

thread_local! {
    /// Whether this thread owns the team, or is a member of it.
    static IN_TEAM: Cell<bool> = const { Cell::new(false) };
}

impl Team {
    /// Runs a loop on this thread and the team's members. False if another loop owns the team.
    fn run(&self, work: &Loop, pool: &ThreadPool) -> bool {
        if IN_TEAM.get() || self.is_taken.0.swap(true, Ordering::Acquire) {
            return false;
        }
        IN_TEAM.set(true);
        let count = self.n_loops.fetch_add(1, Ordering::Relaxed) & COUNT;
        self.current.0.store((&raw const *work).expose_provenance() | count, Ordering::SeqCst);
        let wanted = work.lanes.len() - 1;
        while self.n_members.load(Ordering::SeqCst) < wanted {
            self.n_members.fetch_add(1, Ordering::SeqCst);
            pool.spawn(|| TEAM.look_out());
        }
        work.work(0);
        self.current.0.store(0, Ordering::SeqCst);
        self.wait();
        IN_TEAM.set(false);
        self.is_taken.0.store(false, Ordering::Release);
        true
    }

    /// Waits until no thread is inside.
    fn wait(&self) {
        let is_done = || self.n_inside.0.load(Ordering::SeqCst) == 0;
        for _ in 0..SPINS {
            if is_done() {
                return;
            }
            std::hint::spin_loop();
        }
        let waiting = || self.waiting.lock().unwrap_or_else(|e| e.into_inner());
        *waiting() = Some(std::thread::current());
        self.is_waiting.store(true, Ordering::SeqCst);
        while !is_done() {
            // Other threads may have nested loops to share.
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                std::thread::park_timeout(LINGER);
            }
        }
        self.is_waiting.store(false, Ordering::SeqCst);
        *waiting() = None;
    }

    /// Runs a member: joins loops as they come, until none has come for a while.
    fn look_out(&self) {
        // The team's owner may get this task from its own work queue.
        if IN_TEAM.get() {
            self.n_members.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        IN_TEAM.set(true);
        let mut seen = 0;
        let next = |seen: usize| Some(self.current.0.load(Ordering::SeqCst)).filter(|&c| c != 0 && c != seen);
        loop {
            let mut looks = 0;
            let mut start = None;
            let found = loop {
                if let Some(found) = next(seen) {
                    break Some(found);
                }
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else if start.get_or_insert_with(Instant::now).elapsed() < LINGER {
                    std::thread::yield_now();
                } else {
                    break None;
                }
            };
            let found = match found {
                Some(found) => found,
                None => {
                    self.n_members.fetch_sub(1, Ordering::SeqCst);
                    // A loop that came just now may have counted on this thread.
                    let Some(found) = next(seen) else { break };
                    self.n_members.fetch_add(1, Ordering::SeqCst);
                    found
                }
            };
            seen = found;
            self.join(found);
        }
        IN_TEAM.set(false);
    }

    /// Works on a loop, if it can still be joined.
    fn join(&self, current: usize) {
        self.n_inside.0.fetch_add(1, Ordering::SeqCst);
        if self.current.0.load(Ordering::SeqCst) == current {
            // SAFETY: whoever has the team keeps the loop until `n_inside`, raised before this was read, is 0.
            let work = unsafe { &*std::ptr::with_exposed_provenance::<Loop>(current & !COUNT) };
            let lane = work.next_lane.fetch_add(1, Ordering::Relaxed);
            if lane < work.lanes.len() {
                work.work(lane);
            }
        }
        if self.n_inside.0.fetch_sub(1, Ordering::SeqCst) == 1
            && self.is_waiting.load(Ordering::SeqCst)
            && let Some(thread) = &*self.waiting.lock().unwrap_or_else(|e| e.into_inner())
        {
            thread.unpark();
        }
    }
}

/// Runs `body(env, from, to)` for ranges that partition `lo .. hi`, in parallel on `n` threads: 0 for the default
/// number, negative for this thread only. Returns when all are done.
///
/// # Safety
/// `body` can be called with `env` and any range within `lo .. hi`, from several threads at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_parallel(n: i32, lo: i64, hi: i64, body: LoopBody, env: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(fault) = unsafe { parallel(n, lo, hi, body, env) } {
        guard::end(fault)
    }
}

/// [`nyala_parallel`], which returns the fault of a guarded loop.
///
/// # Safety
/// As there.
pub(crate) unsafe fn parallel(n: i32, lo: i64, hi: i64, body: LoopBody, env: *mut c_void) -> Option<Ending> {
    if lo >= hi {
        return None;
    }
    let iterations = (hi as u64).wrapping_sub(lo as u64);
    let all = nyala_num_threads() as usize;
    let asked = usize::try_from(n).ok().filter(|&n| n > 0).unwrap_or(all).min(MAX_THREADS);
    let threads = asked.min(usize::try_from(iterations).unwrap_or(usize::MAX));
    let unit = iterations.div_ceil(u64::from(u32::MAX));
    let units = iterations.div_ceil(unit);
    let lane = |i: u64| units / threads as u64 * i + i.min(units % threads as u64);
    if threads == 1 || n < 0 {
        // SAFETY: the caller's promise.
        unsafe { body(env, lo, hi) };
        return None;
    }
    // The lanes of a few threads are in this frame.
    let mut few = [const { Lane(AtomicU64::new(0)) }; 8];
    let mut many = Vec::new();
    let lanes = if threads <= few.len() {
        &mut few[..threads]
    } else {
        many.resize_with(threads, || Lane(AtomicU64::new(0)));
        &mut many[..]
    };
    for (i, l) in (0..).zip(lanes.iter_mut()) {
        *l = Lane::new(lane(i), lane(i + 1));
    }
    let work = Loop {
        lanes,
        lo,
        hi,
        unit,
        busy: AtomicUsize::new(0),
        next_lane: AtomicUsize::new(1),
        body,
        env,
        guarded: guard::is_guarded(),
        fault: OnceLock::new(),
    };
    run_on_threads(&work, threads, all);
    work.fault.into_inner()
}

/// Runs a loop on as many threads as it has lanes; `all` are those of the main pool.
fn run_on_threads(work: &Loop, threads: usize, all: usize) {
    if threads <= all
        && let Some(pool) = main_pool()
        && TEAM.run(work, pool)
    {
        return;
    }
    if rayon::current_thread_index().is_some() && threads <= rayon::current_num_threads() {
        return work.share(0, threads);
    }
    let large = if threads > all { large_pool(threads) } else { None };
    match if threads <= all { main_pool() } else { large.as_deref() } {
        Some(pool) => pool.in_place_scope(|scope| {
            (1..threads).for_each(|i| scope.spawn(move |_| work.work(i)));
            work.work_and_linger(0);
        }),
        // No threads are available: this one does it all.
        None => work.work(0),
    }
}

/// A thread, with its fault if whoever spawned it was guarded.
type Spawned = JoinHandle<Option<Ending>>;

/// Threads by handle; `None` until the thread starts.
static THREADS: Mutex<Option<HashMap<i32, Option<Spawned>>>> = Mutex::new(None);

/// Threads that were spawned and have not ended.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// How many threads that programs have spawned run code of theirs, or are about to.
pub fn n_spawned() -> usize {
    RUNNING.load(Ordering::Acquire)
}

fn with_threads<T>(f: impl FnOnce(&mut HashMap<i32, Option<Spawned>>) -> T) -> T {
    f(THREADS.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_default())
}

/// A new handle, greater than 0, for a thread that is about to start.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_spawn_handle() -> i32 {
    with_threads(|threads| {
        let mut handle = threads.len() as i32 + 1;
        while threads.contains_key(&handle) {
            handle = handle.checked_add(1).unwrap_or(1);
        }
        threads.insert(handle, None);
        handle
    })
}

struct Env(*mut c_void);

// SAFETY: the environment was made for the thread that gets it.
unsafe impl Send for Env {}

/// Starts a thread that calls `body(env)`, then frees `env`.
///
/// # Safety
/// `body` can be called with `env`, which is null or memory of [`crate::nyala_alloc`] that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_spawn(handle: i32, body: ThreadBody, env: *mut c_void) {
    let (env, is_guarded) = (Env(env), guard::is_guarded());
    let run = move || {
        let env = env;
        let _handler = crate::faults::prepare_thread();
        // SAFETY: the caller's promise.
        let call = || unsafe { body(env.0) };
        // SAFETY: between here and the body there is nothing.
        let fault = match is_guarded {
            true => unsafe { guard::guarded(call) }.err(),
            false => {
                call();
                None
            }
        };
        // SAFETY: the caller's promise.
        unsafe { crate::nyala_free(env.0.cast()) };
        RUNNING.fetch_sub(1, Ordering::Release);
        fault
    };
    heed_forks();
    RUNNING.fetch_add(1, Ordering::Relaxed);
    match std::thread::Builder::new().name("spawned".into()).stack_size(THREAD_STACK).spawn(run) {
        Ok(thread) => with_threads(|threads| drop(threads.insert(handle, Some(thread)))),
        Err(e) => {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
            fail(&format!("cannot start a thread: {e}"))
        }
    }
}

/// Whether `handle` belongs to a thread that nobody has waited for.
pub fn is_thread(handle: i32) -> bool {
    with_threads(|threads| threads.contains_key(&handle))
}

/// Waits for the thread `handle`; the handle is invalid afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_sync(handle: i32) {
    match with_threads(|threads| threads.remove(&handle)) {
        Some(Some(thread)) => {
            // A worker helps while it waits: the thread may have a loop that waits for workers.
            while rayon::current_thread_index().is_some() && !thread.is_finished() {
                if rayon::yield_now() != Some(rayon::Yield::Executed) {
                    std::thread::sleep(LINGER / 4);
                }
            }
            // A thread's function does not unwind.
            if let Ok(Some(fault)) = thread.join() {
                guard::end(fault)
            }
        }
        Some(None) => {}
        None => fail(&format!("`sync` of {handle}, which is no handle of a thread, or was waited for before")),
    }
}

/// The locks of this module, which the forking thread holds during `fork`: the child lacks other threads, which could never release them.
struct Forking {
    _making: MutexGuard<'static, ()>,
    large: MutexGuard<'static, Vec<(usize, Arc<ThreadPool>)>>,
    threads: MutexGuard<'static, Option<HashMap<i32, Option<Spawned>>>>,
    waiting: MutexGuard<'static, Option<Thread>>,
}

thread_local! {
    static FORKING: Cell<Option<Forking>> = const { Cell::new(None) };
}

/// Makes forked processes begin without threads: a child has only the one that forked. See Note [Forks].
fn heed_forks() {
    extern "C" fn before() {
        fn lock<T>(of: &'static Mutex<T>) -> MutexGuard<'static, T> {
            of.lock().unwrap_or_else(|e| e.into_inner())
        }
        FORKING.set(Some(Forking {
            _making: lock(&MAIN_POOL.making),
            large: lock(&LARGE_POOLS),
            threads: lock(&THREADS),
            waiting: lock(&TEAM.waiting),
        }));
    }
    extern "C" fn in_parent() {
        drop(FORKING.take());
    }
    extern "C" fn in_child() {
        let Some(mut held) = FORKING.take() else { return };
        MAIN_POOL.pool.store(std::ptr::null_mut(), Ordering::Relaxed);
        // To drop these would wait for threads that there are not.
        std::mem::forget(std::mem::take(&mut *held.large));
        std::mem::forget(held.threads.take());
        RUNNING.store(0, Ordering::Relaxed);
        *held.waiting = None;
        let Team { current, n_inside, is_taken, n_loops: _, n_members, waiting: _, is_waiting } = &TEAM;
        current.0.store(0, Ordering::Relaxed);
        n_inside.0.store(0, Ordering::Relaxed);
        is_taken.0.store(false, Ordering::Relaxed);
        n_members.store(0, Ordering::Relaxed);
        is_waiting.store(false, Ordering::Relaxed);
        IN_TEAM.set(false);
    }
    static HEEDED: Once = Once::new();
    // SAFETY: the functions may be called in any thread that forks.
    HEEDED.call_once(|| _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) });
}

// Note [Forks]
//
// A forked process has the memory of its parent, but only the thread that forked: pools whose workers are gone, a team whose members
// never come. So it begins without them, and makes a pool of its own when a loop needs one. What the old ones had is left. The thread
// may be a worker of the old pool; `rayon` lets it spawn work in another one. A program that forks in the middle of a loop gets back
// to that loop in both processes, and the child does not wait for iterations that other threads had begun.

// Note [The team]
//
// A member announces that it is inside before it reads `current`, and the owner clears `current` before it checks
// whether a thread is inside: so no thread has the loop when its frame is gone. A member that gives up announces that
// before it looks for a new loop for the last time, and the owner publishes the loop before it counts the members: so a
// member that is counted comes. A member that comes late finds no lane, or no loop; the owner waits only for those that
// have started.

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// How often each iteration of `lo .. hi` was run.
    struct Counts {
        lo: i64,
        of: Vec<AtomicU32>,
        nested: bool,
    }

    unsafe extern "C" fn count(env: *mut c_void, from: i64, to: i64) {
        // SAFETY: the tests pass counts.
        let counts = unsafe { &*env.cast::<Counts>() };
        for i in from..to {
            counts.of[(i - counts.lo) as usize].fetch_add(1, Ordering::Relaxed);
            if counts.nested {
                check(0, -3, 5, false);
            }
        }
    }

    fn check(n: i32, lo: i64, hi: i64, nested: bool) {
        let of = (lo..hi).map(|_| AtomicU32::new(0)).collect();
        let counts = Counts { lo, of, nested };
        // SAFETY: the environment is what `count` takes.
        unsafe { nyala_parallel(n, lo, hi, count, (&raw const counts).cast_mut().cast()) }
        assert!(counts.of.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{n} {lo} {hi} {nested}");
    }

    #[test]
    fn every_iteration_runs_once() {
        for n in [0, 1, 2, 3, 7, 64, -1] {
            for (lo, hi) in
                [(0, 0), (5, 3), (0, 1), (-7, 2), (0, 1000), (i64::MAX - 9, i64::MAX), (i64::MIN, i64::MIN + 9)]
            {
                check(n, lo, hi.max(lo), false);
            }
        }
    }

    #[test]
    fn loops_nest() {
        check(0, 0, 200, true);
        check(5, 0, 200, true);
        std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(|| check(0, 0, 200, true)))));
    }

    /// Members of the team leave and come back, and several threads compete for it.
    #[test]
    fn loops_come_and_go() {
        let many = |seed: u64| {
            let mut state = seed;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let pause = LINGER.mul_f64((state >> 60) as f64 / 8.0);
                if state >> 55 & 15 == 0 {
                    std::thread::sleep(pause);
                } else {
                    let start = Instant::now();
                    while start.elapsed() < pause / 100 {}
                }
                check((state >> 40 & 3) as i32, 0, (state >> 32 & 127) as i64, state >> 24 & 15 == 0);
            }
        };
        many(1);
        std::thread::scope(|s| (2..5).for_each(|seed| drop(s.spawn(move || many(seed)))));
    }

    /// A child has loops again, also if other threads of its parent are in some when it is forked, and so has its parent.
    #[test]
    fn forked_processes_have_threads() {
        check(0, 0, 200, true);
        check(67, 0, 200, false);
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let busy = || {
                while !stop.load(Ordering::Relaxed) {
                    check(0, 0, 50, true);
                }
            };
            (0..2).for_each(|_| drop(s.spawn(busy)));
            for _ in 0..5 {
                // SAFETY: the child does what this test is about, and leaves.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: ends the child, if it hangs.
                    unsafe { libc::alarm(60) };
                    check(0, 0, 200, true);
                    check(0, 0, 200, false);
                    check(67, 0, 200, false);
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(7) };
                }
                let mut status = 0;
                // SAFETY: waits for the child, whose status is written.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
                check(0, 0, 200, true);
                check(67, 0, 200, false);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn ranges_may_be_huge() {
        static SUM: AtomicU64 = AtomicU64::new(0);
        unsafe extern "C" fn add(_: *mut c_void, from: i64, to: i64) {
            SUM.fetch_add((to as u64).wrapping_sub(from as u64), Ordering::Relaxed);
        }
        // SAFETY: the body takes any environment.
        unsafe { nyala_parallel(0, i64::MIN, i64::MAX, add, std::ptr::null_mut()) }
        assert_eq!(SUM.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn threads_run_and_end() {
        static SUM: AtomicU64 = AtomicU64::new(0);
        unsafe extern "C" fn body(env: *mut c_void) {
            // SAFETY: the test passes a number on the heap.
            SUM.fetch_add(unsafe { *env.cast::<u64>() }, Ordering::Relaxed);
        }
        let handles: Vec<i32> = (0..20)
            .map(|i: u64| {
                let handle = nyala_spawn_handle();
                let env = crate::nyala_alloc(8).cast::<u64>();
                // SAFETY: eight bytes were allocated, which the thread owns.
                unsafe {
                    env.write(i);
                    nyala_spawn(handle, body, env.cast());
                }
                handle
            })
            .collect();
        handles.iter().for_each(|&h| nyala_sync(h));
        assert_eq!(SUM.load(Ordering::Relaxed), 190);
    }
}
