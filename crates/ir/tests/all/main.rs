//! All tests of this crate through its interface, in one executable.

mod folding;
mod nesting;
mod parts;
