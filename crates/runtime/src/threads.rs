//! Parallel loops and threads (`001` 5.1; `targets.md`, CPU).
//!
//! A loop is divided into one *lane* per thread, each a contiguous part, so that successive loops over the same data meet
//! it in the same caches. A thread takes ranges from the front of its lane, each a fraction of what is left; when the
//! lane is empty it takes the back half of another. So a body gets few, long ranges, and work that is uneven is evened
//! out. Lanes are handed out by `rayon`, whose workers find other work while they wait, so loops may nest.

use crate::system::fail;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// The body of a loop: environment, first iteration, the one after the last.
pub type LoopBody = unsafe extern "C" fn(*mut c_void, i64, i64);

/// The body of a thread.
pub type ThreadBody = unsafe extern "C" fn(*mut c_void);

/// Address space for the stack of a thread; touched pages only are used.
pub const THREAD_STACK: usize = 256 << 20;

/// A thread takes the n-th part of what is left of its lane.
const FRACTION: u64 = 4;

/// How often a thread that is done looks whether the others are, before it waits.
const SPINS: u32 = 200;

/// More threads than this are not asked for.
const MAX_THREADS: usize = 1024;

/// How many threads a loop uses if nobody says: `NYALA_NUM_THREADS`, else as many as there are processors.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_num_threads() -> i32 {
    static N: OnceLock<i32> = OnceLock::new();
    *N.get_or_init(|| {
        let set = std::env::var("NYALA_NUM_THREADS").ok().and_then(|n| n.trim().parse().ok()).filter(|&n| n > 0);
        let n: usize = set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        n.min(MAX_THREADS) as i32
    })
}

/// A pool of `n` threads, the calling one among them.
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

/// The pool for all loops that do not ask for more threads than there are. `None`: the system has no more threads.
fn main_pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    // A member shares work without waiting to be scheduled, but must live as long as the pool: so the program's own thread.
    let joins = || is_main_thread() || crate::stack::is_program_thread();
    POOL.get_or_init(|| build(nyala_num_threads() as usize, joins())).as_ref()
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

/// Pools of more threads than the main one, for loops that ask for so many.
fn large_pool(n: usize) -> Option<Arc<ThreadPool>> {
    static POOLS: Mutex<Vec<(usize, Arc<ThreadPool>)>> = Mutex::new(Vec::new());
    let mut pools = POOLS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, pool)) = pools.iter().find(|p| p.0 == n) {
        return Some(pool.clone());
    }
    let pool = Arc::new(build(n, false)?);
    pools.push((n, pool.clone()));
    Some(pool)
}

/// Iterations of one lane, in units: the first in the upper half, the one after the last in the lower.
#[repr(align(64))]
struct Lane(AtomicU64);

impl Lane {
    fn new(from: u64, to: u64) -> Lane {
        Lane(AtomicU64::new(from << 32 | to))
    }

    fn bounds(word: u64) -> (u64, u64) {
        (word >> 32, word & u64::from(u32::MAX))
    }

    /// Takes the `fraction`-th part of what is left, at least one unit: from the front, or from the back.
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

    /// Makes an empty lane this part. Only its owner does, so that nobody else makes it anything but empty meanwhile.
    fn refill(&self, (from, to): (u64, u64)) {
        self.0.store(from << 32 | to, Ordering::Relaxed);
    }
}

/// One loop under way.
struct Loop {
    lanes: Box<[Lane]>,
    lo: i64,
    hi: i64,
    /// Iterations in a unit.
    unit: u64,
    /// Threads at work.
    busy: AtomicUsize,
    body: LoopBody,
    env: *mut c_void,
}

// SAFETY: the environment belongs to the program, which says by `parallel` that its iterations may run at once.
unsafe impl Sync for Loop {}

impl Loop {
    fn run(&self, (from, to): (u64, u64)) {
        // In i64 the ends may be 2^64 - 1 apart; products wrap to the right iteration.
        let at = |unit: u64| self.lo.wrapping_add(unit.wrapping_mul(self.unit) as i64);
        let n = (self.hi as u64).wrapping_sub(self.lo as u64);
        let end = if to.saturating_mul(self.unit) >= n { self.hi } else { at(to) };
        // SAFETY: `nyala_parallel`'s caller promised.
        unsafe { (self.body)(self.env, at(from), end) }
    }

