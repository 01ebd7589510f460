//! Launches of kernels on the host. Compiled code has one function for a range of blocks; the blocks run in parallel, each
//! on one thread (`flat`, `kernels.rs`).

use crate::checks::in_kernels;
use crate::guard::{Ending, end};
use crate::platforms::{Arg, Device, Error, Launch, Memory, NAMES, add_kernel_time};
use crate::print::nyala_flush;
use crate::system::{fail, nyala_time_ns, printable};
use crate::threads::{LoopBody, parallel};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// # Safety
/// `name` is null or points to bytes that end with a zero byte.
unsafe fn text<'a>(name: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller's promise.
    if name.is_null() { "".into() } else { unsafe { CStr::from_ptr(name) }.to_string_lossy() }
}

/// The numbers of blocks on the three axes, as many as hold all work items. `numbers`: the work items of the grid, and those
/// of a block.
fn blocks(numbers: [i32; 6], kernel: &str) -> Result<[i32; 3], Error> {
    let mut blocks = [0; 3];
    for axis in 0..3 {
        let (items, size) = (i64::from(numbers[axis]), i64::from(numbers[axis + 3]));
        if size <= 0 {
            let axis = ["x", "y", "z"][axis];
            return Err(format!("kernel `{kernel}` is launched with {size} work items in a block, on axis {axis}"));
        }
        blocks[axis] = ((items.max(0) + size - 1) / size) as i32;
    }
    Ok(blocks)
}

/// A launch as the program describes it (`kernels/src/split.rs`). Texts are their length as eight bytes, then their bytes.
#[repr(C)]
pub struct Kernel {
    code: *const u8,
    name: *const u8,
    place: *const u8,
    /// For each argument, its offset in the environment, its size in bytes, and its kind: 0 for a number, 1 for an address, 2
    /// for an aggregate, 3 for the address of notes, 4 for an aggregate whose copy on the device the kernel gets; from bit 8 on the logarithm of its alignment.
    table: *const [u32; 3],
    /// Place and text of each panic, or null; texts end with a zero byte.
    panics: *const [*const c_char; 2],
    n_args: u64,
    n_panics: u64,
    /// Bytes of memory of the block.
    shared: u64,
}

/// A kernel that may have noted a panic: the address of its note on the device.
struct Notes {
    platform: i32,
    /// With its queue, as launches say it.
    device: i32,
    kernel: usize,
    address: usize,
    /// Whether it was launched since somebody waited for the device.
    is_used: bool,
}

/// Notes of all kernels that may panic and were launched.
static NOTES: Mutex<Vec<Notes>> = Mutex::new(Vec::new());

/// A note: the number of the panic, from 1; the block and the work item in it.
type Note = [i32; 7];

/// The address where a kernel notes a panic, for one launch.
fn notes(device: Device, (platform, number): (i32, i32), kernel: *const Kernel) -> Result<*mut c_void, Error> {
    let mut all = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |n: &&mut Notes| (n.platform, n.device, n.kernel) == (platform, number, kernel as usize);
    if let Some(found) = all.iter_mut().find(is_it) {
        found.is_used = true;
        return Ok(found.address as *mut c_void);
    }
    let address = device.platform.alloc(device.number, size_of::<Note>(), Memory::Device)?;
    let none: Note = [0; 7];
    // SAFETY: the memory was just allocated.
    unsafe { device.platform.write(device.at(), address, (&raw const none).cast(), size_of::<Note>())? };
    let kernel = kernel as usize;
    all.push(Notes { platform, device: number, kernel, address: address as usize, is_used: true });
    Ok(address)
}

/// Memory of devices for large arguments: by kernel, queue and place among the arguments.
type Large = BTreeMap<(usize, i32, i32, u32), usize>;

/// All memory for large arguments. A launch holds it from the copy until the kernel is in its queue. The next one there waits for that
/// kernel before it copies.
static LARGE: Mutex<Large> = Mutex::new(Large::new());

/// The address of a copy of a large argument in the device's memory.
fn copied(
    all: &mut Large,
    device: Device,
    (platform, number): (i32, i32),
    kernel: *const Kernel,
    at: u32,
    bytes: &[u8],
) -> Result<*mut c_void, Error> {
    let address = match all.entry((kernel as usize, platform, number, at)) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => *new.insert(device.platform.alloc(device.number, bytes.len(), Memory::Device)? as usize),
    } as *mut c_void;
    // SAFETY: the memory was allocated for as many bytes.
    unsafe { device.platform.write(device.at(), address, bytes.as_ptr().cast(), bytes.len())? };
    Ok(address)
}

