//! Memory of programs compiled with `--check`: a heap that tells the bounds of a block from any address in it, and reports of
//! accesses that are wrong. Separate from the interpreter's memory (`checked.rs`), since compiled code reads its tables.
//!
//! The heap is a large range of addresses, a region for each power of two. A block lies in the region of the next power of two
//! above its size, at a multiple of that, so that address and region give its number, and with that its [`Object`]. Compiled code
//! asks for the object of each address that comes from elsewhere, once, and compares accesses with it. Since bounds belong to the
//! address that an access began with, a far jump into another block is noticed, too.
//!
//! ```text
//! p = parameter                    o = nyala_check_object(p, statics)
//! x = load p + 4 i                 if p + 4 i - o.low + 4 > o.size: nyala_check_fail(…)
//! ```
//!
//! A freed block has size 0; its place is used again late. Beside the heap lies a range of as many bytes, in which a byte that is
//! not 0 says that the byte of the heap is initialized. Other memory has an object of unlimited size whose bytes count as
//! initialized: that of foreign functions is not checked. Statics are in a table of the program.

use crate::checked::MemoryFault;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// The bounds of some memory. Compiled code reads all but the last word, which it sets to 0 when bytes become undefined again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Object {
    low: usize,
    size: usize,
    /// Accesses of 2, 4 and 8 bytes begin below these offsets.
    limits: [usize; 3],
    /// Where a byte tells whether the byte at `address` is initialized: `(address & mask) + shadow`.
    mask: usize,
    shadow: usize,
    /// [`FREED`], or a range that is known to be initialized: its first offset, shifted by 1, and its end, shifted by 32.
    state: usize,
}

const FREED: usize = 1;
/// The state of the object of memory of devices, of which the host may access nothing.
const ON_DEVICE_STATE: usize = 2;

/// What to do about an access of the host to memory of a device.
pub const ON_DEVICE: &str = "kernels access it; copy it to memory of the host, by `read` or `get` of a `DeviceBuffer` or by `anydsl_copy`, or allocate it for both, by `anydsl_alloc_unified`";

impl Object {
    fn new(low: usize, size: usize, [mask, shadow]: [usize; 2]) -> Object {
        Object { low, size, limits: [1, 3, 7].map(|n| size.saturating_sub(n)), mask, shadow, state: 0 }
    }
}

/// Logarithms of the sizes of the smallest and the largest blocks, and of a region.
const LEAST: u32 = 6;
const MOST: u32 = 35;
const REGION: u32 = 36;
const N_REGIONS: usize = (MOST - LEAST + 1) as usize;
const HEAP: usize = N_REGIONS << REGION;
/// From a byte to that of its shadow. Not a multiple of a large power of two: some processors' first caches take such addresses
/// for each other, so that storing a number and noting it would each cost 20 cycles.
const SHADOW: usize = HEAP + 3 * 4096;
/// A freed block is used again after that many bytes of blocks of its size were freed.
const QUARANTINE: usize = 1 << 26;
/// Freed blocks of at least this size give their memory back to the system.
const LARGE: usize = 1 << 16;
/// Limit on the calls that a report lists.
const MAX_CALLS: usize = 16;
/// Addresses below are null pointers with an index.
const NULL: usize = 1 << 16;

#[derive(Default)]
struct Class {
    /// The number of blocks that were ever used.
    used: usize,
    freed: VecDeque<usize>,
}

struct Heap {
    start: usize,
    /// The table of each region's objects.
    tables: [usize; N_REGIONS],
    classes: [Mutex<Class>; N_REGIONS],
}

/// Bytes that count as initialized, and that everyone may write: as many as a vector has.
static ONES: [AtomicUsize; 64] = [const { AtomicUsize::new(usize::MAX) }; 64];

fn ones() -> usize {
    ONES.as_ptr() as usize
}

fn foreign() -> &'static Object {
    static OBJECT: OnceLock<Object> = OnceLock::new();
    OBJECT.get_or_init(|| Object::new(0, usize::MAX, [0, ones()]))
}

/// Addresses where nothing is.
fn nothing() -> &'static Object {
    static OBJECT: OnceLock<Object> = OnceLock::new();
    OBJECT.get_or_init(|| Object::new(0, 0, [0, ones()]))
}

/// Memory of devices: the size of each block, by its address; and how many there are, so that a program without looks no further.
static OF_DEVICES: RwLock<BTreeMap<usize, usize>> = RwLock::new(BTreeMap::new());
static N_OF_DEVICES: AtomicUsize = AtomicUsize::new(0);
/// Launches of kernels on the host that are under way.
static KERNELS: AtomicUsize = AtomicUsize::new(0);

