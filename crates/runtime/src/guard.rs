//! Guarded calls: a program's code that goes wrong returns to whoever called it, instead of ending the process. For programs in
//! which compiled code is a guest.
//!
//! A guarded call keeps the stack pointer and the registers that C's convention preserves, and notes on its thread that it is
//! there. What would end the process ([`end`]) then leaves its fault with that call and goes back to it, past all frames in between.
//! These are frames of compiled code, which has nothing to do there: no fault runs a `defer`. Frames of the runtime must not be among
//! them if they hold something. So each thread that works on a loop guards the body by a call of its own, the loop goes on without
//! the rest of its iterations, and its caller gets the first fault ([`crate::threads`]); likewise a thread that was spawned, whose
//! fault is that of whoever waits for it.
//!
//! What the code allocated and held stays allocated and held.

use std::arch::global_asm;
use std::cell::Cell;
use std::ffi::c_void;

/// Why code did not return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// What went wrong, as in `panic`, `signed-overflow`, `exit`.
    pub code: &'static str,
    /// The fault in a sentence.
    pub message: String,
    /// Where it is in the program, `file:line:column`, if that is known.
    pub place: Option<String>,
    /// What is printed if the fault ends the process, ending with the end of a line.
    pub text: String,
    /// How the process would end: with this exit code, or by `abort`.
    pub exit: Option<i32>,
}

impl Ending {
    /// A call of `exit`.
    pub(crate) fn exit(code: i32) -> Ending {
        let message = format!("the program called `exit` with {code}");
        Ending { code: "exit", message, place: None, text: String::new(), exit: Some(code) }
    }

    /// A device or its driver does not do what it should.
    pub(crate) fn of_device(message: &str) -> Ending {
        Ending { code: "device", message: message.into(), place: None, text: format!("{message}\n"), exit: Some(1) }
    }
}

/// A guarded call that is under way.
struct Frame {
    /// Where the registers are: the stack pointer in `nyala_guard_enter`.
    stack: usize,
    ending: Option<Ending>,
}

thread_local! {
    /// The innermost guarded call of this thread.
    static INNERMOST: Cell<*mut Frame> = const { Cell::new(std::ptr::null_mut()) };
}

unsafe extern "C" {
    /// Keeps the registers at the stack pointer, which it writes to `stack`, and calls `f(context)`. Returns 0 after that, and 1 if
    /// `nyala_guard_leave` was called with the same address.
    fn nyala_guard_enter(stack: *mut usize, f: unsafe extern "C" fn(*mut c_void), context: *mut c_void) -> i32;
    /// Returns from the `nyala_guard_enter` with this address, which is under way on this thread.
    fn nyala_guard_leave(stack: *const usize) -> !;
}

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl nyala_guard_enter",
    ".hidden nyala_guard_enter",
    "nyala_guard_enter:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "mov [rdi], rsp",
    "mov rdi, rdx",
    "call rsi",
    "xor eax, eax",
    "2:",
    "ldmxcsr [rsp]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".globl nyala_guard_leave",
    ".hidden nyala_guard_leave",
    "nyala_guard_leave:",
    "mov rsp, [rdi]",
    "mov eax, 1",
    "jmp 2b",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl nyala_guard_enter",
    ".hidden nyala_guard_enter",
    "nyala_guard_enter:",
    "stp x29, x30, [sp, #-160]!",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x0]",
    "mov x0, x2",
    "blr x1",
    "mov w0, #0",
    "2:",
    "ldp x19, x20, [sp, #16]",
    "ldp x21, x22, [sp, #32]",
    "ldp x23, x24, [sp, #48]",
    "ldp x25, x26, [sp, #64]",
    "ldp x27, x28, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "ldp x29, x30, [sp], #160",
    "ret",
    ".globl nyala_guard_leave",
    ".hidden nyala_guard_leave",
    "nyala_guard_leave:",
    "ldr x9, [x0]",
    "mov sp, x9",
    "mov w0, #1",
    "b 2b",
);

/// Calls `f`, and returns the fault that kept it from returning.
///
/// # Safety
/// Between this call and one of [`end`] are only frames that need not be left in order: compiled code, and `f`, which owns nothing
/// that has to be dropped while it calls compiled code.
pub unsafe fn guarded(f: impl FnOnce()) -> Result<(), Ending> {
    unsafe extern "C" fn call<F: FnOnce()>(context: *mut c_void) {
        // SAFETY: `guarded` passes its function, once.
        if let Some(f) = unsafe { (*context.cast::<Option<F>>()).take() } {
            f();
        }
    }
    fn thunk<F: FnOnce()>(_: &Option<F>) -> unsafe extern "C" fn(*mut c_void) {
        call::<F>
    }
    let mut f = Some(f);
    let mut frame = Frame { stack: 0, ending: None };
    let outer = INNERMOST.replace(&raw mut frame);
    // SAFETY: frame and function live during the call; the rest is the caller's promise.
    unsafe { nyala_guard_enter(&raw mut frame.stack, thunk(&f), (&raw mut f).cast()) };
    INNERMOST.set(outer);
    frame.ending.map_or(Ok(()), Err)
}

