//! All tests of this crate, in one executable.

#[path = "../../src/expr.rs"]
#[allow(dead_code, reason = "for its own tests")]
mod expr;
mod flat;
#[path = "../../src/names.rs"]
#[allow(dead_code, reason = "for its own tests")]
mod names;
