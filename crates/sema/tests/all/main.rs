//! All tests of this crate, in one executable.

#[path = "../../src/machine.rs"]
#[allow(dead_code, reason = "for its own tests")]
mod machine;
mod programs;
