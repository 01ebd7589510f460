//! Memory is read or written where the program has none.
//!
//! Common causes are an index beyond the end of an array, a pointer to a variable of a function that has returned,
//! memory that was freed, and a number that is not an address. Memory of a device is for its kernels: the host copies it, by
//! `read` or `get` of a `DeviceBuffer`. Compiled code does not check accesses, and would read or overwrite other data.
//!
//! ```impala
//! fn get(a: &[i32], i: i32) -> i32 { a(i) }
//! fn main() -> i32 { let a = [1, 2, 3]; get(&a, 3) }
//! ```
//!
//! ## Instead
//!
//! Indices of an array of `n` elements go from `0` to `n - 1`:
//!
//! ```impala
//! fn get(a: &[i32], i: i32) -> i32 { a(i) }
//! fn main() -> i32 { let a = [1, 2, 3]; get(&a, 2) - 3 }
//! ```

use nyala_base::{Diagnostic, Span};

/// `how` describes the access and its fault.
pub fn error(how: String, hint: &str) -> Diagnostic {
    Diagnostic::error("invalid-access", Span::NONE, how).hint(hint)
}

pub fn allocation(n: i64, size: i64) -> Diagnostic {
    error(format!("cannot allocate {n} elements of {size} bytes"), "the number must not be negative, nor too large")
}

/// A vector of `n` lanes has no lane `idx`.
pub fn lane(idx: i64, n: u32) -> Diagnostic {
    error(format!("there is no lane {idx} in a vector of {n}"), "lanes of a vector are counted from `0`")
}