/// Notes that memory is a device's, so that checked code of the host does not access it.
pub(crate) fn note_device_memory(address: usize, size: usize) {
    let mut blocks = OF_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
    blocks.insert(address, size);
    N_OF_DEVICES.store(blocks.len(), Ordering::Release);
}

/// Ends that. Other memory is as it was.
pub(crate) fn forget_device_memory(address: usize) {
    if N_OF_DEVICES.load(Ordering::Acquire) > 0 {
        let mut blocks = OF_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
        blocks.remove(&address);
        N_OF_DEVICES.store(blocks.len(), Ordering::Release);
    }
}

/// Runs kernels on the host, which may access memory of the devices that the host stands for.
pub(crate) fn in_kernels<T>(run: impl FnOnce() -> T) -> T {
    KERNELS.fetch_add(1, Ordering::AcqRel);
    let result = run();
    KERNELS.fetch_sub(1, Ordering::AcqRel);
    result
}

/// The object of memory that only a device may access, if the address is in such memory and the host asks.
fn of_device(address: usize) -> Option<&'static Object> {
    static OBJECT: OnceLock<Object> = OnceLock::new();
    if N_OF_DEVICES.load(Ordering::Acquire) == 0 || KERNELS.load(Ordering::Acquire) > 0 {
        return None;
    }
    let blocks = OF_DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    let (&start, &size) = blocks.range(..=address).next_back()?;
    let object = || OBJECT.get_or_init(|| Object { state: ON_DEVICE_STATE, ..*nothing() });
    (address - start < size).then(object)
}

/// Whether this system has the addresses that checked programs need.
pub fn can_check() -> bool {
    reserved().is_some()
}

fn heap() -> &'static Heap {
    reserved()
        .unwrap_or_else(|| crate::system::fail("`--check` needs 4 TiB of addresses, which this system does not give"))
}

fn reserved() -> Option<&'static Heap> {
    static HEAP_: OnceLock<Option<Heap>> = OnceLock::new();
    let made = HEAP_.get_or_init(|| {
        let sizes = (0..N_REGIONS).map(|i| (1 << (REGION - LEAST - i as u32)) * size_of::<Object>());
        let mut tables = [0; N_REGIONS];
        let mut total = HEAP + SHADOW;
        for (table, size) in tables.iter_mut().zip(sizes) {
            *table = total;
            total += size;
        }
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // A multiple of a region, for the alignment of blocks.
        let region = 1 << REGION;
        // SAFETY: a new mapping, of which nobody knows yet.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), total + region, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return None;
        }
        let start = (at as usize).next_multiple_of(region);
        tables.iter_mut().for_each(|table| *table += start);
        START.store(start, Ordering::Release);
        Some(Heap { start, tables, classes: Default::default() })
    });
    made.as_ref()
}

/// The start of the heap, 0 before there is one.
static START: AtomicUsize = AtomicUsize::new(0);

/// Whether an address is in the heap of checked programs.
pub(crate) fn has_block(address: usize) -> bool {
    let start = START.load(Ordering::Acquire);
    start != 0 && address.wrapping_sub(start) < HEAP
}

impl Heap {
    /// The region and the number of the block around an address.
    fn block(&self, address: usize) -> Option<(usize, usize)> {
        let offset = address.wrapping_sub(self.start);
        let region = offset >> REGION;
        (region < N_REGIONS).then(|| (region, (offset & ((1 << REGION) - 1)) >> (LEAST + region as u32)))
    }

    fn object(&self, region: usize, number: usize) -> *mut Object {
        (self.tables[region] as *mut Object).wrapping_add(number)
    }

    /// Where the room for a block starts.
    fn room(&self, region: usize, number: usize) -> usize {
        self.start + (region << REGION) + (number << (LEAST + region as u32))
    }

    /// Ends the life of a block.
    fn end(&self, region: usize, number: usize) {
        let (object, room) = (self.object(region, number), 1 << (LEAST + region as u32));
        // SAFETY: the tables are mapped, and so is the block, which nobody may use any more.
        unsafe {
            *object = Object { state: FREED, ..Object::new((*object).low, 0, [(*object).mask, (*object).shadow]) };
            if room >= LARGE {
                libc::madvise(self.room(region, number) as *mut _, room, libc::MADV_DONTNEED);
            }
        }
        self.classes[region].lock().unwrap_or_else(PoisonError::into_inner).freed.push_back(number);
    }

