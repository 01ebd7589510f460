//! Queues of a device of Vulkan: how commands are sent off, in which order they run, and how the host waits for them.
//!
//! A program may make any number of queues, a driver has few: the n-th queue of the program is a queue of the driver, in turn, so that
//! as many run side by side as the driver has. Each queue of the program has a semaphore that counts what has ended of what it
//! sent off ([`End`] is such a count). The host waits for these counts, and so does the first command of a queue that follows
//! another. What is followed was sent off before, so no order of waits is a deadlock, also where queues share one of the
//! driver.

use super::{Allocation, Device, text};
use crate::platforms::{Error, Mark, add_kernel_time, kernel_failed};
use crate::system::nyala_time_ns;
use ash::vk;

/// Queues that are asked of a driver at most.
pub(super) const MAX_DRIVER_QUEUES: usize = 16;

/// Commands of a queue that are on their way at most; then all of them are waited for.
const MAX_LAUNCHES: usize = 512;

/// The end of something that was sent off: when the semaphore of its queue has this value, or a greater one.
#[derive(Clone, Copy)]
pub(super) struct End {
    semaphore: vk::Semaphore,
    value: u64,
}

/// A queue of the program.
pub(super) struct ProgramQueue {
    /// The driver's queue, which others may share.
    queue: vk::Queue,
    /// The end of what was sent off last.
    last: End,
    /// What the next commands wait for.
    pub follows: Vec<End>,
    /// Times before and after commands, by their place in `launched`; none without a clock.
    times: Option<vk::QueryPool>,
    /// Commands since somebody waited, and whether their times are known.
    launched: Vec<(vk::CommandBuffer, bool)>,
    /// Memory for the arguments of kernels among them.
    pub arguments: Vec<Allocation>,
}

/// A mark of a queue.
pub(super) struct Marked {
    pub end: End,
    /// The time at the mark; without a clock the host's, in nanoseconds.
    time: Result<vk::QueryPool, i64>,
}

