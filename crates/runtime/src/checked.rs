//! Memory for checked execution: real addresses, with a shadow byte for each byte that says which accesses are allowed.
//!
//! All of it lies in one reserved range of addresses, so that any address tells at once whether it belongs to it.
//! Blocks are separated by redzones, and freed ones stay in a quarantine before their memory is used again; so an
//! access out of bounds or after the end of a block's life meets a shadow byte that forbids it. Other memory is
//! foreign: it may be accessed where the operating system lets this process do so.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The reason why an access is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFault {
    /// At or near address zero.
    Null,
    /// Outside of all blocks.
    OutOfBounds,
    /// In a block that was freed, or a local variable of a function that has returned.
    Dangling,
    /// A read of uninitialized bytes.
    Uninitialized,
    /// Foreign memory that this process cannot access in this way.
    Wild,
    /// Freeing an address that is not a block's start.
    NotABlock,
    /// By the host, in memory of a device.
    OnDevice,
    /// An allocation finds no room, or would exceed the bytes granted by [`CheckedMemory::confine`].
    OutOfMemory,
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            MemoryFault::Null => "access through a null pointer",
            MemoryFault::OutOfBounds => "access out of bounds",
            MemoryFault::Dangling => "access to memory whose life has ended",
            MemoryFault::Uninitialized => "read of uninitialized memory",
            MemoryFault::Wild => "access to an address that is not the program's",
            MemoryFault::NotABlock => "release of an address that is no allocated block",
            MemoryFault::OnDevice => "access of the host to memory of a device",
            MemoryFault::OutOfMemory => "out of memory",
        })
    }
}

// States of bytes in the shadow.
const REDZONE: u8 = 0;
const UNINIT: u8 = 1;
const INIT: u8 = 2;
const FREED: u8 = 3;
/// Added to the state of live bytes in memory of a device.
const DEVICE: u8 = 4;

/// The state of a byte, wherever it is.
#[inline]
fn state(s: u8) -> u8 {
    s & !DEVICE
}

fn is_live(s: u8) -> bool {
    matches!(state(s), UNINIT | INIT)
}

/// Size of the header before each block: its payload's size, start and size of all that it occupies, and a mark.
const HEADER: usize = 32;
const MARK: usize = 0x6e79_616c_6121;
/// The mark of a block that the program may give back.
const GIVEN: usize = MARK + 1;
/// The least distance in bytes from a block's end to the next block's header.
const MIN_REDZONE: usize = 16;
/// Number of freed bytes that stay in the quarantine.
const QUARANTINE: usize = 4 << 20;
/// Size in bytes from which on blocks are also listed by address.
const LARGE: usize = 4096;

/// A heap whose every access can be checked. Its addresses are reserved when the first block is made: many programs
/// that are computed during compilation never make one.
pub struct CheckedMemory {
    base: usize,
    /// Size of the reserved range; 0 until it is reserved.
    size: usize,
    shadow: usize,
    /// End of the memory that was ever handed out, relative to the base.
    top: usize,
    /// Free memory by size class.
    free: BTreeMap<usize, Vec<usize>>,
    quarantine: VecDeque<(usize, usize)>,
    quarantined: usize,
    /// Large blocks: size of the payload, and whether all of it is known to be initialized.
    large: BTreeMap<usize, (usize, bool)>,
    /// Readable foreign ranges and whether they are writable, by end, as of the last look.
    foreign: BTreeMap<usize, (usize, bool)>,
    /// Bytes in live blocks.
    pub live_bytes: usize,
    /// Maximal number of such bytes: at most half of the machine's memory.
    limit: usize,
    /// Whether foreign memory is out of bounds.
    is_confined: bool,
    /// Whether code of a device runs, which may access its memory.
    pub on_device: bool,
}

/// Reserves addresses without memory.
fn reserve(size: usize) -> Option<usize> {
    // SAFETY: a fresh anonymous mapping at an address of the system's choice.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (p != libc::MAP_FAILED).then_some(p as usize)
}

/// Size of the machine's memory in bytes.
fn machine_memory() -> usize {
    // SAFETY: asks for numbers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    usize::try_from(pages).ok().zip(usize::try_from(size).ok()).map_or(1 << 32, |(p, s)| p.saturating_mul(s))
}

