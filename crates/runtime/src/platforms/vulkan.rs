//! Vulkan. The library is opened when a program first asks for the platform. Kernels are compute shaders in SPIR-V, of
//! which the driver makes a pipeline for each size of a block.
//!
//! Memory is buffers with addresses, so that an address may point into the middle of an allocation, and may lie in memory
//! itself. On devices that share the host's memory, buffers are mapped; others are copied to by way of a mapped one.
//! `NYALA_VULKAN_STAGING=1` asks for the latter everywhere.
//!
//! A program's queues are the driver's, in turn, as [`queues`] says.
//!
//! The code says by notes where a kernel's arguments are ([`Note`]), and by capabilities what it needs. Where a device has
//! no choice about subnormal numbers, rounding or infinities, the code's wishes are taken out of it. So is the memory order
//! of atomic operations on Mesa's llvmpipe: its atomic operations have the strongest order anyway, and it takes a weaker one
//! for a barrier of the block (Mesa 22.3).

mod queues;

use self::queues::{Marked, ProgramQueue, wait_for};
use super::allocations::Allocations;
use super::devices::{Devices, symbol, working};
use super::kept::Kept;
use super::ranges::Ranges;
use super::{Arg, Error, Launch, Mark, Memory, Platform, Queue};
use ash::vk;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Devices of Vulkan 1.3 that have addresses of buffers, in the order in which the library lists them.
pub(crate) struct Vulkan;

/// Bytes of push constants.
const MAX_PUSHED: usize = 128;
/// Bytes that are copied at once by way of the host.
const STAGING: usize = 1 << 24;
/// Bytes of a pool. Drivers have limits on how many allocations there are, 4096 at least.
const POOL: usize = 1 << 24;
/// Larger allocations are buffers of their own.
const MAX_PART: usize = 1 << 20;

/// The instruction of SPIR-V that names an ability of devices.
pub(super) const OP_CAPABILITY: u32 = 17;

/// Instructions and operands of SPIR-V that the runtime reads.
mod code {
    pub const MAGIC: u32 = 0x0723_0203;
    pub const OP_EXECUTION_MODE: u32 = 16;
    pub const OP_CAPABILITY: u32 = super::OP_CAPABILITY;
    pub const OP_MODULE_PROCESSED: u32 = 330;
    pub const OP_TYPE_INT: u32 = 21;
    pub const OP_CONSTANT: u32 = 43;
    /// Atomic operations that give a value, from `OpAtomicLoad` to `OpAtomicXor`.
    pub const ATOMICS: std::ops::RangeInclusive<u32> = 227..=242;
    pub const OP_ATOMIC_STORE: u32 = 228;
    pub const OP_ATOMIC_COMPARE_EXCHANGE: u32 = 230;
    pub const DENORM_PRESERVE: (u32, u32) = (4464, 4459);
    pub const SIGNED_ZERO_INF_NAN: (u32, u32) = (4466, 4461);
    pub const ROUND_TO_NEAREST: (u32, u32) = (4467, 4462);
}

/// Memory that a program or the runtime allocated, or a pool.
struct Allocation {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host sees it; 0 if it does not.
    mapped: usize,
    address: u64,
    /// Where it begins in the buffer, and the size of the part; of a whole buffer, 0 and 0.
    part: (u64, u64),
}

/// A buffer of which small allocations are parts.
struct Pool {
    whole: Allocation,
    is_mapped: bool,
    ranges: Ranges,
}

/// Facts on a kernel from its code: where its arguments are, how many bytes they have, and the memory of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Note {
    in_memory: bool,
    bytes: usize,
    shared: usize,
}

