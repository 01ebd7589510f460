//! The target does not accept an inline assembly.
//!
//! The template names an instruction or register that the target does not have, or the constraints ask for something
//! that it cannot do, such as an output in a register of another kind, or an operand that does not exist. The message
//! is LLVM's, and shows the template with registers for its operands.
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
    // The first line says what is wrong; the others show the text.
    let mut lines = said.lines().map(str::trim_end).filter(|l| !l.trim().is_empty());
    let first = lines.next().unwrap_or("it is not valid");
    let first = first.rsplit_once("error: ").map_or(first, |t| t.1);
    let first = first.strip_prefix("bug: in code generation: ").unwrap_or(first);
    let first = first.strip_prefix("<inline asm>").and_then(|t| t.split_once(": ")).map_or(first, |t| t.1);
    let shown: Vec<&str> = lines.next().into_iter().map(str::trim).collect();
    let shown = if shown.is_empty() { String::new() } else { format!(" in `{}`", shown.join("\n")) };
    Diagnostic::error("invalid-asm", span, format!("assembly: {first}{shown}"))
        .hint("templates and constraints are LLVM's: operands are `$0` and `$1`, and a dollar is `$$`")
}

/// An operand has a type that no register holds.
pub fn operand(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("invalid-asm", span, format!("assembly has an operand of type `{ty}`, which no register holds"))
        .hint("pass its numbers one by one, or its address")
}
