//! Slow, obvious, checked execution of the graph: the living definition of the language.
