//! Names, types, and lowering to the graph; the last place where the user can simply be wrong.
