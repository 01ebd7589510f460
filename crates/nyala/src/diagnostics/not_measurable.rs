//! `nyala tune` cannot measure the program as written.
//!
//! Everything is compared with the program as it is written: it must end within the time limit, without a fault, and print the
//! same each time. Standard output is compared; standard error is not.
//!
//! ```sh
//! # prog.impala prints its own time
//! nyala tune prog.impala
//! ```
//!
//! ## Instead
//!
//! ```sh
//! # prog.impala reports it by `report_time` of `std::tune`, or on standard error
//! nyala tune prog.impala
//! ```

use nyala_base::{Diagnostic, Span};

/// The error, with what is missing.
pub fn error(why: &str) -> Diagnostic {
    let hint =
        "arguments for the program stand after `--`; a time that it prints belongs in `report_time` of `std::tune`";
    Diagnostic::error("not-measurable", Span::NONE, format!("the program as written cannot be measured: {why}"))
        .hint(hint)
}
