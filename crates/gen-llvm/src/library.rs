//! LLVM's shared library, loaded when the first of its functions is called.
//!
//! Loading takes longer than checking and specializing a small program, for hundreds of pages of addresses are
//! relocated. LLVM's functions are called as usual; the linker resolves them to jumps that `build.rs` writes, each of
//! which finds its function at the first call.

use std::arch::global_asm;
use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The shared library of LLVM that this crate was made for.
pub const LLVM_LIBRARY: &str = env!("NYALA_LLVM_LIBRARY");

/// The names of LLVM's functions, by number.
const NAMES: &str = include_str!(concat!(env!("OUT_DIR"), "/names.txt"));

#[cfg(target_arch = "x86_64")]
global_asm!(include_str!(concat!(env!("OUT_DIR"), "/stubs.s")), find = sym find, options(att_syntax));
#[cfg(target_arch = "aarch64")]
global_asm!(include_str!(concat!(env!("OUT_DIR"), "/stubs.s")), find = sym find);

unsafe extern "C" {
    /// As many addresses as there are names; null until the first call.
    static nyala_llvm_functions: AtomicPtr<c_void>;
}

/// A handle of the library, as a number: it is never unloaded.
static LIBRARY: OnceLock<Result<usize, String>> = OnceLock::new();

/// Loads the library, if it is not loaded.
///
/// # Errors
/// The loader's message, if the library was moved or replaced.
pub fn load_llvm() -> Result<(), String> {
    handle().map(|_| ())
}

/// LLVM's version, as in `22.1.0`.
///
/// # Errors
/// The loader's message, as for [`load_llvm`].
pub fn llvm_version() -> Result<String, String> {
    load_llvm()?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function writes three numbers.
    unsafe { llvm_sys::core::LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    Ok(format!("{major}.{minor}.{patch}"))
}

fn handle() -> Result<*mut c_void, String> {
    let handle = LIBRARY.get_or_init(|| {
        let path = CString::new(LLVM_LIBRARY).map_err(|e| e.to_string())?;
        // SAFETY: the path is a C string; LLVM's initializers may run in any thread.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        match handle.is_null() {
            false => Ok(handle as usize),
            // SAFETY: after a failure the message is there, until the next call of the loader.
            true => Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned()),
        }
    });
    handle.clone().map(|handle| handle as *mut c_void)
}

/// Where a function of LLVM is. Without it, the program ends: its callers cannot do anything else.
extern "C" fn find(index: usize) -> *mut c_void {
    let name = NAMES.lines().nth(index).unwrap_or_default();
    let found = handle().and_then(|library| {
        let name = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: the handle is the library's, the name a C string.
        let function = unsafe { libc::dlsym(library, name.as_ptr()) };
        if function.is_null() { Err(format!("{LLVM_LIBRARY} has no {name:?}")) } else { Ok(function) }
    });
    match found {
        Ok(function) => {
            // SAFETY: there is a place for each name, which is only read and written as a whole. A thread that reads it sees
            // the library as it was loaded.
            unsafe { (*(&raw const nyala_llvm_functions).add(index)).store(function, Ordering::Release) };
            function
        }
        Err(message) => {
            eprintln!("error: LLVM, which makes native code, cannot be loaded: {message}");
            eprintln!("  = hint: build Nyala again; the variable NYALA_LLVM names another LLVM 22 to build it with");
            std::process::exit(1)
        }
    }
}