fn unmap(base: usize, size: usize) {
    // SAFETY: only called with what `reserve` returned, once.
    unsafe {
        libc::munmap(base as *mut libc::c_void, size);
    }
}

impl Default for CheckedMemory {
    /// Empty memory.
    fn default() -> CheckedMemory {
        CheckedMemory {
            base: 0,
            size: 0,
            shadow: 0,
            top: 64,
            free: BTreeMap::new(),
            quarantine: VecDeque::new(),
            quarantined: 0,
            large: BTreeMap::new(),
            foreign: BTreeMap::new(),
            live_bytes: 0,
            limit: usize::MAX,
            is_confined: false,
            on_device: false,
        }
    }
}

impl CheckedMemory {
    /// Reserves as many addresses as the system allows.
    #[cold]
    fn reserve(&mut self) -> Result<(), MemoryFault> {
        for size in (28..=38).rev().map(|bits| 1usize << bits) {
            let Some(base) = reserve(size) else { continue };
            let Some(shadow) = reserve(size) else {
                unmap(base, size);
                continue;
            };
            (self.base, self.size, self.shadow) = (base, size, shadow);
            self.limit = self.limit.min(machine_memory() / 2);
            return Ok(());
        }
        Err(MemoryFault::OutOfMemory)
    }

    /// Whether an address lies in this memory, allocated or not.
    pub fn owns(&self, addr: usize) -> bool {
        self.contains(addr)
    }

    #[inline]
    fn contains(&self, addr: usize) -> bool {
        addr.wrapping_sub(self.base) < self.size
    }

    /// The shadow of `n` bytes that lie inside the arena.
    #[inline]
    fn shadow(&self, addr: usize, n: usize) -> &[u8] {
        debug_assert!(self.contains(addr) && n <= self.size - (addr - self.base));
        // SAFETY: inside the shadow's mapping, which only `shadow_mut` writes, through `&mut self`.
        unsafe { std::slice::from_raw_parts((self.shadow + (addr - self.base)) as *const u8, n) }
    }

    #[inline]
    fn shadow_mut(&mut self, addr: usize, n: usize) -> &mut [u8] {
        debug_assert!(self.contains(addr) && n <= self.size - (addr - self.base));
        // SAFETY: as for `shadow`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut((self.shadow + (addr - self.base)) as *mut u8, n) }
    }

    /// The header before a block.
    fn header(&self, block: usize) -> *mut [usize; 4] {
        (block - HEADER) as *mut [usize; 4]
    }

    /// Limits the total size of live blocks to `bytes`, and forbids accesses to foreign memory.
    pub fn confine(&mut self, bytes: usize) {
        self.limit = self.limit.min(bytes);
        self.is_confined = true;
    }

