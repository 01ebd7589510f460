//! The functions that AnyDSL's Impala programs import, under their names. Devices are those of
//! [`platforms`](crate::platforms).
//!
//! A request to a missing device, or one that the device refuses, is reported on standard error. Then a function with a result returns
//! null or zero; another one ends the process with exit code 1. Random numbers are those of C++'s `mt19937`, so that a seed gives the
//! same numbers as there. Numbers are printed as C++ prints them.

use crate::guard::{Ending, end};
use crate::memory::{MAX_ALIGN, aligned, nyala_free};
use crate::platforms::{Device, Error, Memory, kernel_time, overview, platform_name};
use crate::print::{nyala_flush, nyala_print_char, nyala_print_string, put};
use crate::system::nyala_time_ns;
use crate::threads::{nyala_parallel, nyala_spawn, nyala_spawn_handle, nyala_sync};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// Reports why a function failed.
fn report(function: &str, message: &str) {
    nyala_flush();
    eprintln!("{function}: {message}");
}

/// Unwraps a result. A failure is reported, and ends the process.
fn or_exit<T>(function: &str, result: Result<T, Error>) -> T {
    result.unwrap_or_else(|message| end(Ending::of_device(&format!("{function}: {message}"))))
}

/// Unwraps a result. A failure is reported; then there is none.
fn or_report<T>(function: &str, result: Result<T, Error>) -> Option<T> {
    result.map_err(|message| report(function, &message)).ok()
}

/// Prints the available devices.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_info() {
    for line in overview() {
        put(format!("{line}\n").as_bytes());
    }
}

/// The device's name; empty for a missing device. It stays where it is until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_device_name(device: i32) -> *const c_char {
    static NAMES: Mutex<BTreeMap<i32, CString>> = Mutex::new(BTreeMap::new());
    let name = Device::find(device).and_then(|d| d.platform.device_name(d.number));
    let Some(name) = or_report("anydsl_device_name", name) else { return c"".as_ptr() };
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(device).or_insert_with(|| CString::new(name).unwrap_or_default()).as_ptr()
}

/// Whether the device has a feature with this name.
///
/// # Safety
/// The name is null or a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_device_check_feature_support(device: i32, feature: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let name = if feature.is_null() { c"" } else { unsafe { CStr::from_ptr(feature) } };
    let has = Device::find(device).and_then(|d| d.platform.has_feature(d.number, &name.to_string_lossy()));
    or_report("anydsl_device_check_feature_support", has).unwrap_or(false)
}

macro_rules! allocations {
    ($($(#[$doc:meta])* $name:ident $memory:ident),*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(device: i32, size: i64) -> *mut c_void {
                allocate(stringify!($name), device, size, Memory::$memory)
            }
        )*
    };
}

allocations!(
    /// Allocates uninitialized memory of the device; null if there is none left.
    anydsl_alloc Device,
    /// Allocates memory of the host that the device can access.
    anydsl_alloc_host Host,
    /// Allocates memory that both host and device can access.
    anydsl_alloc_unified Unified
);

/// The size of each block of memory that was not released, by device and address; not of the host.
static ALLOCATED: Mutex<BTreeMap<(i32, usize), usize>> = Mutex::new(BTreeMap::new());

/// Memory of devices other than the host that was not released so far: for each platform and device the number of
/// allocations, and their bytes.
pub fn device_memory_in_use() -> Vec<(String, usize, usize)> {
    let mut found: BTreeMap<i32, (usize, usize)> = BTreeMap::new();
    for (&(device, _), &size) in ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let sums = found.entry(device).or_default();
        *sums = (sums.0 + 1, sums.1 + size);
    }
    let name = |device: i32| format!("{}:{}", platform_name(device & 15), device >> 4);
    found.into_iter().map(|(device, (n, bytes))| (name(device), n, bytes)).collect()
}

/// The number of the host where it stands for another device. The compiler knows it as well.
const STAND_IN: i32 = 0x7fff_0000;

/// The number of a device without its queue.
fn without_queue(device: i32) -> i32 {
    device & 0xffff
}

