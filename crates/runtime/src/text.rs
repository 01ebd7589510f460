//! Floating-point numbers to text and back, for programs that build text in memory: correct rounding is too much code
//! for a library of the language.

use crate::print::{float_text, float32_text};
use std::ffi::CStr;

/// Maximal number of decimals of [`nyala_format_f64`].
pub const MAX_DIGITS: i32 = 300;
/// Bytes that [`nyala_format_f64`] needs: sign, 309 digits, point, decimals.
pub const FORMAT_ROOM: usize = 640;

/// Writes `value` to `out` and returns the number of bytes: with `digits` decimals (at most 300), or if `digits` is
/// negative the shortest text that reads back as the same value (for -2 as the same `f32`). With an exponent if
/// `scientific`.
///
/// # Safety
/// `out` has room for 640 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_format_f64(out: *mut u8, value: f64, digits: i32, scientific: i32) -> i32 {
    let decimals = digits.min(MAX_DIGITS) as usize;
    let text = if !value.is_finite() {
        float_text(value)
    } else {
        match (digits, scientific != 0) {
            (-2, false) => float32_text(value as f32),
            (-2, true) => format!("{:e}", value as f32),
            (..0, false) => float_text(value),
            (..0, true) => format!("{value:e}"),
            (0.., false) => format!("{value:.decimals$}"),
            (0.., true) => format!("{value:.decimals$e}"),
        }
    };
    let n = text.len().min(FORMAT_ROOM);
    // SAFETY: the caller's promise.
    unsafe { out.copy_from_nonoverlapping(text.as_ptr(), n) };
    n as i32
}

/// # Safety
/// `text` is null or ends with a zero byte; `out` can be written.
unsafe fn parse<T: std::str::FromStr>(text: *const u8, out: *mut T) -> i32 {
    if text.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let parsed = unsafe { CStr::from_ptr(text.cast()) }.to_str().ok().and_then(|t| t.parse().ok());
    match parsed {
        // SAFETY: the caller's promise.
        Some(value) => unsafe {
            *out = value;
            1
        },
        None => 0,
    }
}

/// Reads all of `text` as a number, correctly rounded. Returns 1 with the value in `out`, or 0 with `out` unchanged.
///
/// # Safety
/// `text` ends with a zero byte; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_parse_f64(text: *const u8, out: *mut f64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { parse(text, out) }
}

/// [`nyala_parse_f64`] for single precision, rounded once.
///
/// # Safety
/// `text` ends with a zero byte; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_parse_f32(text: *const u8, out: *mut f32) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { parse(text, out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(value: f64, digits: i32, scientific: i32) -> String {
        let mut out = [0u8; FORMAT_ROOM];
        // SAFETY: the room is as asked for.
        let n = unsafe { nyala_format_f64(out.as_mut_ptr(), value, digits, scientific) };
        String::from_utf8_lossy(&out[..n as usize]).into_owned()
    }

    #[test]
    fn numbers_are_formatted() {
        assert_eq!(format(2.5, 2, 0), "2.50");
        assert_eq!(format(0.1, -1, 0), "0.1");
        assert_eq!(format(f64::from(0.1f32), -2, 0), "0.1");
        assert_eq!(format(12345.678, 2, 1), "1.23e4");
        assert_eq!(format(-f64::NAN, 3, 0), "nan");
        assert_eq!(format(-f64::MAX, i32::MAX, 0).len(), 1 + 309 + 1 + MAX_DIGITS as usize);
        assert_eq!(format(5e-324, -1, 0).len(), 2 + 324);
    }

    #[test]
    fn numbers_are_read() {
        let mut value = 7.0;
        // SAFETY: the arguments are what the function asks for.
        unsafe {
            assert_eq!(nyala_parse_f64(c"2.5e3".as_ptr().cast(), &mut value), 1);
            assert_eq!(value, 2500.0);
            assert_eq!(nyala_parse_f64(c"2.5x".as_ptr().cast(), &mut value), 0);
            assert_eq!(nyala_parse_f64(std::ptr::null(), &mut value), 0);
            let mut single = 0.0;
            assert_eq!(nyala_parse_f32(c"0.1".as_ptr().cast(), &mut single), 1);
            assert_eq!((value, single), (2500.0, 0.1));
        }
    }
}
