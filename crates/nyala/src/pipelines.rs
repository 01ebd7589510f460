//! What happens to a program, as tables.

use crate::Options;
use nyala_base::Diagnostic;
use nyala_flat::Module;

/// A pass over flat SSA.
pub struct FlatPass {
    /// Its key in `--time-passes`.
    pub name: &'static str,
    pub about: &'static str,
    /// Runs from this `-O` on.
    pub min_level: u8,
    /// What it cannot do, or warns of, is in the diagnostics.
    pub run: fn(&mut Module, &Options) -> Vec<Diagnostic>,
}

/// The passes over flat SSA, in order.
pub const FLAT: &[FlatPass] = &[
    FlatPass {
        // First: function values are taken apart when variables become values.
        name: "count-environments",
        about: "environments of function values are freed with the last value that holds them",
        min_level: 0,
        run: |module, _| {
            nyala_flat::count_environments(module);
            Vec::new()
        },
    },
    FlatPass {
        name: "promote-slots",
        about: "local variables whose address does not escape become values",
        min_level: 1,
        run: |module, _| {
            nyala_flat::promote_slots(module);
            Vec::new()
        },
    },
    FlatPass {
        name: "simplify-branches",
        about: "merges and removes blocks, drops what nobody uses",
        min_level: 1,
        run: |module, _| {
            nyala_flat::simplify_branches(module);
            Vec::new()
        },
    },
    FlatPass {
        name: "vectorize",
        about: "bodies of `vectorize` become vector code",
        min_level: 0,
        run: |module, options| {
            let options = nyala_vectorize::Options { wrap: options.wrap, explain: false };
            nyala_vectorize::vectorize(module, options).diagnostics
        },
    },
];

/// Stages of `nyala emit`, in the order of the pipeline.
pub const STAGES: &[(&str, &str)] = &[
    ("ast", "the syntax tree"),
    ("graph", "the graph before partial evaluation"),
    ("residual", "the graph after partial evaluation"),
    ("flat", "flat SSA"),
    ("llvm", "LLVM's text form, optimized"),
    ("asm", "assembly"),
];

/// Instructions of a module.
pub fn flat_size(module: &Module) -> usize {
    module.funcs.iter().flat_map(|f| &f.blocks).map(|b| b.insts.len() + 1).sum()
}
