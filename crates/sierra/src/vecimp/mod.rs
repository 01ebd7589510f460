//! VecImp and PolyVecImp, the formal core of Sierra: files `.vecimp`. Of seed 002, chapter 4.
//!
//! For users: `docs/vecimp.md`. A file goes from text to terms ([`parser`]), gets its vector lengths ([`infer`]), is checked by the rules of the chapter
//! ([`check`]), and becomes a program in Sierra (`translate`), which is compiled as any other. Beside that stands the small-step interpreter
//! ([`step`]), which is what Sierra's code is compared with. [`random`] makes well-typed programs for that.
//!
//! **Two languages in one.** A function with `simd(l)` is VecImp's: its parameters and its result have the lengths that are written, 1 where none is. One
//! without is PolyVecImp's: it is polymorphic in the current length and in those of its poly types. With all lengths 1 that is IMP.
//!
//! **Syntax.** That of Figures 4.1 and 4.4, with the abbreviations of 4.1.1. Added are parentheses, several operators in an expression, `-e` and `!e`, and
//! constants of a file, `const int WIDTH = 64;`, whose names stand for their values. Names are unique in a function, and not in a program. An
//! operator takes an `int` beside a `float`, as the listings do.
//!
//! **Where the rules differ.** As they are written they are not sound, and few programs end. The tests show each of these with [`Rules::Written`]; with
//! [`Rules::Repaired`] they are:
//!
//! - ES-IfT, ES-IfF: a branch that no lane takes is skipped, as the shortcuts of 5.1.3 do. As written it is evaluated for no lane. That has no effect, but
//!   a loop is unrolled forever, and so is a recursion.
//! - TS-While: the condition must have its type under the length of the body, too, where ES-While evaluates it from the second round on. As written, a
//!   call of a `simd(1)` function in the condition gets stuck.
//! - EE-Call: arguments are broadcast to the lengths of the parameters. As written, an assignment to a parameter gets stuck if its argument was a scalar.
//! - EE-Stmt, TE-Stmt: a call knows the length of its function and the type of its result; the result is broadcast to that. As written, the type of a call
//!   changes: preservation does not hold.
//! - TE-Stmt: what stands around a call is typed with the state that waits in it. As written, it is typed with that of the function.
//!
//! **What the chapter leaves open.** `blend` of scalars under a mask updates them if some lane is active. `int` wraps around at 32 bits. A quotient that does
//! not exist, in an active lane, stops the interpreter; in compiled code it is undefined, and found by the checks.
//!
//! **Inference** (4.3) is a fixed point over *instances* of functions: a function, a current length, and the lengths of its arguments. In each instance
//! poly types begin with length 1, and go up in the lattice where an assignment needs it; this may need further instances. What depends on lanes has
//! lanes: a variable of poly type that is assigned in SIMD mode gets the length of the mode. So example 4.5 wants it, while Figure 4.6 alone
//! would let A-Scalar keep the counter `i` a scalar, which counts rounds and not those of each lane. `int varying(1)` is a scalar there. What has been
//! inferred is a VecImp program, which the checker judges.

pub mod check;
pub mod infer;
pub mod parser;
pub mod random;
pub mod step;
pub mod syntax;
#[cfg(test)]
mod tests;
mod translate;

pub(crate) use translate::translate;

use nyala_base::{FileId, Sink};
use syntax::Program;

/// The ending of files in the language.
pub const ENDING: &str = ".vecimp";

/// The rules as the chapter has them, or those that are sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    Written,
    Repaired,
}

/// A file with all lengths, well-typed. What is wrong with it is reported.
pub fn program(file: FileId, text: &str, sink: &mut Sink) -> Program {
    let n_errors = sink.diagnostics.len();
    let parsed = parser::parse(file, text, sink);
    if sink.diagnostics.len() > n_errors {
        return Program::default();
    }
    infer::infer(&parsed, sink)
}