/// A device's abilities.
struct Abilities {
    /// Capabilities, whether the device has them, and what they are for people.
    capabilities: Vec<(u32, bool, &'static str)>,
    /// Execution modes with their capabilities, and for which widths the device has them.
    modes: [((u32, u32), [bool; 3]); 3],
    limits: vk::PhysicalDeviceLimits,
    /// Whether it is Mesa's driver for the CPU: its atomic operations have to lose their memory order, and it rounds twice in a
    /// fused multiplication.
    is_llvmpipe: bool,
}

struct Device {
    name: String,
    /// Differs between devices and drivers whose code differs.
    identity: [u8; vk::UUID_SIZE],
    /// Never destroyed, so that others than the device's user may wait for its queues.
    device: &'static ash::Device,
    /// The driver's queues, of one family.
    driver_queues: Vec<vk::Queue>,
    queues: Vec<ProgramQueue>,
    /// Marks that the program has not given up, and the number of the last one.
    marks: HashMap<Mark, Marked>,
    last_mark: Mark,
    /// Clocks of marks that the program has given up.
    spare: Vec<Marked>,
    /// The bits of a time of the queues; 0 if they have no clock.
    clock: u64,
    commands: vk::CommandPool,
    layout: vk::PipelineLayout,
    memory_types: Vec<vk::MemoryType>,
    /// Whether memory of the device is mapped.
    is_shared: bool,
    abilities: Abilities,
    memory: Allocations<Allocation>,
    pools: Vec<Pool>,
    staging: Option<Allocation>,
    modules: HashMap<usize, (vk::ShaderModule, HashMap<String, Note>)>,
    pipelines: HashMap<(usize, String, [u32; 3]), vk::Pipeline>,
}

fn text(what: &str, e: vk::Result) -> Error {
    format!("{what}: {e}")
}

static DEVICES: Devices<Device> = Devices::new(|| {
    // The functions of the library end with its entry.
    static LIBRARY: OnceLock<(ash::Entry, ash::Instance)> = OnceLock::new();
    super::driver::check("libvulkan.so.1")?;
    // SAFETY: the library's code runs when it is loaded.
    let entry = unsafe { ash::Entry::load() }
        .map_err(|_| "the library libvulkan.so.1 is not installed, or cannot be loaded".to_string())?;
    let info = vk::ApplicationInfo::default().application_name(c"nyala").api_version(vk::API_VERSION_1_3);
    let info = vk::InstanceCreateInfo::default().application_info(&info);
    // SAFETY: the structs live during the call; the instance is never destroyed.
    let instance = unsafe { entry.create_instance(&info, None) };
    let instance = instance.map_err(|e| match e {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => "no driver of a device is installed".into(),
        e => text("vkCreateInstance", e),
    })?;
    let (_, instance) = LIBRARY.get_or_init(|| (entry, instance));
    // SAFETY: the instance lives.
    let found = unsafe { instance.enumerate_physical_devices() }.map_err(|e| text("the devices", e))?;
    working(found.into_iter().map(|physical| Device::new(instance, physical)), "no driver has a device")
});

/// The words of a module.
pub(super) fn words(code: &[u8]) -> Result<Vec<u32>, Error> {
    let words: Vec<u32> = code.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    match words.first() == Some(&code::MAGIC) && words.len() >= 5 && code.len().is_multiple_of(4) {
        true => Ok(words),
        false => Err("its code is not SPIR-V".into()),
    }
}

/// The instructions of a module, with their numbers.
pub(super) fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut rest = words.get(5..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let length = (first >> 16) as usize;
        let inst = rest.get(..length.max(1))?;
        rest = &rest[length.max(1)..];
        Some((first & 0xffff, inst))
    })
}

/// The notes on kernels in a module.
fn notes(words: &[u32]) -> HashMap<String, Note> {
    let mut found = HashMap::new();
    for (_, inst) in instructions(words).filter(|i| i.0 == code::OP_MODULE_PROCESSED) {
        let bytes: Vec<u8> = inst[1..].iter().flat_map(|w| w.to_le_bytes()).take_while(|&b| b != 0).collect();
        let said = String::from_utf8_lossy(&bytes).into_owned();
        let parts: Vec<&str> = said.split(' ').collect();
        if let ["nyala", kernel, kind, bytes, shared] = parts[..] {
            let number = |text: &str| text.parse().unwrap_or(0);
            let note = Note { in_memory: kind == "memory", bytes: number(bytes), shared: number(shared) };
            found.insert(kernel.to_string(), note);
        }
    }
    found
}

/// The constant 0 of 32 bits in a module.
fn zero(words: &[u32]) -> Option<u32> {
    let is_int = |inst: &&[u32]| inst.len() == 4 && inst[2] == 32;
    let int = instructions(words).filter(|i| i.0 == code::OP_TYPE_INT).map(|i| i.1).find(is_int)?[1];
    let is_zero = |inst: &&[u32]| inst.len() == 4 && inst[1] == int && inst[3] == 0;
    Some(instructions(words).filter(|i| i.0 == code::OP_CONSTANT).map(|i| i.1).find(is_zero)?[2])
}

