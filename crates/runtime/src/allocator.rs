//! The compiler's allocator: small blocks by another allocator, large ones in mappings of their own. A block that grows
//! by doubling, as a compiler's tables do, is then moved by the system instead of being copied each time, which takes a
//! fifth of the time of a large program.
//!
//! Large pages are used only in large programs: clearing one takes half a millisecond, as long as a small program needs
//! in all. So large blocks have them, and small blocks once a block has grown large.

use std::alloc::{GlobalAlloc, Layout};

/// Uses `A` for small blocks, and for those aligned to more than a page.
pub struct Remapping<A>(pub A);

/// Size in bytes from which on a block has a mapping of its own: that of a large page.
const LARGE: usize = 2 << 20;
const PAGE: usize = 4096;
/// Size in bytes of a growing block from which on a program counts as large.
const GROWN: usize = 512 << 10;
/// Size in bytes of the regions that the allocator of small blocks usually requests from the system.
const REGION: usize = 1 << 30;

fn is_large(size: usize, align: usize) -> bool {
    cfg!(target_os = "linux") && size >= LARGE && align <= PAGE
}

#[cfg(target_os = "linux")]
mod mapping {
    use super::{LARGE, REGION};
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rounds a size up to a multiple of large pages.
    fn mapped(size: usize) -> usize {
        size.saturating_add(LARGE - 1) & !(LARGE - 1)
    }

    /// Makes a mapping. Null if there is no memory.
    pub fn make(size: usize) -> *mut u8 {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, of which nobody knows yet.
        let at = unsafe { libc::mmap(null_mut(), mapped(size), access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return null_mut();
        }
        // SAFETY: of the mapping just made. It is advice: what comes of it does not matter.
        unsafe { libc::madvise(at, mapped(size), libc::MADV_HUGEPAGE) };
        at.cast()
    }

    /// Advises the system to use large pages for small blocks in the region around this one, where pages are new.
    pub fn advise_around(at: *mut u8) {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let start = at.wrapping_sub(at as usize % REGION);
        if LAST.swap(start as usize, Ordering::Relaxed) == start as usize {
            return;
        }
        // SAFETY: it is advice, whatever is mapped there.
        unsafe { libc::madvise(start.cast(), REGION, libc::MADV_HUGEPAGE) };
    }

    /// Resizes a mapping. Null if there is no memory; then it stays as it was.
    ///
    /// # Safety
    /// `at` was made with `size`; nothing uses the part beyond `new_size` any more, nor the old address if a new one is
    /// returned.
    pub unsafe fn resize(at: *mut u8, size: usize, new_size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let at = unsafe { libc::mremap(at.cast(), mapped(size), mapped(new_size), libc::MREMAP_MAYMOVE) };
        if at == libc::MAP_FAILED { null_mut() } else { at.cast() }
    }

    /// # Safety
    /// `at` was made with `size`, and nobody uses it any more.
    pub unsafe fn free(at: *mut u8, size: usize) {
        // SAFETY: as the caller promises.
        unsafe { libc::munmap(at.cast(), mapped(size)) };
    }
}

/// Without mappings: no block is [large](is_large).
#[cfg(not(target_os = "linux"))]
mod mapping {
    pub fn make(_: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
    pub fn advise_around(_: *mut u8) {}
    pub unsafe fn resize(_: *mut u8, _: usize, _: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
    pub unsafe fn free(_: *mut u8, _: usize) {}
}

// SAFETY: the layout tells whether a block is `A`'s or a mapping, in the same way when it is made, resized and freed.
// Mappings are at least as large as their blocks, start at pages and are zero at first.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Remapping<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_large(layout.size(), layout.align()) {
            true => mapping::make(layout.size()),
            // SAFETY: as the caller promises.
            false => unsafe { self.0.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_large(layout.size(), layout.align()) {
            true => mapping::make(layout.size()),
            // SAFETY: as the caller promises.
            false => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        match is_large(layout.size(), layout.align()) {
            // SAFETY: the mapping that `alloc` or `realloc` made for this layout; nobody uses it any more.
            true => unsafe { mapping::free(at, layout.size()) },
            // SAFETY: as the caller promises.
            false => unsafe { self.0.dealloc(at, layout) },
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (was, is_now) = (is_large(layout.size(), layout.align()), is_large(new_size, layout.align()));
        if !was && new_size >= GROWN {
            mapping::advise_around(at);
        }
        match (was, is_now) {
            // SAFETY: the mapping of this layout; who asks for another size uses the new address from now on.
            (true, true) => unsafe { mapping::resize(at, layout.size(), new_size) },
            // SAFETY: as the caller promises.
            (false, false) => unsafe { self.0.realloc(at, layout, new_size) },
            (..) => {
                // SAFETY: `layout` is of a block, its alignment is one; the caller promises that the size fits it. Both
                // blocks have as many bytes as are copied, and the new one is nobody's yet.
                unsafe {
                    let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
                    if !new.is_null() {
                        std::ptr::copy_nonoverlapping(at, new, layout.size().min(new_size));
                        self.dealloc(at, layout);
                    }
                    new
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    fn blocks_keep_their_contents() {
        let allocator = Remapping(System);
        let sizes = [1 << 10, 3 << 20, 4 << 20, 21 << 20, 5 << 20, 2 << 20, 100];
        let byte = |i: usize| ((i * 31) >> 8) as u8 ^ i as u8;
        for align in [8, 4096, 1 << 16] {
            let mut layout = Layout::from_size_align(sizes[0], align).unwrap();
            // SAFETY: each block is used within its size and freed by its layout.
            unsafe {
                let mut at = allocator.alloc(layout);
                (0..sizes[0]).for_each(|i| at.add(i).write(byte(i)));
                for size in sizes.into_iter().skip(1) {
                    at = allocator.realloc(at, layout, size);
                    assert!(!at.is_null() && (at as usize).is_multiple_of(align), "{align} {size}");
                    let kept = layout.size().min(size);
                    assert!((0..kept).all(|i| at.add(i).read() == byte(i)), "{align} {size}");
                    (kept..size).for_each(|i| at.add(i).write(byte(i)));
                    layout = Layout::from_size_align(size, align).unwrap();
                }
                allocator.dealloc(at, layout);
            }
        }
    }

    #[test]
    fn zeroed_blocks_are_zero() {
        let allocator = Remapping(System);
        for size in [100, 1 << 20, 9 << 20] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the block is used within its size and freed by its layout.
            unsafe {
                let at = allocator.alloc_zeroed(layout);
                assert!((0..size).all(|i| at.add(i).read() == 0));
                allocator.dealloc(at, layout);
            }
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let layout = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: no block is made.
        assert!(unsafe { Remapping(System).alloc(layout) }.is_null());
    }
}
