//! All tests of this crate, in one executable.

mod programs;
mod random;
mod steps;