/// Whether a guarded call is under way on this thread.
pub(crate) fn is_guarded() -> bool {
    !INNERMOST.get().is_null()
}

/// Calls `f` as if no guarded call were under way: for work of others that this thread does.
pub(crate) fn unguarded(f: impl FnOnce()) {
    let outer = INNERMOST.replace(std::ptr::null_mut());
    f();
    INNERMOST.set(outer);
}

/// Goes back to the innermost guarded call of this thread. Without one, prints why and ends the process.
pub(crate) fn end(ending: Ending) -> ! {
    let frame = INNERMOST.get();
    if !frame.is_null() {
        // SAFETY: the call of this frame is under way on this thread, since it removes itself.
        unsafe {
            (*frame).ending = Some(ending);
            nyala_guard_leave(&raw const (*frame).stack)
        }
    }
    crate::nyala_flush();
    eprint!("{}", ending.text);
    match ending.exit {
        Some(code) => std::process::exit(crate::print::exit_code(code)),
        // SAFETY: ends the process.
        None => unsafe { libc::abort() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{nyala_parallel, nyala_spawn, nyala_spawn_handle, nyala_sync};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn guard(f: impl FnOnce()) -> Result<(), Ending> {
        // SAFETY: nothing in the tests is held where a fault is.
        unsafe { guarded(f) }
    }

    #[test]
    fn faults_return_to_the_innermost_call() {
        assert_eq!(guard(|| {}), Ok(()));
        let kept = std::hint::black_box([1.5, 2.5, 3.5]);
        let fault = guard(|| {
            let inner = guard(|| crate::system::fail("inner"));
            assert_eq!(inner.map_err(|f| f.message), Err("inner".into()));
            assert!(is_guarded());
            crate::system::nyala_exit(7)
        });
        assert_eq!(fault, Err(Ending::exit(7)));
        assert_eq!(kept, [1.5, 2.5, 3.5]);
        assert!(!is_guarded());
    }

    #[test]
    fn a_loop_has_the_fault_of_an_iteration() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C" fn body(_: *mut c_void, from: i64, to: i64) {
            for i in from..to {
                if i == 700 {
                    crate::system::fail("seven hundred");
                }
                DONE.fetch_add(1, Ordering::Relaxed);
            }
        }
        for n in [0, 1, 2, 5, -1] {
            // SAFETY: the body takes any environment.
            let fault = guard(|| unsafe { nyala_parallel(n, 0, 1000, body, std::ptr::null_mut()) });
            assert_eq!(fault.map_err(|f| f.message), Err("seven hundred".into()), "{n} threads");
        }
        assert!(DONE.load(Ordering::Relaxed) < 5000);
        static SUM: AtomicU32 = AtomicU32::new(0);
        unsafe extern "C" fn add(_: *mut c_void, from: i64, to: i64) {
            SUM.fetch_add((to - from) as u32, Ordering::Relaxed);
        }
        // SAFETY: the body takes any environment.
        unsafe { nyala_parallel(0, 0, 1000, add, std::ptr::null_mut()) }
        assert_eq!(SUM.load(Ordering::Relaxed), 1000, "the threads are there for the next loop");
    }

    #[test]
    fn nested_loops_have_their_faults() {
        unsafe extern "C" fn inner(_: *mut c_void, from: i64, to: i64) {
            if from <= 3 && 3 < to {
                crate::system::fail("three");
            }
        }
        unsafe extern "C" fn outer(_: *mut c_void, _: i64, _: i64) {
            // SAFETY: the body takes any environment.
            unsafe { nyala_parallel(0, 0, 100, inner, std::ptr::null_mut()) }
        }
        let all = || {
            for _ in 0..50 {
                // SAFETY: as above.
                let fault = guard(|| unsafe { nyala_parallel(0, 0, 20, outer, std::ptr::null_mut()) });
                assert_eq!(fault.map_err(|f| f.message), Err("three".into()));
            }
        };
        std::thread::scope(|s| (0..3).for_each(|_| drop(s.spawn(all))));
    }

    #[test]
    fn a_thread_gives_its_fault_to_whoever_waits() {
        unsafe extern "C" fn body(_: *mut c_void) {
            crate::system::fail("spawned")
        }
        let fault = guard(|| {
            let handle = nyala_spawn_handle();
            // SAFETY: the body takes any environment.
            unsafe { nyala_spawn(handle, body, std::ptr::null_mut()) };
            nyala_sync(handle);
        });
        assert_eq!(fault.map_err(|f| f.message), Err("spawned".into()));
    }
}
