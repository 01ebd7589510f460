//! All tests of this crate, in one executable.

mod random;
