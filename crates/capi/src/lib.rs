//! Nyala in C programs: `libnyala.so`, with the functions of `include/nyala.h`.
//!
//! The header is the documentation. Each function here checks what C gives it, calls `nyala_embed`, and makes handles and texts of
//! what that returns. What is more than that, the comparison of a function's type with C's text, is in `types`. No panic leaves
//! a function: what may panic runs in [`failure::run`] or [`failure::or_else`].
//!
//! **Safety.** The header says what callers must keep; the functions rely on that: a handle is NULL or one that this library gave and that
//! has an owner, a text is NULL or ends with a zero, and a place for a result is NULL or can be written.
#![allow(clippy::missing_safety_doc)]

mod compiler;
mod failure;
mod handles;
mod partial;
mod program;
mod types;

use std::ffi::{CString, c_char};

macro_rules! counted {
    ($($retain:ident, $release:ident: $handle:ty;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $retain(handle: *mut $handle) -> *mut $handle {
            // SAFETY: the header's conditions.
            unsafe { handles::retain(handle) }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $release(handle: *mut $handle) {
            // SAFETY: the header's conditions.
            unsafe { handles::release(handle) }
        }
    )* };
}

// The owners of handles.
counted! {
    nyala_compiler_retain, nyala_compiler_release: compiler::NyalaCompiler;
    nyala_program_retain, nyala_program_release: program::NyalaProgram;
    nyala_function_retain, nyala_function_release: program::NyalaFunction;
    nyala_partial_retain, nyala_partial_release: partial::NyalaPartial;
    nyala_error_retain, nyala_error_release: failure::NyalaError;
}

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Writes out what programs have printed.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_flush_output() {
    failure::or_else((), nyala_embed::flush);
}

/// Frees a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `handles::give_text` made it.
        drop(unsafe { CString::from_raw(text) });
    }
}
