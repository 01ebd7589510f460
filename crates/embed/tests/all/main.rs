//! All tests of this crate through its interface, in one executable: each would be linked with the whole compiler.

mod calls;
mod checked;
mod errors;
mod example;
mod faults;
mod programs;
mod readme;
mod types;
mod variants;
