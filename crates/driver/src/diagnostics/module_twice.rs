//! A file would be two modules of a program, or a module of itself.
//!
//! Each file of a program is read once: it is given to the compiler, or it is one module, by one `mod m;`. Other
//! modules use its items by `use`.
//!
//! ```text
//! // In m.impala:
//! mod m;
//! ```
//!
//! ## Instead
//!
//! ```text
//! // In main.impala, beside m.impala and n.impala:
//! mod m;
//! mod n;
//! // In n.impala:
//! use ::m::*;
//! ```

use nyala_base::{Diagnostic, Span};
use std::path::Path;

/// `first` is the other `mod` for the file `path`, or `None` if the file is given to the compiler.
pub fn error(span: Span, module: &str, path: &Path, first: Option<Span>) -> Diagnostic {
    let path = path.display();
    match first {
        Some(first) => {
            Diagnostic::error("module-twice", span, format!("the file of module `{module}` is a module already"))
                .other(first, format!("{path} is this module"))
                .hint("its items can be used by `use`")
        }
        None => {
            let message = format!("the file of module `{module}` is given to the compiler itself");
            Diagnostic::error("module-twice", span, message)
                .hint(format!("{path}: give it to the compiler or name it by `mod`, not both"))
        }
    }
}
