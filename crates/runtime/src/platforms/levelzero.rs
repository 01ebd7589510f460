//! Intel's GPUs by Level Zero (*oneAPI Level Zero Specification* 1.8). The loader is opened when a program first asks for the
//! platform. Kernels are SPIR-V, which the driver compiles when the first kernel of a module is launched.
//!
//! A queue is an immediate command list. Commands there may overlap, so each follows a barrier.

use super::allocations::Allocations;
use super::devices::{Devices, Loaded, Loads, Queues, working};
use super::driver::library;
use super::kept::Kept;
use super::{Arg, Error, Launch, Mark, Memory, Platform, Queue, add_kernel_time, kernel_failed};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// All devices of all drivers, in the order in which the loader lists them.
pub(crate) struct LevelZero;

/// Launches whose events are kept until somebody waits.
const MAX_LAUNCHES: usize = 512;
/// Events of a device, those of launches and those of the program.
const EVENTS: u32 = 4096;

type Handle = *mut c_void;
type Status = u32;

/// Numbers of the interface.
mod code {
    pub const DEVICE_PROPERTIES: u32 = 3;
    pub const COMPUTE_PROPERTIES: u32 = 4;
    pub const DRIVER_PROPERTIES: u32 = 1;
    pub const CONTEXT: u32 = 13;
    pub const QUEUE: u32 = 14;
    pub const EVENT_POOL: u32 = 16;
    pub const EVENT: u32 = 17;
    pub const DEVICE_MEMORY: u32 = 21;
    pub const HOST_MEMORY: u32 = 22;
    pub const MODULE: u32 = 27;
    pub const KERNEL: u32 = 29;
    pub const ASYNCHRONOUS: u32 = 2;
    /// Events that the host sees, with times.
    pub const EVENT_POOL_FLAGS: u32 = 1 | 4;
    pub const EVENT_SCOPE_HOST: u32 = 4;
    pub const FORMAT_SPIRV: u32 = 0;
    pub const FORMAT_NATIVE: u32 = 1;
    /// Memory of the host, the device, and both.
    pub const INDIRECT_ACCESS: u32 = 7;
    pub const NOT_READY: u32 = 1;
}

/// Errors, in words.
const ERRORS: &[(Status, &str)] = &[
    (0x7000_0001, "the device is lost"),
    (0x7000_0002, "out of the host's memory"),
    (0x7000_0003, "out of the device's memory"),
    (0x7000_0004, "the module cannot be built"),
    (0x7800_0001, "the driver is not initialized"),
    (0x7800_0002, "the version is not supported"),
    (0x7800_0003, "the feature is not supported"),
    (0x7800_0004, "an argument is invalid"),
    (0x7800_0009, "the size is not supported"),
    (0x7800_000f, "the machine code is invalid"),
    (0x7800_0011, "there is no such kernel"),
    (0x7800_0013, "the size of a block is invalid"),
];

/// The begin of all structs: their kind, and the next in a chain.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head(u32, *const c_void);

const fn head(kind: u32) -> Head {
    Head(kind, std::ptr::null())
}

#[repr(C)]
struct DeviceProperties {
    head: Head,
    kind: [u32; 16],
    /// In nanoseconds.
    timer_resolution: u64,
    timestamp_bits: [u32; 2],
    uuid: [u8; 16],
    name: [u8; 256],
}

#[repr(C)]
struct ComputeProperties {
    head: Head,
    max_block: u32,
    max_extents: [u32; 3],
    max_blocks: [u32; 3],
    shared: u32,
    rest: [u32; 10],
}

#[repr(C)]
struct DriverProperties {
    head: Head,
    uuid: [u8; 16],
    version: [u32; 2],
}

/// Descriptors of contexts, event pools, events and memory: their heads, and up to four numbers.
#[repr(C)]
struct Description(Head, [u32; 4]);

#[repr(C)]
struct QueueDescription(Head, [u32; 6]);

#[repr(C)]
struct ModuleDescription {
    head: Head,
    format: u32,
    size: usize,
    code: *const u8,
    flags: *const c_char,
    constants: *const c_void,
}

#[repr(C)]
struct KernelDescription {
    head: Head,
    flags: u32,
    name: *const c_char,
}

