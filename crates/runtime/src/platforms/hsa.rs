//! AMD's GPUs by HSA (*HSA Runtime Programmer's Reference Manual* 1.2, and AMD's extensions of it). The library is opened
//! when a program first asks for the platform. Kernels are code objects for one architecture, which `--amdgpu` names.
//!
//! Memory of the device is copied to by way of memory of the host that both reach. The arguments of a kernel lie in memory for
//! them, each aligned as its type is, in the order of the parameters.

use super::allocations::Allocations;
use super::devices::{Devices, Loaded, Loads, Queues, working};
use super::driver::library;
use super::{Arg, Error, Launch, Mark, Memory, Platform, Queue, add_kernel_time, kernel_failed};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// All GPUs that the library lists, in its order.
pub(crate) struct Hsa;

/// Packets that a queue holds at most.
const QUEUE_SIZE: u32 = 1024;
/// Launches whose signals are kept until somebody waits.
const MAX_LAUNCHES: usize = 512;
/// Bytes for the arguments of all launches that are on their way.
const ARGUMENTS: usize = 1 << 20;
/// Bytes that are copied at once.
const STAGING: usize = 1 << 24;
/// How long one wait for a signal takes before a fault of the queue is looked for, in clock ticks.
const PATIENCE: u64 = 100_000_000;

/// Numbers of the interface.
mod code {
    pub const AGENT_NAME: u32 = 0;
    pub const AGENT_DEVICE: u32 = 17;
    pub const AGENT_PRODUCT_NAME: u32 = 0xa009;
    pub const AGENT_WORKGROUP_MAX_SIZE: u32 = 8;
    pub const CPU: u32 = 0;
    pub const GPU: u32 = 1;
    pub const POOL_SEGMENT: u32 = 0;
    pub const POOL_GLOBAL_FLAGS: u32 = 1;
    pub const POOL_ALLOC_ALLOWED: u32 = 5;
    pub const KERNARG: u32 = 1;
    pub const FINE_GRAINED: u32 = 2;
    pub const COARSE_GRAINED: u32 = 4;
    pub const QUEUE_TYPE_SINGLE: u32 = 1;
    pub const CONDITION_LESS: u32 = 2;
    pub const SYMBOL_OBJECT: u32 = 22;
    pub const SYMBOL_ARGUMENTS: u32 = 11;
    pub const SYMBOL_GROUP: u32 = 13;
    pub const SYMBOL_PRIVATE: u32 = 14;
    pub const PROFILE_FULL: u32 = 1;
    pub const SYSTEM_FREQUENCY: u32 = 3;
    pub const PACKET_KERNEL: u16 = 2;
    pub const PACKET_BARRIER: u16 = 3;
    /// Runs after all before; memory is the whole system's before and after.
    pub const IN_ORDER: u16 = 1 << 8 | 2 << 9 | 2 << 11;
}

/// A queue of the library, of which the rest is private.
#[repr(C)]
struct RawQueue {
    kind: u32,
    features: u32,
    base: *mut [u32; 16],
    doorbell: u64,
    size: u32,
    reserved: u32,
    id: u64,
}

type Status = u32;
type Found = unsafe extern "C" fn(u64, *mut c_void) -> Status;
type Failed = unsafe extern "C" fn(Status, *mut RawQueue, *mut c_void);

