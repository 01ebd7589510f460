//! Printing to standard output.
//!
//! It goes through the C library's `stdout`: locked, buffered, flushed at exit, and in order with the output of foreign
//! functions.

use crate::halves::{HalfArg, half_arg};
use half::f16;
use std::ffi::CStr;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// The error number of the first write that failed.
static FAILED: AtomicI32 = AtomicI32::new(0);

/// Whether the process started without a standard output: Rust's runtime opens the null device in its place, so that
/// writes succeed. This is noted before.
static CLOSED: AtomicBool = AtomicBool::new(false);
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = {
    extern "C" fn note() {
        // SAFETY: asks the system about a number.
        CLOSED.store(unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1, Ordering::Relaxed);
    }
    note
};

fn note_failed() {
    let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    let _ = FAILED.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
}

pub(crate) fn put(bytes: &[u8]) {
    if CLOSED.load(Ordering::Relaxed) && !bytes.is_empty() {
        FAILED.store(libc::EBADF, Ordering::Relaxed);
    }
    // SAFETY: `stdout` is the C library's open stream, the bytes are readable.
    if unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout) } < bytes.len() {
        note_failed();
    }
}

/// Flushes standard output.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_flush() {
    // SAFETY: `stdout` is the C library's open stream.
    if unsafe { libc::fflush(stdout) } != 0 {
        note_failed();
    }
}

/// The error if some output so far, also that of C functions, was lost.
pub fn output_error() -> Option<std::io::Error> {
    nyala_flush();
    // SAFETY: `stdout` is the C library's open stream.
    let has_failed = unsafe { libc::ferror(stdout) } != 0;
    match FAILED.load(Ordering::Relaxed) {
        0 if has_failed => Some(std::io::Error::from_raw_os_error(libc::EIO)),
        0 => None,
        code => Some(std::io::Error::from_raw_os_error(code)),
    }
}

/// Whether programs that exit by themselves check [`output_error`].
static LOSES_NOTHING: AtomicBool = AtomicBool::new(false);

/// From now on, a program that exits by itself ends this process with an error if its output was lost.
pub fn end_by_lost_output() {
    LOSES_NOTHING.store(true, Ordering::Relaxed);
}

/// The exit code of a program that exits with `code`, after checking for lost output.
pub(crate) fn exit_code(code: i32) -> i32 {
    match output_error().filter(|_| LOSES_NOTHING.load(Ordering::Relaxed)) {
        Some(e) => {
            eprintln!("error: cannot write to standard output: {e}");
            1
        }
        None => code,
    }
}

/// From now on, this process ends with an error if its output was lost, however it exits: for executables.
pub(crate) fn check_output_at_exit() {
    extern "C" fn check() {
        let Some(e) = output_error() else { return };
        // Where closed pipes end no process, its exit code is the same.
        let is_closed = e.kind() == std::io::ErrorKind::BrokenPipe;
        if !is_closed {
            eprintln!("error: cannot write to standard output: {e}");
        }
        // SAFETY: ends the process.
        unsafe { libc::_exit(if is_closed { 128 + libc::SIGPIPE } else { 1 }) }
    }
    // SAFETY: the function stays.
    unsafe { libc::atexit(check) };
}

unsafe extern "C" {
    fn ftrylockfile(file: *mut libc::FILE) -> libc::c_int;
    fn fflush_unlocked(file: *mut libc::FILE) -> libc::c_int;
}

/// Flushes standard output, unless a thread is just printing.
pub(crate) fn flush_if_free() {
    // SAFETY: `stdout` is the C library's open stream, whose lock is held while it is flushed. It stays locked: the
    // process ends.
    unsafe {
        if ftrylockfile(stdout) == 0 {
            fflush_unlocked(stdout);
        }
    }
}

/// Prints `value` by way of a buffer on the stack (no number is longer than 400 bytes).
fn put_display(value: impl std::fmt::Display) {
    let mut buffer = [0u8; 512];
    let mut rest = &mut buffer[..];
    let whole = write!(rest, "{value}").is_ok();
    let left = rest.len();
    if whole {
        put(&buffer[..512 - left]);
    } else {
        put(value.to_string().as_bytes());
    }
}