    fn allocate(&self, size: usize, align: usize) -> *mut u8 {
        // A byte more, so that an address just past the end is still in the block.
        let Some(room) = size.checked_add(1).and_then(usize::checked_next_power_of_two) else {
            return std::ptr::null_mut();
        };
        let room = room.max(1 << LEAST).max(align.next_power_of_two());
        let log = room.trailing_zeros();
        if log > MOST {
            return std::ptr::null_mut();
        }
        let region = (log - LEAST) as usize;
        let mut class = self.classes[region].lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = class.freed.len() > (QUARANTINE >> log).max(4);
        let number = match is_old.then(|| class.freed.pop_front()).flatten() {
            Some(number) => number,
            None if class.used < 1 << (REGION - log) => {
                class.used += 1;
                class.used - 1
            }
            None => return std::ptr::null_mut(),
        };
        drop(class);
        let low = self.room(region, number);
        let object = Object::new(low, size, [usize::MAX, SHADOW]);
        // SAFETY: the tables are mapped, and the block belongs to nobody else.
        unsafe {
            self.object(region, number).write(object);
            clear(low + SHADOW, if is_old { room } else { 0 });
        }
        low as *mut u8
    }
}

/// Sets bytes of a mapping to 0.
///
/// # Safety
/// The bytes are mapped, and nobody else uses them.
unsafe fn clear(at: usize, size: usize) {
    // SAFETY: the caller's promise. Pages that are given back read as 0.
    unsafe {
        if size >= LARGE {
            libc::madvise(at as *mut _, size, libc::MADV_DONTNEED);
        } else {
            (at as *mut u8).write_bytes(0, size);
        }
    }
}

/// Memory of that size and alignment, with bounds; null if there is none.
pub(crate) fn allocate(size: usize, align: usize) -> *mut u8 {
    heap().allocate(size, align)
}

/// Allocates like [`nyala_alloc`](crate::nyala_alloc), with bounds.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_check_alloc(bytes: i64) -> *mut u8 {
    usize::try_from(bytes).map_or(std::ptr::null_mut(), |bytes| heap().allocate(bytes, 64))
}

/// Allocates like `nyala_alloc_aligned_array`, with bounds.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_check_alloc_array(n: i64, size: i64, align: i64) -> *mut u8 {
    let bytes = n.checked_mul(size).and_then(|bytes| usize::try_from(bytes).ok());
    let align = usize::try_from(align).map_or(64, |align| align.min(crate::memory::MAX_ALIGN));
    let pointer = bytes.map_or(std::ptr::null_mut(), |bytes| heap().allocate(bytes, align));
    if pointer.is_null() {
        crate::system::fail(&format!("cannot allocate {n} elements of {size} bytes"))
    }
    pointer
}

/// Makes the object of `length` elements of `size` bytes that a caller lends.
///
/// # Safety
/// The object can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_lend(object: *mut Object, low: usize, length: i64, size: i64) {
    let bytes = length.checked_mul(size).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { object.write(Object::new(low, bytes, [0, ones()])) }
}

/// Memory for a variable, which the program may not give back.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_check_variable(size: i64, align: i64) -> *mut u8 {
    let (heap, size) = (heap(), usize::try_from(size).unwrap_or(usize::MAX));
    // Such a block does not begin where its room does.
    let ahead = usize::try_from(align).map_or(1, |align| align.clamp(1, crate::memory::MAX_ALIGN));
    let room = size.checked_add(ahead).map_or(std::ptr::null_mut(), |size| heap.allocate(size, ahead));
    let Some((region, number)) = heap.block(room as usize) else {
        crate::system::fail(&format!("cannot allocate a variable of {size} bytes"))
    };
    let variable = room.wrapping_add(ahead);
    // SAFETY: the tables are mapped, and the block belongs to nobody else.
    unsafe { heap.object(region, number).write(Object::new(variable as usize, size, [usize::MAX, SHADOW])) };
    variable
}

/// Ends the life of a variable of `nyala_check_variable`.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_check_end(variable: *mut u8) {
    let heap = heap();
    if let Some((region, number)) = heap.block(variable as usize) {
        heap.end(region, number);
    }
}