library! { "libhsa-runtime64.so.1":
    hsa_init() -> Status;
    hsa_status_string(Status, *mut *const c_char) -> Status;
    hsa_system_get_info(u32, *mut c_void) -> Status;
    hsa_iterate_agents(Found, *mut c_void) -> Status;
    hsa_agent_get_info(u64, u32, *mut c_void) -> Status;
    hsa_amd_agent_iterate_memory_pools(u64, Found, *mut c_void) -> Status;
    hsa_amd_memory_pool_get_info(u64, u32, *mut c_void) -> Status;
    hsa_amd_memory_pool_allocate(u64, usize, u32, *mut *mut c_void) -> Status;
    hsa_amd_memory_pool_free(*mut c_void) -> Status;
    hsa_amd_agents_allow_access(u32, *const u64, *const u32, *const c_void) -> Status;
    hsa_memory_copy(*mut c_void, *const c_void, usize) -> Status;
    hsa_queue_create(u64, u32, u32, Failed, *mut c_void, u32, u32, *mut *mut RawQueue) -> Status;
    hsa_queue_add_write_index_relaxed(*const RawQueue, u64) -> u64;
    hsa_queue_load_read_index_scacquire(*const RawQueue) -> u64;
    hsa_signal_create(i64, u32, *const u64, *mut u64) -> Status;
    hsa_signal_store_screlease(u64, i64);
    hsa_signal_load_scacquire(u64) -> i64;
    hsa_signal_wait_scacquire(u64, u32, i64, u64, u32) -> i64;
    hsa_code_object_reader_create_from_memory(*const c_void, usize, *mut u64) -> Status;
    hsa_executable_create_alt(u32, u32, *const c_char, *mut u64) -> Status;
    hsa_executable_load_agent_code_object(u64, u64, u64, *const c_char, *mut u64) -> Status;
    hsa_executable_freeze(u64, *const c_char) -> Status;
    hsa_executable_get_symbol_by_name(u64, *const c_char, *const u64, *mut u64) -> Status;
    hsa_executable_symbol_get_info(u64, u32, *mut c_void) -> Status;
    hsa_amd_profiling_set_profiler_enabled(*mut RawQueue, i32) -> Status;
    hsa_amd_profiling_get_dispatch_time(u64, u64, *mut [u64; 2]) -> Status;
}

impl Library {
    /// The result of a function: an error says what it is, by the library's own words.
    fn checked(&self, what: &str, status: Status) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the library's texts stay.
        let text = unsafe {
            match (self.hsa_status_string)(status, &mut text) {
                0 if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                _ => format!("error {status:#x}"),
            }
        };
        Err(format!("{what}: {text}"))
    }

    /// The answer of a function to a question about a handle.
    fn info<T: Default>(
        &self,
        function: unsafe extern "C" fn(u64, u32, *mut c_void) -> Status,
        of: u64,
        what: u32,
    ) -> Result<T, Error> {
        let mut value = T::default();
        // SAFETY: callers give the type that the number has.
        let status = unsafe { function(of, what, (&raw mut value).cast()) };
        self.checked("the device's properties", status)?;
        Ok(value)
    }

    /// A name of an agent.
    fn name(&self, agent: u64, what: u32) -> Result<String, Error> {
        let bytes: [[u8; 32]; 2] = self.info(self.hsa_agent_get_info, agent, what)?;
        let bytes = bytes.concat();
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).trim().into())
    }

    /// The handles that an iteration finds.
    fn list(&self, what: &str, iterate: impl Fn(Found, *mut c_void) -> Status) -> Result<Vec<u64>, Error> {
        unsafe extern "C" fn found(handle: u64, list: *mut c_void) -> Status {
            // SAFETY: `list` passes its own.
            unsafe { (*list.cast::<Vec<u64>>()).push(handle) };
            0
        }
        let mut list = Vec::new();
        self.checked(what, iterate(found, (&raw mut list).cast()))?;
        Ok(list)
    }

    /// The pool of an agent's global memory that has all of these flags.
    fn pool(&self, agent: u64, flags: u32) -> Result<u64, Error> {
        // SAFETY: the agent is the library's.
        let pools = self.list("the device's memory", |found, list| unsafe {
            (self.hsa_amd_agent_iterate_memory_pools)(agent, found, list)
        })?;
        for pool in pools {
            let info = |what| self.info::<u32>(self.hsa_amd_memory_pool_get_info, pool, what);
            let is_global = info(code::POOL_SEGMENT)? == 0;
            let may = || self.info::<u8>(self.hsa_amd_memory_pool_get_info, pool, code::POOL_ALLOC_ALLOWED);
            if is_global && info(code::POOL_GLOBAL_FLAGS)? & flags == flags && may()? != 0 {
                return Ok(pool);
            }
        }
        Err("it has no memory of a kind that is needed".into())
    }
}