/// The panic that a kernel of a queue, or of all queues of its device, has noted. Its kernels have ended. The caller ends the process, when
/// it holds nothing.
pub(crate) fn noted_panic(device: Device, in_all_queues: bool) -> Result<Option<Ending>, Error> {
    let is_meant = |n: &&mut Notes| {
        let noted = Device::find(n.platform | n.device << 4);
        noted.is_ok_and(|d| d.is_device_of(device) && (in_all_queues || d.queue == device.queue))
    };
    let mut all = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    for notes in all.iter_mut().filter(|n| n.is_used).filter(is_meant) {
        notes.is_used = false;
        let mut note: Note = [0; 7];
        // SAFETY: the memory is the note's, and the host's variable has its size.
        unsafe {
            let (to, from) = ((&raw mut note).cast(), notes.address as *const c_void);
            device.platform.read(device.at(), to, from, size_of::<Note>())?;
        }
        let [panic, place @ ..] = note;
        if panic <= 0 {
            continue;
        }
        // SAFETY: the kernel's descriptor is a static of the program, and has as many panics.
        let (what, at, said, name) = unsafe {
            let kernel = &*(notes.kernel as *const Kernel);
            let [at, said] = match panic as u64 <= kernel.n_panics {
                true => *kernel.panics.add(panic as usize - 1),
                false => [std::ptr::null(); 2],
            };
            let at = (!at.is_null()).then(|| text(at).into_owned());
            let said = text(said).into_owned();
            let place = at.as_ref().map_or(String::new(), |at| format!(" at {at}"));
            let what = format!("panic{place}: {}", printable(&said));
            (what, at, said, String::from_utf8_lossy(bytes(kernel.name)))
        };
        let [bx, by, bz, x, y, z] = place;
        let place = format!("in kernel `{name}`, work item ({x}, {y}, {z}) of block ({bx}, {by}, {bz})");
        let text = format!("{what}, {place}\n");
        return Ok(Some(Ending { text, ..crate::system::panic(at.as_deref(), &said, "") }));
    }
    Ok(None)
}

/// # Safety
/// `text` is a text of the program.
unsafe fn bytes(text: *const u8) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let length = text.cast::<u64>().read_unaligned();
        std::slice::from_raw_parts(text.add(8), length as usize)
    }
}

/// Launches a kernel on a device of a platform, and returns at once. `env` begins with six `i32`, the work items of the grid
/// and of a block; the kernel's arguments follow. Ends the process with code 1 if the device is missing or refuses.
///
/// # Safety
/// `kernel` and `env` are what the compiler made for the launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_launch_device(platform: i32, device: i32, kernel: *const Kernel, env: *const c_void) {
    // SAFETY: the caller's promise.
    let (name, place) = unsafe { (bytes((*kernel).name), bytes((*kernel).place)) };
    let name = String::from_utf8_lossy(name);
    // The kernel's output does not go through this process's buffer.
    nyala_flush();
    // SAFETY: the caller's promise.
    if let Err(message) = unsafe { launch(platform, device, kernel, &name, env) } {
        end(Ending::of_device(&format!("{}: kernel `{name}`: {message}", String::from_utf8_lossy(place))))
    }
}

/// # Safety
/// As for [`nyala_launch_device`].
unsafe fn launch(
    platform: i32,
    device: i32,
    kernel: *const Kernel,
    name: &str,
    env: *const c_void,
) -> Result<(), Error> {
    let (number, device) = (device, Device::find(platform | device << 4)?);
    // SAFETY: the caller's promise.
    unsafe {
        let numbers = env.cast::<[i32; 6]>().read();
        let blocks = blocks(numbers, name)?;
        if blocks.contains(&0) {
            return Ok(());
        }
        let table = match (*kernel).n_args {
            0 => &[][..],
            n => std::slice::from_raw_parts((*kernel).table, n as usize),
        };
        let is_large = table.iter().any(|[.., kind]| kind & 0xff == 4);
        let mut large = is_large.then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
        let arg = |&[offset, size, kind]: &[u32; 3]| {
            let at = env.cast::<u8>().add(offset as usize);
            Ok(match (kind & 0xff, &mut large) {
                (1, _) => Arg::Address(at.cast::<*mut c_void>().read_unaligned()),
                (3, _) => Arg::Address(notes(device, (platform, number), kernel)?),
                (4, Some(large)) => {
                    let bytes = std::slice::from_raw_parts(at, size as usize);
                    Arg::Address(copied(large, device, (platform, number), kernel, offset, bytes)?)
                }
                _ => Arg::Value { bytes: std::slice::from_raw_parts(at, size as usize), align: 1 << (kind >> 8 & 15) },
            })
        };
        let launch = Launch {
            code: bytes((*kernel).code),
            kernel: name,
            blocks: blocks.map(|n| n as usize),
            block: [numbers[3], numbers[4], numbers[5]].map(|n| n as usize),
            shared: (*kernel).shared as usize,
            args: table.iter().map(arg).collect::<Result<_, Error>>()?,
        };
        crate::interrupts::launched((*kernel).name, (*kernel).place);
        device.platform.launch(device.at(), &launch)
    }
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
    // SAFETY: the caller's promise.
    let (place, name) = (name, unsafe { text(name) });
    let blocks = blocks(*numbers, &name).unwrap_or_else(|message| fail(&message));
    numbers[..3].copy_from_slice(&blocks);
    let all = blocks.iter().map(|&n| i64::from(n)).fold(1, i64::saturating_mul);
    let before = nyala_time_ns();
    // SAFETY: the caller's promise.
    let fault = crate::interrupts::running(place, || in_kernels(|| unsafe { parallel(n, 0, all, body, env) }));
    add_kernel_time(nyala_time_ns() - before);
    if let Some(fault) = fault {
        end(fault)
    }
}

/// Ends the process with code 1: a kernel is launched on a device for which no code was made.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_launch_missing(platform: i32, device: i32, name: *const c_char) -> ! {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    let platform_name = NAMES.get(platform as usize).unwrap_or(&"unknown");
    end(Ending::of_device(&format!(
        "kernel `{name}`: platform {platform}, {platform_name}, is not there (device {device} of it was asked for); compile with `--device host` to run it on this machine's CPU"
    )))
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