/// Frees memory of `nyala_check_alloc`, or foreign memory. `site` and `calls` are those of [`nyala_check_fail`].
///
/// # Safety
/// As for `nyala_check_fail`; foreign memory must be [`nyala_alloc`](crate::nyala_alloc)'s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_free(pointer: *mut u8, site: *const c_char, calls: *const Call) {
    let (heap, address) = (heap(), pointer as usize);
    let Some((region, number)) = heap.block(address) else {
        // SAFETY: the caller's promise.
        return unsafe { crate::nyala_free(pointer) };
    };
    // SAFETY: the tables are mapped. Two threads that free one block at the same time may both succeed.
    unsafe {
        let object = heap.object(region, number);
        let is_block = (*object).low == address && address == heap.room(region, number);
        if !is_block || (*object).state == FREED {
            report(&MemoryFault::NotABlock, site, calls);
        }
    }
    heap.end(region, number);
}

/// The statics of a program: their objects, null before they are asked for; then for each an address, a size, and the address of its shadow,
/// which may be null; up to a null address. Each program knows its own only, since others may be unloaded.
#[repr(C)]
pub struct Statics {
    objects: AtomicPtr<Vec<Object>>,
    first: [usize; 3],
}

/// The object around an address; null has one of no bytes.
///
/// # Safety
/// `statics` is null or the program's table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_object(address: usize, statics: *const Statics) -> *const Object {
    let heap = heap();
    if let Some((region, number)) = heap.block(address) {
        let object = heap.object(region, number);
        // SAFETY: the tables are mapped.
        return if unsafe { (*object).low } == 0 { nothing() } else { object };
    }
    if address < NULL {
        return nothing();
    }
    // SAFETY: the caller's promise.
    let known = unsafe { objects(statics) };
    let next = known.partition_point(|object| object.low <= address);
    match known[..next].last() {
        Some(object) if address - object.low <= object.size => object,
        _ => of_device(address).unwrap_or_else(|| foreign()),
    }
}

/// The objects of a program's statics, by their addresses. They stay, since compiled code keeps their addresses.
///
/// # Safety
/// `statics` is null or a program's table.
unsafe fn objects(statics: *const Statics) -> &'static [Object] {
    // SAFETY: the caller's promise. Objects are never freed.
    unsafe {
        let Some(table) = statics.as_ref() else { return &[] };
        let known = table.objects.load(Ordering::Acquire);
        if !known.is_null() {
            return &*known;
        }
        let mut found = Vec::new();
        let mut at = &raw const table.first;
        while (*at)[0] != 0 {
            let [low, size, shadow] = *at;
            let shadow = if shadow == 0 { [0, ones()] } else { [usize::MAX, shadow.wrapping_sub(low)] };
            found.push(Object::new(low, size, shadow));
            at = at.add(1);
        }
        found.sort_unstable_by_key(|object| object.low);
        let new = Box::into_raw(Box::new(found));
        match table.objects.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => &*new,
            Err(first) => {
                drop(Box::from_raw(new));
                &*first
            }
        }
    }
}

/// A call that is under way: the text of its place, and the call around it.
#[repr(C)]
pub struct Call {
    place: *const c_char,
    around: *const Call,
}

/// Faults, as compiled code numbers them.
const OVERFLOW: i32 = 1;
const UNINITIALIZED: i32 = 2;
const DIVISION: i32 = 3;
const UNDEFINED: i32 = 4;

/// Reports a fault, and ends the process with exit code 3. `site` is the text of the place, `calls` are those that lead there.
///
/// # Safety
/// `site` is null or a text that ends with a zero byte, and so are those of `calls`; `object` is one of this module's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_fail(
    what: i32,
    address: usize,
    object: *const Object,
    site: *const c_char,
    calls: *const Call,
) -> ! {
    // SAFETY: the caller's promise.
    unsafe {
        match what {
            OVERFLOW => end("signed-overflow", "signed integer overflow", "", site, calls),
            UNINITIALIZED => report(&MemoryFault::Uninitialized, site, calls),
            UNDEFINED => end("uninitialized-read", "use of an uninitialized value", "set it first", site, calls),
            DIVISION => end("division-by-zero", "division by zero", "", site, calls),
            _ if address < NULL => report(&MemoryFault::Null, site, calls),
            _ if !object.is_null() && (*object).state == FREED => report(&MemoryFault::Dangling, site, calls),
            _ if object.is_null() => report(&MemoryFault::OutOfBounds, site, calls),
            _ if (*object).state == ON_DEVICE_STATE => report(&MemoryFault::OnDevice, site, calls),
            _ => {
                let (at, size) = (address.wrapping_sub((*object).low) as isize, (*object).size);
                let message = format!("{}: at byte {at} of {size}", MemoryFault::OutOfBounds);
                end("invalid-access", &message, BOUNDS, site, calls)
            }
        }
    }
}

