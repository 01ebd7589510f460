//! Sierra, a language like C with values that have lanes: text to the graph.
//!
//! For users: `docs/sierra.md`. Of Leißa, Haffner and Hack, "Sierra: A SIMD Extension for C++" (seed 002, part I).
//!
//! Values have lanes, by `varying(n)`, and a condition with lanes opens SIMD mode: [`lower`](mod@lower) says with each construct what becomes of it.
//!
//! **Dialects.** Files `.ispc` are those of ISPC's programs: the same tokens, trees and rules, of which the grammar says which types have lanes by
//! themselves, and `lower/ispc.rs` what only they have. Their library is code (`lower/library.rs`), and a file in the dialect ([`ISPC_LIBRARY`]).
//!
//! **Parts.** Characters to tokens ([`lexer`](nyala_c_syntax::lexer)), lines for the preprocessor ([`preprocess`](mod@preprocess)), tokens to trees ([`parser`](nyala_c_syntax::parser)), trees to the graph with all rules of names and types ([`lower`](mod@lower)).
//! Nothing is recursive on what may be long: trees nest to a limit, and what stands in a row is a list.
//!
//! **VecImp.** Programs in the language's formal core become ones in Sierra: [`vecimp`](mod@vecimp).
//!
//! **Other code.** All functions that are not `static` can be called by Impala and C; those that are declared only are theirs. Arithmetic of signed
//! integers must not overflow, as in C: the checks of Impala's programs find it.
//!
//! **Limitations.** What of C and C++ is not there is a `limitation` with its name: classes, functions in structs, `new`, exceptions, namespaces, `goto`, references but
//! for parameters and variables of functions, specializations of templates, variables of other languages. So are references in each lane
//! that are parameters, unions with lanes, addresses of single lanes, and lanes that leave a `switch` without lanes, or a function without lanes. `docs/sierra.md` has
//! all of them.
#![forbid(unsafe_code)]

pub mod diagnostics;
pub mod lower;
pub mod preprocess;
mod texts;
mod types;
pub mod vecimp;

pub use lower::{Callable, Exports, lower};

/// The endings of files in the language, and in VecImp.
pub const ENDINGS: [&str; 3] = [".sierra", vecimp::ENDING, ISPC_ENDING];

/// The library of ISPC's dialect as a file among the sources of programs in it: its name and text.
pub const ISPC_LIBRARY: (&str, &str) = ("<library of ISPC>", include_str!("library.ispc"));

/// That of ISPC's dialect.
pub const ISPC_ENDING: &str = ".ispc";
