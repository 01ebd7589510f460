//! The grammar of Impala for Rust programs that use tree-sitter. It is apart from `crates/syntax`, which reads programs in
//! order to compile them: editors need trees of what is being typed.

use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_impala() -> *const ();
}

/// The grammar, for `tree_sitter::Parser::set_language`.
// SAFETY: the function is in `src/parser.c`, and returns a language that lives forever.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_impala) };

/// What to highlight.
pub const HIGHLIGHTS: &str = include_str!("queries/highlights.scm");
/// What can be folded.
pub const FOLDS: &str = include_str!("queries/folds.scm");
/// What is indented, in the terms of nvim-treesitter.
pub const INDENTS: &str = include_str!("queries/indents.scm");
/// Scopes, and what defines names.
pub const LOCALS: &str = include_str!("queries/locals.scm");