const BOUNDS: &str = "indices of an array of `n` elements go from `0` to `n - 1`";

unsafe fn report(fault: &MemoryFault, site: *const c_char, calls: *const Call) -> ! {
    let (code, hint) = match fault {
        MemoryFault::Uninitialized => ("uninitialized-read", "set it first"),
        MemoryFault::Null => ("invalid-access", "test the pointer first"),
        MemoryFault::Dangling => (
            "invalid-access",
            "variables live as long as their function runs, blocks on the heap until they are given back",
        ),
        MemoryFault::OnDevice => ("invalid-access", ON_DEVICE),
        MemoryFault::NotABlock => {
            ("invalid-access", "give back what was allocated, once, by the address that allocation gave")
        }
        _ => ("invalid-access", BOUNDS),
    };
    // SAFETY: as for `nyala_check_fail`.
    unsafe { end(code, &fault.to_string(), hint, site, calls) }
}

unsafe fn end(code: &'static str, message: &str, hint: &str, site: *const c_char, calls: *const Call) -> ! {
    // SAFETY: as for `nyala_check_fail`.
    unsafe { end_with(code, message, hint, (site, calls), Some(3)) }
}

/// Reports a panic as the interpreter does, and ends the process like `nyala_panic`.
///
/// # Safety
/// As for [`nyala_check_fail`]; `text` is null or a text that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_panic(text: *const c_char, site: *const c_char, calls: *const Call) -> ! {
    let hint = "the program checks this itself, with `assert` or `panic`; find out what leads here";
    // SAFETY: the caller's promise.
    unsafe {
        let text = if text.is_null() { c"" } else { CStr::from_ptr(text) };
        let text = crate::system::printable(&text.to_string_lossy());
        end_with("panic", &text, hint, (site, calls), None)
    }
}

/// Ends the program with a report: with an exit code, or by `abort`.
unsafe fn end_with(
    code: &'static str,
    message: &str,
    hint: &str,
    (site, calls): (*const c_char, *const Call),
    exit: Option<i32>,
) -> ! {
    use std::fmt::Write;
    // SAFETY: as for `nyala_check_fail`.
    let text = |p: *const c_char| match p.is_null() {
        true => std::borrow::Cow::Borrowed(""),
        false => unsafe { CStr::from_ptr(p) }.to_string_lossy(),
    };
    let site = text(site);
    let place = site.split_once("--> ").and_then(|(_, place)| Some(place.lines().next()?.into()));
    let mut report = format!("error[{code}]: {message}\n{site}");
    let mut call = calls;
    for _ in 0..MAX_CALLS {
        // SAFETY: as for `nyala_check_fail`.
        let Some(this) = (unsafe { call.as_ref() }) else { break };
        let _ = writeln!(report, "  = note: called at {}", text(this.place));
        call = this.around;
    }
    if !hint.is_empty() {
        let _ = writeln!(report, "  = hint: {hint}");
    }
    crate::guard::end(crate::guard::Ending { code, message: message.into(), place, text: report, exit })
}

/// Ends the program unless all bytes are initialized.
///
/// # Safety
/// As for [`nyala_check_fail`]; `at` are the bytes that tell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_initialized(
    address: usize,
    size: usize,
    object: *const Object,
    site: *const c_char,
    calls: *const Call,
) {
    // SAFETY: the caller's promise; the bytes beside the heap are mapped.
    unsafe {
        if (*object).mask != 0
            && (0..size).any(|i| (((address + i).wrapping_add((*object).shadow)) as *const u8).read() == 0)
        {
            nyala_check_fail(UNINITIALIZED, address, object, site, calls)
        }
    }
}

/// Whether bytes lie in a block, and are all initialized.
///
/// # Safety
/// `object` is one of this module's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_is_initialized(address: usize, size: usize, object: *const Object) -> bool {
    // SAFETY: the caller's promise; the bytes beside the heap are mapped.
    unsafe {
        let offset = address.wrapping_sub((*object).low);
        if offset.checked_add(size).is_none_or(|end| end > (*object).size) {
            return false;
        }
        if (*object).mask == 0 {
            return true;
        }
        // Loops ask for the same range again and again.
        let state = AtomicUsize::from_ptr((&raw const (*object).state).cast_mut());
        let (known, end) = (state.load(Ordering::Relaxed), offset + size);
        if offset >= (known & 0xffff_ffff) >> 1 && end <= known >> 32 {
            return true;
        }
        let shadow = std::slice::from_raw_parts(address.wrapping_add((*object).shadow) as *const u8, size);
        let is_initialized = shadow.chunks(256).all(|bytes| bytes.iter().fold(0xff, |all, b| all & b) == 0xff);
        if is_initialized && end < 1 << 31 {
            state.store(offset << 1 | end << 32, Ordering::Relaxed);
        }
        is_initialized
    }
}

