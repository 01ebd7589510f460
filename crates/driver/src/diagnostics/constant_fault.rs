//! A constant expression divides by zero, overflows, shifts too far, or has an index that its array does not have.
//!
//! The compiler knows the operands, so this is certain to happen when the code runs. It may never run, so this is only
//! a warning. Operands that are not written down, but that partial evaluation knows, are reported only in code that every call of its
//! function runs. So is an index behind the end of memory of known size that a loop certainly reaches, and an operand that is a
//! `static mut` to which nothing in the program writes.
//!
//! The operation stays in the program, and is undefined there; `--check` and the interpreter report it when it runs. A shift is by the
//! amount modulo the number of bits.
//!
//! ```impala
//! fn f() -> i32 { 1 / 0 }
//! extern fn g() -> i32 { f() }
//! ```
//!
//! ## Instead
//!
//! ```impala
//! fn f() -> i32 { 1 / 2 }
//! extern fn g() -> i32 { f() }
//! ```

use nyala_base::{Diagnostic, Span};
use nyala_ir::fold::ConstantFault;

/// The hint that an operand is a static of this name.
pub fn kept(name: &str) -> String {
    format!("nothing writes to the static `{name}`, so it keeps its first value")
}

/// The warning of a fault.
pub fn warning(span: Span, fault: ConstantFault) -> Diagnostic {
    let (what, hint) = match fault {
        ConstantFault::Overflow => (
            "signed overflow in a constant expression",
            "the result is undefined in compiled code; change the operands, or use a wider or unsigned type",
        ),
        ConstantFault::Division => (
            "division by zero in a constant expression",
            "the result is undefined in compiled code; change the operands, or use a wider or unsigned type",
        ),
        ConstantFault::Shift => (
            "shift by more bits than the number has",
            "the amount counts modulo the number of bits; change it, or use a wider type",
        ),
        ConstantFault::Index => {
            ("index outside of the array", "what is read or written there is undefined; change the index or the array")
        }
    };
    Diagnostic::warning("constant-fault", span, what).hint(hint)
}
