//! LLVM's shared library, loaded when the first of its functions is called.
//!
//! Loading takes longer than checking and specializing a small program, for hundreds of pages of addresses are
//! relocated. LLVM's functions are called as usual; the linker resolves them to jumps that `build.rs` writes, each of
//! which finds its function at the first call.

use std::arch::global_asm;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The shared library of LLVM that this crate was made for, where it was then.
const MADE_FOR: &str = env!("NYALA_LLVM_LIBRARY");

/// The shared library of LLVM: the file of its name in `../lib/nyala` from the folder of [`own_file`], as it is in a release, or in that
/// folder, as it is in the package for Python, or where it was when this crate was made. Its name has the version.
pub fn llvm_library() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let near = own_file().and_then(Path::parent).zip(Path::new(MADE_FOR).file_name());
        let near = near.and_then(|(folder, name)| {
            ["../lib/nyala", "."].iter().find_map(|way| folder.join(way).join(name).canonicalize().ok())
        });
        near.unwrap_or_else(|| MADE_FOR.into())
    })
}

/// The file with this code: the executable, or a library that was loaded into another one.
pub fn own_file() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| mapped_file(own_file as *const () as usize).or_else(|| std::env::current_exe().ok()))
        .as_deref()
}

/// The file that is mapped at an address, as Linux tells it.
fn mapped_file(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let range = usize::from_str_radix(begin, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        range.contains(&address).then(|| rest.find('/').map(|at| &rest[at..]))?
    });
    path.map(PathBuf::from).filter(|path| path.is_file())
}

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
        let path = CString::new(llvm_library().as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
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
        if function.is_null() { Err(format!("{} has no {name:?}", llvm_library().display())) } else { Ok(function) }
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
