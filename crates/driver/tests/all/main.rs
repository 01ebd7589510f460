//! All tests of this crate through its interface, in one executable: each would be linked with the whole compiler.

mod checked;
mod debugging;
mod explanations;
mod front;
mod math;
mod units;
mod values;
