//! Memory is read or written where the program has none.
//!
//! An index beyond the end of an array, a pointer to a variable of a function that has returned, a block that was given
//! back, a number that is no address. Compiled code does not check this, and would read or destroy something else.
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

/// `how` is what the memory says about it.
pub fn error(how: String, hint: &str) -> Diagnostic {
    Diagnostic::error("invalid-access", Span::NONE, how).hint(hint)
}

pub fn allocation(n: i64, size: i64) -> Diagnostic {
    error(format!("cannot allocate {n} elements of {size} bytes"), "the number must not be negative, nor too large")
}

/// A lane that a vector of `n` does not have.
pub fn lane(idx: i64, n: u32) -> Diagnostic {
    error(format!("lane {idx} of {n}"), "lanes of a vector are counted from `0`")
}
