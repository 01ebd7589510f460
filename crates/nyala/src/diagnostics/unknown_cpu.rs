//! The CPU named by `--cpu` is not known.
//!
//! Names are LLVM's, for the architecture that code is made for: `nyala build --cpu help` lists them. `native` is the CPU of
//! this machine. Processors of 32 bits are not among them.
//!
//! ```sh
//! nyala build program.impala -o program --cpu sapphire-rapids
//! ```
//!
//! ## Instead
//!
//! ```sh
//! nyala build program.impala -o program --cpu sapphirerapids
//! ```

use nyala_base::{Diagnostic, Span};

/// `similar` is a CPU that may be meant.
pub fn error(cpu: &str, arch: &str, similar: Option<&str>) -> Diagnostic {
    if cpu == "native" {
        let message = format!("`native` is this machine's CPU, and code is made for another architecture, {arch}");
        return Diagnostic::error("unknown-cpu", Span::NONE, message)
            .hint(format!("name a CPU of that: `nyala build --cpu help` lists those of {arch}"));
    }
    let diagnostic = Diagnostic::error("unknown-cpu", Span::NONE, format!("there is no {arch} CPU `{cpu}`"));
    match similar {
        Some(_) => diagnostic.hint_similar(similar),
        None => diagnostic.hint("`nyala build --cpu help` lists all; `native` is this machine's"),
    }
}