    /// What the thread with lane `own` does.
    fn work(&self, own: usize) {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let lane = &self.lanes[own];
        loop {
            while let Some(range) = lane.take(FRACTION, true) {
                self.run(range);
            }
            let others = (1..self.lanes.len()).map(|i| &self.lanes[(own + i) % self.lanes.len()]);
            let largest = others.max_by_key(|l| {
                let (from, to) = Lane::bounds(l.0.load(Ordering::Relaxed));
                to.saturating_sub(from)
            });
            match largest.and_then(|l| l.take(2, false)) {
                Some(range) => lane.refill(range),
                None => break,
            }
        }
        // Others are about to end: to wait by asking the system takes longer than most such waits.
        self.busy.fetch_sub(1, Ordering::Release);
        let mut patience = SPINS;
        while patience > 0 && self.busy.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
            patience -= 1;
        }
    }

    /// Works on the lanes of `first .. end` at once, as far as threads are free.
    fn share(&self, first: usize, end: usize) {
        if end - first == 1 {
            return self.work(first);
        }
        let middle = first + (end - first) / 2;
        rayon::join(|| self.share(first, middle), || self.share(middle, end));
    }
}

/// Runs `body(env, from, to)` for ranges that make up `lo .. hi`, at once on `n` threads: 0 for as many as there are.
/// Comes back when all are done.
///
/// # Safety
/// `body` can be called with `env` and any range within `lo .. hi`, from several threads at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_parallel(n: i32, lo: i64, hi: i64, body: LoopBody, env: *mut c_void) {
    if lo >= hi {
        return;
    }
    let iterations = (hi as u64).wrapping_sub(lo as u64);
    let all = nyala_num_threads() as usize;
    let asked = usize::try_from(n).ok().filter(|&n| n > 0).unwrap_or(all).min(MAX_THREADS);
    let threads = asked.min(usize::try_from(iterations).unwrap_or(usize::MAX));
    let unit = iterations.div_ceil(u64::from(u32::MAX));
    let units = iterations.div_ceil(unit);
    let lane = |i: u64| units / threads as u64 * i + i.min(units % threads as u64);
    if threads == 1 {
        // SAFETY: the caller's promise.
        return unsafe { body(env, lo, hi) };
    }
    let lanes = (0..threads as u64).map(|i| Lane::new(lane(i), lane(i + 1))).collect();
    let work = Loop { lanes, lo, hi, unit, busy: AtomicUsize::new(0), body, env };
    let is_member = || rayon::current_thread_index().is_some() && threads <= rayon::current_num_threads();
    if is_member() {
        return work.share(0, threads);
    }
    let pool = if threads <= all { main_pool() } else { None };
    if pool.is_some() && is_member() {
        // It has become one.
        return work.share(0, threads);
    }
    let large = if threads > all { large_pool(threads) } else { None };
    match pool.or(large.as_deref()) {
        Some(pool) => pool.in_place_scope(|scope| {
            (1..threads).for_each(|i| {
                scope.spawn({
                    let work = &work;
                    move |_| work.work(i)
                })
            });
            work.work(0);
        }),
        // No threads to be had: one does it all.
        None => work.work(0),
    }
}

/// Threads by handle; `None` until it starts.
static THREADS: Mutex<Option<HashMap<i32, Option<JoinHandle<()>>>>> = Mutex::new(None);

fn with_threads<T>(f: impl FnOnce(&mut HashMap<i32, Option<JoinHandle<()>>>) -> T) -> T {
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
    let env = Env(env);
    let run = move || {
        let env = env;
        let _handler = crate::faults::prepare_thread();
        // SAFETY: the caller's promise.
        unsafe {
            body(env.0);
            crate::nyala_free(env.0.cast());
        }
    };
    match std::thread::Builder::new().name("spawned".into()).stack_size(THREAD_STACK).spawn(run) {
        Ok(thread) => with_threads(|threads| drop(threads.insert(handle, Some(thread)))),
        Err(e) => fail(&format!("cannot start a thread: {e}")),
    }
}

/// Whether `handle` belongs to a thread that nobody has waited for.
pub fn is_thread(handle: i32) -> bool {
    with_threads(|threads| threads.contains_key(&handle))
}

/// Waits for the thread `handle`, which ends with it.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_sync(handle: i32) {
    match with_threads(|threads| threads.remove(&handle)) {
        // A thread's function does not unwind.
        Some(Some(thread)) => drop(thread.join()),
        Some(None) => {}
        None => fail(&format!("`sync` of {handle}, which is no handle of a thread, or was waited for before")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// How often each of `lo .. hi` was run.
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
