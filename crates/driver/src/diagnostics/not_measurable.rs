//! `nyala tune` cannot measure the program as written.
//!
//! `nyala tune` compares all candidates with the program as written. So that program must end within the time limit,
//! without a fault, and print the same text to standard output each time.
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

/// `why` is the reason.
pub fn error(why: &str) -> Diagnostic {
    let hint =
        "arguments for the program stand after `--`; a time that it prints belongs in `report_time` of `std::tune`";
    Diagnostic::error("not-measurable", Span::NONE, format!("the program as written cannot be measured: {why}"))
        .hint(hint)
}
