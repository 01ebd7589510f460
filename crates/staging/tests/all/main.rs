//! All tests of this crate, in one executable.

mod input;
mod programs;
mod random;
mod steps;
