//! Kernels for `hls` as C++ on the CPU. The compiler writes them as text for the tools of FPGAs; these tools, or any compiler of
//! C++, make a library of the text that simulates the circuits. `NYALA_HLS` names that library. Memory of the device is the
//! host's. Separate from the host, whose kernels are functions of the program.
//!
//! For each kernel the library has a function `KERNEL_call`, which takes an array with the addresses of the arguments.

use super::host::Host;
use super::{Arg, Error, Launch, Mark, Memory, Platform, Queue, add_kernel_time};
use crate::foreign::Library;
use crate::system::nyala_time_ns;
use std::ffi::c_void;
use std::path::Path;
use std::sync::OnceLock;

/// A simulated device, if there is a library.
pub(crate) struct Hls;

/// The variable that names the library.
const VARIABLE: &str = "NYALA_HLS";

fn library() -> Result<&'static Library, Error> {
    static LIBRARY: OnceLock<Result<Library, Error>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => Err(format!(
            "kernels for `hls` are C++ for the tools of FPGAs: `nyala emit --stage hls` prints it; to simulate them, compile it \
             to a library, and let {VARIABLE} name that; `--device host` runs them on this machine's CPU"
        )),
        Some(path) => Library::open(Path::new(&path)).map_err(|e| format!("{VARIABLE}: {e}")),
    });
    library.as_ref().map_err(Clone::clone)
}

impl Platform for Hls {
    fn n_devices(&self) -> Result<usize, Error> {
        library().map(|_| 1)
    }

    fn device_name(&self, _: usize) -> Result<String, Error> {
        Ok("a simulation in C++".into())
    }

    fn alloc(&self, device: usize, size: usize, memory: Memory) -> Result<*mut c_void, Error> {
        Host.alloc(device, size, memory)
    }

    unsafe fn release(&self, device: usize, pointer: *mut c_void) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { Host.release(device, pointer) }
    }

    unsafe fn write(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { Host.write(at, to, from, size) }
    }

    unsafe fn read(&self, at: Queue, to: *mut c_void, from: *const c_void, size: usize) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { Host.write(at, to, from, size) }
    }

    unsafe fn launch(&self, _: Queue, launch: &Launch) -> Result<(), Error> {
        let symbol = format!("{}_call", launch.kernel);
        let function = library()?.symbol(&symbol);
        let function =
            function.ok_or_else(|| format!("the library that {VARIABLE} names has no function `{symbol}`"))?;
        if launch.blocks != [1; 3] || launch.block != [1; 3] {
            return Err("a kernel for `hls` has one work item".into());
        }
        let addresses: Vec<*mut c_void> = launch
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Address(address) => *address,
                Arg::Value { .. } => std::ptr::null_mut(),
            })
            .collect();
        let args: Vec<*const c_void> = launch
            .args
            .iter()
            .zip(&addresses)
            .map(|(arg, address)| match arg {
                Arg::Value { bytes, .. } => bytes.as_ptr().cast(),
                Arg::Address(_) => std::ptr::from_ref(address).cast(),
            })
            .collect();
        let before = nyala_time_ns();
        // SAFETY: the compiler wrote the function together with the launch; the arguments are the caller's promise.
        unsafe {
            let function: unsafe extern "C" fn(*const *const c_void) = std::mem::transmute(function);
            function(args.as_ptr());
        }
        add_kernel_time(nyala_time_ns() - before);
        Ok(())
    }

    fn synchronize(&self, at: Queue) -> Result<(), Error> {
        Host.synchronize(at)
    }

    fn make_queue(&self, device: usize) -> Result<usize, Error> {
        Host.make_queue(device)
    }

    fn mark(&self, at: Queue) -> Result<Mark, Error> {
        Host.mark(at)
    }

    fn follow(&self, at: Queue, mark: Mark) -> Result<(), Error> {
        Host.follow(at, mark)
    }

    fn wait(&self, device: usize, mark: Mark) -> Result<(), Error> {
        Host.wait(device, mark)
    }

    fn is_over(&self, device: usize, mark: Mark) -> Result<bool, Error> {
        Host.is_over(device, mark)
    }

    fn elapsed(&self, device: usize, from: Mark, to: Mark) -> Result<i64, Error> {
        Host.elapsed(device, from, to)
    }

    fn forget(&self, device: usize, mark: Mark) {
        Host.forget(device, mark);
    }
}
