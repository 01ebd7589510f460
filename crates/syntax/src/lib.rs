//! Text to AST; total: never fails, reports errors as data.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostics;
mod format;
mod lexer;
mod literals;
mod parser;
mod printer;

pub use ast::Module;
pub use format::format;
pub use parser::{parse, parse_expr};
pub use printer::print;

#[cfg(test)]
mod grammar_tests;
#[cfg(test)]
mod tests;
