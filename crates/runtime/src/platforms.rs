//! Devices, by platform. A [`Platform`] is what the functions of the runtime ask for memory, copies and launches; which
//! ones there are is found when a program first asks. A missing driver is a platform that is not there, never a failure to
//! start.
//!
//! A device is a number, `platform | device << 4 | queue << 16`; platforms are the host (0), CUDA (1), OpenCL (2), HSA (3),
//! PAL (4), Level Zero (5), Vulkan (6) and HLS (7). Kernels and copies of one queue run one after the other. Every device has queue 0;
//! programs make others.

mod allocations;
mod cuda;
mod devices;
mod driver;
mod hls;
mod host;
mod hsa;
mod kept;
mod levelzero;
mod missing;
mod opencl;
mod ranges;
mod vulkan;

pub(crate) use driver::check as check_library;
pub use kept::{keep_kernels, kernel_cache};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The name of a platform, in small letters without spaces.
pub(crate) fn platform_name(number: i32) -> String {
    NAMES.get(number as usize).unwrap_or(&"unknown").to_lowercase().replace(' ', "")
}

/// Names of the platforms, by number.
pub(crate) const NAMES: [&str; 8] = ["CPU", "CUDA", "OpenCL", "HSA", "PAL", "Level Zero", "Vulkan", "HLS"];

/// How many platforms have a number.
pub const N_PLATFORMS: i32 = NAMES.len() as i32;

/// Features that have the same names on all platforms: floats of 16 and of 64 bits, atomic operations on integers of 64 bits,
/// operations among the lanes of a subgroup, and votes of those lanes that are active.
pub(crate) const FEATURES: [&str; 5] = ["fp16", "fp64", "int64_atomics", "subgroups", "divergent_votes"];

/// Why something failed, for people.
pub(crate) type Error = String;

/// Kinds of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Only the device reaches it.
    Device,
    /// Memory of the host that the device reaches, too.
    Host,
    /// Memory that moves between both.
    Unified,
}

/// A kernel to be launched.
pub(crate) struct Launch<'a> {
    /// The code of its module, which outlives the program's run.
    pub code: &'static [u8],
    /// The kernel's symbol in the module.
    pub kernel: &'a str,
    /// Number of blocks on each axis; none is 0.
    pub blocks: [usize; 3],
    /// Extents of a block; none is 0.
    pub block: [usize; 3],
    /// Bytes of memory of a block that the kernel reserves.
    pub shared: usize,
    pub args: Vec<Arg<'a>>,
}

/// An argument of a kernel.
pub(crate) enum Arg<'a> {
    /// The bytes of a number, or of an aggregate, and their alignment.
    Value { bytes: &'a [u8], align: usize },
    /// An address of the device.
    Address(*mut c_void),
}

/// A mark in a queue: a handle of the driver, or a time on the host.
pub(crate) type Mark = u64;

/// Devices of one kind. Devices are numbered from 0; one that does not exist is an error, and so is a queue.
pub(crate) trait Platform: Sync {
    /// How many devices there are.
    ///
    /// # Errors
    /// Why the platform is not there.
    fn n_devices(&self) -> Result<usize, Error>;

    /// The device's name.
    fn device_name(&self, device: usize) -> Result<String, Error>;

    /// Whether the device has a feature: one of [`FEATURES`], or one by a name that only its platform knows.
    fn has_feature(&self, device: usize, name: &str) -> Result<bool, Error> {
        self.device_name(device)?;
        Ok(FEATURES.contains(&name))
    }

