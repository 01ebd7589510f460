//! A platform that is never there, in place of those that have no implementation.

use super::{Error, Launch, Memory, Platform};
use std::ffi::c_void;

/// The reason.
pub(crate) struct Missing(pub &'static str);

impl Missing {
    fn error<T>(&self) -> Result<T, Error> {
        Err(self.0.into())
    }
}

impl Platform for Missing {
    fn n_devices(&self) -> Result<usize, Error> {
        self.error()
    }

    fn device_name(&self, _: usize) -> Result<String, Error> {
        self.error()
    }

    fn alloc(&self, _: usize, _: usize, _: Memory) -> Result<*mut c_void, Error> {
        self.error()
    }

    unsafe fn release(&self, _: usize, _: *mut c_void) -> Result<(), Error> {
        self.error()
    }

    unsafe fn write(&self, _: usize, _: *mut c_void, _: *const c_void, _: usize) -> Result<(), Error> {
        self.error()
    }

    unsafe fn read(&self, _: usize, _: *mut c_void, _: *const c_void, _: usize) -> Result<(), Error> {
        self.error()
    }

    unsafe fn launch(&self, _: usize, _: &Launch) -> Result<(), Error> {
        self.error()
    }

    fn synchronize(&self, _: usize) -> Result<(), Error> {
        self.error()
    }
}