library! { "libze_loader.so.1":
    zeInit(u32) -> Status;
    zeDriverGet(*mut u32, *mut Handle) -> Status;
    zeDriverGetProperties(Handle, *mut DriverProperties) -> Status;
    zeDeviceGet(Handle, *mut u32, *mut Handle) -> Status;
    zeDeviceGetProperties(Handle, *mut DeviceProperties) -> Status;
    zeDeviceGetComputeProperties(Handle, *mut ComputeProperties) -> Status;
    zeContextCreate(Handle, *const Description, *mut Handle) -> Status;
    zeCommandListCreateImmediate(Handle, Handle, *const QueueDescription, *mut Handle) -> Status;
    zeMemAllocDevice(Handle, *const Description, usize, usize, Handle, *mut Handle) -> Status;
    zeMemAllocHost(Handle, *const Description, usize, usize, *mut Handle) -> Status;
    zeMemAllocShared(Handle, *const Description, *const Description, usize, usize, Handle, *mut Handle) -> Status;
    zeMemFree(Handle, Handle) -> Status;
    zeCommandListAppendMemoryCopy(Handle, *mut c_void, *const c_void, usize, Handle, u32, *const Handle) -> Status;
    zeCommandListAppendBarrier(Handle, Handle, u32, *const Handle) -> Status;
    zeCommandListAppendLaunchKernel(Handle, Handle, *const [u32; 3], Handle, u32, *const Handle) -> Status;
    zeModuleCreate(Handle, Handle, *const ModuleDescription, *mut Handle, *mut Handle) -> Status;
    zeModuleBuildLogGetString(Handle, *mut usize, *mut c_char) -> Status;
    zeModuleBuildLogDestroy(Handle) -> Status;
    zeModuleGetNativeBinary(Handle, *mut usize, *mut u8) -> Status;
    zeKernelCreate(Handle, *const KernelDescription, *mut Handle) -> Status;
    zeKernelSetGroupSize(Handle, u32, u32, u32) -> Status;
    zeKernelSetArgumentValue(Handle, u32, usize, *const c_void) -> Status;
    zeKernelSetIndirectAccess(Handle, u32) -> Status;
    zeEventPoolCreate(Handle, *const Description, u32, *const Handle, *mut Handle) -> Status;
    zeEventCreate(Handle, *const Description, *mut Handle) -> Status;
    zeEventHostSynchronize(Handle, u64) -> Status;
    zeEventHostReset(Handle) -> Status;
    zeEventQueryStatus(Handle) -> Status;
    zeEventQueryKernelTimestamp(Handle, *mut [u64; 4]) -> Status;
}

fn checked(what: &str, status: Status) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        _ => match ERRORS.iter().find(|e| e.0 == status) {
            Some((_, words)) => Err(format!("{what}: {words}")),
            None => Err(format!("{what}: error {status:#x}")),
        },
    }
}

struct Device {
    library: &'static Library,
    device: Handle,
    context: Handle,
    name: String,
    /// Differs between devices and drivers whose machine code differs.
    identity: Vec<u8>,
    max_block: usize,
    /// Nanoseconds of a tick, and the bits of a time.
    clock: (u64, u64),
    queues: Queues<Handle>,
    /// Allocations, and whether the host reaches them, too.
    memory: Allocations<bool>,
    loaded: Loaded<Handle, Handle>,
    pool: Handle,
    /// Events of the pool that were made.
    n_events: u32,
    /// Events that nobody waits for.
    spare: Vec<Handle>,
    /// Marks that the program has given up.
    forgotten: Vec<Handle>,
    /// Launches that nobody has waited for: queue, event.
    launched: Vec<(usize, Handle)>,
}

// SAFETY: objects of Level Zero may be used from any thread, one at a time, which the lock of their device sees to.
unsafe impl Send for Device {}

/// A list by a function that first says how long it is.
fn list(what: &str, get: impl Fn(&mut u32, *mut Handle) -> Status) -> Result<Vec<Handle>, Error> {
    let mut n = 0;
    checked(what, get(&mut n, std::ptr::null_mut()))?;
    let mut all = vec![std::ptr::null_mut(); n as usize];
    checked(what, get(&mut n, all.as_mut_ptr()))?;
    all.truncate(n as usize);
    Ok(all)
}