/// A kernel of a code object.
#[derive(Clone, Copy)]
struct Kernel {
    object: u64,
    arguments: u32,
    group: u32,
    private: u32,
}

/// A packet on its way: its queue, the signal at its end, and whether it is a kernel.
#[derive(Clone, Copy)]
struct Launched {
    queue: usize,
    signal: u64,
    is_kernel: bool,
}

struct Device {
    library: &'static Library,
    agent: u64,
    name: String,
    /// The architecture.
    arch: String,
    max_block: u32,
    queues: Queues<*mut RawQueue>,
    own_pool: u64,
    shared_pool: u64,
    /// Allocations, and whether the host reaches them, too.
    memory: Allocations<bool>,
    /// Memory for arguments, and how much of it launches use that are on their way.
    arguments: (*mut u8, usize),
    staging: *mut u8,
    loaded: Loaded<u64, Kernel>,
    /// Packets that nobody has waited for.
    launched: Vec<Launched>,
    /// Signals that nobody waits for.
    spare: Vec<u64>,
    /// Marks that the program has given up.
    forgotten: Vec<u64>,
    /// Clock ticks in a second.
    frequency: u64,
    /// The status with which a queue has failed, or 0.
    failed: &'static AtomicU32,
}

// SAFETY: the library may be used from any thread; memory and queues of a device are used under its lock.
unsafe impl Send for Device {}

static DEVICES: Devices<Device> = Devices::new(|| {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let opened = Library::open()?;
    let library = LIBRARY.get_or_init(|| opened);
    // SAFETY: the first call of the library.
    library.checked("hsa_init", unsafe { (library.hsa_init)() })?;
    // SAFETY: the library is initialized.
    let agents = library.list("the devices", |found, list| unsafe { (library.hsa_iterate_agents)(found, list) })?;
    let kind = |agent: &u64| library.info::<u32>(library.hsa_agent_get_info, *agent, code::AGENT_DEVICE);
    let cpu = agents.iter().find(|a| kind(a) == Ok(code::CPU)).ok_or("the library lists no CPU")?;
    let gpus = agents.iter().filter(|a| kind(a) == Ok(code::GPU));
    working(gpus.map(|&gpu| Device::new(library, *cpu, gpu)), "the driver has no device")
});

impl Device {
    fn new(library: &'static Library, cpu: u64, agent: u64) -> Result<Device, Error> {
        let mut frequency = 0u64;
        // SAFETY: the number is one of 64 bits.
        let status = unsafe { (library.hsa_system_get_info)(code::SYSTEM_FREQUENCY, (&raw mut frequency).cast()) };
        library.checked("the clock", status)?;
        let arch = library.name(agent, code::AGENT_NAME)?;
        let product = library.name(agent, code::AGENT_PRODUCT_NAME).unwrap_or_default();
        let failed: &AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let mut device = Device {
            library,
            agent,
            name: if product.is_empty() { arch.clone() } else { format!("{product} ({arch})") },
            arch,
            max_block: library.info(library.hsa_agent_get_info, agent, code::AGENT_WORKGROUP_MAX_SIZE)?,
            queues: Queues::new(make_queue(library, agent, failed)?),
            own_pool: library.pool(agent, code::COARSE_GRAINED)?,
            shared_pool: library.pool(cpu, code::FINE_GRAINED)?,
            memory: Allocations::new(),
            arguments: (std::ptr::null_mut(), 0),
            staging: std::ptr::null_mut(),
            loaded: Loaded::new(),
            launched: Vec::new(),
            spare: Vec::new(),
            forgotten: Vec::new(),
            frequency: frequency.max(1),
            failed,
        };
        let arguments = library.pool(cpu, code::KERNARG)?;
        device.arguments.0 = device.allocate(arguments, ARGUMENTS, true)?.cast();
        Ok(device)
    }

