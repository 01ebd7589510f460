//! Interrupts (Ctrl-C) while a kernel runs: the process ends as it would anyway, but says first which kernel has not ended.
//! On devices that is the last one that was launched.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Name and place of the last kernel that was launched on a device: a text of the program each, its length first.
static NAME: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static PLACE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// Threads that wait for devices.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// The name of a kernel that runs on the host, with a zero byte at its end.
static ON_HOST: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Notes a launch on a device.
pub(crate) fn launched(name: *const u8, place: *const u8) {
    NAME.store(name.cast_mut(), Ordering::Relaxed);
    PLACE.store(place.cast_mut(), Ordering::Relaxed);
}

/// Name and place of the last kernel that was launched on a device.
pub(crate) fn last_launch() -> Option<(String, String)> {
    let (name, place) = (NAME.load(Ordering::Relaxed), PLACE.load(Ordering::Relaxed));
    if name.is_null() || place.is_null() {
        return None;
    }
    // SAFETY: these are texts of the program, which stay.
    Some(unsafe { (text_at(name).into(), text_at(place).into()) })
}

/// # Safety
/// A text of the program is there.
unsafe fn text_at(at: *const u8) -> std::borrow::Cow<'static, str> {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe {
        std::slice::from_raw_parts(at.add(8), at.cast::<u64>().read_unaligned() as usize)
    })
}

/// Waits for a device by `wait`.
pub(crate) fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    enter();
    let result = wait();
    leave();
    result
}

/// Runs a kernel on the host.
pub(crate) fn running<T>(name: *const c_char, run: impl FnOnce() -> T) -> T {
    enter();
    let before = ON_HOST.swap(name.cast_mut(), Ordering::Relaxed);
    let result = run();
    ON_HOST.store(before, Ordering::Relaxed);
    leave();
    result
}

/// The handling of interrupts before the first thread began to wait, and the number of threads that wait. Drivers have
/// handlers of their own, which are back afterwards.
static BEFORE: Mutex<(Option<libc::sigaction>, usize)> = Mutex::new((None, 0));

fn enter() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    before.1 += 1;
    WAITING.store(before.1, Ordering::Relaxed);
    if before.1 > 1 {
        return;
    }
    // SAFETY: the actions are wholly initialized, and the handler only does what a handler may. Ignored interrupts stay so.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGINT, std::ptr::null(), &mut action) == 0 && action.sa_sigaction != libc::SIG_IGN {
            before.0 = Some(action);
            action = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        }
    }
}

fn leave() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    before.1 -= 1;
    WAITING.store(before.1, Ordering::Relaxed);
    if before.1 == 0
        && let Some(action) = before.0.take()
    {
        // SAFETY: the action was given by the system.
        unsafe { libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut()) };
    }
}

/// The handler. It writes without buffers, which other threads may hold.
extern "C" fn handle(signal: c_int) {
    let (name, place, on_host) =
        (NAME.load(Ordering::Relaxed), PLACE.load(Ordering::Relaxed), ON_HOST.load(Ordering::Relaxed));
    // SAFETY: the names are texts of the program, which stay; `write` and `raise` the rest may be called by handlers.
    unsafe {
        let text = |at: *const u8| std::slice::from_raw_parts(at.add(8), at.cast::<u64>().read_unaligned() as usize);
        if !on_host.is_null() {
            say(&[b"interrupted: kernel `", CStr::from_ptr(on_host).to_bytes(), b"` has not ended\n"]);
        } else if WAITING.load(Ordering::Relaxed) > 0 && !name.is_null() {
            say(&[text(place), b": interrupted: kernel `", text(name), b"` has not ended\n"]);
        }
        // The process ends by this signal, as its parent expects.
        libc::signal(signal, libc::SIG_DFL);
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Writes to standard error, as a handler may.
fn say(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: so many bytes are there.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}