static DEVICES: Devices<Device> = Devices::new(|| {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let opened = Library::open()?;
    let library = LIBRARY.get_or_init(|| opened);
    // SAFETY: the first call of the library.
    checked("no driver of a device can be used", unsafe { (library.zeInit)(0) })?;
    // SAFETY: the lists have room for what is asked.
    let drivers = list("the drivers", |n, all| unsafe { (library.zeDriverGet)(n, all) })?;
    let of = |driver| {
        // SAFETY: as above.
        let found = list("the devices", |n, all| unsafe { (library.zeDeviceGet)(driver, n, all) });
        found.unwrap_or_default().into_iter().map(move |device| Device::new(library, driver, device))
    };
    working(drivers.into_iter().flat_map(of), "no driver has a device")
});

impl Device {
    fn new(library: &'static Library, driver: Handle, handle: Handle) -> Result<Device, Error> {
        let null = std::ptr::null_mut();
        let mut about = DeviceProperties {
            head: head(code::DEVICE_PROPERTIES),
            kind: [0; 16],
            timer_resolution: 0,
            timestamp_bits: [0; 2],
            uuid: [0; 16],
            name: [0; 256],
        };
        let mut computes = ComputeProperties {
            head: head(code::COMPUTE_PROPERTIES),
            max_block: 0,
            max_extents: [0; 3],
            max_blocks: [0; 3],
            shared: 0,
            rest: [0; 10],
        };
        let mut drives = DriverProperties { head: head(code::DRIVER_PROPERTIES), uuid: [0; 16], version: [0; 2] };
        let (mut context, mut pool) = (null, null);
        // SAFETY: the structs live during the calls; context and pool are never destroyed.
        unsafe {
            checked("the device's properties", (library.zeDeviceGetProperties)(handle, &mut about))?;
            checked("the device's properties", (library.zeDeviceGetComputeProperties)(handle, &mut computes))?;
            checked("the driver's properties", (library.zeDriverGetProperties)(driver, &mut drives))?;
            let what = Description(head(code::CONTEXT), [0; 4]);
            checked("zeContextCreate", (library.zeContextCreate)(driver, &what, &mut context))?;
            let what = Description(head(code::EVENT_POOL), [code::EVENT_POOL_FLAGS, EVENTS, 0, 0]);
            checked("zeEventPoolCreate", (library.zeEventPoolCreate)(context, &what, 1, &handle, &mut pool))?;
        }
        let end = about.name.iter().position(|&b| b == 0).unwrap_or(about.name.len());
        let name = String::from_utf8_lossy(&about.name[..end]).trim().to_string();
        let bits = about.timestamp_bits[1];
        Ok(Device {
            library,
            device: handle,
            context,
            identity: [name.as_bytes(), &about.uuid, &drives.version[0].to_ne_bytes()].concat(),
            name,
            max_block: computes.max_block as usize,
            clock: (about.timer_resolution, if (1..64).contains(&bits) { (1 << bits) - 1 } else { u64::MAX }),
            queues: Queues::new(make_queue(library, context, handle)?),
            memory: Allocations::new(),
            loaded: Loaded::new(),
            pool,
            n_events: 0,
            spare: Vec::new(),
            forgotten: Vec::new(),
            launched: Vec::new(),
        })
    }

    /// An event that has not happened.
    fn event(&mut self) -> Result<Handle, Error> {
        // SAFETY: the event is the device's, and nobody waits for it.
        if let Some(spare) = self.spare.pop() {
            return checked("zeEventHostReset", unsafe { (self.library.zeEventHostReset)(spare) }).map(|()| spare);
        }
        if self.n_events == EVENTS {
            return Err(format!("the program has more than {EVENTS} events of the device"));
        }
        let mut event = std::ptr::null_mut();
        let what = Description(head(code::EVENT), [self.n_events, code::EVENT_SCOPE_HOST, 0, 0]);
        // SAFETY: the pool is the device's, and has such an event.
        checked("zeEventCreate", unsafe { (self.library.zeEventCreate)(self.pool, &what, &mut event) })?;
        self.n_events += 1;
        Ok(event)
    }