    /// Memory of a pool; memory of the host is made reachable for the device.
    fn allocate(&self, pool: u64, size: usize, is_host: bool) -> Result<*mut c_void, Error> {
        let (mut at, library) = (std::ptr::null_mut(), self.library);
        let what = format!("cannot allocate {size} bytes");
        // SAFETY: the pool is the library's.
        let status = unsafe { (library.hsa_amd_memory_pool_allocate)(pool, size.max(1), 0, &mut at) };
        library.checked(&what, status)?;
        if is_host {
            // SAFETY: the memory was just allocated.
            unsafe {
                let status = (library.hsa_amd_agents_allow_access)(1, &self.agent, std::ptr::null(), at);
                library.checked(&what, status).inspect_err(|_| {
                    (library.hsa_amd_memory_pool_free)(at);
                })?;
            }
        }
        Ok(at)
    }

    /// Loads a code object.
    fn executable(&self, code: &'static [u8]) -> Result<u64, Error> {
        let library = self.library;
        let (mut reader, mut executable, mut loaded) = (0, 0, 0);
        let none = std::ptr::null();
        // SAFETY: the code outlives the executable, which is never destroyed.
        unsafe {
            let status =
                (library.hsa_code_object_reader_create_from_memory)(code.as_ptr().cast(), code.len(), &mut reader);
            library.checked("hsa_code_object_reader_create_from_memory", status)?;
            let status = (library.hsa_executable_create_alt)(code::PROFILE_FULL, 0, none, &mut executable);
            library.checked("hsa_executable_create_alt", status)?;
            let status =
                (library.hsa_executable_load_agent_code_object)(executable, self.agent, reader, none, &mut loaded);
            library.checked("hsa_executable_load_agent_code_object", status)?;
            library.checked("hsa_executable_freeze", (library.hsa_executable_freeze)(executable, none))?;
        }
        Ok(executable)
    }

    /// A signal that falls from 1 to 0.
    fn signal(&mut self) -> Result<u64, Error> {
        let (mut signal, library) = (0, self.library);
        // SAFETY: all agents may wait for it; nobody waits for a spare one.
        unsafe {
            if let Some(spare) = self.spare.pop() {
                (library.hsa_signal_store_screlease)(spare, 1);
                return Ok(spare);
            }
            let status = (library.hsa_signal_create)(1, 0, std::ptr::null(), &mut signal);
            library.checked("hsa_signal_create", status)?;
        }
        Ok(signal)
    }

    /// Puts a packet into a queue. Its first word is written last: it hands the packet over.
    fn submit(&self, queue: *mut RawQueue, packet: [u32; 16]) -> Result<(), Error> {
        let library = self.library;
        // SAFETY: the queue is the device's, which is locked; its packets lie in a ring, whose size is a power of two.
        unsafe {
            let index = (library.hsa_queue_add_write_index_relaxed)(queue, 1);
            let size = u64::from((*queue).size);
            while index - (library.hsa_queue_load_read_index_scacquire)(queue).min(index) >= size {
                self.healthy()?;
                std::thread::yield_now();
            }
            let slot = (*queue).base.add((index & (size - 1)) as usize);
            for (i, &word) in packet.iter().enumerate().skip(1) {
                (&raw mut (*slot)[i]).write_volatile(word);
            }
            AtomicU32::from_ptr(&raw mut (*slot)[0]).store(packet[0], Ordering::Release);
            (library.hsa_signal_store_screlease)((*queue).doorbell, index as i64);
        }
        Ok(())
    }

    /// Whether no queue has failed.
    fn healthy(&self) -> Result<(), Error> {
        self.library.checked("a kernel failed", self.failed.load(Ordering::SeqCst)).map_err(kernel_failed)
    }

    /// Puts a mark into a queue, behind all that is in it and, if there is one, behind a mark of another queue.
    fn barrier(&mut self, queue: usize, after: Option<Mark>) -> Result<u64, Error> {
        let queue = self.queues.find(queue)?;
        let signal = self.signal()?;
        let mut packet = [0u32; 16];
        packet[0] = u32::from(code::PACKET_BARRIER | code::IN_ORDER);
        put(&mut packet, 2, after.unwrap_or(0));
        put(&mut packet, 14, signal);
        self.submit(queue, packet)?;
        Ok(signal)
    }

