//! Typed ids and side tables, graph algorithms over successor lists, file texts and spans, diagnostics; knows nothing of compilers.