macro_rules! print_functions {
    ($($name:ident: $ty:ty),*) => {
        $(
            /// Prints the number in decimal, without a newline.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(value: $ty) {
                put_display(value);
            }
        )*
    };
}

print_functions!(
    nyala_print_i8: i8, nyala_print_i16: i16, nyala_print_i32: i32, nyala_print_i64: i64,
    nyala_print_u8: u8, nyala_print_u16: u16, nyala_print_u32: u32, nyala_print_u64: u64
);

/// The shortest decimal text that reads back as `value`; `nan`, `inf`, `-inf` for values that are no numbers.
pub fn float_text(value: f64) -> String {
    if value.is_nan() { "nan".into() } else { value.to_string() }
}

/// Like [`float_text`], for single precision.
pub fn float32_text(value: f32) -> String {
    if value.is_nan() { "nan".into() } else { value.to_string() }
}

/// Like [`float_text`], for half precision, by its bits.
pub fn float16_text(bits: u16) -> String {
    let value = f16::from_bits(bits);
    if !value.is_finite() {
        return float32_text(value.to_f32());
    }
    // Five digits distinguish all halves.
    let shorter = (0..4).map(|n| format!("{:.n$e}", value.to_f32()));
    let text = shorter.into_iter().find(|t| t.parse().is_ok_and(|x| f16::from_f32(x) == value));
    let text = text.unwrap_or_else(|| format!("{:.4e}", value.to_f32()));
    text.parse().map_or(text, |x: f64| x.to_string())
}

/// Prints the shortest decimal text that reads back as `value`, without a newline.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_print_f64(value: f64) {
    put(float_text(value).as_bytes());
}

/// Prints the shortest decimal text that reads back as `value`, without a newline.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_print_f32(value: f32) {
    put(float32_text(value).as_bytes());
}

/// Prints the shortest decimal text that reads back as `value`, without a newline.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_print_f16(value: HalfArg) {
    put(float16_text(half_arg(value)).as_bytes());
}

/// Prints `true` or `false`.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_print_bool(value: u8) {
    put(if value & 1 != 0 { b"true" } else { b"false" });
}

/// Prints one byte as it is.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_print_char(value: u8) {
    put(&[value]);
}

/// Prints the bytes up to the first zero byte.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_print_string(text: *const u8) {
    if text.is_null() {
        put(b"(null)");
    } else {
        // SAFETY: the caller's promise.
        put(unsafe { CStr::from_ptr(text.cast()) }.to_bytes());
    }
}

/// Prints `n` bytes as they are; nothing if `bytes` is null or `n` negative.
///
/// # Safety
/// `bytes` is null or readable at that length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_print_bytes(bytes: *const u8, n: i64) {
    let n = usize::try_from(n).unwrap_or(0);
    if !bytes.is_null() && n > 0 {
        // SAFETY: the caller's promise.
        put(unsafe { std::slice::from_raw_parts(bytes, n) });
    }
}

/// Writes `n` bytes to standard error, after what was printed before; nothing if `bytes` is null or `n` negative.
///
/// # Safety
/// `bytes` is null or readable at that length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_print_error(bytes: *const u8, n: i64) {
    nyala_flush();
    let n = usize::try_from(n).unwrap_or(0);
    if !bytes.is_null() && n > 0 {
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, n) };
        // Where nobody reads messages, there is nobody to tell.
        _ = std::io::stderr().write_all(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_back() {
        for value in [0.1, -0.0, 1e300, 5e-324, f64::MAX, 1.0 / 3.0] {
            assert_eq!(float_text(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
        assert_eq!(float_text(-f64::NAN), "nan");
        assert_eq!(float32_text(f32::NEG_INFINITY), "-inf");
        assert_eq!(float32_text(0.1), "0.1");
        for bits in 0..=u16::MAX {
            let (value, text) = (f16::from_bits(bits), float16_text(bits));
            let back = f16::from_f64(text.parse().unwrap());
            assert!(if value.is_nan() { text == "nan" } else { back == value }, "{bits:x}: {text}");
        }
        assert_eq!(float16_text(f16::from_f32(0.1).to_bits()), "0.1");
        assert_eq!(float16_text(f16::MAX.to_bits()), "65500");
        assert_eq!(float16_text(0x8000), "-0");
    }
}