impl Abilities {
    /// Takes out of a module what the device has no choice about; says what else it lacks.
    fn fit(&self, words: &[u32]) -> Result<Vec<u32>, Error> {
        let mut fitting = words[..5].to_vec();
        let none = if self.is_llvmpipe { zero(words) } else { None };
        for (op, inst) in instructions(words) {
            let of_mode = |i: usize| self.modes.iter().find(|m| (if i == 0 { m.0.0 } else { m.0.1 }) == inst[i + 1]);
            match op {
                code::OP_CAPABILITY if inst.len() > 1 => {
                    if let Some((_, has)) = of_mode(0) {
                        if !has.contains(&true) {
                            continue;
                        }
                    } else if let Some((.., what)) = self.capabilities.iter().find(|c| c.0 == inst[1] && !c.1) {
                        return Err(format!("this device has no {what}"));
                    }
                }
                code::OP_EXECUTION_MODE if inst.len() > 3 => {
                    if let Some((_, has)) = of_mode(1) {
                        let width = [16, 32, 64].iter().position(|&w| w == inst[3]);
                        if !width.is_some_and(|w| has[w]) {
                            continue;
                        }
                    }
                }
                op if code::ATOMICS.contains(&op) && none.is_some() => {
                    let mut inst = inst.to_vec();
                    let orders = match op {
                        code::OP_ATOMIC_STORE => 3..4,
                        code::OP_ATOMIC_COMPARE_EXCHANGE => 5..7,
                        _ => 5..6,
                    };
                    for order in inst.get_mut(orders).unwrap_or_default() {
                        *order = none.unwrap_or(*order);
                    }
                    fitting.extend(inst);
                    continue;
                }
                _ => {}
            }
            fitting.extend(inst);
        }
        Ok(fitting)
    }
}

