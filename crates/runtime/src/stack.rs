//! The stack that programs run on, for compiled and JIT-compiled ones alike: that of a separate thread, with a gigabyte
//! of address space, of which only touched pages take memory, and a guard area below.

use crate::faults::{Fault, FaultKind, handle_faults, prepare_thread};
use crate::places::Places;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

/// Size of the program's stack in bytes of address space.
pub const STACK: usize = 1 << 30;
/// Size in bytes of the guard area below it. Compiled functions touch every page of their frames in order, C functions
/// need not.
pub const GUARD: usize = 64 << 10;

thread_local! {
    static IS_PROGRAM: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread was started by [`call_on_large_stack`].
pub(crate) fn is_program_thread() -> bool {
    IS_PROGRAM.get()
}

struct Call {
    f: Option<Box<dyn FnOnce() -> i32 + Send>>,
    result: i32,
}

extern "C" fn thread(call: *mut c_void) -> *mut c_void {
    // SAFETY: `call_on_large_stack` passes a call, and waits for this thread before it touches it again.
    let call = unsafe { &mut *call.cast::<Call>() };
    IS_PROGRAM.set(true);
    let _handler = prepare_thread();
    if let Some(f) = call.f.take() {
        call.result = f();
    }
    std::ptr::null_mut()
}

/// Runs `f`, which must not unwind, on a stack of [`STACK`] bytes; returns its result.
///
/// # Errors
/// No memory for the stack.
pub fn call_on_large_stack(f: Box<dyn FnOnce() -> i32 + Send>) -> Result<i32, String> {
    let mut call = Call { f: Some(f), result: 0 };
    let id = start(&mut call)?;
    // SAFETY: the thread runs, and nobody else waits for it.
    unsafe { libc::pthread_join(id, std::ptr::null_mut()) };
    Ok(call.result)
}

/// Starts a thread that runs a call. The call must live as long as the thread.
fn start(call: *mut Call) -> Result<libc::pthread_t, String> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialized before their use and destroyed once; the call lives as long as the thread.
    let status = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK + GUARD);
        libc::pthread_attr_setguardsize(attributes.as_mut_ptr(), GUARD);
        let status = libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), thread, call.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        status
    };
    match status {
        // SAFETY: there is a thread, so it has an id.
        0 => Ok(unsafe { id.assume_init() }),
        e => Err(format!("no memory for the program's stack of {} MiB: {}", STACK >> 20, os_error(e))),
    }
}

fn os_error(code: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(code)
}

/// Starts a built executable: runs the program's entry function on a large stack with the process's arguments; returns
/// the exit code.
///
/// # Safety
/// As C promises for `main`: `argv` points to `argc` texts, then a null. `main` is code of that type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_start(
    main: extern "C" fn(i32, *const *const c_char) -> i32,
    argc: i32,
    argv: *const *const c_char,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nyala_start_with_places(main, argc, argv, std::ptr::null()) }
}

/// Like [`nyala_start`]; reports of faults name functions and lines of the table.
///
/// # Safety
/// As for `nyala_start`; `places` is null or a table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_start_with_places(
    main: extern "C" fn(i32, *const *const c_char) -> i32,
    argc: i32,
    argv: *const *const c_char,
    places: *const Places,
) -> i32 {
    // SAFETY: the caller's promise. The table is a constant.
    let places: Option<&'static Places> = unsafe { places.as_ref() };
    let describe = move |fault: &Fault| {
        // SAFETY: the caller's promise.
        let place = places.and_then(|places| unsafe { places.find(fault.instruction) }).unwrap_or_default();
        let address = fault.address.filter(|_| fault.kind == FaultKind::Access);
        let address = address.map(|a| format!(" at address {a:#x}")).unwrap_or_default();
        let kernel = fault.kernel.as_ref();
        let kernel =
            kernel.map(|(name, place)| format!(", on a device; its last kernel is `{name}`, launched at {place}"));
        format!("error: {}{address}{place}{}\n", fault.kind.about(), kernel.unwrap_or_default())
    };
    // Without fault reports the program runs as well.
    let reporter = handle_faults(Box::new(describe), false).ok().flatten();
    crate::print::check_output_at_exit();
    // SAFETY: the caller's promise.
    unsafe { crate::system::set_argv(argc, argv) };
    let run = move || {
        let result = main(crate::nyala_argc(), crate::nyala_argv());
        // SAFETY: ends the process; the other thread only waits.
        unsafe { libc::exit(result) }
    };
    let mut call = Call { f: Some(Box::new(run)), result: 0 };
    match start(&mut call) {
        Ok(id) => {
            // This thread waits for faults and reports them, which saves another thread.
            if let Some(reporter) = reporter {
                reporter.wait();
            }
            // SAFETY: the thread runs until the process ends.
            unsafe { libc::pthread_join(id, std::ptr::null_mut()) };
            1
        }
        Err(e) => {
            eprintln!("error: {e}");
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_stack() {
        fn deep(n: u64) -> u64 {
            let page = std::hint::black_box([n; 512]);
            if n == 0 { 0 } else { deep(n - 1) + page[511] }
        }
        let expected = (1..=20_000).sum::<u64>();
        assert_eq!(call_on_large_stack(Box::new(move || (deep(20_000) == expected) as i32)), Ok(1));
    }
}
