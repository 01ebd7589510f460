//! Text to AST; total: never fails, reports errors as data.
