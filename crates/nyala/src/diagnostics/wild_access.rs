//! The program reads or writes where it has no memory.
//!
//! A pointer is null, dangling or made from a wrong number, or an index is far outside of its array. Compiled code does not
//! check accesses; this one met an address that the system gave to nobody. Reported by `nyala run`; the exit code is 139.
//!
//! ```text
//! fn main(argc: i32, argv: &[&[u8]]) -> i32 { *(argc as i64 as &i32) }
//! ```
//!
//! ## Instead
//!
//! The interpreter checks every access, and stops at the first that is wrong, with the chain of calls:
//!
//! ```sh
//! nyala run program.impala --engine interp
//! ```

use nyala_base::{Diagnostic, Span};

/// `place` says where, as ` in f`.
pub fn error(span: Span, what: &str, place: &str, address: Option<usize>) -> Diagnostic {
    let address = address.map_or(String::new(), |a| format!(": cannot access address {a:#x}"));
    Diagnostic::error("wild-access", span, format!("{what}{place}{address}"))
        .hint("`--engine interp` stops where it goes wrong first")
}
