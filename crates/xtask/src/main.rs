//! All automation, the text-test runner included.
fn main() {}
