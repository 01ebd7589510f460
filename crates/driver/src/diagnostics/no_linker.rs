//! A tool that links programs is not installed.
//!
//! The system's `cc` links executables and shared libraries; its `objcopy` and `ar` make static libraries. The
//! environment variables `CC`, `OBJCOPY` and `AR` name other tools. Programs for another machine need that machine's, code for AMD's
//! GPUs needs LLVM's `ld.lld`.
//!
//! ```sh
//! CC=no-such-compiler nyala build program.impala -o program
//! ```
//!
//! ## Instead
//!
//! Install gcc or clang with binutils, or name a tool that is installed:
//!
//! ```sh
//! CC=clang nyala build program.impala -o program
//! ```

use nyala_base::{Diagnostic, Span};

/// `variable` is the environment variable that names another tool; `why` is the system's message.
pub fn error(tool: &str, variable: &str, why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("no-linker", Span::NONE, format!("cannot run `{tool}`, which links programs: {why}"))
        .hint(format!("install gcc or clang with binutils, or name the tool in the environment variable `{variable}`"))
}

/// `what`, as in "an executable", is for a machine other than this one.
pub fn of_target(what: &str, target: &str) -> Diagnostic {
    let message = format!("{what} for `{target}` needs that machine's linker");
    Diagnostic::error("no-linker", Span::NONE, message).hint(
        "build an object (`-o NAME.o`) and link it there, or name a cross compiler in the environment variable `CC`, \
         and that machine's runtime in `NYALA_RUNTIME`",
    )
}

/// Code for AMD's GPUs is linked by LLVM's linker.
pub fn of_amd() -> Diagnostic {
    let message = "cannot link code for AMD's GPUs: `ld.lld` is neither in the Rust toolchain nor on the path";
    Diagnostic::error("no-linker", Span::NONE, message).hint("install LLVM's linker (Debian: `lld`)")
}
