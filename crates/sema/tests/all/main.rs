//! All tests of this crate, in one executable.

mod programs;
#[path = "../../src/x86_intrinsics.rs"]
#[allow(dead_code, reason = "for its own tests")]
mod x86_intrinsics;