    /// Allocates memory, its contents undefined.
    fn alloc(&self, device: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error>;

    /// Frees memory of [`Platform::alloc`].
    ///
    /// # Safety
    /// Nobody uses the memory afterwards.
    unsafe fn release(&self, device: usize, pointer: *mut c_void) -> Result<(), Error>;

    /// Copies from the host to the device, after all kernels of the queue, and waits.
    ///
    /// # Safety
    /// Both ranges lie in memory of their devices.
    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error>;

    /// Copies from the device to the host, after all kernels of the queue, and waits.
    ///
    /// # Safety
    /// As for [`Platform::write`].
    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error>;

    /// Launches a kernel after all others of the queue. Does not wait for it.
    ///
    /// # Safety
    /// The arguments are what the kernel takes.
    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error>;

    /// Waits for all kernels of the queue; those of all queues of the device if it is queue 0.
    fn synchronize(&self, at: Queue) -> Result<(), Error>;

    /// Makes one more queue of a device; returns its number.
    fn make_queue(&self, device: usize) -> Result<usize, Error>;

    /// Sets a mark behind all that is in the queue. [`Platform::forget`] frees it.
    fn mark(&self, at: Queue) -> Result<Mark, Error>;

    /// Lets all that is put into the queue from now on wait for a mark of the same device. Does not wait itself.
    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error>;

    /// Waits until all before the mark has ended.
    fn wait(&self, device: usize, mark: Mark) -> Result<(), Error>;

    /// Whether all before the mark has ended.
    fn is_over(&self, device: usize, mark: Mark) -> Result<bool, Error>;

    /// The nanoseconds between two marks of a device that were waited for.
    fn elapsed(&self, device: usize, from: Mark, to: Mark) -> Result<i64, Error>;

    /// Frees a mark, which nobody uses afterwards.
    fn forget(&self, device: usize, mark: Mark);
}

/// Checks the extents of a block against how many work items a device has in one.
fn check_block([x, y, z]: [usize; 3], most: usize) -> Result<(), Error> {
    match x.saturating_mul(y).saturating_mul(z) > most {
        true => Err(format!("blocks of {x} by {y} by {z} work items; this device has {most} in a block at most")),
        false => Ok(()),
    }
}

/// A queue of a device: both numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    pub device: usize,
    pub number: usize,
}

static HOST: host::Host = host::Host;
static OPENCL: opencl::OpenCl = opencl::OpenCl;
static CUDA: cuda::Cuda = cuda::Cuda;
static HSA: hsa::Hsa = hsa::Hsa;
static HLS: hls::Hls = hls::Hls;
static VULKAN: vulkan::Vulkan = vulkan::Vulkan;
static LEVEL_ZERO: levelzero::LevelZero = levelzero::LevelZero;
static PAL: missing::Missing =
    missing::Missing("the runtime cannot drive it; `amdgpu_hsa` launches kernels on AMD's GPUs");

/// The platform of this number.
fn by_number(number: usize) -> Option<&'static dyn Platform> {
    Some(match number {
        0 => &HOST,
        1 => &CUDA,
        2 => &OPENCL,
        3 => &HSA,
        4 => &PAL,
        5 => &LEVEL_ZERO,
        6 => &VULKAN,
        7 => &HLS,
        _ => return None,
    })
}

/// Bits of a device's number in front of the queue.
const QUEUE_SHIFT: u32 = 16;

/// A device that exists, with a queue of it, which may not exist.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub platform: &'static dyn Platform,
    pub number: usize,
    pub queue: usize,
    /// Its platform's number.
    kind: i32,
}

impl Device {
    /// The device of a number.
    ///
    /// # Errors
    /// It does not exist, and why.
    pub fn find(device: i32) -> Result<Device, Error> {
        let (platform, all, queue) = ((device & 15) as usize, device >> 4, device >> QUEUE_SHIFT);
        // A negative number is no device.
        let number = if device < 0 { all } else { all & ((1 << (QUEUE_SHIFT - 4)) - 1) };
        let asked = format!("device {number} of it was asked for");
        let (Some(found), Some(name)) = (by_number(platform), NAMES.get(platform)) else {
            return Err(format!("there is no platform {platform} ({asked})"));
        };
        let n =
            found.n_devices().map_err(|why| format!("platform {platform}, {name}, is not there ({asked}): {why}"))?;
        match usize::try_from(number) {
            Ok(number) if number < n => {
                Ok(Device { platform: found, number, queue: queue as usize, kind: platform as i32 })
            }
            _ => {
                let last = n.saturating_sub(1);
                let devices = if n == 1 { "only device 0".into() } else { format!("only devices 0 to {last}") };
                Err(format!("platform {platform}, {name}, has no device {number}, {devices}"))
            }
        }
    }

    /// The device's queue.
    pub fn at(self) -> Queue {
        Queue { device: self.number, number: self.queue }
    }

    /// Whether it is the same device, in whatever queue.
    pub fn is_device_of(self, other: Device) -> bool {
        (self.kind, self.number) == (other.kind, other.number)
    }

    /// The number of the device and one of its queues.
    pub fn id_with(self, queue: usize) -> i32 {
        self.kind | (self.number as i32) << 4 | (queue as i32) << QUEUE_SHIFT
    }

    /// Waits for all kernels of the queue; of the device, if it is queue 0. Ends the process if one has panicked.
    pub fn synchronize(self) -> Result<(), Error> {
        crate::interrupts::waiting(|| self.platform.synchronize(self.at()))?;
        self.end_if_panicked(self.queue == 0)
    }

