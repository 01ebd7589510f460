//! Channels between kernels of `hls`, on the host: queues without a limit. Separate from devices, since kernels that run on the
//! CPU need no driver.
//!
//! A channel is a variable of the program; its queue is found by the variable's address. Kernels run one after the other, in
//! the order of their launches, so a channel that is empty when it is read stays so: that ends the program.

use crate::system::nyala_panic_at;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes that were written to a channel and not read yet.
type Queue = VecDeque<u8>;

/// All channels that are not empty, by the address of their variables.
static CHANNELS: Mutex<Option<HashMap<usize, Queue>>> = Mutex::new(None);

/// The message for a read of an empty channel.
pub const EMPTY_CHANNEL: &str =
    "a kernel reads an empty channel, which nobody will fill: launch the kernel that writes it before this one";

fn channels() -> MutexGuard<'static, Option<HashMap<usize, Queue>>> {
    CHANNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether nothing can be read from a channel.
pub fn channel_is_empty(channel: usize) -> bool {
    !channels().as_ref().is_some_and(|all| all.contains_key(&channel))
}

/// Takes the first element, of `size` bytes, out of a channel. Ends the process if there is none.
///
/// # Safety
/// `place` is a text; `to` has room for the element.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_channel_read(place: *const u8, channel: *const c_void, to: *mut u8, size: i64) {
    let size = usize::try_from(size).unwrap_or(0);
    let mut all = channels();
    let queue = all.as_mut().and_then(|all| all.get_mut(&(channel as usize))).filter(|queue| queue.len() >= size);
    let Some(queue) = queue else {
        drop(all);
        let text = CString::new(EMPTY_CHANNEL).unwrap_or_default();
        // SAFETY: both texts end with a zero byte.
        unsafe { nyala_panic_at(place, text.as_ptr().cast()) }
    };
    for (i, byte) in queue.drain(..size).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.add(i).write(byte) };
    }
    if queue.is_empty()
        && let Some(all) = all.as_mut()
    {
        all.remove(&(channel as usize));
    }
}

/// Puts an element of `size` bytes into a channel.
///
/// # Safety
/// The element lies at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_channel_write(_: *const u8, channel: *const c_void, from: *const u8, size: i64) {
    let size = usize::try_from(size).unwrap_or(0);
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(from, size) };
    channels().get_or_insert_default().entry(channel as usize).or_default().extend(bytes);
}

/// The numbers of bytes that were written to channels and not read, for each channel that has some.
pub fn unread_bytes() -> Vec<usize> {
    let mut all: Vec<usize> = channels().iter().flatten().map(|(_, queue)| queue.len()).collect();
    all.sort_unstable();
    all
}

/// A line for the tools of FPGAs, which means nothing to the host.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_pragma(_: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_out_as_they_went_in() {
        let channel = std::ptr::without_provenance::<c_void>(16);
        for element in [[1u8, 2], [3, 4]] {
            // SAFETY: two bytes lie there.
            unsafe { nyala_channel_write(std::ptr::null(), channel, element.as_ptr(), 2) };
        }
        assert!(!channel_is_empty(16) && channel_is_empty(17));
        for element in [[1u8, 2], [3, 4]] {
            let mut read = [0u8; 2];
            // SAFETY: there is room for two bytes.
            unsafe { nyala_channel_read(std::ptr::null(), channel, read.as_mut_ptr(), 2) };
            assert_eq!(read, element);
        }
        assert!(channel_is_empty(16));
    }
}