/// Notes that bytes are initialized.
///
/// # Safety
/// `object` is one of this module's, and the bytes are in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_wrote(address: usize, size: usize, object: *const Object) {
    // SAFETY: the caller's promise; the bytes beside the heap are mapped.
    unsafe {
        if (*object).mask != 0 {
            (address.wrapping_add((*object).shadow) as *mut u8).write_bytes(0xff, size);
        }
    }
}

/// Whether the product of two numbers fits.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_check_product(a: i64, b: i64) -> bool {
    a.checked_mul(b).is_some()
}

/// Notes that a foreign function may have written to the block at an address.
///
/// # Safety
/// `statics` is the program's table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_given(address: usize, statics: *const Statics) {
    // SAFETY: the caller's promise.
    unsafe {
        let object = nyala_check_object(address, statics);
        nyala_check_wrote((*object).low, (*object).size, object);
    }
}

/// Checks the lanes of a gather or scatter: `n` lanes, those of `mask` active, access `size` bytes at `base` plus `scale` times
/// their index. `shape` is the number of lanes, plus 256 if indices are i32 and not i64, plus 512 if what they read must be initialized,
/// plus 1024 if what they write is so then, plus `size` times 65536. Without an object, each lane has one of its own.
///
/// # Safety
/// As for [`nyala_check_fail`]; there are `n` indices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_check_lanes(
    base: usize,
    indices: *const u8,
    scale: i64,
    shape: u64,
    mask: u64,
    object: *const Object,
    statics: *const Statics,
    site: *const c_char,
    calls: *const Call,
) {
    let (n, size, is_narrow) = ((shape & 0xff) as usize, (shape >> 16) as usize, shape >> 8 & 1 != 0);
    for i in (0..n).filter(|i| mask >> i & 1 != 0) {
        // SAFETY: the caller's promise.
        unsafe {
            let index = match is_narrow {
                true => indices.cast::<i32>().add(i).read_unaligned().into(),
                false => indices.cast::<i64>().add(i).read_unaligned(),
            };
            let address = base.wrapping_add_signed(index.wrapping_mul(scale) as isize);
            let object = if object.is_null() { nyala_check_object(address, statics) } else { object };
            let offset = address.wrapping_sub((*object).low);
            if offset.checked_add(size).is_none_or(|end| end > (*object).size) {
                nyala_check_fail(0, address, object, site, calls)
            }
            if shape >> 9 & 1 != 0 {
                nyala_check_initialized(address, size, object, site, calls);
            }
            if shape >> 10 & 1 != 0 {
                nyala_check_wrote(address, size, object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(p: *mut u8, offset: usize) -> (usize, usize) {
        // SAFETY: there are no statics.
        let object = unsafe { *nyala_check_object(p as usize + offset, std::ptr::null()) };
        (object.low.wrapping_sub(p as usize), object.size)
    }

    #[test]
    fn blocks_have_bounds() {
        for size in [0, 1, 63, 64, 100, 4096, 1 << 20] {
            let p = nyala_check_alloc(size as i64);
            assert!(!p.is_null() && (p as usize).is_multiple_of(64));
            assert_eq!([bounds(p, 0), bounds(p, size / 2), bounds(p, size)], [(0, size); 3], "{size}");
            // SAFETY: just allocated.
            unsafe {
                p.write_bytes(1, size);
                nyala_check_free(p, std::ptr::null(), std::ptr::null());
            }
            assert_eq!(bounds(p, 0), (0, 0));
            assert_ne!(nyala_check_alloc(size as i64), p, "used again at once");
        }
        let foreign = Box::new(3u8);
        // SAFETY: there are no statics.
        unsafe {
            assert_eq!((*nyala_check_object(&raw const *foreign as usize, std::ptr::null())).size, usize::MAX);
            assert_eq!((*nyala_check_object(8, std::ptr::null())).size, 0);
        }
        assert!(nyala_check_alloc(-1).is_null() && nyala_check_alloc(1 << 40).is_null());
    }
}