    /// Waits for all of a queue, or of the device, and adds up what kernels took.
    fn finish(&mut self, only: Option<usize>) -> Result<(), Error> {
        let is_meant = |queue: usize| only.is_none_or(|only| only == queue);
        let mut result = Ok(());
        for packet in self.launched.iter().filter(|l| is_meant(l.queue)) {
            result = result.and_then(|()| wait_for(self.library, self.failed, packet.signal));
        }
        result?;
        for Launched { signal, is_kernel, .. } in self.launched.extract_if(.., |l| is_meant(l.queue)) {
            if is_kernel && let Ok([start, end]) = times(self.library, self.agent, signal) {
                add_kernel_time(nanoseconds(self.frequency, start, end));
            }
            self.spare.push(signal);
        }
        if self.launched.is_empty() {
            self.arguments.1 = 0;
            let library = self.library;
            // SAFETY: the signals are not destroyed.
            let is_over = |mark: &mut u64| unsafe { (library.hsa_signal_load_scacquire)(*mark) } < 1;
            self.spare.extend(self.forgotten.extract_if(.., is_over));
        }
        Ok(())
    }

    /// Copies between the host and memory that only the device reaches, a piece at a time.
    ///
    /// # Safety
    /// Both have `size` bytes.
    unsafe fn copy(&mut self, own: *mut u8, host: *mut u8, size: usize, is_write: bool) -> Result<(), Error> {
        if self.staging.is_null() {
            self.staging = self.allocate(self.shared_pool, STAGING, true)?.cast();
        }
        let (library, piece) = (self.library, self.staging);
        let mut done = 0;
        while done < size {
            let n = STAGING.min(size - done);
            // SAFETY: the piece has so many bytes, and so has the rest of both.
            let status = unsafe {
                let (own, host) = (own.add(done), host.add(done));
                if is_write {
                    piece.copy_from(host, n);
                    (library.hsa_memory_copy)(own.cast(), piece.cast(), n)
                } else {
                    let status = (library.hsa_memory_copy)(piece.cast(), own.cast(), n);
                    host.copy_from(piece, n);
                    status
                }
            };
            library.checked("cannot copy", status)?;
            done += n;
        }
        Ok(())
    }
}

/// A queue, which notes its failure in `flag`.
fn make_queue(library: &Library, agent: u64, flag: &'static AtomicU32) -> Result<*mut RawQueue, Error> {
    unsafe extern "C" fn failed(status: Status, _: *mut RawQueue, flag: *mut c_void) {
        // SAFETY: the flag is the device's, and stays.
        unsafe { &*flag.cast::<AtomicU32>() }.store(status, Ordering::SeqCst);
    }
    let mut queue = std::ptr::null_mut();
    let flag = std::ptr::from_ref(flag).cast_mut().cast();
    // SAFETY: the agent is the library's; the greatest numbers leave the sizes of segments to it.
    unsafe {
        let kind = code::QUEUE_TYPE_SINGLE;
        let status = (library.hsa_queue_create)(agent, QUEUE_SIZE, kind, failed, flag, u32::MAX, u32::MAX, &mut queue);
        library.checked("hsa_queue_create", status)?;
        // Without it kernels have no times.
        (library.hsa_amd_profiling_set_profiler_enabled)(queue, 1);
    }
    Ok(queue)
}

/// Puts 64 bits into a packet.
fn put(packet: &mut [u32; 16], at: usize, value: u64) {
    packet[at] = value as u32;
    packet[at + 1] = (value >> 32) as u32;
}

/// When a packet that has ended began and ended, in ticks of the clock.
fn times(library: &Library, agent: u64, signal: u64) -> Result<[u64; 2], Error> {
    let mut times = [0; 2];
    // SAFETY: the packet has ended, and its signal is not used again yet.
    let status = unsafe { (library.hsa_amd_profiling_get_dispatch_time)(agent, signal, &mut times) };
    library.checked("the time of an event", status).map(|()| times)
}

fn nanoseconds(frequency: u64, from: u64, to: u64) -> i64 {
    (u128::from(to.saturating_sub(from)) * 1_000_000_000 / u128::from(frequency)) as i64
}