impl Device {
    fn new(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Device, Error> {
        let mut subgroups = vk::PhysicalDeviceVulkan11Properties::default();
        let mut floats = vk::PhysicalDeviceVulkan12Properties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroups).push_next(&mut floats);
        // SAFETY: the device is the instance's; the chain lives.
        let (families, memory) = unsafe {
            let version = instance.get_physical_device_properties(physical).api_version;
            if version < vk::API_VERSION_1_3 {
                let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
                return Err(format!("the device has Vulkan {major}.{minor}, kernels need 1.3"));
            }
            instance.get_physical_device_properties2(physical, &mut properties);
            let families = instance.get_physical_device_queue_family_properties(physical);
            (families, instance.get_physical_device_memory_properties(physical))
        };
        let (limits, kind) = (properties.properties.limits, properties.properties.device_type);
        let identity = properties.properties.pipeline_cache_uuid;
        let name = properties.properties.device_name_as_c_str().unwrap_or_default().to_string_lossy().into_owned();
        let (mut has11, mut has12, mut has13) = (
            vk::PhysicalDeviceVulkan11Features::default(),
            vk::PhysicalDeviceVulkan12Features::default(),
            vk::PhysicalDeviceVulkan13Features::default(),
        );
        let mut has = vk::PhysicalDeviceFeatures2::default();
        has = has.push_next(&mut has11).push_next(&mut has12).push_next(&mut has13);
        // SAFETY: the device is the instance's; the chain lives.
        unsafe { instance.get_physical_device_features2(physical, &mut has) };
        let has = has.features;
        if has12.buffer_device_address == 0 || has13.maintenance4 == 0 || has.shader_int64 == 0 {
            return Err("the device has no addresses of buffers, or no numbers of 64 bits".into());
        }
        let runs_kernels = |f: &&vk::QueueFamilyProperties| f.queue_flags.contains(vk::QueueFlags::COMPUTE);
        let found = families.iter().enumerate().filter(|(_, f)| runs_kernels(f));
        let found = found.max_by_key(|(i, f)| (f.queue_count, Reverse(*i)));
        let (family, about) = found.ok_or("the device runs no kernels")?;
        let base = vk::PhysicalDeviceFeatures {
            shader_float64: has.shader_float64,
            shader_int64: has.shader_int64,
            shader_int16: has.shader_int16,
            ..Default::default()
        };
        let mut want11 = vk::PhysicalDeviceVulkan11Features {
            storage_buffer16_bit_access: has11.storage_buffer16_bit_access,
            ..Default::default()
        };
        let mut want12 = vk::PhysicalDeviceVulkan12Features {
            storage_buffer8_bit_access: has12.storage_buffer8_bit_access,
            shader_buffer_int64_atomics: has12.shader_buffer_int64_atomics,
            shader_shared_int64_atomics: has12.shader_shared_int64_atomics,
            shader_float16: has12.shader_float16,
            shader_int8: has12.shader_int8,
            shader_subgroup_extended_types: has12.shader_subgroup_extended_types,
            buffer_device_address: 1,
            timeline_semaphore: 1,
            ..Default::default()
        };
        let mut want13 = vk::PhysicalDeviceVulkan13Features { maintenance4: 1, ..Default::default() };
        let priorities = vec![1.0; (about.queue_count as usize).clamp(1, queues::MAX_DRIVER_QUEUES)];
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family as u32).queue_priorities(&priorities)];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_features(&base);
        let info = info.push_next(&mut want11).push_next(&mut want12).push_next(&mut want13);
        // SAFETY: the structs live during the calls; device and objects are never destroyed.
        unsafe {
            let device = instance.create_device(physical, &info, None).map_err(|e| text("vkCreateDevice", e))?;
            let device: &'static ash::Device = Box::leak(Box::new(device));
            let driver_queues =
                (0..priorities.len()).map(|i| device.get_device_queue(family as u32, i as u32)).collect();
            let info = vk::CommandPoolCreateInfo::default().queue_family_index(family as u32);
            let commands = device.create_command_pool(&info, None).map_err(|e| text("vkCreateCommandPool", e))?;
            let ranges =
                [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(MAX_PUSHED as u32)];
            let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
            let layout = device.create_pipeline_layout(&info, None).map_err(|e| text("vkCreatePipelineLayout", e))?;
            let is_mapped = matches!(kind, vk::PhysicalDeviceType::INTEGRATED_GPU | vk::PhysicalDeviceType::CPU);
            let staged = std::env::var_os("NYALA_VULKAN_STAGING").is_some_and(|v| v == "1");
            let mut device = Device {
                name,
                identity,
                device,
                driver_queues,
                queues: Vec::new(),
                marks: HashMap::new(),
                last_mark: 0,
                spare: Vec::new(),
                clock: queues::clock(about.timestamp_valid_bits),
                commands,
                layout,
                memory_types: memory.memory_types_as_slice().to_vec(),
                is_shared: is_mapped && !staged,
                abilities: abilities(&has, &has11, &has12, &subgroups, &floats, limits),
                memory: Allocations::new(),
                pools: Vec::new(),
                staging: None,
                modules: HashMap::new(),
                pipelines: HashMap::new(),
            };
            device.add_queue()?;
            Ok(device)
        }
    }

    /// Memory, its contents undefined: a part of a pool, or a buffer.
    fn create(&mut self, size: usize, is_mapped: bool) -> Result<Allocation, Error> {
        if size > MAX_PART {
            return self.create_buffer(size, is_mapped);
        }
        let part = |pool: &mut Pool| {
            let offset = pool.ranges.take(size as u64)?;
            let Allocation { buffer, memory, mapped, address, .. } = pool.whole;
            let mapped = if mapped == 0 { 0 } else { mapped + offset as usize };
            Some(Allocation { buffer, memory, mapped, address: address + offset, part: (offset, size as u64) })
        };
        if let Some(found) = self.pools.iter_mut().filter(|pool| pool.is_mapped == is_mapped).find_map(part) {
            return Ok(found);
        }
        let Ok(whole) = self.create_buffer(POOL, is_mapped) else { return self.create_buffer(size, is_mapped) };
        self.pools.push(Pool { whole, is_mapped, ranges: Ranges::new(POOL as u64) });
        self.pools.last_mut().and_then(part).ok_or_else(|| format!("cannot allocate {size} bytes"))
    }

    fn create_buffer(&self, size: usize, is_mapped: bool) -> Result<Allocation, Error> {
        let failed = |e| text(&format!("cannot allocate {size} bytes"), e);
        let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(size.max(4).next_multiple_of(4) as u64).usage(usage);
        // SAFETY: the structs live during the calls; what was made is destroyed where a later step fails.
        unsafe {
            let buffer = self.device.create_buffer(&info, None).map_err(failed)?;
            let needs = self.device.get_buffer_memory_requirements(buffer);
            let host = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let wishes = match is_mapped {
                true => [host | vk::MemoryPropertyFlags::HOST_CACHED, host],
                false => [vk::MemoryPropertyFlags::DEVICE_LOCAL, vk::MemoryPropertyFlags::empty()],
            };
            let mut found = wishes.iter().filter_map(|wish| {
                let fits = |(i, t): &(usize, &vk::MemoryType)| {
                    needs.memory_type_bits >> i & 1 != 0 && t.property_flags.contains(*wish)
                };
                self.memory_types.iter().enumerate().find(fits).map(|(i, _)| i as u32)
            });
            let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
            let made = found.next().ok_or(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY).and_then(|kind| {
                let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
                self.device.allocate_memory(&info.push_next(&mut flags), None)
            });
            let memory = made.map_err(|e| {
                self.device.destroy_buffer(buffer, None);
                failed(e)
            })?;
            let bound = self.device.bind_buffer_memory(buffer, memory, 0).and_then(|()| match is_mapped {
                true => self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()),
                false => Ok(std::ptr::null_mut()),
            });
            let mapped = bound.map_err(|e| {
                self.device.destroy_buffer(buffer, None);
                self.device.free_memory(memory, None);
                failed(e)
            })?;
            let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
            let address = self.device.get_buffer_device_address(&info);
            Ok(Allocation { buffer, memory, mapped: mapped as usize, address, part: (0, 0) })
        }
    }

    /// Frees what [`Device::create`] made; no kernel uses it. Pools stay.
    fn destroy(&mut self, allocation: Allocation) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.whole.buffer == allocation.buffer) {
            pool.ranges.give(allocation.part.0, allocation.part.1);
            return;
        }
        // SAFETY: both are the device's, and used by nobody.
        unsafe {
            self.device.destroy_buffer(allocation.buffer, None);
            self.device.free_memory(allocation.memory, None);
        }
    }

    /// The pipeline of a kernel for blocks of a size.
    fn pipeline(&mut self, code: &'static [u8], name: &str, block: [u32; 3]) -> Result<(vk::Pipeline, Note), Error> {
        let key = code.as_ptr() as usize;
        if !self.modules.contains_key(&key) {
            let all = words(code)?;
            let fitting = self.abilities.fit(&all)?;
            let info = vk::ShaderModuleCreateInfo::default().code(&fitting);
            // SAFETY: the code lives during the call; the compiler made it.
            let module = unsafe { self.device.create_shader_module(&info, None) };
            let module = module.map_err(|e| text("the driver cannot take its code", e))?;
            self.modules.insert(key, (module, notes(&all)));
        }
        let Some((module, notes)) = self.modules.get(&key) else { return Err("its code is lost".into()) };
        let note = *notes.get(name).ok_or("its code has no such kernel")?;
        let shared = self.abilities.limits.max_compute_shared_memory_size as usize;
        if note.shared > shared {
            let n = note.shared;
            return Err(format!("it has {n} bytes of memory of the block; this device has {shared}"));
        }
        let pipeline = (key, name.to_string(), block);
        if let Some(&found) = self.pipelines.get(&pipeline) {
            return Ok((found, note));
        }
        let symbol = symbol(name)?;
        // The extents of a block, and whether the device's fused multiplication rounds once.
        let entries = [0, 1, 2, 3].map(|i| vk::SpecializationMapEntry::default().constant_id(i).offset(4 * i).size(4));
        let values = [&block[..], &[u32::from(!self.abilities.is_llvmpipe)]].concat();
        let values: Vec<u8> = values.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&values);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(*module)
            .name(&symbol)
            .specialization_info(&special);
        let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
        // The driver's result of an earlier run; the driver itself checks it.
        let device = self.identity;
        let kept = Kept::of(&[b"vulkan", code, name.as_bytes(), &values, &device]);
        let bytes = kept.get();
        let start = vk::PipelineCacheCreateInfo::default().initial_data(bytes.as_deref().unwrap_or_default());
        // SAFETY: module and layout are the device's, the structs live; the cache is used by nobody afterwards.
        let made = unsafe {
            let empty = vk::PipelineCacheCreateInfo::default();
            let cache = self.device.create_pipeline_cache(&start, None);
            let cache = cache.or_else(|_| self.device.create_pipeline_cache(&empty, None));
            let cache = cache.map_err(|e| text("vkCreatePipelineCache", e))?;
            let made = self.device.create_compute_pipelines(cache, &info, None);
            if let Ok(data) = self.device.get_pipeline_cache_data(cache)
                && made.is_ok()
                && bytes.as_ref() != Some(&data)
            {
                kept.put(&data);
            }
            self.device.destroy_pipeline_cache(cache, None);
            made
        };
        let made = made.map_err(|(_, e)| text("the driver cannot compile its code", e))?;
        let Some(&made) = made.first() else { return Err("the driver made no pipeline".into()) };
        self.pipelines.insert(pipeline, made);
        Ok((made, note))
    }

    /// Checks the extents of a launch against the device's limits.
    fn check(&self, launch: &Launch) -> Result<(), Error> {
        let limits = &self.abilities.limits;
        let [x, y, z] = launch.block;
        let most = limits.max_compute_work_group_invocations as usize;
        let [mx, my, mz] = limits.max_compute_work_group_size.map(|n| n as usize);
        if x.saturating_mul(y).saturating_mul(z) > most || x > mx || y > my || z > mz {
            return Err(format!(
                "blocks of {x} by {y} by {z} work items; this device has {most} in a block at most, and {mx} by {my} by {mz}"
            ));
        }
        // On the axis x a launch may be several dispatches.
        for (axis, name) in ["x", "y", "z"].iter().enumerate().skip(1) {
            let (n, most) = (launch.blocks[axis], limits.max_compute_work_group_count[axis] as usize);
            if n > most {
                return Err(format!("{n} blocks on axis {name}; this device has {most} at most"));
            }
        }
        Ok(())
    }

    /// Copies between the host and memory of the device that is not mapped, by a queue, a piece at a time.
    ///
    /// # Safety
    /// `host` has `size` bytes.
    unsafe fn copy_staged(
        &mut self,
        at: usize,
        address: u64,
        host: *mut u8,
        size: usize,
        is_write: bool,
    ) -> Result<(), Error> {
        if self.staging.is_none() {
            self.staging = Some(self.create(STAGING, true)?);
        }
        let mut done = 0;
        while done < size {
            let n = STAGING.min(size - done);
            let place = self.memory.find(address + done as u64, n)?;
            let (buffer, begin) = (place.known.buffer, place.known.part.0 + place.offset as u64);
            let Some(staging) = &self.staging else { return Err("no memory to copy by".into()) };
            let (piece, seen) = (staging.buffer, staging.mapped as *mut u8);
            // SAFETY: the piece has so many bytes, and so has the host's memory.
            unsafe {
                if is_write {
                    seen.copy_from(host.add(done), n);
                }
                self.submit(at, false, |device, commands| {
                    let (from, to) = ((piece, 0), (buffer, begin));
                    let (from, to) = if is_write { (from, to) } else { (to, from) };
                    let region = [vk::BufferCopy::default().src_offset(from.1).dst_offset(to.1).size(n as u64)];
                    device.device.cmd_copy_buffer(commands, from.0, to.0, &region);
                })?;
                self.finish(Some(at))?;
                if !is_write {
                    host.add(done).copy_from(seen, n);
                }
            }
            done += n;
        }
        Ok(())
    }
}

