//! Aligned allocation for programs.

/// Size in bytes from which on memory is requested in huge pages.
const HUGE: usize = 2 << 20;

/// Allocates `bytes` undefined bytes, aligned to 64; null if there is no memory (or `bytes` is negative).
#[unsafe(no_mangle)]
pub extern "C" fn nyala_alloc(bytes: i64) -> *mut u8 {
    aligned(bytes, 64)
}

/// The greatest alignment that can be requested.
pub(crate) const MAX_ALIGN: usize = 1 << 20;

/// Allocates like [`nyala_alloc`], with another alignment, a power of two.
pub(crate) fn aligned(bytes: i64, align: usize) -> *mut u8 {
    let Ok(bytes) = usize::try_from(bytes) else { return std::ptr::null_mut() };
    let align = if bytes >= HUGE { HUGE } else { align.clamp(64, MAX_ALIGN) };
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the alignment is a power of two and a multiple of a pointer's size; `pointer` is written on success only.
    unsafe {
        if libc::posix_memalign(&mut pointer, align, bytes.max(1)) != 0 {
            return std::ptr::null_mut();
        }
        if bytes >= HUGE {
            // This is advice: nothing depends on it.
            libc::madvise(pointer, bytes, libc::MADV_HUGEPAGE);
        }
    }
    pointer.cast()
}

/// Allocates memory for `n` elements of `size` bytes, as `~[n: T]` does; ends the program if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_alloc_array(n: i64, size: i64) -> *mut u8 {
    nyala_alloc_aligned_array(n, size, 64)
}

/// Like [`nyala_alloc_array`], for elements with an alignment above 64, a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_alloc_aligned_array(n: i64, size: i64, align: i64) -> *mut u8 {
    let align = usize::try_from(align).map_or(64, |a| a.next_power_of_two());
    let pointer = n.checked_mul(size).map_or(std::ptr::null_mut(), |bytes| aligned(bytes, align));
    if pointer.is_null() {
        crate::system::fail(&format!("cannot allocate {n} elements of {size} bytes"))
    }
    pointer
}

/// Frees memory of [`nyala_alloc`]; null is allowed.
///
/// # Safety
/// `pointer` is null or was returned by `nyala_alloc` and not freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_free(pointer: *mut u8) {
    if crate::checks::has_block(pointer as usize) {
        // SAFETY: without texts, nothing is read. The runtime frees what a checked program has allocated.
        return unsafe { crate::nyala_check_free(pointer, std::ptr::null(), std::ptr::null()) };
    }
    // SAFETY: the caller's promise.
    unsafe { libc::free(pointer.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_writable() {
        for bytes in [0, 1, 63, 4096, 5 << 20] {
            let p = nyala_alloc(bytes);
            assert!(!p.is_null() && (p as usize).is_multiple_of(64));
            // SAFETY: just allocated.
            unsafe {
                p.write_bytes(1, bytes as usize);
                nyala_free(p);
            }
        }
        for align in [128, 512, 1 << 40] {
            let p = nyala_alloc_aligned_array(3, 100, align);
            assert!(!p.is_null() && (p as usize).is_multiple_of(align.min(512) as usize));
            // SAFETY: just allocated.
            unsafe { nyala_free(p) };
        }
        assert!(nyala_alloc(-1).is_null());
        assert!(nyala_alloc(i64::MAX).is_null());
    }
}