/// The bits of a time that has so many.
pub(super) fn clock(bits: u32) -> u64 {
    1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

/// Waits for an end.
pub(super) fn wait_for(device: &ash::Device, end: End) -> Result<(), Error> {
    let (semaphores, values) = ([end.semaphore], [end.value]);
    let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    // SAFETY: the semaphore is the device's; neither is ever destroyed.
    unsafe { device.wait_semaphores(&info, u64::MAX) }.map_err(|e| kernel_failed(text("a kernel failed", e)))
}

impl Device {
    /// Adds a queue of the program; returns its number.
    pub(super) fn add_queue(&mut self) -> Result<usize, Error> {
        let number = self.queues.len();
        let queue = self.driver_queues.get(number % self.driver_queues.len().max(1)).copied();
        let queue = queue.ok_or("the driver gave no queue")?;
        let mut counts = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut counts);
        // SAFETY: the structs live during the call.
        let semaphore = unsafe { self.device.create_semaphore(&info, None) };
        let semaphore = semaphore.map_err(|e| text("vkCreateSemaphore", e))?;
        let times = self.new_times(2 * MAX_LAUNCHES as u32);
        let last = End { semaphore, value: 0 };
        let (follows, launched, arguments) = (Vec::new(), Vec::new(), Vec::new());
        self.queues.push(ProgramQueue { queue, last, follows, times, launched, arguments });
        Ok(number)
    }

    /// Room for times, if the queues have a clock.
    fn new_times(&self, n: u32) -> Option<vk::QueryPool> {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(n);
        // SAFETY: the struct lives during the call.
        (self.clock != 0).then(|| unsafe { self.device.create_query_pool(&info, None) }.ok()).flatten()
    }

    /// A queue by its number.
    ///
    /// # Errors
    /// It does not exist.
    pub(super) fn queue(&mut self, number: usize) -> Result<&mut ProgramQueue, Error> {
        self.queues.get_mut(number).ok_or_else(|| format!("the device has no queue {number}"))
    }

    /// Records commands and sends them off, after all before in the queue.
    pub(super) fn submit(
        &mut self,
        number: usize,
        is_timed: bool,
        record: impl FnOnce(&Device, vk::CommandBuffer),
    ) -> Result<(), Error> {
        if self.queue(number)?.launched.len() >= MAX_LAUNCHES {
            self.finish(Some(number))?;
        }
        let own = self.queue(number)?;
        let (times, slot) = (own.times.filter(|_| is_timed), 2 * own.launched.len() as u32);
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.commands).command_buffer_count(1);
        let device = self.device;
        // SAFETY: pools, queue and buffer are the device's, which is locked.
        unsafe {
            let made = device.allocate_command_buffers(&info).map_err(|e| text("vkAllocateCommandBuffers", e))?;
            let Some(&commands) = made.first() else { return Err("the driver gave no command buffer".into()) };
            let usage = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
            let info = vk::CommandBufferBeginInfo::default().flags(usage);
            device.begin_command_buffer(commands, &info).map_err(|e| text("vkBeginCommandBuffer", e))?;
            let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
            let barrier = [vk::MemoryBarrier::default().src_access_mask(all).dst_access_mask(all)];
            let order = || {
                let every = vk::PipelineStageFlags::ALL_COMMANDS | vk::PipelineStageFlags::HOST;
                let none = vk::DependencyFlags::empty();
                device.cmd_pipeline_barrier(commands, every, every, none, &barrier, &[], &[]);
            };
            order();
            if let Some(times) = times {
                device.cmd_reset_query_pool(commands, times, slot, 2);
                device.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, times, slot);
            }
            record(self, commands);
            if let Some(times) = times {
                device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, times, slot + 1);
            }
            order();
            device.end_command_buffer(commands).map_err(|e| text("vkEndCommandBuffer", e))?;
            let own = self.queue(number)?;
            let (waits, from): (Vec<_>, Vec<_>) = own.follows.iter().map(|end| (end.semaphore, end.value)).unzip();
            let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
            let (all, ends, to) = ([commands], [own.last.semaphore], [own.last.value + 1]);
            let mut counts =
                vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&from).signal_semaphore_values(&to);
            let info = vk::SubmitInfo::default().command_buffers(&all).signal_semaphores(&ends);
            let info = [info.wait_semaphores(&waits).wait_dst_stage_mask(&stages).push_next(&mut counts)];
            device.queue_submit(own.queue, &info, vk::Fence::null()).map_err(|e| text("vkQueueSubmit", e))?;
            own.last.value += 1;
            own.follows.clear();
            own.launched.push((commands, times.is_some()));
        }
        Ok(())
    }

    /// Waits for all of a queue, or of the device, and adds up what kernels took.
    pub(super) fn finish(&mut self, only: Option<usize>) -> Result<(), Error> {
        let meant = match only {
            Some(number) => self.queue(number).map(|_| number..number + 1)?,
            None => 0..self.queues.len(),
        };
        for own in &self.queues[meant.clone()] {
            // A queue that has sent nothing off since it followed another waits, too.
            own.follows.iter().chain([&own.last]).try_for_each(|&end| wait_for(self.device, end))?;
        }
        for number in meant {
            self.clear(number);
        }
        Ok(())
    }

    /// Gives up what the commands of a queue needed, which have ended.
    fn clear(&mut self, number: usize) {
        let Ok(own) = self.queue(number) else { return };
        own.follows.clear();
        let (times, launched, arguments) =
            (own.times, std::mem::take(&mut own.launched), std::mem::take(&mut own.arguments));
        if let (Some(times), true) = (times, launched.iter().any(|l| l.1)) {
            let mut found = vec![[0u64; 2]; 2 * launched.len()];
            let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
            // SAFETY: the pool has twice as many times as there are commands.
            let _ = unsafe { self.device.get_query_pool_results(times, 0, &mut found, flags) };
            let pairs = found.chunks_exact(2).zip(&launched);
            for (pair, _) in pairs.filter(|(p, l)| l.1 && p[0][1] != 0 && p[1][1] != 0) {
                add_kernel_time(self.nanoseconds(pair[0][0], pair[1][0]));
            }
        }
        if !launched.is_empty() {
            let commands: Vec<vk::CommandBuffer> = launched.iter().map(|l| l.0).collect();
            // SAFETY: they have ended.
            unsafe { self.device.free_command_buffers(self.commands, &commands) };
        }
        arguments.into_iter().for_each(|allocation| self.destroy(allocation));
    }

    /// The nanoseconds between two times of the queues' clock, which begins again when its bits are full.
    fn nanoseconds(&self, from: u64, to: u64) -> i64 {
        let ticks = to.wrapping_sub(from) & self.clock;
        (ticks as f64 * f64::from(self.abilities.limits.timestamp_period)) as i64
    }

    // Marks.

    /// Sets a mark behind all that is in a queue.
    pub(super) fn mark(&mut self, number: usize) -> Result<Mark, Error> {
        let spare = self.spare.iter().position(|m| self.is_over(m.end).unwrap_or(false));
        let spare = spare.and_then(|i| self.spare.swap_remove(i).time.ok());
        let times = spare.or_else(|| self.new_times(1));
        self.submit(number, false, |device, commands| {
            let Some(times) = times else { return };
            // SAFETY: the pool has one time, and no other commands use it.
            unsafe {
                device.device.cmd_reset_query_pool(commands, times, 0, 1);
                device.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, times, 0);
            }
        })?;
        let time = match times {
            Some(times) => Ok(times),
            None => {
                self.finish(Some(number))?;
                Err(nyala_time_ns())
            }
        };
        let end = self.queue(number)?.last;
        self.last_mark += 1;
        self.marks.insert(self.last_mark, Marked { end, time });
        Ok(self.last_mark)
    }

    /// A mark by its number.
    ///
    /// # Errors
    /// It does not exist.
    pub(super) fn marked(&self, mark: Mark) -> Result<&Marked, Error> {
        self.marks.get(&mark).ok_or_else(|| "the device has no such event".into())
    }

    /// Gives a mark up. Its clock serves another when its commands have ended.
    pub(super) fn forget(&mut self, mark: Mark) {
        self.spare.extend(self.marks.remove(&mark).filter(|m| m.time.is_ok()));
    }

    /// Whether an end has come.
    pub(super) fn is_over(&self, end: End) -> Result<bool, Error> {
        // SAFETY: the semaphore is the device's.
        let value = unsafe { self.device.get_semaphore_counter_value(end.semaphore) };
        Ok(value.map_err(|e| kernel_failed(text("a kernel failed", e)))? >= end.value)
    }

    /// The nanoseconds between two marks that were waited for. Queues of a family have one clock.
    pub(super) fn elapsed(&self, from: Mark, to: Mark) -> Result<i64, Error> {
        let time = |mark: Mark| match self.marked(mark)?.time {
            Err(time) => Ok(time as u64),
            Ok(times) => {
                let mut found = [0u64];
                let flags = vk::QueryResultFlags::TYPE_64;
                // SAFETY: the pool has one time.
                let read = unsafe { self.device.get_query_pool_results(times, 0, &mut found, flags) };
                read.map(|()| found[0]).map_err(|e| text("vkGetQueryPoolResults", e))
            }
        };
        let (from, to) = (time(from)?, time(to)?);
        Ok(if self.clock == 0 { to.wrapping_sub(from) as i64 } else { self.nanoseconds(from, to) })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn clocks_have_their_bits() {
        assert_eq!([0, 1, 36, 64].map(super::clock), [0, 1, (1 << 36) - 1, u64::MAX]);
    }
}