/// A device's abilities, by its features and properties.
fn abilities(
    has: &vk::PhysicalDeviceFeatures,
    has11: &vk::PhysicalDeviceVulkan11Features,
    has12: &vk::PhysicalDeviceVulkan12Features,
    subgroups: &vk::PhysicalDeviceVulkan11Properties,
    floats: &vk::PhysicalDeviceVulkan12Properties,
    limits: vk::PhysicalDeviceLimits,
) -> Abilities {
    let group = |what: vk::SubgroupFeatureFlags| {
        subgroups.subgroup_supported_operations.contains(what)
            && subgroups.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE)
    };
    let atomics = has12.shader_buffer_int64_atomics != 0 && has12.shader_shared_int64_atomics != 0;
    let capabilities = vec![
        (9, has12.shader_float16 != 0, "floats of 16 bits (`shaderFloat16`)"),
        (10, has.shader_float64 != 0, "floats of 64 bits (`shaderFloat64`)"),
        (11, has.shader_int64 != 0, "integers of 64 bits (`shaderInt64`)"),
        (12, atomics, "atomic operations of 64 bits (`shaderBufferInt64Atomics`, `shaderSharedInt64Atomics`)"),
        (22, has.shader_int16 != 0, "integers of 16 bits (`shaderInt16`)"),
        (39, has12.shader_int8 != 0, "integers of 8 bits (`shaderInt8`)"),
        (61, group(vk::SubgroupFeatureFlags::BASIC), "operations of subgroups"),
        (62, group(vk::SubgroupFeatureFlags::VOTE), "votes of subgroups"),
        (64, group(vk::SubgroupFeatureFlags::BALLOT), "ballots of subgroups"),
        (65, group(vk::SubgroupFeatureFlags::SHUFFLE), "exchanges in subgroups"),
        (4433, has11.storage_buffer16_bit_access != 0, "numbers of 16 bits in memory (`storageBuffer16BitAccess`)"),
        (4448, has12.storage_buffer8_bit_access != 0, "numbers of 8 bits in memory (`storageBuffer8BitAccess`)"),
    ];
    // Where the widths depend on each other, all have to be the same.
    let together = |has: [u32; 3], independence: vk::ShaderFloatControlsIndependence| {
        let has = has.map(|h| h != 0);
        let is_free = independence == vk::ShaderFloatControlsIndependence::ALL;
        if is_free || !has.contains(&false) { has } else { [false; 3] }
    };
    let (denormal, rounding) = (floats.denorm_behavior_independence, floats.rounding_mode_independence);
    let modes = [
        (
            code::DENORM_PRESERVE,
            together(
                [
                    floats.shader_denorm_preserve_float16,
                    floats.shader_denorm_preserve_float32,
                    floats.shader_denorm_preserve_float64,
                ],
                denormal,
            ),
        ),
        (
            code::SIGNED_ZERO_INF_NAN,
            [
                floats.shader_signed_zero_inf_nan_preserve_float16,
                floats.shader_signed_zero_inf_nan_preserve_float32,
                floats.shader_signed_zero_inf_nan_preserve_float64,
            ]
            .map(|h| h != 0),
        ),
        (
            code::ROUND_TO_NEAREST,
            together(
                [
                    floats.shader_rounding_mode_rte_float16,
                    floats.shader_rounding_mode_rte_float32,
                    floats.shader_rounding_mode_rte_float64,
                ],
                rounding,
            ),
        ),
    ];
    let is_llvmpipe = floats.driver_id == vk::DriverId::MESA_LLVMPIPE;
    Abilities { capabilities, modes, limits, is_llvmpipe }
}