    /// A module, built: what was kept of it from an earlier run, or compiled now.
    fn module(&self, code: &[u8]) -> Result<Handle, Error> {
        let kept = Kept::of(&[b"level zero", code, &self.identity]);
        if let Some(native) = kept.get()
            && let Ok(module) = self.build(code::FORMAT_NATIVE, &native)
        {
            return Ok(module);
        }
        let module = self.build(code::FORMAT_SPIRV, code)?;
        let mut size = 0;
        // SAFETY: the module is built; the vector has the size that was asked for.
        unsafe {
            if (self.library.zeModuleGetNativeBinary)(module, &mut size, std::ptr::null_mut()) == 0 {
                let mut native = vec![0; size];
                if (self.library.zeModuleGetNativeBinary)(module, &mut size, native.as_mut_ptr()) == 0 {
                    kept.put(&native);
                }
            }
        }
        Ok(module)
    }

    fn build(&self, format: u32, code: &[u8]) -> Result<Handle, Error> {
        let library = self.library;
        let what = ModuleDescription {
            head: head(code::MODULE),
            format,
            size: code.len(),
            code: code.as_ptr(),
            flags: std::ptr::null(),
            constants: std::ptr::null(),
        };
        let (mut module, mut log) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the code lives during the call; the log is destroyed after its last use.
        unsafe {
            let status = (library.zeModuleCreate)(self.context, self.device, &what, &mut module, &mut log);
            let mut said = String::new();
            if !log.is_null() {
                let mut size = 0;
                if (library.zeModuleBuildLogGetString)(log, &mut size, std::ptr::null_mut()) == 0 && size > 0 {
                    let mut bytes = vec![0u8; size + 1];
                    (library.zeModuleBuildLogGetString)(log, &mut size, bytes.as_mut_ptr().cast());
                    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
                    said = text.to_string_lossy().trim_end().to_string();
                }
                (library.zeModuleBuildLogDestroy)(log);
            }
            checked("the driver cannot compile its code", status)
                .map_err(|e| format!("{e}\n{said}").trim_end().to_string())?;
        }
        Ok(module)
    }

    /// Waits for all of a queue, or of the device, and adds up what kernels took.
    fn finish(&mut self, only: Option<usize>) -> Result<(), Error> {
        let is_meant = |queue: usize| only.is_none_or(|only| only == queue);
        for &(_, event) in self.launched.iter().filter(|l| is_meant(l.0)) {
            // SAFETY: the event is the device's.
            checked("a kernel failed", unsafe { (self.library.zeEventHostSynchronize)(event, u64::MAX) })
                .map_err(kernel_failed)?;
        }
        for (_, event) in self.launched.extract_if(.., |l| is_meant(l.0)) {
            if let Ok([start, end]) = times(self.library, event) {
                add_kernel_time(nanoseconds(self.clock, start, end));
            }
            self.spare.push(event);
        }
        if self.launched.is_empty() {
            let library = self.library;
            // SAFETY: the events are the device's.
            let is_over = |mark: &mut Handle| unsafe { (library.zeEventQueryStatus)(*mark) } == 0;
            self.spare.extend(self.forgotten.extract_if(.., is_over));
        }
        Ok(())
    }

    /// Lets what is put into a queue next wait for all before, and for a mark.
    fn order(&self, queue: Handle, after: &[Handle]) -> Result<(), Error> {
        // SAFETY: the queue is the device's, and so are the events.
        let status = unsafe {
            let none = std::ptr::null_mut();
            (self.library.zeCommandListAppendBarrier)(queue, none, after.len() as u32, after.as_ptr())
        };
        checked("zeCommandListAppendBarrier", status)
    }

    /// Copies after all that is in a queue, and waits.
    ///
    /// # Safety
    /// Both have `size` bytes.
    unsafe fn copy(&mut self, at: usize, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let queue = self.queues.find(at)?;
        self.order(queue, &[])?;
        let event = self.event()?;
        // SAFETY: the caller's promise.
        unsafe {
            let none = std::ptr::null();
            let status = (self.library.zeCommandListAppendMemoryCopy)(queue, to, from, size, event, 0, none);
            checked("cannot copy", status)?;
            checked("cannot copy", (self.library.zeEventHostSynchronize)(event, u64::MAX))?;
        }
        self.spare.push(event);
        Ok(())
    }
}

