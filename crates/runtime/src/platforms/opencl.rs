//! OpenCL. The library is opened when a program first asks for the platform. Kernels are OpenCL C, or SPIR-V where the
//! driver takes it, which the driver compiles when the first kernel of a module is launched.
//!
//! Memory is shared virtual memory where the device has it, so that an address may point into the middle of an
//! allocation, and may lie in memory itself. Elsewhere it is buffers: a program gets addresses that stand for places in
//! them, and an address in the middle has to be aligned as the device wants it. `NYALA_OPENCL_SVM=0` asks for buffers.

use super::allocations::Allocations;
use super::devices::{Devices, Loaded, Loads, Queues, working};
use super::kept::Kept;
use super::{Arg, Error, Launch, Mark, Memory, Platform, Queue, add_kernel_time, kernel_failed};
use cl3::command_queue as queue;
use cl3::device as cl_device;
use cl3::info_type::InfoType;
use cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_program};
use std::ffi::{CStr, c_void};

/// All devices of all OpenCL platforms, in the order in which the library lists them.
pub(crate) struct OpenCl;

/// Events of launches that are kept until somebody waits; then the oldest are waited for.
const MAX_EVENTS: usize = 1024;

/// Where the addresses begin that stand for buffers: nothing of the process lies there.
const BUFFERS: usize = 1 << 56;

/// Options of the driver's compiler. The first that work count: not every device rounds division correctly.
const OPTIONS: &[&CStr] = &[c"-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", c"-cl-std=CL1.2"];
/// Those for kernels with operations of subgroups.
const NEWER_OPTIONS: &[&CStr] =
    &[c"-cl-std=CL3.0 -cl-fp32-correctly-rounded-divide-sqrt", c"-cl-std=CL3.0", c"-cl-std=CL2.0"];

/// How modules of SPIR-V begin.
const SPIRV: [u8; 4] = 0x0723_0203u32.to_le_bytes();

/// The extension of kernels that need a newer OpenCL C than others.
const SUBGROUPS: &str = "cl_khr_subgroups";

/// Extensions, with their purposes.
const PURPOSES: [(&str, &str); 7] = [
    (SUBGROUPS, "operations among the lanes of a subgroup"),
    ("cl_khr_subgroup_non_uniform_vote", "votes to which some lanes of a subgroup do not come"),
    ("cl_khr_subgroup_ballot", "ballots to which some lanes of a subgroup do not come"),
    ("cl_khr_subgroup_shuffle", "exchanges to which some lanes of a subgroup do not come"),
    ("cl_khr_fp64", "`f64`"),
    ("cl_khr_int64_base_atomics", "atomic operations of 64 bits"),
    ("cl_khr_int64_extended_atomics", "atomic operations of 64 bits"),
];

/// Capabilities of SPIR-V, with the extensions of devices that have them.
const OF_SPIRV: [(u32, &str); 3] =
    [(62, "cl_khr_subgroup_non_uniform_vote"), (64, "cl_khr_subgroup_ballot"), (65, "cl_khr_subgroup_shuffle")];

/// The extensions without which a kernel of a text is not there, by the compiler's notes: `// KERNEL needs EXTENSION`.
fn needs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("// ")?.split_once(" needs "))
}

/// What a device lacks, and for what.
fn lacking(extension: &str, what: &str) -> Error {
    let purpose = PURPOSES.iter().find(|p| p.0 == extension).map_or(String::new(), |p| format!(" for {}", p.1));
    format!("this device lacks the extension {extension}, which {what} needs{purpose}")
}

/// The extensions that a text cannot do without: those that it enables under no condition.
fn extensions(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.lines().filter_map(move |line| {
        depth += i32::from(line.starts_with("#if")) - i32::from(line.starts_with("#endif"));
        let extension = line.strip_prefix("#pragma OPENCL EXTENSION ")?.strip_suffix(" : enable")?;
        (depth == 0).then_some(extension)
    })
}

/// Whether a list of extensions has this one.
fn has(known: &str, extension: &str) -> bool {
    known.split_whitespace().any(|word| word == extension)
}

