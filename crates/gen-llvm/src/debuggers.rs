//! Tells debuggers and profilers of code that was linked in memory: gdb and lldb by gdb's JIT interface (its manual, "JIT
//! Compilation Interface"), Linux's perf by a jitdump file (`tools/perf/Documentation/jitdump-specification.txt`). Separate, since
//! both have nothing to do with linking.

use crate::locate;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An object in the list that debuggers read.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    object: *const u8,
    size: u64,
}

#[repr(C)]
struct Descriptor {
    version: u32,
    /// 0: nothing, 1: an entry comes, 2: it goes.
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

/// The names are gdb's: it reads the descriptor when the function is called, where it has a breakpoint.
#[unsafe(no_mangle)]
static mut __jit_debug_descriptor: Descriptor =
    Descriptor { version: 1, action: 0, relevant: std::ptr::null_mut(), first: std::ptr::null_mut() };

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __jit_debug_register_code() {
    // SAFETY: nothing; the call must not be removed.
    unsafe { std::arch::asm!("") }
}

static LIST: Mutex<()> = Mutex::new(());

/// An object that debuggers know, until this value is dropped.
pub(crate) struct Known {
    entry: *mut Entry,
    _object: Vec<u8>,
}

// SAFETY: the entry is only touched under the lock of the list.
unsafe impl Send for Known {}
// SAFETY: as above.
unsafe impl Sync for Known {}

/// Tells debuggers of an object whose code begins at `start`. `None` if the object is no ELF file of 64 bits.
pub(crate) fn tell(object: &[u8], start: u64) -> Option<Known> {
    let object = placed(object, start)?;
    let entry = Box::into_raw(Box::new(Entry {
        next: std::ptr::null_mut(),
        previous: std::ptr::null_mut(),
        object: object.as_ptr(),
        size: object.len() as u64,
    }));
    let _lock = LIST.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: the list and its entries are touched under the lock only, and entries live as long as they are in it.
    unsafe {
        let list = &raw mut __jit_debug_descriptor;
        (*entry).next = (*list).first;
        if let Some(next) = (*list).first.as_mut() {
            next.previous = entry;
        }
        (*list).first = entry;
        ((*list).relevant, (*list).action) = (entry, 1);
        __jit_debug_register_code();
        (*list).action = 0;
    }
    Some(Known { entry, _object: object })
}

impl Drop for Known {
    fn drop(&mut self) {
        let _lock = LIST.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: as above; the entry leaves the list before it is freed.
        unsafe {
            let list = &raw mut __jit_debug_descriptor;
            let Entry { next, previous, .. } = *self.entry;
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => (*list).first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            ((*list).relevant, (*list).action) = (self.entry, 2);
            __jit_debug_register_code();
            ((*list).relevant, (*list).action) = (std::ptr::null_mut(), 0);
            drop(Box::from_raw(self.entry));
        }
    }
}

/// The object with the address of its code in the section's header.
fn placed(object: &[u8], start: u64) -> Option<Vec<u8>> {
    type Header = object::elf::FileHeader64<Endianness>;
    let header = Header::parse(object).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, object).ok()?;
    let (index, section) = sections.section_by_name(endian, b".text")?;
    let _ = section.sh_size(endian);
    // The field `sh_addr` is the fourth one, after two of 4 and one of 8 bytes.
    let at = header.e_shoff(endian) as usize + index.0 * usize::from(header.e_shentsize(endian)) + 16;
    let mut bytes = object.to_vec();
    let address = if endian == Endianness::Big { start.to_be_bytes() } else { start.to_le_bytes() };
    bytes.get_mut(at..at + 8)?.copy_from_slice(&address);
    Some(bytes)
}

/// Kinds of records of a jitdump.
const LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;

/// Writes the file `jit-PID.dump` for `perf inject --jit`: the code of objects, each with the address where it begins, and lines.
/// Returns the file's path. perf learns of the file since a page of it is mapped as code.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn dump(
    objects: &[(&[u8], u64)],
    folder: &Path,
    in_file: &dyn Fn(locate::Place) -> locate::Place,
) -> std::io::Result<PathBuf> {
    let path = folder.join(format!("jit-{}.dump", std::process::id()));
    let mut file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    let mut out = Vec::new();
    let machine: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    for word in [0x4A69_5444, 1, 40, machine, 0, std::process::id()] {
        out.extend(u32::to_ne_bytes(word));
    }
    out.extend(now().to_ne_bytes());
    out.extend(0u64.to_ne_bytes());
    let mut index = 0u64;
    for &(object, start) in objects {
        let Ok(parsed) = object::File::parse(object) else { continue };
        let Some(text) = parsed.section_by_name(".text") else { continue };
        let mut places = locate::places(object).map_or(Vec::new(), |p| p.places);
        places.iter_mut().for_each(|(_, place)| *place = in_file(place.clone()));
        for symbol in parsed.symbols().filter(|s| s.section_index() == Some(text.index()) && s.size() > 0) {
            let (offset, size) = (symbol.address() - text.address(), symbol.size());
            let (address, name) = (start + offset, symbol.name().unwrap_or(""));
            let inside = |at: &&(u64, locate::Place)| (offset..offset + size).contains(&at.0);
            let lines: Vec<_> = places.iter().filter(inside).filter(|(_, place)| place.line > 0).collect();
            let mut body = Vec::new();
            body.extend(address.to_ne_bytes());
            body.extend((lines.len() as u64).to_ne_bytes());
            for (at, place) in lines {
                body.extend((start + at).to_ne_bytes());
                body.extend(place.line.to_ne_bytes());
                body.extend(0u32.to_ne_bytes());
                body.extend(place.file.as_bytes());
                body.push(0);
            }
            record(DEBUG_INFO, &body, &mut out);
            let mut body = Vec::new();
            body.extend(std::process::id().to_ne_bytes());
            body.extend(std::process::id().to_ne_bytes());
            for word in [address, address, size, index] {
                body.extend(word.to_ne_bytes());
            }
            body.extend(name.as_bytes());
            body.push(0);
            // SAFETY: the linked code of the object is readable, and lives as long as the JIT.
            body.extend(unsafe { std::slice::from_raw_parts(address as *const u8, size as usize) });
            record(LOAD, &body, &mut out);
            index += 1;
        }
    }
    file.write_all(&out)?;
    map_as_code(&file)?;
    Ok(path)
}

fn record(kind: u32, body: &[u8], out: &mut Vec<u8>) {
    out.extend(kind.to_ne_bytes());
    out.extend((body.len() as u32 + 16).to_ne_bytes());
    out.extend(now().to_ne_bytes());
    out.extend(body);
}

/// Nanoseconds of the monotonic clock, which `perf record -k mono` uses.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn map_as_code(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: maps a page of an open file; it stays mapped until the process ends, as perf expects.
    let page = unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if page == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
