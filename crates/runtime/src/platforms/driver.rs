//! Drivers' libraries for which there are no bindings: opened when a program first asks for them.

/// Declares a struct `Library` with functions of a shared library, by their names, and `Library::open`, which finds them.
macro_rules! library {
    ($file:literal: $($name:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        #[allow(non_snake_case, reason = "the library's names")]
        struct Library { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl Library {
            fn open() -> Result<Library, Error> {
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
