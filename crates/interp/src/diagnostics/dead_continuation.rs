//! A continuation is called after its function has returned.
//!
//! `return`, `break` and `continue` are values, and may be stored. Once the function or loop that they belong to has
//! ended, there is nothing to return to. Compiled code would use memory that may hold something else by then.
//!
//! ```impala
//! static mut escape: fn(i32) -> !;
//! fn f() -> i32 { escape = return; 1 }
//! fn g() -> i32 { f() + 1 }
//! fn main() -> i32 { g(); escape(2) }
//! ```
//!
//! ## Instead
//!
//! Call it while its function runs:
//!
//! ```impala
//! fn g(escape: fn(i32) -> !) -> () { escape(0) }
//! fn f() -> i32 { g(return); 1 }
//! fn main() -> i32 { f() }
//! ```

use nyala_base::{Diagnostic, Span};

pub fn error() -> Diagnostic {
    Diagnostic::error("dead-continuation", Span::NONE, "call of a continuation whose function has returned")
        .hint("`return`, `break` and `continue` live as long as their function or loop; return a value and test it")
}
