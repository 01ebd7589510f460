//! The diagnostics of the grammar.

pub mod c_syntax;

nyala_base::codes![c_syntax];
