//! A test fails under some engine.
//!
//! `nyala test` runs each test in the interpreter and compiled, with and without partial evaluation, optimized or not.
//! The message says under which of these engines it failed, and how: a query `//?` did not hold, an `assert` failed,
//! the process ended early, or the file does not compile. This code is only shown with `--json`; otherwise failures are
//! a part of the report on standard output.
//!
//! ```sh
//! nyala test --json square.impala
//! ```
//!
//! ## Instead
//!
//! Run this test under this engine:
//!
//! ```sh
//! nyala test --filter test_square --engine interp square.impala
//! ```

use nyala_base::{Diagnostic, Span};

/// `name` is the name of the test, or `None` if the whole file fails. The first line of `how` lists the engines, and
/// the other lines describe the failure.
pub fn error(span: Span, name: Option<&str>, how: &str) -> Diagnostic {
    let (engines, how) = how.split_once('\n').unwrap_or((how, ""));
    let message = match name {
        Some(name) => format!("the test `{name}` fails ({engines})"),
        None => format!("the tests of this file fail ({engines})"),
    };
    let how: Vec<&str> = how.lines().map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
    Diagnostic::error("test-failed", span, message)
        .label(how.join("\n"))
        .hint("`--filter` and `--engine` run one test under one engine")
}
