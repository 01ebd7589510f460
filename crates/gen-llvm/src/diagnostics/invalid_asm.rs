//! The machine has no such assembly.
//!
//! The template names an instruction or register that the target does not have, or the constraints ask for what it
//! cannot do: an output in a register of another kind, an operand that is not there. The text is LLVM's, after the
//! template has got its registers.
//!
//! ```text
//! fn f(x: i32) -> i32 {
//!     let mut y: i32;
//!     asm("movv $1, $0" : "=r"(y) : "r"(x));
//!     y
//! }
//! ```
//!
//! ## Instead
//!
//! ```text
//! fn f(x: i32) -> i32 {
//!     let mut y: i32;
//!     asm("movl $1, $0" : "=r"(y) : "r"(x));
//!     y
//! }
//! ```

use nyala_base::{Diagnostic, Span};

/// `said` is LLVM's message.
pub fn error(span: Span, said: &str) -> Diagnostic {
    // Of several lines the first says what is wrong, the others show the text.
    let mut lines = said.lines().map(str::trim_end).filter(|l| !l.trim().is_empty());
    let first = lines.next().unwrap_or("it is not valid");
    let first = first.rsplit_once("error: ").map_or(first, |t| t.1);
    let first = first.strip_prefix("bug: in code generation: ").unwrap_or(first);
    let first = first.strip_prefix("<inline asm>").and_then(|t| t.split_once(": ")).map_or(first, |t| t.1);
    let shown: Vec<&str> = lines.next().into_iter().map(str::trim).collect();
    let shown = if shown.is_empty() { String::new() } else { format!(" in `{}`", shown.join("\n")) };
    Diagnostic::error("invalid-asm", span, format!("assembly: {first}{shown}"))
        .hint("templates and constraints are LLVM's, operands `$0`, `$1`, a dollar `$$`")
}