fn allocate(function: &str, device: i32, size: i64, memory: Memory) -> *mut c_void {
    let made = Device::find(device).and_then(|d| {
        let size = usize::try_from(size).map_err(|_| format!("cannot allocate {size} bytes"))?;
        let pointer = d.platform.alloc(d.number, size, memory)?;
        if memory == Memory::Device && (device & 15 != 0 || device == STAND_IN) {
            crate::checks::note_device_memory(pointer as usize, size);
        }
        if device & 15 != 0 {
            let key = (without_queue(device), pointer as usize);
            ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).insert(key, size);
        }
        Ok(pointer)
    });
    or_report(function, made).unwrap_or(std::ptr::null_mut())
}

/// The address that the device uses for memory of the host that it can access.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_get_device_ptr(device: i32, pointer: *mut c_void) -> *mut c_void {
    or_report("anydsl_get_device_ptr", Device::find(device)).map_or(std::ptr::null_mut(), |_| pointer)
}

/// Frees memory of the device; null is allowed.
///
/// # Safety
/// `pointer` is null or was returned by [`anydsl_alloc`] or [`anydsl_alloc_unified`] and not released since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_release(device: i32, pointer: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { release("anydsl_release", device, pointer) }
}

/// Frees memory of [`anydsl_alloc_host`]; null is allowed.
///
/// # Safety
/// As for [`anydsl_release`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_release_host(device: i32, pointer: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { release("anydsl_release_host", device, pointer) }
}

/// # Safety
/// As for [`anydsl_release`].
unsafe fn release(function: &str, device: i32, pointer: *mut c_void) {
    // Before it is somebody else's.
    crate::checks::forget_device_memory(pointer as usize);
    let result = Device::find(device).and_then(|d| match pointer.is_null() {
        true => Ok(()),
        // SAFETY: the caller's promise.
        false => unsafe { d.platform.release(d.number, pointer) },
    });
    or_exit(function, result);
    ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(without_queue(device), pointer as usize));
}

/// Copies `size` bytes; offsets are in bytes. Ranges may overlap.
///
/// # Safety
/// Both ranges lie in memory of their devices; nobody else writes there meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_copy(
    from_device: i32,
    from: *const c_void,
    from_offset: i64,
    to_device: i32,
    to: *mut c_void,
    to_offset: i64,
    size: i64,
) {
    let copy = || {
        let (from_device, to_device) = (Device::find(from_device)?, Device::find(to_device)?);
        let size = usize::try_from(size).map_err(|_| format!("{size} bytes"))?;
        if size == 0 {
            return Ok(());
        }
        let (from, to) = (
            from.cast::<u8>().wrapping_offset(from_offset as isize),
            to.cast::<u8>().wrapping_offset(to_offset as isize),
        );
        // SAFETY: the caller's promise.
        unsafe { from_device.copy(from.cast(), to_device, to.cast(), size) }
    };
    or_exit("anydsl_copy", copy());
}

/// Waits until the device has finished all its work.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_synchronize(device: i32) {
    or_exit("anydsl_synchronize", Device::find(device).and_then(Device::synchronize));
}

/// Allocates memory aligned to a power of two; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_aligned_malloc(size: i64, alignment: i64) -> *mut c_void {
    match usize::try_from(alignment) {
        Ok(alignment) if alignment.is_power_of_two() && alignment <= MAX_ALIGN => aligned(size, alignment).cast(),
        _ => {
            nyala_flush();
            eprintln!("anydsl_aligned_malloc: an alignment is a power of two up to {MAX_ALIGN}, not {alignment}");
            std::ptr::null_mut()
        }
    }
}

/// Frees memory of [`anydsl_aligned_malloc`]; null is allowed.
///
/// # Safety
/// `pointer` is null or was returned by that function and not freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_aligned_free(pointer: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { nyala_free(pointer.cast()) }
}

// Time.

/// Microseconds of a monotonic clock.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_get_micro_time() -> i64 {
    nyala_time_ns() / 1000
}

/// Nanoseconds of a monotonic clock.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_get_nano_time() -> i64 {
    nyala_time_ns()
}

/// Microseconds that kernels have run on devices so far.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_get_kernel_time() -> i64 {
    kernel_time() / 1000
}

// Random numbers.

/// C++'s `mt19937` (Matsumoto, Nishimura 1998), with its default seed.
struct Twister {
    state: [u32; Twister::N],
    at: usize,
}

impl Twister {
    const N: usize = 624;

    fn new(seed: u32) -> Twister {
        let mut state = [seed; Twister::N];
        for i in 1..Twister::N {
            let x = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = x.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Twister { state, at: Twister::N }
    }

    fn next(&mut self) -> u32 {
        if self.at == Twister::N {
            for i in 0..Twister::N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % Twister::N] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % Twister::N] ^ (y >> 1) ^ twist;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }
}

