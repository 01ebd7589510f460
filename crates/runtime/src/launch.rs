//! Launches of kernels on the host. Compiled code has one function for a range of blocks; the blocks run in parallel, each
//! on one thread (`flat`, `kernels.rs`).

use crate::anydsl::PLATFORMS;
use crate::print::nyala_flush;
use crate::system::{fail, nyala_exit, nyala_time_ns};
use crate::threads::{LoopBody, nyala_parallel};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

/// Nanoseconds that kernels have run so far.
static KERNEL_TIME: AtomicI64 = AtomicI64::new(0);

/// Nanoseconds that kernels have run so far, on all devices.
pub(crate) fn kernel_time() -> i64 {
    KERNEL_TIME.load(Ordering::Relaxed)
}

/// # Safety
/// `name` is null or points to bytes that end with a zero byte.
unsafe fn text<'a>(name: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    if name.is_null() { "".into() } else { unsafe { CStr::from_ptr(name) }.to_string_lossy() }
}

/// Runs a kernel and returns when it has ended. `env` begins with six `i32`: the work items of the grid on three axes,
/// and those of a block; the first three become the numbers of blocks. `n`: the number of threads, 0 for the default.
///
/// # Safety
/// `body` can be called with `env` and any range of blocks, from several threads at once; `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_launch(n: i32, body: LoopBody, env: *mut c_void, name: *const c_char) {
    // SAFETY: the caller's promise.
    let numbers = unsafe { &mut *env.cast::<[i32; 6]>() };
    let mut all: i64 = 1;
    for axis in 0..3 {
        let (items, size) = (i64::from(numbers[axis]), i64::from(numbers[axis + 3]));
        if size <= 0 {
            // SAFETY: the caller's promise.
            let name = unsafe { text(name) };
            fail(&format!(
                "kernel `{name}` is launched with {size} work items in a block, on axis {}",
                ["x", "y", "z"][axis]
            ))
        }
        let blocks = (items.max(0) + size - 1) / size;
        numbers[axis] = blocks as i32;
        all = all.saturating_mul(blocks);
    }
    let before = nyala_time_ns();
    // SAFETY: the caller's promise.
    unsafe { nyala_parallel(n, 0, all, body, env) };
    KERNEL_TIME.fetch_add(nyala_time_ns() - before, Ordering::Relaxed);
}

/// Ends the process with code 1: a kernel is launched on a device for which no code was made.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_launch_missing(platform: i32, device: i32, name: *const c_char) -> ! {
    nyala_flush();
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    let platform_name = PLATFORMS.get(platform as usize).unwrap_or(&"unknown");
    eprintln!(
        "kernel `{name}`: platform {platform}, {platform_name}, is not there (device {device} of it was asked for); compile with `--device host` to run it on this machine's CPU"
    );
    nyala_exit(1)
}

/// Ends the process: the work items of a block disagree about a branch on which a barrier depends.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_diverged(name: *const c_char) -> ! {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    fail(&format!("work items of one block of kernel `{name}` wait for each other at different barriers"))
}