    fn end_if_panicked(self, in_all_queues: bool) -> Result<(), Error> {
        match crate::launch::noted_panic(self, in_all_queues)? {
            Some(ending) => crate::guard::end(ending),
            None => Ok(()),
        }
    }

    /// Copies between any two devices.
    ///
    /// # Safety
    /// Both ranges lie in memory of their devices; nobody else writes there meanwhile.
    pub unsafe fn copy(
        self,
        from: *const c_void,
        to_device: Device,
        to: *mut c_void,
        size: usize,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let copy = || unsafe {
            match (self.kind == 0, to_device.kind == 0) {
                (true, true) => {
                    to.cast::<u8>().copy_from(from.cast(), size);
                    Ok(())
                }
                (true, false) => to_device.platform.write(to_device.at(), to, from, size),
                (false, true) => self.platform.read(self.at(), to, from, size),
                (false, false) => {
                    // By way of the host, a piece at a time.
                    let mut piece = vec![0u8; size.min(1 << 24)];
                    let mut done = 0;
                    while done < size {
                        let n = piece.len().min(size - done);
                        let (from, to) = (from.cast::<u8>().add(done), to.cast::<u8>().add(done));
                        self.platform.read(self.at(), piece.as_mut_ptr().cast(), from.cast(), n)?;
                        to_device.platform.write(to_device.at(), to.cast(), piece.as_ptr().cast(), n)?;
                        done += n;
                    }
                    Ok(())
                }
            }
        };
        if self.kind == 0 && to_device.kind == 0 {
            return copy();
        }
        crate::interrupts::waiting(copy)?;
        if to_device.kind == 0 { self.end_if_panicked(false) } else { Ok(()) }
    }
}

/// How many devices a platform has; 0 if it is not there, or no platform.
pub(crate) fn n_devices(platform: i32) -> i32 {
    let found = usize::try_from(platform).ok().and_then(by_number);
    found.and_then(|p| p.n_devices().ok()).and_then(|n| i32::try_from(n).ok()).unwrap_or(0)
}

/// The name of a platform's device; `None` if it is not there.
pub fn device_name(platform: i32, device: usize) -> Option<String> {
    let found = usize::try_from(platform).ok().and_then(by_number)?;
    found.n_devices().ok().filter(|&n| device < n)?;
    found.device_name(device).ok()
}

/// The list of platforms, a line for each: its number and name, then its devices, or why there are none.
pub fn overview() -> Vec<String> {
    let mut lines = Vec::new();
    for (i, name) in NAMES.iter().enumerate() {
        let Some(platform) = by_number(i) else { continue };
        match platform.n_devices() {
            Err(why) => lines.push(format!("platform {i}, {name}: not there: {why}")),
            Ok(n) => lines.extend((0..n).map(|d| {
                let device = platform.device_name(d).unwrap_or_default();
                format!("platform {i}, {name}: device {d}, {device}")
            })),
        }
    }
    lines
}

/// Nanoseconds that kernels have run so far.
static KERNEL_TIME: AtomicI64 = AtomicI64::new(0);

/// Whether the program has asked for that time yet.
static IS_KERNEL_TIME_WANTED: AtomicBool = AtomicBool::new(false);

/// Nanoseconds that kernels have run so far, on all devices. CUDA's count from the first call on: events around each launch cost as much
/// as the launch itself.
pub(crate) fn kernel_time() -> i64 {
    IS_KERNEL_TIME_WANTED.store(true, Ordering::Relaxed);
    KERNEL_TIME.load(Ordering::Relaxed)
}

/// Whether kernels are to be timed where that costs something.
fn is_kernel_time_wanted() -> bool {
    IS_KERNEL_TIME_WANTED.load(Ordering::Relaxed)
}

/// What a driver says of kernels that failed, with what is known of them: drivers do not tell which one it was.
pub(crate) fn kernel_failed(why: Error) -> Error {
    let last = crate::interrupts::last_launch();
    let last =
        last.map_or(String::new(), |(name, place)| format!("; the last kernel is `{name}`, launched at {place}"));
    format!("{why}{last}; `--device host --check` tells where an access is wild")
}

/// Notes that kernels have run.
pub(crate) fn add_kernel_time(nanoseconds: i64) {
    KERNEL_TIME.fetch_add(nanoseconds, Ordering::Relaxed);
}
