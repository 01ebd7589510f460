//! The file of a module is not found, or cannot be read.
//!
//! `mod m;` stands for the items of `m.impala`, beside the file that it is in. Inside of `mod a { … }` it stands for
//! those of `a/m.impala`.
//!
//! ```impala
//! mod geometry_of_the_world;
//! ```
//!
//! ## Instead
//!
//! Create that file, or write the module in place:
//!
//! ```impala
//! mod geometry_of_the_world {
//!     fn area(a: i32, b: i32) -> i32 { a * b }
//! }
//! ```

use nyala_base::{Diagnostic, Span};
use std::path::Path;

/// The hint that a library has the module's name; in this file, unless it comes with the compiler.
pub fn elsewhere(library: &str, file: Option<&str>) -> String {
    match file {
        Some(file) => format!("`{file}` has this name: write `use {library};`"),
        None => format!("a library has this name: write `use {library};`"),
    }
}

pub fn error(span: Span, module: &str, path: &Path, why: &str) -> Diagnostic {
    let message = format!("cannot read the file of module `{module}`");
    Diagnostic::error("no-such-module", span, message).hint(format!("{}: {why}", path.display()))
}
