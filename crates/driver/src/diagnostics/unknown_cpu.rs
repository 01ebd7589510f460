//! The CPU named by `--cpu` is not known.
//!
//! The names are LLVM's, for the target's architecture; `nyala build --cpu help` lists them. `native` is the CPU of
//! this machine. 32-bit processors are not supported.
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
        let message = format!("`native` is the CPU of this machine, but code is made for another architecture, {arch}");
        return Diagnostic::error("unknown-cpu", Span::NONE, message)
            .hint(format!("name a CPU of that architecture: `nyala build --cpu help` lists those of {arch}"));
    }
    let diagnostic = Diagnostic::error("unknown-cpu", Span::NONE, format!("there is no {arch} CPU `{cpu}`"));
    match similar {
        Some(_) => diagnostic.hint_similar(similar),
        None => diagnostic.hint("`nyala build --cpu help` lists all; `native` is this machine's"),
    }
}