thread_local! {
    static RANDOM: RefCell<Twister> = RefCell::new(Twister::new(5489));
}

/// Seeds this thread's random numbers.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_random_seed(seed: u32) {
    RANDOM.with_borrow_mut(|random| *random = Twister::new(seed));
}

/// A random number from 0 to 1, 1 excluded.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_random_val_f32() -> f32 {
    let x = RANDOM.with_borrow_mut(Twister::next) as f32 / 4_294_967_296.0;
    // The greatest integers round up to 1, which is excluded.
    x.min(1.0f32.next_down())
}

/// A random number of 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_random_val_u64() -> u64 {
    RANDOM.with_borrow_mut(|random| (u64::from(random.next()) << 32) + u64::from(random.next()))
}

// Kinds of floats.

macro_rules! tests {
    ($($name:ident: $ty:ty => $test:ident),*) => {
        $(
            /// Returns 1 if the number is of this kind, else 0.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(value: $ty) -> i32 {
                value.$test() as i32
            }
        )*
    };
}

tests!(
    anydsl_isinff: f32 => is_infinite, anydsl_isnanf: f32 => is_nan, anydsl_isfinitef: f32 => is_finite,
    anydsl_isinf: f64 => is_infinite, anydsl_isnan: f64 => is_nan, anydsl_isfinite: f64 => is_finite
);

// Printing.

macro_rules! prints {
    ($($name:ident: $ty:ty),*) => {
        $(
            /// Prints the number in decimal, without a newline.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(value: $ty) {
                put(value.to_string().as_bytes());
            }
        )*
    };
}

prints!(anydsl_print_i16: i16, anydsl_print_i32: i32, anydsl_print_i64: i64);

/// Prints the number with six significant digits, without a newline.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_print_f32(value: f32) {
    anydsl_print_f64(value.into());
}

/// Prints the number with six significant digits, without a newline.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_print_f64(value: f64) {
    put(six_digits(value).as_bytes());
}

/// Formats like C's `%g`.
fn six_digits(value: f64) -> String {
    if !value.is_finite() {
        return crate::print::float_text(value);
    }
    let mut buffer = [0u8; 64];
    // SAFETY: the buffer is as long as said, the format takes a double.
    let n = unsafe { libc::snprintf(buffer.as_mut_ptr().cast(), buffer.len(), c"%g".as_ptr(), value) };
    let n = usize::try_from(n).unwrap_or(0).min(buffer.len());
    String::from_utf8_lossy(&buffer[..n]).into_owned()
}

/// Prints one byte as it is.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_print_char(value: u8) {
    nyala_print_char(value);
}

/// Prints the bytes up to the first zero byte.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_print_string(text: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { nyala_print_string(text) }
}

/// Flushes standard output.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_print_flush() {
    nyala_flush();
}

// Threads.

/// The body of a loop: an environment, and the range to run.
type AnydslLoop = unsafe extern "C" fn(*mut c_void, i32, i32);

struct LoopEnv {
    args: *mut c_void,
    body: AnydslLoop,
}

unsafe extern "C" fn run_range(env: *mut c_void, lo: i64, hi: i64) {
    // SAFETY: `anydsl_parallel_for` passes its own environment, and bounds of 32 bits.
    unsafe {
        let env = &*env.cast::<LoopEnv>();
        (env.body)(env.args, lo as i32, hi as i32);
    }
}

/// Runs `body(args, from, to)` for ranges that partition `lo .. hi` on `n` threads, 0 for the default number.
///
/// # Safety
/// `body` can be called with `args` and any range within `lo .. hi`, from several threads at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_parallel_for(n: i32, lo: i32, hi: i32, args: *mut c_void, body: Option<AnydslLoop>) {
    let Some(body) = body else { return };
    let mut env = LoopEnv { args, body };
    // SAFETY: the caller's promise; the environment outlives the loop.
    unsafe { nyala_parallel(n, lo.into(), hi.into(), run_range, (&raw mut env).cast()) }
}

/// The body of a thread, with its environment; the result is ignored.
type AnydslThread = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

struct ThreadEnv {
    args: *mut c_void,
    body: AnydslThread,
}

