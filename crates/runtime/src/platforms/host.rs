//! The host as a device: its memory is the program's own. Its kernels are functions of the program
//! ([`launch`](crate::launch)), so there is nothing to launch here.

use super::{Error, Launch, Mark, Memory, Platform, Queue};
use crate::memory::{aligned, nyala_free};
use crate::system::nyala_time_ns;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The CPU, which is one device. Launches and copies have ended when they return, in whatever queue.
pub(crate) struct Host;

impl Platform for Host {
    fn n_devices(&self) -> Result<usize, Error> {
        Ok(1)
    }

    fn device_name(&self, _: usize) -> Result<String, Error> {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|t| t.1.trim()));
        Ok(name.unwrap_or(std::env::consts::ARCH).into())
    }

    fn alloc(&self, _: usize, size: usize, _: Memory) -> Result<*mut c_void, Error> {
        let pointer = i64::try_from(size).map_or(std::ptr::null_mut(), |size| aligned(size, 64));
        if pointer.is_null() { Err(format!("cannot allocate {size} bytes")) } else { Ok(pointer.cast()) }
    }

    unsafe fn release(&self, _: usize, pointer: *mut c_void) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { nyala_free(pointer.cast()) };
        Ok(())
    }

    unsafe fn write(&self, _: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u8>().copy_from(from.cast(), size) };
        Ok(())
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.write(at, to, from, size) }
    }

    unsafe fn launch(&self, _: Queue, _: &Launch) -> Result<(), Error> {
        Err("kernels on the host are no code of their own".into())
    }

    fn synchronize(&self, _: Queue) -> Result<(), Error> {
        Ok(())
    }

    fn make_queue(&self, _: usize) -> Result<usize, Error> {
        static QUEUES: AtomicUsize = AtomicUsize::new(1);
        Ok(QUEUES.fetch_add(1, Ordering::Relaxed))
    }

    fn mark(&self, _: Queue) -> Result<Mark, Error> {
        Ok(nyala_time_ns() as u64)
    }

    fn follow(&self, _: Queue, _: Mark) -> Result<(), Error> {
        Ok(())
    }

    fn wait(&self, _: usize, _: Mark) -> Result<(), Error> {
        Ok(())
    }

    fn is_over(&self, _: usize, _: Mark) -> Result<bool, Error> {
        Ok(true)
    }

    fn elapsed(&self, _: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        Ok(to.wrapping_sub(from) as i64)
    }

    fn forget(&self, _: usize, _: Mark) {}
}
