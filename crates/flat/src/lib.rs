//! Flat SSA: data, verifier, printer, reader, scheduling from the graph, slot promotion.
