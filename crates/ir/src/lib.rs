//! The graph: world, op table, folding constructors, verifier, printer, reader, rewriter, facts about graphs.

pub mod layout;
pub mod ops;
pub mod types;

pub use ops::{Effect, Op, Rule};
pub use types::{Prim, StructId, Ty, TyKind, Types};
