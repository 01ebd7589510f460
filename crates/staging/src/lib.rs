//! Dynamic staging: stages are values that say when code runs: the calculus, its evaluators, and the languages DeepCPS and Staged-C.
//!
//! For users: `docs/staging.md`. Of Danilewski and others, "Specialization through Dynamic Staging" (GPCE 2014; seed 004).
//!
//! **The calculus** ([`term`]). A program is in continuation-passing style: a body is one call, or one `fix`, and the rest of the program is within
//! its operands. Each body has a staging expression over variables, which is true as far as they are bound to values. A body is *active* when its
//! expression is true, and it is executed when nothing below it is active. So code runs under functions that nobody has called yet, which is
//! partial evaluation; what stays when nothing is active is the residual program. Each function has a stage of its own, which its call binds.
//!
//! **Two evaluators.** [`reference`](mod@reference) is the rules as they are written, [`machine`] does the same in time linear in the steps, by closures; its header is the
//! design. Random programs compare them: residual terms, executed bodies, rounds, and what is stuck. Both end within [`Limits`]. Nothing is
//! executed twice and no order is chosen: two bodies of which none is within the other can't influence each other. So the residual program
//! depends on nothing but the rules.
//!
//! **What is stuck.** An active body that calls an unbound variable, or whose built-in function needs an operand that is not bound,
//! has no rule. It stays, with all around it, and is reported; the rest of the program is still executed.
//!
//! **`fix`, by the rules.** `[e] fix x = λ in b` is executed when `b` waits, so within `b` a call of `x` must be staged on `x`: `b` is evaluated before `x` is bound.
//! So must a recursive call in the body of `λ`, which a call of the function makes the `b` of another `fix`.
//!
//! **DeepCPS** ([`deepcps`]). Text to terms, with names and types, in one pass; [`evaluate`](mod@evaluate) runs the machine and words what is wrong.
//!
//! **Staged-C** ([`stagedc`]). A part of C ([`c`]) with labels, to the same terms.
//!
//! **Effects.** No rule executes `print`, `local`, or a call of other code: they wait, with all that follows, until the program runs. Nor can a store or load of memory be executed, since memory
//! is no constant array.
//!
//! **Code** ([`lower`]). What is left becomes our graph, and goes the way of Impala's programs: `nyala run`, `check`, `test`, `build`, `emit` and `explain` take files
//! `.deepcps` and `.stagedc`.
//!
//! **Functions that are made while the program runs** ([`site`]). `compile` waits, too. Its function stays a term, which staging executes further once its
//! free variables have values.
//!
//! **Limitations.** `int` has 32 bits. In DeepCPS, an integer literal is a `float` only where that is known when it is read. Files in Staged-C are one program,
//! those in DeepCPS one each: code of one is not executed early in another. There is no `nyala fmt` or `doc`, and no C header. A residual
//! body of DeepCPS that would have to run before what is around it does not become code. Memory of evaluation is not collected, but limited.
#![forbid(unsafe_code)]

pub mod c;
pub mod deepcps;
pub mod diagnostics;
pub mod evaluate;
pub mod format;
mod lexer;
pub mod lower;
pub mod machine;
pub mod names;
pub mod outcome;
pub mod prim;
pub mod print;
pub mod program;
pub mod reference;
pub mod site;
pub mod stagedc;
pub mod term;
mod types;

pub use outcome::{Exceeded, Limits, Outcome, Stuck, Why};
pub use program::{is_staged, names, read};
