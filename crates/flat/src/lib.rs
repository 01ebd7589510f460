//! Flat SSA: data, verifier, printer, reader, analyses, promotion, simplification, structure, counts.
//!
//! A [`Module`] has globals and functions; a function has blocks with parameters; a block has instructions in order and
//! a terminator. Everything is first-order: a function as a value is a code address. Constants, and addresses of
//! globals and functions, are values outside of all blocks. The text form prints and reads back:
//!
//! ```text
//! flat
//! func pow(i32, i32) -> (i32) {
//! entry(x, n):
//!   c: bool = eq(n, 0i32)
//!   branch c, then(), else()
//! then():
//!   return(1i32)
//! else():
//!   n.1: i32 = sub(n, 1i32)
//!   r: i32 = call pow(x, n.1)
//!   p: i32 = mul(x, r)
//!   return(p)
//! }
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
mod data;
pub mod ensure;
pub mod environments;
pub mod escape;
mod inline;
mod math;
mod panics;
mod pieces;
mod print;
pub mod promote;
mod read;
mod read_only;
pub mod refcount;
pub mod simplify;
pub mod structure;
pub mod tail_calls;
mod tail_recursion;
mod vector;
mod verify;

pub use data::*;
pub use inline::inline;
pub use math::{MathFunctions, call_math, link_math, math_works_on};
pub use panics::tell_calls;
pub use pieces::take_pieces;
pub use print::{print, print_functions};
pub use promote::{promote_slots, promote_slots_of};
pub use read::{ReadError, read};
pub use read_only::{ReadOnly, read_only};
pub use refcount::{count_environments, environments_by_code, records_on_heap};
pub use simplify::{simplify_branches, simplify_function};
pub use tail_recursion::make_loops;
pub use vector::VectorOp;
pub use verify::verify;
