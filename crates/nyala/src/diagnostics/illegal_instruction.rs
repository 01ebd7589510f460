//! The processor met an instruction that it does not have.
//!
//! The program called an address that is no function, or it was compiled for another CPU than this one (`--cpu`), or a
//! foreign function ended itself so. Reported by `nyala run`; the exit code is 132.
//!
//! ```text
//! extern "C" { fn gives_up() -> (); }    // calls __builtin_trap()
//! fn main() -> i32 { gives_up(); 0 }
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala run program.impala --cpu native
//! ```

use nyala_base::{Diagnostic, Span};

/// `place` says where, as ` in f`.
pub fn error(span: Span, what: &str, place: &str) -> Diagnostic {
    Diagnostic::error("illegal-instruction", span, format!("{what}{place}"))
        .hint("`--cpu native` makes code for this machine; `--engine interp` stops where it goes wrong first")
}
