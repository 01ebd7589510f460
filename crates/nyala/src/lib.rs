//! The command, with what only it has: the language server, pages about libraries, tuning, printing of diagnostics.
//!
//! What compiles and runs programs is `nyala_driver`, which other programs have as `nyala_embed`. This library is for the tests of
//! the command's parts.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod doc;
pub mod lsp;