    /// A new block of uninitialized bytes.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Result<usize, MemoryFault> {
        let align = align.max(16).checked_next_power_of_two().ok_or(MemoryFault::OutOfMemory)?;
        let slack = if align > 16 { align } else { 0 };
        let need =
            bytes.checked_add(HEADER + MIN_REDZONE + slack + (bytes / 8).min(2048)).ok_or(MemoryFault::OutOfMemory)?;
        let class = size_class(need).ok_or(MemoryFault::OutOfMemory)?;
        if self.size == 0 {
            self.reserve()?;
        }
        if self.live_bytes.saturating_add(bytes) > self.limit {
            return Err(MemoryFault::OutOfMemory);
        }
        let start = match self.free.get_mut(&class).and_then(Vec::pop) {
            Some(start) => start,
            None => {
                if class > self.size - self.top {
                    return Err(MemoryFault::OutOfMemory);
                }
                self.top += class;
                self.base + self.top - class
            }
        };
        let block = (start + HEADER).next_multiple_of(align);
        self.shadow_mut(start, block - start).fill(REDZONE);
        self.shadow_mut(block, bytes).fill(UNINIT);
        let end = block + bytes;
        self.shadow_mut(end, start + class - end).fill(REDZONE);
        // SAFETY: the header lies between `start` and the block, inside the arena, aligned to 16.
        unsafe { *self.header(block) = [bytes, start, class, MARK] };
        if bytes >= LARGE {
            self.large.insert(block, (bytes, false));
        }
        self.live_bytes += bytes;
        Ok(block)
    }

    /// The size of the block that starts at `addr`.
    pub fn block_size(&self, addr: usize) -> Result<usize, MemoryFault> {
        if !self.contains(addr) || addr - self.base < 64 + HEADER || !addr.is_multiple_of(16) {
            return Err(MemoryFault::NotABlock);
        }
        // SAFETY: inside the arena; whether it is a header is checked by its content.
        let [bytes, _, _, mark] = unsafe { *self.header(addr) };
        let plausible = matches!(mark, MARK | GIVEN) && bytes <= self.size - (addr - self.base);
        if self.shadow(addr - 1, 1)[0] != REDZONE || !plausible {
            return Err(MemoryFault::NotABlock);
        }
        match (bytes, self.shadow(addr, 1)[0]) {
            (0, _) => Ok(0),
            (_, FREED) => Err(MemoryFault::Dangling),
            (_, s) if is_live(s) => Ok(bytes),
            _ => Err(MemoryFault::NotABlock),
        }
    }

    /// Gives a block to the program, which may give it back by [`CheckedMemory::give_back`]. Other blocks are variables and the like.
    pub fn give(&mut self, block: usize) {
        if self.block_size(block).is_ok() {
            // SAFETY: `block_size` has found a header.
            unsafe { (*self.header(block))[3] = GIVEN }
        }
    }

    /// Ends the life of the block that starts at `addr`, which was given to the program.
    pub fn give_back(&mut self, addr: usize) -> Result<(), MemoryFault> {
        self.block_size(addr)?;
        // SAFETY: `block_size` has found a header.
        match unsafe { (*self.header(addr))[3] } {
            GIVEN => self.free(addr),
            _ => Err(MemoryFault::NotABlock),
        }
    }

    /// Ends the life of the block that starts at `addr`.
    pub fn free(&mut self, addr: usize) -> Result<(), MemoryFault> {
        let bytes = self.block_size(addr)?;
        // SAFETY: `block_size` has found a header.
        let [_, start, class, _] = unsafe { *self.header(addr) };
        self.shadow_mut(addr, bytes).fill(FREED);
        if bytes >= LARGE {
            self.large.remove(&addr);
        }
        self.live_bytes -= bytes;
        if bytes == 0 {
            // An empty block leaves no trace of its end in the shadow, so its address is not used again.
            return Ok(());
        }
        self.quarantine.push_back((start, class));
        self.quarantined += class;
        while self.quarantined > QUARANTINE
            && let Some((start, class)) = self.quarantine.pop_front()
        {
            self.quarantined -= class;
            self.release(start, class);
        }
        Ok(())
    }

    fn release(&mut self, start: usize, class: usize) {
        if class >= 1 << 20 {
            let page = 4096;
            let from = start.next_multiple_of(page);
            let len = (start + class - from) / page * page;
            // SAFETY: whole pages of a block that nobody uses; they read as zero afterwards, the shadow as redzone.
            unsafe {
                libc::madvise(from as *mut libc::c_void, len, libc::MADV_DONTNEED);
                let shadow = (self.shadow + (from - self.base)).next_multiple_of(page);
                libc::madvise(shadow as *mut libc::c_void, len.saturating_sub(page), libc::MADV_DONTNEED);
            }
        }
        self.free.entry(class).or_default().push(start);
    }

    /// Whether `n` bytes at `addr` may be read: inside one block and initialized.
    #[inline]
    pub fn check_read(&mut self, addr: usize, n: usize) -> Result<(), MemoryFault> {
        if self.contains(addr) && n <= self.size - (addr - self.base) {
            let shadow = self.shadow(addr, n);
            let fine = match n {
                4 => shadow == [INIT; 4],
                8 => shadow == [INIT; 8],
                1 => shadow == [INIT],
                _ => shadow.iter().all(|&s| s == INIT),
            };
            return if fine { Ok(()) } else { self.explain(addr, n) };
        }
        self.check_foreign(addr, n, false)
    }

    /// Whether `n` bytes at `addr` may be written.
    #[inline]
    pub fn check_write(&mut self, addr: usize, n: usize) -> Result<(), MemoryFault> {
        if self.contains(addr) && n <= self.size - (addr - self.base) {
            // Live states are 1 and 2, the others 0 and 3, or more in memory of devices.
            if self.shadow(addr, n).iter().all(|&s| s == INIT || s == UNINIT) {
                return Ok(());
            }
            return match self.explain(addr, n) {
                Err(MemoryFault::Uninitialized) => Ok(()),
                other => other,
            };
        }
        self.check_foreign(addr, n, true)
    }

    #[cold]
    fn explain(&self, addr: usize, n: usize) -> Result<(), MemoryFault> {
        let shadow = self.shadow(addr, n);
        match shadow.iter().copied().find(|&s| s == REDZONE || s == FREED) {
            Some(REDZONE) => Err(MemoryFault::OutOfBounds),
            Some(_) => Err(MemoryFault::Dangling),
            None if !self.on_device && shadow.iter().any(|s| s & DEVICE != 0) => Err(MemoryFault::OnDevice),
            None if shadow.iter().any(|&s| state(s) == UNINIT) => Err(MemoryFault::Uninitialized),
            None => Ok(()),
        }
    }

    fn check_foreign(&mut self, addr: usize, n: usize, write: bool) -> Result<(), MemoryFault> {
        if addr < 1 << 16 {
            return Err(MemoryFault::Null);
        }
        let end = addr.checked_add(n).filter(|_| !self.is_confined).ok_or(MemoryFault::Wild)?;
        if self.foreign_allows(addr, end, write) {
            return Ok(());
        }
        self.read_maps();
        if self.foreign_allows(addr, end, write) { Ok(()) } else { Err(MemoryFault::Wild) }
    }

    fn foreign_allows(&self, addr: usize, end: usize, write: bool) -> bool {
        let mut from = addr;
        while from < end {
            match self.foreign.range(from + 1..).next() {
                Some((&hi, &(lo, writable))) if lo <= from && (writable || !write) => from = hi,
                _ => return false,
            }
        }
        true
    }

    /// Reads which memory this process has mapped.
    fn read_maps(&mut self) {
        self.foreign.clear();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        for line in maps.lines() {
            let mut words = line.split(' ');
            let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
            let Some((lo, hi)) = range.split_once('-') else { continue };
            let (Ok(lo), Ok(hi)) = (usize::from_str_radix(lo, 16), usize::from_str_radix(hi, 16)) else { continue };
            if let Some(rest) = rights.strip_prefix('r') {
                self.foreign.insert(hi, (lo, rest.starts_with('w')));
            }
        }
    }

    /// Sets the states of `n` bytes of one block.
    #[inline]
    fn set_states(&mut self, addr: usize, n: usize, state: u8) {
        let shadow = self.shadow_mut(addr, n);
        let device = shadow.first().map_or(0, |s| s & DEVICE);
        shadow.fill(state | device);
    }

    /// Makes the block that starts at `addr` memory of a device, which only code of devices may access.
    pub fn give_to_device(&mut self, addr: usize) {
        if let Ok(bytes) = self.block_size(addr) {
            self.shadow_mut(addr, bytes).iter_mut().for_each(|s| *s |= DEVICE);
        }
    }

    /// Whether an address is in memory of a device.
    pub fn is_of_device(&self, addr: usize) -> bool {
        self.contains(addr) && self.shadow(addr, 1)[0] & DEVICE != 0
    }

    /// Marks `n` bytes at `addr`, which may be written, as initialized or not. Foreign memory is always initialized.
    #[inline]
    pub fn set_initialized(&mut self, addr: usize, n: usize, initialized: bool) {
        if self.contains(addr) && n <= self.size - (addr - self.base) {
            self.set_states(addr, n, if initialized { INIT } else { UNINIT });
            if !initialized && let Some((_, (_, all))) = self.large.range_mut(..=addr).next_back() {
                *all = false;
            }
        }
    }

    /// Whether all of `n` bytes at `addr`, which may be accessed, are initialized.
    pub fn is_initialized(&self, addr: usize, n: usize) -> bool {
        !self.contains(addr) || self.shadow(addr, n).iter().all(|&s| state(s) == INIT)
    }

    /// Notes that a foreign function got `addr`: the whole block around it counts as initialized from now on.
    pub fn hand_out(&mut self, addr: usize) {
        if !self.contains(addr) {
            return;
        }
        if let Some((&start, &(size, all))) = self.large.range(..=addr).next_back()
            && addr < start + size
        {
            if !all {
                self.set_states(start, size, INIT);
                self.large.insert(start, (size, true));
            }
            return;
        }
        let mut lo = addr;
        while lo > self.base && is_live(self.shadow(lo - 1, 1)[0]) {
            lo -= 1;
        }
        let mut hi = addr;
        while hi < self.base + self.size && is_live(self.shadow(hi, 1)[0]) {
            hi += 1;
        }
        self.set_states(lo, hi - lo, INIT);
    }

    /// Loads an integer of `n` (1, 2, 4 or 8) bytes.
    #[inline]
    pub fn load(&mut self, addr: usize, n: usize) -> Result<u64, MemoryFault> {
        self.check_read(addr, n)?;
        // SAFETY: checked: inside a live block, or mapped foreign memory.
        unsafe {
            Ok(match n {
                1 => *(addr as *const u8) as u64,
                2 => (addr as *const u16).read_unaligned() as u64,
                4 => (addr as *const u32).read_unaligned() as u64,
                _ => (addr as *const u64).read_unaligned(),
            })
        }
    }

    /// Stores the low `n` (1, 2, 4 or 8) bytes of `bits`.
    #[inline]
    pub fn store(&mut self, addr: usize, n: usize, bits: u64) -> Result<(), MemoryFault> {
        self.check_write(addr, n)?;
        // SAFETY: checked: inside a live block, or mapped writable foreign memory.
        unsafe {
            match n {
                1 => *(addr as *mut u8) = bits as u8,
                2 => (addr as *mut u16).write_unaligned(bits as u16),
                4 => (addr as *mut u32).write_unaligned(bits as u32),
                _ => (addr as *mut u64).write_unaligned(bits),
            }
        }
        self.set_initialized(addr, n, true);
        Ok(())
    }

    /// Copies bytes into this memory; they are initialized then.
    pub fn write_bytes(&mut self, addr: usize, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.check_write(addr, bytes.len())?;
        // SAFETY: checked.
        unsafe { (addr as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.set_initialized(addr, bytes.len(), true);
        Ok(())
    }

    /// Copies initialized bytes out of this memory.
    pub fn read_bytes(&mut self, addr: usize, n: usize) -> Result<Vec<u8>, MemoryFault> {
        self.check_read(addr, n)?;
        // SAFETY: checked.
        Ok(unsafe { std::slice::from_raw_parts(addr as *const u8, n) }.to_vec())
    }
}

impl CheckedMemory {
    /// Copies `n` bytes, initialized or not, from and to memory of whatever device; the ranges may overlap.
    pub fn copy(&mut self, from: usize, to: usize, n: usize) -> Result<(), MemoryFault> {
        let before = std::mem::replace(&mut self.on_device, true);
        let copied = self.copy_anywhere(from, to, n);
        self.on_device = before;
        copied
    }

    fn copy_anywhere(&mut self, from: usize, to: usize, n: usize) -> Result<(), MemoryFault> {
        match self.contains(from) {
            true => self.check_write(from, n)?,
            false => self.check_read(from, n)?,
        }
        self.check_write(to, n)?;
        let states = if self.contains(from) { self.shadow(from, n).to_vec() } else { vec![INIT; n] };
        // SAFETY: checked.
        unsafe { (to as *mut u8).copy_from(from as *const u8, n) };
        self.set_initialized(to, n, true);
        if self.contains(to) && states.iter().any(|&s| state(s) == UNINIT) {
            self.set_initialized(to, n, false);
            let shadow = self.shadow_mut(to, n);
            let device = shadow.first().map_or(0, |s| s & DEVICE);
            shadow.iter_mut().zip(states).for_each(|(s, from)| *s = state(from) | device);
        }
        Ok(())
    }
}

impl Drop for CheckedMemory {
    fn drop(&mut self) {
        if self.size > 0 {
            unmap(self.base, self.size);
            unmap(self.shadow, self.size);
        }
    }
}

/// Size of the memory for a block of at least `need` bytes: four classes for each power of two; `None` if it is
/// absurdly large.
fn size_class(need: usize) -> Option<usize> {
    let need = need.max(64);
    if need > 1 << 46 {
        return None;
    }
    let step = need.next_power_of_two() / 8;
    Some(need.next_multiple_of(step.max(16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_checked() {
        let mut m = CheckedMemory::default();
        let a = m.allocate(10, 8).expect("block");
        assert_eq!(m.load(a, 4), Err(MemoryFault::Uninitialized));
        m.store(a, 4, 0x0102_0304).expect("inside");
        assert_eq!(m.load(a, 4), Ok(0x0102_0304));
        assert_eq!(m.load(a + 2, 4), Err(MemoryFault::Uninitialized));
        assert_eq!(m.load(a + 2, 2), Ok(0x0102));
        assert_eq!(m.store(a + 8, 4, 0), Err(MemoryFault::OutOfBounds));
        assert_eq!(m.store(a - 1, 1, 0), Err(MemoryFault::OutOfBounds));
        assert_eq!(m.load(0, 8), Err(MemoryFault::Null));
        assert_eq!(m.load(usize::MAX - 3, 8), Err(MemoryFault::Wild));
        m.free(a).expect("block");
        assert_eq!(m.load(a, 4), Err(MemoryFault::Dangling));
        assert_eq!(m.free(a), Err(MemoryFault::Dangling));
        assert_eq!(m.free(a + 16), Err(MemoryFault::NotABlock));
    }

    #[test]
    fn foreign_memory_is_what_the_system_says() {
        let mut m = CheckedMemory::default();
        let mut own = vec![1u32, 2, 3];
        let at = own.as_mut_ptr() as usize;
        assert_eq!(m.load(at + 4, 4), Ok(2));
        m.store(at, 4, 9).expect("writable");
        assert_eq!(own[0], 9);
        let text = "constant".as_ptr() as usize;
        assert_eq!(m.load(text, 1), Ok(b'c' as u64));
        assert_eq!(m.load(0x1234_5678_9abc, 8), Err(MemoryFault::Wild));
    }

    #[test]
    fn handed_out_blocks_are_initialized() {
        let mut m = CheckedMemory::default();
        for bytes in [24, 5000] {
            let a = m.allocate(bytes, 16).expect("block");
            m.hand_out(a + 8);
            assert!(m.is_initialized(a, bytes));
            assert_eq!(m.check_read(a, bytes + 1), Err(MemoryFault::OutOfBounds));
        }
    }

    #[test]
    fn memory_of_devices_is_theirs() {
        let mut m = CheckedMemory::default();
        for bytes in [24, 5000] {
            let (a, own) = (m.allocate(bytes, 16).expect("block"), m.allocate(bytes, 16).expect("block"));
            m.give_to_device(a);
            assert!(m.is_of_device(a + 8) && !m.is_of_device(own));
            assert_eq!(m.store(a, 4, 7), Err(MemoryFault::OnDevice));
            assert_eq!(m.load(a + bytes, 1), Err(MemoryFault::OutOfBounds));
            m.on_device = true;
            m.store(a, 4, 7).expect("of the device");
            assert_eq!(m.load(a, 4), Ok(7));
            assert_eq!(m.load(a + 4, 4), Err(MemoryFault::Uninitialized));
            m.on_device = false;
            assert_eq!(m.load(a, 4), Err(MemoryFault::OnDevice));
            m.copy(a, own, 8).expect("both are there");
            assert_eq!((m.load(own, 4), m.load(own + 4, 4)), (Ok(7), Err(MemoryFault::Uninitialized)));
            m.store(own, 4, 9).expect("own");
            m.copy(own, a, 8).expect("both are there");
            m.hand_out(a);
            assert_eq!(m.load(a, 4), Err(MemoryFault::OnDevice));
            m.on_device = true;
            assert_eq!((m.load(a, 4), m.load(a + 16, 4).is_ok()), (Ok(9), true));
            m.on_device = false;
            m.free(a).expect("block");
            assert_eq!(m.load(a, 4), Err(MemoryFault::Dangling));
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut m = CheckedMemory::default();
        for round in 0..20_000usize {
            let bytes = [8, 100, 3000, 70_000][round % 4];
            let align = [1, 16, 64, 4096][round / 4 % 4];
            let a = m.allocate(bytes, align).expect("block");
            assert!(a.is_multiple_of(align));
            m.store(a, 8, 1).expect("start");
            m.store(a + bytes - 1, 1, 1).expect("end");
            assert_eq!(m.check_write(a, bytes + 1), Err(MemoryFault::OutOfBounds));
            m.free(a).expect("block");
        }
        assert!(m.top < 64 << 20, "{} bytes in use", m.top);
        let huge = m.allocate(64 << 20, 64).expect("block");
        m.free(huge).expect("block");
        assert!(m.allocate(usize::MAX - 5, 8).is_err());
        assert!(m.allocate(1 << 45, 8).is_err());
    }
}
