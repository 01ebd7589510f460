//! The graph: world, op table, folding constructors, verifier, printer, reader, rewriter, facts about graphs.