fn make_queue(library: &Library, context: Handle, device: Handle) -> Result<Handle, Error> {
    let mut queue = std::ptr::null_mut();
    let what = QueueDescription(head(code::QUEUE), [0, 0, 0, code::ASYNCHRONOUS, 0, 0]);
    // SAFETY: the context is the device's.
    let status = unsafe { (library.zeCommandListCreateImmediate)(context, device, &what, &mut queue) };
    checked("zeCommandListCreateImmediate", status).map(|()| queue)
}

/// When an event began and ended, in ticks of the device.
fn times(library: &Library, event: Handle) -> Result<[u64; 2], Error> {
    let mut times = [0; 4];
    // SAFETY: the event has happened.
    checked("the time of an event", unsafe { (library.zeEventQueryKernelTimestamp)(event, &mut times) })?;
    Ok([times[0], times[1]])
}

fn nanoseconds((tick, mask): (u64, u64), from: u64, to: u64) -> i64 {
    (to.wrapping_sub(from) & mask).saturating_mul(tick) as i64
}

impl Loads for Device {
    type Module = Handle;
    type Kernel = Handle;

    fn loaded(&mut self) -> &mut Loaded<Handle, Handle> {
        &mut self.loaded
    }

    fn load(&mut self, code: &'static [u8]) -> Result<Handle, Error> {
        self.module(code)
    }

    fn find(&mut self, module: Handle, name: &CStr) -> Result<Handle, Error> {
        let what = KernelDescription { head: head(code::KERNEL), flags: 0, name: name.as_ptr() };
        let mut kernel = std::ptr::null_mut();
        // SAFETY: the module is built, the struct lives.
        unsafe {
            checked("zeKernelCreate", (self.library.zeKernelCreate)(module, &what, &mut kernel))?;
            let status = (self.library.zeKernelSetIndirectAccess)(kernel, code::INDIRECT_ACCESS);
            checked("zeKernelSetIndirectAccess", status)?;
        }
        Ok(kernel)
    }
}

impl Platform for LevelZero {
    fn n_devices(&self) -> Result<usize, Error> {
        DEVICES.count()
    }

    fn device_name(&self, number: usize) -> Result<String, Error> {
        Ok(DEVICES.lock(number)?.name.clone())
    }

    /// Not all of Intel's GPUs have the others.
    fn has_feature(&self, number: usize, name: &str) -> Result<bool, Error> {
        self.device_name(number)?;
        Ok(["fp16", "subgroups", "divergent_votes"].contains(&name))
    }

    fn alloc(&self, number: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error> {
        let mut device = DEVICES.lock(number)?;
        let (own, host) =
            (Description(head(code::DEVICE_MEMORY), [0; 4]), Description(head(code::HOST_MEMORY), [0; 4]));
        let (context, bytes, mut at) = (device.context, size.max(1), std::ptr::null_mut());
        // SAFETY: the context is the device's; an alignment of 64 suits all types.
        let status = unsafe {
            let library = device.library;
            match memory {
                Memory::Device => (library.zeMemAllocDevice)(context, &own, bytes, 64, device.device, &mut at),
                Memory::Host => (library.zeMemAllocHost)(context, &host, bytes, 64, &mut at),
                Memory::Unified => (library.zeMemAllocShared)(context, &own, &host, bytes, 64, device.device, &mut at),
            }
        };
        checked(&format!("cannot allocate {size} bytes"), status)?;
        device.memory.insert(at as u64, size, memory != Memory::Device);
        Ok(at)
    }

    unsafe fn release(&self, number: usize, pointer: *mut c_void) -> Result<(), Error> {
        let mut device = DEVICES.lock(number)?;
        // Kernels may still use it.
        device.finish(None)?;
        device.memory.remove(pointer as u64)?;
        // SAFETY: it was allocated here, and is used by nobody.
        checked("cannot release it", unsafe { (device.library.zeMemFree)(device.context, pointer) })
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.memory.find(to as u64, size)?;
        // SAFETY: the range lies in the allocation, that of the host is the caller's promise.
        unsafe { device.copy(at.number, to, from, size) }
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        // Tells of kernels that have failed.
        device.finish(Some(at.number))?;
        device.memory.find(from as u64, size)?;
        // SAFETY: as above.
        unsafe { device.copy(at.number, to, from, size) }
    }

    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        let kernel = device.kernel(launch)?;
        let [x, y, z] = launch.block;
        super::check_block(launch.block, device.max_block)?;
        let library = device.library;
        device.memory.check(&launch.args)?;
        for (i, arg) in launch.args.iter().enumerate() {
            let bytes: &[u8] = match arg {
                Arg::Value { bytes, .. } => bytes,
                Arg::Address(pointer) => &(*pointer as u64).to_ne_bytes(),
            };
            // SAFETY: the kernel takes such an argument, by the caller's promise; it is copied.
            let status =
                unsafe { (library.zeKernelSetArgumentValue)(kernel, i as u32, bytes.len(), bytes.as_ptr().cast()) };
            checked(&format!("argument {i}"), status)?;
        }
        if device.launched.len() >= MAX_LAUNCHES {
            device.finish(None)?;
        }
        device.order(queue, &[])?;
        let event = device.event()?;
        let blocks = launch.blocks.map(|n| n as u32);
        // SAFETY: all are the device's.
        unsafe {
            let what = format!("blocks of {x} by {y} by {z} work items");
            checked(&what, (library.zeKernelSetGroupSize)(kernel, x as u32, y as u32, z as u32))?;
            let none = std::ptr::null();
            let status = (library.zeCommandListAppendLaunchKernel)(queue, kernel, &blocks, event, 0, none);
            checked(&what, status)?;
        }
        device.launched.push((at.number, event));
        Ok(())
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queues.find(at.number)?;
        device.finish((at.number != 0).then_some(at.number))
    }

