//! Environments of function values: memory with a count of the values that hold it. Separate from other memory because
//! compiled programs do not free environments; the release of the last holder does.
//!
//! ```text
//! count: i64 | layout: *const i64 | captured values …          layout: align, n, n offsets of environments captured
//!                                 ^ the environment
//! ```
//!
//! A negative count means that the environment is never freed: it lies on a stack.

use std::sync::atomic::{AtomicI64, Ordering, fence};

/// The header before an environment.
#[repr(C)]
struct Header {
    count: AtomicI64,
    /// Layout of the captured values; while the environment is being freed, the next one to be freed.
    layout: *const i64,
}

const HEADER: usize = size_of::<Header>();

/// Bytes before an environment, which end with its header.
fn room(align: i64) -> usize {
    HEADER.max(align as usize)
}

/// Allocates an environment: `size` undefined bytes for captured values of that layout, with a count of one. Ends the
/// program if there is no memory.
///
/// # Safety
/// `layout` points to an alignment, a number of offsets, and the offsets, in memory that is never freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_environment(size: i64, layout: *const i64) -> *mut u8 {
    // SAFETY: the caller's promise; the alignment is a power of two.
    unsafe {
        make(size, layout, |bytes, align| {
            let mut made = std::ptr::null_mut();
            match align <= HEADER {
                true => made = libc::malloc(bytes),
                false => drop(libc::posix_memalign(&mut made, align, bytes)),
            }
            made.cast()
        })
    }
}

/// [`nyala_environment`] in memory of `--check`, which knows which bytes are initialized.
///
/// # Safety
/// As of [`nyala_environment`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_environment(size: i64, layout: *const i64) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { make(size, layout, |bytes, align| crate::checks::allocate(bytes, align.max(HEADER))) }
}

/// # Safety
/// As of [`nyala_environment`]; `allocate` gives memory of that size and alignment, or null.
unsafe fn make(size: i64, layout: *const i64, allocate: impl Fn(usize, usize) -> *mut u8) -> *mut u8 {
    // SAFETY: the caller's promise; what is written lies in the memory that was given.
    unsafe {
        let align = *layout;
        let room = room(align);
        let made = allocate(room + size as usize, align as usize);
        if made.is_null() {
            crate::system::fail(&format!("cannot allocate the {size} bytes that a function captures"))
        }
        let environment = made.add(room);
        header(environment).write(Header { count: AtomicI64::new(1), layout });
        environment
    }
}

/// [`nyala_environment`] for one variable that several function values may share.
///
/// # Safety
/// As of [`nyala_environment`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_variable(size: i64, layout: *const i64) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { nyala_environment(size, layout) }
}

/// # Safety
/// `environment` is one.
unsafe fn header(environment: *mut u8) -> *mut Header {
    // SAFETY: the caller's promise.
    unsafe { environment.sub(HEADER).cast() }
}

/// Adds a holder to the environment; null is allowed.
///
/// # Safety
/// `environment` is null, or one that is held; only this thread holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_retain(environment: *mut u8) {
    if !environment.is_null() {
        // SAFETY: the caller's promise.
        let count = unsafe { &(*header(environment)).count };
        let n = count.load(Ordering::Relaxed);
        if n >= 0 {
            count.store(n + 1, Ordering::Relaxed);
        }
    }
}

/// Removes a holder from the environment. With its last holder it is freed, and the environments that it captured lose
/// a holder; null is allowed.
///
/// # Safety
/// `environment` is null, or one that is held by the value; only this thread holds it and what it captured.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_release(environment: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        release(environment, |count| {
            let n = count.load(Ordering::Relaxed);
            if n >= 0 {
                count.store(n - 1, Ordering::Relaxed);
            }
            n == 1
        })
    }
}

/// [`nyala_retain`] where other threads may hold the environment.
///
/// # Safety
/// `environment` is null, or one that is held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_retain_shared(environment: *mut u8) {
    if !environment.is_null() {
        // SAFETY: the caller's promise.
        let count = unsafe { &(*header(environment)).count };
        if count.load(Ordering::Relaxed) >= 0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// [`nyala_release`] where other threads may hold the environment.
///
/// # Safety
/// `environment` is null, or one that is held by the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_release_shared(environment: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        release(environment, |count| {
            let is_last = count.load(Ordering::Relaxed) >= 0 && count.fetch_sub(1, Ordering::Release) == 1;
            if is_last {
                fence(Ordering::Acquire);
            }
            is_last
        })
    }
}

/// Releases an environment. Chains of environments may be long, so those to be freed form a list, in their own headers.
///
/// # Safety
/// As of [`nyala_release`].
unsafe fn release(environment: *mut u8, is_last: impl Fn(&AtomicI64) -> bool) {
    // SAFETY: environments are held until their counts are 0; one whose count is 0 is ours.
    unsafe {
        if environment.is_null() || !is_last(&(*header(environment)).count) {
            return;
        }
        let mut next = environment;
        (*header(next)).count = AtomicI64::new(0);
        while !next.is_null() {
            let environment = next;
            let Header { count, layout } = header(environment).read();
            next = count.into_inner() as *mut u8;
            for i in 0..*layout.add(1) as usize {
                let captured = environment.add(*layout.add(2 + i) as usize).cast::<*mut u8>().read();
                if !captured.is_null() && is_last(&(*header(captured)).count) {
                    (*header(captured)).count = AtomicI64::new(next as i64);
                    next = captured;
                }
            }
            crate::nyala_free(environment.sub(room(*layout)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer to an environment, and a number.
    static LAYOUT: [i64; 3] = [8, 1, 0];
    static ALIGNED: [i64; 3] = [64, 1, 0];

    #[test]
    fn long_chains_are_freed_without_recursion() {
        for layout in [&LAYOUT, &ALIGNED] {
            // SAFETY: each captures the one before.
            unsafe {
                let mut last: *mut u8 = std::ptr::null_mut();
                for _ in 0..1_000_000 {
                    let new = nyala_environment(16, layout.as_ptr());
                    assert!((new as usize).is_multiple_of(layout[0] as usize));
                    new.cast::<*mut u8>().write(last);
                    last = new;
                }
                nyala_retain(last);
                nyala_release(last);
                assert_eq!((*header(last)).count.load(Ordering::Relaxed), 1);
                nyala_release(last);
            }
        }
    }

    #[test]
    fn null_and_environments_on_stacks_are_left_alone() {
        #[repr(C)]
        struct OnStack(Header, u64);
        let mut on_stack = OnStack(Header { count: AtomicI64::new(-1), layout: LAYOUT.as_ptr() }, 7);
        let environment: *mut u8 = (&raw mut on_stack.1).cast();
        // SAFETY: the header stands before it.
        unsafe {
            for environment in [std::ptr::null_mut(), environment] {
                nyala_retain(environment);
                nyala_release(environment);
                nyala_retain_shared(environment);
                nyala_release_shared(environment);
            }
        }
        assert_eq!(on_stack.0.count.into_inner(), -1);
        assert_eq!(on_stack.1, 7);
    }

    #[test]
    fn threads_share_environments() {
        // SAFETY: held once by each thread and once here.
        unsafe {
            let environment = nyala_environment(16, LAYOUT.as_ptr());
            environment.cast::<*mut u8>().write(std::ptr::null_mut());
            let address = environment as usize;
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(move || {
                        for _ in 0..10_000 {
                            nyala_retain_shared(address as *mut u8);
                            nyala_release_shared(address as *mut u8);
                        }
                    });
                }
            });
            assert_eq!((*header(environment)).count.load(Ordering::Relaxed), 1);
            nyala_release_shared(environment);
        }
    }
}
