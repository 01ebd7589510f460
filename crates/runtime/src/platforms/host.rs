//! The host as a device: its memory is the program's own. Its kernels are functions of the program
//! ([`launch`](crate::launch)), so there is nothing to launch here.

use super::{Error, Launch, Memory, Platform};
use crate::memory::{aligned, nyala_free};
use std::ffi::c_void;

/// The CPU, which is one device.
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

    unsafe fn write(&self, _: usize, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u8>().copy_from(from.cast(), size) };
        Ok(())
    }

    unsafe fn read(&self, device: usize, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.write(device, to, from, size) }
    }

    unsafe fn launch(&self, _: usize, _: &Launch) -> Result<(), Error> {
        Err("kernels on the host are no code of their own".into())
    }

    fn synchronize(&self, _: usize) -> Result<(), Error> {
        Ok(())
    }
}