struct Device {
    id: cl_device_id,
    context: cl_context,
    queues: Queues<cl_command_queue>,
    has_svm: bool,
    /// Alignment that sub-buffers must have.
    alignment: usize,
    /// Allocations, with the buffer of each that is none of shared virtual memory.
    memory: Allocations<Option<cl_mem>>,
    /// The first address that stands for no buffer yet.
    next: usize,
    loaded: Loaded<cl_program, cl_kernel>,
    /// Kernels of loaded programs that are not there, with the extensions that the device lacks for them.
    missing: Vec<(cl_program, String, String)>,
    /// Launches that nobody has waited for, with their queues.
    events: Vec<(usize, cl_event)>,
    /// Sub-buffers of kernels that may be running, with the queues of these.
    parts: Vec<(usize, cl_mem)>,
}

// SAFETY: objects of OpenCL may be used from any thread; kernels, whose arguments may not be set from two at once, are used
// under the lock of their device.
unsafe impl Send for Device {}

fn text(what: &str, code: cl_int) -> Error {
    format!("{what}: {}", cl3::error_codes::error_text(code))
}

/// A number as a driver gives it: its bytes, the lowest first. 0 if it gives none.
fn number(bytes: Result<Vec<u8>, cl_int>) -> u64 {
    let bytes = bytes.unwrap_or_default();
    bytes.iter().take(8).rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// A text as a driver gives it, with a zero byte at its end.
fn words(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().into()
}

static DEVICES: Devices<Device> = Devices::new(|| crate::faults::keeping_handlers(list_devices));

fn list_devices() -> Result<Vec<Device>, Error> {
    let missing = |code: cl_int| match code {
        cl3::error_codes::CL_PLATFORM_NOT_FOUND_KHR => "no driver of a device is installed".into(),
        cl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED => {
            "the library libOpenCL.so.1 is not installed, or cannot be loaded".into()
        }
        _ => text("clGetPlatformIDs", code),
    };
    ["libOpenCL.so", "libOpenCL.so.1"].into_iter().try_for_each(super::driver::check)?;
    let platforms = cl3::platform::get_platform_ids().map_err(missing)?;
    let of = |platform| cl_device::get_device_ids(platform, cl_device::CL_DEVICE_TYPE_ALL).unwrap_or_default();
    working(platforms.into_iter().flat_map(of).map(Device::new), "no driver has a device")
}

impl Device {
    fn new(id: cl_device_id) -> Result<Device, Error> {
        let context = cl3::context::create_context(&[id], std::ptr::null(), None, std::ptr::null_mut())
            .map_err(|e| text("clCreateContext", e))?;
        let number = |what| number(cl_device::get_device_data(id, what));
        let svm = number(cl_device::CL_DEVICE_SVM_CAPABILITIES);
        let is_wanted = std::env::var_os("NYALA_OPENCL_SVM").is_none_or(|v| v != "0");
        Ok(Device {
            id,
            context,
            queues: Queues::new(make_queue(context, id)?),
            has_svm: is_wanted && svm & cl_device::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER != 0,
            // The device says it in bits.
            alignment: (number(cl_device::CL_DEVICE_MEM_BASE_ADDR_ALIGN) as usize / 8).max(1),
            memory: Allocations::new(),
            next: BUFFERS,
            loaded: Loaded::new(),
            missing: Vec::new(),
            events: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// The program of a module of SPIR-V.
    fn program_of_spirv(&self, code: &[u8]) -> Result<cl_program, Error> {
        let versions = cl_device::get_device_data(self.id, cl_device::CL_DEVICE_IL_VERSION).map(words);
        if !versions.is_ok_and(|v| v.contains("SPIR-V")) {
            return Err("the driver of this device takes no SPIR-V; launch it by `opencl` for OpenCL C".into());
        }
        let (known, words) = (self.extensions(), super::vulkan::words(code)?);
        let capabilities = super::vulkan::instructions(&words).filter(|i| i.0 == super::vulkan::OP_CAPABILITY);
        for (_, inst) in capabilities {
            let need = OF_SPIRV.iter().find(|need| inst.get(1) == Some(&need.0));
            if let Some((_, extension)) = need.filter(|need| !has(&known, need.1)) {
                return Err(lacking(extension, "its code"));
            }
        }
        cl3::program::create_program_with_il(self.context, code).map_err(|e| text("clCreateProgramWithIL", e))
    }

    /// The program of a module, built: what was kept of it from an earlier run, or compiled now.
    fn program(&self, code: &[u8]) -> Result<cl_program, Error> {
        let of_device = |what| cl_device::get_device_data(self.id, what).unwrap_or_default();
        let (name, version) = (of_device(cl_device::CL_DEVICE_NAME), of_device(cl_device::CL_DEVICE_VERSION));
        let driver = of_device(cl_device::CL_DRIVER_VERSION);
        // Subgroups came with OpenCL C 2.0, of which 3.0 need not have all else.
        let all = match std::str::from_utf8(code) {
            Ok(text) if text.contains(SUBGROUPS) => NEWER_OPTIONS,
            _ => OPTIONS,
        };
        let options = all.iter().map(|o| o.to_bytes()).collect::<Vec<_>>().concat();
        let kept = Kept::of(&[b"opencl", code, &options, &name, &version, &driver]);
        let build =
            |program, options| cl3::program::build_program(program, &[self.id], options, None, std::ptr::null_mut());
        if let Some(binary) = kept.get() {
            // SAFETY: the device is the context's.
            let made = unsafe { cl3::program::create_program_with_binary(self.context, &[self.id], &[&binary[..]]) };
            if let Ok(program) = made {
                if all.iter().any(|options| build(program, options).is_ok()) {
                    return Ok(program);
                }
                // SAFETY: nobody uses it.
                let _ = unsafe { cl3::program::release_program(program) };
            }
        }
        let program = match code.starts_with(&SPIRV) {
            true => self.program_of_spirv(code)?,
            false => {
                let source = std::str::from_utf8(code).map_err(|_| "its code is no text".to_string())?;
                self.look_for_extensions(source)?;
                cl3::program::create_program_with_source(self.context, &[source])
                    .map_err(|e| text("clCreateProgramWithSource", e))?
            }
        };
        // Not every device rounds division correctly.
        let (last, firsts) = all.split_last().unwrap_or((&c"", &[]));
        if firsts.iter().all(|options| build(program, options).is_err()) {
            build(program, last).map_err(|e| {
                let log = cl3::program::get_program_build_info(program, self.id, cl3::program::CL_PROGRAM_BUILD_LOG);
                let log = log.map(String::from).unwrap_or_default();
                format!("{}\n{}", text("the driver cannot compile its code", e), log.trim_end())
            })?;
        }
        if let Ok(InfoType::VecVecUchar(binaries)) =
            cl3::program::get_program_info(program, cl3::program::CL_PROGRAM_BINARIES)
            && let [binary] = &binaries[..]
            && !binary.is_empty()
        {
            kept.put(binary);
        }
        Ok(program)
    }

    /// The names of the device's extensions.
    fn extensions(&self) -> String {
        cl_device::get_device_data(self.id, cl_device::CL_DEVICE_EXTENSIONS).map(words).unwrap_or_default()
    }

    /// Reports an extension that a text cannot do without and the device lacks.
    fn look_for_extensions(&self, text: &str) -> Result<(), Error> {
        let known = self.extensions();
        match extensions(text).find(|extension| !has(&known, extension)) {
            None => Ok(()),
            Some(extension) => Err(lacking(extension, "its code")),
        }
    }

    /// Sets an argument that is an address.
    ///
    /// # Safety
    /// The kernel has such an argument.
    unsafe fn set_address(
        &mut self,
        kernel: cl_kernel,
        index: u32,
        pointer: *mut c_void,
        queue: usize,
    ) -> Result<(), Error> {
        let failed = |e| text(&format!("argument {index}"), e);
        // SAFETY: the caller's promise; sizes and offsets lie in the buffer.
        unsafe {
            if pointer.is_null() {
                let null: cl_mem = std::ptr::null_mut();
                return cl3::kernel::set_kernel_arg(kernel, index, size_of::<cl_mem>(), (&raw const null).cast())
                    .map_err(failed);
            }
            let place = self.memory.find(pointer as u64, 0).map_err(|e| format!("argument {index}: {e}"))?;
            let (at, size) = (place.offset, place.size);
            let Some(buffer) = *place.known else {
                return cl3::kernel::set_kernel_arg_svm_pointer(kernel, index, pointer).map_err(failed);
            };
            let part = match at {
                0 => buffer,
                at if !at.is_multiple_of(self.alignment) => {
                    let n = self.alignment;
                    return Err(format!(
                        "argument {index} is byte {at} of a buffer; on this device it has to be a multiple of {n}"
                    ));
                }
                at => {
                    let region = [at, size - at];
                    let part = cl3::memory::create_sub_buffer(
                        buffer,
                        0,
                        cl3::memory::CL_BUFFER_CREATE_TYPE_REGION,
                        region.as_ptr().cast(),
                    );
                    let part = part.map_err(failed)?;
                    self.parts.push((queue, part));
                    part
                }
            };
            cl3::kernel::set_kernel_arg(kernel, index, size_of::<cl_mem>(), (&raw const part).cast()).map_err(failed)
        }
    }

    /// Waits for all of a queue, or of the device, and adds up what kernels took.
    fn finish(&mut self, only: Option<usize>) -> Result<(), Error> {
        let is_meant = |queue: usize| only.is_none_or(|only| only == queue);
        let mut result = Ok(());
        for handle in self.queues.meant(only) {
            result = result.and(queue::finish(handle).map_err(|e| text("clFinish", e)));
        }
        let mut failed = None;
        for (_, event) in self.events.extract_if(.., |(queue, _)| is_meant(*queue)) {
            let time = |what| number(cl3::event::get_event_profiling_data(event, what));
            let (start, end) =
                (time(cl3::event::CL_PROFILING_COMMAND_START), time(cl3::event::CL_PROFILING_COMMAND_END));
            add_kernel_time(end.saturating_sub(start) as i64);
            let status = cl3::event::get_event_data(event, cl3::event::CL_EVENT_COMMAND_EXECUTION_STATUS);
            let status = number(status) as i32;
            if status < 0 {
                failed = Some(kernel_failed(text("a kernel failed", status)));
            }
            // SAFETY: nobody uses the event afterwards; it has ended.
            let _ = unsafe { cl3::event::release_event(event) };
        }
        for (_, part) in self.parts.extract_if(.., |(queue, _)| is_meant(*queue)) {
            // SAFETY: the kernels that used it have ended.
            let _ = unsafe { cl3::memory::release_mem_object(part) };
        }
        failed.map_or(result, Err)
    }
}

fn make_queue(context: cl_context, id: cl_device_id) -> Result<cl_command_queue, Error> {
    let properties = [queue::CL_QUEUE_PROPERTIES as u64, queue::CL_QUEUE_PROFILING_ENABLE, 0];
    // SAFETY: the device is the context's, the list ends with 0. OpenCL 1.2 has the older function only.
    let made = unsafe {
        queue::create_command_queue_with_properties(context, id, properties.as_ptr())
            .or_else(|_| queue::create_command_queue(context, id, queue::CL_QUEUE_PROFILING_ENABLE))
    };
    made.map_err(|e| text("clCreateCommandQueue", e))
}

fn drop_event(event: cl_event) {
    // SAFETY: the event is ours, and is not used afterwards.
    let _ = unsafe { cl3::event::release_event(event) };
}

impl Loads for Device {
    type Module = cl_program;
    type Kernel = cl_kernel;

    fn loaded(&mut self) -> &mut Loaded<cl_program, cl_kernel> {
        &mut self.loaded
    }

    fn load(&mut self, code: &'static [u8]) -> Result<cl_program, Error> {
        let program = crate::faults::keeping_handlers(|| self.program(code))?;
        if let Ok(text) = std::str::from_utf8(code) {
            let known = self.extensions();
            let missing = needs(text).filter(|(_, extension)| !has(&known, extension));
            self.missing.extend(missing.map(|(kernel, extension)| (program, kernel.into(), extension.into())));
        }
        Ok(program)
    }

    fn find(&mut self, program: cl_program, name: &CStr) -> Result<cl_kernel, Error> {
        let is_it = |m: &&(cl_program, String, String)| m.0 == program && m.1.as_bytes() == name.to_bytes();
        if let Some((.., extension)) = self.missing.iter().find(is_it) {
            let remedy = "let all lanes come there, or do without, as `trace_item` of `ray::device` does where \
                          `trace_item_ahead` votes";
            return Err(format!("{}; {remedy}", lacking(extension, "the kernel")));
        }
        cl3::kernel::create_kernel(program, name).map_err(|e| text("clCreateKernel", e))
    }
}

impl Platform for OpenCl {
    fn n_devices(&self) -> Result<usize, Error> {
        DEVICES.count()
    }

    /// Extensions are features by their names. Floats of 16 bits need none.
    fn has_feature(&self, number: usize, name: &str) -> Result<bool, Error> {
        let known = DEVICES.lock(number)?.extensions();
        let needs: &[&str] = match name {
            "fp16" => &[],
            "fp64" => &["cl_khr_fp64"],
            "int64_atomics" => &["cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"],
            "subgroups" => &[SUBGROUPS],
            "divergent_votes" => &[SUBGROUPS, "cl_khr_subgroup_non_uniform_vote", "cl_khr_subgroup_ballot"],
            name => &[name],
        };
        Ok(needs.iter().all(|need| has(&known, need)))
    }

    fn device_name(&self, number: usize) -> Result<String, Error> {
        let device = DEVICES.lock(number)?;
        let name = cl_device::get_device_data(device.id, cl_device::CL_DEVICE_NAME);
        name.map(words).map_err(|e| text("clGetDeviceInfo", e))
    }

    fn alloc(&self, number: usize, size: usize, _: Memory) -> Result<*mut c_void, Error> {
        let mut device = DEVICES.lock(number)?;
        let bytes = size.max(1);
        let failed = |e| text(&format!("cannot allocate {size} bytes"), e);
        if device.has_svm {
            // SAFETY: the flags are valid, 0 stands for the greatest alignment.
            let pointer = unsafe { cl3::memory::svm_alloc(device.context, cl3::memory::CL_MEM_READ_WRITE, bytes, 0) };
            // The function does not say what is wrong.
            let pointer = pointer.map_err(|_| format!("cannot allocate {size} bytes"))?;
            device.memory.insert(pointer as u64, size, None);
            return Ok(pointer);
        }
        let flags = cl3::memory::CL_MEM_READ_WRITE;
        // SAFETY: the flags need no memory of the host.
        let buffer = unsafe { cl3::memory::create_buffer(device.context, flags, bytes, std::ptr::null_mut()) };
        let buffer = buffer.map_err(failed)?;
        let address = device.next;
        // A gap keeps the end of one from being the begin of the next.
        device.next = (address + bytes + 4096).next_multiple_of(4096);
        device.memory.insert(address as u64, size, Some(buffer));
        Ok(address as *mut c_void)
    }

    unsafe fn release(&self, number: usize, pointer: *mut c_void) -> Result<(), Error> {
        let mut device = DEVICES.lock(number)?;
        // Kernels may still use it.
        device.finish(None)?;
        let buffer = device.memory.remove(pointer as u64)?;
        // SAFETY: it was allocated here, and is used by nobody.
        let result = unsafe {
            match buffer {
                None => cl3::memory::svm_free(device.context, pointer),
                Some(buffer) => cl3::memory::release_mem_object(buffer),
            }
        };
        result.map_err(|e| text("cannot release it", e))
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        let place = device.memory.find(to as u64, size)?;
        let (buffer, at) = (*place.known, place.offset);
        // SAFETY: the range lies in the allocation, that of the host is the caller's promise; the call waits.
        let event = unsafe {
            match buffer {
                None => queue::enqueue_svm_mem_cpy(queue, 1, to, from, size, 0, std::ptr::null()),
                Some(buffer) => queue::enqueue_write_buffer(queue, buffer, 1, at, size, from, 0, std::ptr::null()),
            }
        };
        event.map(drop_event).map_err(|e| text("cannot copy to the device", e))
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        // Tells of kernels that have failed.
        device.finish(Some(at.number))?;
        let place = device.memory.find(from as u64, size)?;
        let (buffer, at) = (*place.known, place.offset);
        // SAFETY: as above.
        let event = unsafe {
            match buffer {
                None => queue::enqueue_svm_mem_cpy(queue, 1, to, from, size, 0, std::ptr::null()),
                Some(buffer) => queue::enqueue_read_buffer(queue, buffer, 1, at, size, to, 0, std::ptr::null()),
            }
        };
        event.map(drop_event).map_err(|e| text("cannot copy from the device", e))
    }

    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        let kernel = device.kernel(launch)?;
        for (i, arg) in launch.args.iter().enumerate() {
            let index = i as u32;
            // SAFETY: the caller's promise.
            unsafe {
                match arg {
                    Arg::Value { bytes, .. } => {
                        cl3::kernel::set_kernel_arg(kernel, index, bytes.len(), bytes.as_ptr().cast())
                            .map_err(|e| text(&format!("argument {index}"), e))?
                    }
                    Arg::Address(pointer) => device.set_address(kernel, index, *pointer, at.number)?,
                }
            }
        }
        if device.events.len() >= MAX_EVENTS {
            device.finish(None)?;
        }
        if device.has_svm {
            // Kernels may follow addresses in memory to any allocation.
            let all: Vec<usize> = device.memory.addresses().map(|a| a as usize).collect();
            let what = cl3::kernel::CL_KERNEL_EXEC_INFO_SVM_PTRS;
            // SAFETY: these are allocations of the context. Devices on which this means nothing may refuse it.
            let _ =
                unsafe { cl3::kernel::set_kernel_exec_info(kernel, what, size_of_val(&all[..]), all.as_ptr().cast()) };
        }
        let items = [0, 1, 2].map(|axis| launch.blocks[axis] * launch.block[axis]);
        // SAFETY: three extents each.
        let event = unsafe {
            queue::enqueue_nd_range_kernel(
                queue,
                kernel,
                3,
                std::ptr::null(),
                items.as_ptr(),
                launch.block.as_ptr(),
                0,
                std::ptr::null(),
            )
        };
        let [x, y, z] = launch.block;
        let event = event.map_err(|e| text(&format!("blocks of {x} by {y} by {z} work items"), e))?;
        device.events.push((at.number, event));
        queue::flush(queue).map_err(|e| text("clFlush", e))
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queues.find(at.number)?;
        device.finish((at.number != 0).then_some(at.number))
    }

    fn make_queue(&self, number: usize) -> Result<usize, Error> {
        let mut device = DEVICES.lock(number)?;
        let made = make_queue(device.context, device.id)?;
        Ok(device.queues.add(made))
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        let device = DEVICES.lock(at.device)?;
        let queue = device.queues.find(at.number)?;
        // SAFETY: an empty list means all that is in the queue.
        let event = unsafe { queue::enqueue_marker_with_wait_list(queue, 0, std::ptr::null()) };
        let event = event.map_err(|e| text("clEnqueueMarkerWithWaitList", e))?;
        // Another queue that waits for it must not have to send it off.
        queue::flush(queue).map_err(|e| text("clFlush", e))?;
        Ok(event as usize as Mark)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        let device = DEVICES.lock(at.device)?;
        let event = mark as usize as cl_event;
        // SAFETY: the mark is an event of the device's context, which is not released yet.
        let made = unsafe { queue::enqueue_barrier_with_wait_list(device.queues.find(at.number)?, 1, &event) };
        made.map(drop_event).map_err(|e| text("clEnqueueBarrierWithWaitList", e))
    }

    fn wait(&self, _: usize, mark: Mark) -> Result<(), Error> {
        // Without the lock: others may go on meanwhile.
        cl3::event::wait_for_events(&[mark as usize as cl_event]).map_err(|e| text("clWaitForEvents", e))
    }

    fn is_over(&self, _: usize, mark: Mark) -> Result<bool, Error> {
        let what = cl3::event::CL_EVENT_COMMAND_EXECUTION_STATUS;
        let status = cl3::event::get_event_data(mark as usize as cl_event, what);
        let status = number(Ok(status.map_err(|e| text("clGetEventInfo", e))?)) as i32;
        if status < 0 {
            Err(kernel_failed(text("a kernel failed", status)))
        } else {
            Ok(status == cl3::event::CL_COMPLETE)
        }
    }

    fn elapsed(&self, _: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        let end = |mark: Mark| {
            let what = cl3::event::CL_PROFILING_COMMAND_END;
            let time = cl3::event::get_event_profiling_data(mark as usize as cl_event, what);
            time.map(|bytes| number(Ok(bytes))).map_err(|e| text("clGetEventProfilingInfo", e))
        };
        Ok(end(to)?.wrapping_sub(end(from)?) as i64)
    }

    fn forget(&self, _: usize, mark: Mark) {
        // The driver keeps it as long as commands wait for it.
        drop_event(mark as usize as cl_event);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn extensions_under_a_condition_are_not_needed() {
        let text = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL FP_CONTRACT OFF
";
        let found: Vec<&str> = super::extensions(text).collect();
        assert_eq!(found, ["cl_khr_fp64", "cl_khr_subgroups"]);
    }

    #[test]
    fn notes_say_what_kernels_need() {
        let text =
            "// k needs cl_khr_subgroup_ballot\n#if defined(cl_khr_subgroup_ballot)\n__kernel\n// needs nothing\n";
        assert_eq!(super::needs(text).collect::<Vec<_>>(), [("k", "cl_khr_subgroup_ballot")]);
    }
}
