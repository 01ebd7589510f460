//! What crosses the border to C: handles, texts, places for results. Separate from the functions that C calls, so that each says once
//! what it expects.

use crate::failure::{Failure, Status, or_else};
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::Arc;

/// Makes a handle with one owner.
pub fn give<T: Send + Sync>(value: T) -> *mut T {
    Arc::into_raw(Arc::new(value)).cast_mut()
}

/// Adds an owner.
///
/// # Safety
/// The handle is NULL or has an owner.
pub unsafe fn retain<T>(handle: *mut T) -> *mut T {
    if !handle.is_null() {
        // SAFETY: `give` made it, and it has an owner.
        unsafe { Arc::increment_strong_count(handle) };
    }
    handle
}

/// Takes an owner away.
///
/// # Safety
/// The handle is NULL or has an owner, who does not use it any more.
pub unsafe fn release<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: `give` made it, and it has an owner.
        or_else((), || drop(unsafe { Arc::from_raw(handle) }));
    }
}

/// What a handle leads to. `what` names the argument.
///
/// # Safety
/// The handle is NULL or has an owner as long as the result is used.
pub unsafe fn of<'a, T>(handle: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// The text at an address. `what` names the argument.
///
/// # Safety
/// The address is NULL or that of a text which ends with a zero, and stays as it is as long as the result is used.
pub unsafe fn text<'a>(at: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if at.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(at) }.to_str();
    text.map_err(|_| Failure::new(Status::BadArgument, format!("`{what}` is no UTF-8")))
}

/// A place for a result, which is NULL until `put`.
pub struct Place<T>(*mut *mut T);

impl<T> Place<T> {
    /// # Safety
    /// The address is NULL or can be written as long as the place is used.
    pub unsafe fn new(at: *mut *mut T, what: &str) -> Result<Place<T>, Failure> {
        if at.is_null() {
            return Err(Failure::null(what));
        }
        // SAFETY: the caller's promise.
        unsafe { at.write(null_mut()) };
        Ok(Place(at))
    }

    pub fn put(self, result: *mut T) {
        // SAFETY: `new`'s caller promised it.
        unsafe { self.0.write(result) };
    }
}

/// A text for C. A zero in it, where C's text would end, becomes another character.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// A text that is the caller's.
pub fn give_text(text: &str) -> *mut c_char {
    c_text(text).into_raw()
}
