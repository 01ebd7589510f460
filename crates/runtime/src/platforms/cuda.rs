//! NVIDIA's GPUs by CUDA's driver API. Driver and NVRTC are opened when a program first asks for them. Kernels are PTX, which
//! the driver compiles for the device when the first kernel of a module is launched, or CUDA C++, of which NVRTC makes
//! PTX first.
//!
//! A kernel that faults takes its context with it: everything on the device fails from then on, other devices go on.

use super::allocations::{Allocations, check};
use super::devices::{Devices, Loaded, Loads, Queues, working};
use super::kept::Kept;
use super::{
    Arg, Error, FEATURES, Launch, Mark, Memory, Platform, Queue, add_kernel_time, is_kernel_time_wanted, kernel_failed,
};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use cudarc::nvrtc;
use std::ffi::{CStr, c_void};
use std::sync::MutexGuard;

/// All devices that the driver lists, in its order.
pub(crate) struct Cuda;

/// Bytes of memory of a block that the code of a kernel declares; with more, none is declared.
const MAX_DECLARED: usize = 48 << 10;

/// Launches whose times are kept until somebody waits.
const MAX_EVENTS: usize = 1024;

struct Device {
    device: sys::CUdevice,
    context: sys::CUcontext,
    queues: Queues<sys::CUstream>,
    /// For NVRTC: `compute_90`.
    arch: String,
    /// Differs between devices and drivers whose machine code differs.
    identity: String,
    /// Allocations, and whether they are the host's memory.
    memory: Allocations<bool>,
    loaded: Loaded<sys::CUmodule, sys::CUfunction>,
    /// Events before and after each launch that is timed and that nobody has waited for, with its queue.
    events: Vec<(usize, sys::CUevent, sys::CUevent)>,
    /// Events that nobody waits for, to be recorded again.
    spare: Vec<sys::CUevent>,
}

// SAFETY: handles of the driver may be used from any thread that has made the context its own, which every function does.
unsafe impl Send for Device {}

fn text(what: &str, e: DriverError) -> Error {
    let words = e.error_string().map_or_else(|_| format!("error {:?}", e.0), |s| s.to_string_lossy().into_owned());
    format!("{what}: {words}")
}

fn failed(e: DriverError) -> Error {
    kernel_failed(text("a kernel failed", e))
}

static DEVICES: Devices<Device> = Devices::new(|| {
    ["libcuda.so", "libcuda.so.1"].into_iter().try_for_each(super::driver::check)?;
    // SAFETY: asks whether a library can be opened.
    if !unsafe { sys::is_culib_present() } {
        return Err("the driver's library libcuda.so.1 is not installed".into());
    }
    // A library that lacks a function is no driver; the bindings panic, which nobody needs to see.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = std::panic::catch_unwind(|| {
        result::init().map_err(|e| text("cuInit", e))?;
        let n = result::device::get_count().map_err(|e| text("cuDeviceGetCount", e))?;
        working((0..n).map(Device::new), "the driver has no device")
    });
    std::panic::set_hook(hook);
    found.unwrap_or_else(|_| Err("the driver's library cannot be used: it is too old, or damaged".into()))
});

fn device(number: usize) -> Result<MutexGuard<'static, Device>, Error> {
    let device = DEVICES.lock(number)?;
    // SAFETY: the context is the device's, and is never released.
    unsafe { result::ctx::set_current(device.context) }.map_err(|e| text("cuCtxSetCurrent", e))?;
    Ok(device)
}

/// Whether the code of kernels is PTX: assembly that names its version. Else it is CUDA C++.
fn is_ptx(code: &[u8]) -> bool {
    let mut lines = code.split(|&b| b == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"//"));
    lines.next().is_some_and(|line| line.starts_with(b".version "))
}

/// The driver's complaints about PTX that it does not take.
struct Log(Vec<u8>);

impl Log {
    fn of(self, e: DriverError) -> Error {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        let said = String::from_utf8_lossy(&self.0[..end]);
        format!("{}\n{}", text("the driver cannot load its code", e), said.trim_end()).trim_end().to_string()
    }
}