/// Waits until a signal has fallen, or a queue of its device has failed.
fn wait_for(library: &Library, failed: &AtomicU32, signal: u64) -> Result<(), Error> {
    loop {
        // SAFETY: the signal is not destroyed.
        if unsafe { (library.hsa_signal_wait_scacquire)(signal, code::CONDITION_LESS, 1, PATIENCE, 0) } < 1 {
            return Ok(());
        }
        library.checked("a kernel failed", failed.load(Ordering::SeqCst)).map_err(kernel_failed)?;
    }
}

impl Loads for Device {
    type Module = u64;
    type Kernel = Kernel;

    fn loaded(&mut self) -> &mut Loaded<u64, Kernel> {
        &mut self.loaded
    }

    fn load(&mut self, code: &'static [u8]) -> Result<u64, Error> {
        self.executable(code).map_err(|e| {
            let arch = &self.arch;
            format!("the driver cannot load its code: {e}; this device is a `{arch}` (`--amdgpu {arch}`)")
        })
    }

    fn find(&mut self, executable: u64, name: &CStr) -> Result<Kernel, Error> {
        let (mut handle, library) = (0, self.library);
        let symbol = [name.to_bytes(), b".kd\0"].concat();
        // SAFETY: the executable is loaded; the symbol ends with a zero byte.
        let status = unsafe {
            let symbol = symbol.as_ptr().cast();
            (library.hsa_executable_get_symbol_by_name)(executable, symbol, &self.agent, &mut handle)
        };
        library.checked("its code has no such kernel", status)?;
        let number = |what| library.info::<u32>(library.hsa_executable_symbol_get_info, handle, what);
        Ok(Kernel {
            object: library.info(library.hsa_executable_symbol_get_info, handle, code::SYMBOL_OBJECT)?,
            arguments: number(code::SYMBOL_ARGUMENTS)?,
            group: number(code::SYMBOL_GROUP)?,
            private: number(code::SYMBOL_PRIVATE)?,
        })
    }
}

impl Platform for Hsa {
    fn n_devices(&self) -> Result<usize, Error> {
        DEVICES.count()
    }

    fn device_name(&self, number: usize) -> Result<String, Error> {
        Ok(DEVICES.lock(number)?.name.clone())
    }

    /// The architecture is a feature, too.
    fn has_feature(&self, number: usize, name: &str) -> Result<bool, Error> {
        Ok(DEVICES.lock(number)?.arch == name || super::FEATURES.contains(&name))
    }

