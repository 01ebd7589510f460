//! A program asks what its target is like, by `std::target`: what is shown is for one machine.
//!
//! `nyala emit`, `explain` and `check` say so, since another CPU would make another program of the same text. Without `--cpu` the facts
//! are those of this machine.
//!
//! ```sh
//! nyala emit program.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala emit --cpu x86-64-v3 program.impala
//! ```

use nyala_base::{Diagnostic, Span};

pub fn info(facts: &str, machine: &str) -> Diagnostic {
    Diagnostic::info("target-facts", Span::NONE, format!("the program depends on {facts} of {machine}"))
}