/// The machine code of PTX that ends with a zero byte, for the device of the current context.
fn assemble(ptx: &[u8]) -> Result<Vec<u8>, Error> {
    let mut log = Log(vec![0u8; 1 << 12]);
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.0.as_mut_ptr().cast(), log.0.len() as *mut c_void];
    let mut state = std::ptr::null_mut();
    // SAFETY: code and log live until the state is destroyed; the driver writes no more than the log's bytes. The machine code is
    // the state's, and is copied before.
    unsafe {
        let made = sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut state);
        made.result().map_err(|e| text("cuLinkCreate", e))?;
        let (kind, none) = (sys::CUjitInputType::CU_JIT_INPUT_PTX, std::ptr::null_mut());
        let data = ptx.as_ptr().cast_mut().cast();
        let added = sys::cuLinkAddData_v2(state, kind, data, ptx.len(), c"kernels".as_ptr(), 0, none, none.cast());
        let (mut code, mut size) = (std::ptr::null_mut(), 0);
        let made = added.result().and_then(|()| sys::cuLinkComplete(state, &mut code, &mut size).result());
        let code = made.map(|()| std::slice::from_raw_parts(code.cast::<u8>(), size).to_vec());
        let _ = sys::cuLinkDestroy(state);
        code.map_err(|e| log.of(e))
    }
}

/// Loads machine code into the current context.
fn load(code: &[u8]) -> Result<sys::CUmodule, Error> {
    // SAFETY: the code lives during the call.
    unsafe { result::module::load_data(code.as_ptr().cast()) }.map_err(|e| text("the driver cannot load its code", e))
}

impl Device {
    fn new(ordinal: i32) -> Result<Device, Error> {
        let failed = |what: &'static str| move |e| text(what, e);
        let device = result::device::get(ordinal).map_err(failed("cuDeviceGet"))?;
        // SAFETY: the device is the driver's own; its context is kept until the process ends.
        unsafe {
            let context = result::primary_ctx::retain(device).map_err(failed("cuDevicePrimaryCtxRetain"))?;
            result::ctx::set_current(context).map_err(failed("cuCtxSetCurrent"))?;
            let number = |what| result::device::get_attribute(device, what).map_err(failed("cuDeviceGetAttribute"));
            use sys::CUdevice_attribute_enum::*;
            let major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let name = result::device::get_name(device).map_err(failed("cuDeviceGetName"))?;
            let mut driver = 0;
            sys::cuDriverGetVersion(&mut driver).result().map_err(failed("cuDriverGetVersion"))?;
            Ok(Device {
                device,
                context,
                queues: Queues::new(make_stream()?),
                arch: format!("compute_{major}{minor}"),
                identity: format!("{name}, {major}.{minor}, {driver}"),
                memory: Allocations::new(),
                loaded: Loaded::new(),
                events: Vec::new(),
                spare: Vec::new(),
            })
        }
    }

    /// Whether memory of the device lies at an address, and so many bytes follow. Others than the program may have allocated it in the same
    /// context: a library that hands over its arrays.
    fn reach(&self, address: u64, size: usize) -> Result<(), Error> {
        let Err(why) = self.memory.find(address, size) else { return Ok(()) };
        let (mut begin, mut length) = (0, 0);
        // SAFETY: the driver writes both numbers.
        let found = unsafe { sys::cuMemGetAddressRange_v2(&mut begin, &mut length, address) }.result();
        let is_there = found.is_ok() && (address - begin).saturating_add(size as u64) <= length as u64;
        if is_there { Ok(()) } else { Err(why) }
    }

    /// A module in the current context: its machine code was kept from an earlier run, or is made now.
    fn module(&self, code: &[u8]) -> Result<sys::CUmodule, Error> {
        let kept = Kept::of(&[b"cuda", code, self.identity.as_bytes()]);
        if let Some(module) = kept.get().and_then(|machine| load(&machine).ok()) {
            return Ok(module);
        }
        let machine = assemble(&match is_ptx(code) {
            true => [code, &[0]].concat(),
            false => self.compile(code)?,
        })?;
        let module = load(&machine)?;
        kept.put(&machine);
        Ok(module)
    }

    /// The PTX of CUDA C++.
    fn compile(&self, code: &[u8]) -> Result<Vec<u8>, Error> {
        let source = std::str::from_utf8(code).map_err(|_| "its code is no text".to_string())?;
        // SAFETY: asks whether a library can be opened.
        if !unsafe { nvrtc::sys::is_culib_present() } {
            return Err("NVIDIA's compiler libnvrtc.so is not installed".into());
        }
        let options = nvrtc::CompileOptions {
            fmad: Some(false),
            options: vec![format!("--gpu-architecture={}", self.arch)],
            ..Default::default()
        };
        let ptx = nvrtc::compile_ptx_with_opts(source, options).map_err(|e| match e {
            nvrtc::CompileError::CompileError { log, .. } => {
                format!("NVRTC cannot compile its code\n{}", log.to_string_lossy().trim_end())
            }
            e => format!("NVRTC: {e:?}"),
        })?;
        let mut image = ptx.to_src().into_bytes();
        image.push(0);
        Ok(image)
    }

