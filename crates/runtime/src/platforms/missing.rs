//! A platform that is never there, in place of those that have no implementation.

use super::{Error, Launch, Mark, Memory, Platform, Queue};
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

    unsafe fn write(&self, _: Queue, _: *mut c_void, _: *const c_void, _: usize) -> Result<(), Error> {
        self.error()
    }

    unsafe fn read(&self, _: Queue, _: *mut c_void, _: *const c_void, _: usize) -> Result<(), Error> {
        self.error()
    }

    unsafe fn launch(&self, _: Queue, _: &Launch) -> Result<(), Error> {
        self.error()
    }

    fn synchronize(&self, _: Queue) -> Result<(), Error> {
        self.error()
    }

    fn make_queue(&self, _: usize) -> Result<usize, Error> {
        self.error()
    }

    fn mark(&self, _: Queue) -> Result<Mark, Error> {
        self.error()
    }

    fn follow(&self, _: Queue, _: Mark) -> Result<(), Error> {
        self.error()
    }

    fn wait(&self, _: usize, _: Mark) -> Result<(), Error> {
        self.error()
    }

    fn is_over(&self, _: usize, _: Mark) -> Result<bool, Error> {
        self.error()
    }

    fn elapsed(&self, _: usize, _: Mark, _: Mark) -> Result<i64, Error> {
        self.error()
    }

    fn forget(&self, _: usize, _: Mark) {}
}
