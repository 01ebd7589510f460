//! The syntax of C in the dialects that are here: text to tokens, tokens to trees.
//!
//! Separate from Sierra and from Staged-C, which give the trees a meaning. What differs between the dialects is [`Dialect`], a table of
//! words; `parser/ispc.rs` has what only ISPC's dialect has, `parser/staged.rs` what only Staged-C has. A dialect may take less than
//! the grammar does: then its language says so.
#![forbid(unsafe_code)]

pub mod diagnostics;
mod dialect;
pub mod lexer;
pub mod parser;
pub mod syntax;

pub use dialect::Dialect;