    /// Waits for all of a queue, or of the device, and adds up what kernels took.
    fn finish(&mut self, only: Option<usize>) -> Result<(), Error> {
        let is_meant = |queue: usize| only.is_none_or(|only| only == queue);
        // SAFETY: streams and events are the device's, and nobody uses the events afterwards.
        unsafe {
            let mut waited = Ok(());
            for stream in self.queues.meant(only) {
                waited = waited.and(result::stream::synchronize(stream).map_err(failed));
            }
            for (_, start, end) in self.events.extract_if(.., |(queue, ..)| is_meant(*queue)) {
                if let Ok(milliseconds) = result::event::elapsed(start, end) {
                    add_kernel_time((f64::from(milliseconds) * 1e6) as i64);
                }
                self.spare.extend([start, end]);
            }
            waited
        }
    }

    /// An event after all that is in a queue.
    fn mark(&mut self, queue: usize) -> Result<sys::CUevent, Error> {
        let stream = self.queues.find(queue)?;
        let failed = |e| text("cuEventCreate", e);
        let event = match self.spare.pop() {
            Some(event) => event,
            None => result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed)?,
        };
        // SAFETY: both are the device's.
        unsafe { result::event::record(event, stream) }.map_err(failed)?;
        Ok(event)
    }
}

/// A queue of the current context's device.
fn make_stream() -> Result<sys::CUstream, Error> {
    result::stream::create(result::stream::StreamKind::NonBlocking).map_err(|e| text("cuStreamCreate", e))
}

/// A mark as the driver's event.
fn event(mark: Mark) -> sys::CUevent {
    mark as usize as sys::CUevent
}

impl Loads for Device {
    type Module = sys::CUmodule;
    type Kernel = sys::CUfunction;

    fn loaded(&mut self) -> &mut Loaded<sys::CUmodule, sys::CUfunction> {
        &mut self.loaded
    }

    fn load(&mut self, code: &'static [u8]) -> Result<sys::CUmodule, Error> {
        self.module(code)
    }

    fn find(&mut self, module: sys::CUmodule, name: &CStr) -> Result<sys::CUfunction, Error> {
        // SAFETY: the module is loaded.
        unsafe { result::module::get_function(module, name.into()) }.map_err(|e| text("cuModuleGetFunction", e))
    }
}

impl Platform for Cuda {
    fn n_devices(&self) -> Result<usize, Error> {
        DEVICES.count()
    }

    fn device_name(&self, number: usize) -> Result<String, Error> {
        let device = device(number)?;
        result::device::get_name(device.device).map_err(|e| text("cuDeviceGetName", e))
    }

