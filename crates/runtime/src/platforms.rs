//! Devices, by platform. A [`Platform`] is what the functions of the runtime ask for memory, copies and launches; which
//! ones there are is found when a program first asks. A missing driver is a platform that is not there, never a failure to
//! start.
//!
//! A device is a number, `platform | device << 4`; platforms are the host (0), CUDA (1), OpenCL (2), HSA (3), PAL (4),
//! Level Zero (5) and Vulkan (6).

mod cuda;
mod host;
mod missing;
mod opencl;
mod vulkan;

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};

/// Names of the platforms, by number.
pub(crate) const NAMES: [&str; 7] = ["CPU", "CUDA", "OpenCL", "HSA", "PAL", "Level Zero", "Vulkan"];

/// How many platforms have a number.
pub const N_PLATFORMS: i32 = NAMES.len() as i32;

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
    pub args: Vec<Arg<'a>>,
}

/// An argument of a kernel.
pub(crate) enum Arg<'a> {
    /// The bytes of a number, or of an aggregate.
    Value(&'a [u8]),
    /// An address of the device.
    Address(*mut c_void),
}

/// Devices of one kind. Devices are numbered from 0; one that does not exist is an error.
pub(crate) trait Platform: Sync {
    /// How many devices there are.
    ///
    /// # Errors
    /// Why the platform is not there.
    fn n_devices(&self) -> Result<usize, Error>;

    /// The device's name.
    fn device_name(&self, device: usize) -> Result<String, Error>;

    /// Allocates memory, its contents undefined.
    fn alloc(&self, device: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error>;

    /// Frees memory of [`Platform::alloc`]; null is allowed.
    ///
    /// # Safety
    /// Nobody uses the memory afterwards.
    unsafe fn release(&self, device: usize, pointer: *mut c_void) -> Result<(), Error>;

    /// Copies from the host to the device, and waits.
    ///
    /// # Safety
    /// Both ranges lie in memory of their devices.
    unsafe fn write(&self, device: usize, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error>;

    /// Copies from the device to the host, after all kernels that were launched before.
    ///
    /// # Safety
    /// As for [`Platform::write`].
    unsafe fn read(&self, device: usize, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error>;

    /// Launches a kernel after all others that were launched on the device. Does not wait for it.
    ///
    /// # Safety
    /// The arguments are what the kernel takes.
    unsafe fn launch(&self, device: usize, launch: &Launch) -> Result<(), Error>;

    /// Waits for all kernels of the device.
    fn synchronize(&self, device: usize) -> Result<(), Error>;
}

static HOST: host::Host = host::Host;
static OPENCL: opencl::OpenCl = opencl::OpenCl;
static CUDA: cuda::Cuda = cuda::Cuda;
static VULKAN: vulkan::Vulkan = vulkan::Vulkan;
static LEVEL_ZERO: missing::Missing = missing::Missing("the runtime cannot drive it yet");
static OTHERS: missing::Missing = missing::Missing("code for it cannot be made yet");

/// The platform of this number.
fn by_number(number: usize) -> Option<&'static dyn Platform> {
    Some(match number {
        0 => &HOST,
        1 => &CUDA,
        2 => &OPENCL,
        3..=4 => &OTHERS,
        5 => &LEVEL_ZERO,
        6 => &VULKAN,
        _ => return None,
    })
}

/// A device that exists.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub platform: &'static dyn Platform,
    pub number: usize,
    /// Its platform's number.
    kind: i32,
}

impl Device {
    /// The device of a number.
    ///
    /// # Errors
    /// It does not exist, and why.
    pub fn find(device: i32) -> Result<Device, Error> {
        let (platform, number) = ((device & 15) as usize, device >> 4);
        let asked = format!("device {number} of it was asked for");
        let (Some(found), Some(name)) = (by_number(platform), NAMES.get(platform)) else {
            return Err(format!("there is no platform {platform} ({asked})"));
        };
        let n =
            found.n_devices().map_err(|why| format!("platform {platform}, {name}, is not there ({asked}): {why}"))?;
        match usize::try_from(number) {
            Ok(number) if number < n => Ok(Device { platform: found, number, kind: platform as i32 }),
            _ => {
                let last = n.saturating_sub(1);
                let devices = if n == 1 { "only device 0".into() } else { format!("only devices 0 to {last}") };
                Err(format!("platform {platform}, {name}, has no device {number}, {devices}"))
            }
        }
    }

    /// Waits for all kernels of the device. Ends the process if one has panicked.
    pub fn synchronize(self) -> Result<(), Error> {
        self.platform.synchronize(self.number)?;
        self.look_for_panics()
    }

    fn look_for_panics(self) -> Result<(), Error> {
        crate::launch::look_for_panics(self, (self.kind, self.number as i32))
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
        unsafe {
            match (self.kind == 0, to_device.kind == 0) {
                (true, true) => {
                    to.cast::<u8>().copy_from(from.cast(), size);
                    Ok(())
                }
                (true, false) => to_device.platform.write(to_device.number, to, from, size),
                (false, true) => {
                    self.platform.read(self.number, to, from, size)?;
                    self.look_for_panics()
                }
                (false, false) => {
                    // By way of the host, a piece at a time.
                    let mut piece = vec![0u8; size.min(1 << 24)];
                    let mut done = 0;
                    while done < size {
                        let n = piece.len().min(size - done);
                        let (from, to) = (from.cast::<u8>().add(done), to.cast::<u8>().add(done));
                        self.platform.read(self.number, piece.as_mut_ptr().cast(), from.cast(), n)?;
                        to_device.platform.write(to_device.number, to.cast(), piece.as_ptr().cast(), n)?;
                        done += n;
                    }
                    Ok(())
                }
            }
        }
    }
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

/// Nanoseconds that kernels have run so far, on all devices.
pub(crate) fn kernel_time() -> i64 {
    KERNEL_TIME.load(Ordering::Relaxed)
}

/// Notes that kernels have run.
pub(crate) fn add_kernel_time(nanoseconds: i64) {
    KERNEL_TIME.fetch_add(nanoseconds, Ordering::Relaxed);
}