    fn make_queue(&self, number: usize) -> Result<usize, Error> {
        let mut device = DEVICES.lock(number)?;
        let made = make_queue(device.library, device.context, device.device)?;
        Ok(device.queues.add(made))
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        let mut device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        let event = device.event()?;
        // SAFETY: both are the device's.
        let status = unsafe { (device.library.zeCommandListAppendBarrier)(queue, event, 0, std::ptr::null()) };
        checked("zeCommandListAppendBarrier", status)?;
        Ok(event as usize as Mark)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        let device = DEVICES.lock(at.device)?;
        device.order(device.queues.find(at.number)?, &[mark as usize as Handle])
    }

    fn wait(&self, number: usize, mark: Mark) -> Result<(), Error> {
        let library = DEVICES.lock(number)?.library;
        // SAFETY: the event is not destroyed. Without the lock: others may go on meanwhile.
        checked("a kernel failed", unsafe { (library.zeEventHostSynchronize)(mark as usize as Handle, u64::MAX) })
            .map_err(kernel_failed)
    }

    fn is_over(&self, number: usize, mark: Mark) -> Result<bool, Error> {
        let device = DEVICES.lock(number)?;
        // SAFETY: as above.
        match unsafe { (device.library.zeEventQueryStatus)(mark as usize as Handle) } {
            code::NOT_READY => Ok(false),
            status => checked("a kernel failed", status).map(|()| true).map_err(kernel_failed),
        }
    }

    fn elapsed(&self, number: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        let device = DEVICES.lock(number)?;
        let end = |mark: Mark| times(device.library, mark as usize as Handle).map(|t| t[1]);
        let (from, to) = (end(from)?, end(to)?);
        Ok(match from <= to {
            true => nanoseconds(device.clock, from, to),
            false => -nanoseconds(device.clock, to, from),
        })
    }

    fn forget(&self, number: usize, mark: Mark) {
        let Ok(mut device) = DEVICES.lock(number) else { return };
        // A queue may still wait for it.
        device.forgotten.push(mark as usize as Handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_those_of_the_interface() {
        assert_eq!(
            [
                size_of::<DeviceProperties>(),
                size_of::<ComputeProperties>(),
                size_of::<DriverProperties>(),
                size_of::<Description>(),
                size_of::<QueueDescription>(),
                size_of::<ModuleDescription>(),
                size_of::<KernelDescription>(),
            ],
            [368, 88, 40, 32, 40, 56, 32]
        );
        let at = std::mem::offset_of!(DeviceProperties, timer_resolution);
        assert_eq!(
            (at, std::mem::offset_of!(DeviceProperties, uuid), std::mem::offset_of!(DeviceProperties, name)),
            (80, 96, 112)
        );
        assert_eq!(std::mem::offset_of!(ModuleDescription, size), 24);
    }
}