    fn alloc(&self, number: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error> {
        let mut device = DEVICES.lock(number)?;
        let is_host = memory != Memory::Device;
        let pool = if is_host { device.shared_pool } else { device.own_pool };
        let address = device.allocate(pool, size, is_host)?;
        device.memory.insert(address as u64, size, is_host);
        Ok(address)
    }

    unsafe fn release(&self, number: usize, pointer: *mut c_void) -> Result<(), Error> {
        let mut device = DEVICES.lock(number)?;
        // Kernels may still use it.
        device.finish(None)?;
        device.memory.remove(pointer as u64)?;
        // SAFETY: it was allocated here, and is used by nobody.
        let status = unsafe { (device.library.hsa_amd_memory_pool_free)(pointer) };
        device.library.checked("cannot release it", status)
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queues.find(at.number)?;
        let is_host = *device.memory.find(to as u64, size)?.known;
        // Kernels may still read what is there.
        device.finish(Some(at.number))?;
        // SAFETY: the range lies in the allocation, that of the host is the caller's promise.
        unsafe {
            if is_host {
                to.cast::<u8>().copy_from(from.cast(), size);
                return Ok(());
            }
            device.copy(to.cast(), from.cast_mut().cast(), size, true)
        }
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queues.find(at.number)?;
        device.finish(Some(at.number))?;
        let is_host = *device.memory.find(from as u64, size)?.known;
        // SAFETY: as above.
        unsafe {
            if is_host {
                to.cast::<u8>().copy_from(from.cast(), size);
                return Ok(());
            }
            device.copy(from.cast_mut().cast(), to.cast(), size, false)
        }
    }

    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        let kernel = device.kernel(launch)?;
        let [x, y, z] = launch.block;
        super::check_block(launch.block, device.max_block as usize)?;
        device.memory.check(&launch.args)?;
        let mut bytes: Vec<u8> = Vec::with_capacity(kernel.arguments as usize);
        for arg in &launch.args {
            let (align, own): (usize, &[u8]) = match arg {
                Arg::Value { bytes, align } => (*align, bytes),
                Arg::Address(pointer) => (8, &(*pointer as u64).to_ne_bytes()),
            };
            bytes.resize(bytes.len().next_multiple_of(align.max(1)), 0);
            bytes.extend(own);
        }
        // Behind the program's arguments there may be those that the compiler adds, which kernels here do not read.
        let size = (kernel.arguments as usize).max(bytes.len());
        if bytes.len() > kernel.arguments as usize || size > ARGUMENTS {
            return Err(format!("its code takes {} bytes of arguments, not {}", kernel.arguments, bytes.len()));
        }
        if device.launched.len() >= MAX_LAUNCHES || device.arguments.1 + size > ARGUMENTS {
            device.finish(None)?;
        }
        let signal = device.signal()?;
        // SAFETY: so many bytes are left, which no kernel uses.
        let arguments = unsafe {
            let at = device.arguments.0.add(device.arguments.1);
            at.write_bytes(0, size);
            at.copy_from(bytes.as_ptr(), bytes.len());
            at as u64
        };
        device.arguments.1 = (device.arguments.1 + size).next_multiple_of(64);
        let items = |axis: usize| u32::try_from(launch.blocks[axis] * launch.block[axis]);
        let (Ok(items_x), Ok(items_y), Ok(items_z)) = (items(0), items(1), items(2)) else {
            return Err("the grid has more than 2^32 work items on an axis".into());
        };
        let mut packet = [0u32; 16];
        // Three dimensions.
        packet[0] = u32::from(code::PACKET_KERNEL | code::IN_ORDER) | 3 << 16;
        packet[1] = x as u32 | (y as u32) << 16;
        packet[2] = z as u32;
        packet[3..6].copy_from_slice(&[items_x, items_y, items_z]);
        packet[6] = kernel.private;
        packet[7] = kernel.group;
        put(&mut packet, 8, kernel.object);
        put(&mut packet, 10, arguments);
        put(&mut packet, 14, signal);
        device.submit(queue, packet)?;
        device.launched.push(Launched { queue: at.number, signal, is_kernel: true });
        Ok(())
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queues.find(at.number)?;
        device.finish((at.number != 0).then_some(at.number))
    }

    fn make_queue(&self, number: usize) -> Result<usize, Error> {
        let mut device = DEVICES.lock(number)?;
        let made = make_queue(device.library, device.agent, device.failed)?;
        Ok(device.queues.add(made))
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        DEVICES.lock(at.device)?.barrier(at.number, None)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let signal = device.barrier(at.number, Some(mark))?;
        // It ends with what is launched next.
        device.launched.push(Launched { queue: at.number, signal, is_kernel: false });
        Ok(())
    }

    fn wait(&self, number: usize, mark: Mark) -> Result<(), Error> {
        let (library, failed) = {
            let device = DEVICES.lock(number)?;
            (device.library, device.failed)
        };
        // Without the lock: others may go on meanwhile.
        wait_for(library, failed, mark)
    }

    fn is_over(&self, number: usize, mark: Mark) -> Result<bool, Error> {
        let device = DEVICES.lock(number)?;
        device.healthy()?;
        // SAFETY: the signal is not destroyed.
        Ok(unsafe { (device.library.hsa_signal_load_scacquire)(mark) } < 1)
    }

    fn elapsed(&self, number: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        let device = DEVICES.lock(number)?;
        let end = |mark| times(device.library, device.agent, mark).map(|t| t[1]);
        let (from, to) = (end(from)?, end(to)?);
        Ok(nanoseconds(device.frequency, from, to) - nanoseconds(device.frequency, to, from))
    }

    fn forget(&self, number: usize, mark: Mark) {
        let Ok(mut device) = DEVICES.lock(number) else { return };
        // A queue may still wait for it.
        device.forgotten.push(mark);
    }
}
