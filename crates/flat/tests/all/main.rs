//! All tests of this crate, in one executable.

use nyala_flat::Value;

#[path = "../../src/races/sums.rs"]
mod sums;
mod text;
