//! Drivers' libraries: are their files whole; and those for which there are no bindings, which are opened when a program first asks for
//! them.

use super::Error;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reports a library whose file ends before its contents do: the system's loader would end the process.
///
/// # Errors
/// It is damaged.
pub(crate) fn check(library: &str) -> Result<(), Error> {
    // Where the system's loader looks.
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let parts = [own.as_str(), "lib64", "lib"];
    let of_system = ["/", "/usr", "/usr/local"].map(|root| parts.map(|part| PathBuf::from(root).join(part)));
    let folders = std::env::split_paths(&named).chain(of_system.into_iter().flatten());
    let mut paths = folders.map(|folder| folder.join(library));
    match paths.find(|path| path.is_file()) {
        Some(path) if is_cut_off(&path) => {
            Err(format!("the library {} is damaged: its file is cut off", path.display()))
        }
        _ => Ok(()),
    }
}

/// Whether a file of the machine's format, ELF of 64 bits, lacks something that its table of segments lists.
fn is_cut_off(path: &Path) -> bool {
    // Other files are refused by the loader.
    let Ok(mut file) = std::fs::File::open(path) else { return false };
    let (mut bytes, length) = (Vec::new(), file.metadata().map_or(0, |m| m.len()));
    // The table is at the begin.
    if file.by_ref().take(1 << 16).read_to_end(&mut bytes).is_err() {
        return false;
    }
    let number = |at: usize, size: usize| {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b)))
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let table = || Some((number(0x20, 8)? as usize, number(0x36, 2)? as usize, number(0x38, 2)? as usize));
    let Some((begin, size, n)) = table() else { return true };
    (0..n).any(|i| {
        let at = begin.saturating_add(i * size);
        let end = || Some(number(at + 8, 8)?.saturating_add(number(at + 32, 8)?));
        end().is_none_or(|end| end > length)
    })
}

/// Declares a struct `Library` with functions of a shared library, by their names, and `Library::open`, which finds them.
macro_rules! library {
    ($file:literal: $($name:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        #[allow(non_snake_case, reason = "the library's names")]
        struct Library { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl Library {
            fn open() -> Result<Library, Error> {
                super::driver::check($file)?;
                // SAFETY: the library's code runs when it is loaded; its functions have these types.
                unsafe {
                    let library =
                        libc::dlopen(concat!($file, "\0").as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_LOCAL);
                    if library.is_null() {
                        return Err(concat!("the library ", $file, " is not installed, or cannot be loaded").into());
                    }
                    Ok(Library {
                        $($name: {
                            let symbol = concat!(stringify!($name), "\0");
                            let found = libc::dlsym(library, symbol.as_ptr().cast());
                            if found.is_null() {
                                return Err(concat!("the library ", $file, " has no `", stringify!($name), "`").into());
                            }
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(found)
                        },)*
                    })
                }
            }
        }
    };
}

pub(super) use library;