impl Platform for Vulkan {
    fn n_devices(&self) -> Result<usize, Error> {
        DEVICES.count()
    }

    fn has_feature(&self, number: usize, name: &str) -> Result<bool, Error> {
        let device = DEVICES.lock(number)?;
        // Capabilities of SPIR-V.
        let needs: &[u32] = match name {
            "fp16" => &[9],
            "fp64" => &[10],
            "int64_atomics" => &[12],
            "subgroups" => &[61, 62, 64, 65],
            "divergent_votes" => &[61, 62, 64],
            _ => return Ok(false),
        };
        let has = |need: &u32| device.abilities.capabilities.iter().any(|c| c.0 == *need && c.1);
        Ok(needs.iter().all(has))
    }

    fn device_name(&self, number: usize) -> Result<String, Error> {
        Ok(DEVICES.lock(number)?.name.clone())
    }

    fn alloc(&self, number: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error> {
        let mut device = DEVICES.lock(number)?;
        let is_mapped = device.is_shared || memory != Memory::Device;
        let allocation = device.create(size, is_mapped)?;
        let address = allocation.address;
        device.memory.insert(address, size, allocation);
        Ok(address as *mut c_void)
    }

    unsafe fn release(&self, number: usize, pointer: *mut c_void) -> Result<(), Error> {
        let mut device = DEVICES.lock(number)?;
        // Kernels may still use it.
        device.finish(None)?;
        let allocation = device.memory.remove(pointer as u64)?;
        device.destroy(allocation);
        Ok(())
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        // Kernels may still read what is there.
        device.finish(Some(at.number))?;
        let place = device.memory.find(to as u64, size)?;
        let (mapped, offset) = (place.known.mapped, place.offset);
        // SAFETY: the range lies in the allocation, that of the host is the caller's promise.
        unsafe {
            match mapped {
                0 => device.copy_staged(at.number, to as u64, from.cast_mut().cast(), size, true),
                mapped => {
                    (mapped as *mut u8).add(offset).copy_from(from.cast(), size);
                    Ok(())
                }
            }
        }
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.finish(Some(at.number))?;
        let place = device.memory.find(from as u64, size)?;
        let (mapped, offset) = (place.known.mapped, place.offset);
        // SAFETY: as above.
        unsafe {
            match mapped {
                0 => device.copy_staged(at.number, from as u64, to.cast(), size, false),
                mapped => {
                    to.cast::<u8>().copy_from((mapped as *const u8).add(offset), size);
                    Ok(())
                }
            }
        }
    }

    unsafe fn launch(&self, at: Queue, launch: &Launch) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queue(at.number)?;
        device.check(launch)?;
        let block = launch.block.map(|n| n as u32);
        let (pipeline, note) = device.pipeline(launch.code, launch.kernel, block)?;
        device.memory.check(&launch.args)?;
        let mut bytes: Vec<u8> = Vec::with_capacity(note.bytes);
        for arg in &launch.args {
            match arg {
                Arg::Value { bytes: value, .. } => bytes.extend(*value),
                Arg::Address(pointer) => bytes.extend((*pointer as u64).to_ne_bytes()),
            }
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        if bytes.len() != note.bytes {
            return Err(format!("its code takes {} bytes of arguments, not {}", note.bytes, bytes.len()));
        }
        if note.in_memory {
            let memory = device.create(bytes.len(), true)?;
            // SAFETY: the memory was just mapped, and has so many bytes.
            unsafe { (memory.mapped as *mut u8).copy_from(bytes.as_ptr(), bytes.len()) };
            bytes = memory.address.to_ne_bytes().to_vec();
            device.queue(at.number)?.arguments.push(memory);
        }
        let [x, y, z] = launch.blocks.map(|n| n as u32);
        let most = device.abilities.limits.max_compute_work_group_count[0].max(1);
        let end = bytes.len();
        bytes.extend([0, x].map(u32::to_ne_bytes).concat());
        device.submit(at.number, true, |device, commands| {
            let vulkan = &device.device;
            // SAFETY: all objects are the device's; the push constants have room for so many bytes.
            unsafe {
                vulkan.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                for first in (0..x).step_by(most as usize) {
                    bytes[end..end + 4].copy_from_slice(&first.to_ne_bytes());
                    let stage = vk::ShaderStageFlags::COMPUTE;
                    vulkan.cmd_push_constants(commands, device.layout, stage, 0, &bytes);
                    vulkan.cmd_dispatch(commands, most.min(x - first), y, z);
                }
            }
        })
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        device.queue(at.number)?;
        device.finish((at.number != 0).then_some(at.number))
    }

    fn make_queue(&self, number: usize) -> Result<usize, Error> {
        DEVICES.lock(number)?.add_queue()
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        DEVICES.lock(at.device)?.mark(at.number)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        let mut device = DEVICES.lock(at.device)?;
        let end = device.marked(mark)?.end;
        device.queue(at.number)?.follows.push(end);
        Ok(())
    }

    fn wait(&self, number: usize, mark: Mark) -> Result<(), Error> {
        let device = DEVICES.lock(number)?;
        let (handle, end) = (device.device, device.marked(mark)?.end);
        // Without the lock: others may go on meanwhile.
        drop(device);
        wait_for(handle, end)
    }

    fn is_over(&self, number: usize, mark: Mark) -> Result<bool, Error> {
        let device = DEVICES.lock(number)?;
        device.is_over(device.marked(mark)?.end)
    }

    fn elapsed(&self, number: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        DEVICES.lock(number)?.elapsed(from, to)
    }

    fn forget(&self, number: usize, mark: Mark) {
        if let Ok(mut device) = DEVICES.lock(number) {
            device.forget(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(parts: &[&[u32]]) -> Vec<u32> {
        let mut words = vec![code::MAGIC, 0x0001_0600, 0, 10, 0];
        parts.iter().for_each(|p| words.extend(*p));
        words
    }

    #[test]
    fn reads_notes_of_kernels() {
        let said = b"nyala k push 16 64\0\0";
        let text: Vec<u32> = said.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        let inst = [&[((text.len() as u32 + 1) << 16) | code::OP_MODULE_PROCESSED][..], &text].concat();
        let note = Note { in_memory: false, bytes: 16, shared: 64 };
        assert_eq!(notes(&module(&[&inst])).get("k"), Some(&note));
        // Broken code has no instructions, and no crash.
        assert_eq!(notes(&module(&[&[0xffff_0000], &inst])).len(), 0);
        assert!(words(b"text").is_err());
    }

    #[test]
    fn takes_out_wishes_that_a_device_cannot_fulfill() {
        let abilities = Abilities {
            capabilities: vec![(10, false, "floats of 64 bits")],
            modes: [
                (code::DENORM_PRESERVE, [false; 3]),
                (code::SIGNED_ZERO_INF_NAN, [true; 3]),
                (code::ROUND_TO_NEAREST, [false, true, false]),
            ],
            limits: vk::PhysicalDeviceLimits::default(),
            is_llvmpipe: false,
        };
        let capability = |n: u32| [2 << 16 | code::OP_CAPABILITY, n];
        let mode = |mode: u32, width: u32| [4 << 16 | code::OP_EXECUTION_MODE, 7, mode, width];
        let before = module(&[&capability(4464), &capability(4467), &mode(4459, 32), &mode(4462, 32), &mode(4462, 64)]);
        let after = module(&[&capability(4467), &mode(4462, 32)]);
        assert_eq!(abilities.fit(&before), Ok(after));
        let needs = module(&[&capability(10)]);
        assert_eq!(abilities.fit(&needs), Err("this device has no floats of 64 bits".into()));
    }
}