    /// Architectures, `sm_80`, are features of those and of newer ones.
    fn has_feature(&self, number: usize, name: &str) -> Result<bool, Error> {
        let device = device(number)?;
        let number = |arch: &str, prefix: &str| arch.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok());
        let is_older = number(name, "sm_").is_some_and(|wanted| number(&device.arch, "compute_") >= Some(wanted));
        Ok(is_older || FEATURES.contains(&name))
    }

    fn alloc(&self, number: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error> {
        let mut device = device(number)?;
        let bytes = size.max(1);
        // SAFETY: the size is not 0.
        let made = unsafe {
            match memory {
                Memory::Device => result::malloc_sync(bytes),
                Memory::Host => result::malloc_host(bytes, 0).map(|p| p as u64),
                Memory::Unified => result::malloc_managed(bytes, sys::CUmemAttach_flags_enum::CU_MEM_ATTACH_GLOBAL),
            }
        };
        let address = made.map_err(|e| text(&format!("cannot allocate {size} bytes"), e))?;
        device.memory.insert(address, size, memory == Memory::Host);
        Ok(address as *mut c_void)
    }

    unsafe fn release(&self, number: usize, pointer: *mut c_void) -> Result<(), Error> {
        let mut device = device(number)?;
        // Kernels may still use it.
        device.finish(None)?;
        let is_host = device.memory.remove(pointer as u64)?;
        // SAFETY: it was allocated here, and is used by nobody.
        let result = unsafe { if is_host { result::free_host(pointer) } else { result::free_sync(pointer as u64) } };
        result.map_err(|e| text("cannot release it", e))
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = device(at.device)?;
        device.queues.find(at.number)?;
        device.reach(to as u64, size)?;
        // Kernels may still read what is there.
        device.finish(Some(at.number))?;
        // SAFETY: the range lies in the allocation, that of the host is the caller's promise.
        let copied =
            unsafe { result::memcpy_htod_sync(to as u64, std::slice::from_raw_parts(from.cast::<u8>(), size)) };
        copied.map_err(|e| text("cannot copy to the device", e))
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = device(at.device)?;
        device.queues.find(at.number)?;
        device.finish(Some(at.number))?;
        device.reach(from as u64, size)?;
        // SAFETY: as above.
        let copied =
            unsafe { result::memcpy_dtoh_sync(std::slice::from_raw_parts_mut(to.cast::<u8>(), size), from as u64) };
        copied.map_err(|e| text("cannot copy from the device", e))
    }

    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error> {
        let mut device = device(at.device)?;
        let stream = device.queues.find(at.number)?;
        let kernel = device.kernel(launch)?;
        check(&launch.args, |address| device.reach(address, 0))?;
        let mut addresses: Vec<u64> = Vec::with_capacity(launch.args.len());
        addresses.extend(launch.args.iter().map(|arg| match arg {
            Arg::Address(pointer) => *pointer as u64,
            Arg::Value { .. } => 0,
        }));
        let mut params: Vec<*mut c_void> = launch
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, address)| match arg {
                Arg::Value { bytes, .. } => bytes.as_ptr().cast_mut().cast(),
                Arg::Address(_) => (address as *const u64).cast_mut().cast(),
            })
            .collect();
        if device.events.len() >= MAX_EVENTS {
            device.finish(None)?;
        }
        // More than this is not declared by the kernel's code, but given to the launch.
        let shared = if launch.shared > MAX_DECLARED { launch.shared } else { 0 };
        if shared > 0 {
            use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the kernel is loaded.
            let allowed = unsafe {
                sys::cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
            };
            allowed.result().map_err(|e| text(&format!("{shared} bytes of memory of a block"), e))?;
        }
        let extents = |n: [usize; 3]| (n[0] as u32, n[1] as u32, n[2] as u32);
        // Events cost a launch more than all else.
        let start = is_kernel_time_wanted().then(|| device.mark(at.number)).transpose()?;
        // SAFETY: the arguments are what the kernel takes, by the caller's promise; the driver copies them.
        let launched = unsafe {
            let (grid, block) = (extents(launch.blocks), extents(launch.block));
            result::launch_kernel(kernel, grid, block, shared as u32, stream, &mut params)
        };
        let [x, y, z] = launch.block;
        launched.map_err(|e| text(&format!("blocks of {x} by {y} by {z} work items"), e))?;
        if let Some(start) = start {
            let end = device.mark(at.number)?;
            device.events.push((at.number, start, end));
        }
        Ok(())
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        let mut device = device(at.device)?;
        device.queues.find(at.number)?;
        device.finish((at.number != 0).then_some(at.number))
    }

    fn make_queue(&self, number: usize) -> Result<usize, Error> {
        let mut device = device(number)?;
        let made = make_stream()?;
        Ok(device.queues.add(made))
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        Ok(device(at.device)?.mark(at.number)? as usize as Mark)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        let device = device(at.device)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the mark is an event of the device, which is not destroyed yet.
        let made = unsafe { result::stream::wait_event(device.queues.find(at.number)?, event(mark), flags) };
        made.map_err(|e| text("cuStreamWaitEvent", e))
    }

    fn wait(&self, number: usize, mark: Mark) -> Result<(), Error> {
        // The context is this thread's now. Without the lock: others may go on meanwhile.
        drop(device(number)?);
        // SAFETY: as above.
        unsafe { result::event::synchronize(event(mark)) }.map_err(failed)
    }

    fn is_over(&self, number: usize, mark: Mark) -> Result<bool, Error> {
        drop(device(number)?);
        // SAFETY: as above.
        match unsafe { result::event::query(event(mark)) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(e) => Err(failed(e)),
        }
    }

    fn elapsed(&self, number: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        drop(device(number)?);
        // SAFETY: as above.
        let milliseconds = unsafe { result::event::elapsed(event(from), event(to)) };
        Ok((f64::from(milliseconds.map_err(|e| text("cuEventElapsedTime", e))?) * 1e6) as i64)
    }

    fn forget(&self, number: usize, mark: Mark) {
        let Ok(_device) = device(number) else { return };
        // SAFETY: nobody uses the event afterwards; the driver keeps it as long as a stream waits for it.
        let _ = unsafe { result::event::destroy(event(mark)) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn knows_ptx() {
        let cases = [
            ("//\n// Generated\n//\n\n.version 6.3\n.target sm_75\n", true),
            (".version 8.0", true),
            ("extern \"C\" __global__ void k() {}", false),
            ("// .version 8.0\nint x;", false),
            ("", false),
        ];
        for (code, is) in cases {
            assert_eq!(super::is_ptx(code.as_bytes()), is, "{code}");
        }
    }
}