unsafe extern "C" fn run_thread(env: *mut c_void) {
    // SAFETY: `anydsl_spawn_thread` passes its own environment.
    unsafe {
        let env = &*env.cast::<ThreadEnv>();
        (env.body)(env.args);
    }
}

/// Starts a thread that calls `body(args)`; returns its handle, or 0 on failure.
///
/// # Safety
/// `body` can be called with `args` from another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anydsl_spawn_thread(args: *mut c_void, body: Option<AnydslThread>) -> i32 {
    let env = aligned(size_of::<ThreadEnv>() as i64, 64).cast::<ThreadEnv>();
    let Some(body) = body.filter(|_| !env.is_null()) else { return 0 };
    // SAFETY: freshly allocated, aligned and large enough; the thread frees it.
    unsafe {
        env.write(ThreadEnv { args, body });
        let handle = nyala_spawn_handle();
        nyala_spawn(handle, run_thread, env.cast());
        handle
    }
}

/// Waits for the thread `handle`.
#[unsafe(no_mangle)]
pub extern "C" fn anydsl_sync_thread(handle: i32) {
    if !crate::is_thread(handle) {
        nyala_flush();
        eprintln!("anydsl_sync_thread: {handle} is no handle of a thread, or was waited for before");
        return;
    }
    nyala_sync(handle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI32, Ordering};

    #[test]
    fn random_numbers_are_those_of_cpp() {
        anydsl_random_seed(5489);
        // The C++ standard specifies the ten thousandth number.
        let last = (0..10_000).fold(0, |_, _| RANDOM.with_borrow_mut(Twister::next));
        assert_eq!(last, 4_123_659_995);
        anydsl_random_seed(1);
        assert_eq!(anydsl_random_val_f32(), 1_791_095_845u32 as f32 / 4_294_967_296.0);
        anydsl_random_seed(1);
        assert_eq!(anydsl_random_val_u64(), (1_791_095_845 << 32) + 4_282_876_139);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&anydsl_random_val_f32())));
    }

    #[test]
    fn numbers_print_as_cpp_prints_them() {
        let cases = [(0.1, "0.1"), (1.0 / 3.0, "0.333333"), (1e6, "1e+06"), (123_456.7, "123457"), (-0.0, "-0")];
        for (x, text) in cases {
            assert_eq!(six_digits(x), text);
        }
        assert_eq!((six_digits(-f64::NAN), six_digits(f64::NEG_INFINITY)), ("nan".into(), "-inf".into()));
    }

    unsafe extern "C" fn add(args: *mut c_void, lo: i32, hi: i32) {
        // SAFETY: the test passes a counter.
        unsafe { &*args.cast::<AtomicI32>() }.fetch_add((lo..hi).sum(), Ordering::Relaxed);
    }

    unsafe extern "C" fn set(args: *mut c_void) -> *mut c_void {
        // SAFETY: the test passes a counter.
        unsafe { &*args.cast::<AtomicI32>() }.store(7, Ordering::Relaxed);
        args
    }

    #[test]
    fn loops_and_threads_run() {
        let counter = AtomicI32::new(0);
        let args = (&raw const counter).cast_mut().cast();
        // SAFETY: the functions above take a counter, which outlives them.
        unsafe {
            anydsl_parallel_for(0, -10, 100, args, Some(add));
            assert_eq!(counter.load(Ordering::Relaxed), (-10..100).sum());
            let thread = anydsl_spawn_thread(args, Some(set));
            anydsl_sync_thread(thread);
            anydsl_sync_thread(thread);
            assert_eq!(counter.load(Ordering::Relaxed), 7);
        }
    }

    #[test]
    fn other_devices_are_not_there() {
        let missing = |device| Device::find(device).err().unwrap_or_default();
        assert_eq!(missing(0), "");
        assert!(missing(1).starts_with("platform 1, CUDA, is not there (device 0 of it was asked for): "));
        assert_eq!(missing(2 << 4), "platform 0, CPU, has no device 2, only device 0");
        assert_eq!(missing(9), "there is no platform 9 (device 0 of it was asked for)");
        assert!(anydsl_alloc(1, 10).is_null() && anydsl_alloc(0, -1).is_null());
        assert!(anydsl_aligned_malloc(10, 3).is_null());
        let p = anydsl_aligned_malloc(10, 256);
        assert!((p as usize).is_multiple_of(256));
        // SAFETY: just allocated.
        unsafe { anydsl_aligned_free(p) };
    }
}
