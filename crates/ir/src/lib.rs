//! The graph: world, op table, folding constructors, verifier, printer, reader, rewriter, facts about graphs.
//!
//! # How to build one
//!
//! ```
//! use nyala_ir::{Linkage, Op, World};
//! let mut w = World::new();
//! let (mem, i32) = (w.types.mem(), w.types.i32());
//! let ret_ty = w.types.cn(&[mem, i32]);
//! let ty = w.types.cn(&[mem, i32, ret_ty]);
//! // cont double(m: mem, x: i32, ret: cn(mem, i32)) = ret(m, add(x, x))
//! let k = w.declare("double", ty, &["m", "x", "ret"]);
//! let (m, x, ret) = (w.param(k, 0), w.param(k, 1), w.param(k, 2));
//! let sum = w.op(Op::Add, &[x, x]);
//! w.define(k, ret, &[m, sum]);
//! w.cont_mut(k).linkage = Linkage::Exported("double".into()).into();
//! ```
//!
//! # Invariants (checked by the verifier)
//!
//! - A function is `cn(mem, parameters…, cn(mem, results…))`, its return continuation last. A continuation without a
//!   return continuation is a block. `mem` is the first parameter of every continuation and the first argument of every
//!   call.
//! - A continuation uses no `mem` but its own parameter and those that its own writes return; each `mem` is consumed by
//!   one write or call. So the chain of mems within one continuation is the order of effects.
//! - C functions and assembly are continuations without a body.
//! - Partial operations (loads, integer division) and writes take the `mem` at which they happen.
//! - `extract` and `insert` take literal indices, except on vectors; so does `lea` into tuples and structs. An array
//!   that is indexed by a value other than a literal lives in a `slot`, and is accessed by `lea`, `load` and `store`.
//! - Operations on numbers and bools also work on vectors (`simd[T * n]`), lane by lane; a comparison of vectors gives
//!   a vector of bools. `array` and `splat` make vectors, `extract` and `insert` access lanes at any index; an index
//!   out of range is undefined.
//! - `branch(mem, cond, then, else)`: both targets are `cn(mem)`.
//! - A call of an unspecialized `known` is false; `hlt` and `run` are transparent.
//! - Filters ([`Filter`]) are total operations over the continuation's own parameters (and literals).
//! - Nesting is not stored: a continuation is nested in those whose parameters it uses, directly or through the
//!   continuations that it refers to ([`facts::Nest`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod builtins;
pub mod callbacks;
pub mod cont;
pub mod ensure;
pub mod eta;
pub mod facts;
pub mod fold;
pub mod lanes;
pub mod layout;
pub mod ops;
pub mod print;
pub mod read;
mod rules;
pub mod scalar;
pub mod target;
pub mod types;
pub mod verify;
pub mod world;

pub use builtins::{Builtin, BuiltinArgs};
pub use cont::{AsmInfo, Body, ContData, Filter, Linkage, Names};
pub use lanes::{LaneOp, WorkItem};
pub use ops::{Effect, Op, Rule, Scope};
pub use target::{Arch, Target};
pub use types::{Prim, StructId, Ty, TyKind, Types};
pub use world::{Cont, Extractor, Global, GlobalData, Node, Part, Val, World};
